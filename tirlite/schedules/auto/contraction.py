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
from tirlite.ir.walk import defined_in, is_constant, loads_in, mentions, walk
from tirlite.record import record, replace
from tirlite.schedules.auto.tiling import WIDE_ROWS, Tiling, count_of, is_known
from tirlite.schedules.dots import are_groups, operands, types_of
from tirlite.schedules.handle import loops_around
from tirlite.schedules.inline import without_lets
from tirlite.schedules.loop_facts import is_dense
from tirlite.schedules.split import is_flat

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE)
# Deeper nests are skipped: no product has so many axes.
_DEEPEST = 16
# The fewest rows for which packing pays with dot-product instructions.
_FEWEST_ROWS = 4
# With fewer terms, a panel is hardly read more often than it is written.
_FEWEST_TERMS = 16
_FEWEST_STRIDED_TERMS = 4
# From this many terms on, unpacked sums are vectorized along terms, and reducing the lanes takes as long as copying
# `_TERMS_OF_SUM` terms. An operand copied element by element should serve this many rows.
_FEWEST_OF_ROW, _TERMS_OF_SUM, _FEWEST_APART_ROWS = 6, 4, 8
# The fewest strided columns that are worth a vector.
_FEWEST_APART = 4
# LLVM unrolls loops of up to this many products completely, and vectorizes the result across rows.
_WRITTEN_OUT = 64
# Up to this many rows of a tile side by side, an operand in place is read as fast as a packed one.
_ROWS_OF_TILE = 4


@record(eq=False)
class Contraction:
    """A nest around one update, with the roles of its loops: rows and columns of a tile, and terms of the sums.

    `spatial`: the loops that the updated element depends on; `loops` are all. The last of `rows` is the tile's.
    `store`: the update, or the store of the sum if it is accumulated in a scalar of the iteration (`is_local`).
    `packed`: the operand that depends on columns and not on rows; `is_dense`: both it and `store` are contiguous.
    `element`: the bytes of a sum; `kind`: its type; `cast`: that type if every use of `packed` converts to it.
    `cut`: the loop before which statements move into a nest of their own; then the loops over terms are `is_perfect`.
    `dots`: for narrow integers, the types of the packed copies that dot products take, and the other operand.
    `halves`: the other operand if it has 16-bit floats, which are slow to convert.
    `is_prepacked`: the kernel itself has packed `packed`, in a loop around; `is_panel`: it is stored as a panel is.
    `is_shared`: a loop around is parallel, so that none inside should be.
    `around`: a loop that may be fused with columns, as rows are contiguous in memory; `flat`: it should be, as rows are
    no whole tiles. `is_in_place`: its iterations read windows of `packed` without a copy.
    `named`: the loops that contain lets. `is_padded`: `packed` is read under a condition.
    `keeper`: the loop around others that run this nest, in which the little that `packed` reads stays the same.
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
    is_prepacked: bool
    is_shared: bool
    is_panel: bool
    around: For | None = None
    flat: For | None = None
    keeper: For | None = None
    is_in_place: bool = False

    @property
    def batches(self) -> tuple[For, ...]:
        """The spatial loops that are neither rows nor columns: each iteration has a panel of its own."""
        return tuple(each for each in self.spatial if each is not self.columns and each not in self.rows)


def contractions(facts: Facts, tiling: Tiling) -> Iterator[Contraction]:
    """The contractions of a function, in program order; inside of one no other is looked for."""
    taken: set[For] = set()
    for loop, around in loops_around(facts.func):
        if taken.isdisjoint(around) and (found := _contraction(loop, around, tiling)) is not None:
            taken.add(loop)
            yield replace(found, keeper=_keeper(found, around, tiling))


@record(eq=False)
class _Nest:
    """Nested loops around `body`, with the statements `before` and `behind` next to the loop at `level`.

    The lets in the loops `named` are substituted in `body`.
    """

    loops: tuple[For, ...]
    level: int
    before: tuple[Stmt, ...]
    behind: tuple[Stmt, ...]
    body: tuple[Stmt, ...]
    named: tuple[For, ...] = ()


def _nest(loop: For) -> _Nest | None:
    """The nest of this loop; None if statements stand next to loops at several levels."""
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
    # Statements next to a loop must run once for each element, before its sum.
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
                is_prepacked=is_dense(across[0].indices, columns.var) and _is_prepacked(across[0].buffer, around),
                is_shared=any(each.kind is ForKind.PARALLEL and count_of(each) > 1 for each in around),
                is_panel=_is_panel(across[0], terms, columns, update.store.buffer.dtype, dots, tiling),
            )
            found.append(_with_rows(made, store, loads, tiling))
    # Padded operands first: they are only vectorized if packed.
    found.sort(key=lambda each: not each.is_padded)
    return _first_that_pays(found, tiling)


def _with_rows(nest: Contraction, store: Store, loads: list[Load], tiling: Tiling) -> Contraction:
    """The contraction with the loop around columns, if these are whole rows."""
    around = _around(nest, store, loads, tiling)
    is_whole = is_known(nest.columns) and count_of(nest.columns) % tiling.lanes(nest.element, nest.columns) == 0
    return replace(nest, around=around, flat=None if is_whole else around)


def _around(nest: Contraction, store: Store, loads: list[Load], tiling: Tiling) -> For | None:
    """The loop that may be fused with columns: all that depends on it is either packed or has contiguous whole rows."""
    columns, packed = nest.columns, nest.packed
    is_plain = not (nest.is_padded or nest.is_prepacked or nest.is_panel) and nest.dots is None and nest.is_dense
    if not is_plain or packed.buffer.dtype.bytes not in (4, 8) or not tiling.masks_bytes:
        return None
    row = store.indices[-2] if len(store.indices) > 1 else None
    loop = next((each for each in nest.batches if each.var is row), None)
    if loop is None or not mentions(packed, loop.var):
        return None
    read = (*loads, *loads_in(store.value))
    others = [node for node in read if mentions(node, loop.var) and not structural_equal(node, packed)]
    return loop if is_flat(store, loop, columns) and all(is_flat(node, loop, columns) for node in others) else None


def _first_that_pays(found: list[Contraction], tiling: Tiling) -> Contraction | None:
    """The first choice of columns that is worth packing.

    The search ends at contiguous columns that fill vectors by themselves.
    """
    for each in found:
        if least_sizes(each, tiling) is not None:
            return each
        if each.is_dense and is_known(each.columns) and count_of(each.columns) * each.element >= tiling.vector_bytes:
            return None  # plain vectors are contiguous along these, but not along other columns
    return None


def _dots(update: Update, across: Load, tiling: Tiling) -> tuple[tuple[str, str], Load] | None:
    """The types of the copies that the target's dot products take, and the other operand; None if it has none."""
    loads = operands(update.operand) if update.operation is Add and tiling.dots else []
    others = [each for each in loads if each is not across]
    if len(loads) != 2 or len(others) != 1:
        return None
    types = types_of(others[0].dtype, across.dtype, tiling.dots)
    return None if types is None else (types, others[0])


def _cast(values: list[Expr], load: Load, update: Update) -> str:
    """The type of the sums, if every use of a load converts it to that type; else empty."""
    kind, nodes = update.store.buffer.dtype, [*walk(*values)]
    alike = [node for node in nodes if isinstance(node, Load) and structural_equal(node, load)]
    converted = [node for node in nodes if isinstance(node, Cast) and node.dtype == kind]
    count = sum(bool(structural_equal(node.value, load)) for node in converted)
    return kind.name if kind.bytes >= 4 and count == len(alike) else ""


def _is_padded(values: list[Expr], load: Load) -> bool:
    """Whether a load is the value of a conditional expression, which is packed together with its alternative."""
    calls = [node for node in walk(*values) if isinstance(node, Call)]
    if not calls:
        return False
    from tirlite.schedules.pack_padded import is_choice_of

    return any(is_choice_of(node, load) for node in calls)


def _is_prepacked(buffer: Buffer, around: tuple[For, ...]) -> bool:
    """Whether one of these loops allocates a buffer in its body."""
    return any(isinstance(stmt, Allocate) and stmt.buffer is buffer for loop in around for stmt in loop.body.stmts)


def _keeper(nest: Contraction, around: tuple[For, ...], tiling: Tiling) -> For | None:
    """The outermost of the loops `around` a nest in which one panel of an operand serves all iterations of another."""
    load, axes = nest.packed, (*nest.terms, nest.columns)
    if not all(map(is_known, axes)) or prod(map(count_of, axes)) * load.dtype.bytes > tiling.least_bytes:
        return None
    for place, loop in enumerate(around[:-1]):
        inside = defined_in(loop.body) - {each.var for each in axes}
        if not mentions(load, inside):
            return loop if any(count_of(each) > 1 or not is_known(each) for each in around[place + 1 :]) else None
    return None


def _is_panel(
    load: Load,
    terms: tuple[For, ...],
    columns: For,
    kind: DType,
    dots: tuple[tuple[str, str], Load] | None,
    tiling: Tiling,
) -> bool:
    """Whether an operand is stored in the order of a packed copy, in whole vectors of `kind`.

    That is term by term, with up to a few rows of a tile for each, or by groups as for dot products.
    """
    indices, buffer, lanes, count = load.indices, load.buffer, tiling.lanes(kind.bytes, columns), count_of(columns)
    if dots is not None:
        width = buffer.shape[-2] if any(are_groups(load, columns, each) for each in terms) else None
        return dots[0][1] == load.dtype.name and isinstance(width, IntImm) and width.value % lanes == 0
    if buffer.strides or not is_known(columns) or count % lanes:
        return False
    is_whole = is_constant(buffer.shape[-1], count) and indices[-1] is columns.var
    few = [isinstance(extent, IntImm) and extent.value <= _ROWS_OF_TILE for extent in buffer.shape]
    # A constant index along a short axis, as of a window of one row, leaves rows close together.
    moving = [
        index for index, is_short in zip(indices, few, strict=True) if not (is_short and isinstance(index, IntImm))
    ]
    is_in_order = moving[-1 - len(terms) :] == [*(each.var for each in terms), columns.var]
    return load.dtype == kind and is_whole and is_in_order and count <= _ROWS_OF_TILE * lanes


def _halves(values: list[Expr], loads: list[Load], across: Load, update: Update) -> Load | None:
    """The only other operand, if it has 16-bit floats that are converted to the type of the sums."""
    others = [load for load in loads if load.buffer is not across.buffer]
    if not others or not all(structural_equal(load, others[0]) for load in others):
        return None
    dtype = others[0].dtype
    return others[0] if dtype.is_float and dtype.bits == 16 and _cast(values, others[0], update) else None


def _stored(nest: _Nest, update: Update) -> Store | None:
    """The update, or the store of the sum that an iteration accumulates in its own scalar; None for other uses."""
    first = nest.before[0] if nest.before else None
    if not isinstance(first, Allocate) or first.buffer is not update.store.buffer:
        return None if nest.behind else update.store
    last = nest.behind[-1] if nest.behind else None
    return last if isinstance(last, Store) else None


def _by_preference(spatial: tuple[For, ...], store: Store, tiling: Tiling, element: int) -> list[For]:
    """The candidates for columns: first those that fill most of their lanes, among these first the contiguous one."""

    def cost(loop: For) -> tuple[bool, bool]:
        lanes = tiling.lanes(element, loop)
        fills = not is_known(loop) or (
            count_of(loop) * element >= tiling.vector_bytes and 4 * count_of(loop) >= 3 * lanes
        )
        return not fills, not is_dense(store.indices, loop.var)

    return sorted(spatial, key=cost)


def _tile_last(rows: list[For], tiling: Tiling) -> tuple[For, ...]:
    """The loops over rows, with the tile's last: the innermost one that fills a tile."""
    full = [each for each in rows if not is_known(each) or count_of(each) >= tiling.rows]
    last = full[-1] if full else max(rows, key=count_of)
    return (*(each for each in rows if each is not last), last)


def _is_strided(nest: Contraction) -> bool:
    """Whether columns move along the last axis of an operand without being contiguous."""
    indices, var = nest.packed.indices, nest.columns.var
    return bool(indices) and mentions(indices[-1], var) and not is_dense(indices, var)


def least_sizes(nest: Contraction, tiling: Tiling) -> tuple[tuple[str, int], ...] | None:
    """The conditions (loops, least count) for packing to pay, where constants do not decide; None if it never does."""
    terms = prod(map(count_of, nest.terms)) if all(map(is_known, nest.terms)) else None
    inside = (*nest.rows, nest.columns, *nest.terms)
    if nest.dots is None and all(map(is_known, inside)) and prod(map(count_of, inside)) <= _WRITTEN_OUT:
        return None
    if nest.is_prepacked or nest.is_panel:
        has_rows = nest.dots is not None or any(not is_known(each) or count_of(each) > 1 for each in nest.rows)
        # For a single row, LLVM vectorizes short loops over terms by unrolling them.
        return () if has_rows or (nest.is_prepacked and (terms is None or terms >= _FEWEST_TERMS)) else None
    if nest.is_padded:
        return ()  # only vectorized if packed
    found: list[tuple[str, int]] = []
    fills = not is_known(nest.columns) or count_of(nest.columns) >= tiling.row_bytes // nest.element
    is_wide = is_known(nest.columns) and count_of(nest.columns) * nest.element >= WIDE_ROWS * tiling.row_bytes
    is_wide = is_wide and terms is not None and terms >= _FEWEST_TERMS
    if terms is not None and terms < _FEWEST_STRIDED_TERMS and not nest.is_dense:
        return None
    size = tiling.least_bytes if nest.is_dense and fills and not is_wide else tiling.least_strided
    is_few = is_known(nest.columns) and count_of(nest.columns) * nest.element < tiling.vector_bytes
    if is_few:
        size = tiling.vector_bytes  # so few columns are only vectorized if packed
    elements = max(1, size // nest.packed.buffer.dtype.bytes)
    columns = (nest.columns,) if nest.flat is None else (nest.flat, nest.columns)
    wide = (*nest.terms, nest.columns)
    few = tiling.row_bytes if not is_known(nest.columns) else 0 if nest.is_dense else tiling.vector_bytes
    # Without a panel, a window takes several loops for each vector of columns.
    few = min(few // 2, tiling.vector_bytes) if len(nest.terms) > 1 else few // 2
    rows = tiling.least_rows if nest.is_dense else tiling.strided_rows
    stays_in_row = is_dense(nest.store.indices, nest.columns.var) and not nest.is_dense
    if stays_in_row and terms is not None and terms >= _FEWEST_OF_ROW:
        # Unpacked, each sum ends by reducing the lanes of a vector, which takes as long as copying some terms.
        rows, elements = min(rows, max(_FEWEST_APART_ROWS, terms // _TERMS_OF_SUM)), 1
    rows = min(rows, _ROWS_OF_TILE + 1) if is_few and nest.is_dense else rows  # LLVM unrolls fewer
    wanted = [(nest.rows, rows), (columns, max(2, few // nest.element)), (wide, elements)]
    if nest.flat is not None or (_is_strided(nest) and not is_few):
        # Flattened vectors are full, and strided columns are only vectorized if packed; both pay for short rows too.
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
            continue  # whatever the unknown counts are
        if all(map(is_known, loops)):
            return None
        found.append((" * ".join(each.var.name for each in loops), least))
    return tuple(found)
