"""StorageCoalesce gives an executable one storage for each scope and element type; LiftConst moves constants up.

Source: the memory planner of TVM's Relay VM. Its author meant to overlap storages within a region later: here any other
strategy of the planner does that.

Time counts the instructions that touch tensors, in program order, the then-branch before the other one. A storage lives
from the first touch of a tensor on it to the last one; those of the results live to the end of the routine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from tirlite.diag import public
from tirlite.diag.error import demand_kind
from tirlite.graph.explicit.executable import Executable
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Body,
    Branch,
    Instruction,
    Invoke,
    LetSize,
    LoadConstant,
    ReadSize,
    ReshapeTensor,
    Routine,
    tensors_read,
    walk,
)
from tirlite.ir import Steps, run
from tirlite.plan import Plan, Pool, Problem, Request, solve
from tirlite.record import record, replace
from tirlite.sizes import Dim, Size, dims_of, is_at_most, round_up, substitute
from tirlite.sizes.poly import atom_of


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
    """The routine with one storage for each pool of a plan."""
    return replace(routine, body=run(_Coalescing(routine, plan).body(routine.body, Scope())))


class _Coalescing:
    def __init__(self, routine: Routine, plan: Plan) -> None:
        self.plan = plan
        self.taken = {step.name for step in walk(routine.body) if isinstance(step, AllocStorage)}
        self.numbers = count()
        # For each scope and memory, the pools of the plan, each with one of its storages.
        self.pools: dict[Scope, dict[str, dict[str, StorageUse]]] = {}
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
        """Allocates the regions of a scope. Several pools of one memory follow each other in its region."""
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
    """Names a symbolic size; a constant needs no name."""
    if isinstance(size, int):
        return size
    dim = Dim(name, min=0)
    yield LetSize(dim, size)
    return dim + 0


@record
class LiftConstants:
    """Constants are loaded before all else, in the order of the program; those of branches too.

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


class Scope(NamedTuple):
    """The body of a routine if `branch` is None, else one side of a branch: 0 is `then`, 1 is `else`."""

    branch: Branch | None = None
    side: int = 0


@record(eq=False)
class StorageUse:
    """A storage in a plan: `size` is None if it is not known or bounded when its scope is entered."""

    alloc: AllocStorage
    scope: Scope
    size: Size | None
    live: tuple[int, int]
    memory: str


def storages(routine: Routine) -> Mapping[str, StorageUse]:
    """The storages of a routine, by name, in the order of allocation."""
    walk = _Walk(routine)
    run(walk.body(routine.body, Scope()))
    walk.time += 1
    for name in routine.results:
        walk.touch(name)
    return walk.finished()


@public
def storage_problem(routine: Routine) -> Problem:
    """A request for each storage whose size is known when its scope is entered; a scope and element type is a memory.

    Storages on other devices, or of another alignment, have memories of their own.
    """
    demand_kind("storage_problem", routine, Routine)
    known = [each for each in storages(routine).values() if each.size is not None]
    requests = tuple(_request(each) for each in known)
    return Problem(requests, tuple(Pool(memory) for memory in dict.fromkeys(each.memory for each in known)))


def _request(storage: StorageUse) -> Request:
    alloc = storage.alloc
    assert storage.size is not None
    pools, kind = (storage.memory,), str(alloc.dtype)
    return Request(alloc.name, storage.size, (storage.live,), align=alloc.alignment, pools=pools, kind=kind)


class _Walk:
    def __init__(self, routine: Routine) -> None:
        self.time = 0
        self.roots: dict[str, str] = {}  # tensors on storages
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        self.found: dict[str, tuple[AllocStorage, Scope, Size | None, str]] = {}
        self.scopes: dict[Scope, str] = {}
        # Each named size over dims that are bound by arguments.
        self.sizes: dict[Dim, Size] = {}
        extents = (extent for param in routine.params for _, of in param.leaves for extent in of.shape)
        self.known = {dim for extent in extents for dim in atom_of(extent, Dim)}

    def body(self, body: Body, scope: Scope) -> Steps[None]:
        self.scopes[scope] = "body" if scope.branch is None else f"{'else' if scope.side else 'then'} {self.time}"
        at_entry = frozenset(self.known)
        for step in body:
            self.step(step, scope, at_entry)
            if isinstance(step, Branch):
                yield self.body(step.then, Scope(step, 0))
                yield self.body(step.other, Scope(step, 1))

    def step(self, step: Instruction, scope: Scope, at_entry: frozenset[Dim]) -> None:
        if isinstance(step, AllocStorage):
            size = substitute(step.size, self.sizes)
            is_known = at_entry.issuperset(dims_of(size)) and _counts_as_one(size)
            self.found[step.name] = (step, scope, size if is_known else None, self.memory(step, scope))
            self.last[step.name] = self.time
        elif isinstance(step, AllocTensor):
            self.roots[step.name] = step.storage
        elif isinstance(step, ReshapeTensor):
            if step.source in self.roots:
                self.roots[step.name] = self.roots[step.source]
        elif isinstance(step, LetSize):
            self.sizes[step.dim] = substitute(step.value, self.sizes)
        elif tensors_read(step) or isinstance(step, Invoke):
            self.time += 1
            for name in tensors_read(step):
                self.touch(name)
            if isinstance(step, Invoke):
                for name in step.outs:
                    self.touch(name)
            if isinstance(step, ReadSize):
                self.known.add(step.dim)

    def touch(self, tensor: str) -> None:
        if tensor in self.roots:
            root = self.roots[tensor]
            self.first.setdefault(root, self.time)
            self.last[root] = self.time

    def memory(self, step: AllocStorage, scope: Scope) -> str:
        device = f" @ {step.device}" if step.device else ""
        return f"{self.scopes[scope]} {step.dtype}{device} align {step.alignment}"

    def finished(self) -> Mapping[str, StorageUse]:
        return {
            name: StorageUse(alloc, scope, size, (self.first.get(name, self.last[name]), self.last[name] + 1), memory)
            for name, (alloc, scope, size, memory) in self.found.items()
        }


def _counts_as_one(size: Size) -> bool:
    """Whether no empty array makes the size larger than arrays of one element would, as a plan for these allows for.

    Plans hold for what the facts of dims allow; those at least 1 by default may be 0, and count as 1 in a `LetSize`.
    """
    loose = {dim: Dim(dim.name, 0, dim.max, dim.multiple_of) for dim in dims_of(size) if dim.min == 1}
    stand_ins = {dim: other + 0 for dim, other in loose.items()}
    weak = substitute(size, stand_ins)
    return all(
        is_at_most(substitute(weak, {dim: 0}), substitute(weak, {dim: dim.multiple_of})) for dim in loose.values()
    )
