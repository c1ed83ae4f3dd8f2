"""Which of two sums of sizes is smaller, for all values of the dims: sizes of slots in, a proved answer out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tirlite.plan.layout import total_of
from tirlite.plan.order import Order
from tirlite.sizes import Proof, Size, prove_le

# Beyond so many sizes that differ, no proof is tried.
_MANY = 64


def proved_at_most(left: Sequence[Size], right: Sequence[Size], order: Order) -> bool:
    """Whether the sum of `left` is at most that of `right`, proved. False where that is wrong or unknown.

    What stands on both sides is left out; the rest is proved as a whole, or size by size, each covered by one of its
    own.
    """
    ours, theirs = Counter(left), Counter(right)
    less = sorted((ours - theirs).elements(), key=order.value, reverse=True)
    more = sorted((theirs - ours).elements(), key=order.value)
    if sum(map(order.value, less)) > sum(map(order.value, more)):
        return False
    if len(less) + len(more) > _MANY:
        return False
    return prove_le(total_of(less), total_of(more)) is Proof.YES or _covered(less, more, order)


def _covered(less: Sequence[Size], more: list[Size], order: Order) -> bool:
    for size in less:
        place = next((i for i, other in enumerate(more) if order.fits(size, other)), None)
        if place is None:
            return False
        del more[place]
    return True
