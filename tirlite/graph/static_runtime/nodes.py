"""Turns a function into a list of nodes, operators over registers, and defines the values and storages of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from math import prod
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np

from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, TupleGetItem, Var
from tirlite.graph.op import Op
from tirlite.graph.out_variants import aligned
from tirlite.graph.program import Block, Program, program
from tirlite.graph.types import Array, TensorType, TupleType, Type, leaves_of, mapped_leaves, mapped_tensors, tensors
from tirlite.ir import DType, Steps, in_turn, run
from tirlite.names import UniqueNames


class Kind(Enum):
    """How a node gets the memory of its outputs."""

    OUT = "out-variant"  # writes them where it is told
    COPY = "copied view"  # copies its operand into another shape
    VIEW = "view"  # they are its operand's bytes
    PLAIN = "plain"  # makes them itself
    TUPLE = "tuple"  # gathers values
    ITEM = "item"  # lends one of several values
    IF = "if"


@dataclass(frozen=True, slots=True, eq=False)
class Register:
    """A variable of the node list."""

    name: str
    type: Type

    @property
    def is_scalar(self) -> bool:
        """Whether the value has no axes."""
        return isinstance(self.type, TensorType) and not self.type.shape

    def __repr__(self) -> str:
        return f"<Register {self.name}: {self.type}>"


# A register, or several values as one result.
Result: TypeAlias = "Register | tuple[Result, ...]"


@dataclass(frozen=True, slots=True, eq=False)
class RunNode:
    """One step. The inputs of an `if` are its condition and what its branches use from outside."""

    kind: Kind
    step: Expr
    inputs: tuple[Register, ...]
    outputs: tuple[Register, ...]
    blocks: tuple[NodeList, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class NodeList:
    """Nodes in the order in which they run, and the result."""

    nodes: tuple[RunNode, ...]
    result: Result

    @property
    def results(self) -> tuple[Register, ...]:
        """All registers in the result, from left to right."""
        return leaves_of(self.result)


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A function as nodes, and the registers that have values before it runs."""

    body: NodeList
    params: tuple[Register, ...]
    constants: tuple[tuple[Register, Constant], ...]


# The kind of node for each operator.
KindOf: TypeAlias = Callable[[Call], Kind]


def graph_of(function: FunctionNode, kind_of: KindOf) -> Graph:
    """The nodes of a function. Lets are seen through; functions that it calls are nodes."""
    maker = _Maker(program(function), kind_of)
    params = tuple(maker.define(param, param.name) for param in function.params)
    body = run(maker.block(maker.made.body))
    return Graph(body, params, tuple(maker.constants))


@dataclass(slots=True)
class _Maker:
    made: Program
    kind_of: KindOf
    registers: dict[Expr, Register] = field(default_factory=dict)
    parts: dict[Expr, tuple[Register, ...]] = field(default_factory=dict)  # of calls with several results
    constants: list[tuple[Register, Constant]] = field(default_factory=list)
    names: UniqueNames = field(default_factory=UniqueNames)
    gathered: frozenset[Expr] = frozenset()

    def __post_init__(self) -> None:
        self.gathered = frozenset(self.used_whole())

    def used_whole(self) -> Iterator[Expr]:
        """Tuples that some node uses as one value; those that are only results need no node."""
        for step in self.made.steps():
            operands = (step.condition,) if isinstance(step, If) else () if isinstance(step, Let) else step.operands
            for operand in map(self.made.resolved, operands):
                is_picked = isinstance(step, TupleGetItem) and _has_parts(operand)
                if isinstance(operand.type, TupleType) and not is_picked:
                    yield operand

    def block(self, block: Block) -> Steps[NodeList]:
        nodes: list[RunNode] = []
        for step in block.steps:
            if isinstance(step, If):
                inner = yield in_turn(map(self.block, self.made.branches[step]))
                inputs = dict.fromkeys((self.register(step.condition), *_captured(inner)))
                nodes.append(
                    RunNode(Kind.IF, step, tuple(inputs), (self.define(step, step.name or "if"),), tuple(inner))
                )
            else:
                nodes += self.step(step)
        return NodeList(tuple(nodes), self.result(block.result))

    def step(self, step: Expr) -> Iterator[RunNode]:
        if isinstance(step, Constant):
            self.constants.append((self.define(step, step.name or "constant"), step))
        elif isinstance(step, Tuple):
            if step in self.gathered:
                yield RunNode(Kind.TUPLE, step, tuple(map(self.register, step.fields)), (self.define(step, "tuple"),))
        elif isinstance(step, TupleGetItem):
            value = self.made.resolved(step.value)
            if value in self.parts:
                self.registers[step] = self.parts[value][step.index]
            else:
                yield RunNode(Kind.ITEM, step, (self.register(value),), (self.define(step, "item"),))
        elif isinstance(step, Call):
            yield from self.call(step)

    def call(self, step: Call) -> Iterator[RunNode]:
        kind = self.kind_of(step) if isinstance(step.op, Op) else Kind.PLAIN
        inputs = tuple(map(self.register, step.args))
        name = step.name or step.op.name or "call"
        if not _has_parts(step):
            yield RunNode(kind, step, inputs, (self.define(step, name),))
            return
        self.parts[step] = tuple(Register(self.names.unique(name), of) for of in tensors(step.type))
        yield RunNode(kind, step, inputs, self.parts[step])
        if step in self.gathered:
            yield RunNode(Kind.TUPLE, step, self.parts[step], (self.define(step, "tuple"),))

    def result(self, expr: Expr) -> Result:
        expr = self.made.resolved(expr)
        if isinstance(expr, Tuple):
            return tuple(map(self.result, expr.fields))
        return self.parts[expr] if expr in self.parts else self.register(expr)

    def register(self, expr: Expr) -> Register:
        return self.registers[self.made.resolved(expr)]

    def define(self, expr: Expr | Var, name: str) -> Register:
        self.registers[expr] = Register(self.names.unique(name), expr.type)
        return self.registers[expr]


def _has_parts(expr: Expr) -> bool:
    """Whether it is an operator call with several results."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and isinstance(expr.type, TupleType)


def _captured(blocks: list[NodeList]) -> Iterator[Register]:
    """The registers that lists use and do not define."""
    for block in blocks:
        inside = {output for node in block.nodes for output in node.outputs}
        used = [*(each for node in block.nodes for each in node.inputs), *block.results]
        yield from (each for each in used if each not in inside)


ALIGN = 64
Value: TypeAlias = "Tensor | tuple[Value, ...]"
# Arguments and results of callers.
Arrays: TypeAlias = "Array | tuple[Arrays, ...]"


@dataclass(slots=True, eq=False)
class Storage:
    """The memory of one or several tensors; storages are compared by identity."""

    memory: Array | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return 0 if self.memory is None else self.memory.size


@dataclass(slots=True, eq=False)
class Tensor:
    """A value of a run: a storage, and the array at its beginning."""

    dtype: DType
    storage: Storage
    array: Array

    @classmethod
    def empty(cls, dtype: DType, storage: Storage | None = None) -> Tensor:
        """A tensor without elements, on a new storage if none is given."""
        return cls(dtype, storage or Storage(), np.empty(0, dtype.stored))

    @classmethod
    def of(cls, array: Array, dtype: DType) -> Tensor:
        """The tensor of an array."""
        return cls(dtype, Storage(_bytes_of(array)), array)

    @property
    def bytes(self) -> int:
        return self.array.nbytes

    def resize(self, shape: tuple[int, ...]) -> None:
        """Gives it an array of this shape with undefined elements; a storage that is too small grows."""
        size = prod(shape) * self.dtype.bytes
        if self.storage.memory is None or self.storage.size < size:
            self.storage.memory = aligned(size, ALIGN)
        self.array = self.storage.memory[:size].view(self.dtype.stored).reshape(shape)

    def reset(self, storage: Storage) -> None:
        """Removes its elements, and puts it on a storage."""
        self.storage = storage
        self.array = np.empty(0, self.dtype.stored)

    def assign(self, array: Array) -> None:
        """Gives it another array, on a new storage."""
        self.storage = Storage(_bytes_of(array))
        self.array = array

    def share(self, other: Tensor) -> None:
        """Lets it share the array and storage of another tensor."""
        self.storage = other.storage
        self.array = other.array


def span(array: Array) -> tuple[int, int]:
    """The addresses of a contiguous array's first byte and of its end."""
    start = array.ctypes.data
    return start, start + array.nbytes


def _bytes_of(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """One of the values of a tuple, which the tuple still owns."""

    owner: Register
    index: int


@dataclass(slots=True)
class Frame:
    """The values of the registers."""

    held: dict[Register, Value | Borrowed] = field(default_factory=dict)

    def value(self, register: Register) -> Value:
        """The value, or the tensor of a borrowed one."""
        path = []
        found = self.held[register]
        while isinstance(found, Borrowed):
            path.append(found.index)
            found = self.held[found.owner]
        for index in reversed(path):
            assert isinstance(found, tuple)
            found = found[index]
        return found

    def tensor(self, register: Register) -> Tensor:
        found = self.value(register)
        assert isinstance(found, Tensor)
        return found

    def result(self, result: Result) -> Value:
        """A result that later changes to its tensors do not affect."""
        kept: Value = mapped_leaves(replace, mapped_leaves(self.value, result))
        return kept


def loaded(arrays: Any, of: Type) -> Value:
    made: Value = mapped_tensors(
        lambda each, kind: Tensor.of(np.require(each, requirements="C"), kind.dtype), arrays, of
    )
    return made


def arrays_of(value: Value) -> Arrays:
    found: Arrays = mapped_leaves(attrgetter("array"), value)
    return found
