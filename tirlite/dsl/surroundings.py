"""The meaning of Python values from around a kernel: constants, types, dims, words, `tl`."""

from __future__ import annotations

import builtins
from _ctypes import CFuncPtr
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

from tirlite.diag import KernelError, Message, Span, nearest
from tirlite.dsl.inline import Inline
from tirlite.dsl.lookups import ABSENT, Asked, Lookups, layers_of, looked_up
from tirlite.dsl.parameters import ParamType
from tirlite.dsl.vocabulary import BUILTINS, MATH, NAMES, TL, Namespace, Word, named
from tirlite.ir.dtype import DType, TensorType, bool_, dtype_of
from tirlite.ir.expr import Expr, FloatImm, IntImm, Var
from tirlite.ir.func import PrimFunc
from tirlite.late import LateModule
from tirlite.record import record
from tirlite.sizes import Dim, Poly
from tirlite.sizes.poly import is_of_sympy

if TYPE_CHECKING:
    from tirlite.dsl import foreign_names
else:
    foreign_names = LateModule("tirlite.dsl.foreign_names")


class UnknownName(Message):
    """A name that neither the kernel nor what surrounds it defines.

    Example: `y[i] = scal * x[i]`, where the parameter is called `scale`.
    Fix: Correct the spelling, or define the name before the kernel.
    """

    title = "`{name}` is not defined"
    label = "no such name here"
    help = "{advice}"


class UnknownWord(Message):
    """A name after `tl.` that the kernel language does not have.

    Example: `tl.sqroot(x[i])`.
    Fix: Correct the spelling: `tl.sqrt`.
    """

    title = "the kernel language has no tl.{name}"
    label = "no such name in tl"
    help = "{advice}"


class ForeignValue(Message):
    """A value from around the kernel that is not a constant.

    Example: `y[i] = table[i]`, where `table` is a NumPy array from around the kernel.
    Fix: Pass it as a parameter; constants are bools, integers and floats.
    """

    title = "`{name}` is {given}, which a kernel cannot use"
    label = "defined outside of the kernel"
    help = "{advice}"


class NoAttribute(Message):
    """An attribute that does not exist, or not inside a kernel.

    Example: `x.T`, where `x` is a buffer.
    Fix: Buffers have `shape` and `dtype`; write all else as loops or `tl.*`.
    """

    title = "`{base}` has no attribute `{name}` in a kernel"
    help = "{advice}"


@record
class Surroundings:
    """The names around a kernel, innermost layer first; `own` is the kernel's name.
    `captures`: collects the constants looked up, with `prefix` before their names. `executes`: Python code may be
    evaluated, which is so for a Python `function`, never for text. `lookups`: records what is looked up.
    """

    layers: tuple[Mapping[str, object], ...]
    captures: dict[str, object] = field(default_factory=dict)
    prefix: str = ""
    function: Callable[..., object] | None = None
    own: str = ""
    lookups: Lookups = field(default_factory=Lookups)

    @property
    def executes(self) -> bool:
        return self.function is not None

    def of_kernel(self, name: str) -> Surroundings:
        """The same surroundings for the kernel of this name."""
        return Surroundings(self.layers, self.captures, self.prefix, self.function, name, self.lookups)

    def _look(self, name: str, asked: int) -> object:
        found = looked_up(name, self.layers)
        if self.function is not None:
            self.lookups.note(self.function, name, asked, found)
        return found

    def has(self, name: str) -> bool:
        return self._look(name, Asked.PRESENCE) is not ABSENT

    def find(self, name: str) -> object | None:
        """The Python value of a name; None if it does not exist."""
        found = self._look(name, Asked.VALUE)
        return None if found is ABSENT else found

    def attribute(self, module: ModuleType, name: str) -> object | None:
        """The value of a module's attribute; None if it does not exist."""
        found = getattr(module, name, ABSENT)
        self.lookups.members[module.__name__, name] = found
        return None if found is ABSENT else found

    def has_dim(self, name: str) -> bool:
        """Whether `name` is a dim, which a kernel cannot assign."""
        found = self._look(name, Asked.DIM)
        return isinstance(found, Dim) or is_of_sympy(found) or (isinstance(found, Var) and found.dim is not None)

    def value(self, name: str, span: Span, known: Iterable[str] = ()) -> object:
        """The meaning of `name` in the kernel; `known` are the kernel's own names, for suggestions."""
        found = self._present(name, span, known)
        made = meaning(found, name, span)
        self.note(name, found)
        return made

    def raw(self, name: str, span: Span, known: Iterable[str] = ()) -> object:
        """The Python value of `name`, for an expression that Python evaluates."""
        self.lookups.is_open = True
        found = self._present(name, span, known)
        self.note(name, found)
        return found

    def _present(self, name: str, span: Span, known: Iterable[str]) -> object:
        found = self._look(name, Asked.VALUE)
        if found is ABSENT:
            raise self.unknown(name, span, known)
        return found

    def note(self, name: str, value: object) -> None:
        """Records a captured constant."""
        if is_captured(value):
            self.captures.setdefault(self.prefix + name, value)

    def unknown(self, name: str, span: Span, known: Iterable[str]) -> Exception:
        """The error for an undefined name."""
        usable = [each for layer in self.layers for each, value in layer.items() if _is_usable(each, value, span)]
        # Suggest similar names of the kernel first, then those around it.
        near = nearest(name, [*known]) or (not foreign_names.advice_on(name) and nearest(name, [*known, *usable]))
        if name == self.own:
            advice = "a kernel cannot call itself: write a loop, or a function under @tl.inline that tl.static ends"
        elif named(name) is not None:
            advice = foreign_names.advice_on(name) or f"write tl.{name}"
        elif hasattr(builtins, name):
            advice = (
                foreign_names.advice_on(name)
                or "of Python's builtins a kernel has range, len, min, max, abs, bool, int and float"
            )
        else:
            advice = f"did you mean {near}?" if near else foreign_names.advice_on(name)
            advice = advice or "define it before the kernel, or in it"
        return UnknownName(name, advice, span=span).error()


def surroundings_of(function: FunctionType, frame_locals: Mapping[str, object]) -> Surroundings:
    """The names around a Python function: its closure, the frame that defines it, its globals, the builtins."""
    return Surroundings(layers_of(function, frame_locals), function=function)


def surroundings_inside(
    function: FunctionType, frame_locals: Mapping[str, object], around: Surroundings, prefix: str
) -> Surroundings:
    """The surroundings of an inline function that is translated into another function."""
    layers = layers_of(function, frame_locals)
    return Surroundings(layers, around.captures, prefix, function, lookups=around.lookups)


def member(base: object, base_name: str, name: str, span: Span) -> object:
    """The meaning of `base.name`, for `tl` and modules."""
    if isinstance(base, Namespace):
        found = named(name)
        if found is None:
            raise UnknownWord(name, _near_word(name), span=span).error()
        return found
    if isinstance(base, ModuleType):
        if not hasattr(base, name):
            raise NoAttribute(base_name, name, "the module does not define it", span=span).error()
        return meaning(getattr(base, name), f"{base_name}.{name}", span)
    advice = foreign_names.advice_on(name)
    advice = advice or "buffers have `.shape[i]` with a constant i; all else is written as in `tl.sqrt(x)`"
    raise NoAttribute(base_name, name, advice, span=span).error()


def _near_word(name: str) -> str:
    if name in ("min", "max", "range", "print"):
        return f"write {name}(...), as in Python"
    if advice := foreign_names.advice_on(name):
        return advice
    near = nearest(name, NAMES)
    return (
        f"did you mean {near.replace('`', '`tl.', 1)}?"
        if near and "," not in near
        else (f"did you mean one of {near}?" if near else "its names are listed in the language guide")
    )


def is_tl(value: object) -> bool:
    """Whether `value` is `tl`: the package itself, or its placeholder in text."""
    return isinstance(value, Namespace) or (isinstance(value, ModuleType) and value.__name__ == "tirlite")


def is_captured(value: object) -> bool:
    """Whether a value from around a kernel is a constant, and not a word of the language."""
    if isinstance(value, type) or (callable(value) and not isinstance(value, CFuncPtr)):
        return False
    return not isinstance(value, (Expr, DType, TensorType, ParamType, Word, Namespace, ModuleType, PrimFunc))


def kernel_of(value: object) -> PrimFunc | None:
    """The function of a kernel, whatever class wraps it."""
    func = value if isinstance(value, PrimFunc) else getattr(value, "ir", None)
    return func if isinstance(func, PrimFunc) else None


def meaning(value: object, name: str, span: Span) -> object:
    """The meaning of a Python value in a kernel. Raises ForeignValue if it has none."""
    if isinstance(value, (Dim, Poly)) or is_of_sympy(value):
        return _extent(value, span)
    if isinstance(value, (Expr, DType, TensorType, ParamType, Word, Namespace, Inline, str, tuple, CFuncPtr)):
        return value
    if (kernel := kernel_of(value)) is not None:
        return kernel
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


def _extent(value: object, span: Span) -> object:
    """A size or sympy expression as arithmetic on dims."""
    from tirlite.ir.size import expr_over_dims
    from tirlite.sizes import from_sympy

    try:
        size = value if isinstance(value, (Dim, Poly)) else from_sympy(value, {})
    except KernelError as error:
        raise error.at(span) from None
    return size if isinstance(size, int) else expr_over_dims(size)


def _is_usable(name: str, value: object, span: Span) -> bool:
    """Whether a name from around a kernel is usable in it, as few builtins are."""
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
    if known is None and str(getattr(value, "__module__", "")).startswith("tirlite."):
        return named(getattr(value, "__name__", ""))
    return known


def _number(value: object) -> object | None:
    """A constant: Python's numbers are weak, NumPy's have their types."""
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
    if name == "bool":
        return bool_
    letters = name.rstrip("0123456789")
    return dtype_of(name.replace(letters, letters[0]) if letters in ("int", "uint", "float") else name)


def _described(value: object) -> str:
    if isinstance(value, type):
        return "a Python class"
    if callable(value):
        return "a Python function"
    kind = type(value).__name__
    return f"a value of type {kind}" if value is not None else "None"


def _advice(value: object, name: str) -> str:
    last = name.rpartition(".")[2]
    if last in MATH and (last != name or not hasattr(value, "__code__")):
        return f"write tl.{last}; math.{last} and np.{last} may be called with constants alone"
    if callable(value) and (advice := foreign_names.advice_on(last)):
        return advice
    if callable(value) and not hasattr(value, "__code__"):
        return "write the computation in the kernel"
    if callable(value):
        return "put @tl.inline above its `def`, and kernels can call it; or write the computation in the kernel"
    if isinstance(value, (list, dict, range)):
        return f"take one element, tl.static({name}[0]), loop over `tl.static(...)`, or make it a tuple"
    if type(value).__module__ == "numpy":
        return "arrays come in as parameters: give the kernel one more"
    return "constants are numbers of Python or NumPy, texts and tuples; all else comes in as a parameter"
