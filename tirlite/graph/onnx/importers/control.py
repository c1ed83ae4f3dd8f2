"""Importers of operators that hold graphs: branches, and loops that are unrolled where their count is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.extents import is_equal
from tirlite.graph.onnx.importers.selection import scalar
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.run_dims import most
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import i64
from tirlite.sizes import Dim, maximum
from tirlite.sizes.poly import atom_of

# More steps than these are not unrolled: each is a copy of the body.
_MOST_STEPS = 1024


def _if(t: Translation, node: Node) -> Sequence[Expr]:
    condition = t.fold(t.b.reshape(node.first, ()))
    if isinstance(condition, Constant):
        return t.inside(node.body("then_branch" if condition.value else "else_branch"), [], node)
    then, other = (t.inside(node.body(name), [], node) for name in ("then_branch", "else_branch"))
    for a, b in zip(then, other, strict=True):
        _join_dims(t, node, a.tensor, b.tensor)
    if (renewal := t.b.renewal) is not None:
        then, other = ([renewal.value(each) for each in branch] for branch in (then, other))
    if len(then) == 1:
        return [t.b.if_(condition, then[0], other[0], given=_either(t, condition, then[0], other[0]))]
    types = tuple(_either(t, condition, a, b) for a, b in zip(then, other, strict=True))
    both = t.b.if_(condition, t.b.tuple(*then), t.b.tuple(*other), given=TupleType(types))
    return [t.b.item(both, number) for number in range(len(then))]


def _join_dims(t: Translation, node: Node, then: TensorType, other: TensorType) -> None:
    """Demands that dims of the model are equal where two branches have one each, as exporters name them apart."""
    for a, b in zip(then.shape, other.shape, strict=False):
        if t.b.renewal is not None and atom_of(a, Dim) and atom_of(b, Dim):
            t.b.renewal.demands.ask(a, b, node.op, node.span)


def _either(t: Translation, condition: Expr, then: Expr, other: Expr) -> TensorType:
    """The type of what one of two branches gives: extents in which they differ are found by the run."""
    a, b = then.tensor, other.tensor
    if a.dtype != b.dtype or a.rank != b.rank:
        raise Unsupported(f"its branches give {a} and {b}")
    shape = []
    for left, right in zip(a.shape, b.shape, strict=True):
        if is_equal(left, right):
            shape.append(left)
            continue
        found = t.b.if_(condition, scalar(t, left), scalar(t, right))
        shape.append(t.extent(found, maximum(most(left), most(right)), "taken"))
    return TensorType(tuple(shape), a.dtype)


def _loop(t: Translation, node: Node) -> Sequence[Expr]:
    """The body once for each step, the steps' results joined along a new first axis."""
    count = node.maybe(0)
    limit = _MOST_STEPS + 1 if count is None else int(node.array(0).reshape(-1)[0])
    condition = node.maybe(1)
    carried = [node.x(number) for number in range(2, len(node.operands))]
    steps: list[list[Expr]] = []
    body = node.body("body")
    for number in range(max(limit, 0)):
        if condition is not None and not _holds(condition):
            break
        if number >= _MOST_STEPS:
            raise Unsupported(f"it has more than {_MOST_STEPS} steps")
        flag = condition if condition is not None else t.b.constant(np.array(True))
        condition, *results = t.inside(body, [t.b.constant(np.int64(number)), flag, *carried], node)
        carried, made = results[: len(carried)], results[len(carried) :]
        steps.append(made)
    if not steps and len(node.outputs) > len(carried):
        raise Unsupported("it has no steps, and results of each step")
    joined = [_joined(t, column, 0) for column in zip(*steps, strict=True)]
    return [*carried, *joined]


def _joined(t: Translation, column: Sequence[Expr], axis: int) -> Expr:
    """The results of all steps along a new axis."""
    place = axis % (column[0].tensor.rank + 1)
    return t.b.concat([t.b.unsqueeze(each, place) for each in column], place)


def _holds(condition: Expr) -> bool:
    if not isinstance(condition, Constant):
        raise Unsupported("how often it runs depends on data")
    return bool(condition.value.reshape(-1)[0])


def _scan(t: Translation, node: Node) -> Sequence[Expr]:
    if node.version < 9:
        raise Unsupported(f"Scan of version {node.version}")
    scanned = node.integer("num_scan_inputs")
    operands = node.all()
    carried, sequences = operands[: len(operands) - scanned], operands[len(operands) - scanned :]
    axes = node.integers("scan_input_axes") or (0,) * scanned
    axes = tuple(axis % each.tensor.rank for axis, each in zip(axes, sequences, strict=True))
    count = sequences[0].shape[axes[0]] if sequences else 0
    if not isinstance(count, int) or not 0 < count <= _MOST_STEPS:
        raise Unsupported(f"it has {count} steps")
    turned = node.integers("scan_input_directions") or (0,) * scanned
    steps = []
    for number in range(count):
        now = [
            _taken(t, each, axis, count - 1 - number if back else number)
            for each, axis, back in zip(sequences, axes, turned, strict=True)
        ]
        results = t.inside(node.body("body"), [*carried, *now], node)
        carried, made = results[: len(carried)], results[len(carried) :]
        steps.append(made)
    columns = list(zip(*steps, strict=True))
    places = node.integers("scan_output_axes") or (0,) * len(columns)
    back = node.integers("scan_output_directions") or (0,) * len(columns)
    joined = [
        _joined(t, column[::-1] if flip else column, axis)
        for column, axis, flip in zip(columns, places, back, strict=True)
    ]
    return [*carried, *joined]


def _taken(t: Translation, x: Expr, axis: int, place: int) -> Expr:
    return t.b.gather(x, t.b.constant(np.int64(place), i64), axis)


CONTROL: Mapping[str, Importer] = {"If": _if, "Loop": _loop, "Scan": _scan}
