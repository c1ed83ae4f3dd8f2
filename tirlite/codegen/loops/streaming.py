"""Stores that go past the caches: those of results that no cache holds, and that a kernel does not read.

An ordinary store reads the line that it writes to first, which for such results is a third of all that memory moves, or
a half. Whether a result is that large is decided on entry, whether it lies on 16 bytes where vectors are stored: two
branches that always go the same way. Where `nontemporal` says it of a buffer, its size is not asked.

No line may be stored to in both ways: it would come back from memory, which takes as long as forty lines. Rows of whole
lines go past the caches as they are, and so do rows of whole vectors that follow each other. Other rows begin anywhere:
of these, the first two vectors and the last ones go through the caches, and overlap so that what is between them begins
and ends with a line.
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
from tirlite.codegen.loops.ahead import Asked, ask
from tirlite.codegen.loops.next_rows import next_rows
from tirlite.codegen.loops.work import goes_over_the_rest
from tirlite.codegen.memory import Place
from tirlite.ir.checked import mask_of
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Ramp
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, AttrKey, AttrStmt, For, Let, Store
from tirlite.ir.trampoline import run
from tirlite.ir.walk import statements_of, walk
from tirlite.record import record

# The bytes that such an instruction writes at once, at addresses that are multiples of these.
_ALIGNMENT = 16
# A line of the caches.
_LINE = 64


@record(eq=False)
class Past:
    """When a store goes past the caches, where its buffer is `large` if not always, and what it asks for then."""

    large: Value | None
    asked: Sequence[Asked] = ()


def streamed_stores(func: PrimFunc, out: KernelFunction, places: Mapping[Buffer, Place]) -> dict[Store, Past]:
    """The stores of vectors, one after the other, to parameters that nothing reads and that may be large.

    No loop may stand between two of them: a cache line would be written in parts. Those that `nontemporal` marks go
    past the caches always.
    """
    processor = out.module.processor
    if processor.family != "x86-64":
        return {}
    past = results(func, processor)
    loops = (loop for loop in statements_of(func.body, For) if loop.step > 1 and not goes_over_the_rest(loop))
    found = [store for loop in loops for store in _stores(loop)]
    kept = [store for store in found if store.buffer in past]
    asked = next_rows(func.body, frozenset(kept), places) if kept else {}
    sized = {store: Past(large, asked.get(store, ())) for store, large in _sized(kept, out, places).items()}
    return {**sized, **dict.fromkeys(_said(func), Past(None))}


def _sized(stores: list[Store], out: KernelFunction, places: Mapping[Buffer, Place]) -> dict[Store, Value]:
    """By store, whether its buffer, with all others, is larger than what caches hold."""
    if not stores:
        return {}
    sizes = {
        buffer: reduce(out.product, place.extents, integer(place.buffer.dtype.bytes))
        for buffer, place in places.items()
    }
    total = reduce(partial(out.op, "add"), sizes.values())
    large = out.compare("icmp ugt", total, integer(held(out.module.processor)))
    parts = {buffer: out.op("mul", sizes[buffer], integer(PART)) for buffer in {store.buffer: None for store in stores}}
    past = {buffer: out.op("and", large, out.compare("icmp uge", part, total)) for buffer, part in parts.items()}
    return {store: past[store.buffer] for store in stores}


def _said(func: PrimFunc) -> Iterator[Store]:
    """The stores of vectors that are to go past the caches."""
    for attr in statements_of(func.body, AttrStmt):
        if attr.key is AttrKey.NONTEMPORAL:
            for stmt in statements_of(attr.body, Store):
                if stmt.buffer is attr.buffer and _is_whole(stmt, _ALIGNMENT):
                    yield stmt


def _stores(loop: For) -> Iterator[Store]:
    """The stores of a loop that moves on by whole lines."""
    if loop.body.kinds <= {Store, Let, Allocate}:
        for stmt in loop.body.stmts:
            if isinstance(stmt, Store) and stmt.value.dtype.lanes == loop.step and _is_whole(stmt, _LINE):
                yield stmt


def _is_whole(store: Store, least: int) -> bool:
    """Whether a store of a vector stores all of it, and this many bytes or more."""
    dtype = store.value.dtype
    return mask_of(store.indices) is None and not dtype.is_bool and dtype.lanes * store.buffer.dtype.bytes >= least


def store(
    values: Expressions, place: Place, pointer: Value, value: Value, note: str, how: Past, shifted: Shifted | None
) -> None:
    """Stores a vector past the caches: always, or where the buffer is large and no line is stored to in both ways."""
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
    for asked in how.asked:
        ask(values, asked)
    out.branch(done)
    out.start(through)
    memory.store(out, place, pointer, value, note)
    out.branch(done)
    out.start(done)
    out.streams = True


def _has_whole_lines(out: FunctionText, place: Place) -> Value:
    """Whether all rows of an array begin where lines do, if the first one does."""
    size = out.op("mul", place.extents[-1], integer(place.buffer.dtype.bytes))
    return out.compare("icmp eq", out.op("and", size, integer(_LINE - 1)), integer(0))


@record
class Row:
    """How a row lies that a loop stores past the caches, as is known before the loop runs.

    All of it goes there where a row `follows` another one, so that what a line lacks comes from that, and where rows
    have lines of their own, `by_lines`; else what is between its ends does, if the loop `shifts` by this many elements.
    """

    follows: Value
    by_lines: Value
    shifts: Value
    shift: Value


class Shifted:
    """A loop whose vectors begin where lines do, this many elements further on: it runs once more, `count` times.

    The first vector begins where the row does, and the last one ends there. Where nothing is to be shifted, iterations
    are what they were.
    """

    def __init__(self, out: FunctionText, step: int, bounds: tuple[Value, Value], count: Value, row: Row) -> None:
        self.out, self.step, self.row, (self.start, self.stop) = out, step, row, bounds
        self.count = out.op("add", count, out.cast("zext", row.shifts, i64))
        moved = out.select(row.shifts, out.op("sub", row.shift, integer(step)), integer(0))
        self.first = out.op("add", self.start, moved)
        self.last = out.op("add", self.start, out.op("mul", out.op("sub", count, integer(1)), integer(step)))
        self.alignment = out.select(row.follows, integer(_ALIGNMENT - 1), integer(_LINE - 1))
        self.is_whole = out.op("or", row.follows, row.by_lines)
        self.is_between = self.is_whole

    def variable(self, counter: Value) -> Value:
        """The loop variable in an iteration, which is the one that the stores that follow are in.

        Before what goes past the caches are two vectors. The one after it begins with a line as well, as all do but
        the last one, which ends where the row does.
        """
        out = self.out
        there = out.op("add", self.first, out.op("mul", counter, integer(self.step)))
        begun = out.compare("icmp uge", counter, integer(_ENDS))
        goes_on = out.compare("icmp sle", out.op("add", there, integer(_ENDS * self.step)), self.stop)
        is_inside = out.op("and", self.row.shifts, out.op("and", begun, goes_on))
        self.is_between = out.op("or", self.is_whole, is_inside)
        return out.intrinsic("smin", out.intrinsic("smax", there, self.start), self.last)


# This many vectors at either end of a row share lines with others, and a loop of few more gains nothing.
_ENDS = 2
_FEWEST = 16


def shifted(
    values: Expressions, loop: For, bounds: tuple[Value, Value], count: Value, streamed: Mapping[Store, Past]
) -> Shifted | None:
    """A loop over vectors that may go past the caches, so that most of them do; None where iterations cannot overlap.

    They can where they write nothing but what nothing reads.
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
    return Shifted(out, loop.step, bounds, count, Row(follows, by_lines, shifts, shift))


def _row(values: Expressions, loop: For, store: Store, start: Value, count: Value) -> Row:
    """How a row lies that a loop stores by vectors."""
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
    lies_well = out.op("or", follows, by_lines)
    shifts = out.op("and", is_long, out.op("xor", lies_well, Value(is_long.dtype, "true")))
    _fetch_end(out, pointer, count, loop.step * place.buffer.dtype.bytes, shifts)
    return Row(follows, by_lines, shifts, out.op("lshr", behind, integer(place.buffer.dtype.bytes.bit_length() - 1)))


def _fetch_end(out: FunctionText, row: Value, count: Value, size: int, shifts: Value) -> None:
    """Asks for the lines ahead where a row of `count` vectors of `size` bytes ends, and the next one begins."""
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
    """Whether iterations write only what nothing reads, and the place of the store is known before they do."""
    nodes = [*walk(*loop.body.stmts)]
    own = {node.buffer for node in nodes if isinstance(node, Allocate)}
    named = {node.var for node in nodes if isinstance(node, Let)}
    is_apart = all(node.buffer in own or node.buffer in past for node in nodes if isinstance(node, Store))
    return is_apart and named.isdisjoint(walk(*store.indices))
