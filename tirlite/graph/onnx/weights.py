"""Splits a model's file into the model's structure and the data of its large initializers, which are not copied.

The protobuf parser would copy these data when parsing and again when they are read. A message is a sequence of fields,
each a tag with its number and kind, then its value. Source: Protocol Buffers Documentation, Encoding; `onnx.proto` has
the numbers of the fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.graph.known.array_locations import ArrayLocation, arrays_at
from tirlite.graph.onnx.narrow import DTYPES
from tirlite.runtime.artifact.line_table import unsigned

if TYPE_CHECKING:
    from mmap import mmap

    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
# Smaller files and tensors are copied, which takes no longer.
_LARGE_FILE, _LARGE = 1 << 20, 1 << 12

_Field: TypeAlias = tuple[int, int, int, int]  # number, and the offsets of its begin, of its value and of its end


class FileTensors:
    """The data of a model's initializers in the memory of its file."""

    def __init__(self, data: mmap, taken: Sequence[tuple[int, int]]) -> None:
        self._data = data
        self._taken = taken  # for each tensor the offset and the size of its data; size 0 if they were not split off

    def arrays(self, tensors: Sequence[Any]) -> dict[str, Array]:
        """The read-only elements of tensors by name. Data whose size does not fit are put back into the tensor."""
        places: dict[str, ArrayLocation] = {}
        for tensor, (offset, size) in zip(tensors, self._taken, strict=True):
            if not size:
                continue
            dims, dtype = tuple(tensor.dims), DTYPES.get(tensor.data_type)
            is_alone = tensor.name not in places and not tensor.data_location and all(extent > 0 for extent in dims)
            if is_alone and dtype is not None and prod(dims) * dtype.stored.itemsize == size:
                places[tensor.name] = ArrayLocation(dtype.stored.newbyteorder("<").str, dims, 0, offset)
            else:
                tensor.raw_data = self._data[offset : offset + size]
        return dict(zip(places, arrays_at(list(places.values()), [self._data]), strict=True))


def parted(path: Path) -> tuple[bytes, FileTensors | None]:
    """The serialized model without the data of its large tensors, and these data; or the whole file and None.

    Raises OSError if the file cannot be read.
    """
    if path.stat().st_size < _LARGE_FILE:
        return path.read_bytes(), None
    from tirlite.graph.known.models import whole

    read = whole(path, digested=False)
    if read is None:
        return path.read_bytes(), None
    data = read.data
    try:
        graphs = [(begin, value, end) for number, begin, value, end in _fields(data, 0, len(data)) if number == _GRAPH]
        ((begin, value, end),) = graphs
        graph, taken = _without_data(data, value, end)
    except (ValueError, IndexError):  # not a model: the parser will report it
        return data[:], None
    return data[:begin] + _field(_GRAPH, graph) + data[end:], FileTensors(data, taken)


def _without_data(data: mmap, begin: int, end: int) -> tuple[bytes, list[tuple[int, int]]]:
    """A serialized graph without the data of its large tensors, and for each tensor the offset and size of its data."""
    pieces: list[bytes] = []
    taken: list[tuple[int, int]] = []
    kept = begin
    for number, start, value, stop in _fields(data, begin, end):
        if number != _INITIALIZER:
            continue
        taken.append((0, 0))
        raw = [each for each in _fields(data, value, stop) if each[0] == _RAW_DATA] if stop - value >= _LARGE else []
        if len(raw) == 1:
            _, first, inside, last = raw[0]
            taken[-1] = inside, last - inside
            tensor = data[value:first] + _field(_RAW_DATA, b"") + data[last:stop]
            pieces += (data[kept:start], _field(_INITIALIZER, tensor))
            kept = stop
    return b"".join((*pieces, data[kept:end])), taken


def _fields(data: mmap, begin: int, end: int) -> Iterator[_Field]:
    """The fields of a message. Raises ValueError or IndexError if the bytes are not a message."""
    at = begin
    while at < end:
        tag, value = _number(data, at)
        kind = tag & 7
        if kind == _NUMBER:
            _, after = _number(data, value)
        elif kind == _BYTES:
            length, value = _number(data, value)
            after = value + length
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            after = value + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError
        if after > end:
            raise ValueError
        yield (tag >> 3, at, value, after) if kind == _BYTES else (0, at, value, after)
        at = after


def _number(data: mmap, at: int) -> tuple[int, int]:
    """Decodes a varint, seven bits per byte, and returns it with the offset after it."""
    found = shift = 0
    while (byte := data[at]) & 128:
        found |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
    return found | byte << shift, at + 1


def _field(number: int, value: bytes) -> bytes:
    """Encodes a field of bytes."""
    return unsigned(number << 3 | _BYTES) + unsigned(len(value)) + value
