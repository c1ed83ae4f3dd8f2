"""Makes what calls a linked kernel on arrays in a hundredth of the time of `Binder`, where that is possible.

Most calls are with plain arrays that fit, and numbers. A compiled function, made once in a process, sees to these: it
checks all that `Binder` checks. What does not fit, for whatever reason, it leaves to `Binder`, which accepts more and
tells what is wrong. See `codegen.llvm.quick_call`.
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

# Gives None, the number of a fault, or NotImplemented where the arguments have to be looked at otherwise.
QuickCall: TypeAlias = BuiltinFunctionType

_METH_FASTCALL = 0x80
_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_LARGEST = (1 << 63) - 1
# Of a description: what tells of the version itself, and not of what it takes.
_OWN_WORDS = (2, 7, 8, 9, 12, 13, 14, 16, 17, 18)
_NONE: Mapping[str, np.ndarray[Any, Any]] = MappingProxyType({})
_PROGRAM_WORDS, _TAKES_SAME = 15, 16
# On 64 bits, in builds of CPython with a lock and without debugging.
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
    """What a kernel asks its caller for, as its last parameter: `size` is the address of a function of the dims, or 0.

    Where it is 0 the number of `bytes` is known. `alignment` is in bytes.
    """

    size: int
    bytes: int
    alignment: int


@record
class Serves:
    """Which calls are for a version: those whose arrays take at least and at most so many bytes in all.

    The fault `elsewhere`, if it is not 0, says that a call is for another version. All that it is not for is handed on
    `to` one that has been made before, if there is one. Calls with the fault `unmet` are for the one that runs
    `in_order`, if that is given. `number` says which version a fault is of.
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
    """What calls the kernel at the address `kernel`, which takes the arrays and the dims of `signature` and no more.

    With `strides` the kernel takes so many parameters before these: those that `rewrite.strided` puts there, which
    callers do not give. With `temporaries` it takes their address behind these. Arrays that are `known`, by name, fit
    and are only read; callers give the others, none of which may meet them. None where an extent is no number, nor
    tells a dim, and is not computed from dims that arrays tell, see `program_of`; where there are too many parameters,
    such extents, or floats of 16 bits among them; and where Python or NumPy lay out their objects in unknown ways. What
    is known, the code at `kernel`, and what calls are handed on to, must stay as long as the result is used.
    """
    scalars = signature.scalars[strides:]
    reals = [scalar for scalar in scalars if scalar.var.dtype.is_float]
    given = [array for array in signature.arrays if array.name not in known]
    count = strides + len(signature.arrays) + len(scalars) + len(signature.dims) + (temporaries is not None)
    if temporaries is not None and (temporaries.alignment > QUICK_ALIGNMENT or (temporaries.size and strides)):
        return None
    if temporaries is not None and not temporaries.size and temporaries.bytes > QUICK_BYTES:
        return None
    # Others give floats registers that are counted together with those of words.
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
    # What all kernels of the process share is made by one thread: what a second one made would be freed while in use.
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
    """The words from the count of those that a kernel takes on, with the places of parameters among these."""
    places = {position: place for place, position in enumerate(sorted({*params, *constants} - {*reals}))}
    yield from (len(places), len(constants), *between)
    for position, array in constants.items():
        yield from (places[position], array.ctypes.data)
    for position in sorted(params):
        # A float takes no place: it lies where the first dim is stored after it.
        yield from (places.get(position, len(places)), *params[position])


def _takes_same(words: list[int], to: QuickCall) -> bool:
    """Whether another version takes just what one of this description does, so that no argument needs a second look."""
    its = to.__self__
    assert isinstance(its, bytes)
    return [*_shared(words)] == [*_shared(unpack(f"={len(its) // 8}q", its))]


def _shared(words: Iterable[int]) -> Iterator[int]:
    """The words of a description that say what is taken, and not what then becomes of it."""
    return (word for at, word in enumerate(words) if at not in _OWN_WORDS)


def _description(
    kernel: int, strides: int, temporaries: Temporaries | None, serves: Serves, known_bytes: int
) -> list[int]:
    """The first of the words that `codegen.llvm.quick_call` tells of, as far as these tell them."""
    words = [0, 0, kernel, id(np.ndarray), id(NotImplemented), id(None), strides]
    words += [0, 0, 0] if temporaries is None else [quick_block().address, temporaries.size, temporaries.bytes]
    words += [serves.least - known_bytes, serves.most - known_bytes]
    words += [_described(serves.to), serves.elsewhere, serves.number, 0, 0, serves.unmet, _described(serves.in_order)]
    return words


def _facts(var: Var) -> tuple[int, int, int]:
    """The words of a dim; that one is 0 which is declared to be at least 1 is for another version of the kernel."""
    low, high, multiple = (1, None, 1) if var.dim is None else (var.dim.min, var.dim.max, var.dim.multiple_of)
    return low, _LARGEST if high is None else high, multiple


def _described(call: QuickCall | None) -> int:
    """The address of the description that a quick call goes by, or 0."""
    return 0 if call is None else id(call.__self__)


def _array(array: ArrayParam) -> list[int]:
    """The words of an array in front of those of its axes."""
    moved = _moved(array)
    flags = (0 if moved else _C_CONTIGUOUS) | _ALIGNED | (_WRITEABLE if array.is_written else 0)
    return [id(array.dtype), flags, array.align - 1, array.dtype.itemsize, int(array.is_written), array.rank, moved]


def _number(scalar: ScalarParam) -> list[int]:
    """The words of a number, see there."""
    dtype = scalar.var.dtype
    own = id(dtype.stored.type)
    if dtype.is_float:
        return [0, own, id(float), id(int), dtype.bits, 1, 0, -_LARGEST - 1, _LARGEST, id(np.float64)]
    python = id(bool if dtype.is_bool else int)
    return [0, own, python, python, 0, 1, 0, int(dtype.min), min(int(dtype.max), _LARGEST), 0]


def _axes(array: ArrayParam, signature: Signature, programs: list[int]) -> list[tuple[int, int, int]] | None:
    """The three words of each axis: `h + 2` is the number of `h` with all bits turned over, 1 and 2.

    `programs` get the words of computed extents.
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
    """How many axes have a stride that comes as a parameter; behind these stands one of stride 1, or none."""
    strides = array.buffer.strides
    moved = next((axis for axis, stride in enumerate(strides) if not isinstance(stride, Var)), len(strides))
    is_known = all(is_constant(stride, 1) for stride in strides[moved:])
    return moved if is_known and len(strides) - moved <= 1 else MOST_GIVEN


@cache
def _method() -> _Method | None:
    """The compiled function as Python takes it, for the whole process."""
    if sys.implementation.name != "cpython" or not _are_as_known():
        return None
    addresses = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in API}
    library = library_of(code_called("quick call", _compiled), addresses)
    # Python may call it until the process ends: nothing that happens at its end may unload it.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    return _Method(b"kernel", library.address(QUICK_CALL), _METH_FASTCALL, None)


def _compiled() -> Code:
    from tirlite.codegen import Effort, compile_text
    from tirlite.runtime.artifact.build import code_of

    # Without effort the code takes 3 ms to make instead of 25, and half as long again for a call: 85 ns instead of 60.
    return code_of([compile_text(quick_text(_OFFSETS), Effort.NONE)], (QUICK_CALL,))


def _are_as_known() -> bool:
    """Whether arrays and bytes of this process have their parts where `_OFFSETS` says, as seen on some."""
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
