"""Facts about a function: what it touches, what lives when, how large it is. Nothing here changes a program."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.analysis.access import Access, AccessKind, Entry, LinearSequence, Region, Touch, linear_sequence
    from tirlite.analysis.allocations import AllocationSize, allocations
    from tirlite.analysis.byte_ranges import ByteRange, are_disjoint, byte_ranges
    from tirlite.analysis.call_demands import GIVEN, Demand, demands, demands_of
    from tirlite.analysis.dependence import Dependence, DependenceKind, Step
    from tirlite.analysis.facts import Facts, dependences
    from tirlite.analysis.in_place.candidates import in_place_candidates
    from tirlite.analysis.in_place.proof import InPlaceProof
    from tirlite.analysis.integers.extents import Extents
    from tirlite.analysis.integers.index_space import IndexSpace
    from tirlite.analysis.lifetimes import Lifetime, lifetimes, lifetimes_of
    from tirlite.analysis.param_uses import ParamUses, Use
    from tirlite.analysis.plan_demands import PlanDemands, plan_demands
    from tirlite.analysis.shape_plan import ShapePlan, shape_plan
    from tirlite.analysis.storage_check.check import check_storage
    from tirlite.analysis.storage_check.resident import StorageFault
else:
    __getattr__ = late_names(
        __name__,
        {
            "access": "Access AccessKind Entry LinearSequence Region Touch linear_sequence",
            "allocations": "AllocationSize allocations",
            "byte_ranges": "ByteRange are_disjoint byte_ranges",
            "call_demands": "GIVEN Demand demands demands_of",
            "dependence": "Dependence DependenceKind Step",
            "integers.extents": "Extents",
            "facts": "Facts dependences",
            "in_place.candidates": "in_place_candidates",
            "in_place.proof": "InPlaceProof",
            "integers.index_space": "IndexSpace",
            "lifetimes": "Lifetime lifetimes lifetimes_of",
            "param_uses": "ParamUses Use",
            "plan_demands": "PlanDemands plan_demands",
            "shape_plan": "ShapePlan shape_plan",
            "storage_check.check": "check_storage",
            "storage_check.resident": "StorageFault",
        },
    )

__all__ = [
    "GIVEN",
    "Access",
    "AccessKind",
    "AllocationSize",
    "ByteRange",
    "Demand",
    "Dependence",
    "DependenceKind",
    "PlanDemands",
    "Entry",
    "Extents",
    "Facts",
    "InPlaceProof",
    "IndexSpace",
    "Lifetime",
    "LinearSequence",
    "ParamUses",
    "Region",
    "ShapePlan",
    "Step",
    "StorageFault",
    "Touch",
    "Use",
    "allocations",
    "in_place_candidates",
    "are_disjoint",
    "byte_ranges",
    "check_storage",
    "demands",
    "dependences",
    "demands_of",
    "plan_demands",
    "lifetimes",
    "lifetimes_of",
    "linear_sequence",
    "shape_plan",
]
