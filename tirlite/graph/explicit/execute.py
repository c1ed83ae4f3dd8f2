"""Runs the last of some routines on arrays: the instructions are carried out one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import GraphMessage
from tirlite.graph.arguments import GraphArgumentCount, arrays_of, bind
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Body,
    Branch,
    Instruction,
    InvokeOperator,
    InvokeRoutine,
    LetSize,
    LoadConstant,
    ReadSize,
    ReshapeTensor,
    Result,
    Routine,
    tensor_named,
)
from tirlite.graph.expr import FunctionNode, Tuple, Var
from tirlite.graph.extents import values
from tirlite.graph.out_variants import OutVariants
from tirlite.graph.registry import OPS
from tirlite.graph.types import TensorType
from tirlite.ir import Steps, run as run_steps
from tirlite.record import record
from tirlite.sizes import Dim, Size, dims_of, evaluate

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = "Array | tuple[Value, ...]"


class TensorOutside(GraphMessage):
    """A tensor of a program with explicit allocation does not fit into its storage.

    Example: `alloc_tensor(s, offset=64, shape=(4,), dtype=f32)` where `s` has 64 bytes.
    """

    code = "tensor-outside-storage"
    title = "`{tensor}` takes the bytes [{low}, {high}) of `{storage}`, which has {size}"
    help = "correct the offset or the shape, or allocate a larger storage"

    tensor: str
    storage: str
    low: int
    high: int
    size: int


class NoOutVariant(GraphMessage):
    """A program with explicit allocation invokes an operator that cannot write where it is told.

    Example: Running a program with `library=tl.graph.NATIVE`, where an operator has no kernel.
    Fix: Run it with `tl.graph.NUMPY`, or compose the operator of others.
    """

    title = "operator `{op}` has no out-variant"
    help = "NumPy's out-variants, the default, know all operators"

    op: str


@record(frozen=False)
class Frame:
    """The names of one running routine."""

    binding: dict[Dim, int]
    tensors: dict[str, tuple[Array, TensorType]] = field(default_factory=dict)
    storages: dict[str, Array] = field(default_factory=dict)


@record(frozen=False)
class Run:
    """What a run made, and the bytes of the storages that it allocated, in order.

    `peak` is the most bytes at one time; those of a branch, or of a routine that was invoked, are freed at its end.
    """

    result: Value = ()
    allocated: list[int] = field(default_factory=list)
    peak: int = 0


def execute(routines: Sequence[Routine], arrays: Sequence[npt.ArrayLike], variants: OutVariants) -> Run:
    """One run of the last routine. Raises CallError for arguments that do not fit."""
    machine = _Machine({routine.name: routine for routine in routines}, variants)
    main = routines[-1]
    if len(arrays) != len(main.params):
        raise GraphArgumentCount(main.name, len(main.params), len(arrays)).error()
    given = zip(main.params, arrays, strict=True)
    flat = [each for param, value in given for each in arrays_of(", ".join(param.names), param.type, value)]
    frame = run_steps(machine.routine(main, flat))
    machine.run.result = _structured(main.result, frame)
    return machine.run


def _signature(routine: Routine) -> FunctionNode:
    """A function with the tensors of the routine's parameters as its parameters."""
    params = tuple(Var(name, of) for param in routine.params for name, of in param.leaves)
    return FunctionNode(routine.name, params, Tuple(()))


def _structured(result: Result, frame: Frame) -> Value:
    if isinstance(result, str):
        return frame.tensors[result][0]
    return tuple(_structured(each, frame) for each in result)


class _Machine:
    def __init__(self, routines: Mapping[str, Routine], variants: OutVariants) -> None:
        self.routines = routines
        self.variants = variants
        self.run = Run()
        self.live = 0

    def routine(self, routine: Routine, arrays: Sequence[Any]) -> Steps[Frame]:
        signature = _signature(routine)
        given, binding = bind(signature, arrays)
        frame = Frame(dict(binding))
        for param, array in zip(signature.params, given, strict=True):
            frame.tensors[param.name] = (array, param.tensor)
        yield self.body(routine.body, frame)
        return frame

    def body(self, body: Body, frame: Frame) -> Steps[None]:
        for step in body:
            if isinstance(step, Branch):
                chosen = step.then if frame.tensors[step.condition][0] else step.other
                yield self.body(chosen, frame)
                self.leave(chosen, frame)
            elif isinstance(step, InvokeRoutine):
                inner = self.routines[step.routine]
                args = [frame.tensors[name][0] for name in step.args]
                made: Frame = yield self.routine(inner, args)
                for out, result in zip(step.outs, inner.results, strict=True):
                    np.copyto(frame.tensors[out][0], made.tensors[result][0])
                self.live -= sum(storage.size for storage in made.storages.values())
            else:
                self.step(step, frame)

    def leave(self, body: Body, frame: Frame) -> None:
        """Forgets the names that were given in a branch."""
        for step in body:
            if isinstance(step, AllocStorage):
                self.live -= frame.storages.pop(step.name).size
            elif (name := tensor_named(step)) is not None:
                del frame.tensors[name]

    def step(self, step: Instruction, frame: Frame) -> None:
        match step:
            case AllocStorage():
                size = evaluate(step.size, frame.binding)
                self.run.allocated.append(size)
                frame.storages[step.name] = aligned(size, step.alignment)
                self.live += size
                self.run.peak = max(self.run.peak, self.live)
            case AllocTensor():
                frame.tensors[step.name] = (_tensor(step, frame), TensorType(step.shape, step.dtype))
            case ReshapeTensor():
                source, of = frame.tensors[step.source]
                seen = source.reshape(values(step.shape, frame.binding))
                frame.tensors[step.name] = (seen, TensorType(step.shape, of.dtype))
            case LoadConstant():
                frame.tensors[step.name] = (step.value, TensorType(step.value.shape, step.dtype))
            case LetSize():
                frame.binding[step.dim] = evaluate(step.value, _within_facts(step.value, frame.binding))
            case ReadSize():
                frame.binding[step.dim] = int(frame.tensors[step.tensor][0].item())
            case InvokeOperator():
                self.operator(step, frame)

    def operator(self, step: InvokeOperator, frame: Frame) -> None:
        args = [frame.tensors[name] for name in step.args]
        variant = self.variants.of(OPS[step.op], step.attrs, tuple(of for _, of in args), frame.binding)
        if variant is None:
            raise NoOutVariant(step.op).error()
        variant([array for array, _ in args], [frame.tensors[name][0] for name in step.outs])


def aligned(size: int, alignment: int) -> Array:
    """Fresh bytes at an address that is a multiple of `alignment`."""
    memory = np.empty(size + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]


def _within_facts(size: Size, binding: Mapping[Dim, int]) -> dict[Dim, int]:
    """The values of the dims of a size, where those that their facts exclude are the least that they allow."""
    return {dim: max(binding[dim], dim.bounds.low or 0) for dim in dims_of(size)}


def _tensor(step: AllocTensor, frame: Frame) -> Array:
    shape = values(step.shape, frame.binding)
    low = evaluate(step.offset, frame.binding)
    high = low + step.dtype.bytes * int(np.prod(shape, dtype=object))
    storage = frame.storages[step.storage]
    if not 0 <= low <= high <= storage.size:
        raise TensorOutside(step.name, step.storage, low, high, storage.size).error()
    return storage[low:high].view(step.dtype.stored).reshape(shape)
