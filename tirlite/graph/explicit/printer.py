"""Prints routines as text: one line for each instruction.

def net(x: f32[n, 4]) -> tanh:
    storage_0 = alloc_storage(size=16*n, alignment=64, dtype=f32, device=0)
    tanh = alloc_tensor(storage_0, offset=0, shape=(n, 4), dtype=f32)
    invoke tanh(x) -> tanh
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

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
)
from tirlite.graph.types import TensorType
from tirlite.sizes import Size

_INDENT = "    "
_SHOWN = 8  # elements of a constant


def text(routines: Iterable[Routine]) -> str:
    """The text of several routines."""
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
            return f"{top.name}: {TensorType(top.value.shape, top.dtype)} = constant({_elements(top)})"
        case LetSize():
            return f"{top.dim.name} = {top.value}"
        case ReadSize():
            return f"{top.dim.name} = read_size({top.tensor})"
        case InvokeOperator():
            attrs = f", {top.attrs}" if str(top.attrs) else ""
            return f"invoke {top.op}({', '.join(top.args)}{attrs}) -> {', '.join(top.outs)}"
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


def _elements(step: LoadConstant) -> str:
    if step.value.size > _SHOWN:
        return "..."
    return np.array2string(step.value, separator=", ", max_line_width=1000).replace("\n", "")
