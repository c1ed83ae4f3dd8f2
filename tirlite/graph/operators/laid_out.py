"""Operators on packed weights: panels of columns, or the transformed weights of Winograd.

Panels are `[panels, terms, columns of a panel]`, where terms is the reduction axis; for convolutions these are the
input channels of a group and the window. Panels of bytes are `[panels, groups of terms, columns, terms of a group]`.
The weights of Winograd's F(2 x 2, 3 x 3) are `[blocks, 16, inputs, outputs of a block]`. See `kernels.operators.panels`
and `matmul`.
"""

from __future__ import annotations

from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from tirlite.graph.expr import Call
from tirlite.graph.op import Array, Attrs, Lowering, Op, Site
from tirlite.graph.operators.convolution import Conv, ConvTranspose, convolved, transposed
from tirlite.graph.operators.linear import Gemm, Sides
from tirlite.graph.operators.recurrence import Steps
from tirlite.graph.operators.windows import pads_of
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import f16, f32, i8, i16, i32, u8
from tirlite.record import record
from tirlite.runtime.fresh import array_at
from tirlite.sizes import Size

# Columns of a panel: a multiple of the columns of most processors' register tiles. Workers take one panel at a time, so
# panels are narrower if there would be fewer than `_MANY` and the last ones would leave workers idle. Processors whose
# register tile has at most NARROW columns use NARROW panels: the rest of a wider row would only fill the cache.
WIDE, NARROW = (64, 32), (16,)
_MANY = 8
# The fewest panels of a product whose last panel is padded with columns of 0.
_FEW = 2
# Windows of several elements use the narrowest panels. Their number is a multiple of `_EVEN`, or any from `_UNEVEN`
# outputs on. Each panel copies its image, of at most `_COPIED` bytes, so that the copy stays in the L2 cache. One copy
# shared by all panels may have `_SHARED` bytes, if the window has `_WINDOW` elements and the layer `_CHANNELS` inputs,
# which amortize it. Copies of 4 MiB: ResNet-50 took 1 % less time by `bench graphs`, and a quarter more storage.
_EVEN, _UNEVEN = 2, 128
_COPIED, _SHARED = 1 << 19, 1 << 20
_WINDOW, _CHANNELS = 9, 16
# The outputs of a panel of transposed convolutions; the number of wide panels must be even.
OUTPUTS, MANY_OUTPUTS = 16, 32
# The strides of transposed convolutions by panels; each phase of the stride has loops of its own.
_STEPS = (2, 2)
# 1 x 1 convolutions use panels at fewer than this many places; more places fill vectors without packed weights.
_SPOTS = 64
# Processors that permute the lanes of two vectors in one instruction.
PERMUTES = "permutations"
# Processors whose register tiles have at most NARROW columns, and all others.
SHORT_ROWS, LONG_ROWS = "short rows", "long rows"
# The dot product of bytes, and the terms of a column that one instruction multiplies.
DOTS = "u8 s8"
_GROUP = 4
# Processors with dot products of pairs of i16 but not of bytes: weights are widened to i16 at compile time.
HALVES = "halves"
PAIR = 2
# f16 weights are packed as f32, the type of their sums.
_FLOATS = (f32, f16)
# The fewest columns of a recurrent layer for which panels pay with a single sequence.
_COLUMNS = 512
# A convolution of bytes copies its image channels-last, which pays from `_PRODUCTS` products per element and `_INPUTS`
# input channels on. The sums of a panel are stored meanwhile, at `_PLACES` at most. 1 x 1 convolutions with `_POINTS`
# places fill vectors without packed weights.
_PRODUCTS = 512
_INPUTS = 16
_PLACES = 1024
_POINTS = 64
# Packed convolution weights are aligned to cache lines: 1 x 1 convolutions of 512 to 1,024 inputs took 0.89 of the
# time, larger windows 0.88 to 0.96. Weights of products and recurrent layers are read once and need no alignment.
_LINE = 64

Sizes = tuple[int, ...]


@record
class Scales(Attrs):
    """The columns of a product, and the factors of the product (`alpha`) and of the addend (`beta`)."""

    columns: int
    alpha: float = 1.0
    beta: float = 1.0


def _product_type(site: Site, attrs: Scales) -> TensorType:
    x = site.tensor(0)
    return TensorType((*x.shape[:-1], attrs.columns), x.dtype)


def _convolution_type(site: Site, attrs: Conv) -> TensorType:
    blocks, taken, *window, size = site.tensor(1).shape
    return TensorType(convolved(site, attrs, blocks * size, taken, *window), site.tensor(0).dtype)


def _transpose_type(site: Site, attrs: ConvTranspose) -> TensorType:
    blocks, taken, *window, size = site.tensor(1).shape
    return TensorType(transposed(site, attrs, taken, blocks * size, *window), site.tensor(0).dtype)


def _bytes_type(site: Site, attrs: Attrs) -> TensorType:
    return TensorType((*site.tensor(0).shape[:-1], *site.tensor(2).shape), i32)


def _convolution_bytes_type(site: Site, attrs: Conv) -> TensorType:
    blocks, *window, _, size, _ = site.tensor(2).shape
    return TensorType(convolved(site, attrs, blocks * size, site.tensor(0).shape[1], *window), i32)


def _depthwise_type(site: Site, attrs: Conv) -> TensorType:
    return TensorType(convolved(site, attrs, *site.tensor(1).shape), site.tensor(0).dtype)


def _lstm_type(site: Site, attrs: Steps) -> TupleType:
    (time, *_), state = site.tensor(0).shape, site.tensor(2)
    return TupleType((TensorType((time, *state.shape), state.dtype), state, state))


PRODUCT = Op("product", _product_type, 2, 3, Scales, lowering=Lowering("matmul.product", said=("columns",)))
BYTES = Op("product_bytes", _bytes_type, 3, 3, lowering=Lowering("matmul.product_bytes"))
CONVOLUTION_BYTES = Op("conv_bytes_panels", _convolution_bytes_type, 4, 4, Conv, lowering=Lowering("panels.conv_bytes"))
CONVOLUTION = Op("conv_panels", _convolution_type, 2, 3, Conv, lowering=Lowering("panels.convolution"))
TRANSPOSE = Op(
    "conv_transpose_panels",
    _transpose_type,
    2,
    3,
    ConvTranspose,
    lowering=Lowering("panels.conv_transpose", said=("output_padding",)),
)
LSTM = Op("lstm_panels", _lstm_type, 4, 4, Steps, lowering=Lowering("sequence.lstm"))
DEPTHWISE = Op("conv_depthwise", _depthwise_type, 2, 3, Conv, lowering=Lowering("conv.conv_depthwise"))


def product_by_panels(call: Call, sizes: Sizes = WIDE, *, turned: bool) -> Scales | None:
    """The attributes of PRODUCT for a call that multiplies by a matrix, or by its transpose if `turned`; else None.

    A single row times a transpose stays as it is: the columns are contiguous, and each is one dot product.
    """
    attrs = call.attrs
    if not isinstance(attrs, Sides) or attrs.trans_a or attrs.trans_b != turned or call.dtype != f32:
        return None
    a, b = call.args[0].tensor, call.args[1].tensor
    if a.rank < 2 or b.rank != 2 or (turned and all(extent == 1 for extent in a.shape[:-1])):
        return None
    terms, columns = reversed(b.shape) if turned else b.shape
    if not (isinstance(terms, int) and isinstance(columns, int) and terms > 0 and _columns_of_most(columns, sizes)):
        return None
    return Scales(columns, attrs.alpha, attrs.beta) if isinstance(attrs, Gemm) else Scales(columns)


def _columns_of_panel(columns: Size, sizes: Sizes = WIDE) -> int:
    """The columns of a panel, chosen from `sizes`; 0 if none of these divides `columns`."""
    if not isinstance(columns, int) or not columns:
        return 0
    fits = [n for n in sizes if columns % n == 0]
    return next((n for n in fits if columns >= _MANY * n), min(fits, default=0))


def _columns_of_most(columns: int, sizes: Sizes = WIDE) -> int:
    """The columns of a panel if the last panel may be padded; 0 if there are too few columns."""
    if columns >= _MANY * sizes[0]:
        return sizes[0]
    uneven = next((n for n in (*sizes, *NARROW) if columns >= _FEW * n), 0)
    return _columns_of_panel(columns, sizes) or uneven


def panels(weights: Array, sizes: Sizes = WIDE) -> Array:
    """Packs a matrix into panels of columns; the last panel is padded with columns of 0."""
    terms, columns = weights.shape
    size = _columns_of_most(columns, sizes)
    made = np.empty((-(-columns // size), terms, size), weights.dtype)
    for panel, first in zip(made, range(0, columns, size), strict=True):
        part = weights[:, first : first + size]
        panel[:, : part.shape[1]] = part
        panel[:, part.shape[1] :] = 0
    return made


def room_for(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialized array for packed convolution weights, aligned to a cache line."""
    return array_at(_LINE, shape, dtype)


def panels_of_outputs(weights: Array, sizes: Sizes = WIDE) -> Array:
    """Packs the weights of a convolution into panels of outputs."""
    return _cut(weights, shape_of_outputs(weights.shape, sizes)[-1])


def _cut(weights: Array, size: int) -> Array:
    """Splits the first axis of weights into panels of `size`, and moves its index in the panel to the last axis."""
    cut = np.moveaxis(weights.reshape(-1, size, *weights.shape[1:]), 1, -1)
    made = room_for(cut.shape, cut.dtype)
    np.copyto(made, cut)
    return made


def shape_of_outputs(weights: tuple[int, ...], sizes: Sizes = WIDE) -> tuple[int, ...]:
    """The shape of `panels_of_outputs` of weights of this shape."""
    outputs, *others = weights
    size = _columns_of_panel(outputs, sizes) if prod(others[1:]) == 1 else min(sizes)
    return outputs // size, *others, size


def bytes_by_groups(call: Call, group: int = _GROUP, sizes: Sizes = WIDE) -> Attrs | None:
    """The attributes of BYTES for a product of u8 and an i8 matrix whose terms are whole groups; else None."""
    if call.op.name != "matmul_bytes":
        return None
    a, b = (each.tensor for each in call.args[:2])
    terms, columns = b.shape
    is_whole = isinstance(terms, int) and terms > 0 and terms % group == 0
    is_full = isinstance(columns, int) and (_columns_of_panel(columns, sizes) > 0 or 2 * columns > sizes[0])
    return Attrs() if is_whole and is_full and (a.dtype, b.dtype) == (u8, i8) else None


def groups(weights: Array, group: int = _GROUP, sizes: Sizes = WIDE) -> Array:
    """Packs a matrix of bytes into panels of columns; the `group` terms of one dot product are contiguous.

    The last panel is padded with columns of 0.
    """
    terms, columns = weights.shape
    size = _columns_of_panel(columns, sizes) or sizes[0]
    whole = np.pad(weights, [(0, 0), (0, -columns % size)])
    return np.ascontiguousarray(np.moveaxis(whole.reshape(terms // group, group, -1, size), (2, 0, 3, 1), range(4)))


def halves(weights: Array) -> Array:
    return weights.astype(np.int16)


def lstm_by_panels(call: Call, sizes: Sizes = WIDE) -> Steps | None:
    """The attributes of an LSTM whose packed weights pay: with several sequences, or with many columns; else None."""
    attrs = call.attrs
    if not isinstance(attrs, Steps) or call.op.name != "lstm" or call.args[1].dtype != f32:
        return None
    batches, columns = call.args[2].tensor.shape[1], call.args[1].tensor.shape[2]
    if not isinstance(batches, int) or not isinstance(columns, int) or not _columns_of_panel(columns, sizes):
        return None
    return attrs if batches > 1 or columns >= _COLUMNS else None


def panels_of_ways(weights: Array, sizes: Sizes = WIDE) -> Array:
    """Packs the matrix of each way into panels of columns."""
    ways, rows, columns = weights.shape
    made = weights.reshape(ways, rows, -1, _columns_of_panel(columns, sizes))
    return np.ascontiguousarray(made.swapaxes(1, 2))


def steps_by_groups(call: Call) -> Attrs | None:
    """The attributes of a quantized LSTM whose weights are i16, packed by pairs of rows; else None."""
    return call.attrs if call.op.name == "lstm_bytes" and call.args[1].dtype == i16 else None


def are_bytes(weights: Array) -> bool:
    return bool((weights == weights.astype(np.int8)).all())


def groups_of_pairs(weights: Array) -> Array:
    """Repacks pairs of rows `[ways, panels, pairs, columns, 2]` as i8 in groups of four rows, padded with 0."""
    ways, panels, pairs, columns, _ = weights.shape
    whole = np.pad(weights.astype(np.int8), [(0, 0), (0, 0), (0, pairs % 2), (0, 0), (0, 0)])
    made = whole.reshape(ways, panels, -1, 2, columns, 2).swapaxes(3, 4)
    return np.ascontiguousarray(made).reshape(ways, panels, -1, columns, _GROUP)


def conv_bytes_by_halves(call: Call) -> Attrs | None:
    """The attributes of a convolution with i8 weights and a window; 1 x 1 weights are cheaper to widen at calls."""
    if call.op.name != "conv_bytes" or call.args[2].dtype != i8:
        return None
    return call.attrs if any(extent != 1 for extent in call.args[2].shape[1:-1]) else None


def conv_bytes_by_panels(call: Call, group: int = _GROUP, sizes: Sizes = WIDE) -> Conv | None:
    """The attributes of CONVOLUTION_BYTES for a convolution of bytes where panels of outputs pay; else None."""
    attrs = call.attrs
    if not isinstance(attrs, Conv) or call.op.name != "conv_bytes" or attrs.groups != 1 or call.tensor.rank != 4:
        return None
    x, weights = call.args[0].tensor, call.args[2].tensor
    (_, taken, height, width), (outputs, down, across, inputs), (_, _, *spots) = x.shape, weights.shape, call.shape
    known = [each for each in (taken, height, width, outputs, down, across, inputs, *spots) if isinstance(each, int)]
    if len(known) < 9 or not all(known) or (x.dtype, weights.dtype) != (u8, i8):
        return None
    taken, height, width, outputs, down, across, inputs, rows, columns = known
    most = _PLACES if down * across > 1 else _POINTS - 1
    is_small = taken * height * width <= _COPIED and rows * columns <= most
    pays = inputs >= _INPUTS and outputs * down * across >= _PRODUCTS
    return attrs if is_small and pays and inputs % group == 0 and _columns_of_panel(outputs, sizes) else None


def panels_of_bytes(weights: Array, group: int = _GROUP, sizes: Sizes = WIDE) -> Array:
    """Packs channels-last weights of bytes into panels of outputs; `group` inputs of an output are contiguous."""
    outputs, *window, inputs = weights.shape
    made = weights.reshape(-1, _columns_of_panel(outputs, sizes), *window, inputs // group, group)
    return np.ascontiguousarray(np.moveaxis(made, 1, -2))


def conv_by_panels(call: Call, sizes: Sizes = WIDE) -> Conv | None:
    """The attributes of CONVOLUTION for a 2D convolution of a small image where panels pay; else None."""
    attrs = call.attrs
    if not isinstance(attrs, Conv) or call.op.name != "conv" or call.dtype not in _FLOATS or call.tensor.rank != 4:
        return None
    (_, channels, *image), (outputs, taken, *size) = call.args[0].shape, call.args[1].shape
    known = (channels, *image, outputs, taken, *call.shape[2:], *pads_of(attrs, image, size))
    extents = [extent for extent in known if isinstance(extent, int)]
    if len(extents) < len(known) or not all(extents[:7]):
        return None
    _, height, width, outputs, taken, rows, columns, *pads = extents
    if (*size, *pads) == (1, 1, 0, 0, 0, 0):
        # f16 images, which are not copied here, would be widened again for each panel.
        is_small = attrs.groups == 1 and 1 < rows * columns < _SPOTS and call.dtype == f32
        return attrs if is_small and _columns_of_panel(outputs, sizes) else None
    blocks, rest = divmod(outputs, min(sizes))
    if not rest and call.dtype == f32 and _goes_by_rows(call, attrs):
        return attrs
    is_whole = rest == 0 and blocks % attrs.groups == 0 and (blocks % _EVEN == 0 or outputs >= _UNEVEN)
    is_window = taken > 1 and prod(size) > 1
    is_shared = (attrs.groups, call.args[0].shape[0]) == (1, 1) and sizes != NARROW
    pays = is_shared and prod(size) >= _WINDOW and taken >= _CHANNELS
    most = _SHARED if pays else _COPIED
    return attrs if is_whole and is_window and taken * height * width * f32.bytes <= most else None


def _goes_by_rows(call: Call, attrs: Conv) -> bool:
    """Whether the kernel computes row by row, whatever the extents of the image."""
    window = import_module("tirlite.kernels.operators.window").Window
    image, weights = call.args[0].shape[2:], call.args[1].shape
    before = pads_of(attrs, image, weights[2:])[:2]
    moved = window(image, call.shape[2:], tuple(weights[2:]), attrs.strides, before, attrs.dilations)
    return bool(import_module("tirlite.kernels.operators.panels").goes_by_rows(moved, weights, attrs.groups))


def windows_by_panels(call: Call, sizes: Sizes) -> Conv | None:
    """As `conv_by_panels`, but None for 1 x 1 convolutions."""
    attrs = conv_by_panels(call, sizes)
    return attrs if attrs is not None and any(extent != 1 for extent in call.args[1].shape[2:]) else None


def transpose_by_panels(call: Call, size: int = OUTPUTS) -> ConvTranspose | None:
    """The attributes of TRANSPOSE for a transposed convolution of a small image where panels pay; else None."""
    attrs = call.attrs
    if not isinstance(attrs, ConvTranspose) or call.dtype not in _FLOATS or call.tensor.rank != 4 or attrs.groups != 1:
        return None
    known = (*call.args[0].shape[1:], *call.args[1].shape[1:], *call.shape[2:], *attrs.pads)
    extents = [extent for extent in known if isinstance(extent, int)]
    if len(extents) < len(known) or not all(extents[:8]) or attrs.dilations != (1, 1):
        return None
    taken, height, width, outputs, *taps = extents[:6]
    is_whole = outputs > size and outputs % (size if size == OUTPUTS else _EVEN * size) == 0
    # If windows do not overlap, each result comes from one tap, and there are no taps to add up.
    overlaps = min(taps) >= max(_STEPS) and max(taps) > max(_STEPS)
    is_small = taken * height * width * f32.bytes <= _COPIED
    return attrs if attrs.strides == _STEPS and is_whole and overlaps and is_small else None


def panels_of_made(weights: Array, size: int = OUTPUTS) -> Array:
    """Packs the weights `[inputs, outputs, *window]` of a transposed convolution into panels of outputs.

    The taps of each phase of the strides, which contribute to the same places, are contiguous.
    """
    made = room_for(shape_of_made(weights.shape, size), weights.dtype)
    turned, rest = np.swapaxes(weights, 0, 1), made.reshape(-1)
    for row, column in np.ndindex(_STEPS):
        part = _cut(turned[:, :, row :: _STEPS[0], column :: _STEPS[1]], size)
        rest[: part.size], rest = part.reshape(-1), rest[part.size :]
    return made


def shape_of_made(weights: tuple[int, ...], size: int = OUTPUTS) -> tuple[int, ...]:
    """The shape of `panels_of_made` of weights of this shape."""
    taken, outputs, *window = weights
    return outputs // size, taken, *window, size


def by_registers(call: Call) -> Conv | None:
    """The attributes of DEPTHWISE if rows fit in registers, from which lane permutations make taps; else None."""
    attrs, rank = call.attrs, 2
    if not isinstance(attrs, Conv) or call.op.name != "conv" or len(attrs.strides) != rank:
        return None
    kernels = import_module("tirlite.kernels.operators.depthwise")
    x, (outputs, taken, *size) = call.args[0].tensor, call.args[1].shape
    before = pads_of(attrs, x.shape[2:], size)[:rank]
    window = kernels.Window(x.shape[2:], call.shape[2:], tuple(size), attrs.strides, before, attrs.dilations)
    pays = (outputs, taken) == (attrs.groups, 1) and kernels.goes_by_registers(window, 1, 1, permutes=True)
    return attrs if pays else None


# Outputs of a block: a multiple of the rows of most processors' register tiles. With groups, which must be whole
# blocks, blocks are smaller.
BLOCK, OF_GROUPS = 12, 8


@record
class Winograd(Attrs):
    """The pads (top, left, bottom, right), and the number of output channels."""

    pads: tuple[int, ...]
    outputs: int


def _winograd_type(site: Site, attrs: Winograd) -> TensorType:
    x = site.tensor(0)
    above, before, below, behind = attrs.pads
    height, width = x.shape[2:]
    return TensorType((x.shape[0], attrs.outputs, height + above + below - 2, width + before + behind - 2), x.dtype)


WINOGRAD = Op("winograd", _winograd_type, 2, 3, Winograd, lowering=Lowering("winograd.winograd", said=("outputs",)))


def by_winograd(call: Call, block: int = BLOCK) -> Winograd | None:
    """The attributes of WINOGRAD for a 3 x 3 convolution of stride 1 where it is faster; else None."""
    attrs = call.attrs
    if not isinstance(attrs, Conv) or call.op.name != "conv" or call.dtype not in _FLOATS:
        return None
    x, weights = call.args[0].tensor, call.args[1].tensor
    if (attrs.strides, attrs.dilations, weights.shape[2:]) != ((1, 1), (1, 1), (3, 3)):
        return None
    pads = pads_of(attrs, x.shape[2:], (3, 3))
    known = [n for n in (x.shape[1], call.shape[1], *pads) if isinstance(n, int)]
    if len(known) < 6:
        return None
    pays = import_module("tirlite.kernels.operators.winograd").pays
    taken, outputs, *around = known
    each = outputs // attrs.groups
    is_whole = attrs.groups == 1 or each % block == 0
    return Winograd(tuple(around), outputs) if is_whole and pays(taken // attrs.groups, each, call.shape[2:]) else None


def terms_of(weights: Array, block: int = BLOCK) -> Array:
    """Transforms weights `[outputs, inputs, 3, 3]` and packs them into blocks of outputs, padded with zeros."""
    basis = np.array(((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)), weights.dtype)
    outputs, inputs = weights.shape[:2]
    # One small product per output: for one large product, BLAS's threads would cost more than they save.
    made = np.kron(basis, basis) @ weights.reshape(outputs, inputs, 9).swapaxes(1, 2)
    terms = np.zeros(shape_of_terms(weights.shape, block), weights.dtype)
    whole = outputs // block * block
    terms[: whole // block] = made[:whole].reshape(-1, block, 16, inputs).transpose(0, 2, 3, 1)
    if whole < outputs:
        terms[-1, :, :, : outputs - whole] = made[whole:].transpose(1, 2, 0)
    return terms


def shape_of_terms(weights: tuple[int, ...], block: int = BLOCK) -> tuple[int, ...]:
    """The shape of `terms_of` weights of this shape."""
    outputs, inputs = weights[:2]
    return -(-outputs // block), 16, inputs, block
