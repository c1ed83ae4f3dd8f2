"""Facts about a function: what it touches, what lives when, how large it is. Nothing here changes a program."""

from tirlite.analysis.access import Access, AccessKind, Entry, LinearSequence, Region, Touch, linear_sequence
from tirlite.analysis.allocations import AllocationSize, allocations
from tirlite.analysis.byte_ranges import ByteRange, are_disjoint, byte_ranges
from tirlite.analysis.extents import Extents
from tirlite.analysis.lifetimes import Lifetime, lifetimes, lifetimes_of

__all__ = [
    "Access",
    "AccessKind",
    "AllocationSize",
    "ByteRange",
    "Entry",
    "Extents",
    "Lifetime",
    "LinearSequence",
    "Region",
    "Touch",
    "allocations",
    "are_disjoint",
    "byte_ranges",
    "lifetimes",
    "lifetimes_of",
    "linear_sequence",
]
