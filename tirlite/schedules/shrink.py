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
from tirlite.schedules.step import ScheduleStep, does_not_fit
from tirlite.sizes import Size, is_at_most, maximum, minimum
from tirlite.sizes.poly import Atom
from tirlite.sizes.unknown import ends_of, is_nonnegative, linear, multiple, terms_in, unknowns_in

# At most this many pairs of a store and a load are compared for one allocation and one loop.
_MOST_PAIRS = 256
# No search for a full overwrite in deeper nests, since it would be repeated at each level.
_MOST_LOOPS = 64


def sunk(allocations: Iterable[Allocation], facts: Facts) -> PrimFunc:
    """The function with each temporary allocated at the begin of the innermost body that contains all its uses.

    It does not move into a loop that may read a value in a later iteration than the one that wrote it, nor into a
    parallel loop unless iterations use elements of their own, so that each needs only a small part. A buffer whose size
    is read from memory stays, since that may change in between.
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
    """The innermost body to which an allocation may move."""
    home = allocation.home
    common = common_regions(allocation.touches, home)
    if not common:
        return home
    writes = [touch for touch in allocation.touches if touch.kind is AccessKind.WRITE]
    reads = [touch for touch in allocation.touches if touch.kind is not AccessKind.WRITE]
    overwritten: Region | None = None  # see `_overwritten`
    for region in common:
        is_loop = isinstance(region.composite, For | While)
        if is_loop and not _is_private(region, writes, reads, facts):
            overwritten = overwritten or _overwritten(allocation, facts)
            if not is_within(overwritten, region):
                break
        home = region
    return home


def _overwritten(allocation: Allocation, facts: Facts) -> Region:
    """The innermost body in which the whole buffer is written before it is read; its home if there is none."""
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
    """Whether the indices of all accesses move with the loop along a common axis."""
    counter = facts.space.counter(loop)
    axes: set[int] | None = None
    for touch in touches:
        assert isinstance(touch.node, Load | Store)
        moving = {axis for axis, i in enumerate(facts.addresses.of(touch.node).indices) if counter in terms_in(i)}
        axes = moving if axes is None else axes & moving
    return bool(axes)


class _Moves:
    """The allocations to move, by destination."""

    def __init__(self) -> None:
        self.moved: set[Buffer] = set()
        self.inside: dict[tuple[Stmt, bool], list[Buffer]] = {}  # by composite, and whether in its else branch
        self.statements: dict[Buffer, Allocate] = {}
        self.opened: list[Stmt] = []  # the original of each composite being rewritten

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
        # The rewriter has already met the allocation, which precedes its uses.
        new = [self.statements[buffer] for buffer in self.inside.get(place, ())]
        return SeqStmt((*new, body), span=body.span) if new else body


@record
class Shrink(ScheduleStep):
    """Moves temporaries into the innermost body with all their uses, and shrinks them to the elements used there.

    Applies to all temporaries if none is named. A single element becomes a scalar, or a `let` if it is stored once.
    Most useful after `join`, which brings a temporary's stores and loads together. Never changes results. Refused if
    nothing shrinks.
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
    """The function with the one-element temporaries among these as scalars, which need no memory.

    If one store precedes all loads in its block, the value becomes a `let`; otherwise the buffer moves from `global` to
    `local` scope, whose small constant buffers are held in registers.
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
    """For each statement directly in a body that is no region of its own, all statements of that body."""
    marked: list[AttrStmt | For] = [*statements_of(func.body, AttrStmt)]
    marked += (loop for loop in statements_of(func.body, For) if loop.kind is ForKind.THREAD)
    return {stmt: inside for each in marked if (inside := {*statements(each.body)}) for stmt in each.body.stmts}


def _is_let(allocation: Allocation, apart: dict[Stmt, set[Stmt]]) -> bool:
    """Whether there is one store, and every load follows it within its block."""
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


# A symbolic extent is not replaced by one that is smaller by at most this constant.
_LITTLE = 64
# A constant extent this large comes from the range of an index type, and does not replace a symbolic extent.
MUCH = 1 << 15


def compacted(allocations: Iterable[Allocation], facts: Facts) -> Accesses:
    """New shapes for these temporaries: the elements that one execution of the body around the allocation uses.

    Along an axis, indices are shifted so that the least is 0, if all depend alike on the loops around the body. An axis
    keeps its extent unless the new one is proved to be smaller, and not just by a constant if symbolic: buffers of
    equal shape share storage better.
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
    # Not `prove_lt`, which fails if both are equal for small values of a dim.
    return is_at_most(new, old) and not is_at_most(old, new + _LITTLE)


def _compact(allocation: Allocation, spans: list[Span | None], facts: Facts, accesses: Accesses) -> None:
    """Adds the new shape of an allocation, and its shifted indices, to `accesses`."""
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
    """An extent that can be declared: not below 0, and at least 1 if constant."""
    if isinstance(extent, int):
        return max(extent, 1)
    return extent if is_nonnegative(extent) else maximum(extent, 0)


def _moved(node: Load | Store, axis: int, span: Span, facts: Facts) -> Reindex | None:
    """A function from the index of an access along an axis to that index minus the span's start."""
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
    """The indices used along an axis: `extent` of them from `start`, which is fixed while the body runs."""

    start: Size
    extent: Size


def touched_part(allocation: Allocation, addresses: Addresses) -> tuple[Span | None, ...]:
    """For each axis, the span used by one execution of the allocation's body; None if no bounds are known.

    Accesses that a condition skips count as well. An extent may be 0 or negative if a loop never runs.
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
    """The part of an index that is fixed while the body runs, and the bounds of the rest."""
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
    """Whether an atom keeps its value during one execution of a body with the loops `inner`."""
    return all(each.steady and each.owner not in inner for each in unknowns_in(atom + 0))


def _loops_inside(allocation: Allocation) -> set[object]:
    """The loops between the body of an allocation and its uses."""
    regions = {touch.region for touch in allocation.touches}
    return {each.composite for region in regions for each in regions_between(region, allocation.home)}


# Maps an index, already rewritten, to its replacement.
Reindex: TypeAlias = Callable[[Expr], Expr]


class Accesses:
    """Buffers that get a new shape, and how the indices of their accesses change."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}
        self.indices: dict[Load | Store, Mapping[int, Reindex]] = {}
        self.pending: list[Load | Store] = []  # the original of each access being rewritten

    def reshape(self, old: Buffer, new: Buffer, indices: Mapping[Load | Store, Mapping[int, Reindex]]) -> None:
        """Replaces the buffer `old` by `new`; `indices` maps accesses and axes to their new indices."""
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
