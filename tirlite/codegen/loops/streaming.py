"""Non-temporal stores, past the caches, of results that are larger than any cache and that the kernel does not read.
An ordinary store first reads the cache line that it writes to: for such results, a third or half of all memory traffic.
The size is tested on entry, where `tirlite.holds` tells what the caches of this machine hold, and the alignment of 16
bytes at each store; both branches are predictable. Buffers marked
`nontemporal` skip the test of the size. No line may be written by both kinds of stores: it would be read back from
memory, at the cost of forty lines. Rows of whole lines, and contiguous rows of whole vectors, are stored non-temporally
throughout. Other rows start anywhere: their first two vectors and the last ones are ordinary stores that overlap the
others, so that the rest covers whole lines.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial, reduce

from tirlite.analysis.loops.streams import PART, held, results
from tirlite.codegen import memory
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import Value, integer
from tirlite.codegen.loops.ahead import Prefetch, emit
from tirlite.codegen.loops.estimate import goes_over_the_rest
from tirlite.codegen.loops.next_rows import next_rows
from tirlite.codegen.memory import Place
from tirlite.ir.checked import mask_of
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Ramp
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, AttrKey, AttrStmt, For, Let, Store
from tirlite.ir.trampoline import run
from tirlite.ir.walk import statements_of, walk
from tirlite.record import record
from tirlite.target.convention import HOLDS

# The least width and alignment of a non-temporal store, in bytes.
_ALIGNMENT = 16
# The bytes of a cache line.
_LINE = 64


@record(eq=False)
class Past:
    """When a store is non-temporal: if `large` is true, or always if it is None. `asked`: its prefetches."""

    large: Value | None
    prefetches: Sequence[Prefetch] = ()


def streamed_stores(func: PrimFunc, out: KernelFunction, places: Mapping[Buffer, Place]) -> dict[Store, Past]:
    """The vector stores to non-temporal buffers: parameters that nothing reads and that may be large.

    Between two such stores there is no inner loop, as a line would be written in parts. Stores to buffers marked
    `nontemporal` always are.
    """
    processor = out.module.processor
    if processor.family != "x86-64":
        return {}
    past = results(func, processor)
    loops = (loop for loop in statements_of(func.body, For) if loop.step > 1 and not goes_over_the_rest(loop))
    found = [store for loop in loops for store in _stores(loop)]
    kept = [store for store in found if store.buffer in past]
    prefetches = next_rows(func.body, frozenset(kept), places) if kept else {}
    sized = {store: Past(large, prefetches.get(store, ())) for store, large in _if_large(kept, out, places).items()}
    return {**sized, **dict.fromkeys(_marked(func), Past(None))}


def _if_large(stores: list[Store], out: KernelFunction, places: Mapping[Buffer, Place]) -> dict[Store, Value]:
    """By store, whether all buffers together exceed the caches and its own is a large enough part of them."""
    if not stores:
        return {}
    sizes = {
        buffer: reduce(out.product, place.extents, integer(place.buffer.dtype.bytes))
        for buffer, place in places.items()
    }
    total = reduce(partial(out.op, "add"), sizes.values())
    large = _exceeds_caches(out, total)
    parts = {buffer: out.op("mul", sizes[buffer], integer(PART)) for buffer in {store.buffer: None for store in stores}}
    past = {buffer: out.op("and", large, out.compare("icmp uge", part, total)) for buffer, part in parts.items()}
    return {store: past[store.buffer] for store in stores}


def _exceeds_caches(out: KernelFunction, total: Value) -> Value:
    """Whether arrays of so many bytes are more than the caches hold; exported code goes by what a processor has."""
    large = out.compare("icmp ugt", total, integer(held(out.module.processor)))
    if out.module.exported:
        return large
    out.module.asks_caches = True
    before, ask, known = out.block, out.label("ask"), out.label("known")
    out.branch_if(large, ask, known)
    out.start(ask)
    not_held = out.compare("icmp eq", out.call(i64, HOLDS, total), integer(0))
    out.branch(known)
    out.start(known)
    return out.phi(large.dtype, (large, before), (not_held, ask))


def _marked(func: PrimFunc) -> Iterator[Store]:
    """The vector stores in attributes `nontemporal`."""
    for attr in statements_of(func.body, AttrStmt):
        if attr.key is AttrKey.NONTEMPORAL:
            for stmt in statements_of(attr.body, Store):
                if stmt.buffer is attr.buffer and _is_whole(stmt, _ALIGNMENT):
                    yield stmt


def _stores(loop: For) -> Iterator[Store]:
    """The stores of a vectorized loop that write whole cache lines."""
    if loop.body.kinds <= {Store, Let, Allocate}:
        for stmt in loop.body.stmts:
            if isinstance(stmt, Store) and stmt.value.dtype.lanes == loop.step and _is_whole(stmt, _LINE):
                yield stmt


def _is_whole(store: Store, least: int) -> bool:
    """Whether a store is an unmasked vector of at least `least` bytes."""
    dtype = store.value.dtype
    return mask_of(store.indices) is None and not dtype.is_bool and dtype.lanes * store.buffer.dtype.bytes >= least


def store(
    values: Expressions, place: Place, pointer: Value, value: Value, note: str, how: Past, shifted: Shifted | None
) -> None:
    """Stores a vector, non-temporally if its buffer is large and no line is written by both kinds of stores."""
    out, large = values.out, how.large
    assert isinstance(out, KernelFunction)
    low = integer((_ALIGNMENT if large is None else _LINE) - 1)
    if shifted is not None:
        low = shifted.alignment
    address = out.cast("ptrtoint", pointer, i64)
    streams = out.compare("icmp eq", out.op("and", address, low), integer(0))
    if large is not None:
        is_between = shifted.is_between if shifted is not None else _has_whole_lines(out, place)
        streams = out.op("and", out.op("and", large, streams), is_between)
    past, through, done = out.label("past"), out.label("through"), out.label("stored")
    out.branch_if(streams, past, through)
    out.start(past)
    hint = f"{note}, !nontemporal {out.module.node('i32 1')}"
    out.effect(f"store {value.typed}, ptr {pointer.text}, align {_ALIGNMENT}{hint}", value, pointer)
    for prefetch in how.prefetches:
        emit(values, prefetch)
    out.branch(done)
    out.start(through)
    memory.store(out, place, pointer, value, note)
    out.branch(done)
    out.start(done)
    out.streams = True


def _has_whole_lines(out: FunctionText, place: Place) -> Value:
    """Whether all rows of an array start at a cache line, if the first one does."""
    size = out.op("mul", place.extents[-1], integer(place.buffer.dtype.bytes))
    return out.compare("icmp eq", out.op("and", size, integer(_LINE - 1)), integer(0))


@record
class StoredRow:
    """The layout of a row that a loop stores, computed before the loop.

    `follows`: the row continues a contiguous one, so all of it is stored non-temporally.
    `by_lines`: the rows consist of whole lines; so is all of these.
    `shifts`: else, the loop is shifted by `shift` elements, and all but the ends of the row is.
    """

    follows: Value
    by_lines: Value
    shifts: Value
    shift: Value


class Shifted:
    """A loop whose vectors are moved to start at cache lines; it has one more iteration, `count` in all.
    The first vector still starts, and the last one ends, with the row. If the row is not shifted, the iterations are
    the original ones.
    """

    def __init__(self, out: FunctionText, step: int, bounds: tuple[Value, Value], count: Value, row: StoredRow) -> None:
        self.out, self.step, self.row, (self.start, self.stop) = out, step, row, bounds
        self.count = out.op("add", count, out.cast("zext", row.shifts, i64))
        moved = out.select(row.shifts, out.op("sub", row.shift, integer(step)), integer(0))
        self.first = out.op("add", self.start, moved)
        self.last = out.op("add", self.start, out.op("mul", out.op("sub", count, integer(1)), integer(step)))
        self.alignment = out.select(row.follows, integer(_ALIGNMENT - 1), integer(_LINE - 1))
        self.is_whole = out.op("or", row.follows, row.by_lines)
        self.is_between = self.is_whole

    def variable(self, counter: Value) -> Value:
        """The loop variable of an iteration; also sets `is_between` for the stores of that iteration.
        Two vectors precede the non-temporal ones. All others start at a line, but for the last one, which ends with the
        row.
        """
        out = self.out
        there = out.op("add", self.first, out.op("mul", counter, integer(self.step)))
        begun = out.compare("icmp uge", counter, integer(_ENDS))
        goes_on = out.compare("icmp sle", out.op("add", there, integer(_ENDS * self.step)), self.stop)
        is_inside = out.op("and", self.row.shifts, out.op("and", begun, goes_on))
        self.is_between = out.op("or", self.is_whole, is_inside)
        return out.intrinsic("smin", out.intrinsic("smax", there, self.start), self.last)


# The ordinary vectors at either end of a row, and the fewest iterations of a loop that gains by shifting.
_ENDS = 2
_FEWEST = 16


def shifted(
    values: Expressions, loop: For, bounds: tuple[Value, Value], count: Value, streamed: Mapping[Store, Past]
) -> Shifted | None:
    """The shifted form of a loop with non-temporal stores; None if its iterations may not overlap.

    They may if the loop writes only what nothing reads.
    """
    past = {store.buffer for store, how in streamed.items() if how.large is not None}
    store = next(stmt for stmt in loop.body.stmts if isinstance(stmt, Store) and stmt in streamed)
    large = streamed[store].large
    if large is None or not isinstance(store.indices[-1], Ramp) or not _may_overlap(loop, store, past):
        return None
    out = values.out
    before, look, looked = out.block, out.label("look"), out.label("looked")
    out.branch_if(out.op("and", large, out.compare("icmp ne", count, integer(0))), look, looked)
    out.start(look)
    row = _row(values, loop, store, bounds[0], count)
    behind = out.block
    out.branch(looked)
    out.start(looked)
    never = Value(row.shifts.dtype, "false")
    follows, by_lines, shifts = (
        out.phi(never.dtype, (never, before), (each, behind)) for each in (row.follows, row.by_lines, row.shifts)
    )
    shift = out.phi(i64, (integer(0), before), (row.shift, behind))
    return Shifted(out, loop.step, bounds, count, StoredRow(follows, by_lines, shifts, shift))


def _row(values: Expressions, loop: For, store: Store, start: Value, count: Value) -> StoredRow:
    """The layout of the row that a vectorized loop stores."""
    out, place = values.out, values.environment.places[store.buffer]
    values.environment.variables[loop.var] = start
    pointer = run(values.pointers(place, store.indices))[0]
    address, width = out.cast("ptrtoint", pointer, i64), place.extents[-1]
    behind = out.op("and", out.op("sub", integer(0), address), integer(_LINE - 1))
    is_all = out.compare("icmp eq", out.op("mul", count, integer(loop.step)), width)
    low = out.op("and", address, integer(_ALIGNMENT - 1))
    follows = out.op("and", is_all, out.compare("icmp eq", low, integer(0)))
    by_lines = out.op("and", _has_whole_lines(out, place), out.compare("icmp eq", behind, integer(0)))
    is_long = out.compare("icmp uge", count, integer(_FEWEST))
    is_aligned = out.op("or", follows, by_lines)
    shifts = out.op("and", is_long, out.op("xor", is_aligned, Value(is_long.dtype, "true")))
    _fetch_end(out, pointer, count, loop.step * place.buffer.dtype.bytes, shifts)
    return StoredRow(
        follows, by_lines, shifts, out.op("lshr", behind, integer(place.buffer.dtype.bytes.bit_length() - 1))
    )


def _fetch_end(out: FunctionText, row: Value, count: Value, size: int, shifts: Value) -> None:
    """Prefetches for writing the lines where a row of `count` vectors of `size` bytes ends and the next one begins."""
    before, fetch, done = out.label("end"), out.label("fetch"), out.label("fetched")
    out.branch_if(shifts, before, done)
    out.start(before)
    end = out.move(row, out.op("mul", count, integer(size)), flags="")
    out.branch(fetch)
    out.start(fetch)
    following = out.later(i64)
    line = out.phi(i64, (integer(-_ENDS * size), before), (following, fetch))
    out.prefetch(out.move(end, line, flags=""), level=1, writes=True)
    out.define_later(following, f"add nsw {line.typed}, {_LINE}", line)
    note = out.loop_metadata('!{!"llvm.loop.unroll.disable"}')
    out.branch_if(out.compare("icmp slt", following, integer((_ENDS + 1) * size)), fetch, done, note)
    out.start(done)


def _may_overlap(loop: For, store: Store, past: Container[Buffer]) -> bool:
    """Whether iterations write only what nothing reads, and the store's address is known before the loop."""
    nodes = [*walk(*loop.body.stmts)]
    own = {node.buffer for node in nodes if isinstance(node, Allocate)}
    named = {node.var for node in nodes if isinstance(node, Let)}
    is_apart = all(node.buffer in own or node.buffer in past for node in nodes if isinstance(node, Store))
    return is_apart and named.isdisjoint(walk(*store.indices))
