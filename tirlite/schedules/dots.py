"""Dots sums products of narrow integers by groups of terms, for the dot-product instructions of processors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.reductions import update_of
from tirlite.ir.dot import dot, dot_name
from tirlite.ir.dtype import DType, dtype_of, i8, i16, i32, i64, u8
from tirlite.ir.expr import Add, Buffer, Cast, Expr, FloorDiv, IntImm, Load, Min, Mul, Ramp, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, Let, SeqStmt, Stmt, Store, View, counting, nested
from tirlite.ir.walk import defined_in, is_constant, is_steady, mentions, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.schedules.handle import LoopName, chain_to, loop_named
from tirlite.schedules.loop_facts import has_whole_blocks, is_block_of, is_dense, is_in_bounds, trips
from tirlite.schedules.order import demand_any_order, own_touches
from tirlite.schedules.pack import demand_axes, loads_of_one
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, with_loop


@record
class Dots(ScheduleStep):
    """Computes sums of products, in loops inside of `at`, by groups of terms: as `tl.dot` of two packed copies.

    `axes` are the loops over terms, of which the last is grouped, and then the loop over columns. The right operand,
    which depends on columns, is packed at the begin of `at`: each column's group is contiguous, next to those of the
    neighbouring columns, and missing columns up to a multiple of `whole` are 0. It is read in place if its last two
    axes are already columns, a multiple of `whole`, and the terms of a group. The left operand is packed before
    `outside`, or read in place if its terms are contiguous, fill whole groups and have the first type. Missing terms of
    the last group are 0.

    `types`: the types of the copies, of 8 or of 16 bits. If the first has the other sign than the left operand, the
    copy is offset by 128; adding 128 times the sum of each column corrects that, in integers that wrap around as the
    sums do.
    `once`: the right operand is packed whole, before `outside`, if other terms move along columns (convolution).
    `masked`: missing columns and terms are masked lanes.

    Refused unless the loops sum products of two integers that fit the types, and where `pack` would be refused.
    """

    outside: LoopName
    at: LoopName
    axes: tuple[LoopName, ...]
    whole: int
    types: tuple[str, str]
    once: bool = False
    masked: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        around = chain_to(facts.func, self.at)
        outside = loop_named(facts.func, self.outside)
        if outside not in around:
            raise does_not_fit(self, f"the loop over `{outside.var.name}` is not around `{around[-1].var.name}`")
        demand_any_order(self, outside)
        loops = [loop_named(facts.func, each) for each in self.axes]
        if len(loops) < 2:
            raise does_not_fit(self, "its axes are loops over terms, and behind them the one over columns")
        return _Made(self, facts, outside, around, tuple(loops[:-1]), loops[-1]).func()


class _Made:
    """Transforms one nest."""

    def __init__(
        self, step: Dots, facts: Facts, outside: For, around: Sequence[For], terms: tuple[For, ...], columns: For
    ) -> None:
        self.step, self.facts = step, facts
        self.outside, self.around, self.at = outside, around, around[-1]
        self.terms, self.columns = terms, columns
        for loop in terms:
            demand_plain(step, loop)
        self.store, self.left, self.right = self._product()
        kinds = [dtype_of(name) for name in step.types]
        first, second = kinds
        if (
            first is None
            or second is None
            or first.bits != second.bits
            or not (_fits(first, self.left.dtype) or first.bits == self.left.dtype.bits == 8)
            or not _fits(second, self.right.dtype)
        ):
            raise does_not_fit(step, f"elements of `{self.left.buffer.name}` and `{self.right.buffer.name}` do not fit")
        self.kinds = first, second
        self.is_offset = not _fits(first, self.left.dtype)
        self.group = self.store.buffer.dtype.bits // first.bits
        self.counts = [self._trips(loop) for loop in terms]
        groups = folded(FloorDiv(Add(self.counts[-1], const(self.group - 1, i64)), const(self.group, i64)))
        self.groups = [*self.counts[:-1], groups]
        self.left_stays = self._is_in_groups()
        has_groups = self.right.dtype == second and are_groups(self.right, columns, terms[-1])
        self.right_stays = has_groups and has_whole_blocks(around, columns, self.right.buffer.shape[-2], step.whole)
        self.rows = {} if self.left_stays else self._rows()
        rows = [self._count(start, stop) for start, stop in self.rows.values()]
        long = folded(Mul(groups, const(self.group, i64)))
        name, other = self.left.buffer.name, self.right.buffer.name
        self.lefts = Buffer(f"{name}.packed", first, (*rows, *self.counts[:-1], long))
        wide = const(self.group * step.whole, i64)
        self.rights = Buffer(f"{other}.packed", second, (*self.groups, wide))
        if step.once and (self.right_stays or self.is_offset or not moves_along(self.right, terms, columns)):
            raise does_not_fit(step, f"no terms move along columns of `{other}` as it lies")
        *outer, whole = self.right.buffer.shape
        if self.right_stays:
            whole = outer.pop()
        if step.once:
            taken = outer.pop(self.right.indices.index(terms[-1].var))
            outer.append(folded(FloorDiv(Add(taken, const(self.group - 1, i64)), const(self.group, i64))))
        if self.right_stays or step.once:
            flat = folded(Mul(whole, const(self.group, i64)))
            self.rights = Buffer(f"{other}.groups", second, (*outer, flat), self.right.buffer.scope)
        self.sums = Buffer(f"{other}.sums", self.store.buffer.dtype, (const(step.whole, i64),))

    def _product(self) -> tuple[Store, Load, Load]:
        """The store that adds a product, its left operand, and its right one, which depends on columns."""
        body = self.terms[-1].body.stmts if self.terms else ()
        store = body[0] if len(body) == 1 and isinstance(body[0], Store) else None
        update = None if store is None else update_of(store)
        loads = [] if update is None else operands(update.operand)
        across = [load for load in loads if mentions(load, self.columns.var)]
        if update is None or store is None or update.operation is not Add or len(loads) != 2 or len(across) != 1:
            raise does_not_fit(self.step, "the loops do not sum up products of one operand's rows and one's columns")
        right = across[0]
        left = loads[0] if loads[1] is right else loads[1]
        return store, left, right

    def _trips(self, loop: For) -> Expr:
        most = trips(self.facts, loop)
        if most is None or mentions(most, defined_in(self.outside)):
            raise does_not_fit(self.step, f"how often the loop over `{loop.var.name}` runs is decided inside")
        return most

    def _count(self, start: Expr, stop: Expr) -> Expr:
        most = trips(self.facts, For(Var("row"), start, stop, SeqStmt()))
        if most is None:
            raise does_not_fit(self.step, f"how many rows `{self.left.buffer.name}` has is not known")
        return most

    def _is_in_groups(self) -> bool:
        """Whether the left operand can be read in place: contiguous terms in whole groups, of the first type."""
        last, count = self.terms[-1], self.counts[-1]
        is_whole = isinstance(count, IntImm) and count.value % self.group == 0
        is_of_last = is_dense(self.left.indices, last.var) and not mentions(last.start, defined_in(self.outside.body))
        return is_whole and is_of_last and self.left.dtype == self.kinds[0]

    def _rows(self) -> dict[For, tuple[Expr, Expr]]:
        """The loops that the left operand's indices depend on, besides terms, with the range of each variable."""
        own = SeqStmt((self.outside,))
        loops = {loop.var: loop for loop in statements_of(own, For)}
        defined, found = defined_in(own), dict[For, tuple[Expr, Expr]]()
        terms = {loop.var for loop in self.terms}
        for node in walk(*self.left.indices):
            if node not in defined or node in terms:
                continue
            loop = loops.get(node) if isinstance(node, Var) else None
            if loop is None:
                raise does_not_fit(self.step, f"where `{self.left.buffer.name}` is read is computed inside")
            whole = next((each for each in loops.values() if is_block_of(loop, each)), loop)
            if whole is loop:
                demand_plain(self.step, loop)
            if any(mentions(bound, defined) or not is_steady(bound) for bound in (whole.start, whole.stop)):
                raise does_not_fit(self.step, f"the bounds of the loop over `{loop.var.name}` depend on others")
            found[loop] = whole.start, whole.stop
        return found

    def func(self) -> PrimFunc:
        """The function with the nest computed by groups."""
        self._demand_readable()
        body = rewrite(self.at.body, {For: lambda loop: self._summed() if loop is self.terms[0] else loop})
        copied: tuple[Stmt, ...] = ()
        if self.right_stays:
            copied = (View(self.rights, self.right.buffer, const(0, i64), span=self.at.span),)
        elif not self.step.once:
            copied = (Allocate(self.rights, span=self.at.span), *self._rights())
        panel = self.at.replaced(body=SeqStmt((*copied, *self._column_sums(), *body.stmts)))
        nest = rewrite(self.outside, {For: lambda loop: panel if loop is self.at else loop})
        assert isinstance(nest, For)
        before = () if self.left_stays else (Allocate(self.lefts, span=self.outside.span), *self._lefts())
        if self.step.once:
            before = (*before, Allocate(self.rights, span=self.outside.span), *self._right_once())
        return with_loop(self.facts, self.outside, (*before, nest))

    def _demand_readable(self) -> None:
        """Raises KernelError if a copy of an operand might differ from what the loops read."""
        loops = [*self.terms, self.columns]
        loads_of_one(self.step, self.facts, self.right.buffer, self.at, loops)
        demand_axes(self.step, self.at, loops, self.right)
        own_touches(self.step, self.facts, self.left.buffer, self.outside)
        if self.left.buffer.volatile or not is_steady(*self.left.indices):
            raise does_not_fit(self.step, f"`{self.left.buffer.name}` is read where memory decides")
        inside = (*self.around, *self.rows, *loops)
        for load in (self.right,) if self.left_stays else (self.left, self.right):
            if not is_in_bounds(self.facts.func, tuple(dict.fromkeys(inside)), load):
                raise does_not_fit(self.step, f"an index of `{load.buffer.name}` is not proved to be in bounds")

    def _lefts(self) -> Iterator[Stmt]:
        """The loops that pack the left operand, each row padded with zeros to whole groups."""
        from tirlite.schedules.by_groups import as_kind

        name, last = self.left.buffer.name, self.terms[-1]
        own = {loop.var: Var(f"{name}.{loop.var.name}") for loop in (*self.rows, *self.terms)}
        starts = [start for start, _ in self.rows.values()] + [loop.start for loop in self.terms]
        stops = [stop for _, stop in self.rows.values()] + [loop.stop for loop in self.terms]
        variables = [*own.values()]
        places = [folded(Sub(var, start)) for var, start in zip(variables, starts, strict=True)]
        value = as_kind(substitute(self.left, own), self.kinds[0])
        copy = For(variables[-1], starts[-1], stops[-1], SeqStmt((Store(self.lefts, tuple(places), value),)))
        rest = Var(f"{name}.rest")
        zero = Store(self.lefts, (*places[:-1], rest), const(0, self.kinds[0]))
        body = SeqStmt((copy, For(rest, folded(Sub(last.stop, last.start)), self.lefts.shape[-1], SeqStmt((zero,)))))
        loops = [For(*each, SeqStmt()) for each in zip(variables, starts, stops, strict=True)]
        yield from nested(loops[:-1], body).stmts

    def _rights(self) -> Iterator[Stmt]:
        """The loops that pack the columns of a panel, group by group."""
        from tirlite.schedules.by_groups import ByGroups

        yield from ByGroups(
            self.right, self.terms, self.columns, self.rights, self.step.whole, self.step.masked
        ).copied()

    def _right_once(self) -> Iterator[Stmt]:
        """The loops that pack the whole right operand, by vectors of columns; the last one overlaps the one before."""
        from tirlite.schedules.by_groups import ByGroups

        name, whole = self.right.buffer.name, self.step.whole
        *extents, width = self.right.buffer.shape
        loops = [For(Var(f"axis{axis}"), const(0, i64), extent, SeqStmt()) for axis, extent in enumerate(extents)]
        block, first, column = Var(f"{name}.block"), Var(f"{name}.from"), Var("column")
        columns = For(column, first, Add(first, const(whole, i64)), SeqStmt())
        load = Load(self.right.buffer, (*(loop.var for loop in loops), column))
        along = loops.pop(self.right.indices.index(self.terms[-1].var))
        start = Let(first, Min(block, folded(Sub(width, const(whole, i64)))))
        copied = ByGroups(load, (*loops, along), columns, self.rights, whole, self.step.masked, first).copied()
        yield For(block, const(0, i64), width, SeqStmt((start, *copied)), step=whole)

    def _column_sums(self) -> Iterator[Stmt]:
        """Computes the correction of each column for a left operand that is offset: 128 times the sum of its terms."""
        if not self.is_offset:
            return
        width, kind = self.step.whole, self.store.buffer.dtype.with_lanes(self.step.whole)
        lanes = Ramp.unit(0, width)
        sums = Load(self.sums, (lanes,))
        ones = const(1, self.kinds[0].with_lanes(self.group))
        variables = [Var(f"{self.right.buffer.name}.{loop.var.name}") for loop in self.terms]
        total = dot(sums, ones, self._right(variables, self.columns.start, width))
        summed = nested(counting(variables, self.groups), Store(self.sums, (lanes,), total))
        by = const(128 if self.left.dtype.min == 0 else -128, kind)
        yield Allocate(self.sums, span=self.at.span)
        yield Store(self.sums, (lanes,), const(0, kind))
        yield from summed.stmts
        yield Store(self.sums, (lanes,), Mul(sums, by))

    def _summed(self) -> tuple[Stmt, ...]:
        """The loops over terms, the last one by groups, after adding the correction."""
        element = Load(self.store.buffer, self.store.indices)
        own = {loop.var: Var(loop.var.name) for loop in self.terms}
        places = [own[loop.var] for loop in self.terms]
        b = self._right(places, self.columns.var, 1)
        spans = (loop.span for loop in self.terms)
        loops = [each.replaced(span=span) for each, span in zip(counting(places, self.groups), spans, strict=True)]
        body = nested(loops, self.store.replaced(value=dot(element, self._left(own, places), b)))
        if not self.is_offset:
            return body.stmts
        column = folded(Sub(self.columns.var, self.columns.start))
        corrected = self.store.replaced(value=Add(element, Load(self.sums, (column,))))
        return (corrected, *body.stmts)

    def _right(self, places: list[Var], first: Expr, columns: int) -> Load:
        """Loads the groups of this many columns from the column `first` on, at these places of terms."""
        outer: list[Expr]
        column: Expr
        *outer, column = (*places, folded(Sub(first, self.columns.start)))
        if self.right_stays or self.step.once:
            at = {loop.var: folded(Add(loop.start, place)) for loop, place in zip(self.terms, places, strict=True)}
            *outer, column = (substitute(index, {**at, self.columns.var: first}) for index in self.right.indices)
        if self.right_stays:
            column = outer.pop()
        if self.step.once:
            outer.append(outer.pop(self.right.indices.index(self.terms[-1].var)))
        start = folded(Mul(column, const(self.group, i64)))
        return Load(self.rights, (*outer, Ramp.unit(start, self.group * columns)))

    def _left(self, own: dict[Var, Var], places: list[Var]) -> Load:
        """Loads the group of the left operand at these places of terms, from its copy or in place."""
        top = folded(Mul(places[-1], const(self.group, i64)))
        if self.left_stays:
            whole = dict(zip(self.terms, (*places[:-1], top), strict=True))
            starts = {loop.var: folded(Add(loop.start, place)) for loop, place in whole.items()}
            *indices, first = (folded(substitute(each, starts)) for each in self.left.indices)
            return Load(self.left.buffer, (*indices, Ramp.unit(first, self.group)))
        lefts = [folded(Sub(loop.var, start)) for loop, (start, _) in self.rows.items()]
        return Load(self.lefts, (*lefts, *places[:-1], Ramp.unit(top, self.group)))


def operands(product: Expr) -> list[Load]:
    """The two narrow integer loads that are multiplied in i32; nothing for any other product."""
    factors = (product.a, product.b) if isinstance(product, Mul) else ()
    loads = [each.value for each in factors if isinstance(each, Cast) and isinstance(each.value, Load)]
    is_one = len(loads) == 2 and product.dtype == i32 and all(map(_is_narrow, loads))
    return [each for each in loads if isinstance(each, Load)] if is_one else []


def are_groups(load: Load, columns: For, terms: For) -> bool:
    """Whether the last two axes of a load are columns and the terms of one group."""
    buffer, group = load.buffer, i32.bytes // load.dtype.bytes
    if len(load.indices) < 2 or buffer.strides or terms.values != range(group):
        return False
    *outer, column, place = load.indices
    is_own = (column, place) == (columns.var, terms.var) and not any(mentions(each, (column, place)) for each in outer)
    return is_own and is_constant(buffer.shape[-1], group)


def moves_along(load: Load, terms: Sequence[For], columns: For) -> bool:
    """Whether terms other than the last move along columns, the last axis, and the last term is an axis of its own."""
    *others, last = terms
    along = [index for index in load.indices if mentions(index, last.var)]
    is_from_0 = is_constant(last.start, 0)
    is_known = all(isinstance(extent, IntImm) for extent in load.buffer.shape)
    is_moved = is_dense(load.indices, columns.var) and mentions(load.indices[-1], [loop.var for loop in others])
    return is_from_0 and is_known and is_moved and along == [last.var]


def _is_narrow(load: Load) -> bool:
    return load.dtype.is_integer and not load.dtype.is_bool and load.dtype.lanes == 1 and load.dtype.bits <= 16


def types_of(left: DType, right: DType, dots: Collection[str]) -> tuple[str, str] | None:
    """The types of the copies that the processor's dot products `dots` take for operands of these types, if any."""
    turned = {i8: u8, u8: i8}.get(left, left)
    for first in (left, turned):
        if dot_name(first, right) in dots or dot_name(right, first) in dots:
            return first.name, right.name
    if dot_name(i16, i16) in dots and _fits(i16, left) and _fits(i16, right):
        return i16.name, i16.name
    return None


def _fits(kind: DType, element: DType) -> bool:
    """Whether a type contains all values of another."""
    return kind.min <= element.min and element.max <= kind.max
