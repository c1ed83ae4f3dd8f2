"""Importers of convolution and pooling operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.extents import product
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.operators.convolution import Conv, ConvTranspose
from tirlite.graph.operators.pooling import Pool
from tirlite.graph.operators.windows import pads_of
from tirlite.record import replace
from tirlite.sizes import Proof, Size, is_at_most, maximum, prove_eq

C = TypeVar("C", Conv, Pool)


def _spatial(node: OnnxNode) -> int:
    axes = node.rank - 2
    if axes < 1:
        raise Unsupported(f"its operand has {node.rank} axes")
    return axes


def _steps(node: OnnxNode, name: str, axes: int) -> tuple[int, ...]:
    return node.integers(name) or (1,) * axes


_SAME = {"SAME_UPPER": "upper", "SAME_LOWER": "lower"}


def _pads(node: OnnxNode, axes: int) -> tuple[tuple[Size, ...], str]:
    """The pads before each spatial axis, then after each; and the `same` attribute that `auto_pad` stands for."""
    how = node.text("auto_pad", "NOTSET") or "NOTSET"
    if how not in ("NOTSET", "VALID", *_SAME):
        raise Unsupported(f"its auto_pad is {how!r}")
    return (how == "NOTSET" and node.integers("pads")) or (0,) * (2 * axes), _SAME.get(how, "")


def _known(attrs: C, node: OnnxNode, window: Sequence[Size]) -> C:
    """The attributes with `same` replaced by explicit pads, if these do not depend on dims."""
    pads = pads_of(attrs, node.first.shape[2:], window)
    return replace(attrs, pads=pads, same="") if all(isinstance(each, int) for each in pads) else attrs


def conv_attrs(node: OnnxNode, weight: Expr) -> Conv:
    """The attributes of a convolution of the first operand with this weight."""
    axes, window = _spatial(node), weight.shape[2:]
    told = node.integers("kernel_shape") or window
    if len(told) != len(window) or any(prove_eq(*pair) is Proof.NO for pair in zip(told, window, strict=True)):
        raise Unsupported(f"its kernel_shape is {list(told)}, and its weights are {weight.type}")
    strides, dilations = _steps(node, "strides", axes), _steps(node, "dilations", axes)
    pads, same = _pads(node, axes)
    return _known(Conv(strides, pads, dilations, node.integer("group", 1), same=same), node, window)


def _conv(t: Translation, node: OnnxNode) -> Expr:
    return t.b.call("conv", *filter(None, map(node.maybe, range(3))), attrs=conv_attrs(node, node.x(1)))


def _conv_transpose(t: Translation, node: OnnxNode) -> Expr:
    axes = _spatial(node)
    strides, dilations = _steps(node, "strides", axes), _steps(node, "dilations", axes)
    extra = node.integers("output_padding") or (0,) * axes
    window = node.x(1).shape[2:]
    pads: tuple[Size, ...] = node.integers("pads") or (0,) * (2 * axes)
    wanted = node.integers("output_shape")
    how = node.text("auto_pad", "NOTSET") or "NOTSET"
    if wanted or how.startswith("SAME"):
        extents = node.first.shape[2:]
        goal: Sequence[Size] = wanted[-axes:] if wanted else [e * s for e, s in zip(extents, strides, strict=True)]
        totals = []
        for place, extent in enumerate(extents):
            reach = strides[place] * (extent - 1) + extra[place] + (window[place] - 1) * dilations[place] + 1
            total = reach - goal[place]
            if isinstance(total, int) and total < 0:
                # A larger result is padded with zeros at its end.
                extra = (*extra[:place], extra[place] - total, *extra[place + 1 :])
                total = 0
            if not is_at_most(0, total):
                raise Unsupported("its result may be larger than what its operand makes")
            totals.append(total)
        less, more = [total // 2 for total in totals], [total - total // 2 for total in totals]
        pads = (*less, *more) if how == "SAME_UPPER" else (*more, *less)
    attrs = ConvTranspose(strides, pads, dilations, node.integer("group", 1), extra)
    return t.b.call("conv_transpose", *filter(None, node.operands), attrs=attrs)


def _pool(node: OnnxNode, window: Sequence[int]) -> Pool:
    axes = _spatial(node)
    strides, dilations = _steps(node, "strides", axes), _steps(node, "dilations", axes)
    pads, same = _pads(node, axes)
    counts, ceil = node.flag("count_include_pad"), node.flag("ceil_mode") and not same
    return _known(Pool(tuple(window), strides, pads, dilations, ceil, counts, same=same), node, window)


def window_of(node: OnnxNode) -> tuple[int, ...]:
    """The extents of the window. Raises Unsupported if they are omitted."""
    found = node.integers("kernel_shape")
    if found is None:
        raise Unsupported("its window is left out")
    return found


def _max_pool(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    x, attrs = node.first, _pool(node, window_of(node))
    if not node.wants(1):
        return [t.b.call("max_pool", x, attrs=attrs)]
    both = t.b.call("max_pool_indices", x, attrs=attrs)
    at: Expr = t.b.item(both, 1)
    size = product(x.shape[2:])
    if node.integer("storage_order"):
        at = _column_major(t, at, x.shape[2:])
    # ONNX's indices are into the whole tensor, ours into a channel.
    count = product(x.shape[:2])
    zero = t.b.constant(np.int64(0))
    starts = t.b.range(zero, t.b.reshape(t.b.sizes([size]), ()), count)
    return [t.b.item(both, 0), t.b.add(at, t.b.reshape(starts, (*x.shape[:2], *(1 for _ in x.shape[2:]))))]


def _column_major(t: Translation, at: Expr, extents: Sequence[Size]) -> Expr:
    """Converts row-major indices into column-major ones."""
    made: Expr | None = None
    rest = at
    for axis in range(len(extents) - 1, -1, -1):
        extent = t.b.reshape(t.b.sizes([extents[axis]]), ())
        place = t.b.floor_mod(rest, extent)
        rest = t.b.floor_divide(rest, extent)
        term = t.b.multiply(place, t.b.reshape(t.b.sizes([product(extents[:axis])]), ()))
        made = term if made is None else t.b.add(made, term)
    return at if made is None else made


def _average_pool(t: Translation, node: OnnxNode) -> Expr:
    return t.b.call("average_pool", node.first, attrs=_pool(node, window_of(node)))


def _lp_pool(t: Translation, node: OnnxNode) -> Expr:
    """The p-norm of each window: the p-th root of the mean of p-th powers times the elements of the window."""
    window, power = window_of(node), float(node.integer("p", 2))
    pool = _pool(node, window)
    count = 1.0
    for size in window:
        count *= size
    raised = t.b.power(t.b.abs(node.first), power)
    pads = _whole(t.b.call("average_pool", raised, attrs=pool).shape, raised.shape, pool)
    attrs = Pool(pool.window, pool.strides, pads, pool.dilations, count_include_pad=True, same=pool.same)
    return t.b.power(t.b.multiply(t.b.call("average_pool", raised, attrs=attrs), count), 1 / power)


def _whole(places: Sequence[Size], extents: Sequence[Size], pool: Pool) -> tuple[Size, ...]:
    """Pads that contain the last windows of ceil mode entirely."""
    axes = len(pool.window)
    if not pool.ceil_mode:
        return pool.pads
    behind = [
        maximum(
            0,
            (places[2 + k] - 1) * pool.strides[k]
            + pool.dilations[k] * (pool.window[k] - 1)
            + (1 - extents[2 + k] - pool.pads[k]),
        )
        for k in range(axes)
    ]
    return (*pool.pads[:axes], *behind)


def _global_lp_pool(t: Translation, node: OnnxNode) -> Expr:
    power = float(node.integer("p", 2))
    total = t.b.reduce_sum(t.b.power(t.b.abs(node.first), power), range(2, node.rank), keepdims=True)
    return t.b.power(total, 1 / power)


CONVOLUTION: Mapping[str, Importer] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "LpPool": _lp_pool,
    "GlobalLpPool": _global_lp_pool,
}
