"""Bugs of the problem, the planners and the rewriter: sizes, alignment, slots, pairs in place, where storage stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import pytest
from mutation.trial import Bug, Plant

from tirlite import analysis
from tirlite.analysis import Extents
from tirlite.ir import Allocate, Buffer, For, PrimFunc, SeqStmt, Stmt, View, statements, walk
from tirlite.plan import Plan, in_place
from tirlite.plan.draft import Draft
from tirlite.plan.layout import Placement
from tirlite.plan.strategies import slots, tvm
from tirlite.plan.strategies.share import Occupancy
from tirlite.plan.strategies.slots import Slot
from tirlite.rewrite import storage
from tirlite.rewrite.storage import planned_storage
from tirlite.rewrite.storage.storage_problem import StorageProblem
from tirlite.sizes import Dim, Size, lower_bound, minimum

# The packages have functions of these names.
storage_problem = import_module("tirlite.rewrite.storage.storage_problem")
STRATEGIES = import_module("tirlite.plan.strategy").STRATEGIES


def sized(wrong: Callable[[Size, Buffer], Size]) -> Plant:
    """The problem has other sizes than the buffers."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = Extents.bytes

        def size(self: Extents, buffer: Buffer) -> Size | None:
            found = right(self, buffer)
            return None if found is None else wrong(found, buffer)

        patch.setattr(Extents, "bytes", size)

    return plant


def wrapped(bits: int) -> Callable[[Size, Buffer], Size]:
    return lambda size, _: size % (1 << bits) if isinstance(size, int) else size


def without_lanes(size: Size, buffer: Buffer) -> Size:
    return size // buffer.dtype.bytes


def least(size: Size, _: Buffer) -> Size:
    return max(lower_bound(size) or 0, 8)


def planned(wrong: Callable[[StorageProblem, Plan], Plan]) -> Plant:
    """The rewriter reads the plan wrongly."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = planned_storage._Merger.__init__

        def start(self: object, func: PrimFunc, found: StorageProblem, plan: Plan) -> None:
            right(self, func, found, wrong(found, plan))

        patch.setattr(planned_storage._Merger, "__init__", start)

    return plant


def in_elements(found: StorageProblem, plan: Plan) -> Plan:
    """Offsets are counted in elements."""
    sizes = {name: lifetime.buffer.dtype.bytes for name, lifetime in found.lifetimes.items()}
    return _moved(plan, lambda name, offset: offset // sizes[name])


def at_the_start(found: StorageProblem, plan: Plan) -> Plan:
    """Offsets are forgotten."""
    return _moved(plan, lambda name, offset: 0)


def beside_its_source(found: StorageProblem, plan: Plan) -> Plan:
    """What takes a place over begins one element behind it, in storage that is large enough for that."""
    takers = {destination for destination, _ in plan.in_place}
    pools = {name: replace(region, size=region.size + 8) for name, region in plan.pools.items()}
    return replace(_moved(plan, lambda name, offset: offset + 4 * (name in takers)), pools=pools)


def _moved(plan: Plan, move: Callable[[str, Size], Size]) -> Plan:
    places = {name: Placement(place.pool, move(name, place.offset)) for name, place in plan.placements.items()}
    return replace(plan, placements=places)


def put(target: object, name: str, value: object) -> Plant:
    return lambda patch: patch.setattr(target, name, value)


def both(*plants: Plant) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        for each in plants:
            each(patch)

    return plant


def storage_like(change: Callable[[Buffer, Buffer], Buffer]) -> Plant:
    """The merged allocation is made wrongly: given what is right, and the first of those that live there."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = planned_storage._Merger.storage

        def storage(self: object, members: list[tuple[Buffer, Size]], size: Size, align: int) -> Buffer:
            first = members[0][0]
            made = right(self, members, size, align)
            return made if made is first else change(made, first)

        patch.setattr(planned_storage._Merger, "storage", storage)

    return plant


def in_the_loop(patch: pytest.MonkeyPatch) -> None:
    """What one loop alone uses is declared anew in each of its iterations."""
    right = planned_storage._Merger.rewrite

    def rewritten(self: object, *given: object) -> PrimFunc:
        func = right(self, *given)
        stmts = list(func.body.stmts)
        for stmt in func.body.stmts:
            users = [
                s for s in stmts if isinstance(stmt, View | Allocate) and s is not stmt and _mentions(s, stmt.buffer)
            ]
            if len(users) == 1 and isinstance(users[0], For):
                loop = users[0]
                stmts[stmts.index(loop)] = loop.replaced(body=SeqStmt((stmt, loop.body)))
                stmts.remove(stmt)
        return func.replaced(body=SeqStmt(tuple(stmts)))

    patch.setattr(planned_storage._Merger, "rewrite", rewritten)


def _mentions(stmt: Stmt, buffer: Buffer) -> bool:
    return any(buffer in (getattr(node, "buffer", None), getattr(node, "source", None)) for node in walk(stmt))


def loop_variables_known(patch: pytest.MonkeyPatch) -> None:
    """Sizes that mention a loop's variable are taken to be known on entry."""
    right = Extents.__init__

    def start(self: Extents, func: PrimFunc) -> None:
        right(self, func)
        for stmt in statements(func.body):
            if isinstance(stmt, For):
                self._enter(stmt.var, Dim(stmt.var.name, min=0))

    patch.setattr(Extents, "__init__", start)


def all_pairs(patch: pytest.MonkeyPatch) -> None:
    """Pairs are taken in place whether the proof allows it or not."""

    def pairs(*arguments: object) -> list[object]:
        return [_Allowed(proof) for proof in right(*arguments)]

    right = storage_problem.in_place_candidates
    patch.setattr(storage_problem, "in_place_candidates", pairs)
    right_check = analysis.check_storage
    # The check is given the proofs as they are.
    patch.setattr(analysis, "check_storage", lambda a, b, proofs: right_check(a, b, [p for p in proofs if p.fair]))


class _Allowed:
    """A proof that says yes to everything; `fair` says whether it should."""

    allowed = True

    def __init__(self, proof: object) -> None:
        self.proof = proof

    @property
    def fair(self) -> bool:
        return self.proof.allowed

    def __getattr__(self, name: str) -> object:
        return getattr(self.proof, name)


def places_of_sources(patch: pytest.MonkeyPatch) -> None:
    """Each destination is put where its last candidate lies, although another one lives there with it."""
    right = planned_storage.solve

    def solve(problem: object, strategy: str, *limits: object, **options: object) -> Plan:
        return right(problem, lambda p: _with_sources(STRATEGIES[strategy](p)))

    patch.setattr(planned_storage, "solve", solve)


def _with_sources(plan: Plan) -> Plan:
    places = dict(plan.placements)
    pairs = []
    for handover in in_place.handovers(plan.problem):
        dst, src = handover.pair
        places[dst] = places[src]
        pairs.append((dst, src))
    pools = {name: region for name, region in plan.pools.items() if any(p.pool == name for p in places.values())}
    return replace(plan, placements=places, pools=pools, in_place=tuple(pairs))


def nothing_shared(patch: pytest.MonkeyPatch) -> None:
    """Storage is taken as if there were no end to it."""
    right = planned_storage.solve
    patch.setattr(planned_storage, "solve", lambda problem, *how, **options: right(problem, STRATEGIES["none"]))


def busy_is_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Occupancy, "is_free", lambda self, live: True)


def dies_at_birth(patch: pytest.MonkeyPatch) -> None:
    right = tvm._events

    def events(requests: object) -> object:
        return right([replace(r, live=tuple((lo, max(lo + 1, hi - 1)) for lo, hi in r.live)) for r in requests])

    patch.setattr(tvm, "_events", events)


def gaps_for_ever(patch: pytest.MonkeyPatch) -> None:
    """A lifetime with a gap ends at the gap."""
    right = tvm._events
    patch.setattr(tvm, "_events", lambda requests: right([replace(r, live=r.live[:1]) for r in requests]))


def unaligned(patch: pytest.MonkeyPatch) -> None:
    right = Draft.put

    def loosely(self: Draft, name: str, *arguments: object) -> None:
        right(self, name, *arguments)  # type: ignore[arg-type]
        self.pools[name] = replace(self.pools[name], align=1)

    patch.setattr(Draft, "put", loosely)


def one_memory(patch: pytest.MonkeyPatch) -> None:
    right = storage_problem._Memories.of

    def of(self: object, lifetime: object) -> str:
        return next(iter(self.met.values())).name if self.met else right(self, lifetime)

    patch.setattr(storage_problem._Memories, "of", of)


PLANNER_BUGS = (
    Bug("sizes wrap at 32 bits", "9", sized(wrapped(32))),
    Bug("sizes are counted in elements", "5", sized(without_lanes)),
    Bug("the least size is taken for the size", "15, 16", sized(least)),
    Bug("natural alignment is dropped", "5", put(storage_problem, "least_alignment", lambda buffer: 1), ("pack",)),
    Bug(
        "bodies of parallel loops have one arena",
        "12",
        both(
            put(storage_problem, "attach_loop", lambda region: None),
            put(planned_storage, "attach_loop", lambda region: None),
        ),
    ),
    Bug("all memories are one", "8", one_memory),
    Bug("sizes in a loop are known on entry", "3", loop_variables_known),
    Bug(
        "shapes are moved as they are written", "3", put(planned_storage._Merger, "can_move", lambda self, buffer: True)
    ),
    Bug("offsets are counted in elements", "5", planned(in_elements), ("pack",)),
    Bug("offsets are forgotten", "5", planned(at_the_start), ("pack",)),
    Bug("storage is rounded down to elements", "6", put(planned_storage, "ceildiv", lambda a, b: a // b)),
    Bug(
        "storage has the shape of its first buffer",
        "6",
        storage_like(lambda made, first: replace(made, shape=first.shape)),
    ),
    Bug(
        "storage has the element type of its first buffer",
        "5",
        storage_like(lambda made, first: replace(made, dtype=first.dtype)),
    ),
    Bug("alignment of storage is dropped", "5", storage_like(lambda made, first: replace(made, alignment=0))),
    Bug(
        "a statement stands twice as one object",
        "4",
        put(storage, "Normalize", lambda: lambda func: func),
        normalizes=False,
    ),
    Bug("a slot does not grow", "6", put(Slot, "size", property(lambda self: self.members[0].size))),
    Bug("a symbolic slot has the least size", "15", put(slots, "maximum", minimum)),
    Bug("slots are not aligned", "5", unaligned, ("share", "tvm")),
    Bug("storage that is in use counts as free", "17", busy_is_free, ("share",)),
    Bug("storage is free one step too early", "17", dies_at_birth, ("tvm",)),
    Bug("a lifetime ends at its first gap", "10", gaps_for_ever, ("tvm",)),
    Bug("in place without a proof", "1", all_pairs),
    Bug("what takes a place over lies beside it", "1, 5", planned(beside_its_source)),
    Bug("what a loop carries is declared in the loop", "11", in_the_loop),
    Bug("several sources are taken by one", "7", places_of_sources),
    Bug("the capacity is not looked at", "8", nothing_shared),
)
