"""Checks the rewritten form of a function against the original: returns Ok, or what is wrong.

The rewritten program is right if each load reads what the original one would have read. Each buffer of the original is
traced to the bytes that it occupies now. For each two that may share bytes, all paths through the program are followed,
to a fixpoint through loops: no read of the one may follow a write to the other unless the one was declared again in
between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from math import gcd, prod
from operator import itemgetter
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from tirlite.analysis.integers.extents import Extents
from tirlite.analysis.most_bytes import ExtentBounds
from tirlite.analysis.shape_plan import ShapePlan
from tirlite.analysis.storage_check.resident import (
    Bytes,
    Flow,
    Happening,
    InPlaceClaim,
    ProgramPart,
    Resident,
    Root,
    StorageFault,
    Wrong,
)
from tirlite.analysis.storage_check.walk import Walk
from tirlite.ir import Buffer, Expr, For, IntImm, KernelCall, Load, Node, PrimFunc, Store, View
from tirlite.ir.demand import demand_prim_func, of_prim_func
from tirlite.ir.shapes import constant_bytes, least_alignment
from tirlite.plan import Ok
from tirlite.sizes import Proof, Size, maximum, prove_divides

if TYPE_CHECKING:
    from tirlite.analysis.storage_check.flow import Spared
    from tirlite.analysis.storage_check.trials import Trials


_Run: TypeAlias = tuple[int, int, ProgramPart]


@of_prim_func
def check_storage(original: PrimFunc, rewritten: PrimFunc, in_place: Sequence[InPlaceClaim] = ()) -> Ok | StorageFault:
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
    def __init__(self, original: PrimFunc, rewritten: PrimFunc, in_place: Sequence[InPlaceClaim]) -> None:
        self.proofs = {(each.destination, each.source): each for each in in_place}
        self.walk = Walk(original, rewritten, [stmt for each in in_place for stmt in (each.at, each.until)])
        self.trials: Trials | None = None
        self.holds: dict[tuple[Buffer, Buffer], bool] = {}
        self.places = Places(rewritten)
        self.original = original
        self.outermost: dict[tuple[ProgramPart, ProgramPart], ProgramPart | None] = {}

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

        runs = [run for run in self.runs(proof) if within(victim, *run[:2]) and within(rival, *run[:2])]
        if len(runs) != 1 or not self.counts(proof, destination, source, runs[0]):
            return None
        return Spared(*runs[0], takes_over)

    def runs(self, proof: InPlaceClaim) -> Iterator[_Run]:
        """From where to where the statements of a proof run, one after the other in one body."""
        for first, last, region in self.walk.runs[proof.at]:
            if proof.until is proof.at:
                yield first, last, region
                continue
            for begin, end, other in self.walk.runs[proof.until]:
                if other is region and last < begin:
                    yield first, end, region

    def counts(self, proof: InPlaceClaim, destination: Resident, source: Resident, run: _Run) -> bool:
        """Whether the proof may be counted on: it spoke of all that happens to the two there, in order, and holds.

        What it claims, that no access to the source comes after a write of the destination to its bytes, is shown anew
        where that is plain, and else tried (see `trials`).
        """
        pair = (destination.buffer, source.buffer)
        if pair not in self.holds:
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


class Places:
    """Finds the bytes of each resident of a root: inside its root, aligned, in the right memory; each proved once."""

    def __init__(self, func: PrimFunc) -> None:
        self._func = func
        self._extents: Extents | None = None
        self._bounds: ExtentBounds | None = None
        self._proved: dict[tuple[Size, Size], bool] = {}
        self._products: dict[tuple[int, tuple[Size, ...]], Size] = {}

    def settle(self, root: Root) -> list[Bytes] | None:
        """The bytes of each resident, in order; None where the root has one resident, which is the root itself.

        Raises Wrong for a resident that does not lie well.
        """
        residents = root.residents
        if len(residents) == 1 and residents[0].buffer is root.stmt.buffer:
            self._demand_same_memory(residents[0], root)
            return None
        buffer = root.stmt.buffer
        size, given = self._bytes(buffer), max(buffer.alignment, _natural_alignment(buffer))
        return [self._settled(resident, root, size, given) for resident in residents]

    def entries(self, root: Root, plan: ShapePlan, homes: dict[int, Root]) -> list[int]:
        """The entry of each resident of an arena whose layout comes with the call. `homes` are the arenas of entries.

        What each call is checked for (`shape_plan.plan_demands`) makes sure that it lies inside, and aligned.
        """
        found = []
        for resident in root.residents:
            self._demand_same_memory(resident, root)
            declaration, source = resident.declared.declaration, resident.declared.source
            is_view = isinstance(declaration, View) and source is not None and source.declaration is root.stmt
            entry = plan.entry(declaration.byte_offset) if isinstance(declaration, View) and is_view else None
            if entry is None or self._most_bytes(resident.buffer) is None:
                raise _wrong(resident, root, "lies in an arena of a plan, and not at one of its entries")
            if homes.setdefault(entry, root) is not root or root.stmt.buffer.alignment % least_alignment(
                resident.buffer
            ):
                raise _wrong(resident, root, f"lies at entry {entry} in two arenas, or in one that is aligned worse")
            found.append(entry)
        return found

    def at_most(self, low: Size, high: Size) -> bool:
        """Whether `low <= high` for all values of the dims."""
        if isinstance(low, int) and isinstance(high, int):
            return low <= high
        pair = (low, high)
        proved = self._proved.get(pair)
        if proved is None:
            proved = low == high
            if not proved:
                from tirlite.sizes import prove_le_by_cases

                proved = prove_le_by_cases(low, high) is Proof.YES
            self._proved[pair] = proved
        return proved

    def _settled(self, resident: Resident, root: Root, room: Size | None, given: int) -> Bytes:
        buffer = resident.buffer
        self._demand_same_memory(resident, root)
        low, size = self._offset(resident, root), self._most_bytes(buffer)
        if low is None or size is None or room is None:
            raise _wrong(resident, root, "is not known on entry to the function: its size, its offset, or the storage")
        high = size if low == 0 else low + size
        if not self.at_most(0, low) or not self.at_most(high, room):
            from tirlite.sizes import fails_at_a_sample

            is_doubt = not fails_at_a_sample(0, low) and not fails_at_a_sample(high, room)
            raise _wrong(resident, root, f"takes the bytes [{low}, {high}) of {room}").marked(is_doubt=is_doubt)
        need = max(buffer.alignment, _natural_alignment(buffer))
        if given % need or not _divides(need, low):
            raise _wrong(resident, root, f"is to be aligned to {need} bytes, and lies at {low} of what {given} divide")
        return Bytes(low, high)

    def _demand_same_memory(self, resident: Resident, root: Root) -> None:
        if resident.buffer.scope != root.stmt.buffer.scope:
            raise _wrong(resident, root, f"is to live in {resident.buffer.scope}, not in {root.stmt.buffer.scope}")
        is_moved = resident.block is not root.block or (resident.thread is not root.thread and not resident.is_shared)
        if is_moved or resident.region.attach is not root.region.attach:
            raise _wrong(
                resident, root, "has storage of its own in each iteration of a parallel loop, or is to have it"
            )

    def _offset(self, resident: Resident, root: Root) -> Size | None:
        """Where a resident begins in its root, in bytes."""
        declared = resident.declared
        if declared.source is None:
            return 0
        assert isinstance(declared.declaration, View)
        if declared.source.source is not None:
            raise _wrong(resident, root, "is a view of a view, which may be smaller than the storage")
        return self._size(declared.declaration.byte_offset)

    def _bytes(self, buffer: Buffer) -> Size | None:
        return self._product(buffer, [self._size(expr) for expr in buffer.shape])

    def _most_bytes(self, buffer: Buffer) -> Size | None:
        """The bytes that a buffer never exceeds: extents may depend on loop variables."""
        constant = constant_bytes(buffer)
        if constant is not None:
            return constant
        extents = [self._size(expr) for expr in buffer.shape]
        if None in extents:
            if self._bounds is None:
                assert self._extents is not None
                self._bounds = ExtentBounds(self._func, self._extents)
            extents = [
                self._bounds.most(e) if size is None else size for e, size in zip(buffer.shape, extents, strict=True)
            ]
        return self._product(buffer, extents)

    def _product(self, buffer: Buffer, extents: Sequence[Size | None]) -> Size | None:
        known = tuple([each for each in extents if each is not None])
        if len(known) < len(extents):
            return None
        key = buffer.dtype.bytes, known
        if key not in self._products:
            positive = (e if self.at_most(0, e) else maximum(0, e) for e in known)
            self._products[key] = prod(positive, start=buffer.dtype.bytes)
        return self._products[key]

    def _size(self, expr: Expr) -> Size | None:
        if isinstance(expr, IntImm):
            return expr.value
        if self._extents is None:
            self._extents = Extents(self._func)
        return self._extents.size(expr)


def _natural_alignment(buffer: Buffer) -> int:
    """The largest power of two, 64 at most, that divides the bytes of an element."""
    return gcd(buffer.dtype.bytes, 64)


def _divides(need: int, size: Size) -> bool:
    return size % need == 0 if isinstance(size, int) else prove_divides(need, size) is Proof.YES


def _wrong(resident: Resident, root: Root, what: str) -> Wrong:
    return Wrong(f"`{resident.buffer.name}` {what}", [resident.buffer, root.stmt.buffer], resident.stmt, root.stmt)


_Access: TypeAlias = tuple[Buffer, Node, bool]


def within(resident: Resident, first: int, last: int) -> list[Happening]:
    """What happens to a resident from the one position to the other."""
    return [each for each in resident.happenings if first <= each.position <= last]


def speaks_of_all(proof: InPlaceClaim, destination: Sequence[Happening], source: Sequence[Happening]) -> bool:
    """Whether the proof lists what happens to the two, in order: what is read between two writes has no order."""
    seen = [(each.position, proof.destination, each) for each in destination]
    seen += [(each.position, proof.source, each) for each in source]
    seen.sort(key=itemgetter(0))
    mine = _in_groups((buffer, each.node, each.writes) for _, buffer, each in seen)
    return mine == _in_groups(proof.accesses)


def is_plain(destination: Resident, source: Resident, writes: Sequence[Happening], uses: Sequence[Happening]) -> bool:
    """Whether each use of the source is seen to come before each of the writes to the same byte.

    All uses come first and no loop comes back to them; or one iteration touches one element of both, the same one.
    """
    if not writes or not uses:
        return True
    if max(each.position for each in uses) > min(each.position for each in writes):
        return False
    home = destination.region
    regions = {each.region: None for each in uses}
    if not any(_share_a_loop(each.region, region, home) for each in writes for region in regions):
        return True
    return _is_one_element(destination, source, [*writes, *uses])


def _is_one_element(destination: Resident, source: Resident, touches: Sequence[Happening]) -> bool:
    """Whether all touch one element in each iteration, and another one in each other iteration."""
    node = touches[0].node
    if not isinstance(node, Load | Store) or not _are_alike(destination.buffer, source.buffer):
        return False
    for each in touches:
        other = each.node
        if each.region is not touches[0].region or not isinstance(other, Load | Store):
            return False
        if other.buffer not in (destination.buffer, source.buffer):
            return False
        if any(a is not b for a, b in zip(node.indices, other.indices, strict=True)):
            return False
    inside = takewhile(lambda region: region is not destination.region, touches[0].region.around())
    return all(
        isinstance(each.composite, For) and any(index is each.composite.var for index in node.indices)
        for each in inside
        if each.flow is Flow.LOOP
    )


def _are_alike(one: Buffer, other: Buffer) -> bool:
    """Whether equal indices lead to the same bytes of both."""
    return (
        one.dtype.bytes == other.dtype.bytes
        and len(one.shape) == len(other.shape)
        and all(
            a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)
            for a, b in zip(one.shape[1:], other.shape[1:], strict=True)
        )
    )


def _share_a_loop(one: ProgramPart, other: ProgramPart, home: ProgramPart) -> bool:
    """Whether a loop inside of `home`, which holds both, is around both."""
    while one is not other:
        if one.depth >= other.depth:
            assert one.parent is not None
            one = one.parent
        else:
            assert other.parent is not None
            other = other.parent
    while one is not home and one.flow is not Flow.LOOP:
        assert one.parent is not None
        one = one.parent
    return one is not home


def _in_groups(accesses: Iterable[_Access]) -> list[frozenset[_Access]]:
    """Neighbours that all read, or all write, or are one call, taken together."""
    groups: list[set[_Access]] = []
    last: object = None
    for access in accesses:
        kind = access[1] if isinstance(access[1], KernelCall) else access[2]
        if not groups or kind is not last:
            groups.append(set())
            last = kind
        groups[-1].add(access)
    return [frozenset(group) for group in groups]
