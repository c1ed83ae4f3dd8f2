"""Tasks in, an order of them with the smallest peak out.

States are sets of tasks that have run; the peak of a way to a state is the largest on it. The best way is found as in
Dijkstra's algorithm, with the maximum in the place of the sum. A task that raises no peak and leaves no more bytes
alive than there were is run at once: whatever comes before it in some order may as well come after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

from tirlite.graph.order.stretches import stretches
from tirlite.graph.order.tasks import Tasks
from tirlite.record import record

# Tasks that are looked at for a stretch, over all states, before the search gives up.
_LOOKS = 1_000_000
# States that the beam keeps after each task, and how many it looks at in all, about.
_BEAM = 64
_BEAM_STATES = 200_000


class _State(NamedTuple):
    """Ordered by what is looked at first: a small peak, then few tasks left, then few bytes alive, then the older."""

    peak: int
    left: int
    live: int
    age: int
    done: int
    way: _Way | None


class _Way(NamedTuple):
    """The tasks that led to a state, the last one first."""

    last: int
    rest: _Way | None


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

    A peak below `known`, which is reached elsewhere, counts as much. Where that takes too many states, a beam search
    gives an order that is not proved to be best.
    """
    search = _Search(tasks, stretch, done, live, known)
    given = search.start
    for number in stretch:
        given = search.after(given, number)
    wide = search.beam()
    best = min(given, wide) if wide is not None else given
    if best.peak <= search.floor:
        return _found(best, proved=True)
    exact, proved = search.exact(best.peak)
    return _found(exact or best, proved=proved)


def _found(state: _State, *, proved: bool) -> Found:
    order, way = [], state.way
    while way is not None:
        order.append(way.last)
        way = way.rest
    return Found(tuple(reversed(order)), state.peak, proved)


class _Search:
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
        way = _Way(number, state.way)
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

    def beam(self) -> _State | None:
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
        return level[0] if level else None

    def exact(self, bound: int) -> tuple[_State | None, bool]:
        """The end of the best order, None if there is none with a peak below `bound`, and whether that is proved."""
        waiting = [self.start]
        seen: set[int] = set()
        while waiting:
            state = heappop(waiting)
            if not state.left:
                return state, True
            if state.done in seen:
                continue
            if len(seen) * len(self.stretch) >= _LOOKS:
                return None, False
            seen.add(state.done)
            for made in self.following(state):
                if made.peak < bound and made.done not in seen:
                    heappush(waiting, made)
        return None, True
