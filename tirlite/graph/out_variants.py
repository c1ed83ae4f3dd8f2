"""Finds the out-variant of an operator's call: a function that writes the results into arrays it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from tirlite.diag import TirliteError
from tirlite.driver import Kernel
from tirlite.graph.aot.operators import NoKernelFor, OperatorFunctions, UnboundSize
from tirlite.graph.evaluate import applied
from tirlite.graph.expr import Call, Var
from tirlite.graph.extents import values
from tirlite.graph.op import Attrs, Op
from tirlite.graph.types import Array, TensorType
from tirlite.rewrite.options import Options
from tirlite.sizes import Dim

# Reads the first arrays and fills the second ones; the two do not overlap.
OutVariant: TypeAlias = Callable[[Sequence[Array], Sequence[Array]], None]

_NAMES = (
    *("add", "subtract", "multiply", "maximum", "minimum", "exp", "tanh", "sqrt", "negative"),
    *("less", "less_equal", "equal"),
)
_UFUNCS: Mapping[str, np.ufunc] = MappingProxyType({name: getattr(np, name) for name in _NAMES})


def numpy_variant(call: Call) -> OutVariant:
    """NumPy's `out=` form if it has one for the operator, else a copy of its value."""
    ufunc = _UFUNCS.get(call.op.name)
    # Half precision is computed in f32.
    if ufunc is not None and all(arg.tensor.dtype.bits != 16 for arg in call.args):
        return lambda args, outs: _by_ufunc(ufunc, args, outs)

    def fill(args: Sequence[Array], outs: Sequence[Array]) -> None:
        made = applied(call, args, {})
        for out, value in zip(outs, made if isinstance(made, tuple) else (made,), strict=True):
            np.copyto(out, value)

    return fill


def _by_ufunc(ufunc: np.ufunc, args: Sequence[Array], outs: Sequence[Array]) -> None:
    with np.errstate(all="ignore"):
        ufunc(*args, out=outs[0])


def native_variant(call: Call) -> OutVariant | None:
    """The operator's kernel, compiled at its first use, for all values of the dims; None where it has no kernel."""
    try:
        kernel = Kernel(OperatorFunctions().of(call), Options())
    except TirliteError as error:
        if error.code in (NoKernelFor.code, UnboundSize.code):
            return None
        raise
    return lambda args, outs: _by_kernel(kernel, args, outs)


def _by_kernel(kernel: Kernel, args: Sequence[Array], outs: Sequence[Array]) -> None:
    kernel(*args, *outs)


@dataclass(frozen=True, slots=True)
class Library:
    """Where out-variants come from: `variant` gives that of a call, or None where it has none.

    With `takes_dims` it is asked first for one that serves all values of the dims, and then, if it has none, for one at
    each value; else at each value only.
    """

    variant: Callable[[Call], OutVariant | None]
    takes_dims: bool = False


NUMPY = Library(numpy_variant)
NATIVE = Library(native_variant, takes_dims=True)


class OutVariants:
    """The out-variants of a library made so far, one for all equal calls."""

    def __init__(self, library: Library = NUMPY) -> None:
        self._library = library
        self._made: dict[tuple[str, tuple[object, ...], tuple[TensorType, ...]], OutVariant | None] = {}

    def of(self, op: Op, attrs: Attrs, args: tuple[TensorType, ...], binding: Mapping[Dim, int]) -> OutVariant | None:
        """The out-variant for operands of these types, at the values that their dims have."""
        found = self._at(op, attrs, args) if self._library.takes_dims else None
        return found or self._at(op, attrs.at(binding), types_at(args, binding))

    def _at(self, op: Op, attrs: Attrs, args: tuple[TensorType, ...]) -> OutVariant | None:
        key = (op.name, attrs.bits, args)
        if key not in self._made:
            self._made[key] = self._library.variant(Call(op, tuple(Var("", each) for each in args), attrs))
        return self._made[key]


def types_at(types: Iterable[TensorType], binding: Mapping[Dim, int]) -> tuple[TensorType, ...]:
    """The types with integers for their extents."""
    return tuple(TensorType(values(each.shape, binding), each.dtype) for each in types)


def aligned(size: int, alignment: int) -> Array:
    """Fresh bytes at an address that is a multiple of `alignment`."""
    memory = np.empty(size + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]
