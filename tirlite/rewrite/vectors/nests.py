"""Finds the loops of a function that are to be vectorized, and writes the statements that replace them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from functools import partial
from math import prod

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.analysis.loops.patterns import (
    asserts_alone,
    divides,
    factor_of,
    has_much_to_do,
    is_done_at_once,
    is_written_out,
    meets_itself,
    meets_other_rows,
    moved_by,
    reads_neighbours,
    resamples,
    skips,
)
from tirlite.analysis.loops.records import keeps_a_record
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i32, i64
from tirlite.ir.equal import structural_key
from tirlite.ir.expr import LE, Buffer, Expr, IntImm, Load, Max, Min, Mul, Ramp, Var, const
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, nested
from tirlite.ir.walk import chain_from, loads_in, mentions, statements, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.vectors.columns import Memory, by_columns
from tirlite.rewrite.vectors.flat_views import declared
from tirlite.rewrite.vectors.groups import Grouped, group_views, is_parted, of_one_element
from tirlite.rewrite.vectors.jam import (
    PLAIN,
    ROWS,
    Jam,
    by_rows,
    goes_by_vectors,
    is_plain,
    is_repeatable,
    rows_together,
    sums_together,
)
from tirlite.rewrite.vectors.lanes import Lanes, NotVector
from tirlite.rewrite.vectors.local_elements import (
    with_local_elements,
    with_scalars,
    with_steady_loads,
)
from tirlite.rewrite.vectors.taps import by_window_rows, count_of
from tirlite.rewrite.vectors.uniform import uniform_scalars
from tirlite.rewrite.vectors.vector_loops import (
    FEWEST_LANES,
    VectorLoops,
    few_widths_of,
    place_widths_of,
    row_widths_of,
    stencil_widths_of,
    widths_of,
    window_widths_of,
)
from tirlite.sizes import Size, is_at_most, maximum
from tirlite.target import Processor

# The number of innermost loops of a chain that are considered.
_DEEPEST = 4


@record
class Rules:
    """What depends on the function and the target: two parameters of a `called` function may be one array.

    `dividing`: the loops in which vectors allow approximate reciprocals, which are faster.
    """

    called: bool
    processor: Processor
    dividing: Collection[For] = ()


def vectorized_loops(facts: Facts, rules: Rules) -> tuple[dict[For, tuple[Stmt, ...]], list[Short]]:
    """The statements that replace loops: those that the author marked, and those where vectors pay.

    Then the loops in which each lane has a row of its own, as alternatives.
    """
    made: dict[For, tuple[Stmt, ...]] = {}
    short: list[Short] = []
    done: set[For] = set()
    for loop in statements_of(facts.func.body, For):
        if loop in done:
            continue
        if loop.kind is ForKind.VECTORIZED:
            found = _as_vectors(loop)
        elif asserts_alone((nest := chain_from(loop))[-1]):
            from tirlite.rewrite.vectors.search_ahead import asserted_by_vectors

            found = asserted_by_vectors(nest, facts.bounds.is_inside, facts.params)
        else:
            chain = chain_from(loop)
            done.update(chain)
            found = _nest(chain, facts, rules)
            if found is None and not any(chain[0] in each.inside for each in short):
                short += _short_rows(chain, facts, rules)
        if found is not None:
            made[loop] = found
            done.update(statements_of(loop.body, For))
    return made, short


@record(eq=False)
class Short:
    """A loop in which each lane has a row of its own, under the condition that rows are short."""

    loop: For
    condition: Expr | None
    stmts: tuple[Stmt, ...]
    inside: frozenset[For]

    def beside(self, made: dict[For, tuple[Stmt, ...]]) -> tuple[Stmt, ...]:
        """The statements that replace the loop; for longer rows, with inner loops replaced as in `made`."""
        inside = {each: made.pop(each) for each in self.inside if each in made}
        if self.condition is None:
            return self.stmts

        def exchanged(loop: For) -> For | tuple[Stmt, ...]:
            return inside.get(loop, loop)

        body = rewrite(self.loop.body, {For: exchanged})
        plain = SeqStmt((self.loop.replaced(body=body),))
        return (IfThenElse(self.condition, SeqStmt(self.stmts), plain, span=self.loop.span),)


def _short_rows(chain: list[For], facts: Facts, rules: Rules) -> Iterator[Short]:
    """The innermost loop of a chain, if each lane can have a row of its own."""
    loop = chain[-1]
    if not any(each.kind is ForKind.REDUCE for each in statements_of(loop.body, For)):
        return
    touches = facts.touches_in.get(loop, {})
    if not _may_go(chain, len(chain) - 1, facts, rules) or (rules.called and _may_be_in_place(touches)):
        return
    from tirlite.rewrite.vectors.short_rows import with_short_rows

    inside, memory = facts.bounds.is_inside, _memory(facts, touches)
    repeats = partial(_repeats_but_for, loop, facts)
    found = with_short_rows(loop, with_local_elements(loop, touches), inside, memory, rules.processor, repeats)
    if found is not None:
        yield Short(loop, *found, frozenset(statements_of(loop.body, For)))


def _as_vectors(loop: For) -> tuple[Stmt, ...] | None:
    """All iterations of a marked loop as one vector; None if they have no vector form."""
    if not is_done_at_once(loop):
        return None
    lanes = len(loop.values or ())
    vectors = Lanes(lanes, {loop.var: Ramp(loop.start, const(loop.step, i64), lanes)})
    try:
        return vectors.block(loop.body).stmts
    except NotVector:
        return None


def _resampled(loop: For, facts: Facts, rules: Rules) -> tuple[Stmt, ...] | None:
    """Vectorizes a loop that loads from computed places; None if it has no vector form."""
    if not is_plain(loop) or not resamples(loop) or not facts.is_independent(loop) or not facts.replaces_nothing(loop):
        return None
    if IfThenElse in loop.body.kinds and not rules.processor.has_masks(1):
        return None
    from tirlite.rewrite.vectors.resampling import ResamplingLanes

    limited: dict[Size, None] = {}
    flat: dict[Buffer, Buffer] = {}
    lanes = partial(ResamplingLanes, loop, facts.bounds.is_inside, facts.space, limited, flat)
    widths = place_widths_of(loop, rules.processor)
    repeats = is_repeatable(loop, facts.touches_in.get(loop, {}))
    try:
        stmts = (*VectorLoops(loop, loop.body, lanes, widths, is_repeatable=repeats).statements(),)
    except NotVector:
        return None
    stmts = (*declared(flat, stmts),)
    if not limited:
        return stmts
    fit = LE(facts.space.extents.expr(maximum(*limited)), const(i32.max, i64))
    return (IfThenElse(fit, SeqStmt(stmts), SeqStmt((loop,))),)


def _may_pay(loop: For) -> bool:
    """Whether vectors may be faster than what LLVM, which vectorizes innermost loops alone, makes of the loop."""
    return is_plain(loop) and (has_much_to_do(loop) or reads_neighbours(loop) or divides(loop) or skips(loop))


def _is_part_of_row(chain: list[For], facts: Facts) -> bool:
    """Whether a loop is one of several statements in an outer loop, and has a small constant number of iterations."""
    return len(chain) == 1 and is_written_out(chain[0]) and chain[0] not in facts.func.body.stmts


def _stores_alone(loop: For, facts: Facts) -> bool:
    """Whether no other loop that LLVM unrolls accesses the loop's results, which LLVM would keep in registers."""
    return all(facts.written_out_along.get(store.buffer, {loop}) <= {loop} for store in statements_of(loop.body, Store))


def _nest(chain: list[For], facts: Facts, rules: Rules) -> tuple[Stmt, ...] | None:
    """The statements that replace nested loops, one of which is vectorized; None if none can be."""
    inside = facts.bounds.is_inside
    if not rules.called and _may_be_one_row(chain, facts, rules):
        from tirlite.rewrite.vectors.one_row import one_row

        if (row := one_row(chain, facts, inside, rules.processor)) is not None:
            return row
    tried: dict[int, SeqStmt] = {}
    for place in reversed(range(max(0, len(chain) - _DEEPEST), len(chain))):
        if _may_go(chain, place, facts, rules):
            body = with_local_elements(chain[place], facts.touches_in.get(chain[place], {}))
            made = _at(chain, place, body, facts, rules, has_rows=False)
            if made is not None:
                return made if rules.called else _or_one_column(chain, place, made, facts)
            tried[place] = body
    innermost = chain[-1]
    if rules.processor.permutes and not rules.called and (resampled := _resampled(innermost, facts, rules)) is not None:
        return nested(chain[:-1], *resampled).stmts
    if innermost.kind in PLAIN and (plain := with_scalars(innermost.body)) is not None and not has_check(innermost):
        # Once arrays and loops inside are gone, LLVM also vectorizes strided lanes, as the colours of an image.
        return nested(chain[:-1], innermost.replaced(body=plain)).stmts
    found = (
        _at(chain, place, body, facts, rules, has_rows=True)
        for place, body in tried.items()
        if not is_parted(chain[place], facts, rules.processor)
    )
    made = next((made for made in found if made is not None), None)
    if made is None and not rules.called:
        made = rows_together(chain, ROWS, facts)
    if made is None:
        made = sums_together(chain, facts, rules.processor.registers)
    if made is None and not rules.called and meets_itself(innermost) and _is_in_order(innermost):
        made = _at_distance(chain, facts, rules)
    if made is None and len(chain) > 1 and not rules.called:
        from tirlite.rewrite.vectors.staggered import staggered

        rows = staggered(chain[-2], innermost, facts)
        made = None if rows is None else nested(chain[:-2], *rows).stmts
    if made is None and keeps_a_record(innermost) and _is_in_order(innermost):
        from tirlite.rewrite.vectors.search_ahead import records_by_vectors

        records = records_by_vectors(innermost, facts)
        made = None if records is None else nested(chain[:-1], *records).stmts
    if made is None and (steady := with_steady_loads(innermost, facts)) is not None:
        made = nested(chain[:-1], steady).stmts
    if made is None and not rules.called and meets_other_rows(innermost) and _is_in_order(innermost):
        made = _at_distance(chain, facts, rules)
    return made


def _may_be_one_row(chain: list[For], facts: Facts, rules: Rules) -> bool:
    *around, loop = chain
    if not around or not _may_go(chain, len(around), facts, rules):
        return False
    if (inside := [*statements_of(loop.body, For)]) and not _is_far_from_full(loop, inside, rules.processor):
        return False
    are_free = all(is_plain(each) and facts.is_independent(each) for each in around)
    return are_free and facts.replaces_nothing(chain[0])


def _is_far_from_full(loop: For, inside: list[For], processor: Processor) -> bool:
    """Whether a row with inner loops is shorter than a vector; if neighbours share few taps, than half of one."""
    lanes, count = row_widths_of(loop, processor)[1], loop.count
    taps = [count_of(each) for each in inside]
    if None not in taps:
        lanes = lanes // 2 if prod(each for each in taps if each) > ROWS else 0
    return isinstance(count, IntImm) and 1 < count.value < lanes


def _at_distance(chain: list[For], facts: Facts, rules: Rules) -> tuple[Stmt, ...] | None:
    from tirlite.rewrite.vectors.at_distance import at_distance

    apart = at_distance(chain[-1], facts, rules.processor)
    return None if apart is None else nested(chain[:-1], *apart).stmts


def _is_in_order(loop: For) -> bool:
    return loop.kind is ForKind.SERIAL and not has_check(loop) and not goes_by_vectors(loop)


def _or_one_column(chain: list[For], place: int, made: tuple[Stmt, ...], facts: Facts) -> tuple[Stmt, ...]:
    """The statements `made` of a chain; for a single column, at `place`, loops down it, which is then contiguous."""
    loop = chain[place]
    found = of_one_element(loop, facts.params)
    inside = [each.stop for each in statements_of(loop.body, For)]
    if found is None or not _go_along_rows(found[2]) or mentions(inside, {loop.stop}):
        return made
    condition, views, stmts = found
    single = SeqStmt((*declared(views, nested(chain[:place], *stmts).stmts),))
    return (IfThenElse(condition, single, SeqStmt(made), span=chain[0].span),)


def _go_along_rows(stmts: tuple[Stmt, ...]) -> bool:
    """Whether there are loops among statements, each of which loads adjacent elements and only stores."""
    loops = [stmt for stmt in stmts if isinstance(stmt, For)]
    loads = [(node, loop) for loop in loops for node in loads_in(loop.body) if mentions(node, loop.var)]
    return bool(loops) and all(
        moved_by(node.indices[-1], loop.var) == 1 and loop.body.kinds <= {Let, Store} for node, loop in loads
    )


def _may_go(chain: list[For], place: int, facts: Facts, rules: Rules) -> bool:
    """Whether a loop of a chain has independent iterations, and vectors may pay."""
    loop = chain[place]
    is_short = _is_part_of_row(chain, facts) and is_plain(loop)
    pays = _may_pay(loop) or loop in rules.dividing or (is_short and _stores_alone(loop, facts))
    if not pays or _is_brief(loop, facts) or not facts.is_independent(loop):
        return False
    return facts.replaces_nothing(loop) or (not has_much_to_do(loop) and facts.writes_tiles(loop))


def _is_brief(loop: For, facts: Facts) -> bool:
    """Whether a loop is known to have too few iterations for a vector, as one over the border of an array."""
    is_cut = any(isinstance(end, Max | Min) for end in (loop.start, loop.stop))
    return is_cut and is_at_most(facts.space.size(loop.count), FEWEST_LANES - 1)


def _at(
    chain: list[For], place: int, body: SeqStmt, facts: Facts, rules: Rules, *, has_rows: bool
) -> tuple[Stmt, ...] | None:
    """The statements that replace a chain, with the loop at `place` vectorized; None if it has no vector form.

    `has_rows`: lanes may load along rows of their own.
    """
    loop, inside = chain[place], facts.bounds.is_inside
    touches = facts.touches_in.get(loop, {})
    flat = {} if rules.called or has_rows else group_views(loop, facts.params)
    lanes: Callable[[Expr, int], Lanes]
    pays: Expr | None = None
    repeats = is_repeatable(loop, touches)
    if rules.called and (repeats or has_rows) and _may_be_in_place(touches):
        if has_rows:
            return None
        repeats = False
    if has_rows:
        in_order = any(not facts.is_independent(each) for each in statements_of(loop.body, For))
        lanes, count, pays = by_columns(loop, inside, _memory(facts, touches), rules.processor, in_order=in_order)
        widths = count, count
    else:
        uniform = uniform_scalars(body, loop.var)
        lanes, widths = partial(Grouped, loop, flat, inside, uniform), widths_of(loop, rules.processor)
    loads = _loads_inside(loop, facts)
    around = _jammed(chain[:place], loop, facts, partial(_shares, loads))
    if around is not None and not has_rows:
        widths = row_widths_of(loop, rules.processor)
    elif not has_rows:
        around = _jammed(chain[:place], loop, facts, partial(_slides, loads, _short(loop)))
        if around is not None:
            widths = window_widths_of(loop, rules.processor)
            body = by_window_rows(body, around[1].var)
        elif not has_much_to_do(loop):
            widths = stencil_widths_of(loop, rules.processor)
    widths = few_widths_of(loop, widths) if _is_part_of_row(chain, facts) else widths
    made = partial(
        VectorLoops, loop, body, lanes=lanes, widths=widths, is_repeatable=repeats, processor=rules.processor
    )
    made = partial(made, pays=pays, is_alone=place > 0 and around is None)
    try:
        plain = (*made(is_rest=around is not None).statements(),)
    except NotVector:
        return None
    if around is None:
        if not has_rows and not rules.called:
            from tirlite.rewrite.vectors.strips import in_strips, where_many

            strips = in_strips(loop, ROWS)
            plain = plain if strips is None else where_many(loop, strips, plain)
        return (*declared(flat, nested(chain[:place], *plain).stmts),)
    level, outer = around
    try:
        together = (*made(jam=partial(_jam, outer)).statements(),)
    except NotVector:
        return (*declared(flat, nested(chain[:place], *plain).stmts),)
    between = chain[level + 1 : place]
    rows, single = nested(between, *together).stmts, nested(between, *plain).stmts
    return (*declared(flat, nested(chain[:level], *by_rows(outer, ROWS, rows, single)).stmts),)


def _repeats_but_for(loop: For, facts: Facts, buffers: Container[Buffer]) -> bool:
    """Whether iterations that run twice write the same values, in all but some buffers."""
    touches = facts.touches_in.get(loop, {}).items()
    return is_repeatable(loop, {each: found for each, found in touches if each.buffer not in buffers})


def _memory(facts: Facts, touches: Mapping[Allocation, Sequence[Touch]]) -> Memory:
    """The allocations that a loop writes, seen through views."""
    root = facts.definitions.root
    return Memory(root, {root(each.buffer) for each, found in touches.items() if any(map(writes, found))})


def _jam(loop: For, body: SeqStmt) -> SeqStmt:
    return Jam(loop.var, ROWS).block(body)


def _jammed(around: list[For], loop: For, facts: Facts, pays: Callable[[For], bool]) -> tuple[int, For] | None:
    """The innermost outer loop that it pays to jam, and its level."""
    inner, in_bounds = loop, set[Node]()
    for level, outer in reversed([*enumerate(around)]):
        in_bounds.update(walk(inner.start), walk(inner.stop))
        is_plain = outer.kind in PLAIN and outer.step == 1
        count = outer.count
        is_long = not isinstance(count, IntImm) or count.value >= ROWS
        runs_alike = outer.var not in in_bounds
        if is_plain and is_long and runs_alike and pays(outer) and facts.is_independent(outer):
            return level, outer
        inner = outer
    return None


def _loads_inside(loop: For, facts: Facts) -> list[Touch]:
    """The loads of inner loops that differ between iterations of a loop."""
    inner = set(statements_of(loop.body, For))
    below = {stmt for each in inner for stmt in statements(each.body)}
    touches = [each for found in facts.touches_in.get(loop, {}).values() for each in found]
    return [each for each in touches if not writes(each) and each.stmt in below and mentions(each.node, loop.var)]


def _shares(loads: list[Touch], outer: For) -> bool:
    """Whether all iterations of an outer loop load the same one of these vectors."""
    return any(not mentions(load.node, outer.var) for load in loads)


def _short(loop: For) -> dict[Var, int]:
    """The iteration counts of inner loops that are known to be short, such as those over the taps of a window."""
    counts = ((each.var, count_of(each) or 0) for each in statements_of(loop.body, For))
    return {var: count for var, count in counts if count > 1}


def _slides(loads: list[Touch], short: Mapping[Var, int], outer: For) -> bool:
    """Whether windows of neighbouring iterations of an outer loop overlap.

    An index then depends on that loop and on an inner one that reaches further than a step of the outer one.
    """
    for index in (each for load in loads if isinstance(load.node, Load) for each in load.node.indices):
        nodes = [*walk(index)]
        steps = [abs(factor_of(node, outer.var)) for node in nodes if isinstance(node, Mul)]
        taps = max((short.get(node, 0) for node in nodes if isinstance(node, Var)), default=0)
        if outer.var in nodes and taps > max(steps, default=1):
            return True
    return False


def _may_be_in_place(touches: Mapping[Allocation, Sequence[Touch]]) -> bool:
    """Whether an iteration reads a buffer at the indices at which it writes another one.

    Then the two buffers may be one array, as far as this loop is concerned, unless an iteration runs twice, or reads a
    tile before it writes it.
    """
    nodes = [touch.node for found in touches.values() for touch in found]
    stored, loaded = (
        {structural_key(each.indices) for each in nodes if isinstance(each, kind)} for kind in (Store, Load)
    )
    return not stored.isdisjoint(loaded)
