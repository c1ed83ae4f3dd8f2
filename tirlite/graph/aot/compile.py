"""Compiles a function of operators to native code, called on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Literal, Unpack

from tirlite.collection import collection_paused
from tirlite.diag import CallValueError, CapacityError, Message, boundary
from tirlite.driver import Kernel
from tirlite.graph.aot.compiled_graph import CompiledGraph
from tirlite.graph.demand import demand_function
from tirlite.graph.expr import Expr, FunctionNode
from tirlite.graph.known.lowered import LoweredFront, keep_lowered, known_lowered, lowered_key
from tirlite.plan.order import samples
from tirlite.plan.strategy import strategy_called
from tirlite.record import cached_property, record, replace
from tirlite.rewrite.options import OptionType
from tirlite.show import shown
from tirlite.sizes import Size, evaluate, is_at_most
from tirlite.solver import options as default_options

if TYPE_CHECKING:
    from tirlite.graph.aot.lower import Lowered
    from tirlite.graph.order.memory_order import Ordered
    from tirlite.graph.program import Program
    from tirlite.rewrite.options import Choices, Options
    from tirlite.sizes import Dim


class UnknownOrder(Message):
    """A graph is to be compiled with its operators in an order that does not exist.

    Example: `tl.graph.compile(f, order="size")`.
    """

    raises = CallValueError
    title = "there is no order {order}"
    help = '`order="memory"` takes the least memory, `order="program"` is that of the graph'


def compile(  # noqa: A001
    function: FunctionNode,
    *,
    order: Literal["program", "memory"] = "program",
    keep: Iterable[Expr] | Literal["all"] = (),
    fuse: bool = True,
    winograd: bool = True,
    integers: bool = True,
    threads: int | None = None,
    **choices: Unpack[Choices],
) -> CompiledGraph:
    """The graph as native code.

    `order="memory"` computes the operators in the order that takes the least memory, instead of that of the program:
    storage is planned for both, and that of the program stays where its plan is not larger.
    `strategy="graph"` plans main's storage as GraphPlanMemory does; the other options are those of `tl.compile`.
    `keep` names tensors between operators that `trace` gives besides the result, or `"all"` that can be kept.
    With `fuse`, elementwise operators are computed by the function of the operator before them, if nothing else uses
    its result: `groups` tells which. With `winograd`, convolutions of constant weights by windows of 3 x 3 take fewer
    products if that pays, and other terms are rounded. With `integers`, sums of products of dequantized
    tensors are computed in integers, unless tensors are kept: quantized results differ by one step at most.
    `threads` is how many run parallel loops at most, the calling one included; left out, as many as the target has
    workers.
    Raises GraphError for what has no kernel, or cannot be kept, and PlanError for less than one thread.
    """
    with boundary, collection_paused():
        strategy = choices.get("strategy")
        if strategy == "graph":
            from tirlite.graph.memory.plan_memory import by_tokens

            choices["strategy"] = by_tokens
        elif isinstance(strategy, str):
            strategy_called(strategy, "graph")
        if threads is not None:
            choices["target"] = default_options(choices).target.with_workers(threads)
        options = default_options(choices)
        how = _How(_is_by_memory(order), fuse, winograd, integers)
        start = perf_counter()
        demand_function(function)
        keep = _kept(keep)
        key = lowered_key(function, options, repr(how)) if not keep else None
        known = known_lowered(key, function) if key is not None else None
        if known is None:
            return _lowered(function, choices, how, keep, key)
        again = _Front(function, options, how)
        kernel = Kernel(
            LoweredFront(known, lambda: again.lowered().func),
            options,
            seconds=perf_counter() - start,
            fixed=known.constants,
        )
        return CompiledGraph.of(
            function,
            kernel,
            known.extents,
            ordered=lambda: again.ordered,
            grouped=lambda: again.lowered().grouping,
        )


def _kept(given: object) -> tuple[Expr, ...] | Literal["all"]:
    if given == "all":
        return "all"
    if isinstance(given, Iterable):
        kept = tuple(given)
        if all(isinstance(each, Expr) for each in kept):
            return kept
    raise OptionType("keep", "several expressions, or 'all'", shown(given)[:60]).error()


@record
class _How:
    """How a function is lowered: in the order of least memory, fused, by Winograd's convolutions, in integers."""

    by_memory: bool
    fuse: bool
    winograd: bool
    integers: bool


def _lowered(
    function: FunctionNode, choices: Choices, how: _How, keep: tuple[Expr, ...] | Literal["all"], key: bytes | None
) -> CompiledGraph:
    from tirlite.graph.aot.folding import check_kept, tensors_to_keep
    from tirlite.graph.aot.segments import SegmentedGraph, segments

    start = perf_counter()
    options = default_options(choices)
    front = _Front(function, options, how)
    front.keep = kept = check_kept(front.program, tensors_to_keep(front.program) if keep == "all" else keep)
    if (parts := segments(front.program, kept)) is not None:
        again = (_compiled_again, (function, how, parts.kept, choices))
        return SegmentedGraph(parts, lambda part: _compiled_again(part, how, (), choices), again)
    lowered = front.lowered()
    made = CompiledGraph(function, lowered, options, front.ordered, perf_counter() - start)
    if key is not None:
        keep_lowered(key, function, lowered, made.kernel.front)
    return made


def _compiled_again(function: FunctionNode, how: _How, kept: Sequence[Expr], choices: Choices) -> CompiledGraph:
    order: Literal["program", "memory"] = "memory" if how.by_memory else "program"
    return compile(
        function, order=order, keep=kept, fuse=how.fuse, winograd=how.winograd, integers=how.integers, **choices
    )


class _Front:
    """Lowers a function when asked, in the chosen order."""

    def __init__(self, function: FunctionNode, options: Options, how: _How) -> None:
        self._function = function
        self.keep: Iterable[Expr] = ()
        self._options = options
        self._how = how

    @cached_property
    def program(self) -> Program:
        """The function's calls in program order."""
        from tirlite.graph.program import program

        return program(self._function)

    @property
    def ordered(self) -> Ordered | None:
        """The order that takes the least memory, if asked for."""
        return self._chosen[1]

    def lowered(self) -> Lowered:
        """The lowered function, its operators in the chosen order."""
        return self._chosen[0]

    @cached_property
    def _chosen(self) -> tuple[Lowered, Ordered | None]:
        plain = self._lowered(self.program)
        if not self._how.by_memory:
            return plain, None
        from tirlite.graph.order.memory_order import memory_order
        from tirlite.graph.sample_arguments import dims_in

        ordered = memory_order(self.program)
        if ordered.peak < ordered.program_peak:
            made = self._lowered(ordered.program)
            if is_smaller(made, plain, dims_in(self.program.function), self._options):
                return made, ordered
        is_proved = ordered.proved and ordered.peak == ordered.program_peak
        return plain, replace(ordered, program=self.program, peak=ordered.program_peak, proved=is_proved)

    def _lowered(self, made: Program) -> Lowered:
        """The lowered program, with sums in integers unless tensors are kept."""
        from tirlite.graph.aot.integers import in_integers
        from tirlite.graph.aot.laid_out import permitted
        from tirlite.graph.aot.lower import lower_program
        from tirlite.graph.operators.laid_out import DOTS, HALVES, LONG_ROWS, NARROW, PERMUTES, SHORT_ROWS
        from tirlite.ir import f32, i16
        from tirlite.ir.dot import dot_name

        how = self._how
        made = in_integers(made) if how.integers and not self.keep else made
        processor = self._options.target.processor
        is_short = processor.tile[1] * processor.vector_bytes <= max(NARROW) * f32.bytes
        has_halves = is_short and dot_name(i16, i16) in processor.dots and DOTS not in processor.dots
        others = {PERMUTES: processor.permutes, SHORT_ROWS: is_short, LONG_ROWS: not is_short, HALVES: has_halves}
        has = (*processor.dots, *(name for name, holds in others.items() if holds))
        layouts = permitted(winograd=how.winograd, has=has)
        return lower_program(made, self.keep, fuse=how.fuse, layouts=layouts if how.fuse or how.winograd else {})


def _is_by_memory(order: str) -> bool:
    if order not in ("program", "memory"):
        raise UnknownOrder(repr(order)).error()
    return order == "memory"


# Middling values of the dims first, then small ones, then values that differ.
_SAMPLES = 6


def is_smaller(new: Lowered, old: Lowered, dims: Sequence[Dim], options: Options) -> bool:
    """Whether the storage of `new` is proved to be at most that of `old` for all values of the dims, not conversely.

    Trying values would be no proof: plans may change between them. Plans by shape have no size for all values, so a few
    values decide. A plan that does not fit in its memory counts as larger.
    """
    kernels = [Kernel(each.func, options) for each in (new, old)]
    if options.strategy == "per_shape":
        return _is_less([[_total_at(each, at) for each in kernels] for at in samples(dims, _SAMPLES)])
    first, second = map(_total, kernels)
    if first is None or second is None:
        return first is not None
    return is_at_most(first, second) and not is_at_most(second, first)


def _total(kernel: Kernel) -> Size | None:
    try:
        return kernel.plan.total
    except CapacityError:
        return None


def _total_at(kernel: Kernel, binding: Mapping[Dim, int]) -> int | None:
    try:
        return evaluate(kernel.plan_at(**{dim.name: value for dim, value in binding.items()}).total, {})
    except CapacityError:
        return None


def _is_less(pairs: Sequence[Sequence[int | None]]) -> bool:
    """Whether the first is less in some pair, and greater in none; None is greater than any number."""
    whole = [[float("inf") if each is None else each for each in pair] for pair in pairs]
    return all(a <= b for a, b in whole) and any(a < b for a, b in whole)
