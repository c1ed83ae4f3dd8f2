"""Runs passes on all functions that a function calls, and has callers allocate their scratch.

What a callee allocates for its whole run, its scratch, becomes one of its parameters. Each caller allocates it right
before the call: so it is a temporary like any other, live at one statement, and the plan of the outermost function
counts and places the scratch of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tirlite.analysis.facts import Facts
from tirlite.ir.dtype import TypeCode
from tirlite.ir.expr import Buffer, BufferRef, Call, Expr, LetExpr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, KernelCall, callees, calls_in
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import Allocate, SeqStmt, Stmt
from tirlite.ir.walk import walk
from tirlite.plan import Rank, StorageScope
from tirlite.record import record, replace
from tirlite.rewrite.fit_callees import fit_callees
from tirlite.rewrite.pipeline import Pass, after

# Scratch of constant size up to this stays on the callee's stack.
SMALL_BYTES = 1024


def with_callees_lowered(
    func: PrimFunc, passes: Sequence[Pass], observers: Sequence[Callable[[PrimFunc], object]] = ()
) -> PrimFunc:
    """`func` after `passes` on each of its callees, callees first, with their scratch allocated by `func`."""
    func = fit_callees(func)
    lowered: dict[Function, _Lowered] = {}
    for callee in callees(func):
        body = _with_scratch(callee, lowered)
        facts = Facts(body)
        for each in passes:
            facts = after(each, facts)
        lowered[callee] = _lifted(facts.func)
        for observer in observers:
            observer(lowered[callee].lifted)
    return _with_scratch(func, lowered)


@record
class _Lowered:
    """A lowered function: as it is (`plain`), and with its `scratch` as its last parameters (`lifted`)."""

    plain: PrimFunc
    lifted: PrimFunc
    scratch: tuple[Buffer, ...]


def _lifted(func: PrimFunc) -> _Lowered:
    known = {*func.dims, *(param for param in func.params if isinstance(param, Var))}
    scratch = [
        stmt.buffer
        for stmt in func.body.stmts
        if isinstance(stmt, Allocate) and _may_move(stmt.buffer) and _is_known(stmt.buffer, known)
    ]
    if not scratch:
        return _Lowered(func, func, ())
    moved = set(scratch)
    stmts = tuple(s for s in func.body.stmts if not (isinstance(s, Allocate) and s.buffer in moved))
    body = SeqStmt(stmts, span=func.body.span)
    return _Lowered(func, func.replaced(params=(*func.params, *scratch), body=body, defaults=()), tuple(scratch))


def _may_move(buffer: Buffer) -> bool:
    """Whether a caller can allocate the buffer: ordinary or tagged memory, larger than a little."""
    scope = StorageScope.parse(buffer.scope)
    if buffer.volatile or buffer.dtype.code is TypeCode.HANDLE or not (scope.is_special or scope.rank is Rank.GLOBAL):
        return False
    size = constant_bytes(buffer)
    return size is None or size > SMALL_BYTES


def _is_known(buffer: Buffer, known: set[Var]) -> bool:
    """Whether the buffer's size only depends on dims and scalar parameters."""
    parts = [*walk(*buffer.shape)]
    return all(part in known if isinstance(part, Var) else not _computes(part) for part in parts)


def _computes(part: object) -> bool:
    return isinstance(part, Load | Call | LetExpr)


def _with_scratch(func: PrimFunc, lowered: Mapping[Function, _Lowered]) -> PrimFunc:
    """`func` with calls of lowered functions, and their scratch allocated before these."""

    def call(node: KernelCall) -> Stmt | tuple[Stmt, ...]:
        callee = lowered[node.callee]
        shapes = _shapes(node, callee.scratch)
        if shapes is None:
            return node if callee.plain is node.callee else node.replaced(callee=callee.plain)
        buffers = [replace(buffer, shape=shape) for buffer, shape in zip(callee.scratch, shapes, strict=True)]
        args = (*node.args, *map(BufferRef, buffers))
        return (*map(Allocate, buffers), node.replaced(callee=callee.lifted, args=args))

    return rewrite(func, {KernelCall: call}) if lowered and calls_in(func.body) else func


def _shapes(call: KernelCall, scratch: tuple[Buffer, ...]) -> list[tuple[Expr, ...]] | None:
    """The shapes of the scratch in terms of the caller; None if they depend on memory, which may have changed."""
    images = dict(call.scalars()) | call.callee.dims_at(dict(call.buffers()))
    shapes = [tuple(substitute(extent, images) for extent in buffer.shape) for buffer in scratch]
    computed = any(_computes(part) for shape in shapes for part in walk(*shape))
    return None if computed else shapes
