"""Splits a function at unbounded run-time extents: tensors with these are planned once they are found.

A tensor with an upper bound over the dims of a call, and over extents that earlier segments found, is computed in
native code; others belong to a later segment, in which the extents are ordinary dims. A branch, a loop or a function
that finds such extents inside is a step of its own between segments. `SegmentedGraph` runs them in order, each with its
own storage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.diag import GraphMessage, TirliteError, boundary
from tirlite.graph.aot.compiled_graph import (
    FOUND,
    Argument,
    BadGraphOut,
    CompiledGraph,
    Out,
    Result,
    in_order,
)
from tirlite.graph.arguments import ArgumentBinder
from tirlite.graph.closing import closed_part
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, Var
from tirlite.graph.loop import LoopFunction, stepping
from tirlite.graph.op import Op
from tirlite.graph.program import Block, Program, extents_found, program
from tirlite.graph.run_dims import RunDim, check_extent, greatest, run_dims, with_limits
from tirlite.graph.types import TensorType, leaves_of, tensors
from tirlite.groups import by_key
from tirlite.ir import Steps, bool_, run
from tirlite.record import record
from tirlite.sizes import Dim, Size, evaluate, substitute

if TYPE_CHECKING:
    from tirlite.driver import Kernel
    from tirlite.graph.fuse.groups import Grouping
    from tirlite.plan import Plan


@record(eq=False)
class Segment:
    """A part of a function as a separate function, whose result is a tuple of values.

    told: the shape of a further, empty operand that passes the dims which no other operand's shape has.
    found: the run-time extents among these, and their limits.
    """

    function: FunctionNode
    takes: tuple[Expr, ...]
    told: tuple[Size, ...]
    found: tuple[RunDim, ...]
    gives: tuple[Expr, ...]


@record(eq=False)
class HostedIf:
    """An If whose branches are functions of their own."""

    step: If
    then: Segment
    other: Segment


@record(eq=False)
class Nested:
    """A call of a function, or of a loop, that is split itself."""

    call: Call


Item: TypeAlias = "Segment | HostedIf | Nested"


@record(eq=False)
class Segments:
    """A function in parts, in the order in which they run."""

    made: Program
    items: tuple[Item, ...]
    results: tuple[Expr, ...]
    kept: tuple[Expr, ...]


def segments(made: Program, keep: Collection[Expr] = ()) -> Segments | None:
    """The function of a program in parts; None if all of it can be planned before a run.

    Tensors to keep are results of some part, like the results of the function.
    """
    levels = _Levels(made)
    if not levels.hosted and not any(levels.of.values()):
        return None
    results = tuple(_leaves(made, made.function.body))
    items: list[Item] = []
    users = _users(levels, (*results, *keep))
    for level, steps in enumerate(levels.native()):
        inside = [*steps, *(each for step in steps for each in levels.inner(step))]
        gives = tuple(step for step in steps if users.get(step, level) != level)
        if gives:
            items.append(_piece(f"{made.function.name}_{level}", made, gives, inside))
        items += [_hosted(levels, step) for step in levels.hosted if levels.of[step] == level]
    return Segments(made, tuple(items), results, tuple(step for step in levels.steps if step in keep))


def _is_in_segments(step: Call | If) -> bool:
    """Whether a step has unbounded extents, or runs a function that is split itself."""
    if isinstance(step, If) or isinstance(step.op, Op):
        return bool(step.tells)
    inner = step.op.step if isinstance(step.op, LoopFunction) else step.op
    return bool(step.tells) or segments(program(inner)) is not None


def _leaves(made: Program, expr: Expr) -> Iterator[Expr]:
    """The tensors of a value: itself, or the leaves of a tuple."""
    value = made.resolved(expr)
    if isinstance(value, Tuple):
        for each in value.fields:
            yield from _leaves(made, each)
    else:
        yield value


def _users(levels: _Levels, results: Iterable[Expr]) -> dict[Expr, int]:
    """For each value that is used outside of its segment a number other than that of its level."""
    found: dict[Expr, int] = dict.fromkeys(results, -1)
    for step in levels.steps:
        for operand in levels.operands(step):
            if step in levels.hosted or levels.of.get(operand) != levels.of[step]:
                found[operand] = -1
    return found


class _Levels:
    """The segment of each step: the first in which all its operands are known. `hosted` steps run after theirs."""

    def __init__(self, made: Program) -> None:
        self.made = made
        self.of: dict[Expr, int] = {}
        self.hosted: dict[Expr, None] = {}
        self.steps = [step for step in made.body.steps if not isinstance(step, Constant | Let)]
        self._known: dict[RunDim, Size] = {}
        for step in self.steps:
            self._put(step)

    def native(self) -> list[list[Expr]]:
        """The steps of each segment that are native code, in order."""
        found: list[list[Expr]] = [[] for _ in range(1 + max(self.of.values(), default=0))]
        for step in self.steps:
            if step not in self.hosted:
                found[self.of[step]].append(step)
        return found

    def inner(self, step: Expr) -> list[Expr]:
        """The steps in the branches of a step."""
        blocks = self.made.branches[step] if isinstance(step, If) else ()
        return [each for block in blocks for each in self.made.within(block)]

    def operands(self, step: Expr) -> Iterator[Expr]:
        """The operands of a step, and of the steps in its branches, from outside."""
        inside = self.inner(step)
        own = {step, *inside}
        for each in (step, *inside):
            for operand in each.operands:
                value = self.made.resolved(operand)
                if value not in own:
                    yield value

    def _put(self, step: Expr) -> None:
        parts = [step, *self.inner(step)]
        level = max((self._after(each) for each in self.operands(step)), default=0)
        if any(isinstance(part, Call | If) and _is_in_segments(part) for part in parts):
            self.hosted[step] = None
        if self._is_open(parts, level):
            sources = [self.made.resolved(dim.source) for part in parts for dim in run_dims(part.sizes)]
            level = max([level, *(self._after(each) + 1 for each in sources if self._is_before(each))])
            if self._is_open(parts, level):
                self.hosted[step] = None
        self.of[step] = level

    def _is_before(self, source: Expr) -> bool:
        """Whether a value is computed before a step, and not in one of its branches."""
        return source in self.of or isinstance(source, Var | Constant)

    def _after(self, value: Expr) -> int:
        """The first segment in which a value can be used."""
        return self.of.get(value, 0) + (value in self.hosted)

    def _is_open(self, parts: Sequence[Expr], level: int) -> bool:
        """Whether the size of some value has no known bound when a segment begins."""
        extents = [extent for part in parts for of in tensors(part.type) for extent in of.shape]
        found = run_dims(extents)
        if not found:
            return False
        known = {}
        for dim in found:
            source = self.made.resolved(dim.source)
            if self._is_before(source) and self._after(source) < level:
                known[dim] = self._known.setdefault(dim, Dim(dim.name, 0, dim.max) + 0)
        return any(greatest(substitute(extent, known)) is None for extent in extents)


def _hosted(levels: _Levels, step: Expr) -> Item:
    if isinstance(step, Call):
        return Nested(step)
    assert isinstance(step, If)
    then, other = (_branch(levels, step, number) for number in range(2))
    return HostedIf(step, then, other)


def _branch(levels: _Levels, step: If, number: int) -> Segment:
    block: Block = levels.made.branches[step][number]
    return _piece(f"{levels.made.function.name}_branch", levels.made, (block.result,), [*levels.made.within(block)])


def _piece(name: str, made: Program, gives: tuple[Expr, ...], inside: Sequence[Expr]) -> Segment:
    part = closed_part(gives, frozenset(inside), made.bound)
    params, extents = part.params, part.untold()
    told = tuple(map(part.outer, extents))
    if extents:
        params += (Var("told", TensorType((*extents, 0), bool_)),)
    function = FunctionNode(name, params, part.body, span=made.function.span)
    return Segment(function, part.outside, told, run_dims(with_limits(told)), gives)


# A function that builds the graph again, and its arguments, for pickling.
Again: TypeAlias = "tuple[Callable[..., CompiledGraph], tuple[object, ...]]"


class InSegments(GraphMessage):
    """A compiled graph was asked for what each of its parts has for itself: a plan, IR, a C function.

    Example: `net.plan`, where the number of steps of a `Loop` with results is computed from data.
    Fix: Look at the parts, `net.parts`, or at what a call plans, `net.plans(...)`.
    """

    code = "graph-in-segments"
    title = "`{function}` is compiled in parts ({count}), as some extents have no bound before a run"
    help = "each of `net.parts` has its own plan and kernel; `net.plans(...)` returns the plans of a call"


class SegmentedGraph(CompiledGraph):
    """A graph as native code in parts, for run-time extents without a bound.

    It is called like any compiled graph. Tensors with such an extent are planned once the extent is known: each of
    `parts`, in the order in which they run, has its own kernel and plan; those of loops may run repeatedly.
    """

    def __init__(self, segments: Segments, compiled: Callable[[FunctionNode], CompiledGraph], again: Again) -> None:
        """`compiled` compiles a function; `again` rebuilds this object from its function, for pickling."""
        self.function = segments.made.function
        self._table = timetable(segments)
        self._kept, self._extents, self._ordered = segments.kept, (), lambda: None
        self._again = again
        self._graphs = {
            each: compiled(each.step if isinstance(each, LoopFunction) else each) for each in functions_in(segments)
        }

    @property
    def parts(self) -> tuple[CompiledGraph, ...]:
        """The parts that are native code, each a compiled graph."""
        return tuple(part for graph in self._graphs.values() for part in graph.parts)

    def __call__(self, /, *arrays: Argument, out: Out = None, **named: Argument) -> Result:
        if out is not None:
            with boundary:
                raise BadGraphOut(self.function.name, FOUND).error()
        return self._result(self._run(arrays, named, lambda graph, values: graph(*values)))

    def interpret(self, *arrays: Argument) -> Result:
        """As a call, but each part is run by the reference interpreter on its `ir`."""
        return self._result(self._run(arrays, {}, lambda graph, values: graph.interpret(*values)))

    def trace(self, *arrays: Argument) -> Mapping[Expr, Result]:
        """As a call: the values of what is kept, and of the function's body."""
        values = self._run(arrays, {}, lambda graph, values: graph(*values))
        return {**{each: values[each] for each in self._kept}, self.function.body: self._result(values)}

    def plans(self, /, *arrays: Argument, **named: Argument) -> tuple[Plan, ...]:
        """The plans of all parts that a call with these arrays runs, in order, for the sizes found during the run."""
        found: list[Plan] = []

        def run(graph: CompiledGraph, values: Sequence[Any]) -> Result:
            found.extend(graph.plans(*values))
            return graph(*values)

        self._run(arrays, named, run)
        return tuple(found)

    @property
    def kernel(self) -> Kernel:  # type: ignore[override]
        """There is none for the whole. Raises GraphError."""
        raise self._in_parts()

    @property
    def groups(self) -> Grouping:
        """There are none for the whole. Raises GraphError."""
        raise self._in_parts()

    def _in_parts(self) -> TirliteError:
        return InSegments(self.function.name, len(self.parts), span=self.function.span).error()

    def _run(
        self,
        arrays: Sequence[Argument],
        named: Mapping[str, Argument],
        run: Callable[[CompiledGraph, Sequence[Any]], Result],
    ) -> dict[Expr, Any]:
        with boundary:
            given = in_order(self.function, arrays, named)
            return run_segments(self._table, given, lambda function, values: run(self._graphs[function], values))

    def _result(self, values: Mapping[Expr, Any]) -> Result:
        return self._structured(leaves_of(tuple(values_of(each, values) for each in self._table.segments.results)))

    def __reduce__(self) -> tuple[object, ...]:
        return self._again

    def __repr__(self) -> str:
        return f"<SegmentedGraph {self.function.name} of {len(self.parts)} parts>"


# Runs a function, or one step of a loop, on values for its parameters, and returns its result.
Runner: TypeAlias = "Callable[[FunctionNode, Sequence[Any]], Any]"


@record(eq=False)
class Timetable:
    """Segments, with the last use of each value and the extents that it determines.

    binders: those of the function itself, and of the loops that are run step by step.
    """

    segments: Segments
    binders: Mapping[FunctionNode, ArgumentBinder]
    extents: Mapping[Expr | Block, tuple[RunDim, ...]]
    last_uses: Mapping[int, tuple[Expr, ...]]


def timetable(segments: Segments) -> Timetable:
    """The timetable of these segments."""
    last: dict[Expr, int] = {}
    for number, item in enumerate(segments.items):
        last |= dict.fromkeys(_taken(segments, item), number)
    for result in (*segments.results, *segments.kept):
        last.pop(result, None)
    uses = by_key((number, value) for value, number in last.items())
    last_uses = {at: tuple(values) for at, values in uses.items()}
    loops = (function for function in functions_in(segments) if isinstance(function, LoopFunction))
    binders = {function: ArgumentBinder(function) for function in (segments.made.function, *loops)}
    return Timetable(segments, binders, extents_found(segments.made), last_uses)


def functions_in(segments: Segments) -> Iterator[FunctionNode]:
    """The functions, and the loops whose steps are functions, that segments run."""
    for item in segments.items:
        if isinstance(item, Segment):
            yield item.function
        elif isinstance(item, HostedIf):
            yield from (item.then.function, item.other.function)
        else:
            assert isinstance(item.call.op, FunctionNode)
            yield item.call.op


def values_of(expr: Expr, values: Mapping[Expr, Any]) -> Any:
    """The value of a result."""
    return expr.value if isinstance(expr, Constant) else values[expr]


def _taken(segments: Segments, item: Segment | HostedIf | Nested) -> list[Expr]:
    if isinstance(item, Nested):
        return [segments.made.resolved(arg) for arg in item.call.args]
    if isinstance(item, HostedIf):
        return [segments.made.resolved(item.step.condition), *item.then.takes, *item.other.takes]
    return [*item.takes]


def run_segments(table: Timetable, arrays: Sequence[Any], runner: Runner) -> dict[Expr, Any]:
    """The values of the results, and of others not freed. Raises KernelRunError for an extent out of its limits."""
    function = table.segments.made.function
    given, binding = table.binders[function].bind(arrays)
    run = _Run(table, runner, binding)
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
        """Records a value, and the extents that it determines."""
        self.values[expr] = value
        if expr in self.table.extents:
            self._find(expr)

    def _find(self, place: Expr | Block) -> None:
        for dim in self.table.extents.get(place, ()):
            self._bind(dim)

    def _bind(self, dim: RunDim) -> None:
        self.binding[dim] = int(self._value(dim.source))
        check_extent(dim, self.binding[dim], self.binding, dim.source.span)

    def item(self, item: Segment | HostedIf | Nested) -> None:
        if isinstance(item, Segment):
            for expr, value in zip(item.gives, self._piece(item), strict=True):
                self.put(expr, value)
        elif isinstance(item, HostedIf):
            number = 0 if self._value(item.step.condition) else 1
            self._find(self.table.segments.made.branches[item.step][number])
            (value,) = self._piece((item.then, item.other)[number])
            self.put(item.step, value)
        else:
            self.put(item.call, self._call(item.call))

    def _value(self, expr: Expr) -> Any:
        if expr in self.values:
            return self.values[expr]
        found = self.table.segments.made.resolved(expr)
        return found.value if isinstance(found, Constant) else self.values[found]

    def _piece(self, piece: Segment) -> tuple[Any, ...]:
        values = [self._value(each) for each in piece.takes]
        if piece.told:
            # These are extents that a branch inside of this one uses.
            for dim in piece.found:
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
        return run(stepping(call.op, args, self.table.binders[call.op].bind(args)[1], partial(self._step, call.op)))

    def _step(self, loop: LoopFunction, given: list[Any]) -> Steps[tuple[Any, ...]]:
        yield from ()
        made: tuple[Any, ...] = self.runner(loop, given)
        return made
