"""Finds an order of tasks with the smallest peak.

A beam search finds a good order of each stretch. Then one is asked for that is better, until there is none. Both go by
groups of tasks that some best order runs without a break.

A chain is a row of tasks in which each is the only one behind the one before it, and that one the only one before it.
The hill of a group is where it needs most. A group holds together if the chain has no fewer bytes alive between its
begin and its hill than at its begin, and no fewer between its hill and its end than at its end: what comes before the
hill may as well wait for it, and what comes behind may follow at once, so that all other tasks find no more bytes alive
than they did. Source: J. W. H. Liu, An application of generalized tree pebbling to sparse matrix factorization, 1987.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple

from tirlite.graph.order.decide import Decision, SearchGivenUpError, Tasks, Way, stretches
from tirlite.plan.search.sections import members
from tirlite.record import record

# States that the beam keeps after each task, and how many it looks at in all, about.
_BEAM = 64
_BEAM_STATES = 200_000
# Longer chains are cut, since all pairs of places in one are looked at.
_LONGEST = 32


class _State(NamedTuple):
    """Ordered by what is looked at first: a small peak, then few tasks left, then few bytes alive, then the older."""

    peak: int
    left: int
    live: int
    age: int
    done: int
    way: Way | None


@record
class Found:
    """An order of some tasks, its peak, and whether no order has a smaller one."""

    order: tuple[int, ...]
    peak: int
    proved: bool


def order_of(tasks: Tasks) -> Found:
    """An order of all tasks. `proved` holds where each stretch was searched to the end."""
    order: list[int] = []
    done, live, peak, proved = 0, 0, 0, True
    for stretch in stretches(tasks):
        found = _best_order(tasks, stretch, done, live, peak)
        for number in found.order:
            _, live = tasks.run(number, done, live)
            done |= 1 << number
        order += found.order
        peak, proved = found.peak, proved and found.proved
    return Found(tuple(order), peak, proved)


def _best_order(tasks: Tasks, stretch: Sequence[int], done: int, live: int, known: int) -> Found:
    """The order of a stretch that begins when the tasks `done` have run and `live` bytes are alive.

    A peak below `known`, which is reached elsewhere, counts as much.
    """
    beam = _Beam(tasks, stretch, done, live, known)
    best = beam.best()
    decision = Decision(tasks, segments(tasks, stretch, done), done, live)
    while best.peak > beam.floor:
        try:
            better = decision.within(best.peak - 1)
        except SearchGivenUpError:
            return _found(best, proved=False)
        if better is None:
            break
        best = beam.along(better)
    return _found(best, proved=True)


def _found(state: _State, *, proved: bool) -> Found:
    order, way = [], state.way
    while way is not None:
        order.append(way.last)
        way = way.rest
    return Found(tuple(reversed(order)), state.peak, proved)


class _Beam:
    def __init__(self, tasks: Tasks, stretch: Sequence[int], done: int, live: int, known: int) -> None:
        self.tasks = tasks
        self.stretch = stretch
        self.ages = count()
        self.start = _State(known, len(stretch), live, next(self.ages), done, None)
        # No order of the stretch has a smaller peak than this.
        self.floor = max(known, *(tasks.least(number) for number in stretch))

    def after(self, state: _State, number: int) -> _State:
        """The state when one more task has run."""
        peak, live = self.tasks.run(number, state.done, state.live)
        way = Way(number, state.way)
        return _State(max(state.peak, peak), state.left - 1, live, next(self.ages), state.done | 1 << number, way)

    def following(self, state: _State) -> Iterator[_State]:
        """The states that may follow: one alone where a task can do no harm."""
        found = []
        for number in self.stretch:
            if not state.done >> number & 1 and not self.tasks.before[number] & ~state.done:
                made = self.after(state, number)
                if made.live <= state.live and made.peak <= max(state.peak, self.floor):
                    yield made
                    return
                found.append(made)
        yield from found

    def along(self, order: Sequence[int]) -> _State:
        """The end of an order."""
        state = self.start
        for number in order:
            state = self.after(state, number)
        return state

    def best(self) -> _State:
        """The end of a good order: after each task only some states are followed, those with the smallest peaks."""
        width = max(2, min(_BEAM, _BEAM_STATES // (1 + len(self.stretch) ** 2)))
        level = [self.start]
        for _ in self.stretch:
            reached: dict[int, _State] = {}
            for state in level:
                for made in self.following(state):
                    if made.done not in reached or made < reached[made.done]:
                        reached[made.done] = made
            level = sorted(reached.values())[:width]
        return min(level[0], self.along(self.stretch))


def segments(tasks: Tasks, stretch: Sequence[int], done: int) -> list[tuple[int, ...]]:
    """The groups of a stretch that begins when the tasks `done` have run, each in the order in which it runs."""
    return [group for chain in _chains(tasks, stretch) for group in _groups(tasks, chain, done)]


def _chains(tasks: Tasks, stretch: Sequence[int]) -> Iterator[list[int]]:
    inside = sum(1 << number for number in stretch)
    behind = dict.fromkeys(stretch, 0)
    for number in stretch:
        for each in members(tasks.before[number] & inside):
            behind[each] |= 1 << number
    follows: set[int] = set()
    for first in stretch:
        if first in follows:
            continue
        chain = [first]
        while len(chain) < _LONGEST:
            last = chain[-1]
            after = behind[last]
            if not after or after & (after - 1):
                break
            number = after.bit_length() - 1
            alone = tasks.before[number] & inside == 1 << last
            if not alone or not _is_private(tasks, (last, number), inside):
                break
            chain.append(number)
            follows.add(number)
        yield chain


def _is_private(tasks: Tasks, pair: tuple[int, int], inside: int) -> bool:
    """Whether nobody else reads what the two tasks read, so that the bytes they free depend on no other order."""
    others = inside & ~(1 << pair[0] | 1 << pair[1])
    reads = (tensor for each in pair for tensor in tasks.tasks[each].reads)
    return all(not tasks.sizes[tensor] or not tasks.users[tensor] & others for tensor in reads)


def _groups(tasks: Tasks, chain: Sequence[int], done: int) -> Iterator[tuple[int, ...]]:
    """The chain in as few groups as there can be."""
    levels, peaks = [0], []
    for number in chain:
        peak, live = tasks.run(number, done, levels[-1])
        done |= 1 << number
        levels.append(live)
        peaks.append(peak)
    fewest = [0]
    starts = [0]
    for end in range(1, len(chain) + 1):
        found = [start for start in range(end) if _holds(levels[start : end + 1], peaks[start:end])]
        start = min(found, key=lambda each: fewest[each])
        fewest.append(fewest[start] + 1)
        starts.append(start)
    cuts = [len(chain)]
    while cuts[-1]:
        cuts.append(starts[cuts[-1]])
    yield from (tuple(chain[low:high]) for low, high in pairwise(reversed(cuts)))


def _holds(levels: Sequence[int], peaks: Sequence[int]) -> bool:
    hill = max(peaks)
    places = (place for place, peak in enumerate(peaks) if peak == hill)
    return any(
        all(each >= levels[0] for each in levels[1 : place + 1])
        and all(each >= levels[-1] for each in levels[place + 1 :])
        for place in places
    )
