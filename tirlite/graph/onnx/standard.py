"""Looks operators up in the standard: their inputs and attributes, and definitions by other operators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from tirlite.graph.extents import Shape
from tirlite.graph.onnx.narrow import NUMBERS
from tirlite.graph.onnx.node import OnnxNode
from tirlite.graph.types import TensorType


class Forms:
    """The inputs and attributes of operators of these versions, by the standard."""

    def __init__(self, versions: Mapping[str, int]) -> None:
        self._versions = versions
        self._known: dict[tuple[str, str], Any] = {}

    def contradicted(self, proto: Any) -> str:
        """An input, result or attribute that the operator does not have in this version, or ""."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        if (domain, proto.op_type) not in self._known:
            self._known[domain, proto.op_type] = _form(proto.op_type, self._versions.get(domain, 0), domain)
        if (form := self._known[domain, proto.op_type]) is None:
            return ""
        inputs, outputs, attributes, required = form
        for what, names, most in (("inputs", proto.input, inputs), ("results", proto.output, outputs)):
            if (count := max((number for number, each in enumerate(names, 1) if each), default=0)) > most:
                return f"it has {count} {what}, and may have {most}"
        names = [each.name for each in proto.attribute]
        twice = [name for name in names if names.count(name) > 1]
        if twice or (not domain and proto.op_type == "Constant" and len(names) > 1):
            return (
                f"it has attribute `{twice[0]}` twice" if twice else f"it has {' and '.join(names)}, and may have one"
            )
        if unknown := [name for name in names if name not in attributes]:
            return f"there is no attribute `{unknown[0]}` in this version"
        lacking = [name for name in required if name not in names]
        return f"it has no attribute `{lacking[0]}`, and needs one" if lacking else ""


def _schema(op: str, version: int, domain: str) -> Any | None:
    """The schema of an operator, if the standard has it."""
    defs = import_module("onnx.defs")
    try:
        return defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return None


def _form(op: str, version: int, domain: str) -> tuple[int, int, frozenset[str], tuple[str, ...]] | None:
    """The most inputs and results, the names of attributes, and those of required ones.

    None for operators outside of the standard.
    """
    if (schema := _schema(op, version, domain)) is None:
        return None
    required = tuple(name for name, each in schema.attributes.items() if each.required)
    return schema.max_input, schema.max_output, frozenset(schema.attributes), required


@cache
def _kinds_of_inputs(op: str, version: int) -> tuple[str, ...]:
    """The name of each input's type parameter in the standard; inputs with the same name have the same type."""
    schema = _schema(op, version, "")
    return () if schema is None else tuple(each.type_str for each in schema.inputs)


def unlike_inputs(node: OnnxNode) -> str:
    """A message about two inputs that must have the same element type, but differ; empty if there are none."""
    first: dict[str, tuple[int, object]] = {}
    kinds = _kinds_of_inputs(node.op, node.version) if not node.domain else ()
    for number, (kind, operand) in enumerate(zip(kinds, node.operands, strict=False)):
        if operand is not None and isinstance(operand.type, TensorType):
            dtype = operand.dtype if (narrow := node.kinds[number]) is None else narrow.name
            other, known = first.setdefault(kind, (number, dtype))
            if known != dtype:
                return f"input {number} has elements {dtype}, and input {other} {known}"
    return ""


def standard_function(node: OnnxNode) -> Any | None:
    """The FunctionProto, whose attributes have their defaults; None where the standard has none."""
    if (schema := _schema(node.op, node.version, node.domain)) is None:
        return None
    found = _plain(schema, node.version) or _for_types(schema, node)
    if found is None:
        return None
    declared = {each.name for each in found.attribute_proto}
    for name, attribute in schema.attributes.items():
        if name in found.attribute and name not in declared and attribute.default_value.name:
            found.attribute_proto.add().CopyFrom(attribute.default_value)
    if not found.opset_import:
        found.opset_import.add(domain=node.domain, version=node.version)
    return found


def has_standard_function(node: OnnxNode) -> bool:
    """Whether the standard may define the operator by others, for some operands at least."""
    schema = _schema(node.op, node.version, node.domain)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def _plain(schema: Any, version: int) -> Any | None:
    if not schema.has_function:
        return None
    known = [each for each in schema.function_opset_versions if each <= version]
    data = schema.get_function_with_opset_version(max(known)) if known else None
    return _parsed(data) if data else _parsed(schema.function_body)


def _for_types(schema: Any, node: OnnxNode) -> Any | None:
    """A function that depends on the types of the operands, and on which of them are there."""
    if not schema.has_context_dependent_function:
        return None
    known = [each for each in schema.context_dependent_function_opset_versions if each <= node.version]
    if not known:
        return None
    types = [_type(None if each is None else (NUMBERS[each.dtype], each.shape)) for each in node.operands]
    proto = _with_attributes(node).SerializeToString()
    data = schema.get_context_dependent_function_with_opset_version(max(known), proto, types)
    return _parsed(data) if data else None


def _with_attributes(node: OnnxNode) -> Any:
    """The node, with values in the place of attributes of the function that it stands in."""
    onnx, helper = import_module("onnx"), import_module("onnx.helper")
    made = onnx.NodeProto()
    made.CopyFrom(node.proto)
    inherited = [each.name for each in made.attribute if each.ref_attr_name]
    kept = [each for each in node.proto.attribute if not each.ref_attr_name]
    del made.attribute[:]
    made.attribute.extend(kept)
    values = {name: node.attributes[name] for name in inherited if name in node.attributes}
    made.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())
    return made


def _parsed(data: Any) -> Any:
    onnx = import_module("onnx")
    if not isinstance(data, bytes):
        data = data.SerializeToString()
    return onnx.FunctionProto.FromString(data)


def _type(given: tuple[int, Shape] | None) -> bytes:
    onnx = import_module("onnx")
    made = onnx.TypeProto()
    if given is not None:
        made.tensor_type.elem_type = given[0]
        made.tensor_type.shape.SetInParent()
        for extent in given[1]:
            dim = made.tensor_type.shape.dim.add()
            if isinstance(extent, int):
                dim.dim_value = extent
            else:
                dim.dim_param = str(extent)
    data: bytes = made.SerializeToString()
    return data
