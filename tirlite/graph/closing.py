"""Closes parts of a graph: makes functions of values, with a parameter for each value that they use from outside.

The steps of a loop, and the segments that a graph is compiled in, are made so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tirlite.graph.expr import Call, Constant, Expr, If, Let, Tuple, Var, operands_first, rebuilt
from tirlite.graph.run_dims import RunDim, mapped_run_dim, run_dims, with_limits
from tirlite.graph.types import substituted
from tirlite.names import UniqueNames
from tirlite.needs import needs_first
from tirlite.record import record
from tirlite.sizes import Dim, Size, as_size, dims_of, substitute
from tirlite.sizes.poly import atom_of


@record(eq=False)
class Closed:
    """A body over parameters only, closed over outside values, which become further parameters.

    outside: the values of the further parameters.
    extents: maps run-time extents of outside to the dims that replace them inside.
    room: further sizes, in terms of these dims.
    """

    params: tuple[Var, ...]
    body: Tuple
    outside: tuple[Expr, ...]
    extents: Mapping[Dim, Size]
    room: tuple[Size, ...] = ()

    def untold(self) -> tuple[Size, ...]:
        """The dims in the body or in `room` that no parameter binds."""
        told = {dim for param in self.params for size in param.sizes for dim in atom_of(size, Dim)}
        inside = operands_first(self.body)
        told |= {dim for expr in inside if isinstance(expr, Call | If) for dim in expr.tells}
        sizes = [*self.room, *(size for expr in inside for size in expr.sizes)]
        dims = dict.fromkeys(dim for size in with_limits(sizes) for dim in dims_of(size))
        return tuple(dim + 0 for dim in dims if dim not in told and not isinstance(dim, RunDim))

    def outer(self, extent: Size) -> Size:
        """The outside size of an extent inside."""
        back = {dim: as_size(outer) for outer, inner in self.extents.items() for dim in atom_of(inner, Dim)}
        return substitute(extent, back)


def closed_over(
    params: Sequence[Var], results: Sequence[Expr], room: Sequence[Size], stops: Callable[[Expr], bool]
) -> Closed:
    """The results as a body over these parameters. Expressions that do not depend on them and cannot fail stay out."""
    return _Closing(params, results, room, depending(params, results, stops)).closed(results)


def depending(params: Sequence[Var], results: Sequence[Expr], stops: Callable[[Expr], bool]) -> set[Expr]:
    """The parameters, and all parts of the results that depend on one of them or on an expression that may fail.

    These are the expressions for which `stops` is true, and run-time extents with a minimum.
    """
    order = operands_first(Tuple(tuple(results)))
    dims = run_dims(with_limits([size for expr in order for size in expr.sizes]))
    inside: set[Expr] = {*params, *(dim.source for dim in dims if dim.least != 0)}
    for expr in order:
        if any(each in inside for each in expr.operands) or stops(expr):
            inside.add(expr)
    return inside


def closed_part(results: Sequence[Expr], inside: Collection[Expr], bound: Mapping[Var, Expr]) -> Closed:
    """The results as a body of the expressions `inside`; `bound` has the values of Lets' variables."""
    return _Closing((), results, (), inside, bound).closed(results)


class _Closing:
    """Replaces run-time extents of outside by dims, which the operands bind. Constants stay inside."""

    def __init__(
        self,
        params: Sequence[Var],
        results: Sequence[Expr],
        room: Sequence[Size],
        inside: Collection[Expr],
        bound: Mapping[Var, Expr] | None = None,
    ) -> None:
        self.inside = inside
        self.bound: dict[Var, Expr] = dict(bound or {})
        order = self._order(results)
        self.extents: dict[Dim, Size] = {}
        self.outside: dict[Expr, Var] = {}
        self.made: dict[Expr, Expr] = {}
        self.names = UniqueNames()
        self._name_extents([*params, *order], room)
        self.room = tuple(map(self._size, room))
        self.params = [self._param(each, each.name) for each in params]
        self.made.update(zip(params, self.params, strict=True))
        for expr in order:
            if expr not in self.made:
                self._find_extents(expr)
                self.made[expr] = rebuilt(expr, self._value, self._size)

    def closed(self, results: Sequence[Expr]) -> Closed:
        """The closed part with these results."""
        body = Tuple(tuple(map(self._value, results)))
        params = (*self.params, *self.outside.values())
        return Closed(params, body, tuple(self.outside), self.extents, self.room)

    def _size(self, size: Size) -> Size:
        """The size inside of a size outside."""
        return substitute(size, self.extents)

    def _order(self, results: Sequence[Expr]) -> list[Expr]:
        """The expressions inside, operands first, seen through variables of Lets."""

        def within(exprs: Iterable[Expr]) -> list[Expr]:
            return [expr for expr in map(self._resolved, exprs) if expr in self.inside]

        return needs_first(within(results), lambda expr: within(expr.operands))

    def _resolved(self, expr: Expr) -> Expr:
        while isinstance(expr, Let) or (isinstance(expr, Var) and expr in self.bound):
            if isinstance(expr, Let):
                self.bound[expr.var] = expr.value
            expr = expr.body if isinstance(expr, Let) else self.bound[expr]
        return expr

    def _value(self, given: Expr) -> Expr:
        """The expression inside for one outside."""
        expr = self._resolved(given)
        if expr in self.made or isinstance(expr, Constant):
            return self.made.get(expr, expr)
        if expr not in self.outside:
            name = expr.name if isinstance(expr, Var) else f"outside{len(self.outside)}"
            self.outside[expr] = self._param(expr, name)
        return self.outside[expr]

    def _param(self, expr: Expr, name: str) -> Var:
        return Var(self.names.unique(name), substituted(expr.type, self.extents), span=expr.span, device=expr.device)

    def _name_extents(self, exprs: Sequence[Expr], room: Sequence[Size]) -> None:
        # Those of what comes in from outside among them.
        every = (each for expr in exprs for each in (expr, *expr.operands))
        sizes = with_limits([*room, *(size for each in every for size in each.sizes)])
        for dim in run_dims(sizes):
            if self._resolved(dim.source) not in self.inside:
                self.extents[dim] = Dim(f"{dim.name}_{len(self.extents)}", 0, dim.max) + 0

    def _find_extents(self, expr: Expr) -> None:
        """Gives extents that are found inside the values inside."""
        for dim in run_dims(with_limits(expr.sizes)):
            if dim not in self.extents:
                found = mapped_run_dim(dim, self._value(dim.source), self._size)
                self.extents[dim] = found + 0
