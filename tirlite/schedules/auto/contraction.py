"""Finds contractions: `y[i, j] += a[i, p] * b[p, j]` and the like, with any order of operands, batches and axes."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.reductions import Update, update_of
from tirlite.ir.dtype import DType
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import Add, Buffer, Call, Cast, Expr, IntImm, Load
from tirlite.ir.rewrite import substitute, values_of
from tirlite.ir.stmt import Allocate, For, ForKind, Let, Stmt, Store
from tirlite.ir.walk import is_constant, loads_in, mentions, walk
from tirlite.record import record, replace
from tirlite.schedules.auto.tiling import WIDE_ROWS, Tiling, count_of, is_known
from tirlite.schedules.dots import are_groups, operands, types_of
from tirlite.schedules.handle import loops_around
from tirlite.schedules.inline import without_lets
from tirlite.schedules.loop_facts import is_dense
from tirlite.schedules.split import is_flat

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE)
# Nests of more loops than that are left alone: no product has as many axes.
_DEEPEST = 16
# Dot products take so few instructions that copies pay for this many rows.
_FEWEST_ROWS = 4
# Of fewer terms a panel is hardly read more often than it is written.
_FEWEST_TERMS = 16
_FEWEST_STRIDED_TERMS = 4
# Of so many terms, and more, sums go by vectors along terms where nothing is copied: adding up the lanes of each takes
# as long as a copy of this many terms. What is copied element by element is to serve this many rows.
_FEWEST_OF_ROW, _TERMS_OF_SUM, _FEWEST_APART_ROWS = 6, 4, 8
# Columns that lie apart are worth a vector from this many on.
_FEWEST_APART = 4
# LLVM writes out this many products at most, and makes vectors of what it has written out, of several rows at once.
_WRITTEN_OUT = 64
# This many rows of a tile lie close enough together that each of them is read as if it were copied.
_ROWS_OF_TILE = 4


@record(eq=False)
class Contraction:
    """A nest of loops around one update: over rows and columns of a tile, and over the terms of its sums.

    `loops` are all of them in their order, `spatial` those that say which element is updated. `packed` is what varies
    with columns, and not with `rows`, of which the last one is the tile's; with `is_dense` neighbours of it are
    neighbours in memory, as are those of `store`. That is the update, or where an iteration sums up into a scalar of
    its own (`is_local`), what becomes of it. `element` are the bytes of a sum. Where nothing stands beside the loops
    over terms it `is_perfect`, once what stands before `cut` is put into a nest of its own. Of narrow integers `dots`
    are the types of the copies that dot products take, with the operand that varies with rows. Where all that is done
    with `packed` is to convert it to the type of the sums, `kind`, that is `cast`, else none. `halves` is the other
    operand, if it has floats of 16 bits, which take long to convert. What the kernel has `laid` together itself, in a
    loop around, is not copied once more, but by groups; nor is what `lies` as a copy of it would, with dot products by
    groups: these pay for a single row. Where it `is_shared`, workers share a loop around, and nothing inside. `flat` is
    a loop that may be fused with that over columns, as what is stored lies so in memory, where rows are no whole tiles.
    Lets stand in the loops that are `named`.
    """

    loops: tuple[For, ...]
    spatial: tuple[For, ...]
    rows: tuple[For, ...]
    columns: For
    terms: tuple[For, ...]
    store: Store
    packed: Load
    element: int
    is_local: bool
    is_dense: bool
    is_perfect: bool
    cut: For | None
    dots: tuple[tuple[str, str], Load] | None
    kind: str
    cast: str
    halves: Load | None
    named: tuple[For, ...]
    is_padded: bool
    is_laid: bool
    is_shared: bool
    lies: bool
    flat: For | None = None

    @property
    def batches(self) -> tuple[For, ...]:
        """The loops with a panel for each of their iterations."""
        return tuple(each for each in self.spatial if each is not self.columns and each not in self.rows)


def contractions(facts: Facts, tiling: Tiling) -> Iterator[Contraction]:
    """The contractions of a function, in program order: of each the outermost loop that is one's."""
    taken: set[For] = set()
    for loop, around in loops_around(facts.func):
        if taken.isdisjoint(around) and (found := _contraction(loop, around, tiling)) is not None:
            taken.add(loop)
            yield found


@record(eq=False)
class _Nest:
    """Loops one inside of the other around `body`; `before` and `behind` stand beside the loop at `level`, if any.

    Elements that some name for the loop inside, `named`, are written in `body` where they are used.
    """

    loops: tuple[For, ...]
    level: int
    before: tuple[Stmt, ...]
    behind: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    named: tuple[For, ...] = ()


def _nest(loop: For) -> _Nest | None:
    """The loops from this one on; None where statements stand beside them at several levels."""
    loops, level, before, behind = [loop], 0, tuple[Stmt, ...](), tuple[Stmt, ...]()
    lets: dict[For, tuple[Let, ...]] = {}
    while True:
        stmts = loops[-1].body.stmts
        places = [place for place, stmt in enumerate(stmts) if isinstance(stmt, For)]
        if not places:
            break
        named = tuple(stmt for stmt in stmts[:-1] if isinstance(stmt, Let))
        if named and len(named) == len(stmts) - 1:
            lets[loops[-1]] = named
        elif len(stmts) > 1:
            if level:
                return None
            level, before, behind = len(loops), stmts[: places[-1]], stmts[places[-1] + 1 :]
        inner = stmts[places[-1]]
        assert isinstance(inner, For)
        loops.append(inner)
        if len(loops) > _DEEPEST:
            return None
    if not all(each.step == 1 and each.kind in _KINDS for each in loops):
        return None
    if not lets:
        return _Nest(tuple(loops), level, before, behind, loops[-1].body.stmts)
    values = values_of(let for each in lets.values() for let in each)
    if any(mentions((each.start, each.stop), values) for each in loops):
        return None
    return _Nest(tuple(loops), level, before, behind, substitute(loops[-1].body, values).stmts, tuple(lets))


def _contraction(loop: For, around: tuple[For, ...], tiling: Tiling) -> Contraction | None:
    nest = _nest(loop)
    if nest is None or not nest.body or not all(isinstance(stmt, Let) for stmt in nest.body[:-1]):
        return None
    body = (*without_lets(nest.body),)
    update = update_of(body[-1]) if body and isinstance(body[-1], Store) else None
    store = None if update is None else _stored(nest, update)
    if update is None or store is None:
        return None
    written = {*walk(*store.indices)}
    spatial = tuple(each for each in nest.loops if each.var in written)
    terms = tuple(each for each in nest.loops if each.var not in written)
    is_local = store is not update.store
    is_cut = nest.level > 0 and nest.loops[nest.level :] != terms
    # What stands beside loops is done once for each element, before its sum.
    if (
        len(spatial) < 2
        or not terms
        or any(each in terms for each in nest.loops[: nest.level])
        or (is_local and is_cut)
    ):
        return None
    values = [update.operand, *(stmt.value for stmt in body if isinstance(stmt, Let))]
    loads = list(loads_in(*values))
    if any(node.buffer is update.store.buffer for node in loads):
        return None
    found: list[Contraction] = []
    for columns in _by_preference(spatial, store, tiling, update.store.buffer.dtype.bytes):
        across = [load for load in loads if mentions(load, columns.var)]
        rows = [each for each in spatial if across and not mentions(across[0], each.var)]
        is_one = all(structural_equal(load, across[0]) for load in across)
        if rows and is_one and any(mentions(across[0], each.var) for each in terms):
            dots = None if _is_padded(values, across[0]) else _dots(update, across[0], tiling)
            made = Contraction(
                loops=nest.loops,
                spatial=spatial,
                rows=_tile_last(rows, tiling),
                columns=columns,
                terms=terms,
                store=store,
                packed=across[0],
                element=max(update.store.buffer.dtype.bytes, across[0].buffer.dtype.bytes),
                is_local=is_local,
                is_dense=is_dense(across[0].indices, columns.var) and is_dense(store.indices, columns.var),
                is_perfect=nest.level == 0 or is_cut,
                cut=nest.loops[nest.level] if is_cut else None,
                dots=dots,
                kind=update.store.buffer.dtype.name,
                cast=_cast(values, across[0], update),
                halves=_halves(values, loads, across[0], update),
                named=(*nest.named, *(nest.loops[-1:] if len(body) < len(nest.body) else ())),
                is_padded=_is_padded(values, across[0]),
                is_laid=is_dense(across[0].indices, columns.var) and _is_laid(across[0].buffer, around),
                is_shared=any(each.kind is ForKind.PARALLEL and count_of(each) > 1 for each in around),
                lies=_lies(across[0], terms, columns, update.store.buffer.dtype, dots, tiling),
            )
            found.append(replace(made, flat=_flat(made, store, loads, tiling)))
    # What is read under a condition has no vectors but in a copy.
    found.sort(key=lambda each: not each.is_padded)
    return _first_that_pays(found, tiling)


def _flat(nest: Contraction, store: Store, loads: list[Load], tiling: Tiling) -> For | None:
    """The loop that goes over rows of columns, if all that depends on it goes over whole ones, or is packed."""
    columns, packed = nest.columns, nest.packed
    is_plain = not (nest.is_padded or nest.is_laid or nest.lies) and nest.dots is None and nest.is_dense
    is_whole = is_known(columns) and count_of(columns) % tiling.lanes(nest.element, columns) == 0
    if not is_plain or is_whole or packed.buffer.dtype.bytes not in (4, 8) or not tiling.masks_bytes:
        return None
    row = store.indices[-2] if len(store.indices) > 1 else None
    loop = next((each for each in nest.batches if each.var is row), None)
    if loop is None or not mentions(packed, loop.var):
        return None
    read = (*loads, *loads_in(store.value))
    others = [node for node in read if mentions(node, loop.var) and not structural_equal(node, packed)]
    return loop if is_flat(store, loop, columns) and all(is_flat(node, loop, columns) for node in others) else None


def _first_that_pays(found: list[Contraction], tiling: Tiling) -> Contraction | None:
    """The first choice of columns that are worth a panel; none beyond those that vectors alone go along well."""
    for each in found:
        if least_sizes(each, tiling) is not None:
            return each
        if each.is_dense and is_known(each.columns) and count_of(each.columns) * each.element >= tiling.vector_bytes:
            return None  # vectors alone go along memory, which other columns would not
    return None


def _dots(update: Update, across: Load, tiling: Tiling) -> tuple[tuple[str, str], Load] | None:
    """The types of the copies of two operands that dot products take, and the other one; None where there are none."""
    loads = operands(update.operand) if update.operation is Add and tiling.dots else []
    others = [each for each in loads if each is not across]
    if len(loads) != 2 or len(others) != 1:
        return None
    types = types_of(others[0].dtype, across.dtype, tiling.dots)
    return None if types is None else (types, others[0])


def _cast(values: list[Expr], load: Load, update: Update) -> str:
    """The type of the sums, where that is what a load is converted to, wherever it stands; else none."""
    kind, nodes = update.store.buffer.dtype, [*walk(*values)]
    alike = [node for node in nodes if isinstance(node, Load) and structural_equal(node, load)]
    converted = [node for node in nodes if isinstance(node, Cast) and node.dtype == kind]
    count = sum(bool(structural_equal(node.value, load)) for node in converted)
    return kind.name if kind.bytes >= 4 and count == len(alike) else ""


def _is_padded(values: list[Expr], load: Load) -> bool:
    """Whether a load stands in a conditional expression, which is packed with what stands for it elsewhere."""
    calls = [node for node in walk(*values) if isinstance(node, Call)]
    if not calls:
        return False
    from tirlite.schedules.pack_padded import is_choice_of

    return any(is_choice_of(node, load) for node in calls)


def _is_laid(buffer: Buffer, around: tuple[For, ...]) -> bool:
    """Whether a buffer is allocated in one of these loops."""
    return any(isinstance(stmt, Allocate) and stmt.buffer is buffer for loop in around for stmt in loop.body.stmts)


def _lies(
    load: Load,
    terms: tuple[For, ...],
    columns: For,
    kind: DType,
    dots: tuple[tuple[str, str], Load] | None,
    tiling: Tiling,
) -> bool:
    """Whether what is read for all terms lies together in memory, in whole vectors of `kind`.

    It lies term by term, with a few rows of a tile for each, or by groups, as dot products take them.
    """
    indices, buffer, lanes, count = load.indices, load.buffer, tiling.lanes(kind.bytes, columns), count_of(columns)
    if dots is not None:
        width = buffer.shape[-2] if any(are_groups(load, columns, each) for each in terms) else None
        return dots[0][1] == load.dtype.name and isinstance(width, IntImm) and width.value % lanes == 0
    if buffer.strides or not is_known(columns) or count % lanes:
        return False
    is_whole = is_constant(buffer.shape[-1], count) and indices[-1] is columns.var
    few = [isinstance(extent, IntImm) and extent.value <= _ROWS_OF_TILE for extent in buffer.shape]
    # What is known of a short axis, as of a window of one row, leaves rows close together.
    moving = [
        index for index, is_short in zip(indices, few, strict=True) if not (is_short and isinstance(index, IntImm))
    ]
    is_in_order = moving[-1 - len(terms) :] == [*(each.var for each in terms), columns.var]
    return load.dtype == kind and is_whole and is_in_order and count <= _ROWS_OF_TILE * lanes


def _halves(values: list[Expr], loads: list[Load], across: Load, update: Update) -> Load | None:
    """The one other operand, if it has floats of 16 bits that are converted to the type of the sums."""
    others = [load for load in loads if load.buffer is not across.buffer]
    if not others or not all(structural_equal(load, others[0]) for load in others):
        return None
    dtype = others[0].dtype
    return others[0] if dtype.is_float and dtype.bits == 16 and _cast(values, others[0], update) else None


def _stored(nest: _Nest, update: Update) -> Store | None:
    """The update, or what the sum of an iteration's own scalar is stored by; None where more is done with it."""
    first = nest.before[0] if nest.before else None
    if not isinstance(first, Allocate) or first.buffer is not update.store.buffer:
        return None if nest.behind else update.store
    last = nest.behind[-1] if nest.behind else None
    return last if isinstance(last, Store) else None


def _by_preference(spatial: tuple[For, ...], store: Store, tiling: Tiling, element: int) -> list[For]:
    """The loops that columns may be: first those that fill most of their lanes, of these one along rows of memory."""

    def cost(loop: For) -> tuple[bool, bool]:
        lanes = tiling.lanes(element, loop)
        fills = not is_known(loop) or (
            count_of(loop) * element >= tiling.vector_bytes and 4 * count_of(loop) >= 3 * lanes
        )
        return not fills, not is_dense(store.indices, loop.var)

    return sorted(spatial, key=cost)


def _tile_last(rows: list[For], tiling: Tiling) -> tuple[For, ...]:
    """The loops over rows, the tile's last: the innermost one that fills a tile."""
    full = [each for each in rows if not is_known(each) or count_of(each) >= tiling.rows]
    last = full[-1] if full else max(rows, key=count_of)
    return (*(each for each in rows if each is not last), last)


def _lies_apart(nest: Contraction) -> bool:
    """Whether columns go along rows of memory, but neighbours do not lie side by side."""
    indices, var = nest.packed.indices, nest.columns.var
    return bool(indices) and mentions(indices[-1], var) and not is_dense(indices, var)


def least_sizes(nest: Contraction, tiling: Tiling) -> tuple[tuple[str, int], ...] | None:
    """What must run how often for packing to pay, where constants do not tell; None where they say that it does not."""
    terms = prod(map(count_of, nest.terms)) if all(map(is_known, nest.terms)) else None
    inside = (*nest.rows, nest.columns, *nest.terms)
    if nest.dots is None and all(map(is_known, inside)) and prod(map(count_of, inside)) <= _WRITTEN_OUT:
        return None
    if nest.is_laid or nest.lies:
        has_rows = nest.dots is not None or any(not is_known(each) or count_of(each) > 1 for each in nest.rows)
        # Of a single row LLVM makes vectors where it writes out the loops over terms.
        return () if has_rows or (nest.is_laid and (terms is None or terms >= _FEWEST_TERMS)) else None
    if nest.is_padded:
        return ()  # nothing else takes it by vectors
    found: list[tuple[str, int]] = []
    fills = not is_known(nest.columns) or count_of(nest.columns) >= tiling.row_bytes // nest.element
    is_wide = is_known(nest.columns) and count_of(nest.columns) * nest.element >= WIDE_ROWS * tiling.row_bytes
    is_wide = is_wide and terms is not None and terms >= _FEWEST_TERMS
    if terms is not None and terms < _FEWEST_STRIDED_TERMS and not nest.is_dense:
        return None
    size = tiling.least_bytes if nest.is_dense and fills and not is_wide else tiling.least_strided
    is_few = is_known(nest.columns) and count_of(nest.columns) * nest.element < tiling.vector_bytes
    if is_few:
        size = tiling.vector_bytes  # nothing else takes as few by vectors
    elements = max(1, size // nest.packed.buffer.dtype.bytes)
    columns = (nest.columns,) if nest.flat is None else (nest.flat, nest.columns)
    wide = (*nest.terms, nest.columns)
    few = tiling.row_bytes if not is_known(nest.columns) else 0 if nest.is_dense else tiling.vector_bytes
    # Without a panel, windows go over several loops for each vector of columns.
    few = min(few // 2, tiling.vector_bytes) if len(nest.terms) > 1 else few // 2
    rows = tiling.least_rows if nest.is_dense else tiling.strided_rows
    stays_in_row = is_dense(nest.store.indices, nest.columns.var) and not nest.is_dense
    if stays_in_row and terms is not None and terms >= _FEWEST_OF_ROW:
        # Without a copy each sum ends by adding up the lanes of a vector, which takes as long as copying some terms.
        rows, elements = min(rows, max(_FEWEST_APART_ROWS, terms // _TERMS_OF_SUM)), 1
    rows = min(rows, _ROWS_OF_TILE + 1) if is_few and nest.is_dense else rows  # fewer are written out by LLVM
    wanted = [(nest.rows, rows), (columns, max(2, few // nest.element)), (wide, elements)]
    if nest.flat is not None or (_lies_apart(nest) and not is_few):
        # Vectors of all rows are full ones, and what lies apart has none but in a copy, which pays for short rows too.
        is_window, are_known = len(nest.terms) > 1, all(map(is_known, nest.rows))
        if not (is_window and are_known and prod(map(count_of, nest.rows)) < tiling.strided_rows):
            rows = tiling.strided_rows if is_window and not are_known else rows
            least = _FEWEST_APART if nest.flat is None else min(few, tiling.vector_bytes) // nest.element
            wanted = [(nest.rows, rows), (columns, max(2, least))]
    if nest.dots is not None:
        few = 2 if tiling.masks_bytes else max(2, tiling.vector_bytes // nest.element // 2)
        wanted = [(nest.rows, _FEWEST_ROWS), (columns, few), (inside, tiling.least_products)]
    for loops, least in wanted:
        if prod(map(count_of, loops)) >= least:
            continue  # as often as each of those runs that are not known
        if all(map(is_known, loops)):
            return None
        found.append((" * ".join(each.var.name for each in loops), least))
    return tuple(found)
