"""Strategy `share` assigns requests of one memory to whole slots, by the best of several heuristics."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from heapq import heappop, heappush
from itertools import islice, pairwise, product

from tirlite.plan.in_place import Group, Handover, among, chosen, grouped, handovers
from tirlite.plan.layout import Choice, Decision, total_of
from tirlite.plan.order import SizeOrder, samples
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Interval, Request, joined, most_live
from tirlite.plan.strategies.slots import Slot, slot_plan
from tirlite.plan.strategies.tvm import MATCH_RANGE, tvm, tvm_slots
from tirlite.record import record, replace
from tirlite.sizes import Size, is_at_most, maximum


@record(guarded=False)
class Item:
    """Requests that go to the same slot together. `value` is the size in bytes at middling values of the dims."""

    size: Size
    value: int
    live: tuple[Interval, ...]
    slot: Slot

    def join(self, slot: Slot, decision: Decision) -> None:
        """Put the requests into `slot`, the first of them by `decision`; the others keep their decisions."""
        slot.members += self.slot.members
        slot.decisions += [decision, *self.slot.decisions[1:]]
        slot.pairs += self.slot.pairs


def items_of(requests: Iterable[Request], order: SizeOrder) -> list[Item]:
    opens = Decision(Choice.OPENS)
    return [Item(r.size, order.value(r.size), r.live, Slot([r], [opens])) for r in requests]


def items_of_groups(groups: Iterable[Group], order: SizeOrder) -> list[Item]:
    return [_item(group, order) for group in groups]


def _item(group: Group, order: SizeOrder) -> Item:
    opens, rest = [Decision(Choice.OPENS)], [Decision(Choice.IN_PLACE)] * (len(group.members) - 1)
    pairs = [(after.id, before.id) for before, after in pairwise(group.members)]
    size = group.size
    return Item(size, order.value(size), joined(group.live), Slot([*group.members], opens + rest, pairs))


def items_of_slots(slots: Sequence[Slot], sizes: Sequence[Size], order: SizeOrder) -> list[Item]:
    """One item for each slot. Placing these merges slots, which never costs a byte, as max(a, b) <= a + b."""
    items = []
    for slot, size in zip(slots, sizes, strict=True):
        live = joined(sorted(interval for request in slot.members for interval in request.live))
        items.append(Item(size, order.value(size), live, slot))
    return items


class Occupancy:
    """Disjoint half-open intervals in order. A query costs O(log n) for each interval in it."""

    __slots__ = ("_highs", "_lows")

    def __init__(self) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []

    def is_free(self, live: Iterable[Interval]) -> bool:
        """Whether no interval of `live` overlaps one that is taken."""
        lows, highs = self._lows, self._highs
        for low, high in live:
            place = bisect_right(highs, low)
            if place < len(lows) and lows[place] < high:
                return False
        return True

    def slack(self, low: int, high: int) -> tuple[int, int]:
        """The free time around [low, high): (number of endless sides, time on the other sides). Less is tighter."""
        before, after = bisect_right(self._highs, low), bisect_left(self._lows, high)
        endless, time = 2, 0
        if before > 0:
            endless, time = endless - 1, time + low - self._highs[before - 1]
        if after < len(self._lows):
            endless, time = endless - 1, time + self._lows[after] - high
        return endless, time

    def take(self, live: Iterable[Interval]) -> None:
        for low, high in live:
            place = bisect_left(self._lows, low)
            self._lows.insert(place, low)
            self._highs.insert(place, high)

    def clear(self) -> None:
        """Free everything."""
        self._lows.clear()
        self._highs.clear()


def matches(need: Size, storage: Size, match_range: int | None) -> bool:
    """Whether storage has 1 / match_range to match_range times the size needed, the lower limit in whole bits.

    None is no limit, and with 0 nothing matches. Symbolic sizes always match, as they do at some values of the dims.
    Source: TVM, storage_rewrite.cc, where the range is 16.
    """
    if match_range is None:
        return True
    if match_range == 0:
        return False
    if not isinstance(need, int) or not isinstance(storage, int):
        return True
    return need * 8 // match_range <= storage * 8 <= need * 8 * match_range


# The most candidates that are looked at where a proof may fail, and where a lifetime has gaps.
_PROOFS = 8
_GAPS = 64
# The most sizes in a maximum: further ones are left out, so that storage counts as smaller than it is.
_WIDE = 8


@record(frozen=False)
class _Track:
    number: int
    size: Size
    value: int
    end: int
    width: int = 1
    slot: Slot = field(default_factory=Slot)
    busy: Occupancy = field(default_factory=Occupancy)

    def grow(self, item: Item) -> None:
        self.value = max(self.value, item.value)
        if isinstance(self.size, int) and isinstance(item.size, int):
            self.size = max(self.size, item.size)
        elif self.width < _WIDE:
            self.size = maximum(self.size, item.size)
            self.width += 1


def best_fit(items: Sequence[Item], order: SizeOrder, match_range: int | None = None) -> list[Slot]:
    """Slots for the items in order of time: each takes a free slot of its size, else the smallest that has room, else
    the largest. With a match range it takes only slots that match.
    """
    sweep = _Sweep(order, match_range)
    births = sorted(range(len(items)), key=lambda i: (items[i].live[0][0], -items[i].value, i))
    for index in births:
        sweep.place(items[index])
    return [track.slot for track in sweep.tracks]


class _Sweep:
    """The state at one time: free slots by value, slots in a gap of a lifetime, and the ends of lifetimes to come."""

    def __init__(self, order: SizeOrder, match_range: int | None) -> None:
        self.order = order
        self.match_range = match_range
        self.tracks: list[_Track] = []
        self.idle: list[tuple[int, int]] = []
        self.gapped: dict[int, _Track] = {}
        self.endings: list[tuple[int, int]] = []

    def place(self, item: Item) -> None:
        self._advance(item.live[0][0])
        track, choice = self._choose(item)
        before = track.size
        if choice is not Choice.OPENS:
            track.grow(item)
        item.join(track.slot, Decision(choice, None if choice is Choice.OPENS else before))
        track.busy.take(item.live)
        if len(item.live) > 1:
            self.gapped[track.number] = track
        if item.live[-1][1] > track.end or choice is Choice.OPENS:
            track.end = item.live[-1][1]
            heappush(self.endings, (track.end, track.number))

    def _advance(self, now: int) -> None:
        """Free the slots whose last lifetime has ended."""
        while self.endings and self.endings[0][0] <= now:
            end, number = heappop(self.endings)
            track = self.tracks[number]
            if track.end == end:
                self.gapped.pop(number, None)
                track.busy.clear()
                insort(self.idle, (track.value, number))

    def _choose(self, item: Item) -> tuple[_Track, Choice]:
        """The slot to take, removed from the free ones, and why."""
        place, choice = self._best_idle(item)
        gap = self._best_gap(item)
        if gap is not None and (place < 0 or _loss(gap, item) < _loss(self.tracks[self.idle[place][1]], item)):
            return gap, Choice.ROOM if self.order.fits(item.size, gap.size) else Choice.GROWS
        if place >= 0:
            return self.tracks[self.idle.pop(place)[1]], choice
        track = _Track(len(self.tracks), item.size, item.value, item.live[-1][1])
        self.tracks.append(track)
        return track, Choice.OPENS

    def _best_idle(self, item: Item) -> tuple[int, Choice]:
        idle, tracks = self.idle, self.tracks
        middle = bisect_left(idle, (item.value, -1))
        upward: Sequence[int] = range(middle, min(middle + _PROOFS, len(idle)))
        downward: Sequence[int] = range(middle - 1, max(middle - _PROOFS, 0) - 1, -1)
        if self.match_range is not None:
            upward = [place for place in upward if self._matches(item, tracks[idle[place][1]])]
            downward = [place for place in downward if self._matches(item, tracks[idle[place][1]])]
        for place in upward:
            if tracks[idle[place][1]].size == item.size:
                return place, Choice.SAME
            if idle[place][0] > item.value:
                break
        for place in upward:
            if self.order.fits(item.size, tracks[idle[place][1]].size):
                return place, Choice.ROOM
        for place in downward:
            if self.order.fits(tracks[idle[place][1]].size, item.size):
                return place, Choice.GROWS
        # Nothing is proved: the nearest larger one probably grows least, else the nearest smaller one.
        return next(iter(upward or downward), -1), Choice.GROWS

    def _best_gap(self, item: Item) -> _Track | None:
        free = [track for track in islice(self.gapped.values(), _GAPS) if track.busy.is_free(item.live)]
        if self.match_range is not None:
            free = [track for track in free if self._matches(item, track)]
        return min(free, key=lambda track: _loss(track, item), default=None)

    def _matches(self, item: Item, track: _Track) -> bool:
        return matches(item.size, track.size, self.match_range)


def _loss(track: _Track, item: Item) -> tuple[bool, int, int]:
    """A key, the least of which is best: slots with room first, then the nearest in size."""
    return track.value < item.value, abs(track.value - item.value), track.number


_LOOKS = 60_000
_LOOKS_PER_ITEM = 5


def by_size(items: Sequence[Item], order: SizeOrder, match_range: int | None = None) -> list[Slot] | None:
    """Slots for the items, the largest first, each put into the slot that is free for the least time around it.

    Of equal sizes the longest-lived comes first. None after a number of looks at slots, so that a problem in which
    little can be shared does not cost quadratic time. With a match range an item takes only slots that match.
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


def _choice(order: SizeOrder, size: Size, before: Size) -> Choice:
    if size == before:
        return Choice.SAME
    return Choice.ROOM if order.fits(size, before) else Choice.GROWS


_SAMPLES = 4
_Algorithm = Callable[[Sequence[Item], SizeOrder, int | None], list[Slot] | None]

# For more requests than this, the first plan that beats the baseline is taken.
_MANY = 4096


def share(problem: Problem, match_range: int | None = None) -> Plan:
    """The plan with the fewest bytes of several that share whole slots; never more than `tvm`, at any binding.

    A slot holds requests of any kind one after another, also in gaps of lifetimes, and is as large as the largest. It
    tries best fit in order of time; the largest first; and the slots of `tvm`, merged where possible. Symbolic sizes
    are ordered by proof where there is one, else by their values at some binding; since that may misjudge, a plan
    counts only if its total is proved to be at most that of `tvm`, which always holds for merged slots. A request with
    a choice of memories goes to its first one. In a pair in place, the destination goes to the slot of its source.

    With a `match_range` a request takes only free storage of 1 / match_range to match_range times its size, where both
    are constant, and with 0 none at all; pairs in place are exempt. With less than 16, the range of `tvm`, the plan may
    need more bytes than that of `tvm`.
    """
    order = SizeOrder(samples(problem.dims, _SAMPLES))
    pairs = handovers(problem)

    def fill(requests: Sequence[Request]) -> list[Slot]:
        return _share_slots(requests, among(pairs, requests), order, match_range)

    made = slot_plan(problem, "share", fill)
    if match_range is not None or not _is_padded(made):
        return made
    # The padding between slots was not counted: with it, those of the baseline may be smaller together.
    baseline = tvm(problem)
    return replace(baseline, strategy="share") if is_at_most(baseline.total + 1, made.total) else made


def _is_padded(plan: Plan) -> bool:
    return plan.problem.contiguous and plan.total != total_of(region.size for region in plan.pools.values())


def _share_slots(
    requests: Sequence[Request], pairs: Sequence[Handover], order: SizeOrder, match_range: int | None
) -> list[Slot]:
    joint = items_of_groups(grouped(requests, chosen(pairs, order.value)), order) if pairs else []
    if len(joint) == 1:
        # All are in place of one another: one slot as large as the largest is the least there can be.
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

    # A slot merged from two may be out of the match range of some request.
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
    """Whether the slots need fewer bytes than any plan without pairs in place."""
    slots, totals = found
    return slots is not None and _rank(totals, floor) < _rank(floor, floor)


def _totals(sizes: Sequence[Size], order: SizeOrder) -> list[int]:
    """Bytes of all slots at each sample binding."""
    return [sum(column) for column in zip(*map(order.values, sizes), strict=True)]


def _floor(requests: Sequence[Request], order: SizeOrder) -> list[int]:
    """The most bytes that are live at one time, at each sample binding: a bound for plans without pairs in place."""
    values = [order.values(request.size) for request in requests]
    lives = [request.live for request in requests]
    return [most_live(zip(lives, column, strict=True))[0] for column in zip(*values, strict=True)]


def _rank(totals: Sequence[int], floor: Sequence[int]) -> tuple[float, Sequence[int]]:
    """A key, the least of which is best: the sum of total / bound over the sample bindings, then the totals."""
    return sum(total / max(least, 1) for total, least in zip(totals, floor, strict=True)), totals


# The most differing sizes for which a proof is tried.
_MOST_COMPARED = 64


def proved_at_most(left: Sequence[Size], right: Sequence[Size], order: SizeOrder) -> bool:
    """Whether the sum of `left` is proved to be at most that of `right`.

    Sizes on both sides cancel; the rest is proved as a whole, or by a larger size on the right for each on the left.
    """
    ours, theirs = Counter(left), Counter(right)
    less = sorted((ours - theirs).elements(), key=order.value, reverse=True)
    more = sorted((theirs - ours).elements(), key=order.value)
    if sum(map(order.value, less)) > sum(map(order.value, more)):
        return False
    if len(less) + len(more) > _MOST_COMPARED:
        return False
    return is_at_most(total_of(less), total_of(more)) or _covered(less, more, order)


def _covered(less: Sequence[Size], more: list[Size], order: SizeOrder) -> bool:
    for size in less:
        place = next((i for i, other in enumerate(more) if order.fits(size, other)), None)
        if place is None:
            return False
        del more[place]
    return True
