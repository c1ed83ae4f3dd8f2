"""Finds an order of tasks that never needs more than a number of bytes, or tells that there is none.

Orders are made from both ends. A chain of tasks that can run now within the bound, and leaves no more bytes alive than
there are, runs at once: in any order that is within the bound it may as well come first, since the more tasks have run,
the fewer bytes any further one adds. For the same reason a chain that can be the last one, and finds no more bytes
alive than it leaves, is put last. What is left is searched, from the end that has fewer ways to go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from itertools import chain
from typing import NamedTuple

from tirlite.plan.search.sections import members
from tirlite.record import record


@record
class Task:
    """One operator. `reads` and `writes` are numbers of tensors, each once.

    `lenders` are read tensors that the one written may take the place of, if they are not used any more. `inside` are
    bytes that are needed while it runs, besides.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    lenders: tuple[int, ...] = ()
    inside: int = 0


@record
class Tasks:
    """All tasks in an order in which they can run, and the bytes of each tensor: none where these are not counted.

    As bits: `before` the tasks right before each task, `users` those that read each tensor.
    """

    tasks: tuple[Task, ...]
    sizes: tuple[int, ...]
    before: tuple[int, ...] = field(init=False)
    users: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        writer = {tensor: number for number, task in enumerate(self.tasks) for tensor in task.writes}
        users = [0] * len(self.sizes)
        before = []
        for number, task in enumerate(self.tasks):
            for tensor in task.reads:
                users[tensor] |= 1 << number
            before.append(_set(writer[tensor] for tensor in task.reads if tensor in writer))
        object.__setattr__(self, "before", tuple(before))
        object.__setattr__(self, "users", tuple(users))

    def dies(self, tensor: int, done: int) -> bool:
        """Whether the tensor is unused once the tasks `done` have run."""
        return not self.users[tensor] & ~done

    def run(self, number: int, done: int, live: int) -> tuple[int, int]:
        """The bytes at the peak of a task that runs when `live` bytes are, and the bytes that live after it."""
        task = self.tasks[number]
        done |= 1 << number
        written = sum(self.sizes[tensor] for tensor in task.writes)
        freed = sum(self.sizes[tensor] for tensor in task.reads if self.dies(tensor, done))
        lent = max((self.sizes[tensor] for tensor in task.lenders if self.dies(tensor, done)), default=0)
        unused = sum(self.sizes[tensor] for tensor in task.writes if self.dies(tensor, done))
        return live + written - min(lent, written) + task.inside, live + written - freed - unused

    def peak(self, order: Sequence[int]) -> int:
        """The most bytes that live at one time when the tasks run in this order."""
        done, live, most = 0, 0, 0
        for number in order:
            peak, live = self.run(number, done, live)
            done |= 1 << number
            most = max(most, peak)
        return most

    def least(self, number: int) -> int:
        """Bytes that a task needs in any order: what it reads and writes."""
        task = self.tasks[number]
        written = sum(self.sizes[tensor] for tensor in task.writes)
        lent = max((self.sizes[tensor] for tensor in task.lenders), default=0)
        return sum(self.sizes[tensor] for tensor in task.reads) + written - min(lent, written) + task.inside


def _set(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def stretches(tasks: Tasks) -> list[list[int]]:
    """The tasks in groups that follow each other in every order: each but the last ends with a task that is ordered
    with respect to all others. An optimal order of each group gives one of the whole.
    """
    count = len(tasks.tasks)
    above = [0] * count
    for number, direct in enumerate(tasks.before):
        while direct:
            low = direct & -direct
            above[number] |= low | above[low.bit_length() - 1]
            direct ^= low
    below = [0] * count
    for number in reversed(range(count)):
        direct = tasks.before[number]
        while direct:
            low = direct & -direct
            below[low.bit_length() - 1] |= 1 << number | below[number]
            direct ^= low
    cuts = [number for number in range(count) if above[number].bit_count() + below[number].bit_count() == count - 1]
    groups, done = [], 0
    for cut in sorted(cuts, key=lambda number: above[number].bit_count()):
        part = (above[cut] | 1 << cut) & ~done
        groups.append([*members(part)])
        done |= part
    rest = (1 << count) - 1 & ~done
    return [*groups, [*members(rest)]] if rest else groups


# The groups tried, over all states, before the search gives up: a few seconds for 30 groups. Fewer for more groups,
# which have little hope.
_LOOKS = 1_000_000
_USUAL = 40
_LEAST = 20_000


class Way(NamedTuple):
    """The path to a state: its groups, the last one first."""

    last: int
    rest: Way | None


# The two ends of an order.
_FIRST, _LAST = 0, 1


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

    def level(self, side: int) -> int:
        """The live bytes at one end of the rest."""
        return self.live if side == _FIRST else self.end


class _Move(NamedTuple):
    """A group that may go first or last within the bound, and the live bytes after or before it."""

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
        # For each group its direct successors and predecessors: the next candidates at either end.
        self.next = [0] * len(groups), [0] * len(groups)
        for number, place in home.items():
            for each in members(tasks.before[number] & ~done):
                if (other := home[each]) != place:
                    self.next[_LAST][place] |= 1 << other
                    self.next[_FIRST][other] |= 1 << place
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
            first = list(self.moves(state, bound, _FIRST))
            last = list(self.moves(state, bound, _LAST)) if first else []
            side, ways = (_LAST, last) if len(last) < len(first) else (_FIRST, first)
            stack += [self.put(state, move, side) for move in sorted(ways, reverse=True)]
        return None

    def settled(self, state: _State, bound: int) -> _State:
        """The state after all safe moves to either end."""
        while state.left:
            made = self.harmless(state, bound, _FIRST) or self.harmless(state, bound, _LAST)
            if made is None:
                return state
            state = made
        return state

    def harmless(self, state: _State, bound: int, side: int) -> _State | None:
        """The state after a safe move of a chain to this end, if there is one."""
        for move in self.moves(state, bound, side):
            made, group = self.put(state, move, side), move.group
            while made.level(side) > state.level(side):
                ways = list(self.moves(made, bound, side, self.next[side][group]))
                if not ways:
                    break
                best = min(ways)
                made, group = self.put(made, best, side), best.group
            else:
                if side == _FIRST or self.lends_nothing(state.left & ~made.left, made.left):
                    return made
        return None

    def lends_nothing(self, moved: int, left: int) -> bool:
        """Whether no group that is left would write in the place of what only the moved ones still need then."""
        return all(not self.readers_of_lent[each] & moved for each in members(left))

    def moves(self, state: _State, bound: int, side: int, among: int = -1) -> Iterator[_Move]:
        blocking = self.next[1 - side]
        for group in members(state.left & among):
            if blocking[group] & state.left:
                continue
            if side == _FIRST:
                peak, live = self.run(group, state.done)
                if state.live + peak <= bound:
                    yield _Move(state.live + live, group)
            else:
                peak, live = self.run(group, state.reached & ~self.sets[group])
                if state.end - live + peak <= bound:
                    yield _Move(state.end - live, group)

    def put(self, state: _State, move: _Move, side: int) -> _State:
        own, left = self.sets[move.group], state.left & ~(1 << move.group)
        if side == _FIRST:
            return state._replace(done=state.done | own, left=left, live=move.live, head=Way(move.group, state.head))
        return state._replace(reached=state.reached & ~own, left=left, end=move.live, tail=Way(move.group, state.tail))

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
        """The other groups that read tensors that tasks of this one may overwrite."""
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
