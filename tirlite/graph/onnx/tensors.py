"""Reads a TensorProto as a constant of a graph: sizes, lengths and places are checked before reading."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from tirlite.diag import GraphMessage, Span
from tirlite.graph.expr import Constant
from tirlite.graph.onnx.budget import Spent
from tirlite.graph.onnx.narrow import DTYPES, NARROW, NarrowType, NarrowValue, dtype_name, unpacked
from tirlite.graph.onnx.node import Unsupported
from tirlite.graph.types import Array
from tirlite.ir import DType

_FIELDS = {"f32": "float_data", "f64": "double_data", "i64": "int64_data", "u32": "uint64_data", "u64": "uint64_data"}
_MOST_BYTES = 1 << 40


class BadOnnxTensor(GraphMessage):
    """A tensor in an ONNX model contradicts itself, or its data lie where a model must not reach.

    Example: An initializer of 4 floats with 8 bytes of data; external data in `../weights.bin`.
    Fix: Export the model again; keep its external data in its own folder.
    """

    code = "onnx-bad-tensor"
    title = "tensor `{name}` of `{model}`: {why}"
    label = "here"


class TensorReader:
    """Reads the tensors of one model, whose external data lie in `folder`, or may not exist where that is None.

    Those whose data are left out have their elements in `kept`, by name, see `weights`.
    """

    def __init__(self, spent: Spent, folder: Path | None, kept: Mapping[str, Array] | None = None) -> None:
        self.spent = spent
        self.model = spent.model
        self._folder = folder
        self._kept = kept or {}

    def constant(self, proto: Any, name: str = "", span: Span | None = None) -> Constant | NarrowValue:
        """The elements. Raises GraphError for what contradicts itself, Unsupported for types that do not exist here."""
        kind = NARROW.get(proto.data_type)
        if kind is None and proto.data_type not in DTYPES:
            raise Unsupported(f"tensor `{name or proto.name}` has elements of type {dtype_name(proto.data_type)}")
        dtype = DTYPES[proto.data_type] if kind is None else kind.stored
        shape = tuple(proto.dims)
        try:
            array = self._array(proto, dtype, shape) if kind is None else self._narrow(proto, kind, shape)
        except _Wrong as wrong:
            raise BadOnnxTensor(name or proto.name, self.model, str(wrong), span=span).error() from None
        self.spent.constant(array.nbytes, span)
        array.flags.writeable = False
        made = Constant(array, dtype, name=name or proto.name, span=span)
        return made if kind is None else NarrowValue(made, kind)

    def _narrow(self, proto: Any, kind: NarrowType, shape: tuple[int, ...]) -> Array:
        """The bytes of elements of which one byte of the model may hold several."""
        count = _count(shape, 1)
        packed = -(-count * kind.bits // 8)
        bits = np.dtype(np.uint8)
        if proto.data_location == 1:
            data = self._external(proto, bits, packed)
        elif proto.HasField("raw_data"):
            if len(proto.raw_data) != packed:
                raise _Wrong(f"{len(proto.raw_data)} bytes of data for {count} elements of {kind.name}")
            data = np.frombuffer(proto.raw_data, bits)
        else:
            if len(proto.int32_data) != packed:
                raise _Wrong(f"{len(proto.int32_data)} bytes of data for {count} elements of {kind.name}")
            data = np.array(proto.int32_data, np.int64).astype(bits)
        return np.require(unpacked(data, kind, count), requirements=["C", "O", "W"]).reshape(shape)

    def _array(self, proto: Any, dtype: DType, shape: tuple[int, ...]) -> Array:
        stored = dtype.stored
        count = _count(shape, stored.itemsize)
        if proto.data_location == 1:
            return self._external(proto, stored, count).reshape(shape)
        if proto.HasField("raw_data"):
            raw = proto.raw_data  # a copy, each time that it is asked for
            kept = None if raw else self._kept.get(proto.name)
            if kept is not None and kept.dtype == stored and kept.shape == shape:
                return kept.astype(stored, copy=False)
            if len(raw) != count * stored.itemsize:
                raise _Wrong(f"{len(raw)} bytes of data for {count} elements of {dtype}")
            return _elements(raw, stored).reshape(shape)
        data = getattr(proto, _FIELDS.get(dtype.name, "int32_data"))
        if len(data) != count:
            raise _Wrong(f"{len(data)} elements of data for shape {shape}")
        if dtype.is_float and dtype.bits == 16:
            return np.array(data, np.int64).astype(np.uint16).view(stored).reshape(shape)
        return np.array(data).astype(stored).reshape(shape)

    def _external(self, proto: Any, stored: np.dtype[Any], count: int) -> Array:
        given = {entry.key: entry.value for entry in proto.external_data}
        path = self._inside(given.get("location", ""))
        self.spent.use(path)
        whole = path.stat().st_size
        offset, length = _number(given, "offset", 0), _number(given, "length", count * stored.itemsize)
        if length != count * stored.itemsize or offset + length > whole:
            raise _Wrong(
                f"bytes {offset} to {offset + length} of `{path.name}`, which has {whole}, for {count} elements"
            )
        with path.open("rb") as file:
            file.seek(offset)
            return _elements(file.read(length), stored)

    def _inside(self, location: str) -> Path:
        """The file, after a check that it lies in the folder of the model, links resolved."""
        if self._folder is None:
            raise _Wrong("its data lie in another file, and the model came from none: give its path")
        parts = PurePosixPath(location)
        is_strange = not location or "\0" in location or ".." in parts.parts
        if is_strange or parts.is_absolute() or PureWindowsPath(location).anchor or "\\" in location:
            raise _Wrong(f"its data lie in {location!r}, outside of the folder of the model")
        folder = self._folder.resolve()
        path = (folder / location).resolve()
        if not path.is_relative_to(folder):
            raise _Wrong(f"its data lie in {location!r}, a link out of the folder of the model")
        if not path.is_file():
            raise _Wrong(f"its data lie in {location!r}, which does not exist")
        return path


def _elements(data: bytes, stored: np.dtype[Any]) -> Array:
    """The elements in some bytes, where these are."""
    return np.frombuffer(data, stored.newbyteorder("<")).astype(stored, copy=False)


class _Wrong(Exception):
    """A tensor is malformed."""


def _count(shape: tuple[int, ...], itemsize: int) -> int:
    """How many elements a tensor has."""
    if any(extent < 0 for extent in shape):
        raise _Wrong(f"its shape is {shape}")
    if (count := prod(shape)) * itemsize > _MOST_BYTES:
        raise _Wrong(f"its shape {shape} says {count} elements")
    return count


def _number(given: dict[str, str], key: str, default: int) -> int:
    text = given.get(key, str(default))
    if not (text.isascii() and text.isdecimal()):
        raise _Wrong(f"the {key} of its data is {text!r}")
    return int(text)
