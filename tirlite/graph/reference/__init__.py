"""What each operator means, on NumPy arrays: the oracle of everything that computes graphs in another way."""

from types import MappingProxyType

from tirlite.graph.reference.binary import BINARY
from tirlite.graph.reference.elementwise import ELEMENTWISE
from tirlite.graph.reference.linear import LINEAR
from tirlite.graph.reference.meaning import Array, Meaning

_FAMILIES = (ELEMENTWISE, BINARY, LINEAR)
MEANINGS = MappingProxyType({name: meaning for family in _FAMILIES for name, meaning in family.items()})

__all__ = ["Array", "MEANINGS", "Meaning"]
