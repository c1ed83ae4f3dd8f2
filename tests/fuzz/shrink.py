"""A failing program in, a smaller one that fails in the same way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from fuzz.program import Program

from tirlite.diag import TirliteError
from tirlite.ir.expr import BufferRef, Expr, StringImm, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import AttrStmt, For, ForKind, IfThenElse, SeqStmt, Stmt, While
from tirlite.ir.validate import validate
from tirlite.ir.walk import statements, walk

Fails = Callable[[Program], bool]
N = TypeVar("N", bound=Node)


def smallest(program: Program, shows: Fails) -> Program:
    """The program without what it takes to fail, as far as trying finds out. `shows` is asked of valid ones."""

    def fails(candidate: Program) -> bool:
        try:
            validate(candidate.func)
        except TirliteError:
            return False
        return shows(candidate)

    program = _with_fewer_runs(program, fails)
    before = None
    while before is not program.func:
        before = program.func
        for reduce in (_without_statements, _with_simpler_statements, _with_simpler_expressions):
            program = reduce(program, fails)
    return program


def _with_fewer_runs(program: Program, fails: Fails) -> Program:
    for binding in program.bindings:
        candidate = replace(program, bindings=(binding,))
        if fails(candidate):
            return candidate
    return program


def _without_statements(program: Program, fails: Fails) -> Program:
    """Takes out ever fewer statements in a row, the last ones first."""
    count = len(_leaves(program.func))
    size = max(count // 2, 1)
    while size:
        end = len(_leaves(program.func))
        while end > 0:
            gone = dict.fromkeys(_leaves(program.func)[max(end - size, 0) : end])
            candidate = _changed(program, dict.fromkeys(gone, ()))
            if fails(candidate):
                program = candidate
            end = min(end - size, len(_leaves(program.func)))
        size //= 2
    return program


def _leaves(func: PrimFunc) -> list[Stmt]:
    return [stmt for stmt in statements(func.body) if not isinstance(stmt, SeqStmt)]


def _with_simpler_statements(program: Program, fails: Fails) -> Program:
    """Puts what a statement holds in its place."""
    return _with_simpler_nodes(program, fails, _leaves, _simpler)


def _with_simpler_nodes(
    program: Program,
    fails: Fails,
    found: Callable[[PrimFunc], list[N]],
    simpler: Callable[[N], Iterator[Node | tuple[Stmt, ...]]],
) -> Program:
    """Puts the first that still fails of what is simpler in the place of each node, and looks at that again."""
    place = 0
    while place < len(nodes := found(program.func)):
        for other in simpler(nodes[place]):
            candidate = _changed(program, {nodes[place]: other})
            if fails(candidate):
                program = candidate
                break
        else:
            place += 1
    return program


def _simpler(stmt: Stmt) -> Iterator[tuple[Stmt, ...]]:
    if isinstance(stmt, IfThenElse):
        yield stmt.then_body.stmts
        yield stmt.else_body.stmts
    elif isinstance(stmt, While | AttrStmt):
        yield stmt.body.stmts
    elif isinstance(stmt, For):
        yield substitute(stmt.body, {stmt.var: stmt.start}).stmts
        if stmt.kind is not ForKind.SERIAL:
            yield (stmt.replaced(kind=ForKind.SERIAL, thread_tag=""),)
    elif isinstance(stmt, KernelCall):
        for callee in _smaller_callees(stmt):
            yield (stmt.replaced(callee=callee),)


def _smaller_callees(call: KernelCall) -> Iterator[PrimFunc]:
    callee = call.callee
    assert isinstance(callee, PrimFunc)
    for stmt in _leaves(callee):
        yield _put(callee, {stmt: ()})


def _with_simpler_expressions(program: Program, fails: Fails) -> Program:
    """Puts a constant, or a part of its type, in the place of an expression."""
    return _with_simpler_nodes(program, fails, _expressions, _parts)


def _expressions(func: PrimFunc) -> list[Expr]:
    found = (node for node in walk(func.body) if isinstance(node, Expr) and node.children())
    return list(dict.fromkeys(node for node in found if not isinstance(node, StringImm | BufferRef)))


def _parts(expr: Expr) -> Iterator[Expr]:
    if expr.dtype.is_float or expr.dtype.is_integer or expr.dtype.is_bool:
        yield const(1, expr.dtype)
    for child in expr.children():
        if isinstance(child, Expr) and child.dtype == expr.dtype:
            yield child


Changes = Mapping[Node, Node | tuple[Stmt, ...]]


def _changed(program: Program, changes: Changes) -> Program:
    return replace(program, func=_put(program.func, changes))


def _put(func: PrimFunc, changes: Changes) -> PrimFunc:
    """The function with other nodes in the place of some."""
    path: list[Node] = []
    kinds = dict.fromkeys(type(node) for node in changes)
    # A rule sees a node whose children are changed already; what it was before is known from when it was entered.
    rules = dict.fromkeys(kinds, lambda node: changes.get(path.pop(), node))
    result = rewrite(func, rules, enter=dict.fromkeys(kinds, path.append))
    assert isinstance(result, PrimFunc)
    return result
