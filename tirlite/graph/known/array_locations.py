"""Locates the elements of a network's constants in its files, and creates the arrays from there without a copy."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.record import record

if TYPE_CHECKING:
    from mmap import mmap

    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]

# Constants below `_SMALL` bytes are stored in the entry; so are those that are in no file, up to `_MOST_KEPT` bytes.
_SMALL = 1 << 14
_MOST_KEPT = 1 << 25
KEPT, FILLED = -1, -2
# A constant is searched by its first bytes, which may also occur elsewhere, such as zeros.
_BEGINNING = 256
_MOST_TRIED = 16
_LINE = 64


class Unkept(Exception):
    """An object is not cached: it is too large, or a later process could not read it."""


@record
class ArrayLocation:
    """The location of an array's elements: at `offset` in the file with the number `file`, or in `data`.

    If `file` is `KEPT`, `data` has all elements; if it is `FILLED`, `data` has the one element that all are equal to.
    """

    dtype: str
    shape: tuple[int, ...]
    file: int
    offset: int
    data: bytes = b""

    @property
    def bytes(self) -> int:
        return prod(self.shape) * np.dtype(self.dtype).itemsize

    def plain(self) -> tuple[object, ...]:
        return self.dtype, self.shape, self.file, self.offset, self.data

    def own(self) -> Array:
        """The array whose elements are in `data`. Raises ValueError if these do not fit its shape."""
        return _fixed(np.frombuffer(self.data, _type(self.dtype)).reshape(self.shape).copy())


def kept_place(array: Array) -> ArrayLocation:
    """The location of an array whose elements are stored in the entry."""
    if array.nbytes >= _SMALL and _is_filled(array):
        return ArrayLocation(array.dtype.str, array.shape, FILLED, 0, array.reshape(-1)[:1].tobytes())
    return ArrayLocation(array.dtype.str, array.shape, KEPT, 0, array.tobytes())


def _is_filled(array: Array) -> bool:
    """Whether all elements have the same bits."""
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
    return bool((bits[:_BEGINNING] == bits[0]).all() and (bits == bits[0]).all())


def demand_little(places: Sequence[ArrayLocation]) -> None:
    """Raises Unkept if the entry would store too many bytes."""
    if sum(len(each.data) for each in places) > _MOST_KEPT:
        raise Unkept


class Finder:
    """Searches arrays in one file after another, until each is found."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        """Raises Unkept for arrays of other types than numbers and bools."""
        if any(each.dtype.kind not in "biuf" for each in arrays):
            raise Unkept
        self._arrays = arrays
        self._found = {i: kept_place(a) for i, a in enumerate(arrays) if a.nbytes < _SMALL or _is_filled(a)}
        self._files = 0

    def look_in(self, data: mmap) -> None:
        number, self._files = self._files, self._files + 1
        at = 0
        for index, array in enumerate(self._arrays):
            if index in self._found:
                continue
            # Most files have constants in the order of their use, so search first behind the last one.
            offset = _found(data, array, at)
            if offset < 0 and at:
                offset = _found(data, array, 0)
            if offset >= 0:
                self._found[index] = ArrayLocation(array.dtype.str, array.shape, number, offset)
                at = offset + array.nbytes

    def places(self) -> list[ArrayLocation]:
        """The locations of all arrays. Raises Unkept if those that are in no file are too large to store."""
        lost = sum(a.nbytes for index, a in enumerate(self._arrays) if index not in self._found)
        if lost > _MOST_KEPT:
            raise Unkept
        return [self._found[index] if index in self._found else kept_place(a) for index, a in enumerate(self._arrays)]


def _found(data: mmap, array: Array, start: int) -> int:
    """The offset of the array's bytes in the data, or -1."""
    wanted = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    beginning = wanted[:_BEGINNING].tobytes()
    everything = np.frombuffer(data, np.uint8)
    for _ in range(_MOST_TRIED):
        start = data.find(beginning, start)
        if start < 0 or start + len(wanted) > len(everything):
            return -1
        if np.array_equal(everything[start : start + len(wanted)], wanted):
            return start
        start += 1
    return -1


def arrays_at(places: Sequence[ArrayLocation], files: Sequence[mmap]) -> list[Array]:
    """The read-only arrays at these locations, in the memory of the files where possible.

    Offsets in files need not be aligned, so each array is moved down to a cache line, or to its elements' alignment;
    bytes between arrays are overwritten. Raises ValueError for locations outside of the files.
    """
    made = {index: each.own() for index, each in enumerate(places) if each.file == KEPT}
    made |= _filled({index: each for index, each in enumerate(places) if each.file == FILLED})
    for number, data in enumerate(files):
        inside = sorted((each.offset, index) for index, each in enumerate(places) if each.file == number)
        made |= _arranged([(index, places[index]) for _, index in inside], data)
    return [made[index] for index in range(len(places))]


def _filled(places: Mapping[int, ArrayLocation]) -> dict[int, Array]:
    """Arrays of one repeated value; arrays of the same value share memory, as they are read-only."""
    made: dict[int, Array] = {}
    memory: dict[tuple[str, bytes], Array] = {}
    for index, each in sorted(places.items(), key=lambda item: -item[1].bytes):
        kind = (each.dtype, each.data)
        if kind not in memory:
            memory[kind] = np.full(prod(each.shape), np.frombuffer(each.data, _type(each.dtype), 1))
        made[index] = _fixed(memory[kind][: prod(each.shape)].reshape(each.shape))
    return made


def _arranged(inside: Sequence[tuple[int, ArrayLocation]], data: mmap) -> dict[int, Array]:
    made: dict[int, Array] = {}
    moves: list[tuple[int, ArrayLocation, int]] = []
    read = free = 0
    for index, place in inside:
        itemsize, count = _type(place.dtype).itemsize, place.bytes
        if place.offset < 0 or count <= 0 or place.offset + count > len(data):
            raise ValueError
        target = place.offset // _LINE * _LINE
        if target < free:
            target = -(-free // itemsize) * itemsize
        if place.offset < read or target > place.offset:
            made[index] = _fixed(_view(data, place, place.offset).copy())
            continue
        moves.append((index, place, target))
        read, free = place.offset + count, target + count
    base = ctypes.addressof(ctypes.c_char.from_buffer(data))
    for index, place, target in moves:
        if target != place.offset:
            ctypes.memmove(base + target, base + place.offset, place.bytes)
        made[index] = _fixed(_view(data, place, target))
    return made


def _view(data: mmap, place: ArrayLocation, offset: int) -> Array:
    array: Array = np.frombuffer(data, _type(place.dtype), prod(place.shape), offset)
    return array.reshape(place.shape)


def _fixed(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _type(text: str) -> np.dtype[Any]:
    made = np.dtype(text)
    if made.hasobject or not made.itemsize:
        raise ValueError
    return made
