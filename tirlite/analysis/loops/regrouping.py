"""Finds what the iterations of a reduction combine, or why they must not be regrouped.

Iterations may be regrouped if they update each outer buffer that they write by only one operation, and read it only
for that, or if each iteration has elements of its own in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import carried_by, writes
from tirlite.analysis.loops.reductions import AnyUpdate, Update, compared_update_of, pair_updates, update_of
from tirlite.ir import Buffer, For, IntImm, Load, Node, Stmt, Store
from tirlite.record import record


@record(eq=False)
class Reading:
    """`stmt` reads what `update` combines into."""

    update: AnyUpdate
    stmt: Stmt


@record(eq=False)
class Mixture:
    """Two statements write one buffer, and are not both updates by one operation: the second may be none."""

    first: AnyUpdate
    second: Stmt
    update: AnyUpdate | None = None


@record(eq=False)
class Carried:
    """`stmt` writes `buffer`, not by an update, where another iteration may touch the same element."""

    buffer: Buffer
    stmt: Stmt


Obstacle: TypeAlias = "Reading | Mixture | Carried"


def updates_in(
    loop: For, facts: Facts, branches: Mapping[Stmt, Update] = MappingProxyType({})
) -> tuple[AnyUpdate, ...] | Obstacle:
    """The updates of buffers from outside of the loop; else what stands against regrouping its iterations.

    Stores in `branches` are the updates that these will be written as.
    """
    shared = sorted(_shared(loop, facts), key=lambda pair: pair[1].position)
    found: dict[_Key, list[AnyUpdate]] = {}
    pairs = {store: update for update in pair_updates(loop) for store in update.stores}
    own_lets = {(let, element.buffer) for pair in pairs.values() for let in pair.values for element in pair.elements}
    for key, touch in shared:
        if not writes(touch):
            continue
        update = _update(touch.node, pairs, branches) if isinstance(touch.node, Store) else None
        others = found.setdefault(key, [])
        if update is None:
            return Mixture(others[0], touch.stmt) if others else Carried(touch.buffer, touch.stmt)
        if others and (type(others[0]), others[0].operation) != (type(update), update.operation):
            return Mixture(others[0], touch.stmt, update)
        others.append(update)
    # Copies of a body share what they load.
    own: Counter[Node] = Counter(read for updates in found.values() for update in updates for read in update.reads)
    for key, touch in shared:
        if own[touch.node]:
            own[touch.node] -= 1
        elif not writes(touch) and key in found and (touch.stmt, touch.buffer) not in own_lets:
            return Reading(found[key][0], touch.stmt)
    return tuple(dict.fromkeys(update for updates in found.values() for update in updates))


def _update(store: Store, pairs: Mapping[Store, AnyUpdate], branches: Mapping[Stmt, Update]) -> AnyUpdate | None:
    return pairs.get(store) or branches.get(store) or update_of(store) or compared_update_of(store)


# A buffer, and the place of an element in it where all its accesses have constant indices.
_Key: TypeAlias = "tuple[Allocation, tuple[int, ...] | None]"


def _shared(loop: For, facts: Facts) -> Iterator[tuple[_Key, Touch]]:
    """The accesses in a loop to each buffer that one iteration touches where another one writes, or the reverse."""
    for allocation, touches in facts.touches_in.get(loop, {}).items():
        if next(carried_by(loop, {allocation: touches}, facts.addresses), None) is not None:
            places = [_place(touch, allocation) for touch in touches]
            is_fixed = None not in places
            for place, touch in zip(places, touches, strict=True):
                yield (allocation, place if is_fixed else None), touch


def _place(touch: Touch, allocation: Allocation) -> tuple[int, ...] | None:
    """The element of an allocation that an access touches, by numbers, where constants tell it."""
    node = touch.node
    if not isinstance(node, Load | Store) or node.buffer is not allocation.buffer:
        return None
    numbers = tuple(index.value for index in node.indices if isinstance(index, IntImm))
    return numbers if len(numbers) == len(node.indices) else None
