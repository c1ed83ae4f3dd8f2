"""The operators that graphs are made of: their attributes and the types of their results, one family a file."""

from types import MappingProxyType

from tirlite.graph.ops.binary import BINARY
from tirlite.graph.ops.elementwise import ELEMENTWISE, Alpha, Cast, Clip, Gelu, HardSigmoid, Selu
from tirlite.graph.ops.linear import LINEAR, Gemm

_FAMILIES = (ELEMENTWISE, BINARY, LINEAR)
OPS = MappingProxyType({name: op for family in _FAMILIES for name, op in family.items()})

__all__ = ["Alpha", "Cast", "Clip", "Gelu", "Gemm", "HardSigmoid", "OPS", "Selu"]
