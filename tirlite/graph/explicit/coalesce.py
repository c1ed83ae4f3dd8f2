"""StorageCoalesce gives an executable one storage for each scope and element type; LiftConst moves constants up.

Source: the memory planner of TVM's Relay VM. Its author meant to overlap storages within a region later: here any other
strategy of the planner does that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from itertools import count

from tirlite.diag import public
from tirlite.graph.explicit.executable import Executable
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Body,
    Branch,
    Instruction,
    LetSize,
    LoadConstant,
    Routine,
    walk,
)
from tirlite.graph.explicit.lifetimes import Scope, Storage, storage_problem, storages
from tirlite.ir import Steps, run
from tirlite.plan import Plan, Problem, solve
from tirlite.record import record
from tirlite.sizes import Dim, Size, round_up


@record
class StorageCoalesce:
    """One region for each scope - a routine's body, each side of a branch - and element type, allocated at its entry.

    With strategy `coalesce` a region is the sum of its storages, each rounded up to the alignment; with others, as
    `pack`, storages that are not needed at the same time overlap. Symbolic sizes and offsets get names before the
    allocation. Storages of a size that is known only later stay where they are. Constants are lifted before.

    With a `capacity` a region of more bytes is refused: a CapacityError names the storages that live at its peak.
    """

    strategy: str | Callable[[Problem], Plan] = "coalesce"
    capacity: int | None = None
    name = "storage-coalesce"

    @public
    def __call__(self, executable: Executable) -> Executable:
        lifted = LiftConstants()(executable)
        routines = (each if each.primitive else coalesced(each, self.plan(each)) for each in lifted.routines)
        return Executable(tuple(routines))

    @public
    def plan(self, routine: Routine) -> Plan:
        """The checked plan of a routine's storages; the pools of one memory become one region."""
        problem = storage_problem(routine)
        pools = tuple(replace(pool, capacity=self.capacity) for pool in problem.pools)
        return solve(replace(problem, pools=pools), self.strategy)


def coalesced(routine: Routine, plan: Plan) -> Routine:
    """The routine with the pools of a plan as its storages."""
    return replace(routine, body=run(_Coalescing(routine, plan).body(routine.body, Scope())))


class _Coalescing:
    def __init__(self, routine: Routine, plan: Plan) -> None:
        self.plan = plan
        self.taken = {step.name for step in walk(routine.body) if isinstance(step, AllocStorage)}
        self.numbers = count()
        # For each scope its memories, in each the pools of the plan, with a storage that lies there.
        self.pools: dict[Scope, dict[str, dict[str, Storage]]] = {}
        for name, storage in storages(routine).items():
            if storage.size is not None:
                memories = self.pools.setdefault(storage.scope, {})
                memories.setdefault(storage.memory, {}).setdefault(plan.placements[name].pool, storage)
        self.places: dict[str, tuple[str, Size]] = {}

    def body(self, body: Body, scope: Scope) -> Steps[Body]:
        constants = [step for step in body if isinstance(step, LoadConstant)]
        made: list[Instruction] = [*constants, *self.regions(scope)]
        for step in body:
            if isinstance(step, Branch):
                then = yield self.body(step.then, Scope(step, 0))
                other = yield self.body(step.other, Scope(step, 1))
                made.append(Branch(step.condition, then, other))
            elif isinstance(step, AllocTensor) and step.storage in self.places:
                region, offset = self.places[step.storage]
                made.append(replace(step, storage=region, offset=offset + step.offset))
            elif not isinstance(step, LoadConstant) and not self.is_placed(step):
                made.append(step)
        return tuple(made)

    def is_placed(self, step: Instruction) -> bool:
        return isinstance(step, AllocStorage) and step.name in self.places

    def regions(self, scope: Scope) -> Iterator[Instruction]:
        """What opens the regions of a scope. Several pools of one memory stand one behind the other."""
        for pools in self.pools.get(scope, {}).values():
            name = self.fresh()
            alloc = next(iter(pools.values())).alloc
            start: Size = 0
            end: Size = 0
            offsets: dict[Size, Size] = {}
            for pool in pools:
                start = start + round_up(end, alloc.alignment)
                end = self.plan.pools[pool].size
                for resident in self.plan.residents[pool]:
                    offset = start + self.plan.placements[resident].offset
                    if offset not in offsets:
                        offsets[offset] = yield from _named(f"{name}_offset_{len(offsets)}", offset)
                    self.places[resident] = (name, offsets[offset])
            size = yield from _named(f"{name}_size", start + end)
            yield AllocStorage(name, size, alloc.alignment, alloc.dtype, alloc.device)

    def fresh(self) -> str:
        return next(name for name in map("region_{}".format, self.numbers) if name not in self.taken)


def _named(name: str, size: Size) -> Generator[Instruction, None, Size]:
    """Gives a symbolic size a name; a constant needs none."""
    if isinstance(size, int):
        return size
    dim = Dim(name, min=0)
    yield LetSize(dim, size)
    return dim + 0


@record
class LiftConstants:
    """Constants are loaded before all else, in the order in which they stood; those of branches too.

    Behind them begins what runs anew each time, and regions open there.
    """

    name = "lift-constants"

    def __call__(self, executable: Executable) -> Executable:
        return Executable(tuple(each if each.primitive else _lifted(each) for each in executable.routines))


def _lifted(routine: Routine) -> Routine:
    constants = tuple(step for step in walk(routine.body) if isinstance(step, LoadConstant))
    return replace(routine, body=(*constants, *run(_rest(routine.body))))


def _rest(body: Body) -> Steps[Body]:
    kept: list[Instruction] = []
    for step in body:
        if isinstance(step, Branch):
            then, other = (yield _rest(step.then)), (yield _rest(step.other))
            kept.append(Branch(step.condition, then, other))
        elif not isinstance(step, LoadConstant):
            kept.append(step)
    return tuple(kept)
