"""Schedules contractions: `y[i, j] += a[i, p] * b[p, j]` and the like, with any order of operands, batches and axes.

A tile of some rows of some vectors is combined in registers: of six times four, where a processor has 32 of them. What
its columns read is packed together, for all terms; rows go past it. A vector of the panel serves each row of the tile,
so it may come from the second cache, or the third: blocks of terms were slower up to 16384 of them. Source of the tile:
Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tirlite.analysis.facts import Facts
from tirlite.analysis.reductions import Update, update_of
from tirlite.diag import KernelError
from tirlite.ir import (
    Add,
    Allocate,
    Call,
    Cast,
    Expr,
    For,
    ForKind,
    IntImm,
    Let,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Sub,
    Var,
    structural_equal,
    walk,
)
from tirlite.ir.printer_names import identifier
from tirlite.record import record
from tirlite.rewrite.pipeline import Pass, after
from tirlite.schedules.cache_write import CacheWrite
from tirlite.schedules.distribute import Distribute
from tirlite.schedules.dots import Dots, operands, types_of
from tirlite.schedules.fuse import Fuse
from tirlite.schedules.handle import LoopHandle, LoopName, loops_around
from tirlite.schedules.inline_lets import InlineLets, without_lets
from tirlite.schedules.pack import Pack
from tirlite.schedules.pack_padded import PackPadded, is_choice_of
from tirlite.schedules.parallel import Parallel
from tirlite.schedules.reorder import Reorder
from tirlite.schedules.specialize import Specialize
from tirlite.schedules.split import Split
from tirlite.schedules.unroll_jam import UnrollJam
from tirlite.schedules.vectorize import Vectorize
from tirlite.target import Target

_KINDS = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE)
# Nests of more loops than that are left alone: no product has as many axes.
_DEEPEST = 16
# A panel pays for so many tiles of rows that read it, and beyond this part of the second cache: of what fits into it
# rows are read as fast where they lie. Where lanes are not neighbours in memory, or less than a row of a tile, loops go
# by few vectors or none without a panel.
_LEAST_TILES = 4
_PART_OF_CACHE = 32
_PART_WITHOUT_VECTORS = 256
# Dot products take so few instructions that copies pay for so many rows.
_FEWEST_ROWS = 4
# Rows go to workers by blocks of so many tiles, each of which packs its panels anew: of more for few workers, who have
# enough to do with panels alone.
_TILES_OF_BLOCK = 32
_MOST_TILES_OF_BLOCK = 128
_TILES_OF_ALL = 256
# Processors whose vectors have so many bytes leave lanes out by a mask.
_MASKED_BYTES = 32
# What stands in for the iterations of a loop that sizes decide.
_SOME = 16


@record
class Tiling:
    """The numbers of a schedule: the rows of a tile of registers, the bytes of one of its rows, and of one vector.

    Packed is an operand of `least_bytes` or more, where `least_rows` read it; of `least_strided` where loops go by few
    vectors or none without a copy. Rows share a panel by blocks of `block_tiles` tiles. `dots` are the dot products of
    the processor, by the types of their operands.
    """

    rows: int
    row_bytes: int
    vector_bytes: int
    least_rows: int
    least_bytes: int
    least_strided: int
    block_tiles: int = _TILES_OF_BLOCK
    dots: tuple[str, ...] = ()

    @classmethod
    def of(cls, target: Target) -> Tiling:
        """What suits a processor's registers and caches, and so many workers."""
        processor = target.processor
        rows, vectors = processor.tile
        cache, vector = processor.caches[1], processor.vector_bytes
        return cls(
            rows,
            vectors * vector,
            vector,
            _LEAST_TILES * rows,
            cache // _PART_OF_CACHE,
            cache // _PART_WITHOUT_VECTORS,
            min(max(_TILES_OF_ALL // target.workers, _TILES_OF_BLOCK), _MOST_TILES_OF_BLOCK),
            processor.dots,
        )

    def lanes(self, element: int, columns: For) -> int:
        """The lanes in a row of a tile: of columns that are known to be few, no more vectors than hold them."""
        full, least = self.row_bytes // element, max(2, self.vector_bytes // element)
        if not _is_known(columns) or _count(columns) > full // 2:
            return full
        return next(lanes for lanes in (least << power for power in range(9)) if lanes >= min(_count(columns), full))

    def rows_of(self, lanes: int, element: int) -> int:
        """The rows of a tile with so many lanes: those of few vectors are more, so that as many sums are in work."""
        return self.rows if 2 * lanes > self.row_bytes // element else 2 * self.rows


@record(eq=False)
class Contraction:
    """A nest of loops around one update: over rows and columns of a tile, and over the terms of its sums.

    `loops` are all of them in their order, `spatial` those that say which element is updated. `packed` is what varies
    with columns, and not with `rows`, of which the last one is the tile's; with `is_dense` neighbours of it are
    neighbours in memory, as are those of `store`. That is the update, or where an iteration sums up into a scalar of
    its own (`is_local`), what becomes of it. `element` are the bytes of a sum. Where nothing stands beside the loops
    over terms it `is_perfect`, once what stands before `cut` is put into a nest of its own. Of narrow integers `dots`
    are the types of the copies that dot products take. Where all that is done with `packed` is to convert it to the
    type of the sums, `kind`, that is `cast`, else none. `halves` is the other operand, if it has floats of 16 bits,
    which take long to convert.
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
    dots: tuple[str, str] | None
    kind: str
    cast: str
    halves: Load | None
    has_lets: bool
    is_padded: bool

    @property
    def batches(self) -> tuple[For, ...]:
        """The loops with a panel for each of their iterations."""
        return tuple(each for each in self.spatial if each is not self.columns and each not in self.rows)


def scheduled(facts: Facts, tiling: Tiling) -> tuple[PrimFunc, tuple[Pass, ...]]:
    """The function with its contractions scheduled, and the steps that did it: the last nest first."""
    taken: list[Pass] = []
    for found in reversed([*contractions(facts, tiling)]):
        made, attempt = facts, list[Pass]()
        try:
            for step in steps(found, facts, tiling):
                made = after(step, made)
                attempt.append(step)
        except KernelError:  # a step does not fit: the nest stays as it is
            continue
        facts = made
        taken += attempt
    return facts.func, tuple(taken)


def contractions(facts: Facts, tiling: Tiling) -> Iterator[Contraction]:
    """The contractions of a function, in program order: of each the outermost loop that is one's."""
    taken: set[For] = set()
    for loop, around in loops_around(facts.func):
        if taken.isdisjoint(around) and (found := _contraction(loop, tiling)) is not None:
            taken.add(loop)
            yield found


@record(eq=False)
class _Nest:
    """Loops one inside of the other around `body`; `before` and `behind` stand beside the loop at `level`, if any."""

    loops: tuple[For, ...]
    level: int
    before: tuple[Stmt, ...]
    behind: tuple[Stmt, ...]
    body: tuple[Stmt, ...]


def _nest(loop: For) -> _Nest | None:
    """The loops from this one on; None where statements stand beside them at several levels."""
    loops, level, before, behind = [loop], 0, tuple[Stmt, ...](), tuple[Stmt, ...]()
    while True:
        stmts = loops[-1].body.stmts
        places = [place for place, stmt in enumerate(stmts) if isinstance(stmt, For)]
        if not places:
            break
        if len(stmts) > 1:
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
    return _Nest(tuple(loops), level, before, behind, loops[-1].body.stmts)


def _contraction(loop: For, tiling: Tiling) -> Contraction | None:
    nest = _nest(loop)
    if nest is None or not nest.body or not all(isinstance(stmt, Let) for stmt in nest.body[:-1]):
        return None
    body = (*without_lets(nest.body),)
    update = update_of(body[-1]) if isinstance(body[-1], Store) else None
    store = None if update is None else _stored(nest, update)
    if update is None or store is None:
        return None
    written = {node for index in store.indices for node in walk(index)}
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
    loads = [node for value in values for node in walk(value) if isinstance(node, Load)]
    if any(node.buffer is update.store.buffer for node in loads):
        return None
    found: list[Contraction] = []
    for columns in _by_preference(spatial, store, tiling, update.store.buffer.dtype.bytes):
        across = [load for load in loads if _names(load, columns.var)]
        rows = [each for each in spatial if across and not _names(across[0], each.var)]
        is_one = all(structural_equal(load, across[0]) for load in across)
        if rows and is_one and any(_names(across[0], each.var) for each in terms):
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
                is_dense=_is_dense(across[0].indices, columns.var) and _is_dense(store.indices, columns.var),
                is_perfect=nest.level == 0 or is_cut,
                cut=nest.loops[nest.level] if is_cut else None,
                dots=_dots(update, across[0], tiling),
                kind=update.store.buffer.dtype.name,
                cast=_cast(values, across[0], update),
                halves=_halves(values, loads, across[0], update),
                has_lets=len(body) < len(nest.body),
                is_padded=_is_padded(values, across[0]),
            )
            found.append(made)
    return next((each for each in found if _least(each, tiling) is not None), None)


def _dots(update: Update, across: Load, tiling: Tiling) -> tuple[str, str] | None:
    """The types of the copies of two operands that dot products take; None where there are none for these."""
    loads = operands(update.operand) if update.operation is Add and tiling.dots else []
    others = [each for each in loads if each is not across]
    return types_of(others[0].dtype, across.dtype, tiling.dots) if len(loads) == 2 and len(others) == 1 else None


def _cast(values: list[Expr], load: Load, update: Update) -> str:
    """The type of the sums, where that is what a load is converted to, wherever it stands; else none."""
    kind, nodes = update.store.buffer.dtype, [node for value in values for node in walk(value)]
    alike = [node for node in nodes if isinstance(node, Load) and structural_equal(node, load)]
    converted = [node for node in nodes if isinstance(node, Cast) and node.dtype == kind]
    count = sum(bool(structural_equal(node.value, load)) for node in converted)
    return kind.name if kind.bytes >= 4 and count == len(alike) else ""


def _is_padded(values: list[Expr], load: Load) -> bool:
    """Whether a load stands in a conditional expression, which is packed with what stands for it elsewhere."""
    return any(isinstance(node, Call) and is_choice_of(node, load) for value in values for node in walk(value))


def _halves(values: list[Expr], loads: list[Load], across: Load, update: Update) -> Load | None:
    """The one other operand, if it has floats of 16 bits that are converted to the type of the sums."""
    others = [load for load in loads if load.buffer is not across.buffer]
    if not others or not all(structural_equal(load, others[0]) for load in others):
        return None
    dtype = others[0].dtype
    return others[0] if dtype.is_float and dtype.bits == 16 and _cast(values, others[0], update) else None


def _by_groups(terms: tuple[For, ...]) -> tuple[For, ...]:
    """The loops over terms, last the one of which groups are: of those that are known the longest."""
    last = max(terms, key=lambda loop: _count(loop) if _is_known(loop) else _SOME)
    return (*(each for each in terms if each is not last), last)


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
        fills = not _is_known(loop) or (_count(loop) * element >= tiling.vector_bytes and 4 * _count(loop) >= 3 * lanes)
        return not fills, not _is_dense(store.indices, loop.var)

    return sorted(spatial, key=cost)


def _tile_last(rows: list[For], tiling: Tiling) -> tuple[For, ...]:
    """The loops over rows, the tile's last: the innermost one that fills a tile."""
    full = [each for each in rows if not _is_known(each) or _count(each) >= tiling.rows]
    last = full[-1] if full else max(rows, key=_count)
    return (*(each for each in rows if each is not last), last)


def _names(load: Load, var: Var) -> bool:
    return any(node is var for index in load.indices for node in walk(index))


def _is_dense(indices: tuple[Expr, ...], var: Var) -> bool:
    """Whether neighbouring values of a variable are neighbouring elements."""
    last, others = indices[-1], indices[:-1]
    while isinstance(last, Add | Sub):
        a, b = (any(node is var for node in walk(each)) for each in (last.a, last.b))
        if a is b or (b and isinstance(last, Sub)):
            return False
        last = last.a if a else last.b
    return last is var and not any(node is var for index in others for node in walk(index))


def steps(nest: Contraction, facts: Facts, tiling: Tiling) -> Iterator[Pass]:
    """What is done with a contraction, step by step. Handles name its loops, whatever others are called."""
    named, lanes = _Names(nest, facts), tiling.lanes(nest.element, nest.columns)
    least = _least(nest, tiling)
    if least is None:
        return
    if nest.has_lets:
        yield InlineLets(named(nest.loops[-1].var.name))
    if nest.cut is not None:
        yield Distribute(named(nest.cut.var.name), named(nest.loops[0].var.name))
    if least:
        yield Specialize(named(nest.loops[0].var.name), least)
    first, *others = nest.rows
    by = _rows_of_block(first, others, tiling.block_tiles if nest.halves is None else _TILES_OF_BLOCK, tiling)
    is_split = not _is_known(first) or _count(first) > by
    shared = [each.var.name for each in (*nest.batches, *([first] if is_split else []), nest.columns)]
    yield from (Parallel(named(each)) for each in shared)
    yield Split(named(nest.columns.var.name), lanes)
    if is_split:
        yield Split(named(first.var.name), by)
    outer, within = named(f"{nest.columns.var.name}.outer"), named(f"{nest.columns.var.name}.inner")
    batches = [each.var.name for each in nest.batches]
    blocks = [f"{first.var.name}.outer"] if is_split else []
    rows = [f"{first.var.name}.inner" if is_split else first.var.name, *(each.var.name for each in others)]
    inside = nest.terms if nest.dots is None else _by_groups(nest.terms)
    terms = [named(each.var.name) for each in inside]
    order = (*map(named, (*batches, *blocks)), outer, *map(named, rows), within, *(terms if nest.is_perfect else ()))
    yield Reorder(order)
    has_masks, packed_bytes = tiling.vector_bytes >= _MASKED_BYTES, nest.packed.buffer.dtype.bytes
    if nest.dots is not None:
        if inside != nest.terms and not nest.is_perfect:
            yield Reorder((*terms,))
        yield Dots(order[0], outer, (*terms, within), lanes, nest.dots)
    else:
        if nest.halves is not None:
            own = [name for each, name in zip((first, *others), rows, strict=True) if _names(nest.halves, each.var)]
            yield Pack(nest.halves.buffer.name, outer, (*map(named, own), *terms), cast=nest.kind)
        is_one = has_masks and _is_dense(nest.packed.indices, nest.columns.var) and packed_bytes in (4, 8)
        if nest.is_padded:
            yield PackPadded(nest.packed.buffer.name, outer, (*terms, within), lanes)
        else:
            yield Pack(nest.packed.buffer.name, outer, (*terms, within), lanes, is_one, nest.cast)
        if (
            nest.is_dense
            and not nest.is_padded
            and (not is_one or (_is_known(nest.columns) and _count(nest.columns) % lanes == 0))
        ):
            yield Vectorize(named(f"{nest.packed.buffer.name}.{nest.columns.var.name}.inner"), (lanes,), padded=True)
    if not nest.is_local:
        yield CacheWrite(nest.store.buffer.name, within)
    yield Vectorize(within, (lanes,), padded=True, masked=has_masks)
    if (together := _together(nest.rows[-1], tiling.rows_of(lanes, nest.element))) > 1:
        yield UnrollJam(named(rows[-1]), together)
    path = [*batches, *blocks, f"{nest.columns.var.name}.outer"]
    for place in reversed(range(1, len(path))):
        yield Fuse(named(path[place - 1]), named(".".join(path[place:])))


def _rows_of_block(first: For, others: list[For], tiles: int, tiling: Tiling) -> int:
    """How many iterations of the first loop over rows share a panel, in whole tiles where it is the tile's."""
    inside = prod(max(1, _count(each)) if _is_known(each) else _SOME for each in others)
    return -(-tiles * tiling.rows // inside)


def _together(loop: For, most: int) -> int:
    """So many rows of a tile: of few those that leave the least over. A small tile waits for its own sums."""
    if not _is_known(loop) or (count := _count(loop)) >= _TILES_OF_BLOCK * most:
        return most
    least, alone = most // 2, max(1, most // 3)
    return min(range(most, 0, -1), key=lambda rows: count // rows * max(rows, least) + count % rows * alone)


def _least(nest: Contraction, tiling: Tiling) -> tuple[tuple[str, int], ...] | None:
    """What must run how often for packing to pay, where constants do not tell; None where they say that it does not."""
    found: list[tuple[str, int]] = []
    fills = not _is_known(nest.columns) or _count(nest.columns) >= tiling.row_bytes // nest.element
    size = tiling.least_bytes if nest.is_dense and fills else tiling.least_strided
    elements = max(1, size // nest.packed.buffer.dtype.bytes)
    wide = (*nest.terms, nest.columns)
    few = (
        tiling.row_bytes // nest.element // 2
        if not _is_known(nest.columns)
        else tiling.vector_bytes // nest.element // 2
    )
    wanted = [(nest.rows, tiling.least_rows), ((nest.columns,), max(2, few)), (wide, elements)]
    if nest.dots is not None:
        wanted = [(nest.rows, _FEWEST_ROWS), ((nest.columns,), max(2, tiling.vector_bytes // nest.element // 2))]
    for loops, least in wanted:
        if not all(map(_is_known, loops)):
            found.append((" * ".join(each.var.name for each in loops), least))
        elif prod(map(_count, loops)) < least:
            return None
    return tuple(found)


def _is_known(loop: For) -> bool:
    return isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm)


def _count(loop: For) -> int:
    """How often a loop runs, where constants tell it; else once, for want of better."""
    if isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm):
        return max(0, loop.stop.value - loop.start.value)
    return 1


class _Names:
    """Handles of the loops of a nest, in which each name stands once, in a function where others may have it too."""

    def __init__(self, nest: Contraction, facts: Facts) -> None:
        every = [loop for loop, _ in loops_around(facts.func)]
        last = every.index(nest.loops[-1])
        self._before = [identifier(loop.var.name) for loop in every[:last] if loop not in nest.loops]
        self._after = [identifier(loop.var.name) for loop in every[last + 1 :]]

    def __call__(self, name: str) -> LoopName:
        word = identifier(name)
        place = self._before.count(word)
        return LoopHandle(name, place) if place or word in self._after else name
