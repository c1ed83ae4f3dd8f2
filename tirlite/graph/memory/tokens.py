"""Gives each tensor of a program a storage: the walk of GraphPlanMemory.

Source: Relay, graph_mem_alloca.cc; branches and symbolic sizes are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from tirlite.graph.expr import Constant, If
from tirlite.graph.memory.storage import FreeList, Token
from tirlite.graph.memory.values import Value, Values
from tirlite.graph.program import Block, Program
from tirlite.ir import Steps, run


def storages(made: Program, values: Values, match_range: int) -> dict[Value, Token]:
    """The storage of each tensor, numbered in the order in which storages are opened.

    A storage is free for others once no use of what lies in it is to come; results of the function are never freed. The
    branches of an If have the same storages to begin with, and the second one has those that the first has opened. The
    result of an If gets its storage where the first branch makes it, and keeps it away from the second one.
    """
    walk = _Allocation(made, values, match_range)
    for param in made.function.params:
        walk.make(values.of[param])
    run(walk.block(made.body))
    return walk.storage


def _uses(made: Program, values: Values) -> dict[Block, Counter[Value]]:
    """How often each block uses each tensor, its inner branches included; the function itself uses its result."""
    found: dict[Block, Counter[Value]] = {}
    run(_count(made, values, made.body, found))
    found[made.body].update(values.of[made.function.body])
    return found


def _count(made: Program, values: Values, block: Block, found: dict[Block, Counter[Value]]) -> Steps[None]:
    uses = found[block] = Counter(source for source, _ in values.copied.get(block, ()))
    for step in block.steps:
        if values.is_computed(step):
            uses.update(values.args(step))
        elif isinstance(step, If):
            uses.update(values.of[step.condition])
            for branch in made.branches[step]:
                yield _count(made, values, branch, found)
                uses.update(found[branch])


class _Allocation:
    """One walk: the storage of each tensor, how many uses of it are to come on this path, and what is free."""

    def __init__(self, made: Program, values: Values, match_range: int) -> None:
        self.made = made
        self.values = values
        self.match_range = match_range
        self.inside = _uses(made, values)
        self.left = Counter(self.inside[made.body])
        self.storage: dict[Value, Token] = {}
        self.all: list[Token] = []
        self.free: dict[int, FreeList] = {}
        self.awaited: dict[Value, list[_Entry]] = {}  # results of Ifs, and what the Ifs found when they were reached

    def make(self, group: Iterable[Value]) -> None:
        """Storages for new tensors; those that are pinned get one of their own."""
        for value in group:
            if value in self.storage:
                continue
            entries = self.awaited.get(value, [])
            suits = partial(_suits, entries) if entries else _always
            token = None if value.pinned else self.list_of(value).take(value.size, suits)
            if token is None:
                token = Token(len(self.all), value.size, value.device)
                self.all.append(token)
            self.storage[value] = token

    def release(self, group: Iterable[Value]) -> None:
        """Frees the storages of tensors that nobody will use."""
        for value in group:
            if not value.pinned and self.left[value] == 0:
                self.list_of(value).put(self.storage[value])

    def use(self, group: Iterable[Value]) -> None:
        for value in group:
            self.left[value] -= 1
            self.release([value])

    def list_of(self, value: Value) -> FreeList:
        return self.free.setdefault(value.device, FreeList(self.match_range))

    def block(self, block: Block) -> Steps[None]:
        for step in block.steps:
            if isinstance(step, Constant):
                self.make(self.values.of[step])
            elif self.values.is_computed(step):
                results = self.values.of[step]
                self.make(results)
                self.release(results)
                self.use(self.values.args(step))
            elif isinstance(step, If):
                yield self.choice(step)
        copies = self.values.copied.get(block, ())
        self.make(target for _, target in copies)
        self.use(source for source, _ in copies)

    def choice(self, step: If) -> Steps[None]:
        """Lets each branch begin with what is free there.

        In a branch, what only the other one uses is free from the start. Behind the If just that is free what no use to
        come needs, on either way.
        """
        then, other = self.made.branches[step]
        results = self.values.of[step]
        self.left.update(results)  # held until both branches have left them
        self.use(self.values.of[step.condition])
        free = {device: each.tokens() for device, each in self.free.items()}
        entry = _Entry(len(self.all), frozenset(token for tokens in free.values() for token in tokens))
        for value in results:
            self.awaited.setdefault(value, []).append(entry)
        in_then, in_other = self.outer(then), self.outer(other)
        self.left.subtract(in_other)
        self.release(in_other)
        yield self.block(then)
        self.left.update(in_other)
        self.free = {}
        kept = {self.storage[value] for value in results}
        for token in [token for tokens in free.values() for token in tokens] + self.all[entry.opened :]:
            if token not in kept:
                self.free.setdefault(token.device, FreeList(self.match_range)).put(token)
        self.release(in_then)
        yield self.block(other)
        for value in results:
            self.awaited[value].pop()
        self.use(results)

    def outer(self, branch: Block) -> Counter[Value]:
        """The uses that a branch makes of tensors from outside."""
        return Counter({value: count for value, count in self.inside[branch].items() if value in self.storage})


class _Entry(NamedTuple):
    """How many storages there were when an If was reached, and which of them were free."""

    opened: int
    free: frozenset[Token]


def _suits(entries: Sequence[_Entry], token: Token) -> bool:
    """Whether a storage was free when each of the Ifs was reached, or came after."""
    return all(token.id >= entry.opened or token in entry.free for entry in entries)


def _always(token: Token) -> bool:
    return True
