"""Finds the dependences between accesses: in which order two may touch the same byte, and at which distances.

The orders in which two instances can run fall into classes: for each loop around both accesses, the instances that
first differ in that loop, and those of one iteration of all of them. A class is ruled out where no two of its instances
touch the same byte: the difference of their addresses is a linear equation over the counters, without a solution. What
is left of a class is a dependence. Source of the classes: Burke and Cytron, Interprocedural Dependence Analysis (1986).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from tirlite.analysis.access import AccessKind, Allocation, LinearSequence, Region, Touch
from tirlite.analysis.addresses import Address, Addresses
from tirlite.analysis.integers.definitions import Loop
from tirlite.analysis.integers.equations import Instances, solve
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.regions import path_to, regions_around, regions_between
from tirlite.ir import Buffer, Call, For, ForKind, IfThenElse, IntImm, KernelCall, Load, Store, StringImm, While
from tirlite.record import cached_property, record
from tirlite.sizes import Dim, Size, dims_of, maximum, minimum, substitute
from tirlite.sizes.poly import Atom, terms_of, varies
from tirlite.sizes.unknown import Unknown, is_positive

_SPELLED = {1: "<", 0: "=", -1: ">"}
UNORDERED = (ForKind.PARALLEL, ForKind.THREAD, ForKind.VECTORIZED, ForKind.REDUCE)


class DependenceKind(Enum):
    """What would change if the two accesses changed places: what is read, or what is there in the end."""

    FLOW = "flow"
    ANTI = "anti"
    OUTPUT = "output"


@record
class IterationStep:
    """Where the iteration of the sink lies in one loop, seen from that of the source.

    `direction` is `<` where it comes later, `=` where it is the same, `>` where it comes earlier, `*` where more than
    one of these may be. `distance` is by how many steps of the loop's variable, less than 0 where it comes earlier;
    None where it is not always the same.
    """

    direction: str
    distance: Size | None = None

    def __str__(self) -> str:
        if self.direction == "=" or self.distance is None:
            return self.direction
        return f"{self.direction}{-self.distance if self.direction == '>' else self.distance}"


@record(eq=False, slots=False)
class Dependence:
    """`sink` may touch, after `source`, a byte that `source` has touched, and one of them writes.

    They are in one iteration of the first `level` of `loops`, the loops around both, the outermost first, and in a
    later one of the loop at `level`; where there is none, they are in one iteration of all, and `sink` stands after.
    Loops are taken to run in order, whatever their kind.
    """

    kind: DependenceKind
    source: Touch
    sink: Touch
    loops: tuple[Loop, ...]
    level: int
    _pair: Pair

    @property
    def carrier(self) -> Loop | None:
        """The outermost loop that lies between the two; None where they are in one iteration of all."""
        return self.loops[self.level] if self.level < len(self.loops) else None

    @property
    def is_reduction(self) -> bool:
        """Whether both accesses combine values into the element by one operation, which the order may not matter to."""
        return self.source.reduction is not None and self.source.reduction is self.sink.reduction

    @cached_property
    def steps(self) -> tuple[IterationStep, ...]:
        """For each of `loops` how the sink lies to the source."""
        return self._pair.steps(self)

    def may_go_back(self, loop: Loop) -> bool:
        """Whether the sink may lie in an earlier iteration of one of `loops`, which stands inside of the carrier."""
        forward = 1 if self.sink is self._pair.first else -1
        return self._pair.solve(self.level, forward, (self.loops.index(loop), -forward)) is not None

    def __str__(self) -> str:
        steps = f", ({', '.join(map(str, self.steps))})" if self.loops else ""
        reduction = ", reduction" if self.is_reduction else ""
        return f"{self.kind.value}: {self.source} -> {self.sink}{steps}{reduction}"


def dependences_of(sequence: LinearSequence, addresses: Addresses) -> Iterator[Dependence]:
    """All dependences of a function, buffer by buffer; of accesses that are alike in one statement, those of one."""
    for allocation in (*sequence.params, *sequence.allocations):
        touches = distinct(allocation.touches, addresses, by_statement=True)
        for place, first in enumerate(touches):
            for then in touches[place:]:
                if (writes(first) or writes(then)) and not lie_apart(addresses, first, then):
                    yield from Pair(addresses, first, then, allocation.home).dependences()


def carried_by(
    loop: Loop, touches: Mapping[Allocation, Sequence[Touch]], addresses: Addresses, *, by_statement: bool = False
) -> Iterator[Dependence]:
    """The dependences that a loop carries in one execution of it; `touches` are those inside, of buffers from outside.

    Of accesses that are alike, those of one; of one for each statement where what asks goes by the statements.
    """
    return carried_of(loop, pairs_in(loop, touches, addresses, by_statement=by_statement), addresses)


def carried_of(loop: Loop, pairs: Iterable[tuple[Touch, Touch]], addresses: Addresses) -> Iterator[Dependence]:
    """Those between these pairs of accesses inside of the loop."""
    own: Size | None = None
    if isinstance(loop, For):
        if addresses.space.counter(loop).high == 0:
            return
        own = addresses.space.size(loop.var)
    for first, then in pairs:
        if lie_apart(addresses, first, then, own):
            continue
        body = next(region for region in regions_around(first.region) if region.composite is loop)
        assert body.parent is not None
        yield from Pair(addresses, first, then, body.parent).carried(0)


def pairs_in(
    loop: Loop, touches: Mapping[Allocation, Sequence[Touch]], addresses: Addresses, *, by_statement: bool = False
) -> Iterator[tuple[Touch, Touch]]:
    """The pairs of accesses to one buffer of which one writes; of accesses that are alike, those of one.

    Buffers are left out of which each iteration plainly has elements of its own.
    """
    for allocation, each in touches.items():
        if not any(map(writes, each)) or _has_own(loop, allocation.buffer, each):
            continue
        found = distinct(each, addresses, by_statement=by_statement)
        yield from ((a, b) for place, a in enumerate(found) for b in found[place:] if writes(a) or writes(b))


def distinct(touches: Iterable[Touch], addresses: Addresses, *, by_statement: bool = False) -> list[Touch]:
    """Of accesses of one buffer in one body, or in one statement, that are alike, the first."""
    found: dict[object, Touch] = {}
    for touch in touches:
        key = addresses.of(touch.node).key if isinstance(touch.node, Load | Store) else touch
        found.setdefault((touch.kind, touch.region, touch.position if by_statement else None, key), touch)
    return [*found.values()]


def lie_apart(addresses: Addresses, first: Touch, then: Touch, own: Size | None = None) -> bool:
    """Whether along one axis the indices of two accesses are different numbers, which takes one look.

    In two iterations of a loop also where both are as far from its variable, which is `own`.
    """
    one, other = first.node, then.node
    if not (isinstance(one, Load | Store) and isinstance(other, Load | Store)):
        return False
    a, b = addresses.of(one), addresses.of(other)
    return a.layout.same_grid(b.layout) and any(
        i != j if isinstance(i, int) and isinstance(j, int) else own is not None and i == j and isinstance(i - own, int)
        for i, j in zip(a.indices, b.indices, strict=True)
    )


def _has_own(loop: Loop, buffer: Buffer, touches: Sequence[Touch]) -> bool:
    """Whether all accesses to a buffer have the loop's variable as their index along one axis."""
    axes = {*range(len(buffer.shape))} if isinstance(loop, For) else set()
    for touch in touches:
        node = touch.node
        if not axes or not isinstance(node, Load | Store) or node.buffer is not buffer:
            return False
        axes &= {axis for axis, index in enumerate(node.indices) if isinstance(loop, For) and index is loop.var}
    return bool(axes)


def out_of_order(addresses: Addresses, first: Touch, then: Touch, home: Region) -> Dependence | None:
    """None where each instance of `first` is proved to run before every instance of `then` on the same byte.

    That is for one execution of the body `home`, which holds both. Else a dependence that says otherwise: of `first` on
    `then`, or one whose carrier is a loop without order.
    """
    if lie_apart(addresses, first, then):
        return None
    mine, other = path_to(first.region, home), path_to(then.region, home)
    are_apart = not any(isinstance(each.composite, For | While) for each in mine[: _shared(mine, other)])
    if are_apart and first.position < then.position:
        return None
    return next(Pair(addresses, first, then, home).dependences(then), None)


def relation(addresses: Addresses, first: Touch, then: Touch) -> object:
    """Equal for two pairs of loads and stores of which `out_of_order` says the same: rows as far apart, for example."""
    a, b = addresses.of(first.node), addresses.of(then.node)  # type: ignore[arg-type]
    between = a.indices, b.indices
    if a.layout.same_grid(b.layout):
        shifts = [terms_of(index).get((), 0) for index in a.indices]
        between = tuple(tuple(i - shift for i, shift in zip(each, shifts, strict=True)) for each in between)  # type: ignore[assignment]
    order = (first.position > then.position) - (first.position < then.position)
    return first.region, then.region, first.kind, then.kind, order, a.layout.buffer, b.layout.buffer, between


def may_carry(addresses: Addresses, write: Touch, read: Touch, loop: Region) -> bool:
    """Whether a read may see in one iteration of `loop` what was written in an earlier one, or any other without order.

    That is for one execution of the loop, which holds both.
    """
    assert loop.parent is not None
    return any(Pair(addresses, read, write, loop.parent).carried(0, write))


def writes(touch: Touch) -> bool:
    """Whether an access may write: one by an address unless that is for reading."""
    if touch.kind is AccessKind.OPAQUE and isinstance(touch.node, Call):
        mask = touch.node.args[-1]
        return not (isinstance(mask, StringImm) and mask.value == "r")
    return touch.kind is not AccessKind.READ


@record(eq=False)
class Alignment:
    """Two loops in a row, of one step, as one with a counter of its own, from which theirs lie at fixed distances."""

    first: For
    counter: Unknown
    counters: tuple[dict[Atom, Size], dict[Atom, Size]]

    @classmethod
    def of(cls, space: IndexSpace, first: For, second: For, shift: int) -> Alignment | None:
        """The second one stays `shift` iterations behind the first; None where their distance is not fixed.

        Loops that go by blocks begin at one value.
        """
        one, other = space.counter(first), space.counter(second)
        apart = (space.size(first.var) - first.step * one) - (space.size(second.var) - second.step * other)
        if varies(apart) or first.step != second.step or (first.step != 1 and apart != 0):
            return None
        behind = apart - shift
        high = None if one.high is None or other.high is None else maximum(one.high, other.high - behind)
        joint = Unknown(space.extents.origin, first.var.name, minimum(0, -behind), high, first, counts=True)
        return cls(first, joint, ({one: joint + 0}, {other: joint + behind}))


class Pair:
    """Two accesses, the loops around both in one execution of `home`, and the equations between their addresses.

    With an alignment, its two loops count as one around both.
    """

    def __init__(
        self, addresses: Addresses, first: Touch, then: Touch, home: Region, aligned: Alignment | None = None
    ) -> None:
        self.first = first
        self.then = then
        self.space = addresses.space
        mine, other = path_to(first.region, home), path_to(then.region, home)
        shared = _shared(mine, other) if aligned is None else 1
        self.exclusive = shared < min(len(mine), len(other)) and _are_branches(mine[shared], other[shared])
        self.loops = tuple(r.composite for r in mine[:shared] if isinstance(r.composite, For | While))
        self.levels = {loop: level for level, loop in enumerate(self.loops)}
        self.inner = [r.composite for r in (*mine[shared:], *other[shared:])]
        self.counters = {k: self.space.counter(loop) for k, loop in enumerate(self.loops) if isinstance(loop, For)}
        # What the variables are of loops that do not always begin with the same value.
        self.moved: dict[int, Size] = {}
        for k, counter in self.counters.items():
            value = self.space.size(self._loop(k).var)
            if varies(value - self._loop(k).step * counter):
                self.moved[k] = value
        # What is not known of addresses may be anything.
        self.positive: dict[Dim, Size] = {}
        self.differences: list[_Difference] = []
        if _is_told(first) and _is_told(then):
            a, b = addresses.of(first.node), addresses.of(then.node)  # type: ignore[arg-type]
            self.positive = _positive_dims(addresses, a, b)
            self.differences = list(_differences(addresses, a, b))
        if aligned is not None:
            self.counters[0], (as_one, as_other) = aligned.counter, aligned.counters
            self.differences = [
                (substitute(a, as_one), substitute(b, as_other), slack) for a, b, slack in self.differences
            ]

    def dependences(self, source: Touch | None = None) -> Iterator[Dependence]:
        """All of them, the outermost carrier first; given a source, those with it, and of loops without order all."""
        known = self.solve(None)
        if known is None:
            return
        for level in range(len(self.loops)):
            if known.get(level) == 0:
                continue
            yield from self.carried(level, source)
            if is_positive(known.get(level, 0)) or is_positive(-known.get(level, 0)):
                return
        if not self.exclusive:
            for early, late in self._orders():
                if source in (None, early) and self.solve(len(self.loops)) is not None:
                    yield self._dependence(early, late, len(self.loops))

    def carried(self, level: int, source: Touch | None = None) -> Iterator[Dependence]:
        """Those with their carrier at a level; given a source, those with it, and all where that loop has no order."""
        loop = self.loops[level]
        if isinstance(loop, For) and loop.kind in UNORDERED:
            source = None
        for sign, early, late in ((1, self.then, self.first), (-1, self.first, self.then)):
            if source in (None, early) and self.solve(level, sign) is not None:
                yield self._dependence(early, late, level)
            if self.first is self.then:
                return

    def steps(self, of: Dependence) -> tuple[IterationStep, ...]:
        """For each loop how the sink lies to the source."""
        found = [IterationStep("=", 0)] * of.level
        if of.level == len(self.loops):
            return tuple(found)
        forward = 1 if of.sink is self.first else -1
        known = self.solve(of.level, forward) or {}
        carried = known.get(of.level)
        found.append(IterationStep("<", None if carried is None else forward * carried))
        for level in range(of.level + 1, len(self.loops)):
            distance = known.get(level)
            signs = [sign for sign in (1, 0, -1) if self.solve(of.level, forward, (level, forward * sign)) is not None]
            direction = _SPELLED[signs[0]] if len(signs) == 1 else "*"
            found.append(IterationStep(direction, None if distance is None else forward * distance))
        return tuple(found)

    def solve(self, level: int | None, sign: int = 0, inner: tuple[int, int] | None = None) -> dict[int, Size] | None:
        """What is known of the distance of the two instances in each common loop, by its level; None: they never meet.

        It is by how many steps of the loop's variable `first` comes later. They are in one iteration of the loops above
        `level`, and `first` is in a later iteration of the loop at `level` for `sign` 1, in an earlier one for -1; with
        None they are any two. `inner` is the level of a further loop, with its sign, which may be 0.
        """
        found = self._solve(level, sign, inner, {})
        if found is None or not self.positive or all(found.get(k) == 0 for k in range(len(self.loops))):
            return found
        sharper = self._solve(level, sign, inner, self.positive)
        # Sizes in it are over other dims.
        return None if sharper is None else found | {k: n for k, n in sharper.items() if isinstance(n, int)}

    def _solve(
        self, level: int | None, sign: int, inner: tuple[int, int] | None, dims: dict[Dim, Size]
    ) -> dict[int, Size] | None:
        same = level or 0  # how many loops are in one iteration
        signs = {} if inner is None else dict([inner])
        if level is not None:
            signs[level] = sign
        build = Instances(self.space, self.levels, self.inner, same)
        by_value = {k: value for k, value in self.moved.items() if k > same or level is None}
        for k, counter in self.counters.items():
            if k in signs and k not in by_value:
                build.direct(counter, signs[k])
        for a, b, slack in self.differences:
            build.equate(a, b, slack)
        build.relate()
        distances = {k: build.distance(counter) for k, counter in self.counters.items() if k not in by_value}
        distances |= {
            k: build.difference(value, self._loop(k).step * signs[k] if k in signs else None)
            for k, value in by_value.items()
        }
        known = solve(build.system.with_dims(dims) if dims else build.system)
        if known is None:
            return None
        found = {k: known[name] for k, name in distances.items() if name in known}
        for k in found.keys() & by_value.keys():
            if found[k] % self._loop(k).step == 0:
                found[k] = found[k] // self._loop(k).step
            else:
                del found[k]
        return found | dict.fromkeys(range(same), 0)

    def _loop(self, level: int) -> For:
        loop = self.loops[level]
        assert isinstance(loop, For)
        return loop

    def _orders(self) -> Iterator[tuple[Touch, Touch]]:
        """In which order the two stand in one iteration of all loops: the earlier one, and the later one."""
        one, other = self.first, self.then
        if one.position != other.position:
            yield (one, other) if one.position < other.position else (other, one)
        elif isinstance(one.stmt, KernelCall) or AccessKind.OPAQUE in (one.kind, other.kind):
            # In what order a callee touches both is not looked at.
            yield from ((one, other), (other, one)) if one is not other else ()
        elif one.kind is not other.kind:
            yield (other, one) if writes(one) else (one, other)

    def _dependence(self, early: Touch, late: Touch, level: int) -> Dependence:
        kind = DependenceKind.ANTI if not writes(early) else DependenceKind.FLOW
        if writes(early) and late.kind is AccessKind.WRITE:
            kind = DependenceKind.OUTPUT
        return Dependence(kind, early, late, self.loops, level, self)


def _is_told(touch: Touch) -> bool:
    """Whether it is known which element an access touches in which iteration of the loops around it."""
    # Thread-bound loops in others are not loops of their own.
    attach = touch.region.attach
    return isinstance(touch.node, Load | Store) and not (attach is not None and attach.has_threads)


def plainly_ordered(first: Touch, then: Touch, home: Region, roots: tuple[Buffer, Buffer]) -> bool:
    """Whether the order that `out_of_order` looks for is plain to see; False where that takes a proof.

    Both are in one body. There are no loops around it; or the two have equal indices, which name each loop, in the
    allocations themselves (`roots`), of one shape: then what runs on one element is one iteration.
    """
    if then.region is not first.region or then.position < first.position:
        return False
    if then.region is home:
        return True
    a, b = first.node, then.node
    assert isinstance(a, Load | Store)
    assert isinstance(b, Load | Store)
    named = {index for index, other in zip(a.indices, b.indices, strict=False) if index is other}
    for region in regions_between(then.region, home):
        loop = region.composite
        if isinstance(loop, While) or (isinstance(loop, For) and loop.var not in named):
            return False
    return (a.buffer, b.buffer) == roots and _same_shape(*roots)


def shared_loops(one: Region, other: Region, home: Region) -> list[Loop]:
    """The loops inside `home` that are around both, the outermost first."""
    mine, its = path_to(one, home), path_to(other, home)
    both = mine[: _shared(mine, its)]
    return [region.composite for region in both if isinstance(region.composite, For | While)]


def exclude_each_other(one: Region, other: Region, home: Region) -> bool:
    """Whether the two lie in different branches of one `if`, inside `home`."""
    mine, its = path_to(one, home), path_to(other, home)
    shared = _shared(mine, its)
    return shared < min(len(mine), len(its)) and _are_branches(mine[shared], its[shared])


def _shared(mine: list[Region], other: list[Region]) -> int:
    """How many regions are around both."""
    shared = 0
    while shared < min(len(mine), len(other)) and mine[shared] is other[shared]:
        shared += 1
    return shared


def _same_shape(one: Buffer, other: Buffer) -> bool:
    alike = one.dtype.bytes == other.dtype.bytes and len(one.shape) == len(other.shape)
    return alike and all(
        a is b or (isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value)
        for a, b in zip(one.shape[1:], other.shape[1:], strict=True)
    )


def _are_branches(one: Region, other: Region) -> bool:
    """Whether these are the two branches of one `if`."""
    return isinstance(one.composite, IfThenElse) and (one.then is other or other.then is one)


# Two sizes, and between which ends their difference lies; None: they are equal modulo 2**64.
_Difference: TypeAlias = tuple[Size, Size, tuple[int, int] | None]


def _differences(addresses: Addresses, a: Address, b: Address) -> Iterator[_Difference]:
    """What must be equal for two elements to share a byte: the indices in one grid, or else the bytes."""
    if a.layout.same_grid(b.layout):
        for exact, mine, exact_other, other in zip(a.indices, a.wrapped, b.indices, b.wrapped, strict=True):
            yield mine, other, (0, 0) if exact == mine and exact_other == other else None
        return
    mine_bytes, other_bytes = addresses.bytes(a), addresses.bytes(b)
    if mine_bytes is not None and other_bytes is not None:
        yield mine_bytes, other_bytes, (1 - a.layout.element, b.layout.element - 1)


def _positive_dims(addresses: Addresses, *touched: Address) -> dict[Dim, Size]:
    """Dims that may be 0, and cannot be here: an axis along which something is accessed is not empty."""
    found: dict[Dim, Size] = {}
    for address in touched:
        for extent in address.layout.buffer.shape:
            size = addresses.space.size(extent)
            dims = () if varies(size) else dims_of(size)
            if len(dims) == 1 and dims[0].low == 0 and size == dims[0]:
                dim = dims[0]
                found[dim] = Dim(dim.name, max(1, dim.min), dim.max, dim.multiple_of) + 0
    return found
