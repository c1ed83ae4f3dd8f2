"""Finds the pairs of buffers of a function of which one may take over the bytes of the other, with proofs.

The condition, from first principles: while both live, whenever a write to the destination and an access to the source
(a read, or a write) touch the same byte, the access to the source comes first. Then each value that is read of either
is the one that was last written to it, as it was in two places: what the destination overwrites is no longer needed,
and nothing overwrites the destination. How often an element is written does not matter by itself; but what is written
in one iteration is written before all that is read in the next, so that all loops count, up to the body in which both
are allocated. Source of the idea: in-place sharing in TVM's storage_rewrite (2017), which compares the indices in one
statement, and is wrong where a loop comes back to an element.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from tirlite.analysis.access import WRITE, Allocation, LinearSequence, Region, Touch
from tirlite.analysis.facts import Facts, of_facts
from tirlite.analysis.lifetimes import Lifetime
from tirlite.analysis.regions import regions_around
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import Binary, Broadcast, Buffer, BufferRef, Expr, IntImm, Load, Neg, Ramp, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, For, IfThenElse, Stmt, Store, View
from tirlite.ir.walk import own_exprs, statements, statements_of
from tirlite.record import cached_property

if TYPE_CHECKING:
    from tirlite.analysis.in_place.prover import InPlaceProof


Interval = tuple[int, int]

# Where many buffers die in the statement in which one is born, those are looked at whose last use is nearest.
_NEAREST = 6
# How many statements in a row two buffers may live together.
_MOST_TOGETHER = 64
# How many such pairs are looked at: this many, and one more for a number of allocations.
_LATER_AT_LEAST = 256
_ALLOCATIONS_PER_LATER = 2
# How many pairs of accesses are compared for two buffers, on average over the whole function.
_COMPARED_ON_AVERAGE = 16
_COMPARED_AT_LEAST = 10_000

# Indices that are longer, with the bounds of the loops that they mention, are not compared.
_LONGEST = 64
# What one access touches: parts that are equal where the elements are.
_Form: TypeAlias = "tuple[object, ...]"


@of_facts
def in_place_candidates(facts: Facts) -> tuple[InPlaceProof, ...]:
    """A proof for each pair of allocations of which one is born while the other one dies.

    The function is in normal form (see `Normalize`). The two are of one scope and allocated in one body, and live
    together during one statement alone, or a few in a row: from the first that touches the destination to the last that
    touches the source. They stand in that body, or in a branch of an `if` there. Left out are pairs of which a
    statement is plainly seen to overwrite what one after it reads. In order of the destination's allocation.
    """
    pairs = list(_Meetings(facts.sequence, facts.lifetimes).pairs())
    if not pairs:
        return ()
    from tirlite.analysis.in_place.prover import Callees, Prover  # most functions have no such pairs

    prover = Prover(facts, Callees(facts), _COMPARED_AT_LEAST + _COMPARED_ON_AVERAGE * len(pairs))
    return tuple([prover.proof(*pair) for pair in pairs])


_Pair = tuple[Allocation, Allocation, tuple[Stmt, Stmt], Interval]


class _Deaths:
    """What dies in one body and scope."""

    def __init__(self) -> None:
        self.at: dict[int, list[tuple[int, Allocation]]] = {}  # by end, in order of the last use
        self.ends: list[int] = []  # when something dies, in order

    def add(self, end: int, allocation: Allocation) -> None:
        self.ends.append(end)
        last = _last_before(allocation.touches, end)
        if last is None:  # what threads share may live before its first touch, from the end of an earlier iteration on
            return
        group = self.at.get(end)
        if group is None:
            self.at[end] = [(last, allocation)]
        else:
            group.append((last, allocation))

    def sort(self) -> None:
        self.ends.sort()
        for group in self.at.values():
            if len(group) > 1:
                group.sort(key=itemgetter(0))


class _Meetings:
    """Which allocations die where others are born."""

    def __init__(self, sequence: LinearSequence, lifetimes: Sequence[Lifetime]) -> None:
        self.entries = sequence.entries
        self.live = {
            allocation: lifetime.live for allocation, lifetime in zip(sequence.allocations, lifetimes, strict=True)
        }
        self.deaths: dict[tuple[Region, str], _Deaths] = {}
        # The first write from a birth on, and the last use before a death.
        self.firsts: dict[tuple[Allocation, int], Touch | None] = {}
        self.plain = PlainMeetings()
        # How many pairs may still be looked at that live together for longer than a statement.
        self.left = _LATER_AT_LEAST + len(self.live) // _ALLOCATIONS_PER_LATER
        for allocation, live in self.live.items():
            place = allocation.home, allocation.buffer.scope
            deaths = self.deaths.get(place)
            if deaths is None:
                deaths = self.deaths[place] = _Deaths()
            for _, end in live:
                deaths.add(end, allocation)
        for deaths in self.deaths.values():
            deaths.sort()

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Of each entry the position of the composite around it, and how many statements stand before it there."""
        around: list[tuple[int, int]] = []
        places: list[tuple[int, int]] = []
        body, rank = -1, 0
        for entry in self.entries:
            places.append((body, rank))
            if entry.scope_pair_offset < 0:
                body, rank = around.pop()
                continue
            rank += 1
            if entry.scope_pair_offset > 0:
                around.append((body, rank))
                body, rank = entry.position, 0
        return places

    def pairs(self) -> Iterator[_Pair]:
        """Destination and source, the first and the last statement of those in which they meet, and their positions."""
        for destination, live in self.live.items():
            deaths = self.deaths[destination.home, destination.buffer.scope]
            for born, dies in live:
                entry = self.entries[born]
                if entry.scope_pair_offset < 0:
                    continue
                end = born + entry.scope_pair_offset + 1
                group: Sequence[tuple[int, Allocation]] | None = deaths.at.get(end)
                if group is not None and len(group) > 2 * _NEAREST:
                    group = _near(group, destination, born)
                for _, source in group or ():
                    if source is not destination and _is_overlap((born, end), live, self.live[source]):
                        yield destination, source, (entry.stmt, entry.stmt), (born, end)
                first = bisect_right(deaths.ends, end)
                # One of the ends from there on is its own.
                if first + 1 < len(deaths.ends) and deaths.ends[first + 1] <= dies:
                    for source, until, last in self._later_sources(destination, (born, dies), first):
                        yield destination, source, (entry.stmt, until), (born, last)

    def _later_sources(
        self, destination: Allocation, live: Interval, first: int
    ) -> Iterator[tuple[Allocation, Stmt, int]]:
        """What dies in one of the next statements while the destination lives, with that statement and its end.

        `first` is the number of the first death after the statement.
        """
        # What the extents of declarations read is not part of what statements do: they are left out.
        born, dies = live
        if isinstance(self.entries[born].stmt, (Allocate, View)):
            return
        deaths, places = self.deaths[destination.home, destination.buffer.scope], self.places
        for after in dict.fromkeys(deaths.ends[first : first + _NEAREST]):
            if after > dies:
                return
            until, offset = self.entries[after - 1].stmt, self.entries[after - 1].scope_pair_offset
            last = after - 1 + offset
            if offset > 0 or places[last][0] != places[born][0]:
                continue
            if places[last][1] - places[born][1] > _MOST_TOGETHER:
                return
            if isinstance(until, (Allocate, View)):
                continue
            group = deaths.at.get(after, ())
            for _, source in group if len(group) <= _NEAREST else group[-_NEAREST:]:
                spans = self.live[source]
                if source is destination or spans[-1][0] > born:
                    continue
                if not _is_overlap((born, after), self.live[destination], spans):
                    continue
                if self.left > 0 and not self._plainly_meet(destination, source, (born, after)):
                    self.left -= 1
                    yield source, until, after

    def _plainly_meet(self, destination: Allocation, source: Allocation, during: Interval) -> bool:
        """Whether the first write of the one plainly overwrites what the last use of the other is still to touch.

        Buffers that are filled and read from end to end are the usual case, and need no proof that this is no good.
        """
        low, high = during
        if (destination, low) not in self.firsts:
            write = next((t for t in destination.touches if t.position >= low and t.kind is WRITE), None)
            self.firsts[destination, low] = write
        if (source, high) not in self.firsts:
            self.firsts[source, high] = next((t for t in reversed(source.touches) if t.position < high), None)
        write, use = self.firsts[destination, low], self.firsts[source, high]
        if write is None or use is None or use.position < write.position:
            return False
        return self.plain.meet(write, destination, use, source)


def _near(
    group: Sequence[tuple[int, Allocation]], destination: Allocation, born: int
) -> Sequence[tuple[int, Allocation]]:
    """Those of a group, each with its last use, whose last use is near to the first write."""
    touches = destination.touches
    written = next((t.position for t in touches if t.position >= born and t.kind is WRITE), born)
    place = bisect_right(group, written, key=itemgetter(0))
    return group[max(0, place - _NEAREST) : place + _NEAREST]


def _last_before(touches: Sequence[Touch], end: int) -> int | None:
    for touch in reversed(touches):
        if touch.position < end:
            return touch.position
    return None


def _is_overlap(during: Interval, one: Sequence[Interval], other: Sequence[Interval]) -> bool:
    """Whether this is the one stretch of time that is in both."""
    if len(one) == len(other) == 1:  # the usual case
        (a, b), (c, d) = one[0], other[0]
        return (a if a > c else c, b if b < d else d) == during
    return [(max(a, c), min(b, d)) for a, b in one for c, d in other if a < d and c < b] == [during]


class PlainMeetings:
    """Compares accesses to allocations, each looked at once."""

    def __init__(self) -> None:
        self._firsts: dict[Touch, tuple[int, ...] | None] = {}
        self._forms: dict[Touch, _Form | None] = {}

    def meet(self, one: Touch, its: Allocation, other: Touch, others: Allocation) -> bool:
        """Whether both begin with one element, or go over the same ones by loops that are alike; if not empty ones.

        Both are accesses to the allocations themselves, at one place. What is said of whole loops is said without the
        conditions in them.
        """
        a, b = one.node, other.node
        if not isinstance(a, Load | Store) or not isinstance(b, Load | Store):
            return False
        if a.buffer is not its.buffer or b.buffer is not others.buffer or len(a.indices) != len(b.indices):
            return False
        for touch, node in ((one, a), (other, b)):
            if touch not in self._firsts:
                self._firsts[touch] = _first_element(touch.region, node.indices)
        first, second = self._firsts[one], self._firsts[other]
        is_alike = a.buffer.dtype.bytes == b.buffer.dtype.bytes
        if first is not None and second is not None:
            # The first element of all is at one place in whatever type and shape.
            return first == second and (not any(first) or is_alike)
        return is_alike and self._form(one, a) is not None and self._form(one, a) == self._form(other, b)

    def _form(self, touch: Touch, node: Load | Store) -> _Form | None:
        if touch not in self._forms:
            self._forms[touch] = _form_of(touch.region, node.indices)
        return self._forms[touch]


def _first_element(region: Region, indices: Sequence[Expr]) -> tuple[int, ...] | None:
    """The element at which the loops around an access begin, as far as they stand in the index by themselves."""
    loops = _loops_around(region)
    found = [loops[index].start if isinstance(index, Var) and index in loops else index for index in indices]
    first = [each.value for each in found if isinstance(each, IntImm)]
    return tuple(first) if len(first) == len(found) else None


def _form_of(region: Region, indices: Sequence[Expr]) -> _Form | None:
    """Indices, the loops that they mention, by numbers, and the bounds of these."""
    loops = _loops_around(region)
    numbers: dict[Var, int] = {}
    parts: list[object] = []
    todo: list[Expr] = [*reversed(indices)]
    pending: list[For] = []
    while todo or pending:
        if not todo:
            loop = pending.pop()
            parts.append(loop.step)
            todo += (loop.stop, loop.start)
        expr = todo.pop()
        if isinstance(expr, Var) and expr in loops:
            if expr not in numbers:
                numbers[expr] = len(numbers)
                pending.append(loops[expr])
            parts.append(("loop", numbers[expr]))
        elif isinstance(expr, Var):
            parts.append(expr)
        elif isinstance(expr, IntImm):
            parts.append(expr.value)
        elif isinstance(expr, Binary | Neg | Ramp | Broadcast) and len(parts) < _LONGEST:
            parts.append((type(expr), expr.dtype))
            todo += reversed(expr.children())
        else:
            return None
    return tuple(parts)


def _loops_around(region: Region) -> dict[Var, For]:
    loops = (each.composite for each in regions_around(region) if isinstance(each.composite, For))
    return {loop.var: loop for loop in loops}


def taken_by_tvm(func: PrimFunc, proofs: Iterable[InPlaceProof]) -> Iterator[InPlaceProof]:
    """Those of `proofs`, allowed or not, of which TVM's rule holds: what strategy `tvm` may do. Types and sizes are not
    compared.

    A destination may replace a source at the statement where the one is born and the other dies, if that is a store, a
    loop or an if; if it mentions neither by its bare name, loads the destination nowhere, and nothing inside an index;
    and if each load of the source stands in the value of a store to the destination, at the same index. The rule asks
    neither how often the loops around come back nor what was stored before, and so proves nothing.
    Source: storage_rewrite.cc (2017).
    """
    views = {each.buffer for each in statements_of(func.body, View)}
    return (
        proof
        for proof in proofs
        if proof.at is proof.until
        and isinstance(proof.at, Store | For | IfThenElse)
        and _holds(proof.at, proof.destination, proof.source, views)
    )


def _holds(at: Stmt, destination: Buffer, source: Buffer, views: set[Buffer]) -> bool:
    for stmt in statements(at):
        if isinstance(stmt, View) and stmt.source in (destination, source):
            return False
        if isinstance(stmt, Store) and stmt.buffer in views:
            return False
        stored = stmt if isinstance(stmt, Store) and stmt.buffer is destination else None
        for expr, in_index in _expressions(stmt):
            if isinstance(expr, BufferRef) and expr.buffer in (destination, source):
                return False
            if isinstance(expr, Load):
                if expr.buffer is destination or expr.buffer in views or in_index:
                    return False
                if expr.buffer is source and (stored is None or not are_equal(expr.indices, stored.indices)):
                    return False
    return True


def _expressions(stmt: Stmt) -> Iterator[tuple[Expr, bool]]:
    """The expressions that a statement evaluates itself, and whether each stands inside an index."""
    store = stmt if isinstance(stmt, Store) else None
    tops = [(child, store is not None and child is not store.value) for child in own_exprs(stmt)]
    while tops:
        expr, in_index = tops.pop()
        yield expr, in_index
        tops += [(child, in_index or isinstance(expr, Load)) for child in expr.children()]
