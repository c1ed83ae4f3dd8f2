"""Finds an order of tasks with the smallest peak.

A beam search finds a good order of each stretch. Then one is asked for that is better, until there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from tirlite.graph.order.decide import Decision, SearchGivenUpError, Way
from tirlite.graph.order.segments import segments
from tirlite.graph.order.tasks import Tasks, stretches
from tirlite.record import record

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
