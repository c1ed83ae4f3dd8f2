"""Reads the values of a node's AttributeProtos, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tirlite.diag import Span
from tirlite.graph.onnx.node import Body, Unsupported
from tirlite.graph.onnx.tensors import TensorReader

# As in onnx.AttributeProto.AttributeType.
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = range(1, 9)


def attributes_of(
    proto: Any, read: TensorReader, outer: Mapping[str, object], span: Span | None = None
) -> dict[str, object]:
    """Numbers, texts, constants, bodies, and tuples of these. `outer` are those of the function that the node is in.

    Raises Unsupported for values of other kinds.
    """
    found: dict[str, object] = {}
    for each in proto.attribute:
        if each.ref_attr_name:
            if each.ref_attr_name in outer:
                found[each.name] = outer[each.ref_attr_name]
        else:
            found[each.name] = _value(each, read, span)
    return found


def _value(proto: Any, read: TensorReader, span: Span | None) -> object:
    kind = proto.type
    if kind == _FLOAT:
        return float(proto.f)
    if kind == _INT:
        return int(proto.i)
    if kind == _STRING:
        return _text(proto.s)
    if kind == _TENSOR:
        return read.constant(proto.t, proto.t.name, span)
    if kind == _GRAPH:
        return Body(proto.g)
    if kind == _FLOATS:
        return tuple(map(float, proto.floats))
    if kind == _INTS:
        return tuple(map(int, proto.ints))
    if kind == _STRINGS:
        return tuple(map(_text, proto.strings))
    raise Unsupported(f"attribute `{proto.name}` is of kind {kind}")


def _text(given: bytes) -> str:
    return given.decode("utf-8", "replace")
