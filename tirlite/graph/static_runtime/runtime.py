"""Runs a function node by node, in one memory buffer that is planned from the sizes of earlier runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import CallValueError, GraphMessage, Message, public
from tirlite.diag.error import demand_kind
from tirlite.graph.arguments import bind
from tirlite.graph.demand import demand_known_extents
from tirlite.graph.evaluate import applied, evaluate
from tirlite.graph.expr import Call, FunctionNode, TupleGetItem
from tirlite.graph.extents import values as shape_at
from tirlite.graph.op import Attrs, Op
from tirlite.graph.out_variants import NUMPY, Library, OutVariant, OutVariants
from tirlite.graph.static_runtime.nodes import (
    Arrays,
    Borrowed,
    Frame,
    Kind,
    NodeList,
    Register,
    RunNode,
    Tensor,
    Value,
    arrays_of,
    graph_of,
    loaded,
    span,
)
from tirlite.graph.static_runtime.planner import MemoryPlanner, Roots, ranges_of, roots_of
from tirlite.graph.types import Array, TensorType
from tirlite.ir import Steps, in_turn, run
from tirlite.sizes import Dim

# Reads the tensors in the first sequence and writes those in the second, which already have their shapes.
TensorOperator: TypeAlias = Callable[[Sequence[Tensor], Sequence[Tensor]], None]
Binding: TypeAlias = Mapping[Dim, int]


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings that all node lists of a runtime share."""

    roots: Roots
    variants: OutVariants
    operators: Mapping[str, TensorOperator]
    reuse: bool
    debug: bool


@dataclass(slots=True)
class _Prepared:
    """The out-variants and output shapes of nodes for one binding of the dims."""

    binding: tuple[int, ...] = ()
    variants: dict[RunNode, tuple[OutVariant, tuple[tuple[int, ...], ...]]] = field(default_factory=dict)


class BlockRunner:
    """Runs one node list. Each node list, such as a branch of an If, has its own runner and memory planner."""

    def __init__(self, block: NodeList, setup: Setup, *, manage_outputs: bool = False) -> None:
        self.block = block
        self.setup = setup
        self.planner = MemoryPlanner(ranges_of(block, setup.roots, manage_outputs=manage_outputs), reuse=setup.reuse)
        self.inner: dict[RunNode, tuple[BlockRunner, ...]] = {}
        self._prepared = _Prepared()

    @classmethod
    def made(cls, block: NodeList, setup: Setup, *, manage_outputs: bool = False) -> Steps[BlockRunner]:
        """Creates the runner of a node list and the runners of its branches."""
        runner = cls(block, setup, manage_outputs=manage_outputs)
        for node in block.nodes:
            if node.blocks:
                runner.inner[node] = tuple((yield in_turn(cls.made(each, setup) for each in node.blocks)))
        return runner

    def run(self, frame: Frame, binding: Binding) -> Steps[Value]:
        """Returns the result of one run. The run's memory is freed at its end, also after an error."""
        key = tuple(binding.values())
        if self._prepared.binding != key:
            self._prepared = _Prepared(key)
        self.planner.allocate()
        try:
            for node in self.block.nodes:
                if node.kind is Kind.IF:
                    condition = frame.tensor(node.inputs[0]).array
                    chosen = self.inner[node][0 if condition else 1]
                    frame.held[node.outputs[0]] = yield chosen.run(frame, binding)
                else:
                    self.node(node, frame, binding)
                if self.setup.debug and isinstance(node.step, Call):
                    check_storages(node.step.op.name, self.planner)
            return frame.result(self.block.result)
        finally:
            # For a borrowed value this drops only the reference; its owner is dropped with the owner's register.
            for node in self.block.nodes:
                for register in node.outputs:
                    frame.held.pop(register, None)
            self.planner.deallocate()

    def node(self, node: RunNode, frame: Frame, binding: Binding) -> None:
        if node.kind is Kind.OUT or node.kind is Kind.COPY:
            self.written(node, frame, binding)
        elif node.kind is Kind.TUPLE:
            frame.held[node.outputs[0]] = tuple(map(frame.value, node.inputs))
        elif node.kind is Kind.ITEM:
            assert isinstance(node.step, TupleGetItem)
            frame.held[node.outputs[0]] = Borrowed(node.inputs[0], node.step.index)
        elif node.kind is Kind.VIEW:
            source, (output,) = frame.tensor(node.inputs[0]), node.outputs
            seen = source.array.reshape(_shape(output, binding))
            frame.held[output] = Tensor(source.dtype, source.storage, seen)
        else:
            self.plain(node, frame, binding)

    def plain(self, node: RunNode, frame: Frame, binding: Binding) -> None:
        """Runs an operator that allocates its results, or a function."""
        assert isinstance(node.step, Call)
        args = [arrays_of(frame.value(register)) for register in node.inputs]
        if isinstance(node.step.op, Op):
            made = applied(node.step, args, binding)
        else:
            made = evaluate(node.step.op, *args)
        results = made if len(node.outputs) > 1 else (made,)
        for register, result in zip(node.outputs, results, strict=True):
            frame.held[register] = loaded(result, register.type)

    def written(self, node: RunNode, frame: Frame, binding: Binding) -> None:
        """Runs an operator that writes to given outputs."""
        assert isinstance(node.step, Call)
        args = [frame.tensor(register) for register in node.inputs]
        variant, shapes = self.variant(node, binding)
        outs = [self.output(register) for register in node.outputs]
        for out, shape in zip(outs, shapes, strict=True):
            out.resize(shape)
        name = node.step.op.name
        before = [arg.array.tobytes() for arg in args] if self.setup.debug else []
        if name in self.setup.operators:
            self.setup.operators[name](args, outs)
            self.note_changes(node, args, outs)
        else:
            variant([arg.array for arg in args], [out.array for out in outs])
        for register, out in zip(node.outputs, outs, strict=True):
            frame.held[register] = out
        if self.setup.debug:
            inputs = [(register, arg.array) for register, arg in zip(node.inputs, args, strict=True)]
            check_overlap(name, inputs, [(r, out.array) for r, out in zip(node.outputs, outs, strict=True)])
            check_operands(name, inputs, before)

    def output(self, register: Register) -> Tensor:
        """The planner's tensor of a register, or an unmanaged one."""
        known = self.planner.tensors.get(register) or self.planner.outputs.get(register)
        if known is not None:
            return known
        assert isinstance(register.type, TensorType)
        return Tensor.empty(register.type.dtype)

    def variant(self, node: RunNode, binding: Binding) -> tuple[OutVariant, tuple[tuple[int, ...], ...]]:
        """The node's out-variant and the shapes of its outputs, cached per binding of the dims."""
        known = self._prepared.variants.get(node)
        if known is None:
            shapes = tuple(_shape(register, binding) for register in node.outputs)
            known = self._prepared.variants[node] = (self.found(node, binding), shapes)
        return known

    def found(self, node: RunNode, binding: Binding) -> OutVariant:
        """The library's out-variant, or NumPy's if the library has none."""
        step = node.step
        assert isinstance(step, Call)
        assert isinstance(step.op, Op)
        if node.kind is Kind.COPY:
            return lambda arrays, outs: _copy(arrays[0], outs[0])
        types = tuple(arg.tensor for arg in step.args)
        found = self.setup.variants.of(step.op, step.attrs, types, binding)
        return found or _numpy(step.op, step.attrs, types, binding)

    def note_changes(self, node: RunNode, args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
        """Tells the planner which outputs an operator made share the storage of an operand.

        The current plan reuses a storage as soon as its own values are dead, so an output that shares it against the
        plan is copied in this run.
        """
        for register, out in zip(node.outputs, outs, strict=True):
            planned = self.planner.storage_of(register)
            if planned is None or out.storage is planned:
                continue
            for owner, tensor in self.planner.tensors.items():
                if tensor.storage is out.storage and tensor is not out and any(arg is tensor for arg in args):
                    self.planner.note_shared(register, owner)
            if any(arg.storage is out.storage for arg in args) and self.planner.plan is not None:
                out.assign(out.array.copy())


def _numpy(op: Op, attrs: Attrs, types: tuple[TensorType, ...], binding: Binding) -> OutVariant:
    found = OutVariants().of(op, attrs, types, binding)
    assert found is not None
    return found


def _copy(source: Array, out: Array) -> None:
    """Copies all elements in order, whatever the shapes."""
    np.copyto(out, source.reshape(out.shape))


def _shape(register: Register, binding: Binding) -> tuple[int, ...]:
    assert isinstance(register.type, TensorType)
    return shape_at(register.type.shape, binding)


def runners(main: BlockRunner) -> Iterator[BlockRunner]:
    """A runner and all runners inside it, in the order of nodes."""
    stack = [main]
    while stack:
        top = stack.pop()
        yield top
        stack += reversed([each for pair in top.inner.values() for each in pair])


class StorageChanged(GraphMessage):
    """An operator gave a value another storage than the planner did.

    Example: An operator of your own that calls `outs[0].assign(array)`, under `debug=True`.
    """

    title = "`{op}` replaced the storage of `{value}`"
    help = "write into the array of the output; without `debug` this is repaired after the run, and costs memory"


class OperandsOverlap(GraphMessage):
    """An operator writes bytes that it reads, or writes some bytes twice.

    Example: An operator of your own that calls `outs[0].share(args[0])`, under `debug=True`.
    """

    title = "`{op}`: the output `{output}` overlaps `{other}`"
    help = "let the operator write into the arrays that it is given for its outputs"


class OperandChanged(GraphMessage):
    """An operator writes to one of its operands.

    Example: An operator of your own that calls `np.exp(args[0].array, out=args[0].array)`, under `debug=True`.
    Fix: Write into `outs[0].array`, and copy first where it is easier to compute in place.
    """

    title = "`{op}` changed its operand `{value}`"
    help = "other operators may read it: write into the arrays that are passed for the outputs"


def check_storages(op: str, planner: MemoryPlanner) -> None:
    """Raises GraphError if a managed value has another storage than the planned one."""
    for register, tensor in planner.tensors.items():
        if tensor.storage is not planner.storage_of(register):
            raise StorageChanged(op, register.name).error()


def check_overlap(op: str, inputs: Iterable[tuple[Register, Array]], outputs: Sequence[tuple[Register, Array]]) -> None:
    """Raises GraphError if an output overlaps an input or another output."""
    others = [*inputs, *outputs]
    for output, array in outputs:
        low, high = span(array)
        for other, beside in others:
            start, end = span(beside)
            if other is not output and low < end and start < high:
                raise OperandsOverlap(op, output.name, other.name).error()


def check_operands(op: str, inputs: Sequence[tuple[Register, Array]], before: Sequence[bytes]) -> None:
    """Raises GraphError if a byte of an input has changed."""
    for (register, array), bits in zip(inputs, before, strict=True):
        if array.tobytes() != bits:
            raise OperandChanged(op, register.name).error()


class OutputsInUse(Message):
    """A static runtime that manages its results is run again before they were released.

    Example: `runtime(x)`, three times in a row, of a runtime made with `manage_outputs=True`.
    """

    raises = CallValueError
    title = "the results of the last run of `{function}` are not released"
    help = "call `release_outputs()` when you are done with them, before the next run"


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """The options of a static runtime.

    out_variants: operators write to given outputs, except for those named in `plain`, which allocate their results.
    copy_views: with `out_variants`, operators that only change the shape copy, so that their results are managed.
    reuse: values whose lifetimes do not overlap share memory.
    manage_outputs: results are in one separate buffer, which the caller must release.
    debug: check each operator for overlapping, changed or replaced operands and outputs.
    """

    out_variants: bool = True
    plain: Collection[str] = ()
    copy_views: bool = True
    reuse: bool = True
    manage_outputs: bool = False
    debug: bool = False

    def kind_of(self, call: Call) -> Kind:
        """How the node of an operator gets memory for its results."""
        assert isinstance(call.op, Op)
        if call.op.is_view:
            return Kind.COPY if self.out_variants and self.copy_views else Kind.VIEW
        return Kind.OUT if self.out_variants and call.op.name not in self.plain else Kind.PLAIN


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics of a memory planner: numbers of values, and bytes.

    unmanaged: values with their own memory that are not results; `scalars` of them have no axes, `borrowed` of them
        belong to another value.
    owned: results that were borrowed.
    repaired: storages that were found replaced at the end of a run.
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
    """Runs a function node by node. Call it with one array per parameter, and not from two threads at once.

    The first run allocates each value and records the sizes. From the second run on, all managed values are in one
    buffer per run, divided by the planner; if a run needs more, the next plan is larger. Results have their own memory,
    which the caller may keep; with `manage_outputs`, from the second run on, they are in one buffer that the caller
    must release.
    """

    def __init__(
        self,
        function: FunctionNode,
        options: RuntimeOptions | None = None,
        *,
        library: Library = NUMPY,
        operators: Mapping[str, TensorOperator] | None = None,
    ) -> None:
        """`library` has the out-variants of operators; `operators` are user-defined ones on tensors, by name.

        Raises GraphError for an unbound variable.
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
        """Returns an array or a tuple. Raises CallError if an argument does not fit or results are not released."""
        if self.planner.output_buffer_bytes:
            raise OutputsInUse(self.function.name).error()
        values, binding = bind(self.function, arrays)
        frame = Frame(dict(self._constants))
        for register, value in zip(self.graph.params, values, strict=True):
            frame.held[register] = loaded(value, register.type)
        try:
            return arrays_of(run(self._main.run(frame, binding)))
        except BaseException:
            # The caller received no results that it could release.
            self.planner.release_outputs()
            raise

    @property
    def planner(self) -> MemoryPlanner:
        """The planner of the function's top-level values; each branch has its own."""
        return self._main.planner

    @property
    def planners(self) -> tuple[MemoryPlanner, ...]:
        """The planners of all node lists: that of the top level, then those of branches, in order."""
        return tuple(each.planner for each in runners(self._main))

    @property
    def figures(self) -> Figures:
        """The statistics of the top-level planner."""
        return Figures.of(self.planner)

    def release_outputs(self) -> None:
        """Releases the buffer of managed results, which must not be used afterwards."""
        self.planner.release_outputs()

    def is_managed_output(self, array: Array) -> bool:
        """Whether an array is in the buffer of managed results."""
        return self.planner.is_managed_output(array)

    def is_in_buffer(self, address: int) -> bool:
        """Whether an address is in a buffer of the current run; False between runs."""
        return any(planner.is_in_buffer(address) for planner in self.planners)
