"""Random numbers in, parts of a model with one node out: shapes, arrays, and the node with what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray
FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int32", "int64", "int8", "int16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS


def numpy_type(name: str) -> np.dtype[Any]:
    """The element type of this name; bfloat16 is none of NumPy's own."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@dataclass(frozen=True)
class Sample:
    """A node, the arrays that a call is given, and those that stand in the model."""

    node: onnx.NodeProto
    given: Mapping[str, Array]
    fixed: Mapping[str, Array]
    opset: int
    symbolic: bool = False

    @property
    def outputs(self) -> list[str]:
        return [name for name in self.node.output if name]

    def model(self) -> onnx.ModelProto:
        """The model; where the sample is symbolic, equal extents above 1 are one dim."""
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), self._shape(each))
            for name, each in self.given.items()
        ]
        fixed = [numpy_helper.from_array(each, name) for name, each in self.fixed.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = helper.make_graph([self.node], "net", inputs, outputs, fixed)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    def _shape(self, array: Array) -> list[int | str]:
        return [f"d{extent}" if self.symbolic and extent > 1 else extent for extent in array.shape]

    def __str__(self) -> str:
        attributes = ", ".join(f"{each.name}={_shown(each)}" for each in self.node.attribute)
        given = ", ".join(f"{name}: {each.dtype}{list(each.shape)}" for name, each in self.given.items())
        fixed = ", ".join(f"{name} = {np.array2string(each, threshold=12)}" for name, each in self.fixed.items())
        how = " symbolic" if self.symbolic else ""
        operands = ", ".join(self.node.input)
        return f"{self.node.op_type}({operands}; {attributes}) at {self.opset}{how}; {given}; {fixed}"


def _shown(attribute: onnx.AttributeProto) -> str:
    value = helper.get_attribute_value(attribute)
    return "graph" if isinstance(value, onnx.GraphProto) else str(value)


class Draw:
    """What is random in a sample. `opset` is the version of its operators."""

    def __init__(self, seed: int, newest: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = newest if self.chance(0.35) else self.between(7, newest)

    def chance(self, part: float = 0.5) -> bool:
        return bool(self.rng.random() < part)

    def between(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return int(self.rng.integers(low, high + 1))

    def of(self, choices: Sequence[Any]) -> Any:
        return choices[self.between(0, len(choices) - 1)]

    def some(self, choices: Sequence[Any], least: int = 1) -> list[Any]:
        """Some of the choices, each once, in any order."""
        count = self.between(min(least, len(choices)), len(choices))
        return [choices[int(each)] for each in self.rng.permutation(len(choices))[:count]]

    def shape(self, low: int = 0, high: int = 4, *, empty: float = 0.03, most: int = 5) -> tuple[int, ...]:
        return tuple(0 if self.chance(empty) else self.between(1, most) for _ in range(self.between(low, high)))

    def axis(self, rank: int) -> int:
        return self.between(-rank, rank - 1)

    def array(self, shape: Sequence[int], dtype: str = "float32", scale: float = 2.0) -> Array:
        kind = numpy_type(dtype)
        if dtype == "bool":
            return np.asarray(self.rng.random(tuple(shape)) < 0.5)
        if dtype in FLOATS:
            values = np.asarray(self.rng.standard_normal(tuple(shape)) * scale)
            if self.chance(0.15):
                values = np.asarray(np.round(values))
            return np.asarray(values.astype(kind))
        low = -9 if dtype in SIGNED else 0
        return np.asarray(self.rng.integers(low, 10, tuple(shape)), kind)

    def broadcast(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts to this one."""
        kept = shape[self.between(0, len(shape)) if self.chance(0.3) else 0 :]
        return tuple(1 if self.chance(0.3) else extent for extent in kept)

    def dtype(self, names: Sequence[str] = FLOATS) -> str:
        """One of the types, the first more often."""
        return str(names[0] if self.chance(0.5) else self.of(names))

    def sample(
        self, op: str, operands: Sequence[Array | None], *, fixed: Sequence[int] = (), outputs: int = 1, **attrs: Any
    ) -> Sample:
        """The node with these operands, of which those at the places in `fixed` stand in the model."""
        names = ["" if each is None else f"x{place}" for place, each in enumerate(operands)]
        while names and not names[-1]:
            names.pop()
        places = {place % len(operands) for place in fixed}
        parts: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
        for place, each in enumerate(operands):
            if each is not None:
                parts[place in places][f"x{place}"] = each
        kept = {name: value for name, value in attrs.items() if value is not None and value != []}
        node = helper.make_node(op, names, [f"y{number}" for number in range(outputs)], **kept)
        return Sample(node, *parts, self.opset, self.chance(0.25))
