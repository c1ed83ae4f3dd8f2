"""Compiles a function of operators to native code, called on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Literal, Unpack

from tirlite.diag import CallValueError, Message, boundary
from tirlite.driver import Kernel
from tirlite.graph.aot.compiled_graph import CompiledGraph
from tirlite.graph.demand import demand_function
from tirlite.graph.expr import Expr, FunctionNode
from tirlite.graph.known.lowered import LoweredFront, keep_lowered, known_lowered, lowered_key
from tirlite.record import cached_property
from tirlite.solver import options as default_options

if TYPE_CHECKING:
    from tirlite.graph.aot.lower import Lowered
    from tirlite.graph.order.memory_order import Ordered
    from tirlite.rewrite.options import Choices, Options


class UnknownOrder(Message):
    """A graph is to be compiled with its operators in an order that does not exist.

    Example: `tl.graph.compile(f, order="size")`.
    Fix: Write `order="memory"`, or `order="program"`.
    """

    code = "unknown-order"
    raises = CallValueError
    title = "there is no order {order}"
    help = '`order="memory"` takes the least memory, `order="program"` is that of the graph'

    order: str


def compile(  # noqa: A001
    function: FunctionNode,
    *,
    order: Literal["program", "memory"] = "program",
    keep: Iterable[Expr] | Literal["all"] = (),
    **choices: Unpack[Choices],
) -> CompiledGraph:
    """The graph as native code.

    `order="memory"` computes the operators in the order that takes the least memory, instead of that of the program:
    storage is planned for both, and that of the program stays where its plan is not larger.
    `strategy="graph"` plans main's storage as GraphPlanMemory does; the other options are those of `tl.compile`.
    `keep` names tensors between operators that `trace` gives besides the result, or `"all"` that can be kept.
    Raises GraphError for what has no kernel, or cannot be kept.
    """
    with boundary:
        if choices.get("strategy") == "graph":
            from tirlite.graph.aot.by_tokens import by_tokens

            choices["strategy"] = by_tokens
        options = default_options(choices)
        by_memory = _is_by_memory(order)
        start = perf_counter()
        demand_function(function)
        is_plain = keep != "all" and not (keep := tuple(keep))
        key = lowered_key(function, options, order) if is_plain else None
        known = known_lowered(key, function) if key is not None else None
        if known is None:
            return _lowered(function, choices, order, keep, key)
        front = LoweredFront(known, lambda: _Front(function, options, by_memory=by_memory).lowered().func)
        kernel = Kernel(front, options, seconds=perf_counter() - start, fixed=known.constants)
        ordered = lambda: _Front(function, options, by_memory=by_memory).ordered  # noqa: E731
        return CompiledGraph.of(function, kernel, known.extents, ordered=ordered)


def _lowered(
    function: FunctionNode,
    choices: Choices,
    order: Literal["program", "memory"],
    keep: Iterable[Expr] | Literal["all"],
    key: bytes | None,
) -> CompiledGraph:
    from tirlite.graph.aot.keeping import check_kept, tensors_to_keep
    from tirlite.graph.aot.segmented_graph import SegmentedGraph
    from tirlite.graph.aot.segments import segments

    start = perf_counter()
    options = default_options(choices)
    front = _Front(function, options, by_memory=_is_by_memory(order))
    front.keep = kept = check_kept(front.program, tensors_to_keep(front.program) if keep == "all" else keep)
    if (parts := segments(front.program, kept)) is not None:
        again = (_compiled_again, (function, order, parts.kept, choices))
        return SegmentedGraph(parts, lambda part: compile(part, order=order, **choices), again)
    lowered = front.lowered()
    made = CompiledGraph(function, lowered, options, front.ordered, perf_counter() - start)
    if key is not None:
        keep_lowered(key, function, lowered, made.kernel.front)
    return made


def _compiled_again(
    function: FunctionNode, order: Literal["program", "memory"], kept: Sequence[Expr], choices: Choices
) -> CompiledGraph:
    return compile(function, order=order, keep=kept, **choices)


class _Front:
    """The way from a function to what it is lowered to."""

    def __init__(self, function: FunctionNode, options: Options, keep: Iterable[Expr] = (), *, by_memory: bool) -> None:
        from tirlite.graph.program import program

        self.program = program(function)
        self.keep = keep
        self._options = options
        self._by_memory = by_memory

    @property
    def ordered(self) -> Ordered | None:
        """The order that takes the least memory, where that is asked for."""
        return self._chosen[1]

    def lowered(self) -> Lowered:
        """What the function is lowered to, its operators in the order that was chosen."""
        return self._chosen[0]

    @cached_property
    def _chosen(self) -> tuple[Lowered, Ordered | None]:
        from tirlite.graph.aot.lower import lower_program

        plain = lower_program(self.program, self.keep)
        if not self._by_memory:
            return plain, None
        from tirlite.graph.aot.smaller_plan import is_smaller
        from tirlite.graph.order.memory_order import memory_order
        from tirlite.graph.sample_arguments import dims_in

        ordered = memory_order(self.program)
        if ordered.peak < ordered.program_peak:
            made = lower_program(ordered.program, self.keep)
            if is_smaller(made, plain, dims_in(self.program.function), self._options):
                return made, ordered
        is_proved = ordered.proved and ordered.peak == ordered.program_peak
        return plain, replace(ordered, program=self.program, peak=ordered.program_peak, proved=is_proved)


def _is_by_memory(order: str) -> bool:
    if order not in ("program", "memory"):
        raise UnknownOrder(repr(order)).error()
    return order == "memory"
