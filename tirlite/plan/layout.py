"""A Layout: where each request of a problem lies, and why. It is the data of a Plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from tirlite.diag import PlanMessage
from tirlite.groups import by_key
from tirlite.plan.arguments import PlanArgument, demand
from tirlite.plan.problem import Problem, pairs_in_place
from tirlite.record import cached_property, record, replace
from tirlite.show import shown
from tirlite.sizes import Dim, Size, as_size, dims_of, evaluate, maximum, round_up


class Choice(Enum):
    """The kinds of reasons that strategies give."""

    ALONE = "alone"
    REGISTER = "register"
    OPENS = "opens"
    SAME = "same"
    ROOM = "room"
    GROWS = "grows"
    FIRST = "first"
    FIXED = "fixed"
    PACKED = "packed"
    IN_PLACE = "in-place"
    GIVEN = "given"


_TEXTS = {
    Choice.ALONE: "has storage of its own: this strategy shares nothing",
    Choice.REGISTER: "has storage of its own: it is taken for a register, or cannot be shared by this strategy",
    Choice.OPENS: "gets new storage: no free storage fits",
    Choice.SAME: "reuses free storage of its own size",
    Choice.ROOM: "reuses free storage of {before} bytes, which is large enough",
    Choice.GROWS: "reuses free storage of {before} bytes, which grows",
    Choice.FIRST: "reuses the symbolic storage that has been free for longest",
    Choice.FIXED: "is at its fixed offset",
    Choice.PACKED: "is above or below all that is live at the same time",
    Choice.IN_PLACE: "overwrites its source in place, whose lifetime ends where its own begins",
    Choice.GIVEN: "was placed there by the author of the plan",
}


class Decision(NamedTuple):
    """A choice, and the size in bytes of the storage before it was taken."""

    choice: Choice
    before: Size | None = None

    def __str__(self) -> str:
        return _TEXTS[self.choice].format(before=self.before)


# Sums of all that a problem may have are drawn, as floats.
_DRAWN_BITS = 1000


class BrokenPlan(PlanMessage):
    """A plan that was made or changed by hand does not hang together, so that it can be neither drawn nor explained.

    Example: `Plan.from_json(text)` of a text that was cut: a request has no place, or lies in a pool that is not there.
    Fix: `plan.check(problem, plan)` finds all that is wrong with a plan; `solve` makes a new one.
    """

    title = "the plan of strategy `{strategy}` is broken: {fault}"


class Placement(NamedTuple):
    """Where a request lies: a pool of the plan, and the offset in it, in bytes."""

    pool: str
    offset: Size


@record
class PlannedPool:
    """A pool of a plan: one contiguous address space of `size` bytes in `memory`, a pool of the problem."""

    memory: str
    scope: str
    size: Size
    align: int = 1


@record
class Row:
    """The address of each pool of a plan, and the end of each memory, in bytes."""

    starts: Mapping[str, Size]
    ends: Mapping[str, Size]


@record(slots=False)
class Layout:
    """Placements by request id, the pools of the plan by name, who made it, and a decision for each request.

    `in_place` are the pairs (destination id, source id), out of the problem's candidates, that share their place.
    `proved` are bytes that the strategy has shown every plan with these pairs to need, 0 where it has shown nothing,
    and `proved_open` those that it has shown every plan to need, whichever pairs it takes.
    `cached` says that it was made before, for the same problem, and `seconds` then are those of finding it.
    """

    problem: Problem
    placements: Mapping[str, Placement]
    pools: Mapping[str, PlannedPool]
    strategy: str
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    deterministic: bool = True
    seconds: float = field(default=0.0, compare=False)
    in_place: tuple[tuple[str, str], ...] = ()
    proved: Size = 0
    cached: bool = field(default=False, compare=False)
    proved_open: Size = 0

    def __post_init__(self) -> None:
        made = type(self).__name__
        demand(made, "problem", self.problem, "a Problem", fits=isinstance(self.problem, Problem))
        demand(made, "strategy", self.strategy, "a text", fits=isinstance(self.strategy, str))
        for name in ("placements", "pools", "decisions"):
            given = getattr(self, name)
            demand(made, name, given, "a dict", fits=isinstance(given, Mapping))
            # What is made of another plan has its mappings: `dict` would ask them for each value by itself.
            copied = given.copy() if isinstance(given, MappingProxyType) else dict(given)
            object.__setattr__(self, name, MappingProxyType(copied))
        object.__setattr__(self, "in_place", pairs_in_place(self.in_place))

    @cached_property
    def total(self) -> Size:
        """The bytes of all pools of the plan, each as often as its memory exists.

        Where the problem is contiguous they stand in a row in each memory, and the padding between them counts.
        """
        shares = [(region.memory, region.size) for region in self.pools.values()]
        if self.problem.contiguous:
            shares = list(self.row.ends.items())
        copies = {name: memory.copies for name, memory in self.problem.memories.items()}
        for name, region in self.pools.items():
            if region.memory not in copies:
                fault = f"pool `{name}` is in memory `{region.memory}`, which the problem does not have"
                raise BrokenPlan(self.strategy, fault).error()
        return total_of(size if copies[name] == 1 else size * copies[name] for name, size in shares)

    @cached_property
    def row(self) -> Row:
        """The addresses of the pools, with those of each memory in a row, each aligned.

        A pool with fixed offsets in it comes first, as its offsets are addresses.
        """
        fixed = {self.placements[r.id].pool for r in self.problem.requests if r.fixed is not None}
        starts: dict[str, Size] = {}
        ends: dict[str, Size] = {}
        for name, region in sorted(self.pools.items(), key=lambda item: item[0] not in fixed):
            starts[name] = round_up(ends.get(region.memory, 0), region.align)
            ends[region.memory] = starts[name] + region.size
        return Row(starts, ends)

    @cached_property
    def residents(self) -> Mapping[str, tuple[str, ...]]:
        """For each pool of the plan the ids of the requests in it, in the order of the problem."""
        found: dict[str, list[str]] = {name: [] for name in self.pools}
        for request in self.problem.requests:
            if request.id in self.placements:
                found.setdefault(self.placements[request.id].pool, []).append(request.id)
        return MappingProxyType({name: tuple(ids) for name, ids in found.items()})


def demand_whole(plan: Layout) -> Layout:
    """The plan itself, if each request has a placement in a pool, and its sizes depend on dims of the problem alone."""
    numbers = [plan.total, plan.proved, plan.proved_open, *(region.size for region in plan.pools.values())]
    for name in plan.problem.by_id:
        if name not in plan.placements:
            raise BrokenPlan(plan.strategy, f"`{name}` is not placed").error()
        pool, offset = plan.placements[name]
        if pool not in plan.pools:
            raise BrokenPlan(plan.strategy, f"`{name}` lies in `{pool}`, which the plan does not have").error()
        numbers.append(offset)
    known = set(plan.problem.dims)
    for number in dict.fromkeys(numbers):
        if not known.issuperset(dims_of(number)):
            raise BrokenPlan(plan.strategy, f"`{number}` has dims that the problem does not have").error()
        if isinstance(number, int) and number.bit_length() > _DRAWN_BITS:
            raise BrokenPlan(plan.strategy, f"a size or an offset has {number.bit_length()} bits").error()
    return plan


def total_of(sizes: Iterable[Size]) -> Size:
    """The sum of many sizes, added pairwise so that long symbolic sums cost little more than linear time."""
    constant = 0
    level: list[Size] = []
    for size in sizes:
        if isinstance(size, int):
            constant += size
        else:
            level.append(size)
    while len(level) > 1:
        pairs = [a + b for a, b in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0] + constant if level else constant


def pools_of(problem: Problem, placements: Mapping[str, Placement]) -> dict[str, PlannedPool]:
    """The smallest pools that hold the requests at their placements.

    A pool lies in the memory of its name, or else in the first one that all requests in it accept.
    """
    by_id = problem.by_id
    residents = by_key((placements[name].pool, by_id[name]) for name in placements if name in by_id)
    pools = {}
    for pool, requests in residents.items():
        common = [m for m in requests[0].memories if all(m in r.memories for r in requests)]
        memory = problem.memories[pool if pool in common else (common or requests[0].memories)[0]]
        size = maximum(*(placements[r.id].offset + r.size for r in requests))
        pools[pool] = PlannedPool(memory.name, memory.scope, size, max(memory.align, *(r.align for r in requests)))
    return pools


L = TypeVar("L", bound=Layout)


def at(layout: L, binding: Mapping[Dim, int]) -> L:
    """The layout with constant sizes and offsets that `layout` becomes at a binding."""
    placements = {name: Placement(p.pool, evaluate(p.offset, binding)) for name, p in layout.placements.items()}
    pools = {
        name: PlannedPool(r.memory, r.scope, evaluate(r.size, binding), r.align) for name, r in layout.pools.items()
    }
    decisions = {
        name: Decision(d.choice, None if d.before is None else evaluate(d.before, binding))
        for name, d in layout.decisions.items()
    }
    problem = layout.problem.at(binding)
    return replace(
        layout,
        problem=problem,
        placements=placements,
        pools=pools,
        decisions=decisions,
        proved=evaluate(layout.proved, binding),
        proved_open=evaluate(layout.proved_open, binding),
    )


def given(
    problem: Problem,
    placements: Mapping[str, tuple[str, Size]],
    strategy: str,
    in_place: Iterable[tuple[str, str]] = (),
) -> Layout:
    """The layout with these placements, in the smallest pools that hold them."""
    demand("Plan.of", "problem", problem, "a Problem", fits=isinstance(problem, Problem))
    demand("Plan.of", "placements", placements, "a dict from ids to places", fits=isinstance(placements, Mapping))
    named = {name: _placement(name, where) for name, where in placements.items()}
    decisions = {name: Decision(Choice.GIVEN) for name in named}
    return Layout(problem, named, pools_of(problem, named), strategy, decisions, in_place=tuple(in_place))


def _placement(name: str, given: object) -> Placement:
    if isinstance(given, tuple | list) and len(given) == 2:
        pool, offset = given
        with suppress(TypeError):
            if isinstance(pool, str):
                return Placement(pool, as_size(offset))
    wanted = "the name of a pool and an offset in bytes"
    raise PlanArgument(f"placements[{name!r}]", "Plan.of", wanted, shown(given)[:60]).error()


def addresses(layout: Layout) -> dict[str, Size]:
    """The address of each request, by its id, with the pools of each memory in a row from 0, each aligned."""
    return {name: layout.row.starts[p.pool] + p.offset for name, p in layout.placements.items()}
