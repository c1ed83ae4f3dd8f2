"""The largest first: items in, slots out. No slot ever grows, as what comes later is smaller."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.items import Item
from tirlite.plan.match_range import matches
from tirlite.plan.occupancy import Occupancy
from tirlite.plan.order import Order
from tirlite.plan.slots import Slot
from tirlite.sizes import Size

_LOOKS = 60_000
_LOOKS_PER_ITEM = 5


def by_size(items: Sequence[Item], order: Order, match_range: int | None = None) -> list[Slot] | None:
    """Slots for the items, each put where the storage idles least before and after it; None where that asks too much.

    Of equal sizes the one that lives longest comes first. The work is limited to a number of looks at slots, so that a
    problem in which little can be shared does not cost quadratic time. With a match range an item takes what `matches`
    only.
    """
    work = _LOOKS + _LOOKS_PER_ITEM * len(items)
    slots: list[Slot] = []
    busy: list[Occupancy] = []
    sizes: list[Size] = []
    for index in sorted(range(len(items)), key=lambda i: (-items[i].value, _first(items[i]) - _last(items[i]), i)):
        item = items[index]
        work -= len(slots)
        if work < 0:
            return None
        free = [place for place, taken in enumerate(busy) if taken.is_free(item.live)]
        if match_range is not None:
            free = [place for place in free if matches(item.size, sizes[place], match_range)]
        if free:
            low, high = _first(item), _last(item)
            place = min((busy[i].slack(low, high), i) for i in free)[1]
            decision = Decision(_choice(order, item.size, sizes[place]), sizes[place])
        else:
            place = len(slots)
            decision = Decision(Choice.OPENS)
            slots.append(Slot())
            busy.append(Occupancy())
            sizes.append(item.size)
        item.join(slots[place], decision)
        busy[place].take(item.live)
    return slots


def _first(item: Item) -> int:
    return item.live[0][0]


def _last(item: Item) -> int:
    return item.live[-1][1]


def _choice(order: Order, size: Size, before: Size) -> Choice:
    if size == before:
        return Choice.SAME
    return Choice.ROOM if order.fits(size, before) else Choice.GROWS
