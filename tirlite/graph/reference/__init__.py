"""What each operator means, on NumPy arrays: the oracle of everything that computes graphs in another way."""

from types import MappingProxyType

from tirlite.graph.reference.arrangement import ARRANGEMENT
from tirlite.graph.reference.binary import BINARY
from tirlite.graph.reference.convolution import CONVOLUTION
from tirlite.graph.reference.creation import CREATION
from tirlite.graph.reference.elementwise import ELEMENTWISE
from tirlite.graph.reference.indexing import INDEXING
from tirlite.graph.reference.linear import LINEAR
from tirlite.graph.reference.meaning import Array, Meaning
from tirlite.graph.reference.normalization import NORMALIZATION
from tirlite.graph.reference.recurrence import RECURRENCE
from tirlite.graph.reference.reduction import REDUCTION
from tirlite.graph.reference.sampling import SAMPLING
from tirlite.graph.reference.scaling import SCALING

_FAMILIES = (
    *(ELEMENTWISE, BINARY, LINEAR, CONVOLUTION, NORMALIZATION, REDUCTION, ARRANGEMENT),
    *(INDEXING, CREATION, SCALING, SAMPLING, RECURRENCE),
)
MEANINGS = MappingProxyType({name: meaning for family in _FAMILIES for name, meaning in family.items()})

__all__ = ["Array", "MEANINGS", "Meaning"]
