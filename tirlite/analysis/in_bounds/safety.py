"""Judges the accesses of a function: which are proved to lie in their buffers, and what decides about the others.

Where an access is not proved, what it demands may be a condition on dims and scalar parameters: then that decides, at
entry, for all of its executions. Scalars are taken to be of ordinary size there, which is part of the condition.
Where every call comes to an access that lies out of bounds in each, no version of a kernel can run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from itertools import takewhile

from tirlite.analysis.access import AccessKind
from tirlite.analysis.entry_space import (
    SHORT,
    EntrySpace,
    KnownSpace,
    OrdinaryExtents,
    Scan,
    is_index_array,
    is_only_read,
    promises_of,
)
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.bounds import Bounds, Goal
from tirlite.analysis.in_bounds.guarded import Access, guarded_accesses
from tirlite.analysis.in_bounds.hoisted import Hoisted, Hoisting
from tirlite.analysis.integers.array_bounds import ArrayBounds, is_exact_size, may_be_anything
from tirlite.analysis.integers.cells import cells_of
from tirlite.analysis.param_uses import only_updated, used
from tirlite.groups import by_key
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Expr, IntImm, Load, Mul, Var
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.size import expr_of
from tirlite.ir.stmt import Allocate, Assert, Evaluate, For, ForKind, IfThenElse, Let, Stmt, Store, View, While
from tirlite.ir.walk import accesses_in, own_exprs, statements, statements_of, walk
from tirlite.record import cached_property, record, replace
from tirlite.sizes import Dim, Scalar, Size, dims_of, evaluate
from tirlite.sizes.poly import terms_of, varies
from tirlite.sizes.unknown import Ends, Unknown, is_nonnegative, is_positive, linear

# This many conditions are tested at entry: what is left is checked where it stands.
_MOST_DEMANDS = 32
# No array of a call is counted on to have this many elements.
_LARGE = 1 << 30


class Verdict(Enum):
    """How an access is made safe; the value is the word for it in tables."""

    PROVED = "proved"
    DECIDED = "decided"
    CHECKED = "checked"
    UNCHECKED = "unchecked"


@record
class Demand:
    """Sizes that must all be 0 or more, where all are that say whether the access is reached at all."""

    sizes: tuple[Size, ...]
    reached: tuple[Size, ...] = ()


@record(eq=False)
class Judged:
    """An access along one axis, or a view as a whole; where it is decided at entry, or in front of a loop, by what."""

    access: Access
    axis: int
    verdict: Verdict
    demand: Demand | None = None
    hoisted: Hoisted | None = None


@record(eq=False)
class Safety:
    """What is not proved of a function, and what is tested on entry: demands, and the numbers that are ordinary."""

    judged: tuple[Judged, ...]
    demands: tuple[Demand, ...] = ()
    scalars: tuple[Var, ...] = ()
    scans: tuple[Scan, ...] = ()
    images: dict[Dim, Expr] | None = None

    def expr(self, size: Size) -> Expr:
        """A size over what is known on entry."""
        return expr_of(size, self.images or {})


def safety_of(facts: Facts, *, at_entry: bool = False, at_loops: bool = False) -> Safety:
    """What is not proved of a function in normal form, in program order, each axis of an access by itself.

    With `at_entry` accesses are decided there where they can be, and `at_loops` in front of innermost loops.
    """
    judging = Judging(facts)
    safety = judging.at_entry().safety if at_entry else judging.safety
    return judging.at_loops(safety) if at_loops else safety


class Judging:
    """What is not proved of one function, `safety`, and what else may decide about it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.safety = Safety(())
        self._judged: dict[tuple[int, int], Judged] = {}
        if _is_plainly_proved(facts, facts.bounds):
            return
        self._elements = _promised(facts)
        self._space = facts.space
        if self._elements or cells_of(facts.func):
            self._space = KnownSpace(facts.func, facts.extents, facts.definitions, self._elements)
        bounds = facts.bounds if self._space is facts.space else Bounds(self._space)
        for number, access in enumerate(guarded_accesses(facts.func, self._space)):
            for goal in bounds.open_goals(access):
                verdict = Verdict.UNCHECKED if access.around.is_unchecked else Verdict.CHECKED
                self._judged[number, goal.axis] = Judged(access, goal.axis, verdict)
        self.safety = Safety(tuple(self._judged.values()))

    @property
    def is_open(self) -> bool:
        """Whether something is to be checked."""
        return any(each.verdict is Verdict.CHECKED for each in self._judged.values())

    def at_entry(self, *, scans: bool = True, factors: bool = True) -> Decided:
        """What is decided on entry, and what is known there; `scans` says whether arrays may be looked at.

        With `factors` numbers that something is multiplied by may be taken to be at least 0.
        """
        entry = AtEntry(self._facts, self._elements, scans=scans, factors=factors) if self.is_open else None
        return Decided(self.safety if entry is None else entry.decided(self._judged), entry)

    def at_loops(self, safety: Safety) -> Safety:
        """The same with what can be decided in front of loops."""
        return _hoisted(safety, Hoisting(self._facts.func, self._space)) if safety.judged else safety


def _hoisted(safety: Safety, hoisting: Hoisting) -> Safety:
    """The same with what can be decided in front of loops."""
    found: list[Judged] = []
    for each in safety.judged:
        hoisted = hoisting.condition(each.access, each.axis) if each.verdict is Verdict.CHECKED else None
        found.append(each if hoisted is None else replace(each, verdict=Verdict.DECIDED, hoisted=hoisted))
    return replace(safety, judged=tuple(found))


@record(eq=False)
class Decided:
    """The accesses of a function, some of them decided at its entry, and what is known there where any are."""

    safety: Safety
    entry: AtEntry | None


def plain_safety_of(facts: Facts) -> Safety:
    """The same without the tests around accesses, which is faster, and leaves more accesses open."""
    bounds = facts.bounds
    judged: list[Judged] = []
    for access in guarded_accesses(facts.func, facts.space):
        verdict = Verdict.UNCHECKED if access.around.is_unchecked else Verdict.CHECKED
        judged += [Judged(access, axis, verdict) for axis in bounds.open_axes(access)]
    return Safety(tuple(judged))


def _promised(facts: Facts) -> dict[Buffer, Ends]:
    """The ends between which the top of a function has found the elements of parameters that are only read."""
    promises = promises_of(facts.func, facts.extents)
    return {each.buffer: (each.low, each.high) for each in promises if is_only_read(facts.params[each.buffer])}


def _is_plainly_proved(facts: Facts, bounds: Bounds) -> bool:
    """Whether all accesses are proved without the tests around them."""
    if any(not view.fresh for view in statements_of(facts.func.body, View)):
        return False
    sequence = facts.sequence
    return all(
        bounds.is_inside(touch.node)
        for allocation in (*sequence.params, *sequence.allocations)
        for touch in allocation.touches
        if isinstance(touch.node, Load | Store)
    )


class AtEntry:
    """What can be decided at the entry to one function.

    First with elements of arrays that may be any integers; then with those of 64 bits taken to be ordinary numbers,
    which is part of the condition: of those arrays `relied_on`.
    """

    def __init__(
        self, facts: Facts, elements: Mapping[Buffer, Ends], *, scans: bool = True, factors: bool = False
    ) -> None:
        self.func = facts.func
        self.extents = OrdinaryExtents(facts.func)
        arrays = {param for param, each in facts.params.items() if is_index_array(param, each)} if scans else set()
        arrays -= {*elements}
        looks: dict[Buffer, Scan] = {}
        self.space = EntrySpace(facts, self.extents, elements, looks, arrays=arrays)
        self.spaces = [self.space]
        if any(each.dtype == i64 for each in arrays):
            wide = EntrySpace(facts, self.extents, elements, looks, arrays=arrays, is_ordinary=False)
            self.spaces.insert(0, wide)
        self.short: EntrySpace | None = None
        self._factors: dict[Var, Dim] = {}
        products = [node for node in self._deciding if isinstance(node, Mul) and not isinstance(node.b, IntImm)]
        if products:
            given = self.extents.given
            met = dict.fromkeys(each for each in walk(*products) if isinstance(each, Var) and each in given)
            numbers = [var for var in met if factors and isinstance(given[var], Scalar) and var in self.func.params]
            short = self.extents.short(numbers)
            self._factors = {var: short.given[var] for var in numbers}
            self.short = EntrySpace(facts, short, elements, looks, arrays=set())
            self.spaces.append(self.short)
        self.demands: dict[Demand, None] = {}
        self.relied_on: dict[Scan, None] = {}

    def decided(self, judged: Mapping[tuple[int, int], Judged]) -> Safety:
        """The same accesses, by their number and axis, decided where that can be."""
        found = dict(judged)
        for space in self.spaces:
            self._decide(space, found)
        demands = tuple(each for each in self.demands if each.sizes)
        scalars = (*self.scalars(), *self._wide(self.relied_on)) if self.demands else ()
        scans = tuple(dict.fromkeys((*self.scans(self.demands), *self.relied_on)))
        return Safety(tuple(found.values()), demands, scalars, scans, self.extents.images)

    def _decide(self, space: EntrySpace, found: dict[tuple[int, int], Judged]) -> None:
        """Decides what is still to be checked, by what a space knows."""
        bounds = Bounds(space)
        by_access = by_key(place for place, each in found.items() if each.verdict is Verdict.CHECKED)
        if not by_access:
            return
        for number, access in enumerate(guarded_accesses(self.func, space)):
            axes = by_access.get(number, ())
            goals = {goal.axis: goal for goal in bounds.open_goals(access)} if axes else {}
            for axis in axes:
                demand = self._demand(bounds, access, goals.get(axis))
                if demand is not None and space is self.short:
                    demand = replace(demand, sizes=(*demand.sizes, *self._short_numbers()))
                if demand is not None and len(self.demands) < _MOST_DEMANDS:
                    self.demands[demand] = None
                    found[number, axis] = replace(found[number, axis], verdict=Verdict.DECIDED, demand=demand)
                    if space is self.space:
                        behind = {dim for size in bounds.behind(access) for dim in dims_of(size)}
                        used = (scan for dim, scan in space.scans.items() if dim in behind)
                        self.relied_on |= dict.fromkeys(scan for scan in used if scan.buffer.dtype == i64)

    @staticmethod
    def _wide(scans: Iterable[Scan]) -> Iterator[Var]:
        return (var for scan in scans if scan.buffer.dtype == i64 for var in (scan.least, scan.greatest))

    def scans(self, demands: Iterable[Demand]) -> tuple[Scan, ...]:
        """The looks at arrays that it takes to tell whether demands are met."""
        used = {dim for each in demands for size in (*each.sizes, *each.reached) for dim in dims_of(size)}
        known = {dim: scan for space in self.spaces for dim, scan in space.scans.items()}
        return tuple(dict.fromkeys(scan for dim, scan in known.items() if dim in used))

    def end_of(self, dim: Dim) -> tuple[Buffer, bool] | None:
        """The array of which a dim is the least or the greatest element, and whether it is that."""
        scan = next((space.scans[dim] for space in self.spaces if dim in space.scans), None)
        return None if scan is None else (scan.buffer, self.extents.images[dim] is scan.greatest)

    def end(self, buffer: Buffer, *, is_greatest: bool) -> Size | None:
        """The least or the greatest element of an array that is looked at on entry; None where it may not be."""
        return self.spaces[0].end(buffer, is_greatest=is_greatest)

    def value_of(self, var: Var) -> Size:
        """A number of the function that is to be ordinary."""
        known = self.extents.given.get(var)
        return (
            next(dim for dim, image in self.extents.images.items() if image is var) + 0 if known is None else known + 0
        )

    def _demand(self, bounds: Bounds, access: Access, goal: Goal | None) -> Demand | None:
        """None where it depends on what the function computes, or where a test in a loop may keep it from happening."""
        if goal is None:
            return Demand(())
        if access.around.is_tested and not bounds.is_half_tested(goal, access):
            return None
        sizes = bounds.demands(goal, access)
        if sizes is None or any(map(is_negative, sizes)) or any(map(self._is_rare, sizes)):
            return None
        # Where axes are not short another condition fails, whatever the arithmetic of this one comes to.
        if not all(self.is_known(size, bounds.space.extents.arrays) for size in sizes):
            return None
        if access.around.is_tested and any(self.end_of(dim) for size in sizes for dim in dims_of(size)):
            return None
        return Demand(sizes, tuple(dict.fromkeys(self._reached(access))))

    def _is_rare(self, size: Size) -> bool:
        """Whether hardly any call meets that a size is 0 or more, and nearly all would run the loops in order.

        The elements of an array would have to be all alike, or an extent as large as a type that an index wraps in.
        """
        terms = terms_of(size)
        if terms.get((), 0) <= -_LARGE:
            return True
        ends = {dim: end for dim in dims_of(size) if (end := self.end_of(dim)) is not None}
        arrays = [buffer for buffer, _ in ends.values()]
        is_spread = len(ends) == 2 and arrays[0] is arrays[1]
        signs = all(terms.get((dim,), 0) * (-1 if is_greatest else 1) > 0 for dim, (_, is_greatest) in ends.items())
        return is_spread and signs and len(terms.keys() - {()}) == 2

    def _reached(self, access: Access) -> Iterator[Size]:
        for fact in (*access.around.known, *map(self._last, access.around.loops)):
            if fact is None or varies(fact) or not self.is_known(fact) or is_nonnegative(fact):
                continue
            # What is computed with a number that may be large need not show it.
            if not any(dim in dims_of(fact) for dim in self._factors.values()):
                yield fact

    def _last(self, loop: For) -> Size | None:
        """How many iterations follow the first one; below 0 where there is none."""
        start, stop = self.extents.size(loop.start), self.extents.size(loop.stop)
        return None if start is None or stop is None else loop.distance(start, stop) - 1

    def is_known(self, size: Size, arrays: ArrayBounds | None = None) -> bool:
        """Whether a size can be computed at entry, or compared to 0: then i64 arithmetic gives it."""
        if not all(dim in self.extents.images for dim in dims_of(size)):
            return False
        wide, rest = apart(size)
        return is_exact_size(size if wide is None else rest, arrays or self.extents.arrays)

    def scalars(self) -> tuple[Var, ...]:
        """Those parameters that must be ordinary for what is proved here."""
        return tuple(var for var in self.extents.limited if var in self._deciding)

    def _short_numbers(self) -> Iterator[Size]:
        """That no axis is long which may have been multiplied by another one: what comes of that need not show it.

        Numbers that are factors are at least 0, too.
        """
        for var, dim in self.extents.given.items():
            if var in self._factors:
                yield from (size for size in (dim + 0, SHORT - dim) if not is_nonnegative(size))
            elif var in self._deciding and not isinstance(dim, Scalar):
                yield SHORT - dim

    @cached_property
    def _deciding(self) -> dict[Node, None]:
        """The values that control flow and indices depend on."""
        todo: list[Node] = []
        for stmt in statements(self.func.body):
            if isinstance(stmt, For | While | IfThenElse | Assert | Let):
                todo += own_exprs(stmt)
            elif isinstance(stmt, Allocate | View):
                todo += (*stmt.buffer.shape, *stmt.children())
        todo += [index for node in accesses_in(self.func.body) for index in node.indices]
        return dict.fromkeys(walk(*todo))


def apart(size: Size) -> tuple[Dim | None, Size]:
    """An arbitrary 64-bit number in a sum, taken once, and the sum without it; None where there is none."""
    for product, factor in terms_of(size).items():
        if len(product) == 1 and abs(factor) == 1 and isinstance(dim := product[0], Scalar) and may_be_anything(dim):
            return dim, size - factor * dim
    return None, size


def is_negative(size: Size) -> bool:
    """Whether a size is proved to be less than 0."""
    return is_nonnegative(-1 - size)


# What may end a call before an access after it, or keep it for ever.
_ENDS: tuple[type[Stmt], ...] = (Assert, While, Evaluate, KernelCall)


@record(eq=False)
class Outside:
    """An access, one of its axes, and an index and the extent there at some sizes, by name."""

    access: Access
    axis: int
    index: int
    extent: int
    sizes: tuple[tuple[str, int], ...]


def find_outside(facts: Facts, accesses: Iterable[Access]) -> Outside | None:
    """The first of some accesses that every call reaches out of bounds, if there is one."""
    begun = _begun(facts)
    return next((found for access in accesses for found in _outside(facts, begun, access)), None)


def find_unwritten(facts: Facts) -> tuple[Store, Buffer] | None:
    """A store that every call makes of what is read from an allocation that nothing gives a value, if there is one."""
    params = set(facts.func.params)
    never = {
        allocation.buffer
        for allocation in facts.sequence.allocations
        if allocation.touches and all(touch.kind is AccessKind.READ for touch in allocation.touches)
    } | (only_updated(facts.func) - params)
    begun = _begun(facts)
    for access in guarded_accesses(facts.func, facts.space) if never else ():
        node, stmt = access.node, access.stmt
        if isinstance(node, View) or not isinstance(stmt, Store):
            continue
        buffer = facts.definitions.root(node.buffer)
        is_candidate = stmt.buffer in params and _is_reached(facts, begun, access)
        if buffer in never and is_candidate and any(each is node for each in used(stmt.value)):
            return stmt, buffer
    return None


def _outside(facts: Facts, begun: Set[Stmt], access: Access) -> Iterator[Outside]:
    node = access.node
    if isinstance(node, View) or not _is_reached(facts, begun, access):
        return
    for axis, (index, extent) in enumerate(zip(node.indices, node.buffer.shape, strict=True)):
        size = facts.extents.size(extent)
        for value in _corners(facts, index) if size is not None and index.dtype.lanes == 1 else ():
            assert size is not None
            if is_nonnegative(value - size) or is_nonnegative(-1 - value):
                least = {dim: dim.low for dim in (*dims_of(value), *dims_of(size))}
                sizes = tuple(sorted((dim.name, low) for dim, low in least.items()))
                yield Outside(access, axis, evaluate(value, least), evaluate(size, least), sizes)
                return


def _begun(facts: Facts) -> Set[Stmt]:
    """The statements of the function's body that each call comes to and goes through, unless an access ends it."""
    return frozenset(takewhile(_is_passed, facts.func.body.stmts))


def _is_passed(stmt: Stmt) -> bool:
    return not any(isinstance(each, _ENDS) for each in statements(stmt))


def _is_reached(facts: Facts, begun: Set[Stmt], access: Access) -> bool:
    """Whether each call comes to an access, or is ended by another one before."""
    if not access.around.is_certain or not all(_runs(facts, loop) for loop in access.around.loops):
        return False
    return (access.around.loops[0] if access.around.loops else access.stmt) in begun


def _runs(facts: Facts, loop: For) -> bool:
    bounds = _bounds(facts, loop)
    return bounds is not None and loop.kind is not ForKind.THREAD and is_positive(loop.distance(*bounds))


def _bounds(facts: Facts, loop: For) -> tuple[Size, Size] | None:
    """Where a loop starts and stops, known on entry and computed without wrapping around; else None."""
    start, stop = facts.space.size(loop.start), facts.space.size(loop.stop)
    are_known = not (varies(start) or varies(stop)) and facts.space.is_exact(start) and facts.space.is_exact(stop)
    return (start, stop) if are_known else None


def _corners(facts: Facts, index: Expr) -> Iterator[Size]:
    """The least and the greatest value of an index that counters of loops move, each by itself; else nothing."""
    value = facts.space.size(index)
    parts = linear(value)
    if parts is None or not facts.space.is_exact(value):
        return
    low = high = parts.constant
    for atom, factor in parts.terms.items():
        loop = atom.owner if isinstance(atom, Unknown) and atom.counts else None
        if not isinstance(loop, For) or not _runs(facts, loop):
            return
        bounds = _bounds(facts, loop)
        assert bounds is not None
        last = (loop.distance(*bounds) - 1) // abs(loop.step)
        if is_nonnegative(factor):
            high = high + factor * last
        elif is_nonnegative(-factor):
            low = low + factor * last
        else:
            return
    yield from (high, low)
