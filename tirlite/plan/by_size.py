"""The largest first: items in, slots out. No slot ever grows, as what comes later is smaller."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.items import Item
from tirlite.plan.occupancy import Occupancy
from tirlite.plan.order import Order
from tirlite.plan.slots import Slot
from tirlite.sizes import Size


def by_size(items: Sequence[Item], order: Order) -> list[Slot] | None:
    """Slots for the items, each put into the smallest slot that is free while it lives; None where that asks too much.

    The work is limited to some comparisons for each item, counted, so that a problem in which nothing can be shared
    does not cost quadratic time.
    """
    work = 20_000 + 10 * len(items)
    slots: list[Slot] = []
    busy: list[Occupancy] = []
    sizes: list[Size] = []
    for index in sorted(range(len(items)), key=lambda i: (-items[i].value, items[i].live[0][0], i)):
        item = items[index]
        place = len(slots) - 1
        while place >= 0 and not busy[place].is_free(item.live):
            place -= 1
        work -= len(slots) - place
        if work < 0:
            return None
        if place < 0:
            decision = Decision(Choice.OPENS)
            place = len(slots)
            slots.append(Slot())
            busy.append(Occupancy())
            sizes.append(item.size)
        else:
            decision = Decision(_choice(order, item.size, sizes[place]), sizes[place])
        item.join(slots[place], decision)
        busy[place].take(item.live)
    return slots


def _choice(order: Order, size: Size, before: Size) -> Choice:
    if size == before:
        return Choice.SAME
    return Choice.ROOM if order.fits(size, before) else Choice.GROWS
