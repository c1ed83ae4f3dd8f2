"""Refuses models that contradict themselves: names with two meanings, unknown versions, types other than declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from tirlite.diag import GraphMessage
from tirlite.graph.expr import Expr
from tirlite.graph.onnx.dtypes import DTYPES, dtype_name
from tirlite.graph.types import TensorType
from tirlite.sizes import Proof, prove_eq


def versions_of(model: Any, name: str) -> dict[str, int]:
    """The version of each domain's operators. Raises GraphError where there are two, or none, or one not known."""
    found: dict[str, int] = {}
    for each in model.opset_import:
        domain = "" if each.domain == "ai.onnx" else each.domain
        if found.setdefault(domain, each.version) != each.version:
            raise BadOnnxModel(name, f"it has operators of version {found[domain]} and of {each.version}").error()
    newest = import_module("onnx.defs").onnx_opset_version()
    if found.get("", 0) > newest:
        why = f"it has operators of version {found['']}, and those up to {newest} are known"
        raise BadOnnxModel(name, why).error()
    used = next((node for node in model.graph.node if node.domain in ("", "ai.onnx")), None)
    if "" not in found and used is not None:
        raise BadOnnxModel(name, f"it does not tell the version of its operators, as of {used.op_type}").error()
    return found


def check_names(graph: Any, name: str) -> None:
    """Raises GraphError where a name has two meanings in the graph, or a constant is not what its input declares."""
    stack = [graph]
    while stack:
        top = stack.pop()
        meanings: dict[str, str] = {}
        for each in top.input:
            _mean(meanings, each.name, f"an input called `{each.name}`", name)
        stored: dict[str, str] = {}
        for each in top.initializer:
            _mean(stored, each.name, f"a constant called `{each.name}`", name)
        meanings = {**stored, **meanings}
        for number, node in enumerate(top.node, 1):
            for output in filter(None, node.output):
                _mean(meanings, output, f"node {number}, {node.op_type}, which computes `{output}`", name)
            stack += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    declared = {each.name: each.type.tensor_type for each in graph.input}
    for each in graph.initializer:
        if each.name in declared:
            _check_constant(each, declared[each.name], name)


def _mean(meanings: dict[str, str], called: str, what: str, name: str) -> None:
    if called in meanings:
        raise BadOnnxModel(name, f"there are {meanings[called]}, and {what}").error()
    meanings[called] = what


def _check_constant(tensor: Any, declared: Any, name: str) -> None:
    extents = [each.dim_value if each.HasField("dim_value") else None for each in declared.shape.dim]
    differs = declared.elem_type not in (0, tensor.data_type)
    if declared.HasField("shape"):
        differs |= len(extents) != len(tensor.dims)
        differs |= any(known not in (None, -1, is_) for known, is_ in zip(extents, tensor.dims, strict=False))
    if differs:
        of = f"{dtype_name(tensor.data_type)}{list(tensor.dims)}"
        shown = ", ".join("?" if each is None else str(each) for each in extents)
        why = f"constant `{tensor.name}` is {of}, and declared as {dtype_name(declared.elem_type)}[{shown}]"
        raise BadOnnxModel(name, why).error()


def check_declared(declared: Iterable[Any], values: Mapping[str, object], name: str, *, only_types: bool) -> None:
    """Raises GraphError where a value is of another type than the model declares it, for all values of its dims."""
    for each in declared:
        value, given = values.get(each.name), each.type.tensor_type
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType) or given.elem_type not in DTYPES:
            continue
        differs = DTYPES[given.elem_type] != value.dtype
        if given.HasField("shape") and not only_types:
            extents = [dim.dim_value if dim.HasField("dim_value") else None for dim in given.shape.dim]
            # Exporters that know too little declare other numbers of axes: these say nothing.
            pairs = zip(extents, value.shape, strict=True) if len(extents) == len(value.shape) else ()
            differs |= any(a is not None and a >= 0 and prove_eq(a, b) is Proof.NO for a, b in pairs)
        if differs:
            shown = ", ".join(str(dim.dim_value) if dim.HasField("dim_value") else "?" for dim in given.shape.dim)
            why = f"`{each.name}` is {value.type}, and is declared as {dtype_name(given.elem_type)}[{shown}]"
            raise BadOnnxModel(name, why, span=value.span).error()


class BadOnnxModel(GraphMessage):
    """A file is not an ONNX model, or contradicts itself.

    Example: `tl.from_onnx("notes.txt")`.
    Fix: Give the path of a model that an exporter wrote.
    """

    code = "onnx-bad-model"
    title = "`{model}`: {why}"

    model: str
    why: str
