"""Schedules chains of nests: one fills a temporary, the next one reads it, at its own index and at some around it.

A temporary that is read only at its own index is computed where it is read, and takes no memory. For the others, the
last nest is tiled, and the temporaries of a tile are computed right before it, so that they stay in a cache. The
border of a tile is computed again for its neighbours.

Where a few rows of the last nest need few rows of a temporary, these stay in registers: what is computed for one row
serves those around it, and computing it again for the next rows takes less time than keeping it in a tile. Reading
and writing then overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import takewhile
from math import inf, prod

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import MOST_LANES, whole_rows
from tirlite.analysis.loops.streams import held, results
from tirlite.diag import KernelError
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import (
    Binary,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    Load,
    Max,
    Min,
    Select,
    Unary,
    Var,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import For, ForKind, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import chain_from, loads_in, mentions, statements_of, stored_in, walk, without_number
from tirlite.record import record
from tirlite.rewrite.forms import Form, FormLimits
from tirlite.schedules.annotate import Parallel
from tirlite.schedules.auto.candidates import large_temporaries
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.compute_at import ComputeAt
from tirlite.schedules.handle import loops_around, name_of
from tirlite.schedules.inline import Inline
from tirlite.schedules.reorder import Reorder
from tirlite.schedules.specialize import Specialize
from tirlite.schedules.unroll_jam import UnrollJam
from tirlite.schedules.vectorize import Vectorize
from tirlite.sizes import is_at_most
from tirlite.target import Processor, Target

# The rows of a tile. Its temporaries take at most this part of the last-level cache: long rows, for which the
# prefetchers keep streaming inputs and outputs, are worth more than tiles that fit into L2 or L1.
_ROWS = 16
_PART = 8
# The least and the greatest width of a tile, in elements.
_FEWEST, _MOST = 128, 4096
# Cache lines added to a tile's width: rows a power of two apart would map to the same cache sets.
_LINES = 1
# The widest vectors computed with, in cache lines.
_WIDEST = 4
# No tiling if elements would be computed more often than this, on average.
_MUCH = 1.2
# Arrays are small if they and the temporaries take less than this part of L2; half of that if workers share tiles. For
# data as large as L2, untiled nests took 1.1 to 1.6 times as long as tiles. The temporaries' bytes are bounded by one
# of these numbers of halves of the arrays' bytes.
_SMALL, _HALVES = 0.5, (1, 2, 4, 8)
# A conversion is inlined into at most this many loads.
_MOST_READS = 6
# The number of preceding nests searched for what a nest reads.
_MOST_FILLS = 16
_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)


@record(eq=False)
class Chain:
    """A nest, and those before it that fill temporaries which it reads; by the variables of their outermost loops."""

    nest: Var
    fills: tuple[Var, ...]


def scheduled(facts: Facts, target: Target, form: Form) -> Trace:
    """The steps that schedule the chains of a function."""
    trace, processor = Trace(facts), target.processor
    for buffer in [stmt.buffer for stmt in large_temporaries(facts.func)]:
        if _is_copy(trace.facts.func, buffer):
            trace.attempt(partial(trace.takes, (Inline(name_of(trace.facts.func, buffer)),)))
    while any(_inlined(trace, chain) for chain in [*chains(trace.facts)]):
        pass
    whole, done, has_tiles = trace.facts, set[Var](), False
    # The last nest first, since those before it move into it.
    while left := [chain for chain in chains(trace.facts) if chain.nest not in done]:
        done.add(left[-1].nest)
        if not trace.attempt(partial(_join, trace, left[-1], processor)) and form is not Form.SMALL:
            has_tiles |= _tile(trace, left[-1], processor, form)
    if form is Form.USUAL and has_tiles:
        trace.limits = trace.limits.beside(FormLimits(small_below=_small_below(whole, target)))
    return trace


def _small_below(facts: Facts, target: Target) -> int:
    """The bytes of all arrays below which tiles do not repay their recomputation or parallelism, else 0.

    0 also if the temporaries may be large when the arrays are small.
    """
    arrays = facts.func.arrays
    sizes = [facts.extents.bytes(each) for each in arrays]
    own = [facts.extents.bytes(stmt.buffer) for stmt in large_temporaries(facts.func)]
    if calls_in(facts.func.body) or all(isinstance(each, int) for each in sizes) or None in own:
        return 0
    known, needed = (sum(each for each in found if each is not None) for found in (sizes, own))
    most = next((halves for halves in _HALVES if is_at_most(2 * needed, halves * known)), None)
    part = _SMALL if target.workers == 1 else _SMALL / 2
    return 0 if most is None else int(part * target.processor.caches[1] * 2 / (2 + most))


def chains(facts: Facts) -> Iterator[Chain]:
    """The chains of a function, in program order: nests that read what nests before them in the block have filled."""
    allocated = {stmt.buffer for stmt in large_temporaries(facts.func)}
    blocks = statements_of(facts.func.body, SeqStmt) if allocated else ()
    for block in blocks:
        nests = [stmt for stmt in block.stmts if isinstance(stmt, For) and _is_plain(stmt)]
        filled = [stored_in(nest) & allocated for nest in nests[:-1]]
        for place, nest in enumerate(nests):
            first, fills = max(0, place - _MOST_FILLS), list[Var]()
            wanted = _read(nest) & allocated if any(filled[first:place]) else set[Buffer]()
            for before, found in zip(reversed(nests[first:place]), reversed(filled[first:place]), strict=True):
                if wanted & found:
                    fills.insert(0, before.var)
                    wanted |= _read(before) & allocated
            if fills:
                yield Chain(nest.var, tuple(fills))


def _is_plain(loop: For) -> bool:
    return loop.kind in _PLAIN and loop.step == 1


def _read(stmt: Stmt) -> set[Buffer]:
    return {node.buffer for node in loads_in(stmt)}


def _loops(loop: For) -> list[For]:
    """The loop and those perfectly nested in it."""
    return [loop, *takewhile(_is_plain, chain_from(loop)[1:])]


def _is_copy(func: PrimFunc, buffer: Buffer) -> bool:
    """Whether a buffer is only a converted copy of another array, read by few loads.

    Converting again is cheaper than storing and loading the wider copy.
    """
    reads = sum(load.buffer is buffer for load in loads_in(func.body))
    stores = [stmt for stmt in statements_of(func.body, Store) if stmt.buffer is buffer]
    if len(stores) != 1 or not reads <= _MOST_READS:
        return False
    value = stores[0].value
    while isinstance(value, Cast):
        value = value.value
    return isinstance(value, Load) and are_equal(value.indices, stores[0].indices)


def _inlined(trace: Trace, chain: Chain) -> bool:
    """Moves a nest into the iteration that reads one of its elements, once; returns whether there was one."""
    innermost = _loops(trace.loop(chain.nest))[-1]
    inside = list(statements_of(innermost.body, For))
    for var in reversed(chain.fills):
        first = trace.loop(var)
        if any(stored_in(first) & _read(each) for each in inside):
            continue
        step = ComputeAt(trace.name(var), trace.name(innermost.var))
        try:
            ranges = step.windows(trace.facts)
            if len(ranges) == len(_loops(first)) and all(each.extent == 1 for each in ranges.values()):
                trace.apply(step)
                return True
        except KernelError:
            continue
    return False


def _join(trace: Trace, chain: Chain, processor: Processor) -> bool:
    """Makes a nest compute the rows that it reads of the only nest before; returns whether that was worthwhile."""
    if len(chain.fills) > 1:
        return False
    loops, fill = _loops(trace.loop(chain.nest)), _loops(trace.loop(chain.fills[0]))
    return join_rows(trace, loops, fill, processor, _ROWS)


def _tile(trace: Trace, chain: Chain, processor: Processor, form: Form) -> bool:
    """Tiles the nest, with its temporaries computed before each tile; higher tiles if their border is too much.

    Returns whether it could.
    """
    least = _rows(trace, chain, processor, form)
    sizes = (_sizes(trace, chain, rows, processor) for rows in (least, 2 * least))
    return any(trace.attempt(partial(_in_tiles, trace, chain, each, processor, form)) for each in sizes)


def _in_tiles(trace: Trace, chain: Chain, sizes: tuple[int, int], processor: Processor, form: Form) -> bool:
    """Tiles the nest; returns whether that was possible and does not recompute too much."""
    loops = _loops(trace.loop(chain.nest))
    read = {buffer for var in chain.fills for buffer in stored_in(trace.loop(var))}
    moving = [loop for loop in loops if _moves(loop, read)]
    if not moving:
        return False
    bytes_of_all = _bytes(trace, chain)
    tiled = dict(zip(moving[-2:], sizes[-len(moving) :], strict=True))
    blocks: dict[Var, int] = {}
    inner: list[Var] = []
    for loop in loops:
        if loop in tiled:
            tile, within = trace.split(loop.var, tiled[loop])
            blocks[tile] = tiled[loop]
            inner.append(within)
        elif loop in moving:
            blocks[loop.var] = 1
        else:
            inner.append(loop.var)
    trace.apply(Reorder(tuple(map(trace.name, (*blocks, *inner)))))
    computed = [each for first in reversed(chain.fills) if (each := _moved(trace, first, blocks)) is not None]
    with suppress(KernelError):
        trace.apply(Parallel(trace.name(next(iter(blocks)))))
    if widths := _widths(trace, inner[-1], processor):
        _by_vectors(trace, Vectorize(trace.name(inner[-1]), widths), processor, form)
    most = max(computed, default=inf)
    trace.figures.append(
        f"tiles of at most {sizes[0]} x {sizes[1]} of temporaries that take {bytes_of_all} bytes for each of their "
        f"elements; each is computed {most:.2f} times at most"
    )
    return most <= _MUCH


def _by_vectors(trace: Trace, step: Vectorize, processor: Processor, form: Form) -> None:
    """Vectorizes results that are to bypass the caches: for large arrays only, if sizes vary.

    For results in the caches, LLVM's own vectors are better: these took 1.5 times as long for rows of 16.
    """
    func = trace.facts.func
    is_known = all(constant_bytes(param) is not None for param in func.arrays)
    if form is Form.USUAL and not is_known and not calls_in(func.body):
        trace.limits = FormLimits(large_from=held(processor))
        return
    with suppress(KernelError):
        trace.apply(step)


def _widths(trace: Trace, innermost: Var, processor: Processor) -> tuple[int, ...]:
    """The lanes that fill cache lines of results that nothing reads, if these may exceed the caches; else none.

    The remainder of two lines goes by one line and then by quarters, so that short rows have few scalar iterations.
    """
    func, body = trace.facts.func, trace.loop(innermost).body
    written = stored_in(body)
    stores_alone = body.kinds <= {Store, Let}
    if not written or not stores_alone or not written <= results(func, processor):
        return ()
    line = processor.line
    lanes = line // min(each.dtype.bytes for each in written)
    computed = (node.dtype.bytes for node in walk(body) if isinstance(node, Load | Cast))
    widest = max(computed, default=1)
    widths = (2 * lanes, lanes, lanes // 4)
    return tuple(each for each in widths if each <= MOST_LANES) if lanes * widest <= _WIDEST * line else ()


def _moves(loop: For, read: set[Buffer]) -> bool:
    """Whether the index at which one of these buffers is read depends on the loop."""
    loads = (node for node in loads_in(loop) if node.buffer in read)
    return any(mentions(load.indices, loop.var) for load in loads)


def _rows(trace: Trace, chain: Chain, processor: Processor, form: Form) -> int:
    """The rows of a tile: twice as many for large arrays if all its temporaries fit into half of the L2 cache."""
    fits = 2 * _ROWS * _MOST * _bytes(trace, chain) <= processor.caches[1] // 2
    return 2 * _ROWS if fits and form is Form.LARGE else _ROWS


def _sizes(trace: Trace, chain: Chain, rows: int, processor: Processor) -> tuple[int, int]:
    """The tile sizes of the last two loops."""
    nests, caches = [trace.loop(var) for var in chain.fills], processor.caches
    more = _LINES * processor.line // min(buffer.dtype.bytes for nest in nests for buffer in stored_in(nest))
    if any(map(_is_clamped, nests)):
        return rows, _MOST + more
    fitting = max(1, caches[-1] // _PART // (rows * _bytes(trace, chain)))
    return rows, min(max(1 << (fitting.bit_length() - 1), _FEWEST), _MOST) + more


def _bytes(trace: Trace, chain: Chain) -> int:
    """The total bytes per element of all temporaries of a chain."""
    buffers = {buffer for var in chain.fills for buffer in stored_in(trace.loop(var))}
    return sum(each.dtype.bytes for each in buffers)


def _is_clamped(nest: For) -> bool:
    """Whether a nest clamps indices along rows, which takes time at both ends of each row of a tile."""
    loads = (node for node in loads_in(nest) if node.indices)
    return any(isinstance(node, Min | Max) for load in loads for node in walk(load.indices[-1]))


def _moved(trace: Trace, first: Var, blocks: dict[Var, int]) -> float | None:
    """Moves a nest into the tile loops; returns how often it then computes an element, or None if it stays."""
    step = ComputeAt(trace.name(first), trace.name([*blocks][-1]))
    try:
        ranges = step.windows(trace.facts)
        # Along an axis without a window, each tile would recompute the whole axis, of unknown size.
        is_bounded = len(ranges) == len(_loops(trace.loop(first)))
        if not is_bounded or {each.base for each in ranges.values()} != {*blocks}:
            return None
        trace.apply(step)
    except KernelError:
        return None
    return prod(each.extent / (each.factor * blocks[each.base]) for each in ranges.values())


# Rows computed at once.
_TOGETHER = 4
# Registers per value kept for them; all of these may take half of the registers.
_VECTORS = 2
_COUNTED = (Load, Binary, Unary, Compare, Select)


def join_rows(trace: Trace, loops: list[For], fill: list[For], processor: Processor, tile: int) -> bool:
    """Inlines the nest `fill` into `loops`, for some rows at once; returns whether that takes less than tiles.

    The alternative is tiles of `tile` rows, computed right before they are read.
    """
    store, body = _only_store(fill[-1]), loops[-1].body.stmts
    if store is None or len(loops) < 2 or not all(isinstance(stmt, Store | Let) for stmt in body):
        return False
    loads = [node for node in loads_in(*body) if node.buffer is store.buffer]
    places = [_place(load, loops) for load in loads]
    known = {place for place in places if place is not None}
    if not known or None in places or any(isinstance(node, Call) for node in walk(store.value)):
        return False
    own, rows = _operations(store.value), {row for row, _ in known}
    reach = max(rows) - min(rows)
    computed = {(row + at, column) for row, column in known for at in range(_TOGETHER)}
    kept = _VECTORS * len({row for row, _ in computed})
    by_tiles = own * (tile + reach) / tile + 1 + len(known)
    by_rows = own * len(computed) / _TOGETHER
    if by_rows > by_tiles or 2 * kept > processor.registers:
        return False
    trace.apply(Inline(name_of(trace.facts.func, store.buffer)))
    if len(whole_rows(trace.loop(loops[0].var))) > 1:
        least = _VECTORS * processor.vector_bytes // store.buffer.dtype.bytes
        trace.apply(Specialize(trace.name(loops[0].var), ((loops[-1].var.name, least),)))
    stored = next(stmt.buffer for stmt in loops[-1].body.stmts if isinstance(stmt, Store))
    trace.apply(UnrollJam(trace.name(_around(trace, stored)), _TOGETHER))
    trace.figures.append(
        f"{_TOGETHER} rows at once, which compute {by_rows:.1f} operations for each element of `{store.buffer.name}`; "
        f"tiles of {tile} rows would take {by_tiles:.1f}"
    )
    return True


def _only_store(loop: For) -> Store | None:
    store = loop.body.stmts[0] if len(loop.body.stmts) == 1 else None
    return store if isinstance(store, Store) else None


def _around(trace: Trace, buffer: Buffer) -> Var:
    """The variable of the loop around the innermost one that stores to a buffer."""
    for loop, around in loops_around(trace.facts.func):
        if around and any(isinstance(stmt, Store) and stmt.buffer is buffer for stmt in loop.body.stmts):
            return around[-1].var
    raise AssertionError(buffer.name)


def _place(load: Load, loops: list[For]) -> tuple[int, int] | None:
    """The offset in rows and columns of a load from its iteration; None if it is not constant."""
    row, column = loops[-2].var, loops[-1].var
    if len(load.indices) < 2:
        return None
    apart = [_distance(index, var) for index, var in zip(load.indices[-2:], (row, column), strict=True)]
    if None in apart or any(mentions(index, var) for index in load.indices[:-2] for var in (row, column)):
        return None
    return apart[0] or 0, apart[1] or 0


def _distance(index: Expr, var: Var) -> int | None:
    base, number = without_number(index)
    return number if base is var else None


def _operations(value: Expr) -> int:
    """The number of operations and loads that compute a value."""
    count, todo = 0, [value]
    while todo:
        node = todo.pop()
        count += isinstance(node, _COUNTED)
        todo += () if isinstance(node, Load) else node.children()
    return count
