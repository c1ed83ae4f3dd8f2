"""Checks the rewritten form of a function against the original: gives Ok or what is wrong.

The rewritten program is right if each load reads what the original one would have read. Each buffer of the original is
traced to the bytes that it takes now, and for each two that may meet on the same bytes, all paths through the program
are looked at, to a fixpoint through loops: no read of the one may follow a write to the other unless the one was
declared anew in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tirlite.analysis.storage_check.places import Places
from tirlite.analysis.storage_check.resident import Handover, Region, Resident, Root, StorageFault, Wrong
from tirlite.analysis.storage_check.walk import Walk
from tirlite.ir import Buffer, PrimFunc
from tirlite.ir.demand import demand_prim_func, of_prim_func
from tirlite.plan import Ok

if TYPE_CHECKING:
    from tirlite.analysis.storage_check.flow import Spared
    from tirlite.analysis.storage_check.trials import Trials

_Run: TypeAlias = tuple[int, int, Region]


@of_prim_func
def check_storage(original: PrimFunc, rewritten: PrimFunc, in_place: Sequence[Handover] = ()) -> Ok | StorageFault:
    """Whether `rewritten` computes what `original` does: the same statements, on storage that serves as well.

    Each statement but declarations must be the same. Each original allocation must be declared where it was or further
    out, with enough bytes, aligned, in the same memory, inside the same parallel loop, by extents that are known there;
    and must read what it was last written. The rewritten function may take a plan with each call: then what it lists as
    disjoint lies apart, and all else may meet (see `analysis.shape_plan`).

    For a pair of `in_place` the proof stands in for the check of the statements at which the two meet, if it spoke of
    all that happens to them there, and if trying some instances does not refute it. What cannot be proved counts as
    wrong. Cost: about linear, and more only where buffers that meet on the same bytes are kept apart by branches alone.
    """
    demand_prim_func(rewritten, "check_storage()")
    if original is rewritten:
        return Ok()
    try:
        _Check(original, rewritten, in_place).run()
    except Wrong as wrong:
        return wrong.fault
    return Ok()


class _Check:
    def __init__(self, original: PrimFunc, rewritten: PrimFunc, in_place: Sequence[Handover]) -> None:
        self.proofs = {(each.destination, each.source): each for each in in_place}
        self.walk = Walk(original, rewritten, [stmt for each in in_place for stmt in (each.at, each.until)])
        self.trials: Trials | None = None
        self.holds: dict[tuple[Buffer, Buffer], bool] = {}
        self.places = Places(rewritten)
        self.original = original
        self.outermost: dict[tuple[Region, Region], Region | None] = {}

    def run(self) -> None:
        plan = self.walk.plan
        homes: dict[int, Root] = {}
        for root in self.walk.roots:
            is_arena = plan is not None and plan.arena(root.stmt.buffer) is not None
            if not is_arena and len(root.residents) < 2:
                self.places.settle(root)
                continue
            # Few roots hold several, and what compares these is loaded then.
            from tirlite.analysis.storage_check.meetings import hull_of, meetings, seem_apart, unlisted

            if plan is not None and is_arena:
                entries = self.places.entries(root, plan, homes)
                hulls = [hull_of(each, self.outermost) for each in root.residents]
                for one, other in unlisted(entries, hulls, plan.rows):
                    self.compare(root.residents[one], root.residents[other], together=entries[one] == entries[other])
                continue
            places = self.places.settle(root)
            if places is not None:
                hulls = [hull_of(each, self.outermost) for each in root.residents]
                for one, other in meetings(places, hulls, self.places.at_most):
                    together = places[one].low == places[other].low
                    try:
                        self.compare(root.residents[one], root.residents[other], together=together)
                    except Wrong as wrong:
                        raise wrong.marked(is_doubt=seem_apart(places[one], places[other])) from None

    def compare(self, one: Resident, other: Resident, *, together: bool) -> None:
        """Two that may meet on the same bytes; unless `together`, they may begin at different ones."""
        from tirlite.analysis.storage_check.flow import misread
        from tirlite.analysis.storage_check.meetings import is_elsewhere, is_whole, may_meet, used_all_along

        if (is_whole(one) or is_whole(other)) and (_is_written(one) or _is_written(other)) and may_meet(one, other):
            if not (is_elsewhere(one, other) and is_elsewhere(other, one)):
                _refuse(one, other)
            one, other = used_all_along(one), used_all_along(other)
        for victim, rival in ((one, other), (other, one)):
            found = misread(victim, rival, self.handover(victim, rival) if together else None)
            if found is not None:
                text = f"`{victim.buffer.name}` is read after `{rival.buffer.name}` was stored over its bytes"
                raise Wrong(text, [victim.buffer, rival.buffer], found.reader, found.writer)

    def handover(self, victim: Resident, rival: Resident) -> Spared | None:
        """The one run of the statements at which the two meet in place, where there is a proof for the pair."""
        takes_over = (rival.buffer, victim.buffer) in self.proofs
        destination, source = (rival, victim) if takes_over else (victim, rival)
        proof = self.proofs.get((destination.buffer, source.buffer))
        if proof is None:
            return None
        from tirlite.analysis.storage_check.flow import Spared
        from tirlite.analysis.storage_check.handovers import within

        runs = [run for run in self.runs(proof) if within(victim, *run[:2]) and within(rival, *run[:2])]
        if len(runs) != 1 or not self.counts(proof, destination, source, runs[0]):
            return None
        return Spared(*runs[0], takes_over)

    def runs(self, proof: Handover) -> Iterator[_Run]:
        """From where to where the statements of a proof run, one after the other in one body."""
        for first, last, region in self.walk.runs[proof.at]:
            if proof.until is proof.at:
                yield first, last, region
                continue
            for begin, end, other in self.walk.runs[proof.until]:
                if other is region and last < begin:
                    yield first, end, region

    def counts(self, proof: Handover, destination: Resident, source: Resident, run: _Run) -> bool:
        """Whether the proof may be counted on: it spoke of all accesses, and is not refuted."""
        pair = (destination.buffer, source.buffer)
        if pair not in self.holds:
            from tirlite.analysis.storage_check.handovers import is_plain, speaks_of_all, within

            touches, uses = within(destination, *run[:2]), within(source, *run[:2])
            holds = speaks_of_all(proof, touches, uses)
            writes = [each for each in touches if each.writes]
            if holds and not is_plain(destination, source, writes, uses):
                # Few programs need trials, and these are loaded then.
                from tirlite.analysis.storage_check.trials import Trials

                self.trials = self.trials or Trials(self.original)
                holds = self.trials.refuted(writes, uses, destination.region) is None
            self.holds[pair] = holds
        return self.holds[pair]


def _refuse(one: Resident, other: Resident) -> NoReturn:
    text = f"`{one.buffer.name}` and `{other.buffer.name}` share bytes, and not all that happens there is known"
    raise Wrong(text, [one.buffer, other.buffer], one.opaque or other.opaque or one.stmt, other.stmt)


def _is_written(resident: Resident) -> bool:
    return any(each.writes for each in resident.happenings)
