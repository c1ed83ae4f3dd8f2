"""Proves that one allocation of a function may take over the bytes of another, or finds the reason why not.

A call is examined through the parameters that receive the two: the same question about them, in the callee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tirlite.analysis.access import OPAQUE, WRITE, Allocation, Region, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.call_demands import may_be_empty
from tirlite.analysis.loops.dependence import exclude_each_other, out_of_order, plainly_ordered, relation, shared_loops
from tirlite.analysis.regions import regions_between
from tirlite.ir.expr import Buffer, Load
from tirlite.ir.kernel_call import Function, KernelCall
from tirlite.ir.node import Node
from tirlite.ir.printer import text
from tirlite.ir.stmt import AttrKey, AttrStmt, For, ForKind, Stmt, Store, While
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import statements_of
from tirlite.record import record

Interval = tuple[int, int]


@record
class Reason:
    """A sentence, with places for the names of what it is about: these are put in where someone reads it."""

    sentence: str
    about: tuple[object, ...] = ()

    def __str__(self) -> str:
        return self.sentence.format(*(each.name if isinstance(each, Buffer) else each for each in self.about))


@record
class WrittenTooEarly:
    """The destination may be written before the source is done with the same byte."""

    write: Touch
    access: Touch
    loop: For | While | None  # in another iteration of this one

    def __str__(self) -> str:
        early, late, loop = self.write, self.access, self.loop
        touched = "read" if isinstance(late.node, Load) else "written"
        sentence = f"`{_access(early)}` may be written before `{_access(late)}` is {touched} at the same place"
        if loop is None:
            return f"{sentence}, in one run of the same statements"
        if not isinstance(loop, For):
            return f"{sentence}, in an earlier run of the while loop"
        if loop.kind in (ForKind.PARALLEL, ForKind.THREAD, ForKind.VECTORIZED):
            return f"{sentence}, in another iteration of `{loop.var.name}`, and these have no order"
        return f"{sentence}, in an earlier iteration of `{loop.var.name}`"


Obstacle: TypeAlias = Reason | WrittenTooEarly


@record(guarded=False)
class InPlaceProof:
    """Whether `destination`, which is first touched by the statement `at`, may stand on the bytes of `source`.

    `source` is touched for the last time by `until`: the same statement, or one that follows it in its body. Both begin
    at one address while these run, where alone both live. `obstacle` is the condition that failed, or None. Nothing
    else is proved, for instance of a third buffer, of alignment or of sizes: what of the larger one lies after the end
    of the smaller one is a matter of its own lifetime. `touches` are all those of the destination and of the source
    that were looked at: the proof knows of no others.
    """

    destination: Buffer
    source: Buffer
    at: Stmt
    until: Stmt
    obstacle: Obstacle | None = None
    touches: tuple[tuple[Touch, ...], tuple[Touch, ...]] = ((), ())

    @property
    def accesses(self) -> tuple[tuple[Buffer, Node, bool], ...]:
        """The touches in program order: the buffer of the two, what touches it, and whether that writes."""
        found = [
            (touch.position, isinstance(touch.node, KernelCall), touch.kind is WRITE, buffer, touch.node)
            for buffer, touches in zip((self.destination, self.source), self.touches, strict=True)
            for touch in touches
        ]
        found.sort(key=lambda each: each[:3])
        return tuple((buffer, node, writes) for _, _, writes, buffer, node in found)

    @property
    def allowed(self) -> bool:
        """Whether the destination may take over the bytes of the source."""
        return self.obstacle is None

    @property
    def reason(self) -> str:
        """Why it is allowed, or what stands against it."""
        if self.obstacle is not None:
            return str(self.obstacle)
        one, other = self.destination.name, self.source.name
        return f"each element of `{one}` is written after the last use of the element of `{other}` at the same place"

    def __str__(self) -> str:
        where = "" if self.at.span is None else f" at {self.at.span}"
        may = "may" if self.allowed else "may not"
        return f"`{self.destination.name}` {may} overwrite `{self.source.name}` in place{where}: {self.reason}"


def _access(touch: Touch) -> str:
    node = touch.node
    assert isinstance(node, Load | Store)
    return text(node if isinstance(node, Load) else Load(node.buffer, node.indices))


# How many pairs of accesses are compared for two buffers at most, and for all those of a callee.
_MOST_COMPARED = 2048
_COMPARED_IN_CALLEE = 10_000

# What may stand against a pair.
_IN_THREADS = Reason("threads, which run at no fixed pace, share both")
_ADDRESS_TAKEN = "the address of `{}` is handed on, so not all of its uses are known"
_REMARKED = "an attribute says something about `{}`, which may be double-buffered"
_MAY_BE_EMPTY = "a dim of `{}` may be 0 at this call, and nothing is proved of it but for 1 or more"
_OTHER_PLACES = "`{}` is given `{}` and `{}`, which are not proved to begin at the same byte"
_WRITTEN_BEFORE = "`{}` is written before `{}` is done with, around `{}`"

# The touches of the destination and those of the source.
_Uses: TypeAlias = tuple[Sequence[Touch], Sequence[Touch]]


class Callees:
    """Proofs about the parameters of functions that are called, each made once."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._provers: dict[Function, Prover] = {}
        self._known: dict[tuple[Function, Buffer, Buffer], Obstacle | None] = {}

    def obstacle(self, func: Function, destination: Buffer, source: Buffer) -> Steps[Obstacle | None]:
        """What stands against two parameters of `func` in one place."""
        key = (func, destination, source)
        if key not in self._known:
            facts = self._facts.of(func)
            if func not in self._provers:
                self._provers[func] = Prover(facts, self, _COMPARED_IN_CALLEE)
            prover = self._provers[func]
            pair = facts.params[destination], facts.params[source]
            self._known[key] = yield prover.obstacle(*pair, (pair[0].touches, pair[1].touches))
        return self._known[key]


class Prover:
    """Looks for what stands against a pair. `budget` bounds how many accesses are compared in all."""

    def __init__(self, facts: Facts, callees: Callees, budget: int) -> None:
        self.budget = budget
        self.callees = callees
        self.addresses = facts.addresses
        definitions = facts.definitions
        self.has_views = bool(definitions.views)
        self.has_calls = next(statements_of(facts.func.body, KernelCall), None) is not None
        self.remarked = {definitions.root(buffer) for buffer in definitions.remarked}

    def proof(
        self, destination: Allocation, source: Allocation, span: tuple[Stmt, Stmt], during: Interval
    ) -> InPlaceProof:
        """The proof, or what stands against it, for two that live together over the positions `during`.

        `span` are the first and the last of the statements there.
        """
        uses = touches_during(destination, during), touches_during(source, during)
        if self.has_calls:
            obstacle = run(self.obstacle(destination, source, uses))
        else:
            obstacle = self._unfit(destination, source, uses) or self._among(destination, source, uses)
        return InPlaceProof(destination.buffer, source.buffer, *span, obstacle, uses)

    def obstacle(self, destination: Allocation, source: Allocation, uses: _Uses) -> Steps[Obstacle | None]:
        """What forbids the two in one place while these touches happen; None where they are proved to be safe."""
        found = self._unfit(destination, source, uses)
        if found is None:
            found = yield self._in_calls(destination.home, uses)
        return found or self._among(destination, source, uses)

    def _among(self, destination: Allocation, source: Allocation, uses: _Uses) -> Obstacle | None:
        """What loads and stores stand against it."""
        home, roots = destination.home, (source.buffer, destination.buffer)
        writes, accesses = [t for t in uses[0] if t.kind is WRITE], list(uses[1])
        if self.has_calls:
            writes, accesses = ([t for t in each if not _is_call(t)] for each in (writes, accesses))
        if _are_plainly_ordered(accesses, writes, home, roots):
            return None
        # Most pairs fail where they meet first: all addresses are worked out for the others alone.
        if 0 < len(writes) * len(accesses) <= min(_MOST_COMPARED, self.budget):
            self.budget -= 1
            for access, write in _likely([(access, write) for access in accesses for write in writes], home):
                if (found := out_of_order(self.addresses, access, write, home)) is not None:
                    return WrittenTooEarly(write, access, found.carrier)
        writes, accesses = self._distinct(writes, latest=False), self._distinct(accesses, latest=True)
        count = len(writes) * len(accesses)
        if count > min(_MOST_COMPARED, self.budget):
            return _too_many(count)
        self.budget -= count
        ordered: set[object] = set()
        for access, write in _nest_by_nest([(access, write) for access in accesses for write in writes], home):
            if (alike := relation(self.addresses, access, write)) in ordered:
                continue
            found = out_of_order(self.addresses, access, write, home)
            if found is not None:
                return WrittenTooEarly(write, access, found.carrier)
            ordered.add(alike)
        return None

    def _in_calls(self, home: Region, uses: _Uses) -> Steps[Obstacle | None]:
        """The same for pairs of which one or both are calls."""
        writes = [touch for touch in uses[0] if touch.kind is WRITE]
        pairs = [(a, w) for a in uses[1] for w in writes if _is_call(a) or _is_call(w)]
        if len(pairs) > _MOST_COMPARED:
            return _too_many(len(pairs))
        for access, write in pairs:
            found: Obstacle | None = yield self._in_call(access, write, home)
            if found is not None:
                return found
        return None

    def _in_call(self, access: Touch, write: Touch, home: Region) -> Steps[Obstacle | None]:
        call = write.node if isinstance(write.node, KernelCall) else access.node
        assert isinstance(call, KernelCall)
        loops = shared_loops(access.region, write.region, home)
        if loops:
            return _repeated(call, loops[-1])
        if write.node is access.node and write.position == access.position:
            assert write.param is not None
            assert access.param is not None
            mine, other = (self.addresses.layout(touch.buffer) for touch in (write, access))
            if mine.moves or other.moves or mine.start != other.start:
                return Reason(_OTHER_PLACES, (call.callee.name, write.buffer, access.buffer))
            if may_be_empty(call, self.addresses.space.extents):
                return Reason(_MAY_BE_EMPTY, (call.callee.name,))
            inside: Obstacle | None = yield self.callees.obstacle(call.callee, write.param, access.param)
            return None if inside is None else Reason("inside of `{}`, {}", (call.callee.name, inside))
        if access.position < write.position or exclude_each_other(access.region, write.region, home):
            return None
        return Reason(_WRITTEN_BEFORE, (write.buffer, access.buffer, call.callee.name))

    def _unfit(self, destination: Allocation, source: Allocation, uses: _Uses) -> Obstacle | None:
        """What speaks against one of the two, whatever the other one."""
        attach = destination.home.attach
        if attach is not None and attach.is_thread:
            return _IN_THREADS
        return self._unfit_alone(destination, uses[0]) or self._unfit_alone(source, uses[1])

    def _unfit_alone(self, allocation: Allocation, touches: Sequence[Touch]) -> Obstacle | None:
        buffer = allocation.buffer
        for touch in allocation.touches:
            if touch.kind is OPAQUE:
                return Reason(_ADDRESS_TAKEN, (buffer,))
        if buffer.volatile or (self.has_views and any(touch.buffer.volatile for touch in touches)):
            return Reason("`{}` is volatile", (buffer,))
        if buffer in self.remarked:
            return Reason(_REMARKED, (buffer,))
        home = allocation.home
        for inner in dict.fromkeys([touch.region for touch in touches if touch.region is not home]):
            for region in regions_between(inner, home):
                if isinstance(region.composite, AttrStmt) and region.composite.key is AttrKey.EXTERN_SCOPE:
                    return Reason("`{}` is touched inside an extern scope", (buffer,))
                if region.is_thread and region.has_threads:
                    return _IN_THREADS
        return None

    def _distinct(self, touches: Sequence[Touch], *, latest: bool) -> list[Touch]:
        """One of all touches of the same elements in the same body: the latest, or the earliest.

        It is the one for which the order is hardest to prove.
        """
        found: dict[object, Touch] = {}
        for touch in touches if latest else reversed(touches):
            assert isinstance(touch.node, Load | Store)
            found[touch.region, self.addresses.of(touch.node).key] = touch
        return list(found.values())


def touches_during(allocation: Allocation, during: Interval) -> tuple[Touch, ...]:
    """The touches of an allocation at some positions."""
    low, high = during
    return tuple([touch for touch in allocation.touches if low <= touch.position < high])


def _are_plainly_ordered(
    accesses: Sequence[Touch], writes: Sequence[Touch], home: Region, roots: tuple[Buffer, Buffer]
) -> bool:
    for access in accesses:
        for write in writes:
            if not plainly_ordered(access, write, home, roots):
                return False
    return True


def _likely(pairs: list[tuple[Touch, Touch]], home: Region) -> list[tuple[Touch, Touch]]:
    """The pairs to try first: where they meet first, and what comes last of one with what comes first of the other.

    The latter are in order only if they are proved to be apart, where they stand in no loop together.
    """
    first, access, write = _nest_by_nest(pairs, home)[0], pairs[-1][0], pairs[0][1]
    is_behind = write.position < access.position and not shared_loops(access.region, write.region, home)
    return [first, (access, write)] if is_behind else [first]


def _nest_by_nest(pairs: list[tuple[Touch, Touch]], home: Region) -> list[tuple[Touch, Touch]]:
    """Pairs of one nest first, the deepest before others: most that fail are there, and seen in a tenth of the time."""
    nests: dict[For | While, int] = {}
    places: dict[tuple[Region, Region], tuple[int, int]] = {}

    def place(pair: tuple[Touch, Touch]) -> tuple[int, int]:
        regions = pair[0].region, pair[1].region
        if regions not in places:
            loops = shared_loops(*regions, home)
            places[regions] = (nests.setdefault(loops[0], len(nests)), -len(loops)) if loops else (len(pairs), 0)
        return places[regions]

    return sorted(pairs, key=place)


def _is_call(touch: Touch) -> bool:
    return isinstance(touch.node, KernelCall)


def _too_many(count: int) -> Reason:
    return Reason("there are {} pairs of accesses to compare, and that is too many", (count,))


def _repeated(call: KernelCall, loop: For | While) -> Reason:
    around = f"loop over `{loop.var.name}`" if isinstance(loop, For) else "while loop"
    return Reason("`{}` is called again and again, in the {}, in which both are used", (call.callee.name, around))
