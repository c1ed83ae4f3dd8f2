"""Items: what the sharing algorithms place. Requests, or the slots of another plan, in; items with values out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tirlite.plan.decision import Choice, Decision
from tirlite.plan.in_place import Group
from tirlite.plan.order import Order
from tirlite.plan.request import Interval, Request, joined
from tirlite.plan.slots import Slot
from tirlite.record import record
from tirlite.sizes import Size


@record(guarded=False)
class Item:
    """Requests that take the same storage in turn. `value` is the size in bytes at middling values of the dims."""

    size: Size
    value: int
    live: tuple[Interval, ...]
    slot: Slot

    def join(self, slot: Slot, decision: Decision) -> None:
        """Put the requests into `slot`; the decision is about the first of them, the others keep theirs."""
        slot.members += self.slot.members
        slot.decisions += [decision, *self.slot.decisions[1:]]
        slot.pairs += self.slot.pairs


def items_of(requests: Iterable[Request], order: Order) -> list[Item]:
    """One item for each request."""
    opens = Decision(Choice.OPENS)
    return [Item(r.size, order.value(r.size), r.live, Slot([r], [opens])) for r in requests]


def items_of_groups(groups: Iterable[Group], order: Order) -> list[Item]:
    """One item for each group."""
    return [_item(group, order) for group in groups]


def _item(group: Group, order: Order) -> Item:
    opens, rest = [Decision(Choice.OPENS)], [Decision(Choice.IN_PLACE)] * (len(group.members) - 1)
    pairs = [(after.id, before.id) for before, after in pairwise(group.members)]
    size = group.size
    return Item(size, order.value(size), joined(group.live), Slot([*group.members], opens + rest, pairs))


def items_of_slots(slots: Sequence[Slot], sizes: Sequence[Size], order: Order) -> list[Item]:
    """One item for each slot: placing these is to merge slots, which never costs a byte, as max(a, b) <= a + b."""
    items = []
    for slot, size in zip(slots, sizes, strict=True):
        live = joined(sorted(interval for request in slot.members for interval in request.live))
        items.append(Item(size, order.value(size), live, slot))
    return items
