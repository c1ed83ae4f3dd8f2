"""Finds the storages of a routine: the scope of each, when it is needed, and its size if that is known at entry.

Time counts the instructions that touch tensors, in program order, the then-branch before the other one. A storage lives
from the first touch of a tensor on it to the last one; those of the results live to the end of the routine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tirlite.diag import public
from tirlite.diag.argument import demand_kind
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Body,
    Branch,
    Instruction,
    Invoke,
    LetSize,
    ReadSize,
    ReshapeTensor,
    Routine,
    tensors_read,
)
from tirlite.ir import Steps, run
from tirlite.plan import Pool, Problem, Request
from tirlite.record import record
from tirlite.sizes import Dim, Proof, Size, dims_of, prove_le, substitute
from tirlite.sizes.poly import atom_of


class Scope(NamedTuple):
    """The body of a routine, where `branch` is None, or one side of a branch: 0 is `then`, 1 is `else`."""

    branch: Branch | None = None
    side: int = 0


@record(eq=False)
class Storage:
    """What is known of a storage: `size` is None where it is not known, or not bounded, when its scope is entered."""

    alloc: AllocStorage
    scope: Scope
    size: Size | None
    live: tuple[int, int]
    memory: str


def storages(routine: Routine) -> Mapping[str, Storage]:
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


def _request(storage: Storage) -> Request:
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
        # What each named size is in terms of dims that have values of their own.
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

    def finished(self) -> Mapping[str, Storage]:
        return {
            name: Storage(alloc, scope, size, (self.first.get(name, self.last[name]), self.last[name] + 1), memory)
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
        prove_le(substitute(weak, {dim: 0}), substitute(weak, {dim: dim.multiple_of})) is Proof.YES
        for dim in loose.values()
    )
