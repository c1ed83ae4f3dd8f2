"""Makes importers for operators that declare their ONNX name and attributes; see `Spelling`."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.graph.expr import Expr
from tirlite.graph.onnx.node import OnnxNode
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.op import Op


def declared(op: Op, check: Callable[[Translation, OnnxNode], None] | None = None) -> Importer:
    """The importer of an operator with the node's operands; `check` may reject a node by raising Unsupported."""
    spelling = op.onnx
    assert spelling is not None

    def importer(t: Translation, node: OnnxNode) -> Expr:
        if check is not None:
            check(t, node)
        attrs = None if spelling.attrs is None else spelling.attrs(node)
        operands = aligned(t, node) if op.is_elementwise else _given(node)
        return t.b.call(op.name, *operands[: op.most], attrs=attrs)

    return importer


def _given(node: OnnxNode) -> list[Expr]:
    """The operands up to the last one that is not omitted."""
    count = max((number for number, each in enumerate(node.operands, 1) if each is not None), default=0)
    return [node.x(number) for number in range(count)]


def aligned(t: Translation, node: OnnxNode) -> list[Expr]:
    """The operands; before opset 7, `axis` may be the axis of the first at which the second's axes begin."""
    operands = node.all()
    if node.version < 7 and "axis" in node.attributes and len(operands) == 2:
        x, y = operands
        behind = x.tensor.rank - node.axis() - y.tensor.rank
        return [x, t.b.reshape(y, (*y.shape, *(1 for _ in range(behind))))]
    return operands
