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
from tirlite.rewrite.forms import Form, Limits
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

# The rows of a tile. All temporaries of it take a part of the last cache at most: what is read and written beside them
# is fetched ahead for as long as rows go on, which counts for more than that tiles stay in the second, or in the first.
_ROWS = 16
_PART = 8
# So few elements of a row make a tile at least, and this many at most.
_FEWEST, _MOST = 128, 4096
# A row is longer than a power of two by so many lines of a cache: the beginnings of all rows, which are all that there
# is of narrow arrays, would take each other's place there.
_LINES = 1
# Vectors of what is computed take this many lines at most.
_WIDEST = 4
# Elements that are computed more often than that, on average, are left where they are.
_MUCH = 1.2
# Arrays are small that take such a part of the second cache with the temporaries, which take so many halves of that at
# most; half of it where workers share tiles. Of the whole cache nests in turn took 1.1 to 1.6 times as long as tiles.
_SMALL, _HALVES = 0.5, (1, 2, 4, 8)
# This many loads change the type of what they load, rather than have that done once.
_MOST_READS = 6
# This many nests before one are looked at.
_MOST_FILLS = 16
_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)


@record(eq=False)
class Chain:
    """A nest, by the variable of its outermost loop, and those before it that fill temporaries which it reads."""

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
    # The last nest first: it takes in those before it.
    while left := [chain for chain in chains(trace.facts) if chain.nest not in done]:
        done.add(left[-1].nest)
        if not trace.attempt(partial(_join, trace, left[-1], processor)) and form is not Form.SMALL:
            has_tiles |= _tile(trace, left[-1], processor, form)
    if form is Form.USUAL and has_tiles:
        trace.limits = trace.limits.beside(Limits(small_below=_small_below(whole, target)))
    return trace


def _small_below(facts: Facts, target: Target) -> int:
    """The bytes of all arrays below which tiles are not worth what they compute twice, or hand to workers; else 0.

    Temporaries that may be large where arrays are small keep to tiles.
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
    """The chains of a function, in program order: nests that read what others before have filled, in one block."""
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
    """The loop, and those that are all there is in the one before."""
    return [loop, *takewhile(_is_plain, chain_from(loop)[1:])]


def _is_copy(func: PrimFunc, buffer: Buffer) -> bool:
    """Whether elements are those of another array, as they lie there, in another type, and few nests' loads read them.

    To change the type again takes less than to store what is wider, and to load that.
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
    """Whether a nest was moved to where one element of what it fills is read, and that once."""
    innermost = _loops(trace.loop(chain.nest))[-1]
    inside = list(statements_of(innermost.body, For))
    for var in reversed(chain.fills):
        first = trace.loop(var)
        if any(stored_in(first) & _read(each) for each in inside):
            continue
        step = ComputeAt(trace.name(var), trace.name(innermost.var))
        try:
            windows = step.windows(trace.facts)
            if len(windows) == len(_loops(first)) and all(each.extent == 1 for each in windows.values()):
                trace.apply(step)
                return True
        except KernelError:
            continue
    return False


def _join(trace: Trace, chain: Chain, processor: Processor) -> bool:
    """Has a nest compute what it reads of a single one before; whether it does."""
    if len(chain.fills) > 1:
        return False
    loops, fill = _loops(trace.loop(chain.nest)), _loops(trace.loop(chain.fills[0]))
    return join_rows(trace, loops, fill, processor, _ROWS)


def _tile(trace: Trace, chain: Chain, processor: Processor, form: Form) -> bool:
    """The nest by tiles, each after what it reads: higher ones, where too much lies around these; whether it can."""
    least = _rows(trace, chain, processor, form)
    sizes = (_sizes(trace, chain, rows, processor) for rows in (least, 2 * least))
    return any(trace.attempt(partial(_in_tiles, trace, chain, each, processor, form)) for each in sizes)


def _in_tiles(trace: Trace, chain: Chain, sizes: tuple[int, int], processor: Processor, form: Form) -> bool:
    """Has the nest go by tiles; whether it can, and elements are not computed too often."""
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
    """Has results go past the caches: in a version for large arrays, where others may come.

    In the caches, rows of 16 by these vectors and what they leave took 1.5 times as long as by what LLVM makes of them.
    """
    func = trace.facts.func
    is_known = all(constant_bytes(param) is not None for param in func.arrays)
    if form is Form.USUAL and not is_known and not calls_in(func.body):
        trace.limits = Limits(large_from=held(processor))
        return
    with suppress(KernelError):
        trace.apply(step)


def _widths(trace: Trace, innermost: Var, processor: Processor) -> tuple[int, ...]:
    """The lanes that fill lines of results which nothing reads: those go past the caches that do not hold them.

    What is left of two lines is one, and then quarters, so that short rows have little to do one by one.
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
    """Whether the loop decides where one of these buffers is read."""
    loads = (node for node in loads_in(loop) if node.buffer in read)
    return any(mentions(load.indices, loop.var) for load in loads)


def _rows(trace: Trace, chain: Chain, processor: Processor, form: Form) -> int:
    """How many rows a tile has: of large arrays twice as many, if all its temporaries take half of the second cache."""
    fits = 2 * _ROWS * _MOST * _bytes(trace, chain) <= processor.caches[1] // 2
    return 2 * _ROWS if fits and form is Form.LARGE else _ROWS


def _sizes(trace: Trace, chain: Chain, rows: int, processor: Processor) -> tuple[int, int]:
    """How many iterations of the last two loops make a tile."""
    nests, caches = [trace.loop(var) for var in chain.fills], processor.caches
    more = _LINES * processor.line // min(buffer.dtype.bytes for nest in nests for buffer in stored_in(nest))
    if any(map(_is_clamped, nests)):
        return rows, _MOST + more
    fitting = max(1, caches[-1] // _PART // (rows * _bytes(trace, chain)))
    return rows, min(max(1 << (fitting.bit_length() - 1), _FEWEST), _MOST) + more


def _bytes(trace: Trace, chain: Chain) -> int:
    """The bytes of an element of each temporary that a chain fills, in all."""
    buffers = {buffer for var in chain.fills for buffer in stored_in(trace.loop(var))}
    return sum(each.dtype.bytes for each in buffers)


def _is_clamped(nest: For) -> bool:
    """Whether a nest keeps indices along rows in their range, which takes time at both ends of each row of a tile."""
    loads = (node for node in loads_in(nest) if node.indices)
    return any(isinstance(node, Min | Max) for load in loads for node in walk(load.indices[-1]))


def _moved(trace: Trace, first: Var, blocks: dict[Var, int]) -> float | None:
    """How often a nest now computes an element, for one tile after the other; None where it stays as it is."""
    step = ComputeAt(trace.name(first), trace.name([*blocks][-1]))
    try:
        windows = step.windows(trace.facts)
        # What all tiles of an axis need would be computed for each of them, and have no size that is known.
        is_bounded = len(windows) == len(_loops(trace.loop(first)))
        if not is_bounded or {each.base for each in windows.values()} != {*blocks}:
            return None
        trace.apply(step)
    except KernelError:
        return None
    return prod(each.extent / (each.factor * blocks[each.base]) for each in windows.values())


# This many rows go together.
_TOGETHER = 4
# Each value that is kept for them takes two registers, and all of them half of what there is.
_VECTORS = 2
_COUNTED = (Load, Binary, Unary, Compare, Select)


def join_rows(trace: Trace, loops: list[For], fill: list[For], processor: Processor, tile: int) -> bool:
    """Has a nest of `loops` compute what a nest before stores, for some rows at once; whether that takes less.

    Otherwise tiles of this many rows would be computed right before they are read.
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
    """The variable of the loop around the innermost one that stores into a buffer."""
    for loop, around in loops_around(trace.facts.func):
        if around and any(isinstance(stmt, Store) and stmt.buffer is buffer for stmt in loop.body.stmts):
            return around[-1].var
    raise AssertionError(buffer.name)


def _place(load: Load, loops: list[For]) -> tuple[int, int] | None:
    """How many rows and columns a load lies away from its iteration; None where these do not tell."""
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
    """How many operations compute a value, and load what it is of."""
    count, todo = 0, [value]
    while todo:
        node = todo.pop()
        count += isinstance(node, _COUNTED)
        todo += () if isinstance(node, Load) else node.children()
    return count
