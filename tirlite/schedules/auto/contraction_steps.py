"""Schedules contractions, by steps: a register tile, and one packed operand.

A tile of some rows and some vectors of columns is accumulated in registers: six by four, where a processor has 32 of
them. What its columns read is packed into a panel, for all terms, which many tiles of rows use. A vector of the panel
serves each row of the tile, so it may come from the second-level cache, or the third: blocks of terms were slower for
up to 16384 terms. Source of the tile: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.tiled import TILE_COLUMNS, TILE_ROWS
from tirlite.ir import Add, Expr, For, Load, Mul, Sub, Var, const, i64
from tirlite.ir.printer_names import identifier
from tirlite.ir.walk import mentions
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.pipeline import Pass
from tirlite.schedules.annotate import Parallel
from tirlite.schedules.auto.contraction import Contraction, contractions, least_sizes
from tirlite.schedules.auto.tiling import TILES_OF_BLOCK, Tiling, count_of, is_known, time_of_rows
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.cache_write import CacheWrite
from tirlite.schedules.dots import Dots, are_groups, moves_along
from tirlite.schedules.handle import LoopHandle, LoopName, loops_around, name_of_loop
from tirlite.schedules.inline import InlineLets
from tirlite.schedules.loop_facts import is_dense
from tirlite.schedules.pack import Pack
from tirlite.schedules.reorder import Reorder
from tirlite.schedules.rows_in_place import moves_by_rows
from tirlite.schedules.specialize import Specialize
from tirlite.schedules.split import Fuse, Split, is_flat
from tirlite.schedules.unroll_jam import UnrollJam
from tirlite.schedules.vectorize import Vectorize

Sizes = tuple[tuple[str, int | str], ...]

# The assumed iteration count of a loop whose count is not constant.
_SOME = 16
# A narrower last vector pays if it saves at least this part of all lanes.
_PART_SAVED = 1 / 32
# The bytes of a sum, equal to those of a group of terms.
_GROUP_BYTES = 4
# The fewest rows for which the processor's tile instructions pay.
_FEWEST_TILED = 7
_BYTES = ("i8", "u8")
# From this many terms on, tiles take twice as many columns, as rows come from the L2 cache.
_LONG_SUMS = 512
# Processors with vectors of this many bytes have masked loads and stores.
MASKED_BYTES = 32
# Copying the windows of a column takes as long as computing this many rows of results, or longer. It is saved, but the
# columns between rows of results are computed in vain.
_ROWS_OF_COPY = 4
# Shorter sums leave too little to do for each vector that is stored across the end of a row.
_FEWEST_TERMS = 128
# More rows of windows than this may be too many that lie a power of two apart for the second-level cache.
_MOST_ROWS = 384
# Of fewer columns, the last block is too large a part.
_FEWEST_COLUMNS = 1024


def scheduled(facts: Facts, tiling: Tiling) -> Trace:
    """The steps that schedule the contractions of a function: the last nest first."""
    trace = Trace(facts)
    for found in reversed([*contractions(facts, tiling)]):
        sizes = sizes_in_place(found, facts, tiling)
        forms = _forms(found, tiling)
        if sizes is not None:
            each = replace(found, flat=found.around, is_in_place=True)
            if trace.attempt(partial(trace.takes, steps(each, trace.facts, tiling, sizes))):
                trace.figures.append(tiling.figures(_lanes(each, tiling), each.element, 0))
                name = f"{found.loops[0].var.name}.else"
                rest = [each for each in contractions(trace.facts, tiling) if each.loops[0].var.name == name]
                forms = _forms(rest[-1], tiling) if sizes and rest else []
        # If a step is refused, the next form is tried; if all fail, the nest stays as it is.
        for each, by in forms:
            if trace.attempt(partial(trace.takes, steps(each, trace.facts, by))):
                rows = TILE_ROWS if _goes_by_tiles(each, by) else 0
                trace.figures.append(by.figures(_lanes(each, by), each.element, rows))
                break
    return trace


def sizes_in_place(nest: Contraction, facts: Facts, tiling: Tiling) -> Sizes | None:
    """The conditions for a convolution to read windows in place; None if that never pays.

    They are on sizes that are not constants. Rows are then a little longer than those of the results.
    """
    flat, packed, columns = nest.around, nest.packed, nest.columns
    special = (nest.halves, nest.cut, nest.keeper)
    if flat is None or any(each is not None for each in special) or len(packed.indices) < 2:
        return None
    gap = facts.space.size(packed.buffer.shape[-1]) - facts.space.size(columns.count)
    if not (isinstance(gap, int) and gap >= 0 and moves_by_rows(packed, flat.var, columns.var)):
        return None
    wanted: list[tuple[tuple[For, ...], int, tuple[For, ...], int]] = [
        (nest.rows, 1, (), tiling.strided_rows),
        (nest.terms, 1, (), _FEWEST_TERMS),
        ((), _MOST_ROWS, tuple(each for each in nest.terms if not mentions(packed.indices[-1], each.var)), 1),
        ((columns,), 1, (), tiling.row_bytes // nest.element // 2),
        ((flat, columns), 1, (), _FEWEST_COLUMNS),
        ((columns,), _ROWS_OF_COPY, nest.rows, gap),
    ]
    found: list[tuple[str, int | str]] = []
    for loops, factor, others, least in wanted:
        if all(map(is_known, (*loops, *others))):
            if factor * prod(map(count_of, loops)) < least * prod(map(count_of, others)):
                return None
            continue
        more, few = _product(factor, loops), _product(least, others)
        found.append((str(more), int(few) if few.isdigit() else few))
    return tuple(found)


def _product(factor: int, loops: tuple[For, ...]) -> str:
    """The product of a factor and of the iterations of loops, as `specialize` takes it."""
    known = factor * prod(count_of(each) for each in loops)
    names = [each.var.name for each in loops if not is_known(each)]
    return " * ".join(([str(known)] if known != 1 or not names else []) + names)


def _forms(found: Contraction, tiling: Tiling) -> list[tuple[Contraction, Tiling]]:
    """The forms of a contraction whose operand is packed, the best one first."""
    forms = [(found, tiling)]
    if found.keeper is not None:
        forms.append((replace(found, keeper=None), tiling))
    if found.flat is not None:
        forms.append((replace(found, flat=None), tiling))
    if _goes_by_tiles(found, tiling):
        forms.append((found, replace(tiling, has_tiles=False)))
    return forms


def steps(nest: Contraction, facts: Facts, tiling: Tiling, least: Sizes | None = None) -> Iterator[Pass]:
    """The steps for a contraction of at least these sizes. Handles identify its loops even if others share names."""
    flat = nest if nest.flat is None else _flattened(nest, nest.flat)
    named, lanes = _LoopHandles(nest, facts), _lanes(flat, tiling)
    least = least_sizes(nest, tiling) if least is None else least
    if least is None:
        return
    yield from (InlineLets(named(each.var.name)) for each in nest.named)
    if nest.cut is not None:
        from tirlite.schedules.reorder import Distribute

        yield Distribute(named(nest.cut.var.name), named(nest.loops[0].var.name))
    if least:
        yield Specialize(named(nest.loops[0].var.name), least)
    first, *others = nest.rows
    by = _rows_of_block(flat, lanes, tiling)
    is_split = not is_known(first) or count_of(first) > by
    shared = [each.var.name for each in (*nest.batches, *([first] if is_split else []), nest.columns)]
    yield from (Parallel(named(each)) for each in shared if not (nest.is_prepacked or nest.is_shared))
    if nest.flat is not None:
        yield from _fused(nest, nest.flat, named)
        nest = flat
    yield Split(named(nest.columns.var.name), lanes)
    if is_split:
        yield Split(named(first.var.name), by)
    outer, within = named(f"{nest.columns.var.name}.outer"), named(f"{nest.columns.var.name}.inner")
    batches = [each.var.name for each in nest.batches]
    blocks = [f"{first.var.name}.outer"] if is_split else []
    rows = [f"{first.var.name}.inner" if is_split else first.var.name, *(each.var.name for each in others)]
    summed = nest.terms if nest.dots is None else _by_groups(nest, nest.dots[1])
    terms = [named(each.var.name) for each in summed]
    order = (*map(named, (*batches, *blocks)), outer, *map(named, rows), within, *(terms if nest.is_perfect else ()))
    yield Reorder(order)
    has_masks = tiling.vector_bytes >= MASKED_BYTES
    if nest.dots is not None:
        if summed != nest.terms and not nest.is_perfect:
            yield Reorder((*terms,))
        yield _groups(nest, summed, order[0], outer, (*terms, within), lanes, tiling)
    elif not (nest.is_prepacked or nest.is_in_place):
        if nest.halves is not None:
            own = [name for each, name in zip((first, *others), rows, strict=True) if mentions(nest.halves, each.var)]
            yield Pack(nest.halves.buffer.name, outer, (*map(named, own), *terms), cast=nest.kind)
        if not nest.is_panel or nest.is_padded:
            yield from _panel(nest, named, (*terms, within), lanes, has_masks=has_masks)
    if not nest.is_local:
        yield CacheWrite(nest.store.buffer.name, within)
    yield Vectorize(within, _widths(nest, lanes, tiling), padded=True, masked=has_masks)
    by_tiles, most = _goes_by_tiles(nest, tiling), tiling.rows_of(lanes, nest.element)
    if (together := TILE_ROWS if by_tiles else _together(nest.rows[-1], most)) > 1:
        yield UnrollJam(named(rows[-1]), together, by_tiles)
    path = [*batches, *blocks, f"{nest.columns.var.name}.outer"]
    # A batch loop that the number of columns depends on cannot be fused.
    around = [place for place, each in enumerate(nest.batches, 1) if mentions(nest.columns.stop, each.var)]
    for place in reversed(range(max(around, default=0) + 1, len(path))):
        yield Fuse(named(path[place - 1]), named(".".join(path[place:])))


def _fused(nest: Contraction, around: For, named: _LoopHandles) -> Iterator[Pass]:
    """The steps that fuse the loop `around` with its columns, and so rows of the result, or of the operand in place."""
    inside = (around, nest.columns, *nest.rows, *(nest.terms if nest.is_perfect else ()))
    outside = (each for each in nest.spatial if each not in inside)
    yield Reorder((*(named(each.var.name) for each in (*outside, *inside)),))
    if nest.is_in_place and not nest.is_local:
        yield CacheWrite(nest.store.buffer.name, named(nest.rows[-1].var.name))
    rows_of = nest.packed.buffer.name if nest.is_in_place else None
    yield Fuse(named(around.var.name), named(nest.columns.var.name), flat=not nest.is_in_place, rows_of=rows_of)


def _flattened(nest: Contraction, around: For) -> Contraction:
    """The contraction after fusing the loop `around` with its columns."""
    columns = nest.columns
    stop: Expr = folded(Mul(around.count, columns.count))
    if nest.is_in_place:
        width = nest.packed.buffer.shape[-1]
        stop = folded(Add(Mul(Sub(around.count, const(1, i64)), width), columns.count))
    one = columns.replaced(var=Var(f"{around.var.name}.{columns.var.name}"), stop=stop)
    spatial = tuple(one if each is columns else each for each in nest.spatial if each is not around)
    if nest.is_in_place:
        return replace(nest, columns=one, spatial=spatial, is_perfect=False, is_local=True)
    store, packed = nest.store, nest.packed
    store = store.replaced(buffer=replace(store.buffer, name=f"{store.buffer.name}.flat"))
    if is_flat(packed, around, columns):
        packed = packed.replaced(buffer=replace(packed.buffer, name=f"{packed.buffer.name}.flat"))
    return replace(nest, columns=one, spatial=spatial, store=store, packed=packed)


def _lanes(nest: Contraction, tiling: Tiling) -> int:
    """The lanes in a row of a tile; without a copy, vectors must not read past the last column."""
    lanes, count = tiling.lanes(nest.element, nest.columns), count_of(nest.columns)
    is_wide = not is_known(nest.columns) or count >= 2 * lanes
    is_long = not all(map(is_known, nest.terms)) or prod(map(count_of, nest.terms)) >= _LONG_SUMS
    if _goes_by_tiles(nest, tiling) and is_wide and is_long:
        return 2 * lanes
    whole = count & -count  # the largest power of two that divides it
    is_read = nest.is_prepacked and nest.dots is None
    return min(lanes, whole) if is_read and is_known(nest.columns) and whole > 1 else lanes


def _widths(nest: Contraction, lanes: int, tiling: Tiling) -> tuple[int, ...]:
    """The lanes of all vectors, and those of a narrower last one, if it saves a good part of the whole."""
    least = max(2, tiling.vector_bytes // nest.element)
    if nest.is_in_place:
        return (lanes,)
    if _goes_by_tiles(nest, tiling):
        least = TILE_COLUMNS
    if not is_known(nest.columns):
        return (lanes, least) if least < lanes else (lanes,)
    count = count_of(nest.columns)
    rest, last = count % lanes, lanes
    while rest and last % 2 == 0 and last // 2 >= max(rest, least):
        last //= 2
    saves = lanes - last > _PART_SAVED * count or nest.dots is not None
    return (lanes, last) if last < lanes and saves else (lanes,)


def _moves(nest: Contraction, terms: tuple[For, ...], lanes: int, tiling: Tiling) -> bool:
    """Whether other terms move whole vectors along columns of a buffer that the kernel has packed itself."""
    (first, _), left = nest.dots or (("", ""), nest.packed)
    is_exact = is_known(nest.columns) and count_of(nest.columns) % lanes in (0, _widths(nest, lanes, tiling)[-1])
    has_room = nest.is_prepacked and moves_along(nest.packed, terms, nest.columns)
    return has_room and is_exact and left.dtype.name == first


def _groups(
    nest: Contraction,
    summed: tuple[For, ...],
    outside: LoopName,
    at: LoopName,
    axes: tuple[LoopName, ...],
    lanes: int,
    tiling: Tiling,
) -> Dots:
    """The step that sums by groups of terms; tile instructions take bytes of any signs."""
    types, left = nest.dots or (("", ""), nest.packed)
    if _goes_by_tiles(nest, tiling):
        types = left.dtype.name, nest.packed.dtype.name
    return Dots(outside, at, axes, lanes, types, _moves(nest, summed, lanes, tiling), tiling.masks_bytes)


def _panel(
    nest: Contraction, named: _LoopHandles, axes: tuple[LoopName, ...], lanes: int, *, has_masks: bool
) -> Iterator[Pass]:
    """The steps that pack what a vector of columns reads, for all terms."""
    packed, outer = nest.packed.buffer, named(f"{nest.columns.var.name}.outer")
    is_near = nest.flat is not None or is_dense(nest.packed.indices, nest.columns.var)
    is_one = has_masks and is_near and packed.dtype.bytes in (4, 8)
    if nest.is_padded:
        from tirlite.schedules.pack_padded import PackPadded

        yield PackPadded(packed.name, outer, axes, lanes)
    elif nest.keeper is not None:
        yield Pack(packed.name, named.around(nest.keeper), (outer, *axes), lanes, is_one, nest.cast)
    else:
        yield Pack(packed.name, outer, axes, lanes, is_one, nest.cast)
    if nest.is_dense and not nest.is_padded and not is_one:
        yield Vectorize(named(f"{packed.name}.{nest.columns.var.name}.inner"), (lanes,), padded=True)


def _rows_of_block(nest: Contraction, lanes: int, tiling: Tiling) -> int:
    """How many iterations of the first loop over rows share a panel, in whole tiles if that is the tile's loop.

    Fewer if panels alone do not give each worker enough; an unknown number of columns counts as a few uneven panels.
    """
    first, *others = nest.rows
    inside = prod(max(1, count_of(each)) if is_known(each) else _SOME for each in others)
    tiles = tiling.block_tiles if nest.halves is None else TILES_OF_BLOCK
    rows = tiles * (TILE_ROWS if _goes_by_tiles(nest, tiling) else tiling.rows)
    if nest.is_prepacked or nest.is_shared:
        # A loop around is parallel, so that one worker runs all of this.
        tiling = replace(tiling, workers=1)
    if all(each is nest.columns or is_known(each) for each in nest.spatial):
        batches, tile = prod(map(count_of, nest.batches)), tiling.rows_of(lanes, nest.element)
        whole, rest = divmod(count_of(nest.columns), lanes) if is_known(nest.columns) else (2 * tiling.workers + 1, 0)
        panels = ([lanes] * whole + [_widths(nest, lanes, tiling)[-1]] * bool(rest)) * batches
        tile = TILE_ROWS if _goes_by_tiles(nest, tiling) else tile
        rows = tiling.rows_of_block(max(1, count_of(first)) * inside, panels, -(-rows // tile), tile)
    return -(-rows // inside)


def _goes_by_tiles(nest: Contraction, tiling: Tiling) -> bool:
    """Whether sums of bytes use the processor's tile instructions."""
    rows, is_of_bytes = nest.rows[-1], nest.dots is not None and nest.dots[0][0] in _BYTES
    return tiling.has_tiles and is_of_bytes and (not is_known(rows) or count_of(rows) >= _FEWEST_TILED)


def _together(loop: For, most: int) -> int:
    """The rows of a tile: for a small known number, those that take the least time, including the remainder."""
    if not is_known(loop) or (count := count_of(loop)) >= TILES_OF_BLOCK * most:
        return most
    rows = range(min(most, count), 0, -1)
    return min(rows, key=lambda each: (time_of_rows(count, each, most), count % each > 0), default=1)


def _by_groups(nest: Contraction, left: Load) -> tuple[For, ...]:
    """The loops over terms, last the one to group: one whose groups lie together in memory, else the longest one."""
    terms, group = nest.terms, _GROUP_BYTES // max(1, left.dtype.bytes)
    lying = [loop for loop in terms if nest.is_panel and are_groups(nest.packed, nest.columns, loop)]
    lying += [loop for loop in terms if count_of(loop) % group == 0 and is_dense(left.indices, loop.var)]
    last = next(iter(lying), max(terms, key=lambda loop: count_of(loop) if is_known(loop) else _SOME))
    return (*(each for each in terms if each is not last), last)


class _LoopHandles:
    """Gives handles for the loops of a nest with unique names, in a function whose other loops may share these."""

    def __init__(self, nest: Contraction, facts: Facts) -> None:
        self._every = every = [loop for loop, _ in loops_around(facts.func)]
        last = every.index(nest.loops[-1])
        self._before = [identifier(loop.var.name) for loop in every[:last] if loop not in nest.loops]
        self._after = [identifier(loop.var.name) for loop in every[last + 1 :]]

    def around(self, loop: For) -> LoopName:
        """The handle for a loop that this nest stands in; the steps for another nest in it may have rebuilt it."""
        return name_of_loop(self._every, loop.var)

    def __call__(self, name: str) -> LoopName:
        word = identifier(name)
        place = self._before.count(word)
        return LoopHandle(name, place) if place or word in self._after else name
