"""Pack copies what a loop's body reads of a buffer, in the order in which the inner loops read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeGuard

from tirlite.analysis.facts import Facts
from tirlite.ir.checked import masked as masked_index
from tirlite.ir.dtype import bool_, dtype_of, i32, i64
from tirlite.ir.equal import are_equal, structural_equal
from tirlite.ir.expr import (
    GE,
    LT,
    Add,
    BitAnd,
    Broadcast,
    Buffer,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Max,
    Min,
    Mul,
    Ramp,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, IfThenElse, Let, SeqStmt, Stmt, Store, nested
from tirlite.ir.walk import defined_in, is_constant, is_steady, loads_in, mentions, statements, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector
from tirlite.schedules.handle import BufferName, LoopName, buffer_named, chain_to, loop_named
from tirlite.schedules.loop_facts import is_block_of, is_in_bounds, is_whole, lanes_before, min_operands, trips
from tirlite.schedules.order import demand_any_order, own_touches
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, with_loop


@record
class Pack(ScheduleStep):
    """Copies what the body of `at` reads of a buffer, at its begin, to a packed panel with one axis for each of `axes`.

    `axes` are loops inside of `at`, the last one contiguous in the copy: element `(p, j)` is what iterations p and j of
    two loops read. Loads that do not depend on the last axis stay. The copy is an allocation `b.packed` for the storage
    planner, one per worker if `at` is in a parallel loop; the loops that fill it are `b.p` and `b.j`. An axis that is a
    block loop has one place per block, and is copied inside of the others if its blocks are those of the last axis.

    `whole`: the last extent is rounded up to a multiple of this; elements that no iteration reads are 0.
    `masked`: one vector, under a mask unless whole, replaces the last loop if elements are contiguous and have 4 or 8
    bytes; if that loop crosses row ends, as `fuse` makes it, one vector for each row.
    `cast`: elements are converted to this type as they are copied; the body may only read them converted so.

    Refused if the body writes the buffer, reads it by several indices or ones that depend on other loops, and if an
    index is not proved in bounds, since the copy reads every element.
    """

    buffer: BufferName
    at: LoopName
    axes: tuple[LoopName, ...]
    whole: int = 1
    masked: bool = False
    cast: str = ""

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        around = chain_to(func, self.at)
        at = around[-1]
        buffer = buffer_named(func, self.buffer, at)
        demand_any_order(self, at)
        loops = [loop_named(func, each) for each in self.axes]
        loads = loads_of_one(self, facts, buffer, at, loops)
        load = loads[0]
        demand_axes(self, at, loops, load, by_blocks=True)
        if not (is_in_bounds(func, (*around, *loops), load) or _has_rows_in_bounds(facts, around, loops, load)):
            raise does_not_fit(self, f"an index of `{buffer.name}` is not proved to be in bounds")
        kind = dtype_of(self.cast) if self.cast else buffer.dtype
        if kind is None or kind.lanes > 1:
            raise does_not_fit(self, f"there is no type {self.cast}")
        packed = Buffer(f"{buffer.name}.packed", kind, extents_of(self, facts, loops, self.whole))
        places = _places(loops, [loop.var for loop in loops], [loop.start for loop in loops])

        def moved(node: Expr) -> Expr:
            read = node.value if isinstance(node, Cast) and node.dtype == kind else node
            return Load(packed, tuple(places)) if read in loads and (read is not node or not self.cast) else node

        body = rewrite(at.body, {Cast if self.cast else Load: moved})
        if mentions(body, loads):
            raise does_not_fit(self, f"`{buffer.name}` is read otherwise than to be converted to {self.cast}")
        stmts = (
            Allocate(packed, span=at.span),
            *_copy(load, packed, loops, masked=self.masked, whole=is_whole((*around, *loops), loops[-1], self.whole)),
            *body.stmts,
        )
        return with_loop(facts, at, (at.replaced(body=SeqStmt(stmts)),))


def extents_of(step: object, facts: Facts, loops: Iterable[For], whole: int) -> tuple[Expr, ...]:
    """The shape of a copy with an axis per loop, the last a multiple of `whole`. Raises KernelError if unknown."""
    extents: list[Expr] = []
    for loop in loops:
        most = trips(facts, loop)
        if most is None:
            raise does_not_fit(step, f"how often the loop over `{loop.var.name}` runs at most is not known")
        extents.append(most if loop.step == 1 else _blocks(most, loop.step))
    if isinstance(last := extents[-1], IntImm):
        extents[-1] = const(-(-last.value // whole) * whole, i64)
    return tuple(extents)


def loads_of_one(step: object, facts: Facts, buffer: Buffer, at: For, loops: list[For]) -> list[Load]:
    """The body's loads of the one element of a buffer that the last axis selects. Raises KernelError for others."""
    inside = [*statements(at.body)]
    reads = [node for node in loads_in(at.body) if node.buffer is buffer]
    loads = [node for node in reads if _uses_last_axis(node, loops)] or reads
    own_touches(step, facts, buffer, at)
    if not loads or buffer.volatile or buffer.dtype.lanes > 1:
        raise does_not_fit(step, f"the loop over `{at.var.name}` does not read `{buffer.name}`, element by element")
    first = loads[0]
    for other in loads[1:]:
        if not structural_equal(Load(buffer, first.indices), Load(buffer, other.indices)):
            raise does_not_fit(step, f"`{buffer.name}` is read by several indices")
    if any(isinstance(stmt, IfThenElse) and mentions(stmt, loads) for stmt in inside):
        raise does_not_fit(step, f"whether `{buffer.name}` is read is decided by a branch")
    return loads


def demand_axes(step: object, at: For, loops: list[For], load: Load, *, by_blocks: bool = False) -> None:
    """Raises KernelError unless the element that a load reads depends on these loops, inside of `at`, and no others."""
    inside = set(statements_of(at.body, For))
    defined = defined_in(at.body)
    if load.buffer in defined:
        raise does_not_fit(step, f"`{load.buffer.name}` is each iteration's own")
    own = {loop.var for loop in loops}
    if not loops or any(loop not in inside for loop in loops) or len(own) < len(loops):
        raise does_not_fit(step, f"the axes are not loops inside of the one over `{at.var.name}`")
    for place, loop in enumerate(loops):
        demand_plain(step, loop, by_blocks=by_blocks and place < len(loops) - 1)
        for bound in (loop.start, loop.stop):
            if mentions(bound, defined - {each.var for each in loops[:place]}):
                raise does_not_fit(step, f"the bounds of the loop over `{loop.var.name}` depend on others inside")
    for index in load.indices:
        if not is_steady(index) or index.dtype.lanes > 1 or mentions(index, defined - own):
            raise does_not_fit(step, f"`{load.buffer.name}` is read where other loops or memory decide")


def _uses_last_axis(load: Load, loops: list[For]) -> bool:
    """Whether the element read depends on the last of the loops."""
    return not loops or any(mentions(index, loops[-1].var) for index in load.indices)


def _copy(load: Load, packed: Buffer, loops: list[For], *, masked: bool, whole: bool) -> Iterator[Stmt]:
    """The statements that fill the copy: across row ends by vectors, otherwise by a vector or a loop per row."""
    variables = {loop.var: Var(f"{load.buffer.name}.{loop.var.name}") for loop in loops}
    if masked and load.dtype.bytes in (4, 8) and (by_rows := _by_rows(load, packed, loops, variables)) is not None:
        yield from by_rows
        return
    name, start, stop = variables[loops[-1].var], *_bounds(loops[-1], variables)
    places = _places(loops, [*variables.values()], [substitute(loop.start, variables) for loop in loops])
    value = substitute(load, variables)
    copy = For(name, start, stop, SeqStmt((Store(packed, places, value.astype(packed.dtype)),)))
    body = SeqStmt((copy,))
    width, length = packed.shape[-1], folded(Sub(stop, start))
    row = substitute(load, {var: each for var, each in variables.items() if each is not name})
    vector = None
    if masked and load.dtype.bytes in (4, 8):
        vector = _vector(row, loops[-1], start, stop, width, whole=whole)
    if vector is not None:
        *on, filled = vector
        assert isinstance(filled, Expr)
        lanes = Ramp.unit(0, filled.dtype.lanes)
        filled = filled.astype(packed.dtype.with_lanes(filled.dtype.lanes))
        body = SeqStmt((*on, Store(packed, (*places[:-1], lanes), filled)))
    elif isinstance(width, IntImm) and not is_constant(length, width.value):
        is_decided = not mentions(length, variables.values())
        fill = _zeros(packed, loops, width, None if is_decided else variables)
        if is_decided:
            yield IfThenElse(LT(length, width), fill)
        else:
            body = SeqStmt((IfThenElse(LT(length, width), fill), copy))
    yield from _rows_of(body, loops, variables).stmts


def _zeros(packed: Buffer, loops: list[For], width: IntImm, variables: dict[Var, Var] | None) -> SeqStmt:
    """Stores 0 into the row of a copy at these variables; without variables, into all rows.

    All rows come before the copying, which may fill them in another order.
    """
    own = variables or {loop.var: Var(f"{packed.name.removesuffix('.packed')}.{loop.var.name}") for loop in loops}
    rows = _places(loops, [*own.values()], [substitute(loop.start, own) for loop in loops])[:-1]
    # Zero the whole row, whose length is constant: for just the rest of it, LLVM would emit a call of memset.
    rest = Var(f"{packed.name.removesuffix('.packed')}.rest")
    fill = SeqStmt((For(rest, const(0, i64), width, SeqStmt((Store(packed, (*rows, rest), const(0, packed.dtype)),))),))
    return fill if variables else _rows_of(fill, loops, own)


def _by_rows(load: Load, packed: Buffer, loops: list[For], variables: dict[Var, Var]) -> tuple[Stmt, ...] | None:
    """The loops that fill a copy whose last loop crosses row ends: row by row, a masked vector of the lanes in each.

    None if the last loop crosses no rows, or lanes in a row are not contiguous.
    """
    last, width, length = loops[-1], packed.shape[-1], _length_of_rows(load, loops[-1].var)
    if length is None or not _are_lanes(width) or any(mentions(e, variables) for e in (last.start, last.stop)):
        return None
    row, on, lanes = Var(f"{load.buffer.name}.row"), Var("on", bool_.with_lanes(width.value)), width.value
    begin = Mul(row, length)

    def in_row(node: FloorDiv | FloorMod) -> Expr:
        if node.a is not last.var:
            return node
        return row if isinstance(node, FloorDiv) else Sub(last.var, begin)

    moved = substitute(rewrite(load, {FloorDiv: in_row, FloorMod: in_row}), variables)
    assert isinstance(moved, Load)
    try:
        vectors = Lanes(lanes, {variables[last.var]: Ramp.unit(last.start, lanes)}, neighbours=True)
        vectors.on = on
        value = vectors.of(moved)
    except NotVector:
        return None
    places = _places(loops, [*variables.values()], [substitute(loop.start, variables) for loop in loops])
    store = Store(packed, (*places[:-1], masked_index(Ramp.unit(0, lanes), on)), value)
    end = Min(folded(Add(begin, length)), last.stop)
    first_lane = Broadcast(Cast(i32, Max(Sub(begin, last.start), const(0, i64))), lanes)
    is_behind = GE(Ramp.unit(const(0, i32), lanes), first_lane)
    here = Let(on, BitAnd(is_behind, lanes_before(last.start, end, lanes)))
    rows = FloorDiv(last.start, length), Add(FloorDiv(Sub(last.stop, const(1, i64)), length), const(1, i64))
    # Rows inside of the first loop: several vectors write one line of the copy while it is in the L1 cache.
    first, *others = loops
    within = SeqStmt((For(row, *rows, SeqStmt((here, *_rows_of(SeqStmt((store,)), others, variables).stmts))),))
    fill = IfThenElse(LT(folded(Sub(last.stop, last.start)), width), _zeros(packed, loops, width, None))
    return fill, *_rows_of(within, [first, last], variables).stmts


def _has_rows_in_bounds(facts: Facts, around: Sequence[For], loops: list[For], load: Load) -> bool:
    """Whether what the last loop reads across row ends is proved in bounds, row by row."""
    last, length = loops[-1], _length_of_rows(load, loops[-1].var)
    start = next((loop.start for loop in around if loop.var is last.start and loop.step > 0), last.start)
    if length is None or not isinstance(start, IntImm) or start.value < 0:
        return False
    row, column = Var("row"), Var("column")

    def part(node: FloorDiv | FloorMod) -> Expr:
        return node if node.a is not last.var else row if isinstance(node, FloorDiv) else column

    parts = rewrite(load, {FloorDiv: part, FloorMod: part})
    assert isinstance(parts, Load)
    known = [end for end in min_operands(last.stop) if not mentions(end, [loop.var for loop in around])]
    ends = [_rows_before(end, length, facts) for end in known]
    columns = For(column, const(0, i64), _without_clamp(length), SeqStmt())
    rows = (columns.replaced(var=row, stop=_without_clamp(end)) for end in ends)
    return any(is_in_bounds(facts.func, (*around, *loops[:-1], each, columns), parts) for each in rows)


def _rows_before(end: Expr, length: Expr, facts: Facts) -> Expr:
    """The number of rows of a length up to an index, including a partial last one."""
    from tirlite.sizes import lower_bound

    if isinstance(end, Mul) and are_equal((end.b,), (length,)):
        least = [lower_bound(facts.space.size(each)) for each in (end.a, end.b)]
        if all(each is not None and each >= 0 for each in least):
            return end.a
    return Add(FloorDiv(Sub(end, const(1, i64)), length), const(1, i64))


def _without_clamp(count: Expr) -> Expr:
    """A loop count without `max(.., 0)`, which makes no difference to a loop that starts at 0."""
    is_least = isinstance(count, Max) and is_constant(count.b, 0)
    return count.a if isinstance(count, Max) and is_least else count


def _length_of_rows(load: Load, var: Var) -> Expr | None:
    """The row length, if a load uses a variable only in quotients and remainders by one and the same length."""
    parts = [node for index in load.indices for node in walk(index) if isinstance(node, FloorDiv | FloorMod)]
    lengths = [node.b for node in parts if node.a is var]
    uses = sum(node is var for index in load.indices for node in walk(index))
    is_one = uses == len(lengths) > 0 and all(are_equal((each,), lengths[:1]) for each in lengths)
    return lengths[0] if is_one and not mentions(lengths[0], (var,)) else None


def _rows_of(body: SeqStmt, loops: list[For], variables: dict[Var, Var]) -> SeqStmt:
    """The loops around a row of a copy, over the copy's own variables.

    Blocks of the last axis come innermost, so that contiguous memory is read together.
    """
    rows = sorted(loops[:-1], key=lambda loop: is_block_of(loops[-1], loop))
    return nested(
        [For(variables[loop.var], *_bounds(loop, variables), SeqStmt(), step=loop.step) for loop in rows], body
    )


def _bounds(loop: For, variables: dict[Var, Var]) -> tuple[Expr, Expr]:
    return substitute(loop.start, variables), substitute(loop.stop, variables)


def _vector(
    row: Load, last: For, start: Expr, stop: Expr, width: Expr, *, whole: bool
) -> tuple[Expr] | tuple[Let, Expr] | None:
    """A row of a copy as one vector, 0 in masked lanes, after the let of its mask unless it is `whole`.

    None if elements are not contiguous, or the width is no vector width.
    """
    if not _are_lanes(width):
        return None
    vectors = Lanes(width.value, {last.var: Ramp.unit(start, width.value)}, neighbours=True)
    on = Let(Var("on", bool_.with_lanes(width.value)), lanes_before(start, stop, width.value))
    vectors.on = None if whole else on.var
    try:
        return (vectors.of(row),) if whole else (on, vectors.of(row))
    except NotVector:
        return None


def _are_lanes(width: Expr) -> TypeGuard[IntImm]:
    """Whether a vector can have this many lanes."""
    return isinstance(width, IntImm) and width.value >= 2 and not width.value & (width.value - 1)


def _blocks(most: Expr, step: int) -> Expr:
    """The greatest number of blocks of `step` iterations."""
    if isinstance(most, IntImm):
        return const(-(-most.value // step), i64)
    return FloorDiv(Add(most, const(step - 1, i64)), const(step, i64))


def _places(loops: Sequence[For], names: Sequence[Var], starts: Sequence[Expr]) -> tuple[Expr, ...]:
    """The indices of an element of a copy: for each loop, the iterations or blocks before this one."""
    passed = [folded(Sub(name, start)) for name, start in zip(names, starts, strict=True)]
    return tuple(
        each if loop.step == 1 else folded(FloorDiv(each, const(loop.step, i64)))
        for each, loop in zip(passed, loops, strict=True)
    )
