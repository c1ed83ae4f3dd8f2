"""Finds the points in time at which each tensor of a program is needed.

Time counts the calls in program order; an If takes one point for its decision, and each branch one for the copies at
its end. A tensor lives from where it is written to its last use on each path: what only one branch needs does not live
in the other one, which stands behind it in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tirlite.graph.expr import Call, Expr, If
from tirlite.graph.memory.values import Value, Values
from tirlite.graph.program import Block, Program
from tirlite.ir import Steps, run
from tirlite.plan.request import Interval
from tirlite.record import record


@record(eq=False)
class Lifetimes:
    """When each tensor lives, as half-open intervals, and at which time each call, If and end of a branch stands.

    Parameters and constants live from 0 to the end.
    """

    live: Mapping[Value, tuple[Interval, ...]]
    at: Mapping[Expr | Block, int]

    def dies(self, value: Value, call: Expr) -> bool:
        """Whether the call is the last one to need the tensor, on the way that it stands on."""
        time = self.at[call]
        return any(low <= time and end == time + 1 for low, end in self.live[value])


def lifetimes(made: Program, values: Values) -> Lifetimes:
    """When each tensor is needed."""
    times, end = _times(made)
    walk = _Backward(made, values, times)
    for value in values.of[made.function.body]:
        walk.use(value, end)
    run(walk.block(made.body))
    pinned = [value for group in values.of.values() for value in group if value.pinned]
    walk.found.update((value, [(0, end + 1)]) for value in pinned)
    return Lifetimes({value: tuple(reversed(intervals)) for value, intervals in walk.found.items()}, times)


def _times(made: Program) -> tuple[dict[Expr | Block, int], int]:
    """When each call and each If is reached, when each branch ends, and when the function returns."""
    times: dict[Expr | Block, int] = {}
    run(_count(made, made.body, times))
    return times, times[made.body]


def _count(made: Program, block: Block, times: dict[Expr | Block, int]) -> Steps[None]:
    for step in block.steps:
        if isinstance(step, Call | If):
            times[step] = len(times) + 1
        if isinstance(step, If):
            yield _count(made, made.branches[step].then, times)
            yield _count(made, made.branches[step].other, times)
    times[block] = len(times) + 1


class _Backward:
    """A walk from the end: `alive` holds the end of the open interval of each tensor that is needed later."""

    def __init__(self, made: Program, values: Values, times: Mapping[Expr | Block, int]) -> None:
        self.made = made
        self.values = values
        self.times = times
        self.alive: dict[Value, int] = {}
        self.born_alive: list[dict[Value, None]] = [{}]  # for each open block: what its steps made alive
        self.found: dict[Value, list[Interval]] = {}

    def use(self, value: Value, at: int) -> None:
        if not value.pinned and value not in self.alive:
            self.alive[value] = at + 1
            self.born_alive[-1][value] = None

    def write(self, value: Value, at: int) -> None:
        """The tensor is written here; one that nobody needs lives at this point alone."""
        end = self.alive.pop(value, at + 1)
        self.born_alive[-1].pop(value, None)
        self.found.setdefault(value, []).append((at, end))

    def block(self, block: Block) -> Steps[None]:
        for step in reversed(block.steps):
            if self.values.is_computed(step):
                at = self.times[step]
                for value in self.values.of[step]:
                    self.write(value, at)
                for value in self.values.args(step):
                    self.use(value, at)
            elif isinstance(step, If):
                yield self.choice(step)

    def choice(self, step: If) -> Steps[None]:
        """The branches, the last one first. Both leave the result alive that is needed behind the If."""
        then, other = self.made.branches[step]
        result = self.values.of[step]
        ends = {value: self.alive.get(value) for value in result}
        for value in result:
            self.born_alive[-1].pop(value, None)
        needed_in_other = yield self.branch(other, {v: e or self.times[other] + 1 for v, e in ends.items()})
        start_of_other = self.times[then] + 1
        for value in needed_in_other:
            self.found.setdefault(value, []).append((start_of_other, self.alive.pop(value)))
        needed_in_then = yield self.branch(then, dict.fromkeys(result, self.times[then] + 1))
        at = self.times[step]
        for value in needed_in_then:
            self.born_alive[-1][value] = None
        for value in needed_in_other:
            if value not in self.alive:
                self.alive[value] = at + 1
                self.born_alive[-1][value] = None
        for value in self.values.of[step.condition]:
            self.use(value, at)

    def branch(self, block: Block, result: Mapping[Value, int]) -> Steps[Iterable[Value]]:
        """What the branch needs from outside and nobody needs later."""
        at = self.times[block]
        self.born_alive.append({})
        for value, end in result.items():
            self.alive[value] = end
            self.born_alive[-1][value] = None
        copies = self.values.copied[block]
        for _, target in copies:
            self.write(target, at)
        for source, _ in copies:
            self.use(source, at)
        yield self.block(block)
        return self.born_alive.pop()
