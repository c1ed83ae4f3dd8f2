"""Operators that bring elements to a common scale: their types."""

from __future__ import annotations

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.ops.linear import broadcast_into
from tirlite.graph.types import TensorType
from tirlite.record import record


@record
class Epsilon(Attrs):
    """What is added to a variance before the root is taken."""

    epsilon: float = 1e-5


@record
class LayerNorm(Attrs):
    """The first of the axes that are normalised together, and what is added to the variance."""

    axis: int = -1
    epsilon: float = 1e-5


@record
class Lrn(Attrs):
    """`x / (bias + alpha / size * s) ** beta`, where s sums the squares of `size` neighbouring channels."""

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0


@record
class Axis(Attrs):
    """The axis that the operator works along; negative ones count from the end."""

    axis: int = -1


def _floats(site: Site) -> TensorType:
    dtype = site.same_dtype()
    if not dtype.is_float:
        raise site.wrong_type(f"the elements must be of a float type, and are {dtype}")
    return site.tensor(0)


def _channels(site: Site, x: TensorType) -> None:
    """Raises GraphError where an operand behind the first has not one element for each channel."""
    if x.rank < 2:
        raise site.mismatch("operand 0 must have a batch axis and a channel axis")
    for number, each in enumerate(site.tensors()[1:], 1):
        if each.rank != 1 or not site.is_equal(each.shape[0], x.shape[1]):
            raise site.mismatch(f"operand {number} must have one element for each of {x.shape[1]} channels")


def _batch_norm(site: Site, attrs: Epsilon) -> TensorType:
    x = _floats(site)
    _channels(site, x)
    return x


def _layer_norm(site: Site, attrs: LayerNorm) -> TensorType:
    x = _floats(site)
    inner: Shape = x.shape[site.axis(attrs.axis, x.rank) :]
    for each in site.tensors()[1:]:
        broadcast_into(site, each, inner)
    return x


def _lrn(site: Site, attrs: Lrn) -> TensorType:
    x = _floats(site)
    if attrs.size < 1:
        raise site.bad_attribute("size must be positive")
    _channels(site, x)
    return x


def _softmax(site: Site, attrs: Axis) -> TensorType:
    x = _floats(site)
    site.axis(attrs.axis, x.rank)
    return x


NORMALIZATION = table(
    Op("batch_norm", _batch_norm, 5, 5, attrs=Epsilon),
    Op("instance_norm", _batch_norm, 3, 3, attrs=Epsilon),
    Op("layer_norm", _layer_norm, 2, 3, attrs=LayerNorm),
    Op("lrn", _lrn, attrs=Lrn),
    Op("softmax", _softmax, attrs=Axis),
    Op("log_softmax", _softmax, attrs=Axis),
)
