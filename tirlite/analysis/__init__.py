"""Facts about a function: what it touches, what lives when, how large it is. Nothing here changes a program."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.analysis.access import (
        AccessKind as AccessKind,
        Entry as Entry,
        LinearSequence as LinearSequence,
        Region as Region,
        Touch as Touch,
        linear_sequence as linear_sequence,
    )
    from tirlite.analysis.allocations import AllocationSize as AllocationSize, allocations as allocations
    from tirlite.analysis.byte_ranges import (
        ByteRange as ByteRange,
        are_disjoint as are_disjoint,
        byte_ranges as byte_ranges,
    )
    from tirlite.analysis.facts import Facts as Facts, dependences as dependences
    from tirlite.analysis.in_bounds.call_demands import (
        GIVEN as GIVEN,
        Demand as Demand,
        demands as demands,
        demands_of as demands_of,
    )
    from tirlite.analysis.in_place.candidates import in_place_candidates as in_place_candidates
    from tirlite.analysis.in_place.prover import InPlaceProof as InPlaceProof
    from tirlite.analysis.integers.extents import Extents as Extents
    from tirlite.analysis.integers.index_space import IndexSpace as IndexSpace
    from tirlite.analysis.lifetimes import Lifetime as Lifetime, lifetimes as lifetimes, lifetimes_of as lifetimes_of
    from tirlite.analysis.loops.dependence import (
        Dependence as Dependence,
        DependenceKind as DependenceKind,
        IterationStep as IterationStep,
    )
    from tirlite.analysis.shape_plan import (
        PlanDemands as PlanDemands,
        ShapePlan as ShapePlan,
        plan_demands as plan_demands,
        shape_plan as shape_plan,
    )
    from tirlite.analysis.storage_check.check import check_storage as check_storage
    from tirlite.analysis.storage_check.resident import StorageFault as StorageFault
else:
    __getattr__, __all__ = late_names(__name__)
