"""Convolutions with windows of 3 x 3 in steps of one, of weights that Winograd's F(2 x 2, 3 x 3) makes into terms.

See `kernels.operators.winograd`. The terms are `[16, blocks, inputs, outputs of a block]`.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from tirlite.graph.expr import Call
from tirlite.graph.op import Array, Attrs, Lowering, Op, Site
from tirlite.graph.operators.convolution import Conv
from tirlite.graph.operators.windows import pads_of
from tirlite.graph.types import TensorType
from tirlite.ir import f32
from tirlite.record import record

# Outputs of a block: as many as the tiles of sums of most processors have, once or several times.
_BLOCK = 12


@record
class Winograd(Attrs):
    """Padding above and before, then below and behind, and how many channels the result has."""

    pads: tuple[int, ...]
    outputs: int


def _type(site: Site, attrs: Winograd) -> TensorType:
    x = site.tensor(0)
    above, before, below, behind = attrs.pads
    height, width = x.shape[2:]
    return TensorType((x.shape[0], attrs.outputs, height + above + below - 2, width + before + behind - 2), x.dtype)


WINOGRAD = Op("winograd", _type, 2, 3, Winograd, lowering=Lowering("winograd.winograd", said=("outputs",)))


def by_winograd(call: Call) -> Winograd | None:
    """The attributes of what computes a call in its place, where that takes less time."""
    attrs = call.attrs
    if not isinstance(attrs, Conv) or call.op.name != "conv" or call.dtype != f32:
        return None
    x, weights = call.args[0].tensor, call.args[1].tensor
    if (attrs.groups, attrs.strides, attrs.dilations, weights.shape[2:]) != (1, (1, 1), (1, 1), (3, 3)):
        return None
    pads = pads_of(attrs, x.shape[2:], (3, 3))
    extents = [n for n in (*x.shape[1:], *call.shape[1:], *pads) if isinstance(n, int)]
    if len(extents) < 10:
        return None
    pays = import_module("tirlite.kernels.operators.winograd").pays
    outputs, *places = extents[3:6]
    return Winograd(tuple(extents[6:]), outputs) if pays(extents[0], outputs, tuple(places)) else None


def terms_of(weights: Array) -> Array:
    """The terms of weights `[outputs, inputs, 3, 3]`, with zeros behind those of the last output."""
    basis = np.array(((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)), weights.dtype)
    outputs, inputs = weights.shape[:2]
    made = (np.kron(basis, basis) @ weights.reshape(-1, 9).T).reshape(16, outputs, inputs)
    terms = np.zeros((16, -(-outputs // _BLOCK), inputs, _BLOCK), weights.dtype)
    for block, first in enumerate(range(0, outputs, _BLOCK)):
        part = made[:, first : first + _BLOCK]
        terms[:, block, :, : part.shape[1]] = part.swapaxes(1, 2)
    return terms
