"""A Python value from around a kernel in, what it means inside of it out: constants, types, dims, words, `tl`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType

from tirlite.diag import KernelError, Message, Span, nearest
from tirlite.dsl.parameters import ParamType
from tirlite.dsl.vocabulary import BUILTINS, MATH, NAMES, TL, Namespace, Word, named
from tirlite.ir.dtype import DType, TensorType, bool_, dtype_of
from tirlite.ir.expr import Expr, FloatImm, IntImm


class UnknownName(Message):
    """A name that neither the kernel nor what surrounds it defines.

    Example: `y[i] = scal * x[i]`, where the parameter is called `scale`.
    Fix: Correct the spelling, or define the name before the kernel.
    """

    code = "unknown-name"
    title = "`{name}` is not defined"
    label = "no such name here"
    help = "{advice}"

    name: str
    advice: str


class UnknownWord(Message):
    """A name behind `tl.` that the kernel language does not have.

    Example: `tl.sqroot(x[i])`.
    Fix: Correct the spelling: `tl.sqrt`.
    """

    code = "unknown-word"
    title = "the kernel language has no tl.{name}"
    label = "no such name in tl"
    help = "{advice}"

    name: str
    advice: str


class ForeignValue(Message):
    """A value from around the kernel that is no constant.

    Example: `y[i] = table[i]`, where `table` is a NumPy array from around the kernel.
    Fix: Pass it as a parameter; constants are bools, integers and floats.
    """

    code = "foreign-value"
    title = "`{name}` is {given}, which a kernel cannot use"
    label = "defined outside of the kernel"
    help = "{advice}"

    name: str
    given: str
    advice: str


class NoAttribute(Message):
    """An attribute that does not exist, or not inside a kernel.

    Example: `x.T`, where `x` is a buffer.
    Fix: Buffers have `shape` and `dtype`; write all else as loops or `tl.*`.
    """

    code = "no-attribute"
    title = "`{base}` has no attribute `{name}` in a kernel"
    help = "{advice}"

    base: str
    name: str
    advice: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The names around a kernel, innermost first."""

    layers: Sequence[Mapping[str, object]]

    def has(self, name: str) -> bool:
        return any(name in layer for layer in self.layers)

    def find(self, name: str) -> object | None:
        """The Python value of a name as it is, None also where there is none."""
        return next((layer[name] for layer in self.layers if name in layer), None)

    def value(self, name: str, span: Span, known: Sequence[str] = ()) -> object:
        """What `name` means in the kernel; `known` are names of the kernel itself that may be meant."""
        if self.has(name):
            return meaning(self.find(name), name, span)
        usable = [each for layer in self.layers for each, value in layer.items() if _is_usable(each, value, span)]
        near = nearest(name, [*known, *usable])
        if named(name) is not None:
            advice = f"write tl.{name}"
        else:
            advice = f"did you mean {near}?" if near else "define it before the kernel, or in it"
        raise UnknownName(name, advice, span=span).error()


def member(base: object, base_name: str, name: str, span: Span) -> object:
    """What `base.name` means, of `tl` and of modules."""
    if isinstance(base, Namespace):
        found = named(name)
        if found is None:
            raise UnknownWord(name, _near_word(name), span=span).error()
        return found
    if isinstance(base, ModuleType):
        if not hasattr(base, name):
            raise NoAttribute(base_name, name, "the module does not define it", span=span).error()
        return meaning(getattr(base, name), f"{base_name}.{name}", span)
    advice = "buffers have `.shape[i]` with a constant i; all else is written as in `tl.sqrt(x)`"
    raise NoAttribute(base_name, name, advice, span=span).error()


def _near_word(name: str) -> str:
    if name in ("min", "max", "range"):
        return f"write {name}(...), as in Python"
    near = nearest(name, NAMES)
    return (
        f"did you mean {near.replace('`', '`tl.', 1)}?"
        if near and "," not in near
        else (f"did you mean one of {near}?" if near else "its names are listed in the language guide")
    )


def is_tl(value: object) -> bool:
    """Whether `value` is `tl`: the package itself, or what stands for it in text."""
    return isinstance(value, Namespace) or (isinstance(value, ModuleType) and value.__name__ == "tirlite")


def meaning(value: object, name: str, span: Span) -> object:
    """What a Python value means in a kernel. Raises ForeignValue where it means nothing."""
    if isinstance(value, (Expr, DType, TensorType, ParamType, Word, Namespace, str)):
        return value
    if isinstance(value, ModuleType):
        return TL if is_tl(value) else value
    if callable(value):
        known = _callable_meaning(value)
        if known is not None:
            return known
    number = _number(value)
    if number is None:
        raise ForeignValue(name, _described(value), _advice(value, name), span=span).error()
    return number


def _is_usable(name: str, value: object, span: Span) -> bool:
    """Whether a kernel can do something with a name from around it: few of Python's builtins are of use to it."""
    try:
        meaning(value, name, span)
    except KernelError:
        return False
    return not name.startswith("__")


def _callable_meaning(value: object) -> object | None:
    try:
        known = BUILTINS.get(value)
    except TypeError:  # not hashable
        return None
    if known is None and isinstance(value, type) and value.__module__ == "numpy":
        return _numpy_type(value)
    if known is None and getattr(value, "__module__", "").startswith("tirlite."):
        return named(getattr(value, "__name__", ""))
    return known


def _number(value: object) -> object | None:
    """A constant: Python's numbers are weak, those of NumPy have their type."""
    if type(value).__module__ == "numpy":
        return _numpy_number(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else None


def _numpy_number(value: object) -> object | None:
    import numpy as np

    if not isinstance(value, (np.number, np.bool)):
        return None
    dtype = _numpy_type(value.dtype.type)
    if dtype is None:
        return None
    return FloatImm(dtype, float(value)) if dtype.is_float else IntImm(dtype, int(value))


def _numpy_type(kind: type) -> DType | None:
    name = kind.__name__
    return bool_ if name == "bool" else dtype_of(_SHORT.sub(lambda prefix: prefix[0][0], name))


_SHORT = re.compile("^(int|uint|float)(?=[0-9])")


def _described(value: object) -> str:
    if isinstance(value, type):
        return "a Python class"
    if callable(value):
        return "a Python function"
    kind = type(value).__name__
    return f"a value of type {kind}" if value is not None else "None"


def _advice(value: object, name: str) -> str:
    last = name.rpartition(".")[2]
    if last in MATH or last in ("fabs", "absolute"):
        return f"write tl.{last if last in MATH else 'abs'}"
    if callable(value):
        return "a kernel calls nothing but tl.*, min, max, abs, range and types; write the computation in the kernel"
    if type(value).__module__ == "numpy":
        return "arrays come in as parameters: give the kernel one more"
    return "constants are bools, integers and floats, of Python or NumPy; all else comes in as a parameter"
