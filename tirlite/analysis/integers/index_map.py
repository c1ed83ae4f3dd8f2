"""Makes the map from iterations of the loops around indices to elements, and tells whether it is injective."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.integers.equations import solve
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.integers.instances import Instances
from tirlite.ir import Expr, For
from tirlite.record import record
from tirlite.sizes import Proof, Size
from tirlite.sizes.poly import varies
from tirlite.sizes.unknown import is_nonnegative, linear, unknowns_in


@record(eq=False)
class AffineMap:
    """From the iterations of loops to indices: for each axis a sum over loop counters, and over quotients, remainders
    and extrema of such sums.
    """

    indices: tuple[Size, ...]
    space: IndexSpace


def affine_map(indices: Sequence[Expr], space: IndexSpace, extents: Sequence[Size] = ()) -> AffineMap | None:
    """The map that scalar i64 indices are; None where one of them depends on more than sizes and loop counters.

    None, too, where an index may wrap around. `extents` are those of the axes that are indexed, where these are known;
    they help to rule that out.
    """
    found = []
    for axis, index in enumerate(indices):
        size = space.size(index)
        extent = extents[axis] if extents else None
        if linear(size) is None or not is_computed(size) or not space.is_exact_at(index, size, extent):
            return None
        found.append(size)
    return AffineMap(tuple(found), space)


def is_injective(index_map: AffineMap, loops: Sequence[For]) -> Proof:
    """Whether different iterations of `loops`, a nest with the outermost first, have different indices.

    The loops around the nest stand still. YES: at all sizes. NO: at none, and at each there are two iterations with
    equal indices.
    """
    space = index_map.space
    instances = Instances(space, {loop: level for level, loop in enumerate(loops)}, (), 0)
    for index in index_map.indices:
        instances.equate(index, index)
    instances.relate()
    distances = [instances.distance(space.counter(loop)) for loop in loops]
    known = solve(instances.system)
    if known is None or all(name in known and known[name] == 0 for name in distances):
        return Proof.YES
    # A loop that surely comes back, and that no index mentions.
    idle = any(_runs(loop, 2, space) and space.counter(loop) not in instances.met for loop in loops)
    return Proof.NO if idle and all(_runs(loop, 1, space) for loop in loops) else Proof.UNKNOWN


def _runs(loop: For, times: int, space: IndexSpace) -> bool:
    """Whether a loop is proved to run so many times at least; only where its bounds are the same each time."""
    last = space.counter(loop).high
    fixed = not (varies(space.size(loop.start)) or varies(space.size(loop.stop)))
    return fixed and last is not None and is_nonnegative(last + 1 - times)


def is_computed(size: Size) -> bool:
    """Whether a size is a function of dims, parameters and loop counters alone."""
    return all(each.counts for each in unknowns_in(size))
