"""Checks a node and its tensors for debugging, and raises an error that names the operator where they are wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tirlite.diag import GraphError, Message
from tirlite.graph.static_runtime.nodes import Register
from tirlite.graph.static_runtime.planner import MemoryPlanner
from tirlite.graph.static_runtime.storage import Array, span


class StorageChanged(Message):
    """An operator gave a value another storage than the planner did.

    Example: An operator of your own that calls `outs[0].assign(array)`, under `debug=True`.
    Fix: Write into `outs[0].array`; without `debug` the change is repaired after the run, at the cost of memory.
    """

    code = "storage-changed"
    raises = GraphError
    title = "`{op}` changed the storage of `{value}` behind the planner's back"
    help = "write into the array of the output; without `debug` this is repaired after the run, and costs memory"

    op: str
    value: str


class OperandsOverlap(Message):
    """An operator writes bytes that it reads, or writes some bytes twice.

    Example: An operator of your own that calls `outs[0].share(args[0])`, under `debug=True`.
    Fix: Let the operator write into the arrays that it is given for its outputs.
    """

    code = "operands-overlap"
    raises = GraphError
    title = "`{op}`: the output `{output}` overlaps `{other}`"
    help = "let the operator write into the arrays that it is given for its outputs"

    op: str
    output: str
    other: str


class OperandChanged(Message):
    """An operator writes to one of its operands.

    Example: An operator of your own that calls `np.exp(args[0].array, out=args[0].array)`, under `debug=True`.
    Fix: Write into `outs[0].array`, and copy first where it is easier to compute in place.
    """

    code = "operand-changed"
    raises = GraphError
    title = "`{op}` changed its operand `{value}`"
    help = "others may read it: let the operator write into the arrays that it is given for its outputs"

    op: str
    value: str


def check_storages(op: str, planner: MemoryPlanner) -> None:
    """Raises GraphError where a managed value has another storage than the one planned."""
    for register, tensor in planner.tensors.items():
        if tensor.storage is not planner.storage_of(register):
            raise StorageChanged(op, register.name).error()


def check_overlap(op: str, inputs: Iterable[tuple[Register, Array]], outputs: Sequence[tuple[Register, Array]]) -> None:
    """Raises GraphError where an output overlaps an input, or another output."""
    others = [*inputs, *outputs]
    for output, array in outputs:
        low, high = span(array)
        for other, beside in others:
            start, end = span(beside)
            if other is not output and low < end and start < high:
                raise OperandsOverlap(op, output.name, other.name).error()


def check_operands(op: str, inputs: Sequence[tuple[Register, Array]], before: Sequence[bytes]) -> None:
    """Raises GraphError where an input is not what it was, byte by byte."""
    for (register, array), bits in zip(inputs, before, strict=True):
        if array.tobytes() != bits:
            raise OperandChanged(op, register.name).error()
