"""The instructions and routines of programs with explicit allocation.

Programs are in A-normal form: operands are names of tensors, storages and sizes, each defined once before its uses.
Operators write their results to tensors that are passed to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from tirlite.graph.op import Attrs
from tirlite.graph.types import Array, TensorType, Type, leaves_of, tensors
from tirlite.ir import DType
from tirlite.record import record
from tirlite.sizes import Dim, Size


@record(eq=False)
class AllocStorage:
    """Allocates `size` bytes at a multiple of `alignment`; `dtype` is the element type that they are intended for."""

    name: str
    size: Size
    alignment: int
    dtype: DType
    device: int = 0


@record(eq=False)
class AllocTensor:
    """Defines a tensor in a storage, from byte `offset` on."""

    name: str
    storage: str
    offset: Size
    shape: tuple[Size, ...]
    dtype: DType


@record(eq=False)
class ReshapeTensor:
    """Defines a tensor with the bytes of another one, under another shape."""

    name: str
    source: str
    shape: tuple[Size, ...]


@record(eq=False)
class LoadConstant:
    """Defines a tensor with known elements."""

    name: str
    value: Array
    dtype: DType


@record(eq=False)
class LetSize:
    """Defines `dim` as a number of bytes, for use in the sizes of later instructions.

    A dim of an empty array, 0 although its facts say at least 1, is evaluated as the least value that the facts allow:
    the plan relies on the facts, and a larger allocation also fits the empty array.
    """

    dim: Dim
    value: Size


@record(eq=False)
class ReadSize:
    """Defines `dim` as the value of a tensor of one integer, for use in the sizes of later instructions."""

    dim: Dim
    tensor: str


@record(eq=False)
class InvokeOperator:
    """Runs an operator that reads the tensors `args` and writes the tensors `outs`."""

    op: str
    attrs: Attrs
    args: tuple[str, ...]
    outs: tuple[str, ...]


@record(eq=False)
class InvokeRoutine:
    """Runs another routine of the executable on the tensors `args`; its results are written to `outs`."""

    routine: str
    args: tuple[str, ...]
    outs: tuple[str, ...]


@record(eq=False)
class RepeatRoutine(InvokeRoutine):
    """Runs another routine in a loop, while the step number is below a limit and the condition is true.

    args: the first step number, the limit, the condition, `carried` tensors, and invariant tensors. The routine
        receives these, and returns the next condition, the next carried tensors, and per-step results.
    outs: the step number after the last step, the carried tensors, and the results of all steps along a new first axis.
    """

    carried: int


@record(eq=False)
class Branch:
    """Runs one of two bodies, chosen by a tensor of one bool. Names defined inside are not visible outside."""

    condition: str
    then: tuple[Instruction, ...]
    other: tuple[Instruction, ...]


Invoke: TypeAlias = InvokeOperator | InvokeRoutine
_Naming: TypeAlias = AllocStorage | AllocTensor | ReshapeTensor | LoadConstant | LetSize | ReadSize
Instruction: TypeAlias = _Naming | Invoke | Branch
Body: TypeAlias = tuple[Instruction, ...]
# The name of a tensor, or a tuple of results.
Result: TypeAlias = "str | tuple[Result, ...]"


@record(eq=False)
class Parameter:
    """A parameter of a routine: the names of its tensors (one, unless it is a tuple), and its type."""

    names: tuple[str, ...]
    type: Type
    device: int = 0

    @property
    def leaves(self) -> tuple[tuple[str, TensorType], ...]:
        """The names of its tensors, and their types."""
        return tuple(zip(self.names, tensors(self.type), strict=True))


@record(eq=False)
class Routine:
    """Parameters and instructions. A primitive routine is implemented by one kernel, and passes do not change it."""

    name: str
    params: tuple[Parameter, ...]
    body: Body
    result: Result
    primitive: bool = False

    @property
    def results(self) -> tuple[str, ...]:
        """The names of all tensors in the result, from left to right."""
        return leaves_of(self.result)


def walk(body: Body) -> Iterator[Instruction]:
    """All instructions in program order, those of branches after their `Branch`."""
    stack = [iter(body)]
    while stack:
        top = next(stack[-1], None)
        if top is None:
            stack.pop()
            continue
        yield top
        if isinstance(top, Branch):
            stack += [iter(top.other), iter(top.then)]


def sizes_in(instruction: Instruction) -> tuple[Size, ...]:
    """The sizes that an instruction uses, including those in attributes."""
    if isinstance(instruction, AllocStorage):
        return (instruction.size,)
    if isinstance(instruction, AllocTensor):
        return (instruction.offset, *instruction.shape)
    if isinstance(instruction, ReshapeTensor):
        return instruction.shape
    if isinstance(instruction, LetSize):
        return (instruction.value,)
    if isinstance(instruction, InvokeOperator):
        return tuple(instruction.attrs.symbolic_sizes())
    return ()


def tensors_read(instruction: Instruction) -> tuple[str, ...]:
    """The tensors that an instruction reads or views, without those that only its branches use."""
    if isinstance(instruction, Invoke):
        return instruction.args
    if isinstance(instruction, ReshapeTensor):
        return (instruction.source,)
    if isinstance(instruction, ReadSize):
        return (instruction.tensor,)
    return (instruction.condition,) if isinstance(instruction, Branch) else ()


def tensor_named(instruction: Instruction) -> str | None:
    """The tensor that an instruction defines, or None."""
    return instruction.name if isinstance(instruction, AllocTensor | ReshapeTensor | LoadConstant) else None
