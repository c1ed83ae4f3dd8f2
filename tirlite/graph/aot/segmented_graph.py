"""A graph as native code in parts: each is planned over the extents that were found before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.diag import GraphError, Message, TirliteError, boundary
from tirlite.graph.aot.call_arguments import BadGraphOut, in_order
from tirlite.graph.aot.compiled_graph import FOUND, Argument, CompiledGraph, Out, Result, leaves_of
from tirlite.graph.aot.segmented import functions_in, run_segments, timetable, values_of
from tirlite.graph.aot.segments import Segments
from tirlite.graph.expr import Expr, FunctionNode
from tirlite.graph.loop import LoopFunction

if TYPE_CHECKING:
    from tirlite.driver import Kernel
    from tirlite.graph.fuse.groups import Grouping
    from tirlite.plan import Plan

# A function that makes a graph anew, and what it takes.
Again: TypeAlias = "tuple[Callable[..., CompiledGraph], tuple[object, ...]]"


class InSegments(Message):
    """Something was asked of a compiled graph that its parts have, each its own: a plan, IR, a C function.

    Example: `net.plan`, where the number of steps of a `Loop` with results is computed from data.
    Fix: Look at the parts, `net.parts`, or at what a call plans, `net.plans(...)`.
    """

    code = "graph-in-segments"
    raises = GraphError
    title = "`{function}` is compiled in parts ({count}), as some extents have no bound before a run"
    help = "each of `net.parts` has its own plan and kernel; `net.plans(...)` returns the plans of a call"

    function: str
    count: int


class SegmentedGraph(CompiledGraph):
    """A graph as native code in parts, for extents that a run finds and that nothing bounds.

    Called as any other. What has such an extent is planned once the extent is found: each of `parts` has a kernel and
    a plan of its own, in the order in which they run; those of branches and loops may run any number of times.
    """

    def __init__(self, segments: Segments, compiled: Callable[[FunctionNode], CompiledGraph], again: Again) -> None:
        """`compiled` makes native code of a function; `again` makes this of its function, for what is pickled."""
        self.function = segments.made.function
        self._table = timetable(segments)
        self._kept, self._extents, self._ordered = segments.kept, (), lambda: None
        self._again = again
        self._graphs = {
            each: compiled(each.step if isinstance(each, LoopFunction) else each) for each in functions_in(segments)
        }

    @property
    def parts(self) -> tuple[CompiledGraph, ...]:
        """The parts that are native code, each a graph of its own."""
        return tuple(part for graph in self._graphs.values() for part in graph.parts)

    def __call__(self, *arrays: Argument, out: Out = None, **named: Argument) -> Result:
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

    def plans(self, *arrays: Argument) -> tuple[Plan, ...]:
        """The plans of all parts that a call with these arrays runs, in order, at the sizes that it finds."""
        found: list[Plan] = []

        def run(graph: CompiledGraph, values: Sequence[Any]) -> Result:
            found.extend(graph.plans(*values))
            return graph(*values)

        self._run(arrays, {}, run)
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
        leaves = [value for each in self._table.segments.results for value in leaves_of((values_of(each, values),))]
        return self._structured(leaves)

    def __reduce__(self) -> tuple[object, ...]:
        return self._again

    def __repr__(self) -> str:
        return f"<SegmentedGraph {self.function.name} of {len(self.parts)} parts>"
