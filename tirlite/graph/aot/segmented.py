"""Runs a graph in segments: each is native code with storage of its own, planned over the extents found before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.graph.aot.segments import Choice, Nested, Piece, Segments
from tirlite.graph.arguments import bind
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode
from tirlite.graph.loop import LoopFunction
from tirlite.graph.program import Block, extents_found
from tirlite.graph.run_dims import RunDim, check_extent, run_dims, with_limits
from tirlite.graph.stepping import stepping
from tirlite.record import record
from tirlite.sizes import Dim, evaluate

# Runs a function, or one step of a loop, on values for its parameters: what it returns.
Runner: TypeAlias = "Callable[[FunctionNode, Sequence[Any]], Any]"


@record(eq=False)
class Timetable:
    """Segments, with when each value is used last and which extents it tells."""

    segments: Segments
    extents: Mapping[Expr | Block, tuple[RunDim, ...]]
    last_uses: Mapping[int, tuple[Expr, ...]]


def timetable(segments: Segments) -> Timetable:
    """The times of these segments."""
    last: dict[Expr, int] = {}
    for number, item in enumerate(segments.items):
        last |= dict.fromkeys(_taken(segments, item), number)
    for result in (*segments.results, *segments.kept):
        last.pop(result, None)
    uses: dict[int, list[Expr]] = {}
    for value, number in last.items():
        uses.setdefault(number, []).append(value)
    return Timetable(segments, extents_found(segments.made), {at: tuple(values) for at, values in uses.items()})


def functions_in(segments: Segments) -> Iterator[FunctionNode]:
    """The functions, and the loops whose steps are functions, that segments run."""
    for item in segments.items:
        if isinstance(item, Piece):
            yield item.function
        elif isinstance(item, Choice):
            yield from (item.then.function, item.other.function)
        else:
            assert isinstance(item.call.op, FunctionNode)
            yield item.call.op


def values_of(expr: Expr, values: Mapping[Expr, Any]) -> Any:
    """The value of a result."""
    return expr.value if isinstance(expr, Constant) else values[expr]


def _taken(segments: Segments, item: Piece | Choice | Nested) -> list[Expr]:
    if isinstance(item, Nested):
        return [segments.made.resolved(arg) for arg in item.call.args]
    if isinstance(item, Choice):
        return [segments.made.resolved(item.step.condition), *item.then.takes, *item.other.takes]
    return [*item.takes]


def run_segments(table: Timetable, arrays: Sequence[Any], runner: Runner) -> dict[Expr, Any]:
    """The values of the results, and of all else that is left. Raises KernelRunError for an extent that cannot be."""
    function = table.segments.made.function
    given, binding = bind(function, arrays)
    run = _Run(table, runner, dict(binding))
    for param, value in zip(function.params, given, strict=True):
        run.put(param, value)
    for source in table.extents:
        if isinstance(source, Constant):
            run.put(source, source.value)
    for number, item in enumerate(table.segments.items):
        run.item(item)
        for value in table.last_uses.get(number, ()):
            run.values.pop(value, None)
    return run.values


class _Run:
    def __init__(self, table: Timetable, runner: Runner, binding: dict[Dim, int]) -> None:
        self.table = table
        self.runner = runner
        self.binding = binding
        self.values: dict[Expr, Any] = {}

    def put(self, expr: Expr, value: Any) -> None:
        """Notes a value, and the extents that have it."""
        self.values[expr] = value
        self._find(expr)

    def _find(self, place: Expr | Block) -> None:
        for dim in self.table.extents.get(place, ()):
            self._bind(dim)

    def _bind(self, dim: RunDim) -> None:
        self.binding[dim] = int(self._value(dim.source))
        check_extent(dim, self.binding[dim], self.binding, dim.source.span)

    def item(self, item: Piece | Choice | Nested) -> None:
        if isinstance(item, Piece):
            for expr, value in zip(item.gives, self._piece(item), strict=True):
                self.put(expr, value)
        elif isinstance(item, Choice):
            number = 0 if self._value(item.step.condition) else 1
            self._find(self.table.segments.made.branches[item.step][number])
            (value,) = self._piece((item.then, item.other)[number])
            self.put(item.step, value)
        else:
            self.put(item.call, self._call(item.call))

    def _value(self, expr: Expr) -> Any:
        found = self.table.segments.made.resolved(expr)
        return found.value if isinstance(found, Constant) else self.values[found]

    def _piece(self, piece: Piece) -> tuple[Any, ...]:
        values = [self._value(each) for each in piece.takes]
        if piece.told:
            # Extents that a branch inside of this one uses are found here.
            for dim in run_dims(with_limits(piece.told)):
                if dim not in self.binding:
                    self._bind(dim)
            values.append(np.empty((*(evaluate(size, self.binding) for size in piece.told), 0), np.bool_))
        made: tuple[Any, ...] = self.runner(piece.function, values)
        return made

    def _call(self, call: Call) -> Any:
        assert isinstance(call.op, FunctionNode)
        args = [self._value(arg) for arg in call.args]
        if not isinstance(call.op, LoopFunction):
            return self.runner(call.op, args)
        return looped(call.op, args, self.runner)


def looped(loop: LoopFunction, args: Sequence[Any], runner: Runner) -> tuple[Any, ...]:
    """What a loop comes to."""
    _, binding = bind(loop, args)
    steps = stepping(loop, args, binding)
    try:
        given = next(steps)
        while True:
            given = steps.send(runner(loop, given))
    except StopIteration as end:
        found: tuple[npt.NDArray[Any], ...] = end.value
        return found
