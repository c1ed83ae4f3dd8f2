"""The operators that graphs are made of: their attributes and the types of their results, one family a file."""

from types import MappingProxyType

from tirlite.graph.ops.arrangement import ARRANGEMENT, Broadcast, Pad, Reshape, Slice, Tile, Transpose
from tirlite.graph.ops.binary import BINARY
from tirlite.graph.ops.convolution import CONVOLUTION, Conv, ConvTranspose, Pool
from tirlite.graph.ops.creation import CREATION, Count, Sizes
from tirlite.graph.ops.elementwise import ELEMENTWISE, Alpha, Cast, Clip, Gelu, HardSigmoid, Selu
from tirlite.graph.ops.indexing import INDEXING, BatchDims, OneHot, Scatter, ScatterNd, Suppression, TopK
from tirlite.graph.ops.joining import JOINING, Split
from tirlite.graph.ops.linear import LINEAR, Gemm
from tirlite.graph.ops.normalization import NORMALIZATION, Axis, Epsilon, LayerNorm, Lrn
from tirlite.graph.ops.recurrence import RECURRENCE, GruSteps, Steps
from tirlite.graph.ops.reduction import REDUCTION, Arg, CumSum, Reduce
from tirlite.graph.ops.sampling import SAMPLING, GridSample, RoiAlign
from tirlite.graph.ops.scaling import SCALING, Quantize, Resize

_FAMILIES = (
    *(ELEMENTWISE, BINARY, LINEAR, CONVOLUTION, NORMALIZATION, REDUCTION, ARRANGEMENT, JOINING),
    *(INDEXING, CREATION, SCALING, SAMPLING, RECURRENCE),
)
OPS = MappingProxyType({name: op for family in _FAMILIES for name, op in family.items()})

__all__ = [
    "Alpha",
    "Arg",
    "Axis",
    "BatchDims",
    "Broadcast",
    "Cast",
    "Clip",
    "Conv",
    "ConvTranspose",
    "Count",
    "CumSum",
    "Epsilon",
    "Gelu",
    "Gemm",
    "GridSample",
    "GruSteps",
    "HardSigmoid",
    "LayerNorm",
    "Lrn",
    "OPS",
    "OneHot",
    "Pad",
    "Pool",
    "Quantize",
    "Reduce",
    "Reshape",
    "Resize",
    "RoiAlign",
    "Scatter",
    "ScatterNd",
    "Suppression",
    "Selu",
    "Sizes",
    "Slice",
    "Split",
    "Steps",
    "Tile",
    "TopK",
    "Transpose",
]
