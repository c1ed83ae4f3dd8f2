"""A read and the writes of one buffer in, whether what is read was surely written in the same run of a body out.

For each instance of the read an instance of a store is sought that has the same index: its loop counters follow from
the equations along the axes. That instance exists if all bounds and conditions around the store hold for it, which must
follow from the bounds and conditions around the read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from tirlite.analysis.access import Region, Touch
from tirlite.analysis.extrema import forms_of, operands_of
from tirlite.analysis.index_space import IndexSpace, whole_times
from tirlite.analysis.linear import Linear, Unknown, is_nonnegative
from tirlite.analysis.regions import child_of, regions_between, root_of
from tirlite.analysis.store_nest import in_the_other_branch, indices_of
from tirlite.ir import GE, GT, LE, LT, And, Expr, For, ForKind, IfThenElse, Load, Max, Min, Store, i64
from tirlite.sizes import Size

# Sums of one of these groups are all 0 or more.
_Demand: TypeAlias = tuple[tuple[Linear, ...], ...]

# What is tried: facts, and writes for one read.
_MOST_FACTS = 32
_MOST_WRITES = 8


def is_filled(read: Touch, writes: Sequence[Touch], body: Region, space: IndexSpace) -> bool:
    """Whether each element that `read` sees was written in the same run of `body`, by one store in a statement before.

    The body is that of a serial loop; the buffer is written and read as itself, not through views.
    """
    before = [write for write in writes if _comes_before(write, read, body)]
    around = _sums(_demands(read.region, root_of(read.region), space))
    facts = [*islice((each for each in around if all(map(_is_steady, each.terms))), _MOST_FACTS)]
    return any(_reaches(write, before, read, body, facts, space) for write in before[-_MOST_WRITES:])


def _comes_before(write: Touch, read: Touch, body: Region) -> bool:
    """Whether the write stands in a statement of `body` that ends before the one of the read begins."""
    mine, other = child_of(body, write.region), child_of(body, read.region)
    is_apart = mine is None or other is None or mine.composite is not other.composite
    return is_apart and write.position < read.position


def _reaches(
    write: Touch, writes: Sequence[Touch], read: Touch, body: Region, facts: Sequence[Linear], space: IndexSpace
) -> bool:
    store, load = write.node, read.node
    if not isinstance(store, Store) or not isinstance(load, Load) or store.buffer is not load.buffer:
        return False
    stored, loaded = _lanes(store), _lanes(load)
    if stored not in (1, loaded):
        return False
    # What a lane reads, the same lane of a store has written, or a store of single elements.
    lane = Unknown("a lane", 0, loaded - 1, steady=False) if loaded > 1 else None
    mine, wanted = indices_of(store, space, lane), indices_of(load, space, lane)
    if mine is None or wanted is None:
        return False
    where = write.region
    if in_the_other_branch(write, writes, mine, body, space) is not None:
        assert where.parent is not None
        where = where.parent
    loops = [region.composite for region in regions_between(where, body) if isinstance(region.composite, For)]
    instance = _Instance(loops, mine, wanted, space)
    if not all(instance.of(a).same_as(b) for a, b in zip(mine, wanted, strict=True)):
        return False
    demands = list(_demands(where, body, space))
    # What has another value where the read runs than where the store ran says nothing of the store.
    fixed = _lasting(body, [*mine, *_sums(demands)]).union(instance.counters, () if lane is None else (lane,))
    return all(fixed.issuperset(index.terms) for index in mine) and all(
        any(
            all(fixed.issuperset(each.terms) and _follows(instance.of(each), facts, space) for each in group)
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

    def __init__(
        self, loops: Sequence[For], mine: Sequence[Linear], wanted: Sequence[Linear], space: IndexSpace
    ) -> None:
        self.counters = dict.fromkeys((space.counter(loop) for loop in loops), Linear(0))
        for own, other in zip(mine, wanted, strict=True):
            moving = [unknown for unknown in own.terms if unknown in self.counters]
            if len(moving) == 1:
                (unknown,) = moving
                rest = own.plus(Linear(0, {unknown: 1}), -own.terms[unknown])
                counter = _divided(other.plus(rest, -1), own.terms[unknown])
                if counter is not None:
                    self.counters[unknown] = counter

    def of(self, value: Linear) -> Linear:
        """What a sum around the store is for this instance."""
        for unknown, counter in self.counters.items():
            factor = value.terms.get(unknown)
            if factor is not None:
                value = value.plus(Linear(0, {unknown: 1}), -factor).plus(counter, factor)
        return value


def _divided(value: Linear, by: Size) -> Linear | None:
    """The sum that is `value` when it is taken `by` times; None where that is no sum of whole numbers."""
    parts = {unknown: whole_times(factor, by) for unknown, factor in value.terms.items()}
    constant = whole_times(value.constant, by)
    if constant is None or None in parts.values():
        return None
    return Linear(constant, {unknown: part for unknown, part in parts.items() if part is not None})


def _demands(region: Region, outer: Region, space: IndexSpace) -> Iterator[_Demand]:
    """What holds of all loops and conditions from `region` up to below `outer`."""
    for each in regions_between(region, outer):
        composite = each.composite
        if isinstance(composite, For) and composite.step > 0 and composite.kind is not ForKind.THREAD:
            value = space.linear(composite.var)
            yield _bounded(value, composite.start, Max, space)
            yield _bounded(value, composite.stop, Min, space)
        elif isinstance(composite, IfThenElse) and each.then is None:
            yield from _compared(composite.condition, space)
        else:
            yield ()


def _bounded(value: Linear, end: Expr, kind: type[Min | Max], space: IndexSpace) -> _Demand:
    """That a value is not below the end of a loop that may be a maximum; or below one that may be a minimum."""

    def beyond(expr: Expr) -> Linear | None:
        sum_ = space.linear(expr)
        if not space.is_exact(sum_):
            return None
        return value.plus(sum_, -1) if kind is Max else sum_.plus(value, -1).plus(Linear(-1))

    groups = [[beyond(end)], [beyond(each) for each in operands_of(end, kind, space.definitions)]]
    return tuple(tuple(each for each in group if each is not None) for group in groups if None not in group)


def _compared(condition: Expr, space: IndexSpace) -> Iterator[_Demand]:
    """That a condition holds."""
    todo = [condition]
    while todo:
        each = todo.pop()
        if isinstance(each, And):
            todo += (each.a, each.b)
        elif isinstance(each, LT | LE | GT | GE) and each.a.dtype == i64:
            a, b = space.linear(each.a), space.linear(each.b)
            less, more = (a, b) if isinstance(each, LT | LE) else (b, a)
            gap = Linear(-1 if isinstance(each, LT | GT) else 0)
            yield ((more.plus(less, -1).plus(gap),),) if space.is_exact(a) and space.is_exact(b) else ()
        else:
            yield ()


def _sums(demands: Iterable[_Demand]) -> Iterator[Linear]:
    return (each for demand in demands for group in demand for each in group)


def _lasting(body: Region, sums: Iterable[Linear]) -> set[Unknown]:
    """The unknowns in sums that keep their value during one run of `body`."""
    around = {region.composite for region in regions_between(body, root_of(body))}

    def lasts(source: Unknown) -> bool:
        return source.loop in around or (source.loop is None and source.steady)

    return {unknown for each in sums for unknown in each.terms if all(map(lasts, _sources(unknown)))}


def _is_steady(unknown: Unknown) -> bool:
    """Whether it has one value wherever one instance of an access, and what is around it, mentions it."""
    return all(source.counts or source.steady for source in _sources(unknown))


def _sources(unknown: Unknown) -> Iterator[Unknown]:
    """What an unknown is a function of: itself, or what it depends on."""
    seen: set[Unknown] = set()
    stack = [unknown]
    while stack:
        top = stack.pop()
        if top not in seen:
            seen.add(top)
            stack += top.depends
            if top.counts or not top.depends:
                yield top


def _follows(goal: Linear, facts: Sequence[Linear], space: IndexSpace) -> bool:
    """Whether a sum is 0 or more: by itself, or as it is no less than a multiple of a fact."""
    return any(
        _is_nonnegative(form) or any(_is_nonnegative(form.plus(f, -scale)) for f in facts for scale in _scales(form, f))
        for form in forms_of(goal, space.forms)
    )


def _scales(goal: Linear, fact: Linear) -> Iterator[int]:
    """By how much a fact is to be taken for an unknown of the goal to go away."""
    factors: dict[int, None] = {}
    for unknown, coefficient in fact.terms.items():
        wanted = goal.terms.get(unknown)
        if isinstance(wanted, int) and isinstance(coefficient, int) and wanted % coefficient == 0:
            factors[wanted // coefficient] = None
    return (factor for factor in factors if factor > 0)


def _is_nonnegative(value: Linear) -> bool:
    low = value.ends()[0]
    return low is not None and is_nonnegative(low)
