"""Makes functions that call a linked kernel in a hundredth of the time of `Binder`, where that is possible.

Most calls have plain arrays that fit, and numbers. One compiled function per process handles these, with all the checks
of `Binder`. Whatever does not fit it leaves to `Binder`, which accepts more and reports what is wrong. See
`codegen.llvm.quick_call`.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from itertools import chain
from platform import machine
from struct import pack, unpack
from types import BuiltinFunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.codegen.llvm.quick_blocks import MOST_GIVEN, MOST_OPERANDS, MOST_REALS
from tirlite.codegen.llvm.quick_call import API, QUICK_CALL, ArrayOffsets, quick_text
from tirlite.gate import GATE
from tirlite.ir import Var
from tirlite.ir.walk import is_constant
from tirlite.record import record
from tirlite.runtime.artifact.artifact import library_of
from tirlite.runtime.cache import code_called
from tirlite.runtime.signature import ArrayParam, ScalarParam, Signature
from tirlite.runtime.workspace import QUICK_ALIGNMENT, QUICK_BYTES, quick_block
from tirlite.target.convention import MOST_PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tirlite.runtime.artifact.artifact import Code

# Returns None, the number of a fault, or NotImplemented if `Binder` has to look at the arguments.
QuickCall: TypeAlias = BuiltinFunctionType

_METH_FASTCALL = 0x80
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_LARGEST = (1 << 63) - 1
# The words of a description that are about the version itself, and not about its parameters.
_OWN_WORDS = (2, 7, 8, 9, 12, 13, 14, 16, 17, 18)
_NONE: Mapping[str, np.ndarray[Any, Any]] = MappingProxyType({})
_PROGRAM_WORDS, _TAKES_SAME = 15, 16
# For 64-bit release builds of CPython with the GIL.
_OFFSETS = ArrayOffsets(
    words=bytes.__basicsize__ - 1, type=8, number=16, data=16, rank=24, shape=32, strides=40, dtype=56, flags=64
)


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@record
class Temporaries:
    """The memory that a kernel takes as its last parameter.

    `size`: the address of the function that computes its size, or 0 if it is `bytes`. `alignment` is in bytes.
    """

    size: int
    bytes: int
    alignment: int


@record
class Serves:
    """Which calls a version serves: those whose arrays have `least` to `most` bytes in all.
    `number`: the version's number. `elsewhere`: the fault by which it passes a call on, or 0. `to`: the version that
    gets all calls not served, if any. `unmet`: the fault for which `in_order`, the sequential version, gets the call
    instead.
    """

    least: int = 0
    most: int = _LARGEST
    elsewhere: int = 0
    number: int = 0
    to: QuickCall | None = None
    unmet: int = 0
    in_order: QuickCall | None = None


def quick_call(
    signature: Signature,
    kernel: int,
    strides: int,
    temporaries: Temporaries | None = None,
    serves: Serves | None = None,
    known: Mapping[str, np.ndarray[Any, Any]] = _NONE,
) -> QuickCall | None:
    """A function that calls the kernel at the address `kernel` with the arrays, numbers and dims of `signature`.
    `strides`: how many parameters, the strides that `rewrite.strided` adds, precede the others; callers do not pass
    them. `temporaries`: the kernel takes their address as its last parameter. `known`: arrays by name that callers do
    not pass; they fit and are only read, and no given array may overlap them. None if an extent is neither a number nor
    a dim nor computed from such dims, see `program_of`; if there are too many parameters or extents, or 16-bit floats;
    and if Python's or NumPy's objects have an unknown layout. `known`, the code at `kernel` and the other versions must
    outlive the result.
    """
    scalars = signature.scalars[strides:]
    reals = [scalar for scalar in scalars if scalar.var.dtype.is_float]
    given = [array for array in signature.arrays if array.name not in known]
    count = strides + len(signature.arrays) + len(scalars) + len(signature.dims) + (temporaries is not None)
    if temporaries is not None and (temporaries.alignment > QUICK_ALIGNMENT or (temporaries.size and strides)):
        return None
    if temporaries is not None and not temporaries.size and temporaries.bytes > QUICK_BYTES:
        return None
    # On other systems, floats and words are not counted separately when registers are assigned.
    if scalars and (sys.platform, machine()) not in (("linux", "x86_64"), ("linux", "aarch64")):
        return None
    if not 0 < count < MOST_OPERANDS or count - len(known) > MOST_GIVEN:
        return None
    if len(reals) > (MOST_REALS if count <= MOST_PARAMETERS else 0) or any(e.var.dtype.bits == 16 for e in reals):
        return None
    if sum(map(_moved, given)) != strides:
        return None
    programs: list[int] = []
    shapes = [_axes(array, signature, programs) for array in given]
    named = {~extent for axes in shapes for extent, _, _ in axes or () if ~MOST_GIVEN < extent < 0}
    computed = sum(extent <= ~MOST_GIVEN for axes in shapes for extent, _, _ in axes or ())
    if None in shapes or computed > MOST_GIVEN or named != {*range(len(signature.dims))}:
        return None
    # Only one thread may create what all kernels share: a second copy would be freed while in use.
    with GATE.inside(quick_call):
        method = _method()
        quick_block()
    if method is None or any(array.align & (array.align - 1) for array in signature.arrays):
        return None
    params = {scalar.position: _number(scalar) for scalar in scalars}
    for array, axes in zip(given, shapes, strict=True):
        parts = zip(*(axes or ()), strict=True)
        params[array.position] = [*_array(array), *(number for part in parts for number in part)]
    constants = {each.position: known[each.name] for each in signature.arrays if each.name in known}
    serves = serves or Serves()
    words = _description(kernel, strides, temporaries, serves, sum(each.nbytes for each in constants.values()))
    words[:2], words[_PROGRAM_WORDS] = (len(params), len(signature.dims)), len(programs)
    between = (*chain(*map(_facts, signature.dims)), *programs)
    words += _placed(params, constants, {real.position for real in reals}, between)
    words[_TAKES_SAME] = int(serves.to is not None and _takes_same(words, serves.to))
    return _made(method, pack(f"={len(words)}q", *words))


def _made(method: _Method, description: bytes) -> QuickCall:
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    made: QuickCall = kind(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.addressof(method), description, None)
    return made


def _placed(
    params: Mapping[int, list[int]],
    constants: Mapping[int, np.ndarray[Any, Any]],
    reals: Collection[int],
    between: tuple[int, ...],
) -> Iterator[int]:
    """The words from the number of operands on, with the place of each parameter among the operands."""
    places = {position: place for place, position in enumerate(sorted({*params, *constants} - {*reals}))}
    yield from (len(places), len(constants), *between)
    for position, array in constants.items():
        yield from (places[position], array.ctypes.data)
    for position in sorted(params):
        # A float takes no place among the words: it is stored where the first dim overwrites it.
        yield from (places.get(position, len(places)), *params[position])


def _takes_same(words: list[int], to: QuickCall) -> bool:
    """Whether the other version has the same parameters, so that no argument needs a second check."""
    its = to.__self__
    assert isinstance(its, bytes)
    return [*_shared(words)] == [*_shared(unpack(f"={len(its) // 8}q", its))]


def _shared(words: Iterable[int]) -> Iterator[int]:
    """The words of a description that say what the parameters are."""
    return (word for at, word in enumerate(words) if at not in _OWN_WORDS)


def _description(
    kernel: int, strides: int, temporaries: Temporaries | None, serves: Serves, known_bytes: int
) -> list[int]:
    """The first words of a description, see `codegen.llvm.quick_call`; some are filled in later."""
    words = [0, 0, kernel, id(np.ndarray), id(NotImplemented), id(None), strides]
    words += [0, 0, 0] if temporaries is None else [quick_block().address, temporaries.size, temporaries.bytes]
    words += [serves.least - known_bytes, serves.most - known_bytes]
    words += [_described(serves.to), serves.elsewhere, serves.number, 0, 0, serves.unmet, _described(serves.in_order)]
    return words


def _facts(var: Var) -> tuple[int, int, int]:
    """The words of a dim; a call in which a dim of at least 1 is 0 is for another version."""
    low, high, multiple = (1, None, 1) if var.dim is None else (var.dim.min, var.dim.max, var.dim.multiple_of)
    return low, _LARGEST if high is None else high, multiple


def _described(call: QuickCall | None) -> int:
    """The address of a quick call's description, or 0."""
    return 0 if call is None else id(call.__self__)


def _array(array: ArrayParam) -> list[int]:
    """The words of an array before those of its axes."""
    moved = _moved(array)
    flags = (0 if moved else _C_CONTIGUOUS) | _ALIGNED | (_WRITEABLE if array.is_written else 0)
    return [id(array.dtype), flags, array.align - 1, array.dtype.itemsize, int(array.is_written), array.rank, moved]


def _number(scalar: ScalarParam) -> list[int]:
    """The words of a number, see `codegen.llvm.quick_blocks.number_text`."""
    dtype = scalar.var.dtype
    own = id(dtype.stored.type)
    if dtype.is_float:
        return [0, own, id(float), id(int), dtype.bits, 1, 0, -_LARGEST - 1, _LARGEST, id(np.float64)]
    python = id(bool if dtype.is_bool else int)
    return [0, own, python, python, 0, 1, 0, int(dtype.min), min(int(dtype.max), _LARGEST), 0]


def _axes(array: ArrayParam, signature: Signature, programs: list[int]) -> list[tuple[int, int, int]] | None:
    """The three words of each axis: for `h + 2` the inverted number of `h`, 1 and 2; None if an extent is unsupported.

    Appends the programs of computed extents to `programs`.
    """
    from tirlite.codegen.llvm.quick_extent import program_of
    from tirlite.ir.size import times_and_plus

    axes = {axis: (extent, 1, 0) for axis, extent in array.fixed}
    axes |= {axis: (~slot, 1, 0) for axis, slot in array.bare}
    for axis, extent in array.computed:
        found = times_and_plus(extent, signature.dims)
        if found is not None:
            var, factor, added = found
            axes[axis] = ~signature.dims.index(var), factor, added
            continue
        program = program_of(extent, signature.dims)
        if program is None:
            return None
        axes[axis] = ~(MOST_GIVEN + len(programs)), 1, 0
        programs += program
    return [axes[axis] for axis in range(array.rank)]


def _moved(array: ArrayParam) -> int:
    """How many leading axes have a stride parameter; at most one axis of stride 1 may follow."""
    strides = array.buffer.strides
    moved = next((axis for axis, stride in enumerate(strides) if not isinstance(stride, Var)), len(strides))
    is_known = all(is_constant(stride, 1) for stride in strides[moved:])
    return moved if is_known and len(strides) - moved <= 1 else MOST_GIVEN


@cache
def _method() -> _Method | None:
    """The compiled function as a Python method, once per process."""
    if sys.implementation.name != "cpython" or not _are_as_known():
        return None
    addresses = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in API}
    library = library_of(code_called("quick call", _compiled), addresses)
    # Python may call it until the process ends, so it must never be unloaded.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    return _Method(b"kernel", library.address(QUICK_CALL), _METH_FASTCALL, None)


def _compiled() -> Code:
    from tirlite.codegen import Effort, compile_text
    from tirlite.runtime.artifact.build import code_of

    # Not optimised: compiling takes 3 ms instead of 25, and a call 85 ns instead of 60.
    return code_of([compile_text(quick_text(_OFFSETS), Effort.NONE)], (QUICK_CALL,))


def _are_as_known() -> bool:
    """Whether this process's arrays, bytes and numbers have the layout of `_OFFSETS`, tested on examples."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little" or hasattr(sys, "gettotalrefcount"):
        return False
    block = np.zeros((3, 8), np.float32)
    frozen = np.zeros((2, 5, 7), np.int64)
    frozen.flags.writeable = False
    text = pack("=2q", 0x1234567890ABCDEF, -7)
    numbers = (ctypes.string_at(id(each) + _OFFSETS.number, 8) for each in (-1.5, np.float64(-1.5), np.int64(-5)))
    if b"".join(numbers) != pack("=ddq", -1.5, -1.5, -5):
        return False
    return ctypes.string_at(id(text) + _OFFSETS.words, 16) == text and all(
        _is_as_known(each) for each in (block, block[1:, ::2], frozen, np.zeros(4, np.uint8)[1:3])
    )


def _is_as_known(array: np.ndarray[Any, Any]) -> bool:
    at = _OFFSETS
    parts = (at.type, at.data, at.shape, at.dtype, at.strides)
    words = [ctypes.c_int64.from_address(id(array) + offset).value for offset in parts]
    numbers = [ctypes.c_int32.from_address(id(array) + offset).value for offset in (at.rank, at.flags)]
    if [words[0], words[1], words[3]] != [id(np.ndarray), array.ctypes.data, id(array.dtype)]:
        return False
    if numbers != [array.ndim, array.flags.num]:
        return False
    size, form = 8 * array.ndim, f"={array.ndim}q"
    return (ctypes.string_at(words[2], size), ctypes.string_at(words[4], size)) == (
        pack(form, *array.shape),
        pack(form, *array.strides),
    )
