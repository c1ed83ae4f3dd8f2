"""The kinds of element types that operators take, by the names that messages give them."""

from __future__ import annotations

from collections.abc import Callable

from tirlite.graph.op import Attrs, Site
from tirlite.graph.types import TensorType
from tirlite.ir import DType
from tirlite.record import record


@record
class Elements:
    """Some element types, and what they are called. Each method raises GraphError for a type that is none of them."""

    name: str
    holds: Callable[[DType], bool]

    def demand(self, site: Site, dtype: DType) -> DType:
        """The type itself."""
        if not self.holds(dtype):
            raise site.wrong_type(f"the elements must be {self.name}, and are {dtype}")
        return dtype

    def shared(self, site: Site) -> DType:
        """The element type that all operands share."""
        return self.demand(site, site.same_dtype())

    def first(self, site: Site) -> TensorType:
        """The type of the first operand."""
        self.demand(site, site.tensor(0).dtype)
        return site.tensor(0)

    def same(self, site: Site, attrs: Attrs) -> TensorType:
        """The rule of operators whose result has the type of their operand."""
        return self.first(site)


def _is_number(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_float


def _is_bits(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_bool


NUMBERS = Elements("numbers", _is_number)
FLOATS = Elements("of a float type", lambda dtype: dtype.is_float)
INTEGERS = Elements("integers", lambda dtype: dtype.is_integer)
BOOLS = Elements("bool_", lambda dtype: dtype.is_bool)
BITS = Elements("integers or bool_", _is_bits)
NUMBERS_OR_BOOLS = Elements("numbers or bool_", lambda dtype: not dtype.is_handle)
