"""Operators as their order sees them: tasks that read and write tensors, the bytes live at each, stretches of tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from tirlite.plan.search.sections import members
from tirlite.record import record


@record
class Task:
    """One operator. `reads` and `writes` are numbers of tensors, each once.

    `lenders` are read tensors that the one written may take the place of, if nobody needs them any more. `inside` are
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
        """Whether nobody needs the tensor once the tasks `done` have run."""
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
    """The tasks in groups that run one after another in any order: each ends with one that all others come before or
    behind, but the last perhaps. What is best for each group is best for all.
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
