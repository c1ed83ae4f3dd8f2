"""Makes the message that says why an argument does not fit its parameter: the slow path of binding."""

from __future__ import annotations

from operator import index
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import hint
from tirlite.diag.error import an
from tirlite.ir import TypeCode, walk
from tirlite.ir.printer import text
from tirlite.runtime.foreign import as_array
from tirlite.runtime.messages import (
    ArgumentCount,
    ArgumentLayout,
    ArgumentRank,
    ArgumentShape,
    ArgumentType,
    DimByName,
    DimFact,
    MissingArgument,
    OutputWithoutValue,
    RepeatedArgument,
    UnboundDim,
    UnknownArgument,
)
from tirlite.runtime.signature import ArrayParam, Signature
from tirlite.runtime.signature_text import shape_text
from tirlite.show import shown

Array: TypeAlias = npt.NDArray[Any]


def require_array(param: ArrayParam, given: object) -> Array:
    """The argument as an ndarray of the right type, if it is one of another class or another library.

    Arrays of other libraries are viewed without a copy. bfloat16, which NumPy lacks, comes as uint16, or as another
    library's type of that name.
    """
    is_bfloat = param.buffer.dtype.code is TypeCode.BFLOAT
    # Ask the type too: an object may return anything for `__class__`.
    if not issubclass(type(given), np.ndarray) or not isinstance(given, np.ndarray):
        seen = as_array(given, is_written=param.is_written, is_bfloat=is_bfloat)
        if isinstance(seen, str):
            raise ArgumentType(
                param.name, _wanted(param), an(type(given).__name__), _array_hint(param, given, seen)
            ).error()
        given = seen
    if isinstance(given, np.ma.MaskedArray):
        hint = f"its mask would be lost: pass {param.name}.filled()"
        raise ArgumentType(param.name, _wanted(param), an(type(given).__name__), hint).error()
    if isinstance(given, np.matrix):  # its rows are matrices, too
        given = np.asarray(given)
    if given.dtype == param.dtype:
        return given
    if is_bfloat and given.dtype.name == "bfloat16" and given.dtype.itemsize == 2:
        return given.view(np.uint16)
    given_type = str(given.dtype)
    if given.dtype.newbyteorder() == param.dtype:
        given_type += ", with its bytes swapped"
    hint = "" if is_bfloat else f"pass {param.name}.astype(np.{param.dtype})"
    raise ArgumentType(param.name, _wanted(param), f"an array of {given_type}", hint).error()


def _wanted(param: ArrayParam) -> str:
    is_bfloat = param.buffer.dtype.code is TypeCode.BFLOAT
    return "an array of uint16, the bits of bfloat16" if is_bfloat else f"an array of {param.dtype}"


def require_layout(param: ArrayParam, given: Array) -> None:
    """Raises unless the array is writable and aligned as needed; its strides are checked elsewhere."""
    name = param.name
    if param.is_written and not given.flags.writeable:
        raise ArgumentLayout(name, "writable, as the kernel writes it", f"pass {name}.copy()").error()
    if param.is_written and not given.flags.aligned:
        refuse_alignment(param)


def refuse_strides(param: ArrayParam) -> NoReturn:
    """Refuses an array with strides whose parameter's bytes the kernel writes as a whole."""
    why = "as the kernel uses its bytes as a whole"
    hint = "pass a contiguous array, and copy it back afterwards"
    raise ArgumentLayout(param.name, f"contiguous, its last axis running fastest, {why}", hint).error()


def refuse_declared(param: ArrayParam, axis: int, given: int, wanted: int) -> NoReturn:
    """Refuses an array whose strides differ from the declared ones."""
    hint = f"it is declared with that stride, and given with {given}"
    raise ArgumentLayout(param.name, f"of stride {wanted} along axis {axis}", hint).error()


def refuse_repeats(param: ArrayParam) -> NoReturn:
    """Refuses a written array that has one element at several indices."""
    wanted = "of elements that lie apart from each other, as the kernel writes it"
    raise ArgumentLayout(param.name, wanted, "pass an array that is not broadcast, and copy it back afterwards").error()


def refuse_alignment(param: ArrayParam) -> NoReturn:
    hint = f"pass a copy: NumPy aligns fresh arrays for their type{', not more' if param.align > 16 else ''}"
    raise ArgumentLayout(param.name, f"aligned to {param.align} bytes", hint).error()


def refuse_rank(param: ArrayParam, given: Array) -> NoReturn:
    axes = "1 axis" if param.rank == 1 else f"{param.rank} axes"
    raise ArgumentRank(param.name, shape_text(param.extents), str(given.shape), axes).error()


def refuse_dim(signature: Signature, param: ArrayParam, axis: int, given: int, wanted: int) -> NoReturn:
    """Refuses an axis that differs from another axis of the same dim."""
    slot = dict(param.bare)[axis]
    source, source_axis = _source(signature, slot)
    dim = signature.dims[slot].name
    why = f"`{dim}` is {wanted} by axis {source_axis} of `{source}`"
    raise ArgumentShape(axis, param.name, f"`{dim}` = {wanted}", given, why).error()


def dim_by_name(signature: Signature, slot: int, given: object, known: int) -> int:
    """The value of a dim that a call gives by name; `known` is its value from arrays, or negative."""
    name = signature.dims[slot].name
    value = -1 if isinstance(given, (bool, np.bool)) or not hasattr(given, "__index__") else index(given)
    if not 0 <= value < 1 << 63:
        raise DimByName(name, shown(given), "an extent is an integer of at least 0").error()
    if known not in (-1, value):
        source, axis = _source(signature, slot)
        raise DimByName(name, str(value), f"it is {known} by axis {axis} of `{source}`").error()
    return value


def refuse_extent(param: ArrayParam, axis: int, given: int, wanted: int) -> NoReturn:
    extent = param.extents[axis]
    declared = str(extent) if isinstance(extent, int) else text(extent)
    spelled = str(wanted) if declared == str(wanted) else f"`{declared}` = {wanted}"
    why = f"`{param.name}` is declared with the shape {shape_text(param.extents)}"
    raise ArgumentShape(axis, param.name, spelled, given, why).error()


def refuse_unsolved(param: ArrayParam, axis: int, given: int) -> NoReturn:
    """Refuses an axis whose extent has no solution for an unknown dim."""
    spelled = text(dict(param.computed)[axis])
    why = f"`{spelled}` is {given} for no integer from 0 on"
    raise ArgumentShape(axis, param.name, f"`{spelled}`", given, why).error()


def refuse_fact(signature: Signature, slot: int, value: int, fact: str) -> NoReturn:
    source, axis = _source(signature, slot)
    raise DimFact(signature.dims[slot].name, value, fact, axis, source).error()


def refuse_unbound(signature: Signature, omitted: list[ArrayParam], dims: list[int]) -> NoReturn:
    slot = dims.index(-1)
    dim = signature.dims[slot]
    param = next(param for param in omitted if any(dim in walk(extent) for extent in param.buffer.shape))
    raise UnboundDim(param.name, dim.name).error()


def refuse_count(signature: Signature, given: int) -> NoReturn:
    count = len(signature.names)
    wanted = f"{count} argument{'' if count == 1 else 's'}"
    raise ArgumentCount(signature.name, wanted, str(given), signature.text).error()


def refuse_missing(signature: Signature, position: int) -> NoReturn:
    raise MissingArgument(signature.name, signature.names[position], signature.text).error()


def refuse_repeated(signature: Signature, name: str) -> NoReturn:
    raise RepeatedArgument(signature.name, name).error()


def position_of(signature: Signature, name: str) -> int:
    if name in signature.names:
        return signature.names.index(name)
    raise UnknownArgument(signature.name, name, signature.text + hint(name, signature.names)).error()


def refuse_without_value(signature: Signature, param: ArrayParam) -> NoReturn:
    indices = ", ".join(f"i{axis}" for axis in range(param.rank)) or "()"
    raise OutputWithoutValue(signature.name, param.name, f"{param.name}[{indices}]").error()


def _source(signature: Signature, slot: int) -> tuple[str, int]:
    """The parameter and the axis that define a dim."""
    # Inputs first: an output may have been left out, and got its shape from the others.
    for param in sorted(signature.arrays, key=lambda array: array.is_output):
        for axis, number in param.bare:
            if number == slot:
                return param.name, axis
    dim = signature.dims[slot]
    axes = ((param.name, axis) for param in signature.arrays for axis, extent in param.computed if dim in walk(extent))
    return next(axes)


def _array_hint(param: ArrayParam, given: object, reason: str) -> str:
    if isinstance(given, (list, tuple, int, float, np.generic)):
        return f"pass np.asarray({param.name}, np.{param.dtype})"
    return f"its library says: {reason[:200]}" if reason else ""
