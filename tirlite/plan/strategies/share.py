"""Strategy `share` hands out whole slots to requests of one memory, by the best of several ways to share them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, product

from tirlite.plan.in_place import Handover, among, chosen, grouped, handovers
from tirlite.plan.layout import total_of
from tirlite.plan.order import Order, samples
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.strategies.fit import Item, best_fit, by_size, items_of, items_of_groups, items_of_slots
from tirlite.plan.strategies.slots import Slot, slot_plan
from tirlite.plan.strategies.tvm import MATCH_RANGE, tvm, tvm_slots
from tirlite.sizes import Proof, Size, prove_le, prove_lt

_SAMPLES = 4
_Algorithm = Callable[[Sequence[Item], Order, int | None], list[Slot] | None]

# Of more requests than this the first plan that beats the baseline is taken.
_MANY = 4096


def share(problem: Problem, match_range: int | None = None) -> Plan:
    """The plan with the fewest bytes of several that share whole slots; never more than `tvm`, at any binding.

    A slot takes requests of any kinds one after another, also in the gaps of lifetimes, and is as large as the
    largest. Tried are: best fit in order of time; the largest first; and the slots of `tvm`, merged as far as they
    go. Symbolic sizes are ordered by proof where there is one, and by their values at some binding elsewhere; since
    that may misjudge, a plan counts only if its total is proved to be at most that of `tvm`, as it always is for
    merged slots. A request with a choice of memories goes to its first. With pairs in place, the destination takes the
    slot of its source.

    With a `match_range` a request takes free storage of 1 / match_range to match_range times its own size only, where
    both are constant, and with 0 none at all. Pairs in place are not held to it. Below 16, the range of `tvm`, the plan
    may then need more than that of `tvm`.
    """
    order = Order(samples(problem.dims, _SAMPLES))
    pairs = handovers(problem)

    def fill(requests: Sequence[Request]) -> list[Slot]:
        return _share_slots(requests, among(pairs, requests), order, match_range)

    made = slot_plan(problem, "share", fill)
    if match_range is not None or not _is_padded(made):
        return made
    # Slots know nothing of the padding between them, which may make those of the baseline smaller together.
    baseline = tvm(problem)
    return replace(baseline, strategy="share") if prove_lt(baseline.total, made.total) is Proof.YES else made


def _is_padded(plan: Plan) -> bool:
    return plan.problem.contiguous and plan.total != total_of(region.size for region in plan.pools.values())


def _share_slots(
    requests: Sequence[Request], pairs: Sequence[Handover], order: Order, match_range: int | None
) -> list[Slot]:
    joint = items_of_groups(grouped(requests, chosen(pairs, order.value)), order) if pairs else []
    if len(joint) == 1:
        # All lie in place of one another: there is no less than one slot as large as the largest.
        return best_fit(joint, order)
    best = baseline = tvm_slots(requests, pairs, MATCH_RANGE if match_range is None else min(match_range, MATCH_RANGE))
    ceiling = [slot.size for slot in baseline]
    least = _totals(ceiling, order)
    floor = _floor(requests, order)
    if least == floor and not pairs:
        return best
    merged = items_of_slots(baseline, ceiling, order)
    symbolic = not all(isinstance(size, int) for size in ceiling)

    def tried(items: Sequence[Item], algorithm: _Algorithm) -> tuple[list[Slot] | None, list[int]]:
        slots = algorithm(items, order, match_range)
        sizes = [slot.size for slot in slots or ()]
        is_safe = items is merged or not symbolic or proved_at_most(sizes, ceiling, order)
        return (slots if is_safe else None), _totals(sizes, order)

    # What was merged from two slots may be further from some request than the match range has it.
    sets = [merged] if match_range is None else []
    sets += [joint] if pairs else []
    if not pairs or not _is_below(tried(joint, best_fit), floor):
        sets.insert(0, items_of(requests, order))
    for items, algorithm in product(sets, (best_fit, by_size)):
        slots, totals = tried(items, algorithm)
        if slots is not None and _rank(totals, floor) < _rank(least, floor):
            best, least = slots, totals
            if len(requests) > _MANY or (least == floor and not pairs):
                break
    return best


def _is_below(found: tuple[list[Slot] | None, list[int]], floor: Sequence[int]) -> bool:
    """Whether the slots take less than all plans without pairs in place."""
    slots, totals = found
    return slots is not None and _rank(totals, floor) < _rank(floor, floor)


def _totals(sizes: Sequence[Size], order: Order) -> list[int]:
    """Bytes of all slots at each sample binding."""
    return [sum(column) for column in zip(*map(order.values, sizes), strict=True)]


def _floor(requests: Sequence[Request], order: Order) -> list[int]:
    """The most bytes that are live at one time, at each sample binding: no plan without pairs does with less there."""
    values = [order.values(request.size) for request in requests]
    return [_most_live(requests, column) for column in zip(*values, strict=True)]


def _most_live(requests: Sequence[Request], values: Sequence[int]) -> int:
    """The largest sum of the values that are live at one time."""
    changes: defaultdict[int, int] = defaultdict(int)
    for request, value in zip(requests, values, strict=True):
        for low, high in request.live:
            changes[low] += value
            changes[high] -= value
    return max(accumulate(changes[time] for time in sorted(changes)))


def _rank(totals: Sequence[int], floor: Sequence[int]) -> tuple[float, Sequence[int]]:
    """Less is better: what is needed over what must be, summed over the sample bindings; ties go by bytes."""
    return sum(total / max(least, 1) for total, least in zip(totals, floor, strict=True)), totals


# Beyond so many sizes that differ, no proof is tried.
_MOST_COMPARED = 64


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
    if len(less) + len(more) > _MOST_COMPARED:
        return False
    return prove_le(total_of(less), total_of(more)) is Proof.YES or _covered(less, more, order)


def _covered(less: Sequence[Size], more: list[Size], order: Order) -> bool:
    for size in less:
        place = next((i for i, other in enumerate(more) if order.fits(size, other)), None)
        if place is None:
            return False
        del more[place]
    return True
