"""Defines an operator of graphs: its name, operands, attributes, type rule, NumPy value and kernel.

`OPS` maps names to all operators that the modules of `tirlite.graph.operators` declare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import GraphError, GraphMessage, Span, TirliteError
from tirlite.graph.demands import Demands, proof_of_most
from tirlite.graph.extents import Shape, is_equal
from tirlite.graph.run_dims import run_dims
from tirlite.graph.types import TensorType, Type, tensors
from tirlite.ir import DType, PrimFunc, i64
from tirlite.record import record, replace
from tirlite.sizes import Dim, Poly, Proof, Size, dims_of, evaluate, prove_eq, substitute
from tirlite.sizes.dim import contradiction


class OperandCount(GraphMessage):
    """An operator was given too few or too many operands.

    Example: `Call(OPS["add"], (x,))`.
    Fix: Give it the number of operands that the message says.
    """

    title = "`{call}`: `{op}` takes {wanted} operands, here are {given}"


class ShapeMismatch(GraphMessage):
    """The shapes of operands do not go together.

    Example: `g.add(x, y)` of `f32[2, 3]` and `f32[2, 4]`.
    Fix: Reshape, transpose or broadcast one of them, as the message says what was wanted.
    """

    code = "graph-shape-mismatch"
    title = "`{call}`: {why}"
    label = "here"


class ShapeUndecided(GraphMessage):
    """Whether the shapes of operands go together depends on dims about which too little is known.

    Example: `g.add(x, y)` of `f32[n, 3]` and `f32[m, 3]`.
    """

    code = "graph-shape-undecided"
    title = "`{call}`: {why}"
    label = "this depends on the dims"
    help = (
        "use one dim for extents that are equal, or declare facts about dims: `tl.dim(name, min=, max=, multiple_of=)`"
    )


class OperandType(GraphMessage):
    """An operand has an element type that the operator does not take, or is not a tensor.

    Example: `g.add(x, y)` of `f32[4]` and `i64[4]`.
    Fix: Convert an operand: `g.cast(y, tl.f32)`.
    """

    code = "graph-operand-type"
    title = "`{call}`: {why}"
    label = "here"
    help = "`g.cast(x, dtype)` converts"


class BadAttribute(GraphMessage):
    """An attribute of an operator has a value that makes no sense for these operands.

    Example: `g.softmax(x, axis=2)` of a matrix.
    Fix: Give a value as the message says.
    """

    code = "graph-bad-attribute"
    title = "`{call}`: {why}"
    label = "here"


@record
class Attrs:
    """The attributes of a call: none. Operators with attributes use a subclass. Equal by value."""

    def at(self, binding: Mapping[Dim, int]) -> Self:
        """The same attributes with their sizes evaluated to integers."""
        return self.mapped(lambda size: evaluate(size, binding))

    def substituted(self, sizes: Mapping[Dim, Size]) -> Self:
        """The same attributes with dims replaced by sizes."""
        return self.mapped(lambda size: substitute(size, sizes))

    @property
    def bits(self) -> tuple[object, ...]:
        """A key for equality by bits: unlike `==`, it tells 0.0 from -0.0."""
        return tuple(_bits(getattr(self, each.name)) for each in fields(self))

    def symbolic_sizes(self) -> list[Size]:
        """The sizes among the attributes that depend on dims."""
        found: list[Size] = []

        def note(size: Poly) -> Size:
            found.append(size)
            return size

        self.mapped(note)
        return found

    def mapped(self, function: Callable[[Poly], Size]) -> Self:
        """The same attributes with `function` applied to each size that depends on dims."""
        changes = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if (made := _mapped(value, function)) is not value:
                changes[each.name] = made
        return replace(self, **changes) if changes else self

    def __str__(self) -> str:
        """The attributes that differ from their defaults, as in a call: `axis=1, epsilon=1e-05`."""
        parts = []
        for each in fields(self):
            value = getattr(self, each.name)
            if each.default is MISSING or value != each.default or _bits(value) == _MINUS_ZERO:
                parts.append(f"{each.name}={_text(value)}")
        return ", ".join(parts)


def _mapped(value: object, function: Callable[[Poly], Size]) -> object:
    if isinstance(value, Poly):
        return function(value)
    if isinstance(value, tuple):
        made = tuple(_mapped(each, function) for each in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    return value


def _bits(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_bits, value))
    return value.hex() if isinstance(value, float) else value


_MINUS_ZERO = _bits(-0.0)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    return str(value) if isinstance(value, Poly | DType) else repr(value)


@record
class Site:
    """A call whose type is inferred: the operator's name, the operands' types, the attributes and the source span.

    If `demands` is given, conditions on extents that are not proved are added to it, to be checked at each call.
    `mismatch`, `undecided`, `unequal`, `wrong_type` and `bad_attribute` return the error to raise.
    """

    op: str
    args: tuple[Type, ...]
    attrs: Attrs
    name: str = ""
    span: Span | None = None
    demands: Demands | None = None

    def is_equal(self, a: Size, b: Size) -> bool:
        """Whether two extents are proved equal, or their equality becomes a demand checked at each call."""
        return is_equal(a, b) or (self.demands is not None and self.demands.ask(a, b, self, self.span))

    def is_most(self, a: Size, b: Size) -> bool:
        """False only if `a <= b` is proved wrong; if unknown, it becomes a demand checked at each call.

        Extents that are only known during a run are checked by the kernel instead.
        """
        found = proof_of_most(a, b)
        if found is Proof.UNKNOWN and self.demands is not None and not run_dims((a, b)):
            self.demands.assume(a, b, self, self.span, is_most=True)
        return found is not Proof.NO

    def tensor(self, number: int) -> TensorType:
        """The type of an operand, which must be a tensor."""
        given = self.args[number]
        if not isinstance(given, TensorType):
            raise self.wrong_type(f"operand {number} is a tuple, and must be a tensor")
        return given

    def tensors(self) -> tuple[TensorType, ...]:
        """The types of all operands, which must be tensors."""
        return tuple(self.tensor(number) for number in range(len(self.args)))

    def same_dtype(self) -> DType:
        """The element type that all operands share."""
        first, *rest = self.tensors()
        for number, each in enumerate(rest, 1):
            if each.dtype != first.dtype:
                raise self.wrong_type(f"operand {number} has elements {each.dtype}, operand 0 {first.dtype}")
        return first.dtype

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front; a negative `axis` counts from the end."""
        if not -rank <= axis < rank:
            raise self.bad_attribute(f"axis {axis} does not exist in {rank} axes")
        return axis % rank

    def axes(self, axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """Several axes counted from the front, in order, each once."""
        found = sorted(self.axis(axis, rank) for axis in axes)
        if len(set(found)) != len(found):
            raise self.bad_attribute(f"an axis stands twice in {axes}")
        return tuple(found)

    def mismatch(self, why: str) -> TirliteError:
        return ShapeMismatch(str(self), why, span=self.span).error()

    def undecided(self, why: str, *sizes: Size) -> TirliteError:
        """The error for an unproved condition on the operands' extents and `sizes`.

        If two different dims share one name, which is often the cause, the error says that instead.
        """
        extents = (extent for arg in self.args for tensor in tensors(arg) for extent in tensor.shape)
        if (message := contradiction(dim for size in (*extents, *sizes) for dim in dims_of(size))) is not None:
            return GraphError(message.replaced(span=self.span))
        return ShapeUndecided(str(self), why, span=self.span).error()

    def unequal(self, why: str, a: Size, b: Size) -> TirliteError:
        """The error for two extents that must be equal and are not proved to be."""
        if prove_eq(a, b) is Proof.NO:
            return self.mismatch(why)
        return self.undecided(f"{why}: are they equal?", a, b)

    def wrong_type(self, why: str) -> TirliteError:
        return OperandType(str(self), why, span=self.span).error()

    def bad_attribute(self, why: str) -> TirliteError:
        return BadAttribute(str(self), why, span=self.span).error()

    def __str__(self) -> str:
        name = f"{self.name} = " if self.name else ""
        return f"{name}{self.op}({', '.join([*map(str, self.args), *filter(None, [str(self.attrs)])])})"


Array: TypeAlias = npt.NDArray[Any]
# Receives attributes, with all sizes as integers, and arrays; returns one array or several. Half-precision elements are
# passed and returned as f32, and the caller rounds them; all others have their own type.
Meaning: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]


def plain(function: Callable[..., Any]) -> Meaning:
    """A NumPy function as the meaning of an operator without attributes."""
    return lambda attrs, *args: np.asarray(function(*args))


@record(eq=False)
class Lowering:
    """How an operator's kernel is made: by calling a factory.

    factory: a function, or "module.function" in `tirlite.kernels.operators`, imported when needed. Its arguments are
        `first`, the operands' types (None if absent), the results' types, and the attributes by keyword.
    said: the attributes that are not passed, since the types imply them.
    formula: of an elementwise operator, computes a result element from the widened operand elements and the attributes.
    aligned: the axis of the result, or the attribute with it, where broadcast operands' axes begin; default: the last.
    """

    factory: str | Callable[..., PrimFunc]
    first: tuple[object, ...] = ()
    said: tuple[str, ...] = ()
    formula: Callable[..., Any] | None = None
    aligned: int | str | None = None

    def make(self) -> Callable[..., PrimFunc]:
        """The factory."""
        if not isinstance(self.factory, str):
            return self.factory
        module, name = self.factory.split(".")
        found: Callable[..., PrimFunc] = getattr(import_module(f"tirlite.kernels.operators.{module}"), name)
        return found


class NodeAttributes(Protocol):
    """The attributes of an ONNX node, each read with the default that applies if it is absent."""

    def integer(self, name: str, default: int = 0) -> int: ...
    def flag(self, name: str, default: int = 0) -> bool: ...
    def number(self, name: str, default: float = 0.0) -> float: ...
    def text(self, name: str, default: str = "") -> str: ...

    def axis(self, name: str = "axis", default: int = 0) -> int:
        """An axis of the first operand, counted from the front."""
        ...


@record
class Spelling:
    """The ONNX operator with the same operands as an operator here: its name, and how its attributes are translated."""

    name: str
    attrs: Callable[[NodeAttributes], Attrs] | None = None
    domain: str = ""


@record(eq=False, repr=False)
class Op:
    """An operator.

    rule: `rule(site, attrs)` returns the type of the result, or raises one of the errors of `site`.
    least, most: the number of operands; `most` of None means any number.
    attrs: the class of its attributes.
    is_view: the result is the operand's bytes under another shape.
    is_elementwise: each result element depends only on the operands' elements at the same index, after broadcasting.
    overwrites: the result may share the first operand's memory: elements are read before they are overwritten.
    meaning: `meaning(attrs, *arrays)` is its value by NumPy; without one its kernel defines the value.
    """

    name: str
    rule: Callable[..., Type]
    least: int = 1
    most: int | None = 1
    attrs: type[Attrs] = Attrs
    is_view: bool = False
    is_elementwise: bool = False
    overwrites: bool = False
    meaning: Meaning | None = None
    lowering: Lowering | None = None
    onnx: Spelling | None = None
    method: Callable[..., Any] | None = None

    def infer(self, site: Site) -> Type:
        """The type of the result."""
        count = len(site.args)
        if count < self.least or (self.most is not None and count > self.most):
            raise OperandCount(str(site), self.name, self._wanted(), count, span=site.span).error()
        if type(site.attrs) is not self.attrs:
            raise site.bad_attribute(f"attributes are {type(site.attrs).__name__}, wanted {self.attrs.__name__}")
        return self.rule(site, site.attrs)

    def means(self, attrs: Attrs, *arrays: Any) -> Any:
        """The value by NumPy, for an operator that has a `meaning`."""
        assert self.meaning is not None, f"{self.name} means what its kernel computes"
        return self.meaning(attrs, *arrays)

    def _wanted(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled by name, since rules are local functions and lambdas.
        return _called, (self.name,)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def _called(name: str) -> Op:
    """The operator of this name; unpickling may be what first loads the operators in a process."""
    return OPS[name]


@record
class Axis(Attrs):
    """The axis that the operator works along; negative ones count from the end."""

    axis: int = -1


def axis_of(node: NodeAttributes) -> Axis:
    """The attribute `axis` of a node, by default 0."""
    return Axis(node.axis("axis", 0))


@record
class Count(Attrs):
    """The number of elements of the result."""

    count: Size


@record
class Reshape(Attrs):
    """All extents of the result; `told` are run-time extents, which must equal those given."""

    shape: Shape
    told: Shape = ()


@record
class Sizes(Attrs):
    """The elements of the result in order, its extents, and its element type."""

    elements: tuple[Size, ...]
    extents: Shape
    dtype: DType = i64


_PACKAGE = "tirlite.graph.operators"


class _Operators(Mapping[str, Op]):
    """The operators by name. Their modules import the builder, so they are imported on the first lookup."""

    def __getitem__(self, name: str) -> Op:
        return _found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_found())

    def __len__(self) -> int:
        return len(_found())


OPS: Mapping[str, Op] = _Operators()


def _modules() -> Iterator[ModuleType]:
    for each in iter_modules(import_module(_PACKAGE).__path__):
        yield import_module(f"{_PACKAGE}.{each.name}")


@cache
def _found() -> dict[str, Op]:
    ops = [op for module in _modules() for op in _declared(module)]
    found = {op.name: op for op in ops}
    assert len(found) == len(ops), "an operator stands twice"
    return found


@cache
def ops_from_elsewhere() -> frozenset[Op]:
    """The operators declared outside of tirlite's files: graphs that use them are not cached for later processes."""
    home = Path(import_module(_PACKAGE).__file__ or "").parent
    return frozenset(op for each in _modules() if Path(each.__file__ or "").parent != home for op in _declared(each))


def _declared(module: ModuleType) -> Iterator[Op]:
    """The operators that are members of the module's classes."""
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            for member in vars(kind).values():
                op = getattr(member, "operator", None)
                if isinstance(op, Op):
                    yield op
