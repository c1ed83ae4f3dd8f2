"""Makes a function's runtime, which carries out its nodes one after the other, on memory that it learns to need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy.typing as npt

from tirlite.diag import CallValueError, Message, public
from tirlite.diag.message import demand_kind
from tirlite.graph.arguments import bind
from tirlite.graph.demand import demand_known_extents
from tirlite.graph.expr import Call, FunctionNode
from tirlite.graph.op import Op
from tirlite.graph.out_variants import NUMPY, Library, OutVariants
from tirlite.graph.static_runtime.blocks import BlockRunner, Setup, TensorOperator, runners
from tirlite.graph.static_runtime.nodes import Kind, graph_of
from tirlite.graph.static_runtime.planner import MemoryPlanner, roots_of
from tirlite.graph.static_runtime.storage import Array, Arrays, Frame, arrays_of, loaded
from tirlite.ir import run


class OutputsInUse(Message):
    """A static runtime that manages its results is run again before they were released.

    Example: `runtime(x)`, three times in a row, of a runtime made with `manage_outputs=True`.
    """

    raises = CallValueError
    title = "the results of the last run of `{function}` are not released"
    help = "call `release_outputs()` when you are done with them, before the next run"

    function: str


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """How a static runtime runs.

    With `out_variants`, operators write where they are told, save those named in `plain`; with `copy_views` too, those
    that only change the shape copy, so that their results are managed. With `reuse`, values that are not needed at the
    same time share memory. With `manage_outputs`, results lie in a buffer of their own. `debug` checks each operator.
    """

    out_variants: bool = True
    plain: Collection[str] = ()
    copy_views: bool = True
    reuse: bool = True
    manage_outputs: bool = False
    debug: bool = False

    def kind_of(self, call: Call) -> Kind:
        """What the node of an operator does about memory."""
        assert isinstance(call.op, Op)
        if call.op.is_view:
            return Kind.COPY if self.out_variants and self.copy_views else Kind.VIEW
        return Kind.OUT if self.out_variants and call.op.name not in self.plain else Kind.PLAIN


@dataclass(frozen=True, slots=True)
class Figures:
    """What a planner cares for: numbers of values, and bytes.

    `unmanaged` counts those with memory of their own that are not results, `scalars` those of them without axes,
    `borrowed` those that belong to another value; `owned` counts results that were borrowed. `repaired` counts
    storages that were found changed at the end of a run.
    """

    managed: int
    reused: int
    managed_bytes: int
    managed_outputs: int
    output_buffer_bytes: int
    unmanaged: int
    scalars: int
    borrowed: int
    owned: int
    repaired: int

    @classmethod
    def of(cls, planner: MemoryPlanner) -> Figures:
        ranges = planner.ranges
        return cls(
            managed=planner.managed,
            reused=planner.reused,
            managed_bytes=planner.managed_bytes,
            managed_outputs=len(ranges.outputs),
            output_buffer_bytes=planner.output_buffer_bytes,
            unmanaged=len(ranges.unmanaged) + len(ranges.borrowed) + len(ranges.scalars),
            scalars=len(ranges.scalars),
            borrowed=len(ranges.borrowed),
            owned=len(ranges.owned),
            repaired=planner.repaired,
        )


class StaticRuntime:
    """A function that is run node by node. Call it with an array for each parameter; not from two threads at a time.

    The first run takes ordinary memory for each value and notes the sizes. From the second run on there is one buffer
    in each run for all managed values, which the planner divides; a run that needs more makes the next plan larger.
    Results lie in memory of their own, which the caller may keep; with `manage_outputs`, from the second run on, in one
    buffer, which the caller has to release.
    """

    def __init__(
        self,
        function: FunctionNode,
        options: RuntimeOptions | None = None,
        *,
        library: Library = NUMPY,
        operators: Mapping[str, TensorOperator] | None = None,
    ) -> None:
        """`library` has the out-variants; `operators` are some of your own, by the operator's name, on tensors.

        Raises GraphError for a variable without a value.
        """
        if options is not None:
            demand_kind("StaticRuntime", options, RuntimeOptions)
        demand_kind("StaticRuntime", library, Library)
        demand_known_extents(function, "StaticRuntime")
        self.function = function
        self.options = options or RuntimeOptions()
        self.graph = graph_of(function, self.options.kind_of)
        variants = OutVariants(library)
        roots = roots_of(self.graph)
        setup = Setup(roots, variants, dict(operators or {}), self.options.reuse, self.options.debug)
        self._main = run(BlockRunner.made(self.graph.body, setup, manage_outputs=self.options.manage_outputs))
        self._constants = {register: loaded(each.value, each.type) for register, each in self.graph.constants}

    @public
    def __call__(self, *arrays: npt.ArrayLike) -> Arrays:
        """The result: an array, or a tuple. Raises CallError for arguments that do not fit, or unreleased results."""
        if self.planner.output_buffer_bytes:
            raise OutputsInUse(self.function.name).error()
        values, binding = bind(self.function, arrays)
        frame = Frame(dict(self._constants))
        for register, value in zip(self.graph.params, values, strict=True):
            frame.held[register] = loaded(value, register.type)
        try:
            return arrays_of(run(self._main.run(frame, binding)))
        except BaseException:
            # Nobody has results to release.
            self.planner.release_outputs()
            raise

    @property
    def planner(self) -> MemoryPlanner:
        """The planner of the function's own values; those of branches have planners of their own."""
        return self._main.planner

    @property
    def planners(self) -> tuple[MemoryPlanner, ...]:
        """The planners of all node lists: the function's own one, then those of branches, in order."""
        return tuple(each.planner for each in runners(self._main))

    @property
    def figures(self) -> Figures:
        """The figures of the function's own values."""
        return Figures.of(self.planner)

    def release_outputs(self) -> None:
        """Gives back the buffer of managed results: whoever keeps them must not look at them any more."""
        self.planner.release_outputs()

    def is_managed_output(self, array: Array) -> bool:
        """Whether an array lies in the buffer of managed results."""
        return self.planner.is_managed_output(array)

    def is_in_buffer(self, address: int) -> bool:
        """Whether an address lies in a buffer of the current run; there is none between runs."""
        return any(planner.is_in_buffer(address) for planner in self.planners)
