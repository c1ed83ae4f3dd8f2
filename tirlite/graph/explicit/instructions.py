"""Programs with explicit allocation: their instructions, and routines of these.

Programs are in A-normal form: operands are the names of tensors, storages and sizes, each given a value once before.
What an operator makes is written to tensors that it is handed.
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
    """`size` bytes at an address that is a multiple of `alignment`; the element type says what it is meant for."""

    name: str
    size: Size
    alignment: int
    dtype: DType
    device: int = 0


@record(eq=False)
class AllocTensor:
    """A tensor on a storage from byte `offset` on."""

    name: str
    storage: str
    offset: Size
    shape: tuple[Size, ...]
    dtype: DType


@record(eq=False)
class ReshapeTensor:
    """The bytes of a tensor under another shape."""

    name: str
    source: str
    shape: tuple[Size, ...]


@record(eq=False)
class LoadConstant:
    """A tensor whose elements are known."""

    name: str
    value: Array
    dtype: DType


@record(eq=False)
class LetSize:
    """A number of bytes that gets a name; `dim` stands for it in the sizes behind.

    A dim that is 0 where its facts say at least 1, since arrays may be empty, counts as the least that they allow: what
    was planned on the ground of the facts has room then for what is smaller.
    """

    dim: Dim
    value: Size


@record(eq=False)
class ReadSize:
    """A size that is known only when a tensor of one integer is: `dim` stands for it in the sizes behind."""

    dim: Dim
    tensor: str


@record(eq=False)
class InvokeOperator:
    """An operator reads the tensors `args` and writes the tensors `outs`."""

    op: str
    attrs: Attrs
    args: tuple[str, ...]
    outs: tuple[str, ...]


@record(eq=False)
class InvokeRoutine:
    """Another routine of the executable reads the tensors `args`; its results are written to `outs`."""

    routine: str
    args: tuple[str, ...]
    outs: tuple[str, ...]


@record(eq=False)
class RepeatRoutine(InvokeRoutine):
    """Another routine is run from a number on, while that is below a limit and the last run said to go on.

    `args` are the number, the limit, whether to go on, `carried` tensors, and others that stay as they are: what each
    run takes. It gives whether to go on, the carried tensors of the next one, and more. `outs` are the number behind
    the last run, the carried tensors, and for each more a tensor of those of all runs, along a first axis.
    """

    carried: int


@record(eq=False)
class Branch:
    """One of two bodies, as a tensor of one bool says. Names given inside mean nothing outside."""

    condition: str
    then: tuple[Instruction, ...]
    other: tuple[Instruction, ...]


Invoke: TypeAlias = InvokeOperator | InvokeRoutine
_Naming: TypeAlias = AllocStorage | AllocTensor | ReshapeTensor | LoadConstant | LetSize | ReadSize
Instruction: TypeAlias = _Naming | Invoke | Branch
Body: TypeAlias = tuple[Instruction, ...]
# The name of a tensor, or several results.
Result: TypeAlias = "str | tuple[Result, ...]"


@record(eq=False)
class Parameter:
    """A value that a routine is called with: the names of its tensors, one for a tensor, and their type."""

    names: tuple[str, ...]
    type: Type
    device: int = 0

    @property
    def leaves(self) -> tuple[tuple[str, TensorType], ...]:
        """The names of its tensors, and their types."""
        return tuple(zip(self.names, tensors(self.type), strict=True))


@record(eq=False)
class Routine:
    """Instructions over parameters. A primitive one stands for one kernel, and passes leave it as it is."""

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
    """All instructions in program order, those of branches behind their `Branch`."""
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
    """The sizes that an instruction uses, those in attributes among them."""
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
    """The tensors that an instruction looks at or into, without those that only its branches use."""
    if isinstance(instruction, Invoke):
        return instruction.args
    if isinstance(instruction, ReshapeTensor):
        return (instruction.source,)
    if isinstance(instruction, ReadSize):
        return (instruction.tensor,)
    return (instruction.condition,) if isinstance(instruction, Branch) else ()


def tensor_named(instruction: Instruction) -> str | None:
    """The tensor that an instruction gives a name to."""
    return instruction.name if isinstance(instruction, AllocTensor | ReshapeTensor | LoadConstant) else None
