"""One node of a model, as the importers of operators see it: its operands are values of the graph already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np

from tirlite.diag import Span
from tirlite.graph.expr import Constant, Expr
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.narrow import NarrowType, NarrowValue
from tirlite.graph.types import Array, bfloat_values
from tirlite.ir import DType
from tirlite.record import record
from tirlite.sizes import Size

# The errors of Python and NumPy if operands and attributes contradict each other; importers do not check that first.
MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def reason_of(error: BaseException) -> str:
    """The first line of an error's message, or its class."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


class Unsupported(Exception):  # it says why a node has no counterpart; the user never sees it
    """Why a node cannot become a part of a graph."""


@record(eq=False)
class Subgraph:
    """A graph that is an attribute: of an If, a Loop, a Scan. `proto` is a GraphProto."""

    proto: Any


@record(eq=False)
class OnnxNode:
    """A node: its operator, the opset version, operands and attributes.

    An omitted operand is None. Tensors among the attributes are constants. `asked` has the numbers of the operands and
    the names of the attributes that were read.
    """

    op: str
    domain: str
    version: int
    name: str
    operands: tuple[Expr | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object]
    span: Span | None
    proto: Any = None
    kinds: tuple[NarrowType | None, ...] = ()
    asked: set[int | str] = field(default_factory=set)

    @property
    def given(self) -> list[Expr | NarrowValue | None]:
        """The operands, those of narrow types included."""
        kinds = self.kinds or (None,) * len(self.operands)
        return [
            each if each is None or kind is None else NarrowValue(each, kind)
            for each, kind in zip(self.operands, kinds, strict=True)
        ]

    def kind(self, number: int) -> NarrowType | None:
        """The narrow type of an operand's elements, or None if it is not narrow."""
        return self.kinds[number] if number < len(self.kinds) else None

    def has(self, number: int) -> bool:
        """Whether this operand is not omitted."""
        return self.maybe(number) is not None

    def wants(self, number: int) -> bool:
        """Whether this result is used: it has a name."""
        return number < len(self.outputs) and bool(self.outputs[number])

    def maybe(self, number: int) -> Expr | None:
        """An operand, or None if it is omitted."""
        self.asked.add(number)
        return self.operands[number] if number < len(self.operands) else None

    def x(self, number: int) -> Expr:
        """An operand. Raises Unsupported if it is omitted."""
        found = self.maybe(number)
        if found is None:
            raise Unsupported(f"input {number} is left out")
        return found

    @property
    def first(self) -> Expr:
        return self.x(0)

    def all(self) -> list[Expr]:
        return [self.x(number) for number in range(len(self.operands))]

    def integer(self, name: str, default: int = 0) -> int:
        return int(self._of(name, default, int))

    def flag(self, name: str, default: int = 0) -> bool:
        return bool(self._of(name, default, int))

    def number(self, name: str, default: float = 0.0) -> float:
        return float(self._of(name, default, float))

    def text(self, name: str, default: str = "") -> str:
        return str(self._of(name, default, str))

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, or None."""
        return tuple(self._of(name, (), tuple)) if name in self.attributes else None

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """A list of floats, or None."""
        return tuple(self._of(name, (), tuple)) if name in self.attributes else None

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, or None."""
        return tuple(self._of(name, (), tuple)) if name in self.attributes else None

    def body(self, name: str) -> Subgraph:
        """A graph."""
        found = self.attributes.get(name)
        if not isinstance(found, Subgraph):
            raise Unsupported(f"attribute `{name}` is not a graph")
        return found

    def check_asked(self) -> None:
        """Raises Unsupported if the node has an operand, or an attribute other than the default, that was not read."""
        passed = [f"input {number}" for number, each in enumerate(self.operands) if each and number not in self.asked]
        passed += [f"`{name}`" for name, value in self.attributes.items() if value and name not in self.asked]
        if passed:
            raise Unsupported(f"{passed[0]} is not read here")

    def _of(self, name: str, default: Any, kind: type) -> Any:
        self.asked.add(name)
        found = self.attributes.get(name, default)
        if not isinstance(found, kind):
            raise Unsupported(f"attribute `{name}` is {found!r}")
        return found

    def sizes(self, number: int) -> tuple[Size, ...]:
        """The elements of an integer operand as sizes over the model's dims; a scalar gives one."""
        found = contents(self.x(number))
        if found is None:
            raise Unsupported(f"input {number} is computed from data, and must be known from the shapes")
        return tuple(found.reshape(-1).tolist())

    def known(self, number: int) -> tuple[int, ...]:
        """The elements of an integer operand without dims."""
        found = self.sizes(number)
        whole = tuple(each for each in found if isinstance(each, int))
        if len(whole) != len(found):
            raise Unsupported(f"input {number} depends on dims, and must be known")
        return whole

    def array(self, number: int) -> Array:
        """The elements of a constant operand."""
        found = self.x(number)
        if not isinstance(found, Constant):
            raise Unsupported(f"input {number} must be constant")
        return wide(found)

    def maybe_array(self, number: int) -> Array | None:
        """As `array`; None if the operand is omitted."""
        return self.array(number) if self.has(number) else None

    @property
    def dtype(self) -> DType:
        """The element type of the first operand."""
        return self.first.dtype

    @property
    def rank(self) -> int:
        """The number of axes of the first operand."""
        return self.first.tensor.rank

    def axis(self, name: str = "axis", default: int = 0, *, rank: int | None = None) -> int:
        """An axis of the first operand, counted from the front."""
        return axis_of(self.integer(name, default), self.rank if rank is None else rank)


# Operators that only move elements: their first operands and their results have one element type.
_MOVERS = frozenset(
    {
        *("Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape"),
        *("Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    }
)
# Operators whose importers look at the types of their operands.
_READERS = frozenset(
    {
        *("BitCast", "Cast", "CastLike", "Constant", "DequantizeLinear", "GatherBlockQuantized", "QuantizeLinear"),
        *("Shape", "Size"),
    }
)


def narrow_kind(node: OnnxNode) -> NarrowType | None:
    """The narrow type of the elements that a node moves, or None.

    Raises Unsupported for an operator that computes with elements of such a type.
    """
    kinds = [kind for kind in node.kinds if kind is not None]
    if not kinds or node.op in _READERS:
        return None
    are_alike = all(kind == kinds[0] for kind in (node.kinds if node.op == "Concat" else node.kinds[:1]))
    if node.domain or node.op not in _MOVERS or not are_alike:
        raise Unsupported(f"elements of {kinds[0].name} are moved and cast here, and no operator computes with them")
    return kinds[0]


def axis_of(axis: int, rank: int) -> int:
    """The axis counted from the front. Raises Unsupported if it does not exist."""
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} does not exist in {rank} axes")
    return axis % rank


def wide(constant: Constant) -> Array:
    """The elements of a constant as a NumPy array; bfloat16 as f32."""
    if constant.dtype.stored == np.uint16 and constant.dtype.is_float:
        return bfloat_values(constant.value)
    return constant.value
