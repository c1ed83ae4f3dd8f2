"""Proves that what a read of a buffer reads was written in the same run of a body.

For each instance of the read an instance of a store is sought that has the same index: its loop counters follow from
the equations along the axes. That instance exists if all bounds and conditions around the store hold for it, which must
follow from the bounds and conditions around the read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from tirlite.analysis.access import Region, Touch
from tirlite.analysis.coverage.store_nest import in_the_other_branch, indices_of
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.regions import child_of, regions_between, root_of
from tirlite.ir import Expr, For, ForKind, IfThenElse, Load, Max, Min, Store, conjuncts
from tirlite.ir.checked import mask_of
from tirlite.sizes import Size
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import Unknown, follows, linear, terms_in, unknowns_in

# Sums of one of these groups are all 0 or more.
_Demand: TypeAlias = tuple[tuple[Size, ...], ...]

# What is tried: facts, and writes for one read.
_MOST_FACTS = 32
_MOST_WRITES = 8


def is_filled(read: Touch, writes: Sequence[Touch], body: Region, space: IndexSpace) -> bool:
    """Whether each element that `read` sees was written in the same run of `body`, by one store in a statement before.

    The body is that of a serial loop; the buffer is written and read as itself, not through views.
    """
    before = [write for write in writes if _comes_before(write, read, body)]
    around = _sums(_demands(read.region, root_of(read.region), space))
    facts = [*islice((each for each in around if all(map(_is_steady, unknowns_in(each)))), _MOST_FACTS)]
    return any(_reaches(write, before, read, body, facts, space) for write in before[-_MOST_WRITES:])


def _comes_before(write: Touch, read: Touch, body: Region) -> bool:
    """Whether the write stands in a statement of `body` that ends before the one of the read begins."""
    mine, other = child_of(body, write.region), child_of(body, read.region)
    is_apart = mine is None or other is None or mine.composite is not other.composite
    return is_apart and write.position < read.position


def _reaches(
    write: Touch, writes: Sequence[Touch], read: Touch, body: Region, facts: Sequence[Size], space: IndexSpace
) -> bool:
    store, load = write.node, read.node
    if not isinstance(store, Store) or not isinstance(load, Load) or store.buffer is not load.buffer:
        return False
    if mask_of(store.indices) is not None:
        return False
    stored, loaded = _lanes(store), _lanes(load)
    if stored not in (1, loaded):
        return False
    # What a lane reads, the same lane of a store has written, or a store of single elements.
    lane = space.lane(loaded)
    mine, wanted = indices_of(store, space, lane), indices_of(load, space, lane)
    if mine is None or wanted is None:
        return False
    where = write.region
    if in_the_other_branch(write, writes, mine, body, space) is not None:
        assert where.parent is not None
        where = where.parent
    loops = [region.composite for region in regions_between(where, body) if isinstance(region.composite, For)]
    instance = _Instance(loops, mine, wanted, space)
    if not all(instance.of(a) == b for a, b in zip(mine, wanted, strict=True)):
        return False
    demands = list(_demands(where, body, space))
    # What has another value where the read runs than where the store ran says nothing of the store.
    fixed = _lasting(body, [*mine, *_sums(demands)]).union(instance.counters, () if lane is None else (lane,))
    return all(fixed.issuperset(terms_in(index)) for index in mine) and all(
        any(
            all(fixed.issuperset(terms_in(each)) and follows(instance.of(each), facts) for each in group)
            for group in demand
        )
        for demand in demands
    )


def _lanes(access: Store | Load) -> int:
    return access.indices[-1].dtype.lanes if access.indices else 1


class _Instance:
    """The counters of the loops around the store, as sums over those around the read, for which the indices are equal.

    A loop that no axis needs stands at its first iteration.
    """

    def __init__(self, loops: Sequence[For], mine: Sequence[Size], wanted: Sequence[Size], space: IndexSpace) -> None:
        self.counters: dict[Atom, Size] = dict.fromkeys((space.counter(loop) for loop in loops), 0)
        for own, other in zip(mine, wanted, strict=True):
            parts = linear(own)
            moving = [] if parts is None else [atom for atom in parts.terms if atom in self.counters]
            if parts is not None and len(moving) == 1:
                factor = parts.terms[moving[0]]
                distance = other - (own - factor * moving[0])
                if distance % factor == 0:
                    self.counters[moving[0]] = distance // factor

    def of(self, value: Size) -> Size:
        """What a sum around the store is for this instance."""
        for atom, factor in terms_in(value).items():
            if atom in self.counters:
                value = value + factor * (self.counters[atom] - atom)
        return value


def _demands(region: Region, outer: Region, space: IndexSpace) -> Iterator[_Demand]:
    """What holds of all loops and conditions from `region` up to below `outer`."""
    for each in regions_between(region, outer):
        composite = each.composite
        if isinstance(composite, For) and composite.step > 0 and composite.kind is not ForKind.THREAD:
            value = space.size(composite.var)
            yield _bounded(value, composite.start, Max, space)
            yield _bounded(value, composite.stop, Min, space)
        elif isinstance(composite, IfThenElse) and each.then is None:
            sums = map(space.surplus, conjuncts(composite.condition))
            yield from (() if each is None else ((each,),) for each in sums)
        else:
            yield ()


def _bounded(value: Size, end: Expr, kind: type[Min | Max], space: IndexSpace) -> _Demand:
    """That a value is not below the end of a loop that may be a maximum; or below one that may be a minimum."""

    def beyond(expr: Expr) -> Size | None:
        size = space.size(expr)
        if not space.is_exact(size):
            return None
        return value - size if kind is Max else size - value - 1

    groups = [[beyond(end)], [beyond(each) for each in space.operands(end, kind)]]
    return tuple(tuple(each for each in group if each is not None) for group in groups if None not in group)


def _sums(demands: Iterable[_Demand]) -> Iterator[Size]:
    return (each for demand in demands for group in demand for each in group)


def _lasting(body: Region, sums: Iterable[Size]) -> set[Atom]:
    """The atoms in sums that keep their value during one run of `body`."""
    around = {region.composite for region in regions_between(body, root_of(body))}

    def lasts(source: Unknown) -> bool:
        return source.owner in around or (source.owner is None and source.steady)

    return {atom for each in sums for atom in terms_in(each) if all(map(lasts, unknowns_in(atom + 0)))}


def _is_steady(unknown: Unknown) -> bool:
    """Whether it has one value wherever one instance of an access, and what is around it, mentions it."""
    return unknown.counts or unknown.steady
