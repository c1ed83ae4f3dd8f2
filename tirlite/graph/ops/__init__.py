"""The operators that graphs are made of: their attributes and the types of their results, one family a file."""

from types import MappingProxyType

from tirlite.graph.ops.arrangement import ARRANGEMENT, Broadcast, Pad, Reshape, Slice, Tile, Transpose
from tirlite.graph.ops.binary import BINARY
from tirlite.graph.ops.convolution import CONVOLUTION, Conv, ConvTranspose, Pool
from tirlite.graph.ops.elementwise import ELEMENTWISE, Alpha, Cast, Clip, Gelu, HardSigmoid, Selu
from tirlite.graph.ops.joining import JOINING, Split
from tirlite.graph.ops.linear import LINEAR, Gemm
from tirlite.graph.ops.normalization import NORMALIZATION, Axis, Epsilon, LayerNorm, Lrn
from tirlite.graph.ops.reduction import REDUCTION, Arg, CumSum, Reduce

_FAMILIES = (ELEMENTWISE, BINARY, LINEAR, CONVOLUTION, NORMALIZATION, REDUCTION, ARRANGEMENT, JOINING)
OPS = MappingProxyType({name: op for family in _FAMILIES for name, op in family.items()})

__all__ = [
    "Alpha",
    "Arg",
    "Axis",
    "Broadcast",
    "Cast",
    "Clip",
    "Conv",
    "ConvTranspose",
    "CumSum",
    "Epsilon",
    "Gelu",
    "Gemm",
    "HardSigmoid",
    "LayerNorm",
    "Lrn",
    "OPS",
    "Pad",
    "Pool",
    "Reduce",
    "Reshape",
    "Selu",
    "Slice",
    "Split",
    "Tile",
    "Transpose",
]
