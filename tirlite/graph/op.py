"""What an operator of a graph is: its name, operands, attributes, the type and value of its result, its kernel.

All operators are found here by name: those that the modules of `tirlite.graph.operators` declare.
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
    """Attributes of a call: none. Operators that have some take a subclass. Equal by value."""

    def at(self, binding: Mapping[Dim, int]) -> Self:
        """The same attributes with their sizes as integers."""
        return self.mapped(lambda size: evaluate(size, binding))

    def substituted(self, sizes: Mapping[Dim, Size]) -> Self:
        """The same attributes with sizes in the place of dims."""
        return self.mapped(lambda size: substitute(size, sizes))

    @property
    def bits(self) -> tuple[object, ...]:
        """What is equal for the same attributes alone: 0.0 and -0.0 are equal, and do not mean the same."""
        return tuple(_bits(getattr(self, each.name)) for each in fields(self))

    def symbolic_sizes(self) -> list[Size]:
        """The sizes in it that depend on dims."""
        found: list[Size] = []

        def note(size: Poly) -> Size:
            found.append(size)
            return size

        self.mapped(note)
        return found

    def mapped(self, function: Callable[[Poly], Size]) -> Self:
        """The same attributes with what a function makes of each size that depends on dims."""
        changes = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if (made := _mapped(value, function)) is not value:
                changes[each.name] = made
        return replace(self, **changes) if changes else self

    def __str__(self) -> str:
        """Those that differ from their defaults, as in a call: `axis=1, epsilon=1e-05`."""
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
    """Where a type is inferred: the operator's name, the types of its operands, its attributes, and its place.

    What an operator asks of extents, and is not proved, is noted in `demands`, if there are any. The methods that end
    the inference return the error to raise.
    """

    op: str
    args: tuple[Type, ...]
    attrs: Attrs
    name: str = ""
    span: Span | None = None
    demands: Demands | None = None

    def is_equal(self, a: Size, b: Size) -> bool:
        """Whether two extents that must be equal are so: by proof, or because it becomes a demand of each call."""
        return is_equal(a, b) or (self.demands is not None and self.demands.ask(a, b, self, self.span))

    def is_most(self, a: Size, b: Size) -> bool:
        """Whether `a` may be at most `b`: where it need not be, it becomes a demand of each call.

        Of extents that a run finds nothing is demanded of a call: the kernel checks them.
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
        """An axis counted from the front, where negative ones count from the end."""
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
        """For what is not proved of the operands' extents and `sizes`: perhaps as dims of one name are two."""
        extents = (extent for arg in self.args for tensor in tensors(arg) for extent in tensor.shape)
        if (message := contradiction(dim for size in (*extents, *sizes) for dim in dims_of(size))) is not None:
            return GraphError(message.replaced(span=self.span))
        return ShapeUndecided(str(self), why, span=self.span).error()

    def unequal(self, why: str, a: Size, b: Size) -> TirliteError:
        """For two extents that must be equal, and are not proved to be."""
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
# Attributes, whose sizes are integers, and arrays in; an array, or several, out. Elements of half precision come as f32
# and are rounded by the caller; all others come and leave in their own type.
Meaning: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]


def plain(function: Callable[..., Any]) -> Meaning:
    """A NumPy function as the meaning of an operator without attributes."""
    return lambda attrs, *args: np.asarray(function(*args))


@record(eq=False)
class Lowering:
    """How a kernel is made: by a factory, from `first`, the operands' types (None for one that is absent), the results'
    types, and the attributes by keyword, but for those that are `said` by the types.

    The factory is a function, or the name of one in `tirlite.kernels.operators`, which is loaded when it is needed.
    Where each element of the result is made of one of each operand, `formula` makes it of these, widened, and of the
    attributes. Operands broadcast; those of fewer axes have the last ones of the result, or those from `aligned` on,
    which may be an attribute.
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
    """The attributes of a node of ONNX, each with what it is where it is left out."""

    def integer(self, name: str, default: int = 0) -> int: ...
    def flag(self, name: str, default: int = 0) -> bool: ...
    def number(self, name: str, default: float = 0.0) -> float: ...
    def text(self, name: str, default: str = "") -> str: ...

    def axis(self, name: str = "axis", default: int = 0) -> int:
        """An axis of the first operand, counted from the front."""
        ...


@record
class Spelling:
    """What a node of ONNX that is one operator here, operand by operand, is called, and what its attributes become."""

    name: str
    attrs: Callable[[NodeAttributes], Attrs] | None = None
    domain: str = ""


@record(eq=False, repr=False)
class Op:
    """An operator. `rule(site, attrs)` gives the type of its result, or raises one of the errors of `site`.

    It takes from `least` to `most` operands (None: any number) and attributes of the class `attrs`. Its value is that
    of `meaning(attrs, *arrays)`, where there is one, else what its kernel computes. A view gives its operand's bytes
    under another shape. An element-wise operator makes each element of its result from the elements at the same index,
    after broadcasting. One that `overwrites` reads what it needs of its first operand before it writes there.
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
        """The value by NumPy, of an operator that has a meaning of its own."""
        assert self.meaning is not None, f"{self.name} means what its kernel computes"
        return self.meaning(attrs, *arrays)

    def _wanted(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def __reduce__(self) -> tuple[object, ...]:
        # Rules are functions without names of their own.
        return _called, (self.name,)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


def _called(name: str) -> Op:
    """The operator of this name, in a process that may not have loaded it yet."""
    return OPS[name]


@record
class Axis(Attrs):
    """The axis that the operator works along; negative ones count from the end."""

    axis: int = -1


def axis_of(node: NodeAttributes) -> Axis:
    """The attribute `axis` of a node, which is the first one where it is left out."""
    return Axis(node.axis("axis", 0))


@record
class Count(Attrs):
    """The number of elements of the result."""

    count: Size


@record
class Reshape(Attrs):
    """The extents of the result, all of them; `told` are extents that a run finds, and that must be what they are."""

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
    """The operators by name. Their modules, which use the builder, are loaded when the first one is asked for."""

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
    """The operators whose files are not tirlite's own: what depends on these is not kept for later processes."""
    home = Path(import_module(_PACKAGE).__file__ or "").parent
    return frozenset(op for each in _modules() if Path(each.__file__ or "").parent != home for op in _declared(each))


def _declared(module: ModuleType) -> Iterator[Op]:
    """The operators that are members of the classes in a module."""
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            for member in vars(kind).values():
                op = getattr(member, "operator", None)
                if isinstance(op, Op):
                    yield op
