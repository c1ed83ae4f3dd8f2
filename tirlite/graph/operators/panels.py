"""Products with constant matrices, and convolutions on small images, of weights that are cut into panels of columns.

See `kernels.operators.panels`. The panels are `[panels, terms, columns of a panel]`.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tirlite.graph.expr import Call
from tirlite.graph.op import Array, Attrs, Lowering, Op, Site
from tirlite.graph.operators.convolution import Conv
from tirlite.graph.operators.linear import Gemm
from tirlite.graph.types import TensorType
from tirlite.ir import f32
from tirlite.record import record
from tirlite.sizes import Size

# Columns that lie together in a panel: as many as the tiles of sums of most processors have, once or several times.
# Panels go to workers one by one: they are narrower where fewer than so many would leave the last ones uneven.
_PANELS = (64, 32)
_MANY = 8


@record
class Scales(Attrs):
    """What a product and what is added to it are multiplied by."""

    alpha: float = 1.0
    beta: float = 1.0


def _product_type(site: Site, attrs: Scales) -> TensorType:
    x, (blocks, _, columns) = site.tensor(0), site.tensor(1).shape
    return TensorType((*x.shape[:-1], blocks * columns), x.dtype)


def _pointwise_type(site: Site, attrs: Attrs) -> TensorType:
    x, (blocks, _, outputs) = site.tensor(0), site.tensor(1).shape
    return TensorType((x.shape[0], blocks * outputs, *x.shape[2:]), x.dtype)


PRODUCT = Op("product", _product_type, 2, 3, Scales, lowering=Lowering("panels.product"))
POINTWISE = Op("pointwise", _pointwise_type, 2, 3, lowering=Lowering("panels.pointwise"))


def product_by_panels(call: Call, *, turned: bool) -> Scales | None:
    """The attributes of what computes a product of several rows and a matrix, or its transpose, by panels of that."""
    attrs = call.attrs if isinstance(call.attrs, Gemm) else Gemm()
    if call.op.name not in ("gemm", "matmul") or attrs.trans_a or attrs.trans_b != turned or call.dtype != f32:
        return None
    a, b = call.args[0].tensor, call.args[1].tensor
    if a.rank < 2 or b.rank != 2 or all(extent == 1 for extent in a.shape[:-1]):
        return None
    terms, columns = reversed(b.shape) if turned else b.shape
    is_known = isinstance(terms, int) and isinstance(columns, int) and terms > 0
    return Scales(attrs.alpha, attrs.beta) if is_known and _columns_of_panel(columns) else None


def _columns_of_panel(columns: Size) -> int:
    if not isinstance(columns, int) or not columns:
        return 0
    fits = [n for n in _PANELS if columns % n == 0]
    return next((n for n in fits if columns >= _MANY * n), min(fits, default=0))


def panels(weights: Array) -> Array:
    """A matrix as panels of columns, one behind the other."""
    size = _columns_of_panel(weights.shape[1])
    return np.ascontiguousarray(weights.reshape(len(weights), -1, size).swapaxes(0, 1))


def panels_of_transpose(weights: Array) -> Array:
    """The same of the transpose of a matrix, or of weights of a convolution with windows of one element."""
    size = _columns_of_panel(weights.shape[0])
    return np.ascontiguousarray(weights.reshape(-1, size, weights.shape[1]).swapaxes(1, 2))


def pointwise_by_panels(call: Call) -> Attrs | None:
    """The attributes of what computes a convolution with windows of one element on a small image by panels."""
    attrs = call.attrs
    if not isinstance(attrs, Conv) or call.op.name != "conv" or call.dtype != f32 or call.tensor.rank != 4:
        return None
    x, weights = call.args[0].tensor, call.args[1].tensor
    if (attrs.groups, attrs.strides, weights.shape[2:]) != (1, (1, 1), (1, 1)) or call.shape[2:] != x.shape[2:]:
        return None
    outputs, taken, *_ = weights.shape
    sizes = [extent for extent in (taken, *x.shape[2:]) if isinstance(extent, int)]
    is_small = len(sizes) == 3 and sizes[0] > 0 and 1 < prod(sizes[1:]) < _PANELS[0]
    return Attrs() if is_small and _columns_of_panel(outputs) else None
