"""Operators of one operand that look at one element at a time: their types."""

from __future__ import annotations

from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.types import TensorType
from tirlite.ir import DType, bool_
from tirlite.record import record


@record
class Cast(Attrs):
    """The element type of the result."""

    dtype: DType


@record
class Clip(Attrs):
    """The least and the greatest value; None is no limit."""

    low: float | int | None = None
    high: float | int | None = None


@record
class Alpha(Attrs):
    """The slope of what is below zero."""

    alpha: float = 0.01


@record
class HardSigmoid(Attrs):
    """`max(0, min(1, alpha * x + beta))`."""

    alpha: float = 0.2
    beta: float = 0.5


@record
class Selu(Attrs):
    """`gamma * (x if x > 0 else alpha * (exp(x) - 1))`."""

    alpha: float = 1.6732631921768188
    gamma: float = 1.0507009873554805


@record
class Gelu(Attrs):
    """Whether the formula with tanh stands for the one with erf."""

    approximate: bool = False


def _same(site: Site, attrs: Attrs) -> TensorType:
    return site.tensor(0)


def _float(site: Site, attrs: Attrs) -> TensorType:
    x = site.tensor(0)
    if not x.dtype.is_float:
        raise site.wrong_type(f"the elements must be of a float type, and are {x.dtype}")
    return x


def _number(site: Site, attrs: Attrs) -> TensorType:
    x = site.tensor(0)
    if x.dtype.is_bool or x.dtype.is_handle:
        raise site.wrong_type(f"the elements must be numbers, and are {x.dtype}")
    return x


def _integer(site: Site, attrs: Attrs) -> TensorType:
    x = site.tensor(0)
    if not x.dtype.is_integer and not x.dtype.is_bool:
        raise site.wrong_type(f"the elements must be integers, and are {x.dtype}")
    return x


def _bool(site: Site, attrs: Attrs) -> TensorType:
    x = site.tensor(0)
    if not x.dtype.is_bool:
        raise site.wrong_type(f"the elements must be bool_, and are {x.dtype}")
    return x


def _test(site: Site, attrs: Attrs) -> TensorType:
    return TensorType(_float(site, attrs).shape, bool_)


def _bitcast(site: Site, attrs: Cast) -> TensorType:
    x = site.tensor(0)
    for each in (x.dtype, attrs.dtype):
        if each.is_float and each.bits == 16:
            raise site.wrong_type(f"the bits of {each} are not looked at: it is computed in f32")
    if x.dtype.bytes != attrs.dtype.bytes or attrs.dtype.is_bool:
        raise site.bad_attribute(f"the bits of {x.dtype} are not those of {attrs.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _cast(site: Site, attrs: Cast) -> TensorType:
    x = site.tensor(0)
    if x.dtype.is_handle or attrs.dtype.is_handle or attrs.dtype.lanes != x.dtype.lanes:
        raise site.wrong_type(f"{x.dtype} does not become {attrs.dtype}")
    return TensorType(x.shape, attrs.dtype)


def _clip(site: Site, attrs: Clip) -> TensorType:
    x = _number(site, attrs)
    for limit in (attrs.low, attrs.high):
        if isinstance(limit, float) and x.dtype.is_integer:
            raise site.bad_attribute(f"{limit} is not a limit of {x.dtype}")
    return x


def _elementwise(rule: object, names: str) -> list[Op]:
    assert callable(rule)
    return [Op(name, rule, is_elementwise=True) for name in names.split()]


ELEMENTWISE = table(
    *_elementwise(
        _float,
        "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh"
        " acosh atanh erf sigmoid silu hard_swish softplus softsign mish floor ceil round trunc",
    ),
    *_elementwise(_number, "negative abs sign relu"),
    *_elementwise(_integer, "bitwise_not"),
    *_elementwise(_bool, "logical_not"),
    *_elementwise(_test, "isnan isinf"),
    Op("identity", _same, is_view=True, is_elementwise=True),
    Op("cast", _cast, attrs=Cast, is_elementwise=True),
    Op("bitcast", _bitcast, attrs=Cast),
    Op("clip", _clip, attrs=Clip, is_elementwise=True),
    Op("leaky_relu", _float, attrs=Alpha, is_elementwise=True),
    Op("elu", _float, attrs=Alpha, is_elementwise=True),
    Op("celu", _float, attrs=Alpha, is_elementwise=True),
    Op("selu", _float, attrs=Selu, is_elementwise=True),
    Op("gelu", _float, attrs=Gelu, is_elementwise=True),
    Op("hard_sigmoid", _float, attrs=HardSigmoid, is_elementwise=True),
)
