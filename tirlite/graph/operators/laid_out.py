"""Operators on weights in layouts of their own: panels of columns, or the transformed weights of Winograd.

See `kernels.operators.panels` and `matmul`. The panels are `[panels, terms, columns of a panel]`; of convolutions the
terms are the inputs of a group, and the elements of a window. Of bytes they are `[panels, groups of terms, columns,
terms of one]`.
The terms of Winograd's F(2 x 2, 3 x 3) are `[blocks, 16, inputs, outputs of a block]`.
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

# Columns that lie together in a panel: as many as the tiles of sums of most processors have, once or several times.
# Panels go to workers one by one: they are narrower where fewer than this many would leave the last ones uneven.
# Where a row of a tile has no more columns than the narrow ones, others of a wider panel would lie between them: they
# then take as much of a cache as the whole.
WIDE, NARROW = (64, 32), (16,)
_MANY = 8
# Panels of a product, of which the last one is filled up.
_FEW = 2
# Where windows have several elements, the least panels of these go by: of a wider one each element of the image is
# loaded for twice as many sums. So many panels are even, and an odd number of them serves so many outputs. Each copies
# the image that it looks at, of so many bytes at most, so that it stays in the second cache. A copy for all of them may
# be as large as `_SHARED`, where windows have so many elements, and so many inputs, that they pay for it: with copies
# of 4 MiB, ResNet-50 took 1 % less time by `bench graphs`, and a quarter more storage.
_EVEN, _UNEVEN = 2, 128
_COPIED, _SHARED = 1 << 19, 1 << 20
_WINDOW, _CHANNELS = 9, 16
# The outputs of a panel of transposed convolutions: of the wide ones there is an even number.
OUTPUTS, MANY_OUTPUTS = 16, 32
# The steps of transposed convolutions that go by panels: each phase has loops of its own.
_STEPS = (2, 2)
# Points go by panels at fewer places than this many: more fill vectors as they lie, if they do.
_SPOTS = 64
# Where processors have it, lanes of any two vectors go into one by one instruction.
PERMUTES = "permutations"
# Processors whose tiles of sums are as narrow as that, and all others.
SHORT_ROWS, LONG_ROWS = "short rows", "long rows"
# The dot products of bytes, and how many of each column these take at once.
DOTS = "u8 s8"
_GROUP = 4
# Processors that multiply pairs of halves, and no bytes: weights are halves there, so that none are widened at calls.
HALVES = "halves"
PAIR = 2
# Weights of halves are laid out as f32, in which their products are summed up.
_FLOATS = (f32, f16)
# Columns of a recurrent layer that pay for panels where one sequence goes through it.
_COLUMNS = 512
# An image of bytes is copied with its inputs side by side, which so many products of each pay for, and so many inputs.
# The sums of a panel are held meanwhile, at this many places. Of points this many places fill vectors as they lie.
_PRODUCTS = 512
_INPUTS = 16
_PLACES = 1024
_POINTS = 64
# Vectors of weights of convolutions lie in one line of a cache each, as those of products and recurrent layers need
# not, which are read once: points over 512 to 1,024 inputs took 0.89 of the time, windows of several 0.88 to 0.96.
_LINE = 64

Sizes = tuple[int, ...]


@record
class Scales(Attrs):
    """How many columns a product has, and what it and what is added to it are multiplied by."""

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
    """The attributes of what computes a product of rows and a matrix, or its transpose, by panels of that.

    One row takes the columns of a transpose as they lie, in vectors of their own.
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
    """The columns of a panel, of these numbers; 0 where none makes whole panels."""
    if not isinstance(columns, int) or not columns:
        return 0
    fits = [n for n in sizes if columns % n == 0]
    return next((n for n in fits if columns >= _MANY * n), min(fits, default=0))


def _columns_of_most(columns: int, sizes: Sizes = WIDE) -> int:
    """The columns of all panels but the last one, which may have fewer; 0 where there are none of these."""
    if columns >= _MANY * sizes[0]:
        return sizes[0]
    uneven = next((n for n in (*sizes, *NARROW) if columns >= _FEW * n), 0)
    return _columns_of_panel(columns, sizes) or uneven


def panels(weights: Array, sizes: Sizes = WIDE) -> Array:
    """A matrix as panels of columns, one after the other; the last one is filled up with columns of 0."""
    terms, columns = weights.shape
    size = _columns_of_most(columns, sizes)
    made = np.empty((-(-columns // size), terms, size), weights.dtype)
    for panel, first in zip(made, range(0, columns, size), strict=True):
        part = weights[:, first : first + size]
        panel[:, : part.shape[1]] = part
        panel[:, part.shape[1] :] = 0
    return made


def room_for(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array for the weights of a convolution, to be filled."""
    return array_at(_LINE, shape, dtype)


def panels_of_outputs(weights: Array, sizes: Sizes = WIDE) -> Array:
    """The weights of a convolution as panels of outputs."""
    return _cut(weights, shape_of_outputs(weights.shape, sizes)[-1])


def _cut(weights: Array, size: int) -> Array:
    """Weights as panels of this many along their first axis, which becomes the last one."""
    cut = np.moveaxis(weights.reshape(-1, size, *weights.shape[1:]), 1, -1)
    made = room_for(cut.shape, cut.dtype)
    np.copyto(made, cut)
    return made


def shape_of_outputs(weights: tuple[int, ...], sizes: Sizes = WIDE) -> tuple[int, ...]:
    """The shape of these panels."""
    outputs, *others = weights
    size = _columns_of_panel(outputs, sizes) if prod(others[1:]) == 1 else min(sizes)
    return outputs // size, *others, size


def bytes_by_groups(call: Call, group: int = _GROUP, sizes: Sizes = WIDE) -> Attrs | None:
    """The attributes of what computes a product of bytes and a matrix by panels of it, if terms are whole groups."""
    if call.op.name != "matmul_bytes":
        return None
    a, b = (each.tensor for each in call.args[:2])
    terms, columns = b.shape
    is_whole = isinstance(terms, int) and terms > 0 and terms % group == 0
    is_full = isinstance(columns, int) and (_columns_of_panel(columns, sizes) > 0 or 2 * columns > sizes[0])
    return Attrs() if is_whole and is_full and (a.dtype, b.dtype) == (u8, i8) else None


def groups(weights: Array, group: int = _GROUP, sizes: Sizes = WIDE) -> Array:
    """A matrix of bytes as panels of columns, of each of which the terms that are multiplied together lie so.

    The last panel is filled up with columns of 0.
    """
    terms, columns = weights.shape
    size = _columns_of_panel(columns, sizes) or sizes[0]
    whole = np.pad(weights, [(0, 0), (0, -columns % size)])
    return np.ascontiguousarray(np.moveaxis(whole.reshape(terms // group, group, -1, size), (2, 0, 3, 1), range(4)))


def halves(weights: Array) -> Array:
    return weights.astype(np.int16)


def lstm_by_panels(call: Call, sizes: Sizes = WIDE) -> Steps | None:
    """The attributes of a layer of a known number of sequences, or of a single one with weights that pay for it."""
    attrs = call.attrs
    if not isinstance(attrs, Steps) or call.op.name != "lstm" or call.args[1].dtype != f32:
        return None
    batches, columns = call.args[2].tensor.shape[1], call.args[1].tensor.shape[2]
    if not isinstance(batches, int) or not isinstance(columns, int) or not _columns_of_panel(columns, sizes):
        return None
    return attrs if batches > 1 or columns >= _COLUMNS else None


def panels_of_ways(weights: Array, sizes: Sizes = WIDE) -> Array:
    """Matrices as panels of columns, one after the other."""
    ways, rows, columns = weights.shape
    made = weights.reshape(ways, rows, -1, _columns_of_panel(columns, sizes))
    return np.ascontiguousarray(made.swapaxes(1, 2))


def steps_by_groups(call: Call) -> Attrs | None:
    """The attributes of a layer of integers that go by pairs."""
    return call.attrs if call.op.name == "lstm_bytes" and call.args[1].dtype == i16 else None


def are_bytes(weights: Array) -> bool:
    return bool((weights == weights.astype(np.int8)).all())


def groups_of_pairs(weights: Array) -> Array:
    """Pairs of rows `[ways, panels, pairs, columns, 2]` as groups of four, with 0 after the last, of bytes."""
    ways, panels, pairs, columns, _ = weights.shape
    whole = np.pad(weights.astype(np.int8), [(0, 0), (0, 0), (0, pairs % 2), (0, 0), (0, 0)])
    made = whole.reshape(ways, panels, -1, 2, columns, 2).swapaxes(3, 4)
    return np.ascontiguousarray(made).reshape(ways, panels, -1, columns, _GROUP)


def conv_bytes_by_halves(call: Call) -> Attrs | None:
    """The attributes of a convolution of bytes by windows, if weights are bytes: points are widened in less time."""
    if call.op.name != "conv_bytes" or call.args[2].dtype != i8:
        return None
    return call.attrs if any(extent != 1 for extent in call.args[2].shape[1:-1]) else None


def conv_bytes_by_panels(call: Call, group: int = _GROUP, sizes: Sizes = WIDE) -> Conv | None:
    """The attributes of what computes a convolution of bytes by panels of outputs, where that pays."""
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
    """The weights of a convolution of bytes, inputs last, as panels of outputs, some inputs of each side by side."""
    outputs, *window, inputs = weights.shape
    made = weights.reshape(-1, _columns_of_panel(outputs, sizes), *window, inputs // group, group)
    return np.ascontiguousarray(np.moveaxis(made, 1, -2))


def conv_by_panels(call: Call, sizes: Sizes = WIDE) -> Conv | None:
    """The attributes of what computes a convolution of two axes on a small image by panels, where that pays."""
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
        # Halves that lie as they are would be widened anew for each panel.
        is_small = attrs.groups == 1 and 1 < rows * columns < _SPOTS and call.dtype == f32
        return attrs if is_small and _columns_of_panel(outputs, sizes) else None
    blocks, rest = divmod(outputs, min(sizes))
    is_whole = rest == 0 and blocks % attrs.groups == 0 and (blocks % _EVEN == 0 or outputs >= _UNEVEN)
    is_window = taken > 1 and prod(size) > 1
    is_shared = (attrs.groups, call.args[0].shape[0]) == (1, 1) and sizes != NARROW
    pays = is_shared and prod(size) >= _WINDOW and taken >= _CHANNELS
    most = _SHARED if pays else _COPIED
    return attrs if is_whole and is_window and taken * height * width * f32.bytes <= most else None


def windows_by_panels(call: Call, sizes: Sizes) -> Conv | None:
    """The same, for windows of several elements alone."""
    attrs = conv_by_panels(call, sizes)
    return attrs if attrs is not None and any(extent != 1 for extent in call.args[1].shape[2:]) else None


def transpose_by_panels(call: Call, size: int = OUTPUTS) -> ConvTranspose | None:
    """The attributes of what computes the transpose of a convolution on a small image by panels, where that pays."""
    attrs = call.attrs
    if not isinstance(attrs, ConvTranspose) or call.dtype not in _FLOATS or call.tensor.rank != 4 or attrs.groups != 1:
        return None
    known = (*call.args[0].shape[1:], *call.args[1].shape[1:], *call.shape[2:], *attrs.pads)
    extents = [extent for extent in known if isinstance(extent, int)]
    if len(extents) < len(known) or not all(extents[:8]) or attrs.dilations != (1, 1):
        return None
    taken, height, width, outputs, *taps = extents[:6]
    is_whole = outputs > size and outputs % (size if size == OUTPUTS else _EVEN * size) == 0
    # Where windows stand apart, each result is one part, and none are added up.
    overlaps = min(taps) >= max(_STEPS) and max(taps) > max(_STEPS)
    is_small = taken * height * width * f32.bytes <= _COPIED
    return attrs if attrs.strides == _STEPS and is_whole and overlaps and is_small else None


def panels_of_made(weights: Array, size: int = OUTPUTS) -> Array:
    """The weights `[inputs, outputs, *window]` of the transpose of a convolution as panels of outputs.

    Those of taps that count at the same places lie together.
    """
    made = room_for(shape_of_made(weights.shape, size), weights.dtype)
    turned, rest = np.swapaxes(weights, 0, 1), made.reshape(-1)
    for row, column in np.ndindex(_STEPS):
        part = _cut(turned[:, :, row :: _STEPS[0], column :: _STEPS[1]], size)
        rest[: part.size], rest = part.reshape(-1), rest[part.size :]
    return made


def shape_of_made(weights: tuple[int, ...], size: int = OUTPUTS) -> tuple[int, ...]:
    """The shape of these panels."""
    taken, outputs, *window = weights
    return outputs // size, taken, *window, size


def by_registers(call: Call) -> Conv | None:
    """The attributes of what computes a depthwise convolution from rows in registers, of which taps take any lanes."""
    attrs, rank = call.attrs, 2
    if not isinstance(attrs, Conv) or call.op.name != "conv" or len(attrs.strides) != rank:
        return None
    kernels = import_module("tirlite.kernels.operators.depthwise")
    x, (outputs, taken, *size) = call.args[0].tensor, call.args[1].shape
    before = pads_of(attrs, x.shape[2:], size)[:rank]
    window = kernels.Window(x.shape[2:], call.shape[2:], tuple(size), attrs.strides, before, attrs.dilations)
    pays = (outputs, taken) == (attrs.groups, 1) and kernels.goes_by_registers(window, 1, 1, permutes=True)
    return attrs if pays else None


# Outputs of a block: as many as the tiles of sums of most processors have, once or several times. Those of groups are
# whole blocks.
BLOCK, OF_GROUPS = 12, 8


@record
class Winograd(Attrs):
    """Padding above and before, then below and after, and how many channels the result has."""

    pads: tuple[int, ...]
    outputs: int


def _winograd_type(site: Site, attrs: Winograd) -> TensorType:
    x = site.tensor(0)
    above, before, below, behind = attrs.pads
    height, width = x.shape[2:]
    return TensorType((x.shape[0], attrs.outputs, height + above + below - 2, width + before + behind - 2), x.dtype)


WINOGRAD = Op("winograd", _winograd_type, 2, 3, Winograd, lowering=Lowering("winograd.winograd", said=("outputs",)))


def by_winograd(call: Call, block: int = BLOCK) -> Winograd | None:
    """The attributes of what computes a call in its place by such blocks, where that takes less time."""
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
    """The terms of weights `[outputs, inputs, 3, 3]` by blocks of outputs, with zeros after those of the last one."""
    basis = np.array(((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)), weights.dtype)
    outputs, inputs = weights.shape[:2]
    # A product for each output: of all at once, threads of BLAS would take turns for longer than it lasts.
    made = np.kron(basis, basis) @ weights.reshape(outputs, inputs, 9).swapaxes(1, 2)
    terms = np.zeros(shape_of_terms(weights.shape, block), weights.dtype)
    whole = outputs // block * block
    terms[: whole // block] = made[:whole].reshape(-1, block, 16, inputs).transpose(0, 2, 3, 1)
    if whole < outputs:
        terms[-1, :, :, : outputs - whole] = made[whole:].transpose(1, 2, 0)
    return terms


def shape_of_terms(weights: tuple[int, ...], block: int = BLOCK) -> tuple[int, ...]:
    """The shape of these terms."""
    outputs, inputs = weights[:2]
    return -(-outputs // block), 16, inputs, block
