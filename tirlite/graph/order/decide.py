"""Finds an order of tasks that never needs more than a number of bytes, or tells that there is none.

Orders are made from both ends. A chain of tasks that can run now within the bound, and leaves no more bytes alive than
there are, runs at once: in any order that is within the bound it may as well come first, since the more tasks have run,
the fewer bytes any further one adds. For the same reason a chain that can be the last one, and finds no more bytes
alive than it leaves, is put last. What is left is searched, from the end that has fewer ways to go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from tirlite.graph.order.tasks import Tasks
from tirlite.plan.search.sections import members

# Groups that are looked at, over all states, before the search gives up: some seconds for some 30 groups. Fewer of more
# groups, for which there is little hope.
_LOOKS = 1_000_000
_USUAL = 40
_LEAST = 20_000


class Way(NamedTuple):
    """The groups that led to a state, the last one first."""

    last: int
    rest: Way | None


class _State(NamedTuple):
    """The tasks `done` have run and leave `live` bytes; all but `reached` run at the end, and find `end` bytes.

    `left` are the groups in between.
    """

    done: int
    reached: int
    left: int
    live: int
    end: int
    head: Way | None
    tail: Way | None


class _Move(NamedTuple):
    """A group that may go first, or last, within the bound: the bytes alive behind it, or before it."""

    live: int
    group: int


class SearchGivenUpError(Exception):
    """The search takes too long."""


class Decision:
    """The search in one stretch of groups, each of which runs without a break."""

    def __init__(self, tasks: Tasks, groups: Sequence[tuple[int, ...]], done: int, live: int) -> None:
        self.tasks = tasks
        self.groups = groups
        self.start, self.live = done, live
        home = {number: place for place, group in enumerate(groups) for number in group}
        self.sets = [sum(1 << number for number in group) for group in groups]
        self.before = [0] * len(groups)
        self.behind = [0] * len(groups)
        for number, place in home.items():
            for each in members(tasks.before[number] & ~done):
                if (other := home[each]) != place:
                    self.before[place] |= 1 << other
                    self.behind[other] |= 1 << place
        self.readers_of_lent = [self._readers_of_lent(place, home) for place in range(len(groups))]
        self.end = live
        reached = done
        for number in sorted(home):
            _, self.end = tasks.run(number, reached, self.end)
            reached |= 1 << number
        self.all = reached
        self.looks = max(_LOOKS // (1 + len(groups) // _USUAL) ** 2, _LEAST)

    def within(self, bound: int) -> tuple[int, ...] | None:
        """An order of the tasks with no peak above the bound, None if there is none. Raises SearchGivenUpError."""
        stack = [_State(self.start, self.all, (1 << len(self.groups)) - 1, self.live, self.end, None, None)]
        seen: set[tuple[int, int]] = set()
        while stack:
            state = self.settled(stack.pop(), bound)
            if not state.left:
                return self.order(state)
            if (state.done, state.left) in seen:
                continue
            seen.add((state.done, state.left))
            first = list(self.firsts(state, bound))
            last = list(self.lasts(state, bound)) if first else []
            if len(last) < len(first):
                following = [self.put_last(state, move) for move in sorted(last, reverse=True)]
            else:
                following = [self.put_first(state, move) for move in sorted(first, reverse=True)]
            stack += following
        return None

    def settled(self, state: _State, bound: int) -> _State:
        """The state when all that can do no harm has been put first or last."""
        while state.left:
            made = self.harmless_first(state, bound) or self.harmless_last(state, bound)
            if made is None:
                return state
            state = made
        return state

    def harmless_first(self, state: _State, bound: int) -> _State | None:
        for move in self.firsts(state, bound):
            made, last = self.put_first(state, move), move.group
            while made.live > state.live:
                ways = list(self.firsts(made, bound, self.behind[last]))
                if not ways:
                    break
                best = min(ways)
                made, last = self.put_first(made, best), best.group
            else:
                return made
        return None

    def harmless_last(self, state: _State, bound: int) -> _State | None:
        for move in self.lasts(state, bound):
            made, first = self.put_last(state, move), move.group
            while made.end > state.end:
                ways = list(self.lasts(made, bound, self.before[first]))
                if not ways:
                    break
                best = min(ways)
                made, first = self.put_last(made, best), best.group
            else:
                if self.lends_nothing(state.left & ~made.left, made.left):
                    return made
        return None

    def lends_nothing(self, moved: int, left: int) -> bool:
        """Whether no group that is left would write in the place of what only the moved ones still need then."""
        return all(not self.readers_of_lent[each] & moved for each in members(left))

    def firsts(self, state: _State, bound: int, among: int = -1) -> Iterator[_Move]:
        for group in members(state.left & among):
            if not self.before[group] & state.left:
                peak, live = self.run(group, state.done)
                if state.live + peak <= bound:
                    yield _Move(state.live + live, group)

    def lasts(self, state: _State, bound: int, among: int = -1) -> Iterator[_Move]:
        for group in members(state.left & among):
            if not self.behind[group] & state.left:
                peak, live = self.run(group, state.reached & ~self.sets[group])
                if state.end - live + peak <= bound:
                    yield _Move(state.end - live, group)

    def put_first(self, state: _State, move: _Move) -> _State:
        done, left = state.done | self.sets[move.group], state.left & ~(1 << move.group)
        return state._replace(done=done, left=left, live=move.live, head=Way(move.group, state.head))

    def put_last(self, state: _State, move: _Move) -> _State:
        reached, left = state.reached & ~self.sets[move.group], state.left & ~(1 << move.group)
        return state._replace(reached=reached, left=left, end=move.live, tail=Way(move.group, state.tail))

    def run(self, group: int, done: int) -> tuple[int, int]:
        """The peak of a group and the bytes that live after it, more than before it."""
        self.looks -= 1
        if self.looks < 0:
            raise SearchGivenUpError
        most, live = 0, 0
        for number in self.groups[group]:
            peak, live = self.tasks.run(number, done, live)
            done |= 1 << number
            most = max(most, peak)
        return most, live

    def order(self, state: _State) -> tuple[int, ...]:
        head, tail = _groups(state.head), _groups(state.tail)
        return tuple(chain.from_iterable(self.groups[each] for each in (*reversed(head), *tail)))

    def _readers_of_lent(self, place: int, home: dict[int, int]) -> int:
        """The other groups that read what tasks of this one may take the place of."""
        bits = 0
        for number in self.groups[place]:
            for tensor in self.tasks.tasks[number].lenders:
                for reader in members(self.tasks.users[tensor] if self.tasks.sizes[tensor] else 0):
                    bits |= 1 << home[reader] if home.get(reader, place) != place else 0
        return bits


def _groups(way: Way | None) -> list[int]:
    found = []
    while way is not None:
        found.append(way.last)
        way = way.rest
    return found
