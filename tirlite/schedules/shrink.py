"""Shrink moves temporaries to where they are used, and cuts them down to what is used there, if only a scalar."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from tirlite.analysis.access import AccessKind, Allocation, Region, Touch
from tirlite.analysis.addresses import Addresses
from tirlite.analysis.allocations import temporaries
from tirlite.analysis.coverage.webs import webs_of
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import may_carry
from tirlite.analysis.regions import common_regions, is_within, regions_between
from tirlite.ir import Broadcast, Expr, Ramp, Sub
from tirlite.ir.expr import Buffer, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.shapes import has_one_element, is_sized_by_load
from tirlite.ir.stmt import Allocate, AttrStmt, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import statements, statements_of
from tirlite.record import record, replace
from tirlite.rewrite.affine_exprs import index_expr
from tirlite.rewrite.pipeline import Rewritten
from tirlite.schedules.handle import BufferName, buffer_named
from tirlite.schedules.order import demand_temporaries
from tirlite.schedules.step import Step, does_not_fit
from tirlite.sizes import Size, is_at_most, maximum, minimum
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import ends_of, is_nonnegative, linear, multiple, terms_in, unknowns_in

# Pairs of a store and a load that are compared for one allocation and one loop.
_MOST_PAIRS = 256
# In deeper nests no store is looked for that overwrites a whole buffer: that is tried anew at each level.
_MOST_LOOPS = 64


def sunk(allocations: Iterable[Allocation], facts: Facts) -> PrimFunc:
    """The function with each of these temporaries at the begin of the innermost body that holds all of its uses.

    Not into a loop where a value may be read in a later iteration than it was written; into a parallel loop only where
    each iteration has elements of its own, which leaves little of the buffer to each. A buffer whose size is read from
    memory, which may change on the way, stays.
    """
    moves = _Moves()
    for allocation in allocations:
        if is_sized_by_load(allocation.buffer):
            continue
        home = _sunk_home(allocation, facts)
        if home is not allocation.home:
            moves.add(allocation.buffer, home)
    return moves.apply(facts.func)


def _sunk_home(allocation: Allocation, facts: Facts) -> Region:
    home = allocation.home
    common = common_regions(allocation.touches, home)
    if not common:
        return home
    writes = [touch for touch in allocation.touches if touch.kind is AccessKind.WRITE]
    reads = [touch for touch in allocation.touches if touch.kind is not AccessKind.WRITE]
    overwritten: Region | None = None  # the innermost body in which the whole buffer is written before it is read
    for region in common:
        is_loop = isinstance(region.composite, For | While)
        if is_loop and not _is_private(region, writes, reads, facts):
            overwritten = overwritten or _overwritten(allocation, facts)
            if not is_within(overwritten, region):
                break
        home = region
    return home


def _overwritten(allocation: Allocation, facts: Facts) -> Region:
    """The innermost body in which the whole buffer is written before it is read; its home where there is none."""
    if max(touch.region.depth for touch in allocation.touches) > _MOST_LOOPS:
        return allocation.home
    webs = webs_of(allocation, facts, {})
    return webs[0].home if len(webs) == 1 else allocation.home


def _is_private(loop: Region, writes: Sequence[Touch], reads: Sequence[Touch], facts: Facts) -> bool:
    """Whether no iteration of a loop reads what another one has written."""
    composite = loop.composite
    if len(writes) * len(reads) > _MOST_PAIRS:
        return False
    if isinstance(composite, For) and composite.kind is ForKind.PARALLEL and not _divides(composite, writes, facts):
        return False
    return not any(may_carry(facts.addresses, write, read, loop) for write in writes for read in reads)


def _divides(loop: For, touches: Iterable[Touch], facts: Facts) -> bool:
    """Whether along some axis each index moves with the loop."""
    counter = facts.space.counter(loop)
    axes: set[int] | None = None
    for touch in touches:
        assert isinstance(touch.node, Load | Store)
        moving = {axis for axis, i in enumerate(facts.addresses.of(touch.node).indices) if counter in terms_in(i)}
        axes = moving if axes is None else axes & moving
    return bool(axes)


class _Moves:
    """The allocations to be moved, by where they go."""

    def __init__(self) -> None:
        self.moved: set[Buffer] = set()
        self.inside: dict[tuple[Stmt, bool], list[Buffer]] = {}  # by composite, and whether it is its else branch
        self.statements: dict[Buffer, Allocate] = {}
        self.opened: list[Stmt] = []  # for each composite on the way down, what it was

    def add(self, buffer: Buffer, home: Region) -> None:
        assert home.composite is not None
        self.moved.add(buffer)
        self.inside.setdefault((home.composite, home.then is not None), []).append(buffer)

    def apply(self, func: PrimFunc) -> PrimFunc:
        if not self.moved:
            return func
        rules: dict[type[Node], Rule] = {
            Allocate: self.allocate,
            For: self.loop,
            While: self.loop,
            IfThenElse: self.branches,
        }
        enter = dict.fromkeys((For, While, IfThenElse), self.opened.append)
        return rewrite(func, rules, enter=enter)

    def allocate(self, node: Allocate) -> Stmt | tuple[Stmt, ...]:
        if node.buffer not in self.moved:
            return node
        self.statements[node.buffer] = node
        return ()

    def loop(self, node: For | While) -> Stmt:
        original = self.opened.pop()
        body = self.filled((original, False), node.body)
        return node if body is node.body else node.replaced(body=body)

    def branches(self, node: IfThenElse) -> Stmt:
        original = self.opened.pop()
        then_body = self.filled((original, False), node.then_body)
        else_body = self.filled((original, True), node.else_body)
        if then_body is node.then_body and else_body is node.else_body:
            return node
        return node.replaced(then_body=then_body, else_body=else_body)

    def filled(self, place: tuple[Stmt, bool], body: SeqStmt) -> SeqStmt:
        # An allocation stands before its uses, so its statement was met on the way.
        new = [self.statements[buffer] for buffer in self.inside.get(place, ())]
        return SeqStmt((*new, body), span=body.span) if new else body


@record
class Shrink(Step):
    """Temporaries in the innermost body that holds all of their uses, with as many elements as are touched there.

    All of them, where none is named. One element becomes a scalar: a `let` where it is stored once. After `join`, which
    brings together what fills a temporary and what reads it, little is left of it. It never changes results. Refused
    where nothing becomes less.
    """

    buffers: tuple[BufferName, ...] = ()

    def on(self, facts: Facts) -> Rewritten:
        self.demand_taken()
        named = [buffer_named(facts.func, each) for each in self.buffers]
        moved = Rewritten(sunk(self._chosen(facts, named), facts)).facts_after(facts)
        accesses = compacted(self._chosen(moved, named), moved)
        less = Rewritten(accesses.apply(moved.func)).facts_after(moved)
        made = contracted(self._chosen(less, [accesses.buffers.get(each, each) for each in named]), less)
        if made is facts.func:
            told = ", ".join(f"`{each.name}`" for each in named) or "each temporary"
            raise does_not_fit(self, f"all of {told} is touched in the body that it is allocated in")
        return Rewritten(made, facts=less if made is less.func else None)

    def _chosen(self, facts: Facts, named: Collection[Buffer]) -> list[Allocation]:
        """The allocations of these buffers, or of all temporaries. Raises KernelError for one that is no temporary."""
        return demand_temporaries(self, facts, named) if named else temporaries(facts)


def contracted(allocations: Iterable[Allocation], facts: Facts) -> PrimFunc:
    """The function with those of these temporaries that have one element as scalars, which take no memory.

    Where one store comes before all loads in its block, the value becomes a `let`; any other moves from `global` to
    `local` memory, whose small constant buffers are kept in registers.
    """
    single = [each for each in allocations if has_one_element(each.buffer)]
    apart = _apart(facts.func) if single else {}
    made: dict[Buffer, Var | Buffer] = {}
    for each in single:
        if _is_let(each, apart):
            made[each.buffer] = Var(each.buffer.name, each.buffer.dtype)
        elif each.buffer.scope == "global":
            made[each.buffer] = replace(each.buffer, scope="local")

    def access(node: Load | Store) -> Node:
        new = made.get(node.buffer)
        if isinstance(new, Var):
            return Let(new, node.value) if isinstance(node, Store) else new
        return node if new is None else node.replaced(buffer=new)

    def allocate(node: Allocate) -> Stmt | tuple[Stmt, ...]:
        new = made.get(node.buffer)
        return () if isinstance(new, Var) else node if new is None else node.replaced(buffer=new)

    return rewrite(facts.func, {Allocate: allocate, Store: access, Load: access}) if made else facts.func


def _apart(func: PrimFunc) -> dict[Stmt, set[Stmt]]:
    """For statements of bodies that end where no region does, which statements stand in these."""
    marked: list[AttrStmt | For] = [*statements_of(func.body, AttrStmt)]
    marked += (loop for loop in statements_of(func.body, For) if loop.kind is ForKind.THREAD)
    return {stmt: inside for each in marked if (inside := {*statements(each.body)}) for stmt in each.body.stmts}


def _is_let(allocation: Allocation, apart: dict[Stmt, set[Stmt]]) -> bool:
    """Whether there is one store, and each load comes after it in the block that it stands in."""
    stores = [touch for touch in allocation.touches if touch.kind is AccessKind.WRITE]
    if len(stores) != 1 or allocation.buffer.dtype.lanes != 1:
        return False
    (store,) = stores
    assert isinstance(store.node, Store)
    block = apart.get(store.stmt)
    return store.node.value.dtype == allocation.buffer.dtype and all(
        each.position > store.position and is_within(each.region, store.region) and (not block or each.stmt in block)
        for each in allocation.touches
        if each is not store
    )


# This many elements less gain nothing for a symbolic extent.
_LITTLE = 64
# A constant from this on is not a tile in place of what is symbolic: it stems from the type of an index.
MUCH = 1 << 15


def compacted(allocations: Iterable[Allocation], facts: Facts) -> Accesses:
    """What becomes of these temporaries: as many elements as one execution of the body around the allocation touches.

    Along an axis, the least index becomes 0, if all indices move alike with the loops around the body. An axis is left
    as it is where the new extent is not proved to be less, or a symbolic one is less by a constant alone: buffers of
    one shape share storage better.
    """
    accesses = Accesses()
    for allocation in allocations:
        spans = _worthwhile(allocation, facts)
        if any(spans):
            _compact(allocation, spans, facts, accesses)
    return accesses


def _worthwhile(allocation: Allocation, facts: Facts) -> list[Span | None]:
    spans: list[Span | None] = []
    for span, extent in zip(touched_part(allocation, facts.addresses), allocation.buffer.shape, strict=True):
        size = facts.space.extents.size(extent)
        is_less = span is not None and _is_less(span.extent, size)
        spans.append(span if is_less else None)
    return spans


def _is_less(new: Size, old: Size | None) -> bool:
    if isinstance(old, int):
        return is_at_most(new + 1, old)
    if isinstance(new, int) or old is None:
        return isinstance(new, int) and new < MUCH
    # Not `prove_lt`: where a dim is small, both may be equal.
    return is_at_most(new, old) and not is_at_most(old, new + _LITTLE)


def _compact(allocation: Allocation, spans: list[Span | None], facts: Facts, accesses: Accesses) -> None:
    old = allocation.buffer
    shape = tuple(
        extent if span is None else facts.space.extents.expr(_counted(span.extent))
        for span, extent in zip(spans, old.shape, strict=True)
    )
    changed: dict[Load | Store, dict[int, Reindex]] = {}
    for touch in allocation.touches:
        node = touch.node
        assert isinstance(node, Load | Store)
        for axis, span in enumerate(spans):
            if span is not None:
                index = _moved(node, axis, span, facts)
                if index is None:
                    return
                changed.setdefault(node, {})[axis] = index
    accesses.reshape(old, replace(old, shape=shape), changed)


def _counted(extent: Size) -> Size:
    """An extent as one may declare it: not below 0, and where nothing is touched for sure, one element."""
    if isinstance(extent, int):
        return max(extent, 1)
    return extent if is_nonnegative(extent) else maximum(extent, 0)


def _moved(node: Load | Store, axis: int, span: Span, facts: Facts) -> Reindex | None:
    """What makes of the index of an access along an axis that index less the start."""
    if span.start == 0:
        return lambda index: index
    if node.indices[axis].dtype.lanes == 1:
        moved = index_expr(facts.addresses.of(node).indices[axis] - span.start, facts.space)
        if moved is not None:
            return lambda index: moved
    start = index_expr(span.start, facts.space)
    return None if start is None else lambda index: _less(index, start)


def _less(index: Expr, start: Expr) -> Expr:
    if isinstance(index, Ramp) and index.dtype.scalar == start.dtype:
        return Ramp(Sub(index.base, start), index.stride, index.lanes)
    lanes = index.dtype.lanes
    return Sub(index.astype(start.dtype.with_lanes(lanes)), start if lanes == 1 else Broadcast(start, lanes))


@record
class Span:
    """All indices along one axis: from `start`, which stands still while the body runs, this many."""

    start: Size
    extent: Size


def touched_part(allocation: Allocation, addresses: Addresses) -> tuple[Span | None, ...]:
    """For each axis what is touched while the body of the allocation runs once; None where no bounds are known.

    What conditions around an access leave out counts as touched. An extent may be 0 or less where a loop never runs.
    """
    inner = _loops_inside(allocation)
    return tuple(_span(axis, allocation.touches, inner, addresses) for axis in range(len(allocation.buffer.shape)))


def _span(axis: int, touches: Sequence[Touch], inner: set[object], addresses: Addresses) -> Span | None:
    fixed: Size | None = None
    low: Size | None = None
    high: Size | None = None
    for index in _indices(axis, touches, addresses):
        parts = _parted(index, inner)
        if parts is None or (fixed is not None and parts[0] != fixed):
            return None
        fixed, least, most = parts
        low = least if low is None else minimum(low, least)
        high = most if high is None else maximum(high, most)
    if fixed is None or low is None or high is None:
        return None
    return Span(fixed + low, high - low + 1)


def _indices(axis: int, touches: Sequence[Touch], addresses: Addresses) -> Iterator[Size]:
    for touch in touches:
        assert isinstance(touch.node, Load | Store)
        yield addresses.of(touch.node).indices[axis]


def _parted(index: Size, inner: set[object]) -> tuple[Size, Size, Size] | None:
    """The part of an index that stands still while the body runs, and the ends of the rest."""
    parts = linear(index)
    if parts is None:
        return None
    fixed: Size = 0
    low = high = parts.constant
    for atom, coefficient in parts.terms.items():
        if is_fixed(atom, inner):
            fixed = fixed + coefficient * atom
            continue
        least, most = multiple(ends_of(atom), coefficient)
        if least is None or most is None:
            return None
        low, high = low + least, high + most
    return fixed, low, high


def is_fixed(atom: Atom, inner: set[object]) -> bool:
    """Whether an atom keeps its value in one execution of a body, of whose loops `inner` are all."""
    return all(each.steady and each.owner not in inner for each in unknowns_in(atom + 0))


def _loops_inside(allocation: Allocation) -> set[object]:
    """The loops around a touch inside the body of the allocation."""
    regions = {touch.region for touch in allocation.touches}
    return {each.composite for region in regions for each in regions_between(region, allocation.home)}


# From an index, rewritten already, to the one that takes its place.
Reindex: TypeAlias = Callable[[Expr], Expr]


class Accesses:
    """Buffers that get another shape, and the indices that change with it."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}
        self.indices: dict[Load | Store, Mapping[int, Reindex]] = {}
        self.pending: list[Load | Store] = []  # for each Load and Store on the way down, what it was

    def reshape(self, old: Buffer, new: Buffer, indices: Mapping[Load | Store, Mapping[int, Reindex]]) -> None:
        """Put `new` in the place of `old`, with other indices, by access and axis."""
        self.buffers[old] = new
        self.indices |= indices

    def apply(self, func: PrimFunc) -> PrimFunc:
        if not self.buffers:
            return func
        note = self.pending.append
        rules: dict[type[Node], Rule] = {Allocate: self.allocate, Load: self.access, Store: self.access}
        return rewrite(func, rules, enter={Load: note, Store: note})

    def allocate(self, node: Allocate) -> Stmt:
        new = self.buffers.get(node.buffer)
        return node if new is None else node.replaced(buffer=new)

    def access(self, node: Load | Store) -> Node:
        original = self.pending.pop()
        new = self.buffers.get(node.buffer)
        if new is None:
            return node
        changed = self.indices.get(original, {})
        indices = tuple(changed[axis](index) if axis in changed else index for axis, index in enumerate(node.indices))
        return node.replaced(buffer=new, indices=indices)
