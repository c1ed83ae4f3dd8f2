"""Finds constant rows that a loop of multiply-adds reads one after the other, to prefetch them ahead of it.

The weights of a network are read from memory once per call. Several tiles of sums use the same ones in turn: the first
tile waits for them and the others find them in a cache, so hardware prefetches come too late for the first and do not
help the others. Prefetched a page ahead, weights arrive while products are summed: a chain of convolutions of 128
channels at 14 x 14 by Winograd, with 24 MB of weights, took two thirds of the time.
If the number of tiles that share rows is known, each prefetches its share of the following rows, so that memory has the
time of all tiles. A tile that reads several rows side by side prefetches as many following rows, in the order of
memory, which no hardware prefetcher predicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from tirlite.analysis.loops.patterns import parted
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.llvm.values import integer
from tirlite.ir.checked import is_checked
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import Add, Buffer, Call, Expr, FloorDiv, IntImm, Load, Min, Mul, Ramp, Sub, Var
from tirlite.ir.op import Op
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import For, ForKind, Let, SeqStmt, Store, View
from tirlite.ir.trampoline import run
from tirlite.ir.walk import is_constant, loads_in, mentions, statements_of, variables_in, walk
from tirlite.record import record
from tirlite.target import Processor

# The prefetch distance in bytes: multiplying so many takes longer than loading them.
_AHEAD = 4096
# The bytes of a cache line.
_LINE = 64
# The least bytes of a row worth prefetching.
_ROW = 32
# Prefetched data takes at most this part (a fourth) of the L1 cache, else of the L2 cache.
_PART = 4


@record(eq=False)
class Prefetch:
    """What an iteration prefetches: `bytes` bytes, from `behind` bytes after an element on, into the cache `level`."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    bytes: int
    behind: int = 0
    level: int = 1


def rows_ahead(body: SeqStmt, processor: Processor) -> dict[For, list[Prefetch]]:
    """What each iteration of a loop prefetches, by loop.

    Only arrays that are passed to the function, are not written, and are larger than the L1 cache.
    """
    found = {loop: rows for loop in statements_of(body, For) if (rows := [*_rows(loop)])}
    if not found:
        return {}
    roots = {view.buffer: view.source for view in statements_of(body, View)}
    near = {_root(store.buffer, roots) for store in statements_of(body, Store)}
    for rows in found.values():
        arrays = (_root(row.load.buffer, roots) for row in rows)
        near |= {each for each in arrays if (constant_bytes(each) or processor.caches[0] + 1) <= processor.caches[0]}
    nest = _Nest(body, processor)
    prefetches = defaultdict[For, list[Prefetch]](list)
    for loop, row in ((loop, row) for loop, rows in found.items() for row in rows):
        if _root(row.load.buffer, roots) not in near and (each := nest.prefetch(loop, row)) is not None:
            prefetches[loop].append(each)
    return prefetches


def emit(values: Expressions, prefetch: Prefetch) -> None:
    """Emits the prefetch, of each cache line."""
    out = values.out
    begin = run(values.address(values.environment.places[prefetch.buffer], prefetch.indices))
    for line in range(0, prefetch.bytes, _LINE):
        out.prefetch(out.move(begin, integer(prefetch.behind + line), flags=""), level=prefetch.level)


@record(eq=False)
class _Rows:
    """Rows that a loop reads whole: one per iteration, or, if `along` is not 0, so many side by side.

    `load`: a load from the first row.
    """

    load: Load
    along: int = 0


def _rows(loop: For) -> Iterator[_Rows]:
    """The rows that a loop of multiply-adds reads whole."""
    stores = [stmt for stmt in loop.body.stmts if isinstance(stmt, Store)]
    # LLVM vectorizes loops whose iterations store to different elements, but not if they contain prefetches.
    stay = not any(mentions(stmt.indices, loop.var) for stmt in stores)
    own = {stmt.var for stmt in loop.body.stmts if isinstance(stmt, Let)}
    if loop.step != 1 or not loop.body.kinds <= {Store, Let}:
        return
    sums = [each.value for each in stores if isinstance(each.value, Call) and each.value.op is Op.FMA]
    read: defaultdict[tuple[Buffer, Expr | None], dict[int, Load]] = defaultdict(dict)
    along: defaultdict[tuple[Buffer, Expr | None], dict[int, Load]] = defaultdict(dict)
    for load in loads_in(*sums):
        if len(load.indices) < 2 or any(map(is_checked, load.indices)) or not own.isdisjoint(walk(*load.indices)):
            continue
        if load.indices[-2] is loop.var:
            base, elements = _along(load.indices[-1])
            read[load.buffer, base] |= dict.fromkeys(elements, load)
        elif stay and load.indices[-1] is loop.var:
            base, first = parted(load.indices[-2])
            along[load.buffer, base][first] = load
    for (buffer, _), row in read.items():
        size = _row_bytes(buffer)
        if size >= _ROW and len(row) * buffer.dtype.bytes == size:
            yield _Rows(next(iter(row.values())))
    for rows in along.values():
        if len(rows) > 1 and max(rows) - min(rows) == len(rows) - 1:
            yield _Rows(rows[min(rows)], len(rows))


class _Nest:
    """The loops of a function with their enclosing loops, and what they prefetch."""

    def __init__(self, body: SeqStmt, processor: Processor) -> None:
        self._around = {inner: loop for loop in statements_of(body, For) for inner in statements_of(loop.body, For)}
        self._lets = {let.var: let.value for let in statements_of(body, Let)}
        self._caches = processor.caches
        self._shared: set[tuple[For, Buffer]] = set()

    def prefetch(self, loop: For, rows: _Rows) -> Prefetch | None:
        """The prefetch of one iteration of the loop; None if it would be useless."""
        return self._next_rows(loop, rows.load, rows.along) if rows.along else self._next_panel(loop, rows.load)

    def _next_rows(self, loop: For, load: Load, count: int) -> Prefetch | None:
        """As many following rows, if the enclosing loop reads those next; the last rows are prefetched again."""
        around, (*others, row, _), (*_, all_rows, width) = self._around.get(loop), load.indices, load.buffer.shape
        if around is None or around.step != count or around.var not in self._names([row]) or not _is_all(loop, width):
            return None
        following = Min(Add(row, IntImm(i64, count)), Sub(all_rows, IntImm(i64, count)))
        indices = (*others, following, Mul(loop.var, IntImm(i64, count)))
        size = count * load.buffer.dtype.bytes
        return Prefetch(load.buffer, indices, size, level=self._level(count * _row_bytes(load.buffer)))

    def _next_panel(self, loop: For, load: Load) -> Prefetch | None:
        """An iteration's share of the panel after the one that several tiles read; otherwise a row a page ahead.

        Of several loops over tiles of the same panel, only the first prefetches.
        """
        (*_, width), indices, found = load.buffer.shape, load.indices, self._tiles(loop, load)
        (place, count), (tile, repeats) = map(_place, found[:2]) if found else ((IntImm(i64, 0), 0),) * 2
        size = count * _row_bytes(load.buffer)
        if found is not None and (found[2], load.buffer) in self._shared:
            return None
        if found is None or min(size, repeats - 1) <= 0 or size * _PART > self._caches[1]:
            return Prefetch(load.buffer, (*indices[:-1], IntImm(i64, 0)), _row_bytes(load.buffer), _AHEAD)
        self._shared.add((found[2], load.buffer))
        assert isinstance(width, IntImm)
        share = next(n for n in range(-(-width.value // repeats), width.value + 1) if width.value % n == 0)
        tile = Min(tile, IntImm(i64, width.value // share - 1))
        element = Mul(Add(Mul(tile, IntImm(i64, count)), place), IntImm(i64, share))
        axis = len(indices) - 2 - len(found[0])
        behind = Min(Add(indices[axis], IntImm(i64, 1)), Sub(load.buffer.shape[axis], IntImm(i64, 1)))
        begin = (*indices[:axis], behind, *[IntImm(i64, 0)] * len(found[0]), element)
        return Prefetch(load.buffer, begin, share * load.buffer.dtype.bytes, level=self._level(size))

    def _tiles(self, loop: For, load: Load) -> tuple[list[For], list[For], For] | None:
        """The loops that read all of a panel, the loops around that reuse the same panel, and the next loop outside."""
        each, whole, tiles = loop, list[For](), list[For]()
        indices = load.indices[:-1]
        while len(indices) > 1 and indices[-1] is each.var and _is_all(each, load.buffer.shape[len(indices) - 1]):
            whole.append(each)
            indices = indices[:-1]
            if each not in self._around:
                return None
            each = self._around[each]
        names = self._names(indices)
        while each.var not in names:
            tiles.append(each)
            # A worker's function does not know the variables of loops outside of the parallel one.
            is_shared = each.kind is ForKind.PARALLEL
            if each not in self._around or (is_shared and self._around[each].var not in names):
                return None
            each = self._around[each]
        return whole, tiles, each

    def _level(self, size: int) -> int:
        """The level of the cache for `size` bytes."""
        return 1 if size * _PART <= self._caches[0] else 2

    def _names(self, exprs: Sequence[Expr]) -> set[Var]:
        """The variables that the expressions depend on, through lets."""
        names, left = set[Var](), [*exprs]
        while left:
            new = set(variables_in(left.pop())) - names
            names |= new
            left += (self._lets[each] for each in new if each in self._lets)
        return names


def _place(loops: Sequence[For]) -> tuple[Expr, int]:
    """The number of the current iteration of nested loops, inner first, and the total count; 0 if unknown."""
    number: Expr = IntImm(i64, 0)
    count = 1
    for loop in reversed(loops):
        values = loop.values or ()
        own = FloorDiv(Sub(loop.var, loop.start), IntImm(i64, loop.step))
        number = Add(Mul(number, IntImm(i64, len(values))), own)
        count *= len(values)
    return number, count


def _is_all(loop: For, extent: Expr) -> bool:
    """Whether a loop covers an axis of this extent."""
    return loop.step == 1 and are_equal((loop.start, loop.stop), (IntImm(i64, 0), extent))


def _along(index: Expr) -> tuple[Expr | None, range]:
    """Splits an index along a row into a base and the range of elements that it covers from there."""
    lanes = index.dtype.lanes
    if isinstance(index, Ramp):
        if not is_constant(index.stride, 1):
            return index, range(0)
        index = index.base
    base, first = parted(index)
    if isinstance(base, IntImm):
        return None, range(first + base.value, first + base.value + lanes)
    return base, range(first, first + lanes)


def _row_bytes(buffer: Buffer) -> int:
    """The bytes of a row; 0 if unknown."""
    last = buffer.shape[-1]
    return last.value * buffer.dtype.bytes if isinstance(last, IntImm) else 0


def _root(buffer: Buffer, roots: Mapping[Buffer, Buffer]) -> Buffer:
    while buffer in roots:
        buffer = roots[buffer]
    return buffer
