"""Turns sizes, element types and attributes of operators into values for JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from tirlite.graph.op import Attrs
from tirlite.ir import DType
from tirlite.ir.dtype import dtype_of
from tirlite.plan.tables.problem_json import read_size, size_json
from tirlite.sizes import Dim, Poly, Size

Names: TypeAlias = Mapping[Dim, str]
Dims: TypeAlias = Mapping[str, Dim]

__all__ = ["Dims", "Names", "as_dtype", "as_size", "attrs_json", "read_attrs", "size_json"]


def as_size(value: Any, dims: Dims) -> Size:
    """The size that `size_json` wrote."""
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a size")
    return read_size(value, dims)


def as_dtype(name: Any) -> DType:
    """The element type of this name."""
    found = dtype_of(name)
    if found is None:
        raise ValueError(f"{name!r} is not an element type")
    return found


def attrs_json(attrs: Attrs, names: Names) -> dict[str, object]:
    """The attributes by name."""
    return {each.name: _written(getattr(attrs, each.name), names) for each in fields(attrs)}


def read_attrs(kind: type[Attrs], data: Mapping[str, Any], dims: Dims) -> Attrs:
    """The attributes that `attrs_json` wrote, of a class."""
    return kind(**{name: _read(value, dims) for name, value in data.items()})


def _written(value: object, names: Names) -> object:
    if isinstance(value, tuple):
        return [_written(each, names) for each in value]
    if isinstance(value, Poly):
        return {"size": size_json(value, names)}
    if isinstance(value, DType):
        return {"dtype": str(value)}
    return value


def _read(value: Any, dims: Dims) -> object:
    if isinstance(value, list):
        return tuple(_read(each, dims) for each in value)
    if isinstance(value, dict):
        return as_dtype(value["dtype"]) if "dtype" in value else as_size(value["size"], dims)
    return value
