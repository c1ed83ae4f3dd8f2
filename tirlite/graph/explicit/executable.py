"""Executables: routines that are checked, and can be run, printed, and written as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import GraphMessage, public
from tirlite.diag.error import demand_kind
from tirlite.graph.arguments import GraphArgumentCount, arrays_of, bind
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Body,
    Branch,
    Instruction,
    Invoke,
    InvokeOperator,
    InvokeRoutine,
    LetSize,
    LoadConstant,
    ReadSize,
    RepeatRoutine,
    ReshapeTensor,
    Result,
    Routine,
    sizes_in,
    tensor_named,
    tensors_read,
)
from tirlite.graph.explicit.serialise import from_text, text_of
from tirlite.graph.expr import FunctionNode, Tuple, Var
from tirlite.graph.extents import values
from tirlite.graph.function import elements_text
from tirlite.graph.loop import LoopRoom
from tirlite.graph.op import OPS
from tirlite.graph.out_variants import NUMPY, Library, OutVariants, aligned
from tirlite.graph.types import Array, TensorType, mapped_leaves
from tirlite.ir import Steps, run, run as run_steps
from tirlite.record import record
from tirlite.show import counted
from tirlite.sizes import Dim, Size, dims_of, evaluate
from tirlite.sizes.poly import atom_of

Value: TypeAlias = "Array | tuple[Value, ...]"


class TensorOutside(GraphMessage):
    """A tensor of a program with explicit allocation does not fit into its storage.

    Example: `alloc_tensor(s, offset=64, shape=(4,), dtype=f32)` where `s` has 64 bytes.
    """

    code = "tensor-outside-storage"
    title = "`{tensor}` takes the bytes [{low}, {high}) of `{storage}`, which has {size}"
    help = "correct the offset or the shape, or allocate a larger storage"


class NoOutVariant(GraphMessage):
    """A program with explicit allocation invokes an operator that cannot write where it is told.

    Example: Running a program with `library=tl.graph.NATIVE`, where an operator has no kernel.
    Fix: Run it with `tl.graph.NUMPY`, or compose the operator of others.
    """

    title = "operator `{op}` has no out-variant"
    help = "NumPy's out-variants, the default, know all operators"


@record(frozen=False)
class Frame:
    """The names of one running routine."""

    binding: dict[Dim, int]
    tensors: dict[str, tuple[Array, TensorType]] = field(default_factory=dict)
    storages: dict[str, Array] = field(default_factory=dict)

    def arrays(self, names: Iterable[str]) -> list[Array]:
        return [self.tensors[name][0] for name in names]


@record(frozen=False)
class Run:
    """The result of a run, and the bytes of the storages that it allocated, in order.

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
        raise GraphArgumentCount(main.name, counted(len(main.params), "value"), len(arrays)).error()
    given = zip(main.params, arrays, strict=True)
    flat = [each for param, value in given for each in arrays_of(", ".join(param.names), param.type, value)]
    frame = run_steps(machine.routine(main, flat))
    machine.run.result = mapped_leaves(lambda name: frame.tensors[name][0], main.result)
    return machine.run


def _signature(routine: Routine) -> FunctionNode:
    """A function with the tensors of the routine's parameters as its parameters."""
    params = tuple(Var(name, of) for param in routine.params for name, of in param.leaves)
    return FunctionNode(routine.name, params, Tuple(()))


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
            elif isinstance(step, RepeatRoutine):
                yield self.repeat(step, frame)
            elif isinstance(step, InvokeRoutine):
                inner = self.routines[step.routine]
                yield self.invoke(inner, frame.arrays(step.args), frame.arrays(step.outs))
            else:
                self.step(step, frame)

    def invoke(self, routine: Routine, args: Sequence[Array], outs: Sequence[Array]) -> Steps[None]:
        made: Frame = yield self.routine(routine, args)
        for out, result in zip(outs, made.arrays(routine.results), strict=True):
            np.copyto(out, result)
        self.live -= sum(storage.size for storage in made.storages.values())

    def repeat(self, step: RepeatRoutine, frame: Frame) -> Steps[None]:
        number, limit, going, *others = frame.arrays(step.args)
        reached, *outs = frame.arrays(step.outs)
        carried, rows = outs[: step.carried], outs[step.carried :]
        for out, array in zip((reached, *carried), (number, *others), strict=False):
            np.copyto(out, array)
        for row in rows:
            row.fill(0)
        goes = going.copy()
        while reached < limit and goes:
            # Copies, as a result may be an argument itself.
            place = int(reached)
            if rows and place >= len(rows[0]):
                raise LoopRoom(step.routine, place + 1, len(rows[0])).error()
            args = [reached.copy(), limit, goes.copy(), *map(np.copy, carried), *others[step.carried :]]
            yield self.invoke(self.routines[step.routine], args, [goes, *carried, *(row[place] for row in rows)])
            np.add(reached, 1, out=reached)

    def leave(self, body: Body, frame: Frame) -> None:
        """Removes the names defined in a branch."""
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


def _within_facts(size: Size, binding: Mapping[Dim, int]) -> dict[Dim, int]:
    """The values of the dims of a size, raised to the least ones that their facts allow."""
    return {dim: max(binding[dim], dim.bounds.low or 0) for dim in dims_of(size)}


def _tensor(step: AllocTensor, frame: Frame) -> Array:
    shape = values(step.shape, frame.binding)
    low = evaluate(step.offset, frame.binding)
    high = low + step.dtype.bytes * int(np.prod(shape, dtype=object))
    storage = frame.storages[step.storage]
    if not 0 <= low <= high <= storage.size:
        raise TensorOutside(step.name, low, high, step.storage, storage.size).error()
    return storage[low:high].view(step.dtype.stored).reshape(shape)


class UnnamedOperand(GraphMessage):
    """An instruction of a program with explicit allocation uses what is not there.

    Example: `alloc_tensor(s, ...)` in one branch, where only the other branch allocates `s`.
    """

    code = "no-such-operand"
    title = "the {kind} `{name}` is not there where `{routine}` uses it"
    help = "allocate it before, in the same body or in one around it"


class NamedTwice(GraphMessage):
    """Two instructions of a program with explicit allocation give a value to one name.

    Example: Two `alloc_storage` with the name `s`.
    """

    title = "`{routine}` gives `{name}` a value twice"
    help = "each name has one value: take another name"


def verify(routines: Sequence[Routine]) -> None:
    """Raises GraphError if a name is used without a value, or gets two values."""
    known: set[str] = set()
    for routine in routines:
        if routine.name in known:
            raise NamedTwice(routine.name, routine.name).error()
        run(_Walk(routine, known).routine())
        known.add(routine.name)


class _Walk:
    """The check of one routine. `taken` are all names so far, `scopes` the names defined by each open body."""

    def __init__(self, routine: Routine, routines: Iterable[str]) -> None:
        self.name = routine.name
        self.of = routine
        self.taken: set[object] = set()
        self.visible: set[tuple[str, object]] = {("routine", name) for name in routines}
        self.scopes: list[list[tuple[str, object]]] = [[]]

    def routine(self) -> Steps[None]:
        for param in self.of.params:
            for name, of in param.leaves:
                self.define("tensor", name)
                for extent in of.shape:
                    self.visible.update(("size", dim) for dim in atom_of(extent, Dim))
        yield self.body(self.of.body)
        self.use("tensor", self.of.results)

    def body(self, body: Body) -> Steps[None]:
        for step in body:
            self.step(step)
            if isinstance(step, Branch):
                for part in (step.then, step.other):
                    self.scopes.append([])
                    yield self.body(part)
                    self.visible.difference_update(self.scopes.pop())

    def step(self, step: Instruction) -> None:
        for size in sizes_in(step):
            self.use("size", dims_of(size))
        self.use("tensor", tensors_read(step))
        if isinstance(step, Invoke):
            self.use("tensor", step.outs)
        if isinstance(step, InvokeRoutine):
            self.use("routine", (step.routine,))
        if isinstance(step, AllocTensor):
            self.use("storage", (step.storage,))
        if isinstance(step, AllocStorage):
            self.define("storage", step.name)
        elif isinstance(step, LetSize | ReadSize):
            self.define("size", step.dim)
        elif (name := tensor_named(step)) is not None:
            self.define("tensor", name)

    def use(self, kind: str, names: Iterable[object]) -> None:
        for name in names:
            if (kind, name) not in self.visible:
                raise UnnamedOperand(kind, _text(name), self.name).error()

    def define(self, kind: str, name: object) -> None:
        if name in self.taken:
            raise NamedTwice(self.name, _text(name)).error()
        self.taken.add(name)
        self.visible.add((kind, name))
        self.scopes[-1].append((kind, name))


def _text(name: object) -> str:
    return name.name if isinstance(name, Dim) else str(name)


_INDENT = "    "


def text(routines: Iterable[Routine]) -> str:
    return "\n\n".join("\n".join(_routine(each)) for each in routines)


def _routine(routine: Routine) -> Iterator[str]:
    params = ", ".join(f"{name}: {of}" for param in routine.params for name, of in param.leaves)
    yield f"{'primitive def' if routine.primitive else 'def'} {routine.name}({params}) -> {_result(routine.result)}:"
    yield from _body(routine.body)


def _body(body: Body) -> Iterator[str]:
    stack: list[tuple[Iterator[Instruction | str], int]] = [(iter(body), 1)]
    while stack:
        rest, level = stack[-1]
        top = next(rest, None)
        if top is None:
            stack.pop()
        elif isinstance(top, str):
            yield _INDENT * (level - 1) + top
        elif isinstance(top, Branch):
            yield f"{_INDENT * level}if {top.condition}:"
            stack.append((iter(("else:", *(top.other or ("    pass",)))), level + 1))
            stack.append((iter(top.then or ("    pass",)), level + 1))
        else:
            yield _INDENT * level + _line(top)


def _line(top: Instruction) -> str:
    match top:
        case AllocStorage():
            size = f"size={top.size}, alignment={top.alignment}"
            return f"{top.name} = alloc_storage({size}, dtype={top.dtype}, device={top.device})"
        case AllocTensor():
            kind = f"shape={_shape(top.shape)}, dtype={top.dtype}"
            return f"{top.name} = alloc_tensor({top.storage}, offset={top.offset}, {kind})"
        case ReshapeTensor():
            return f"{top.name} = reshape_tensor({top.source}, shape={_shape(top.shape)})"
        case LoadConstant():
            return f"{top.name}: {TensorType(top.value.shape, top.dtype)} = constant({elements_text(top.value)})"
        case LetSize():
            return f"{top.dim.name} = {top.value}"
        case ReadSize():
            return f"{top.dim.name} = read_size({top.tensor})"
        case InvokeOperator():
            attrs = f", {top.attrs}" if str(top.attrs) else ""
            return f"invoke {top.op}({', '.join(top.args)}{attrs}) -> {', '.join(top.outs)}"
        case RepeatRoutine():
            args = f"{', '.join(top.args)}; {top.carried} carried"
            return f"repeat def {top.routine}({args}) -> {', '.join(top.outs)}"
        case InvokeRoutine():
            return f"invoke def {top.routine}({', '.join(top.args)}) -> {', '.join(top.outs)}"
        case Branch():
            raise AssertionError("branches have lines of their own")


def _result(result: Result) -> str:
    if isinstance(result, str):
        return result
    return f"({', '.join(map(_result, result))}{',' if len(result) == 1 else ''})"


def _shape(shape: tuple[Size, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@record(eq=False, repr=False)
class Executable:
    """Routines, each behind those that it invokes; the last one is run. `print` shows the instructions.

    Raises GraphError where a name is used that has no value there, or is given twice.
    """

    routines: tuple[Routine, ...]

    @public
    def __post_init__(self) -> None:
        demand_kind("Executable", self.routines, tuple)
        for each in self.routines:
            demand_kind("Executable", each, Routine)
        verify(self.routines)

    @property
    def main(self) -> Routine:
        return self.routines[-1]

    @public
    def __call__(self, *arrays: npt.ArrayLike, library: Library = NUMPY) -> Value:
        """The result: an array, or a tuple. Results lie in the storages that the run allocated."""
        return execute(self.routines, arrays, OutVariants(library)).result

    @public
    def run(self, *arrays: npt.ArrayLike, variants: OutVariants | None = None) -> Run:
        """The result, and the bytes of the storages that were allocated. `variants` keeps compiled operators."""
        return execute(self.routines, arrays, variants or OutVariants())

    def to_json(self) -> str:
        """The executable as JSON, its constants included."""
        return text_of(self.routines)

    @classmethod
    @public
    def from_json(cls, given: str) -> Executable:
        """The executable that `to_json` wrote. Its dims have the same names and facts.

        Raises GraphError for anything else.
        """
        return cls(from_text(given))

    def __str__(self) -> str:
        return text(self.routines)

    def __repr__(self) -> str:
        return f"<Executable {self.main.name}, {len(self.routines)} routines>"
