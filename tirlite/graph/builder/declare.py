"""Declares operators as methods of a builder: in a class of calls, each member that is one is found by `OPS`."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, Generic, Protocol, TypeVar, overload

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call
from tirlite.graph.op import Attrs, Lowering, Meaning, Op, Spelling, plain
from tirlite.graph.types import Type

F = TypeVar("F", bound=Callable[..., object])
Rule = Callable[..., Type]
Formula = Callable[..., object]


def operator(
    rule: Rule,
    meaning: Meaning | None = None,
    lowering: Lowering | str | None = None,
    *,
    least: int = 1,
    most: int | None = -1,
    attrs: type[Attrs] = Attrs,
    is_view: bool = False,
    is_elementwise: bool = False,
    overwrites: bool = False,
    onnx: Spelling | None = None,
) -> Callable[[F], F]:
    """Makes a method the operator of its name, which it calls; `most` operands are as many as `least` if not given."""
    made = Lowering(lowering) if isinstance(lowering, str) else lowering

    def declared(method: F) -> F:
        method.operator = Op(  # type: ignore[attr-defined]
            method.__name__,
            rule,
            least,
            least if most == -1 else most,
            attrs,
            is_view,
            is_elementwise,
            overwrites,
            meaning,
            made,
            onnx,
            method,
        )
        return method

    return declared


M = TypeVar("M")


class Member(Generic[M]):
    """An operator of a family, as a member of a builder's class: a method, made when it gets its name."""

    def __init__(
        self, doc: str, method: Callable[[str], Callable[..., object]], declare: Callable[[str], Callable[[Any], Any]]
    ) -> None:
        self._doc, self._make, self._declare = doc, method, declare

    def __set_name__(self, owner: type, name: str) -> None:
        method = self._make(name)
        method.__name__, method.__qualname__, method.__doc__ = name, f"{owner.__qualname__}.{name}", self._doc
        self._method = self._declare(name)(method)
        self.operator: Op = self._method.operator

    @overload
    def __get__(self, builder: None, owner: type) -> Callable[..., Call]: ...

    @overload
    def __get__(self, builder: CallBuilder, owner: type) -> M: ...

    def __get__(self, builder: CallBuilder | None, owner: type) -> object:
        return self._method if builder is None else MethodType(self._method, builder)


class OfOne(Protocol):
    """A method that takes one operand."""

    def __call__(self, x: Operand) -> Call: ...


class OfTwo(Protocol):
    """A method that takes two operands."""

    def __call__(self, x: Operand, y: Operand) -> Call: ...


def formula(name: str, of: Formula) -> Lowering:
    """The kernel of an element-wise operator: this formula, an expression of expressions, at each element."""
    return Lowering("elementwise.elementwise", (name, of), formula=of)


def unary(doc: str, rule: Rule, value: Formula, kernel: Formula, onnx: str = "") -> Member[OfOne]:
    """An operator of one operand: what it gives, its rule, its NumPy function, its formula, and its name in ONNX."""

    def method(name: str) -> Callable[[CallBuilder, Operand], Call]:
        def one(self: CallBuilder, x: Operand) -> Call:
            return self.call(name, x)

        return one

    return Member(doc, method, _elementwise(rule, value, kernel, onnx, 1))


def binary(doc: str, rule: Rule, value: Formula, kernel: Formula, onnx: str = "") -> Member[OfTwo]:
    """As `unary`, of two operands that broadcast."""

    def method(name: str) -> Callable[[CallBuilder, Operand, Operand], Call]:
        def two(self: CallBuilder, x: Operand, y: Operand) -> Call:
            return self.call(name, x, y)

        return two

    return Member(doc, method, _elementwise(rule, value, kernel, onnx, 2))


def _elementwise(
    rule: Rule, value: Formula, kernel: Formula, onnx: str, least: int
) -> Callable[[str], Callable[[F], F]]:
    spelling = Spelling(onnx) if onnx else None
    return lambda name: operator(
        rule, plain(value), formula(name, kernel), least=least, is_elementwise=True, onnx=spelling
    )
