"""PackPadded copies what a loop's body reads under a condition, together with the value used elsewhere: padding.

Places count row by row, so those of a vector may span the end of one row and the beginning of the next. Then each lane
has an address and a condition of its own. In one row lanes are a constant number of elements apart, and if the first
and the last are in bounds, so are all: they are loaded by one vector, unmasked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import copysign

from tirlite.analysis.facts import Facts
from tirlite.ir.checked import masked
from tirlite.ir.dtype import bool_, i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    BitAnd,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Expr,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Min,
    Mul,
    Ramp,
    Select,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, IfThenElse, Let, SeqStmt, Stmt, Store, View, nested
from tirlite.ir.walk import defined_in, is_steady, mentions, reads, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, chain_to, loop_named
from tirlite.schedules.loop_facts import is_in_bounds, lanes_before
from tirlite.schedules.order import demand_any_order
from tirlite.schedules.pack import demand_axes, extents_of, loads_of_one
from tirlite.schedules.step import ScheduleStep, does_not_fit, with_loop
from tirlite.sizes import substitute as with_sizes
from tirlite.sizes.poly import Remainder, inside_out
from tirlite.sizes.unknown import unknowns_in

# Block size of a loop that the condition and the place do not depend on: the lines that these iterations read are used
# again before L1 evicts them. Image rows a power of two apart share few cache sets, so a larger block would not fit.
_BLOCK = 8


@record
class PackPadded(ScheduleStep):
    """Packs what the body of `at` reads under a condition, with the constant that is used otherwise: padding.

    Like `pack`, for a conditional expression such as `x[i + p] if i + p < n else 0`. The copy has an axis for each of
    `axes`, the last one contiguous and rounded up to a multiple of `whole`. It is filled by masked vectors; the mask
    and the addresses are computed once for eight iterations of a loop that they do not depend on. Lanes that are in one
    row, all in bounds, are loaded by a plain vector. Refused as `pack` is, and if the buffer is read in other ways.
    """

    buffer: BufferName
    at: LoopName
    axes: tuple[LoopName, ...]
    whole: int

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        around = chain_to(func, self.at)
        at = around[-1]
        buffer = buffer_named(func, self.buffer, at)
        demand_any_order(self, at)
        loops = [loop_named(func, each) for each in self.axes]
        load = loads_of_one(self, facts, buffer, at, loops)[0]
        demand_axes(self, at, loops, load)
        choice = self._choice(at, loops, load)
        if not is_in_bounds(func, (*around, *loops), load, choice.args[0]):
            raise does_not_fit(self, f"an index of `{buffer.name}` is not proved to be in bounds")
        packed = Buffer(f"{buffer.name}.packed", choice.dtype, extents_of(self, facts, loops, self.whole))
        places = tuple(folded(Sub(loop.var, loop.start)) for loop in loops)

        def moved(node: Call) -> Expr:
            return Load(packed, places) if structural_equal(node, choice) else node

        body = rewrite(at.body, {Call: moved})
        if reads(buffer, body):
            raise does_not_fit(self, f"`{buffer.name}` is read otherwise than under one condition")
        try:
            copy = (*_Copy(facts, load, packed, loops, choice).stmts(),)
        except NotVector:
            raise does_not_fit(self, f"what decides where `{buffer.name}` is read has no vector form") from None
        return with_loop(facts, at, (at.replaced(body=SeqStmt((Allocate(packed, span=at.span), *copy, *body.stmts))),))

    def _choice(self, at: For, loops: Sequence[For], load: Load) -> Call:
        """The conditional expression that is packed. Raises KernelError if none can be."""
        choice = next((node for node in walk(at.body) if isinstance(node, Call) and is_choice_of(node, load)), None)
        if choice is None:
            raise does_not_fit(self, f"`{load.buffer.name}` is not read by a conditional expression")
        inside, _, other = choice.args
        if not is_steady(inside) or mentions(inside, defined_in(at.body) - {loop.var for loop in loops}):
            raise does_not_fit(self, f"whether `{load.buffer.name}` is read is decided by other loops, or by memory")
        if not isinstance(other, IntImm | FloatImm):
            raise does_not_fit(self, f"what stands for an element of `{load.buffer.name}` is no constant")
        return choice


def is_choice_of(node: Call, load: Load) -> bool:
    """Whether this is a conditional expression whose value is a load, converted or not."""
    read = node.args[1] if node.op is Op.IF_THEN_ELSE else None
    return bool(structural_equal(read.value if isinstance(read, Cast) else read, load)) if read is not None else False


class _Copy:
    """Generates the statements that fill a copy of a conditional expression, over variables of its own."""

    def __init__(self, facts: Facts, load: Load, packed: Buffer, loops: Sequence[For], choice: Call) -> None:
        self._facts, self._packed, self._loops, self._source = facts, packed, loops, load.buffer
        self._inside, _, self._other = choice.args
        self._load = load
        self._own = {loop.var: Var(f"{load.buffer.name}.{loop.var.name}") for loop in loops}
        # The axes from the first one that depends on the lane on are flattened.
        first = next(axis for axis, index in enumerate(load.indices) if mentions(index, loops[-1].var))
        self._row, self._place, extent = load.indices[:first], load.indices[first], load.buffer.shape[first]
        for index, inner in zip(load.indices[first + 1 :], load.buffer.shape[first + 1 :], strict=True):
            self._place, extent = Add(Mul(self._place, inner), index), folded(Mul(extent, inner))
        self._shape = (*load.buffer.shape[:first], extent)

    def stmts(self) -> Iterator[Stmt]:
        """The loops around the mask's computation, and inside of it those that store the rows of the copy."""
        source, flat, width = self._source, self._source, self._packed.shape[-1]
        if not isinstance(width, IntImm):
            raise NotVector
        if len(self._shape) < len(source.shape):
            if source.strides:
                raise NotVector
            flat = Buffer(f"{source.name}.flat", source.dtype, self._shape, source.scope)
            yield View(flat, source, const(0, i64))
        last = self._loops[-1]
        start, stop = self._of(last.start), self._of(last.stop)
        lanes = Lanes(width.value, {self._own[last.var]: Ramp.unit(start, width.value)})
        before = Let(Var("before", bool_.with_lanes(width.value)), lanes_before(start, stop, width.value))
        lanes.on = before.var
        quotients, (condition, place) = self._quotients(lanes, (self._of(self._inside), self._of(self._place)))
        on = Let(Var("on", bool_.with_lanes(width.value)), BitAnd(before.var, lanes.spread(lanes.of(condition))))
        made, where = self._where(lanes, start, place)
        row = tuple(map(self._of, self._row))
        value: Expr = Load(flat, (*row, masked(where, on.var))).astype(self._packed.dtype.with_lanes(width.value))
        if not _is_nothing(self._other):
            value = Select(on.var, value, Broadcast(self._other, width.value))
        places = [folded(Sub(self._own[loop.var], self._of(loop.start))) for loop in self._loops[:-1]]
        store = Store(self._packed, (*places, Ramp.unit(0, width.value)), value)
        # Loops that neither the mask nor the place depends on come innermost.
        decide = [each for each in self._loops[:-1] if mentions((self._inside, self._place), each.var)]
        rest = [each for each in self._loops[:-1] if each not in decide]
        around, inside = self._in_blocks([*map(self._head, decide)], [*map(self._head, rest)])
        filled: tuple[Stmt, ...] = (on, *made, *nested(inside, store).stmts)
        yield before
        if (near := self._in_one_row(start, stop, width.value)) is not None:
            yield from near.lets
            plain = store.replaced(value=Load(source, near.indices).astype(value.dtype))
            filled = (IfThenElse(near.holds, SeqStmt(_again(inside, plain)), SeqStmt(filled)),)
        yield from quotients
        yield from nested(around, *filled).stmts

    def _in_one_row(self, start: Expr, stop: Expr, width: int) -> OneRow | None:
        """The plain vector load of lanes in one row; None if all are contiguous: masked loads are as fast then."""
        if self._is_line():
            return None
        indices = tuple(map(self._of, self._load.indices))
        return one_row(self._own[self._loops[-1].var], start, stop, width, self._of(self._inside), indices)

    def _head(self, loop: For) -> For:
        """A loop with an empty body over the copy's own variable."""
        return For(self._own[loop.var], self._of(loop.start), self._of(loop.stop), SeqStmt())

    def _in_blocks(self, decide: list[For], rest: list[For]) -> tuple[list[For], list[For]]:
        """The loops outside of the mask's computation, and those inside, of which it is independent.

        The first of the latter goes by blocks around all, since iterations of the former read neighbouring memory.
        """
        if not decide or not rest or not self._is_worth_blocks(rest[0]):
            return decide, rest
        first, *others = rest
        block = Var(f"{first.var.name}.outer")
        end = Min(Add(block, const(_BLOCK, i64)), first.stop)
        return [first.replaced(var=block, step=_BLOCK), *decide], [first.replaced(start=block, stop=end), *others]

    def _is_worth_blocks(self, loop: For) -> bool:
        """Whether a loop may have more iterations than a block, and its bounds are independent of other loops."""
        if any(mentions(bound, self._own.values()) for bound in (loop.start, loop.stop)):
            return False
        count = loop.count
        return not isinstance(count, IntImm) or count.value > _BLOCK

    def _of(self, expr: Expr) -> Expr:
        return substitute(expr, self._own)

    def _quotients(self, lanes: Lanes, exprs: tuple[Expr, ...]) -> tuple[list[Let], list[Expr]]:
        """Lets for divisions, which are slow, that only depend on the last axis, and the expressions using them."""
        moving = {self._own[self._loops[-1].var]}
        others = [self._own[loop.var] for loop in self._loops[:-1]]
        found: list[tuple[Expr, Var]] = []
        lets: list[Let] = []

        def named(node: FloorDiv | FloorMod) -> Expr:
            if not mentions(node, moving) or mentions(node, others):
                return node
            known = next((var for each, var in found if structural_equal(each, node)), None)
            if known is not None:
                return known
            vector, scalar = lanes.spread(lanes.of(node)), Var("at")
            let = Let(Var("at", vector.dtype), vector)
            lanes.values[scalar] = let.var
            found.append((node, scalar))
            lets.append(let)
            moving.add(scalar)
            return scalar

        made = [rewrite(each, {FloorDiv: named, FloorMod: named}) for each in exprs]
        return lets, [each for each in made if isinstance(each, Expr)]

    def _where(self, lanes: Lanes, start: Expr, place: Expr) -> tuple[tuple[Stmt, ...], Expr]:
        """The index of the lanes along the flattened axes, after the statements that compute it."""
        if self._is_line():
            first = substitute(self._of(self._place), {self._own[self._loops[-1].var]: start})
            return (), Ramp.unit(folded(first), lanes.lanes)
        places = Let(Var("places", i64.with_lanes(lanes.lanes)), lanes.spread(lanes.of(place)))
        return (places,), places.var

    def _is_line(self) -> bool:
        """Whether consecutive places of the last axis are contiguous in memory, even across row ends."""
        space, column = self._facts.space, self._loops[-1]
        rest = space.size(self._place) - space.size(column.var)
        known = {atom: atom.definition() for atom in inside_out(rest) if isinstance(atom, Remainder)}
        rest = with_sizes(rest, {atom: size for atom, size in known.items() if size is not None})
        return space.counter(column) not in {*unknowns_in(rest)}


def _again(loops: Sequence[For], stmt: Stmt) -> tuple[Stmt, ...]:
    """A statement inside of copies of these loops with new variables."""
    fresh = {loop.var: Var(loop.var.name, i64) for loop in loops}
    heads = [
        loop.replaced(var=fresh[loop.var], start=substitute(loop.start, fresh), stop=substitute(loop.stop, fresh))
        for loop in loops
    ]
    return nested(heads, substitute(stmt, fresh)).stmts


def _is_nothing(value: Expr) -> bool:
    """Whether a constant is what masked lanes load anyway: +0."""
    return isinstance(value, IntImm | FloatImm) and value.value == 0 and copysign(1, value.value) > 0


@record(eq=False)
class OneRow:
    """A vector load of lanes in one row: lets to put before, the condition for it, and the indices to load."""

    lets: tuple[Let, ...]
    holds: Expr
    indices: tuple[Expr, ...]


def one_row(place: Var, start: Expr, stop: Expr, width: int, inside: Expr, indices: tuple[Expr, ...]) -> OneRow | None:
    """The plain vector load for the places from `start` to `stop`, if in one row and in bounds; None if not seen.

    `inside` and `indices` depend on `place` by its row and its column only.
    """
    found = [node for expr in (inside, *indices) for node in _parts(expr, place)]
    columns = [node.b for node in found if isinstance(node, FloorMod)]
    if not columns or not isinstance(length := columns[0], IntImm) or length.value < width:
        return None
    divisors = [node.b for node in found if isinstance(node.b, IntImm)]
    if len(divisors) < len(found) or any(each.value <= 0 or each.value % length.value for each in divisors):
        return None
    if any(not structural_equal(each, length) for each in columns):
        return None
    column, lane = Var("column", i64), Var("column", i64)

    def of_lane(node: FloorDiv | FloorMod) -> Expr:
        if node.a is not place:
            return node
        return lane if isinstance(node, FloorMod) else FloorDiv(start, node.b)

    exprs = [rewrite(each, {FloorDiv: of_lane, FloorMod: of_lane}) for each in (inside, *indices)]
    lanes = Lanes(width, {lane: Ramp.unit(column, width)})
    condition, *read = [each for each in exprs if isinstance(each, Expr)]
    if any(mentions(each, place) for each in (condition, *read)):
        return None
    try:
        bounds = [*_bounds(condition, lanes)]
        at = [lanes.of(each) for each in read]
    except NotVector:
        return None
    if not isinstance(at[-1], Ramp) or any(each.dtype.lanes > 1 for each in at[:-1]):
        return None
    last = Add(column, const(width - 1, i64))
    holds = And(LE(Add(column, const(width, i64)), length), LE(Add(start, const(width, i64)), stop))
    for bound in bounds:
        for at_column in (column, last) if mentions(bound, lane) else (column,):
            holds = And(holds, substitute(bound, {lane: at_column}))
    return OneRow((Let(column, FloorMod(start, length)),), holds, tuple(at))


def _parts(expr: Expr, place: Var) -> Iterator[FloorDiv | FloorMod]:
    """The quotients and remainders of a place."""
    for node in walk(expr):
        if isinstance(node, FloorDiv | FloorMod) and node.a is place:
            yield node


def _bounds(condition: Expr, lanes: Lanes) -> Iterator[Expr]:
    """The comparisons of a conjunction, of values monotonic in the lane. Raises NotVector for other conditions."""
    if isinstance(condition, And):
        yield from _bounds(condition.a, lanes)
        yield from _bounds(condition.b, lanes)
        return
    if not isinstance(condition, LT | LE | GT | GE):
        raise NotVector
    if any(each.dtype.lanes > 1 and not isinstance(each, Ramp) for each in map(lanes.of, (condition.a, condition.b))):
        raise NotVector
    yield condition
