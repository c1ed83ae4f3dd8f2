"""Vectorizes reductions: loops over vectors of partial results, which are combined at the end."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.analysis.loops.patterns import follows_whole, has_much_to_do, sums_differences
from tirlite.analysis.loops.reductions import AnyUpdate, PairUpdate, Update, pair_updates
from tirlite.analysis.loops.regrouping import updates_in
from tirlite.analysis.regions import regions_around
from tirlite.ir.checked import has_check, unmasked
from tirlite.ir.dtype import i64
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LT,
    Add,
    Buffer,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Min,
    Mul,
    Ramp,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import defined_in, loads_in, mentions, statements, statements_of, walk
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.flat_views import declared, flat_sums
from tirlite.rewrite.vectors.lane_partials import LanePartials, Rest, Updates, differences_of, factors_of, lane_partials
from tirlite.rewrite.vectors.lanes import NotVector, first_lanes, held, is_same_element, last_whole

if TYPE_CHECKING:
    from tirlite.analysis.access import Touch
    from tirlite.rewrite.vectors.first_place import Search
    from tirlite.target import Processor

# The partial results of one sum fill four vectors of 512 bits, or more narrower ones, on every machine: so grouping,
# and with it the last bit of a sum, is the same wherever the kernel runs.
_PARTIAL_BYTES = 256
_MOST_LANES = 64
# The remainder uses vectors of a quarter of that.
_PER_VECTOR = 4
_WORD = 4
# Up to so many iterations take a vector of their own: halving a wide one would take most of the time.
_SHORT = (4, 8)

_TAKEN = (Store, Let, IfThenElse, SeqStmt)


def vector_lanes(element: int) -> int:
    """The lanes for elements of this many bytes."""
    return min(_MOST_LANES, _PARTIAL_BYTES // element)


def splitting(facts: Facts, processor: Processor) -> Callable[[For], Stmt | tuple[Stmt, ...]]:
    """The rule that turns reductions into serial loops, over vectors if they have a vector form.

    A nest of reductions into fixed elements keeps its partial results in vectors throughout. A remainder of integers is
    scalar if `processor` has no masks for elements of their width.
    """
    nests, rests = _nests(facts), _inside_rests(facts.func.body)
    begun: dict[Var, _Loops] = {}

    def rule(loop: For) -> Stmt | tuple[Stmt, ...]:
        """What replaces a reduction."""
        if loop.kind is not ForKind.REDUCE and not (loop.kind is ForKind.SERIAL and sums_differences(loop)):
            return loop
        if loop.var in begun:
            return (*begun[loop.var].around(loop.replaced(kind=ForKind.SERIAL)),)
        try:
            if loop in nests:
                vectors = _Loops(loop, *nests[loop][1:], has_rest=_has_masks(loop, processor))
                inside = (*vectors.inside(),)
                begun[nests[loop][0].var] = vectors
                return inside
            return _split(loop, facts, processor)
        except NotVector:
            if loop.step == 1 and sums_differences(loop):
                return _whole_first(loop, processor)
            if not (pairs := [*pair_updates(loop)]):
                from tirlite.rewrite.vectors.chains import in_chains

                # Behind groups of rows, few are left, which take little time.
                alone = EQ(rests[loop.var], const(0, i64)) if loop.var in rests else None
                return in_chains(loop, processor.vector_bytes, alone) or loop.replaced(kind=ForKind.SERIAL)
            from tirlite.rewrite.vectors.first_place import in_order

            return in_order(loop, pairs, facts)

    return rule


def _inside_rests(body: SeqStmt) -> dict[Var, Expr]:
    """The inner loops of those over rows that are left of groups of rows, each with the first of these rows."""
    rows = (loop for loop in statements_of(body, For) if loop.step <= _PER_VECTOR and follows_whole(loop))
    return {each.var: row.start for row in rows for each in statements_of(row.body, For)}


def _split(loop: For, facts: Facts, processor: Processor) -> Stmt | tuple[Stmt, ...]:
    """A reduction as loops over vectors and a remainder. Raises NotVector."""
    updates = _updates(loop, facts, checked=True)
    if _is_left(loop, updates, processor):
        raise NotVector
    inside = facts.bounds.is_inside
    if len(updates) == 1 and isinstance(updates[0], PairUpdate):
        from tirlite.rewrite.vectors.first_place import search_in

        if (search := search_in(loop, updates[0])) is not None:
            return (*_searched(search, inside),)
    has_rest = _has_masks(loop, processor) and not _follows_stores(loop, facts)
    if has_rest and processor.masks_gathers:
        from tirlite.rewrite.vectors.gathered import gathered, gathers

        if gathers(loop, updates):
            return (*gathered(loop, updates, inside, facts.params),)
    if has_check(loop):
        raise NotVector
    # What runs once takes no time to speak of, and elementary functions take most of it.
    shortens = _is_repeated(loop, facts) and not has_much_to_do(loop)
    flat = flat_sums(loop, facts.params)
    loops = _Loops(loop, updates, inside, has_rest=has_rest, shortens=shortens, dots=processor.dots, flat=flat)
    return (*declared(flat, loops.statements()),)


def _whole_first(loop: For, processor: Processor) -> tuple[For, For]:
    """A loop over whole vectors, which LLVM vectorizes, and one over the remainder."""
    lanes = const(processor.vector_bytes, i64)
    end = folded(Add(loop.start, Mul(FloorDiv(loop.count, lanes), lanes)))
    plain = loop.replaced(kind=ForKind.SERIAL)
    return plain.replaced(stop=end), plain.replaced(start=end)


def _has_masks(loop: For, processor: Processor) -> bool:
    """Whether lanes of a loop may be masked: for floats always, so that sums are grouped the same on every machine."""
    inside = [*statements(loop.body)]
    if any(stmt.buffer.dtype.is_float for stmt in inside if isinstance(stmt, Store)):
        return True
    loads = (node for node in loads_in(*inside) if mentions(node, loop.var))
    return processor.has_masks(min((load.buffer.dtype.bytes for load in loads), default=processor.vector_bytes))


def _is_left(loop: For, updates: tuple[AnyUpdate, ...], processor: Processor) -> bool:
    """Whether a reduction is left to LLVM: it combines integers of other widths, and LLVM picks the narrowest type.

    LLVM does no better for values that are only widened, for dot products and for quotients.
    """
    if not loop.body.kinds <= {Store, Let} or has_much_to_do(loop):
        return False
    nodes = [*walk(loop.body)]
    if any(isinstance(node, FloorDiv | FloorMod | TruncDiv | TruncMod) for node in nodes):
        return False
    own = {store.buffer for update in updates for store in update.stores}
    sizes = {node.buffer.dtype.bytes for node in nodes if isinstance(node, Load) and node.buffer not in own}
    are_integers = all(_combines_integers(update, processor.dots) for update in updates)
    return sizes - {_WORD} != set() and are_integers


def _combines_integers(update: AnyUpdate, dots: Container[str]) -> bool:
    if not isinstance(update, Update) or not update.store.buffer.dtype.is_integer or factors_of(update) is not None:
        return False
    if differences_of(update, dots) is not None:
        return False
    value = update.operand.value if isinstance(update.operand, Cast) else None
    return not isinstance(value, Load | Var) or value.dtype.is_bool


def _follows_stores(loop: For, facts: Facts) -> bool:
    """Whether a loop reads up to the element that the outer loop has just stored.

    A vector load that includes it would wait until the store has left the store buffer.
    """
    for allocation, touches in facts.touches_in.get(loop, {}).items():
        around = _loops_around(touches[0])
        outer = next(iter(around[around.index(loop) + 1 :]), None)
        grows = isinstance(outer, For) and mentions(loop.stop, outer.var) and not mentions(loop.start, outer.var)
        if outer is not None and grows and not any(map(writes, touches)):
            stores = (touch for touch in facts.touches_in[outer][allocation] if writes(touch))
            if any(_loops_around(store)[0] is outer for store in stores):
                return True
    return False


def _is_repeated(loop: For, facts: Facts) -> bool:
    """Whether a loop runs inside of another one, other than over a block of its iterations (see `blocks.py`)."""
    is_block = isinstance(loop.start, Var) and isinstance(loop.stop, Add) and isinstance(loop.stop.b, Min)
    return not is_block and any(
        len(_loops_around(touches[0])) > 1 for touches in facts.touches_in.get(loop, {}).values()
    )


def _loops_around(touch: Touch) -> list[For | While]:
    """The loops around an access, from the innermost on."""
    regions = regions_around(touch.region)
    return [each.composite for each in regions if isinstance(each.composite, For | While)]


def _updates(loop: For, facts: Facts, *, checked: bool = False) -> tuple[AnyUpdate, ...]:
    """The updates of a reduction, whose elements stay the same throughout. Raises NotVector if it has no lanes.

    With `checked`, indices may have checks.
    """
    stmts = [*statements(loop.body)]
    if loop.step != 1 or (has_check(loop) and not checked) or not all(isinstance(each, _TAKEN) for each in stmts):
        raise NotVector
    if any(isinstance(each, Store) and each.value.dtype.lanes > 1 for each in stmts):  # a quick test before proofs
        raise NotVector
    updates = updates_in(loop, facts)
    if not isinstance(updates, tuple) or not updates or any(_moves(update, [loop], stmts) for update in updates):
        raise NotVector
    top = {*loop.body.stmts}
    if any(store not in top and not _is_certain(store, loop, facts) for update in updates for store in update.stores):
        raise NotVector
    return updates


_Inside: TypeAlias = Callable[[Load], bool]


def _nests(facts: Facts) -> dict[For, tuple[For, tuple[AnyUpdate, ...], _Inside]]:
    """The innermost loops of nests of reductions, each with the outermost; the elements exist around the nest."""
    found: dict[For, tuple[For, tuple[AnyUpdate, ...], _Inside]] = {}
    done: set[For] = set()
    for loop in statements_of(facts.func.body, For):
        loops = [] if loop in done else _nest(loop)
        done.update(loops)
        if len(loops) < 2 or is_short(loops[-1]):
            continue
        stmts = [*statements(loop.body)]
        try:
            updates = _updates(loops[-1], facts)
        except NotVector:
            continue
        is_one = all(isinstance(update, Update) and not _moves(update, loops, stmts) for update in updates)
        if is_one and all(_is_certain(update.store, loop, facts) for update in updates):
            found[loops[-1]] = (loop, updates, facts.bounds.is_inside)
    return found


def _nest(loop: For) -> list[For]:
    """A nest of reductions in which only Lets stand beside a loop."""
    found: list[For] = []
    stmt: Stmt = loop
    while isinstance(stmt, For) and stmt.kind is ForKind.REDUCE and not has_check(stmt):
        found.append(stmt)
        *lets, stmt = stmt.body.stmts or (stmt.body,)
        if not all(isinstance(each, Let) for each in lets):
            break
    return found


def _searched(search: Search, inside: Callable[[Load], bool]) -> Iterator[Stmt]:
    """Finds the value first, and then its place. Raises NotVector."""
    loop, ends = search.loop, dict[str, Expr]()
    for name, end in (("start", search.loop.start), ("stop", search.loop.stop)):
        ends[name] = yield from held(end, name, loop)
    best = Buffer("best", search.value.dtype, (), "local")
    yield Allocate(best, span=loop.span)
    yield Store(best, (), search.update.neutral[0])
    values, update = search.best(best[()])
    yield from _Loops(values, (update,), inside).statements()
    found = SeqStmt((*search.found(best[()], ends["start"], ends["stop"]),))
    yield IfThenElse(LT(ends["start"], ends["stop"]), found, span=loop.span)


def _is_certain(store: Store, loop: For, facts: Facts) -> bool:
    """Whether a statement beside a loop accesses the element that the loop updates conditionally.

    Otherwise the element may not exist, or may belong to another worker.
    """
    for allocation, touches in facts.touches_in[loop].items():
        for mine in touches:
            if mine.node is store:
                region = mine.region
                while region.parent is not None and region.composite is not loop:
                    region = region.parent
                beside = (touch for touch in allocation.touches if touch.region is region.parent)
                return any(is_same_element(store, touch) for touch in beside)
    return False


def _moves(update: AnyUpdate, loops: Sequence[For], stmts: Sequence[Stmt]) -> bool:
    """Whether iterations update different elements, or a volatile one."""
    inside = defined_in(loops[0])
    written = {stmt.buffer for stmt in stmts if isinstance(stmt, Store)}
    for store in update.stores:
        nodes = [*walk(*store.indices)]
        changes = any(node in inside or (isinstance(node, Load) and node.buffer in written) for node in nodes)
        if store.value.dtype.lanes > 1 or changes or store.buffer.volatile:
            return True
    return False


def is_short(loop: For) -> bool:
    """Whether a reduction is known to have fewer iterations than half a vector has lanes: it stays scalar."""
    count, half = loop.count, vector_lanes(_width(loop)) // _PER_VECTOR // 2
    return loop.kind is ForKind.REDUCE and isinstance(count, IntImm) and count.value < half


def _width(loop: For) -> int:
    """The bytes of the widest element that a loop stores."""
    return max((stmt.buffer.dtype.bytes for stmt in statements_of(loop.body, Store)), default=1)


class _Loops:
    """Generates the loops that replace a reduction."""

    def __init__(
        self,
        loop: For,
        updates: tuple[AnyUpdate, ...],
        inside: Callable[[Load], bool],
        *,
        has_rest: bool = True,
        shortens: bool = False,
        dots: Container[str] = (),
        flat: Mapping[Buffer, Buffer] | None = None,
    ) -> None:
        self.loop = loop
        self.flat = flat
        self.has_rest = has_rest
        self.shortens = shortens
        self.is_inside = inside
        self.width = _width(loop)
        lanes = vector_lanes(self.width)
        self.few = lanes // _PER_VECTOR
        count = loop.count
        is_half = isinstance(count, IntImm) and count.value <= self.few // 2
        if is_half:
            self.few //= 2
        # Several results share the registers of one.
        results = sum(len(update.stores) for update in updates)
        self.gathers = False  # set by `rest`
        self.most = self.few if is_half else max(self.few, lanes >> (results - 1).bit_length())
        self.partials = {
            most: [lane_partials(update, most, dots) for update in updates] for most in (self.most, self.few)
        }

    def statements(self) -> Iterator[Stmt]:
        """The loops over vectors, and the remainder: a masked vector or a serial loop. Raises NotVector."""
        loop = self.loop
        if is_short(loop):
            yield loop.replaced(kind=ForKind.SERIAL)
            return
        count = yield from held(loop.count, "count", loop)
        whole = last_whole(loop, count, self.few)
        rest, serial = self.rest(count, whole), loop.replaced(kind=ForKind.SERIAL)
        after = serial.replaced(start=whole)
        if isinstance(count, IntImm):
            yield from self.vectors(count, rest or ())
            yield from (after,) if rest is None else ()
        elif rest is not None:
            yield self.beside_few(count, SeqStmt((*self.vectors(count, rest),)))
        elif self.gathers:
            many = SeqStmt((*self.vectors(count, (), self.most), after))
            yield IfThenElse(GE(count, const(self.most, i64)), many, SeqStmt((serial,)))
        else:
            yield IfThenElse(GE(count, const(self.few, i64)), SeqStmt((*self.vectors(count, ()),)))
            yield after

    def vectors(self, count: Expr, rest: tuple[Stmt, ...], least: int = 0) -> Iterator[Stmt]:
        """The loops over the widest and over narrow vectors, the rest, and the combination of all partial results.

        There are at least `least` iterations.
        """
        few = self.partials[self.few]
        for each in few:
            yield from each.start()
        middle = self.loop.start
        if self.most > self.few:
            middle = last_whole(self.loop, count, self.most)
            if (count.value if isinstance(count, IntImm) else least) >= self.most:
                yield from self.wide(middle)
            elif not isinstance(count, IntImm):
                yield IfThenElse(GE(count, const(self.most, i64)), SeqStmt((*self.wide(middle),)))
        yield self.over_vectors(self.few, middle, last_whole(self.loop, count, self.few))
        yield from rest
        for each in few:
            yield from each.halved(1)
            yield from each.ended(const(0, i64))

    def beside_few(self, count: Expr, wide: SeqStmt) -> Stmt:
        """The loops over wide vectors, and a narrow vector for a few iterations, if that is worth its code.

        The other lanes of a wide one would only take in neutral values, each half of it in turn.
        """
        buffers = [buffer for each in self.partials[self.few] for buffer in each.buffers]
        is_worth = self.shortens and all(buffer.dtype.is_float for buffer in buffers)
        least: Expr = GE(count, const(1, i64))
        found = SeqStmt()
        for lanes in (each for each in _SHORT if is_worth and each < self.few):
            # Masks of groups take longer than so few groups.
            is_serial = self.flat and lanes == _SHORT[0]
            loop = (self.loop.replaced(kind=ForKind.SERIAL),) if is_serial else self.narrow(count, lanes)
            found = SeqStmt((IfThenElse(least, SeqStmt((*loop,)), found, span=self.loop.span),))
            least = GT(count, const(lanes, i64))
        return IfThenElse(least, wide, found, span=self.loop.span)

    def narrow(self, count: Expr, lanes: int) -> Iterator[Stmt]:
        """The loop of up to `lanes` iterations, as one vector."""
        narrow = [LanePartials(each.update, lanes) for each in self.partials[self.few]]
        vectors = Rest(self.loop.var, self.loop.start, narrow, self.is_inside, lanes, self.flat)
        on = first_lanes(count, lanes, self.width)
        vectors.on = Var("left", on.dtype)
        for each in narrow:
            yield from each.start()
        yield Let(vectors.on, on, span=self.loop.span)
        yield from vectors.block(self.loop.body).stmts
        for each in narrow:
            yield from each.halved(1)
            yield from each.ended(const(0, i64))

    def wide(self, end: Expr) -> Iterator[Stmt]:
        """The loop over the widest vectors, whose partial results are folded into narrow ones."""
        wide = self.partials[self.most]
        for each in wide:
            yield from each.start()
        yield self.over_vectors(self.most, self.loop.start, end)
        for each, narrow in zip(wide, self.partials[self.few], strict=True):
            yield from each.halved(narrow.lanes)
            yield from narrow.set_to(each)

    def inside(self) -> Iterator[Stmt]:
        """The loop in a nest, around which `around` initializes and combines the partial results."""
        loop = self.loop
        count = yield from held(loop.count, "count", loop)
        if isinstance(count, IntImm) and count.value < self.most:
            self.most = self.few
        begin, whole = loop.start, last_whole(loop, count, self.few)
        if self.most > self.few:
            begin = last_whole(loop, count, self.most)
            yield self.over_vectors(self.most, loop.start, begin)
        yield self.over_vectors(self.few, begin, whole)
        rest = self.rest(count, whole)
        yield from (loop.replaced(kind=ForKind.SERIAL, start=whole),) if rest is None else rest

    def around(self, nest: For) -> Iterator[Stmt]:
        """The nest around the loop, with its partial results initialized before and combined after."""
        wide = self.partials[self.most] if self.most > self.few else []
        few = self.partials[self.few]
        for each in (*wide, *few):
            yield from each.start()
        yield nest
        for each, narrow in zip(wide, few, strict=False):
            yield from each.halved(narrow.lanes)
            place = Ramp.unit(0, narrow.lanes)
            yield from narrow.update.combined(each.at(place), narrow.at(place))
        for each in few:
            yield from each.halved(1)
            yield from each.ended(const(0, i64))

    def over_vectors(self, lanes: int, begin: Expr, end: Expr) -> Stmt:
        """The loop from `begin` to `end` by vectors of this many lanes."""
        at = Var(self.loop.var.name)
        return For(at, begin, end, self.updates(Updates, at, lanes).block(self.loop.body), step=lanes)

    def rest(self, count: Expr, whole: Expr) -> tuple[Stmt, ...] | None:
        """The remainder as a masked vector; None if it has no such form, or gathers.

        Masked lanes of a gather cost as much as others: the remainder is scalar, and so are all iterations if they fill
        no more than one of the widest vectors.
        """
        if isinstance(count, IntImm) and count.value % self.few == 0:
            return ()
        if not self.has_rest:
            return None
        vectors = self.updates(Rest, whole, self.few)
        left = folded(count % self.few)
        on = first_lanes(left, self.few, self.width)
        name = vectors.on = Var("left", on.dtype)
        try:
            stmts = (Let(name, on, span=self.loop.span), *vectors.block(self.loop.body).stmts)
        except NotVector:
            return None
        self.gathers = any(map(_gathers, stmts))
        if self.gathers:
            return None
        return stmts if isinstance(count, IntImm) else (IfThenElse(GE(left, const(1, i64)), SeqStmt(stmts)),)

    def updates(self, kind: type[Updates], first: Expr, lanes: int) -> Updates:
        """The lanes of iterations from `first` on."""
        return kind(self.loop.var, first, self.partials[lanes], self.is_inside, lanes, self.flat)


def _gathers(stmt: Stmt) -> bool:
    """Whether a statement gathers, by indices that were loaded."""
    loads = (node for node in loads_in(stmt) if node.indices)
    places = (unmasked(load.indices[-1]) for load in loads if load.indices[-1].dtype.lanes > 1)
    return any(isinstance(node, Load) and node.dtype.lanes > 1 for node in walk(*places))
