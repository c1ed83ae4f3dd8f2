"""The statement that calls a function, and what a function is to its callers.

The callee works on the caller's memory: if arguments share bytes, so do its parameters. It is not part of the caller,
which only refers to it: calls of one function share one object, and walks through the caller do not enter it. See
`callees` for walks over the functions that call each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, TypeVar, cast

from tirlite.diag import Span
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, BufferRef, Expr, FloorDiv, IntImm, Sub, Var
from tirlite.ir.node import Node, node
from tirlite.ir.stmt import SeqStmt, Stmt
from tirlite.ir.walk import COMPOSITES, distinct, statements_of
from tirlite.needs import needs_first
from tirlite.record import record


@record
class DimSource:
    """The axis of a parameter that defines a dim: its extent is `times * dim + plus`."""

    param: Buffer
    axis: int
    times: int = 1
    plus: int = 0

    @property
    def is_bare(self) -> bool:
        """Whether the axis is the dim alone."""
        return (self.times, self.plus) == (1, 0)

    def value(self, extent: Expr) -> Expr:
        """The dim for an extent of the axis. The result is wrong if the extent is not of that form."""
        moved = Sub(extent, IntImm(i64, self.plus)) if self.plus else extent
        return FloorDiv(moved, IntImm(i64, self.times)) if self.times > 1 else moved


class Function(Node):
    """A callable function. Its only kind is PrimFunc, which is defined above the printer."""

    __slots__ = ()
    name: str
    params: tuple[Var | Buffer, ...]
    body: SeqStmt
    outputs: tuple[Buffer, ...]
    defaults: tuple[bool | int | float | None, ...]
    span: Span | None
    known_sources: Mapping[Var, DimSource] | None
    known_uses: Mapping[Buffer, int] | None

    def default_of(self, param: Var | Buffer) -> bool | int | float | None:
        """The default of `param`; None if it is required."""
        position = self.params.index(param)
        return self.defaults[position] if position < len(self.defaults) else None

    @property
    def arrays(self) -> tuple[Buffer, ...]:
        """The parameters that are buffers."""
        return tuple([param for param in self.params if isinstance(param, Buffer)])

    @property
    def dims(self) -> tuple[Var, ...]:
        """The variables in the shapes of the parameters, each once, in order of appearance."""
        found: dict[Var, None] = {}
        for param in self.params:
            for extent in param.shape if isinstance(param, Buffer) else ():
                if type(extent) is Var:
                    found[extent] = None
                elif type(extent) is not IntImm:
                    found.update((each, None) for each in distinct(extent) if isinstance(each, Var))
        return tuple(var for var in found if var not in self.params)

    @property
    def sources(self) -> Mapping[Var, DimSource]:
        """For each dim the axis that defines it: the first that is the dim alone, or else a multiple plus a number."""
        # Cached, as each call of the function needs them.
        if self.known_sources is None:
            object.__setattr__(self, "known_sources", self._sources())
        assert self.known_sources is not None
        return self.known_sources

    def _sources(self) -> dict[Var, DimSource]:
        dims, found = dict.fromkeys(self.dims), dict[Var, DimSource]()
        axes = [(p, axis, extent) for p in self.arrays for axis, extent in enumerate(p.shape)]
        for param, axis, extent in axes:
            if isinstance(extent, Var) and extent in dims:
                found.setdefault(extent, DimSource(param, axis))
        if len(found) < len(dims):
            from tirlite.ir.size import times_and_plus

            for param, axis, extent in axes:
                solved = times_and_plus(extent, tuple(dims))
                if solved is not None:
                    found.setdefault(solved[0], DimSource(param, axis, *solved[1:]))
        return found

    def dims_at(self, buffers: Mapping[Buffer, Buffer]) -> dict[Var, Expr]:
        """Each dim as an expression of a caller that passes these buffers."""
        sources = self.sources.items()
        return {dim: source.value(buffers[source.param].shape[source.axis]) for dim, source in sources}


@node
class KernelCall(Stmt):
    """Calls `callee` with `args`: a BufferRef for each of its buffers, a value for each of its scalars.

    Its dims are bound by the shapes of the arguments. All extents must fit and the facts of dims must hold; what is not
    proved is checked at run time.
    """

    CHILDREN: ClassVar = ("args",)
    CALLS: ClassVar = ("callee",)
    callee: Function
    args: tuple[Expr, ...]

    def buffers(self) -> Iterator[tuple[Buffer, Buffer]]:
        """Each buffer parameter of the callee, and the caller's buffer passed for it."""
        for param, arg in zip(self.callee.params, self.args, strict=True):
            if isinstance(param, Buffer) and isinstance(arg, BufferRef):
                yield param, arg.buffer

    def scalars(self) -> Iterator[tuple[Var, Expr]]:
        """Each scalar parameter of the callee, and its value."""
        for param, arg in zip(self.callee.params, self.args, strict=True):
            if isinstance(param, Var):
                yield param, arg


F = TypeVar("F", bound=Function)

# Statements that are calls or may contain some.
_CALLING = COMPOSITES | {KernelCall}


def calls_in(body: Stmt) -> list[KernelCall]:
    """The calls in a statement, in program order."""
    return list(statements_of(body, KernelCall))


def callees(func: F) -> tuple[F, ...]:
    """The functions that `func` calls, directly or indirectly, each once and after those that it calls.

    Recursion is impossible, since a function must exist before a call of it is made.
    """
    return tuple(each for each in closure_of(func) if each is not func)


def closure_of(func: F) -> tuple[F, ...]:
    """The `callees` of `func`, then `func`."""
    whole: Function = func
    found = needs_first((whole,), lambda each: _called(each.body))
    return cast("tuple[F, ...]", tuple(found))


def _called(body: Stmt) -> dict[Function, None]:
    """The functions that a statement calls, in order of appearance. A shared statement is entered once."""
    called: dict[Function, None] = {}
    entered: set[Stmt] = set()
    stack = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, KernelCall):
            called[stmt.callee] = None
        elif isinstance(stmt, SeqStmt):
            if not _CALLING.isdisjoint(stmt.kinds):
                stack += [each for each in stmt.stmts[::-1] if type(each) in _CALLING]
        elif stmt not in entered:
            entered.add(stmt)
            stack += [each for each in stmt.children()[::-1] if isinstance(each, Stmt)]
    return called
