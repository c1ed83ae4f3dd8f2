"""Stores that go past the caches: those of results that no cache holds, and that a kernel does not read.

An ordinary store reads the line that it writes to first, which for such results is a third of all that memory moves, or
a half. Whether a result is that large is decided on entry, whether it lies on 16 bytes where vectors are stored: two
branches that always go the same way. Where `nontemporal` says it of a buffer, its size is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial, reduce

from tirlite.analysis.streams import PART, held, results
from tirlite.codegen import memory
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.values import Value, integer
from tirlite.codegen.memory import Place
from tirlite.codegen.work import goes_over_the_rest
from tirlite.ir import Allocate, AttrKey, AttrStmt, Buffer, For, Let, PrimFunc, Store, i64, statements_of
from tirlite.ir.masked import mask_of

# The bytes that such an instruction writes at once, at addresses that are multiples of these.
_ALIGNMENT = 16
# A line of the caches.
_LINE = 64


def streamed_stores(func: PrimFunc, out: KernelFunction, places: Mapping[Buffer, Place]) -> dict[Store, Value | None]:
    """The stores of vectors, one behind the other, to parameters that nothing reads and that may be large.

    Where loops stand between two of them, a line would leave the processor in parts. By store, whether its buffer is
    large; none for one that `nontemporal` stands around.
    """
    processor = out.module.processor
    if processor.family != "x86-64":
        return {}
    past = results(func, processor)
    loops = (loop for loop in statements_of(func.body, For) if loop.step > 1 and not goes_over_the_rest(loop))
    found = [store for loop in loops for store in _stores(loop)]
    kept = [store for store in found if store.buffer in past]
    return {**_sized(kept, out, places), **dict.fromkeys(_said(func))}


def _sized(stores: list[Store], out: KernelFunction, places: Mapping[Buffer, Place]) -> dict[Store, Value | None]:
    """By store, whether its buffer, with all others, is larger than what caches hold."""
    if not stores:
        return {}
    sizes = {buffer: _size(out, place) for buffer, place in places.items()}
    total = reduce(partial(out.op, "add"), sizes.values())
    large = out.compare("icmp ugt", total, integer(held(out.module.processor)))
    parts = {buffer: out.op("mul", sizes[buffer], integer(PART)) for buffer in {store.buffer: None for store in stores}}
    past = {buffer: out.op("and", large, out.compare("icmp uge", part, total)) for buffer, part in parts.items()}
    return {store: past[store.buffer] for store in stores}


def _size(out: KernelFunction, place: Place) -> Value:
    return reduce(out.product, place.extents, integer(place.buffer.dtype.bytes))


def _said(func: PrimFunc) -> Iterator[Store]:
    """The stores of vectors that are to go past the caches."""
    for attr in statements_of(func.body, AttrStmt):
        if attr.key is AttrKey.NONTEMPORAL:
            for stmt in statements_of(attr.body, Store):
                if stmt.buffer is attr.buffer and _is_whole(stmt, _ALIGNMENT):
                    yield stmt


def _stores(loop: For) -> Iterator[Store]:
    """The stores of a loop that moves on by whole lines."""
    if all(isinstance(stmt, Store | Let | Allocate) for stmt in loop.body.stmts):
        for stmt in loop.body.stmts:
            if isinstance(stmt, Store) and stmt.value.dtype.lanes == loop.step and _is_whole(stmt, _LINE):
                yield stmt


def _is_whole(store: Store, least: int) -> bool:
    """Whether a store of a vector stores all of it, and so many bytes or more."""
    dtype = store.value.dtype
    return mask_of(store.indices) is None and not dtype.is_bool and dtype.lanes * store.buffer.dtype.bytes >= least


def store(out: KernelFunction, place: Place, pointer: Value, value: Value, note: str, large: Value | None) -> None:
    """Stores a vector past the caches: always, or where the buffer is large."""
    low = out.op("and", out.cast("ptrtoint", pointer, i64), integer(_ALIGNMENT - 1))
    streams = out.compare("icmp eq", low, integer(0))
    if large is not None:
        streams = out.op("and", large, streams)
    past, through, done = out.label("past"), out.label("through"), out.label("stored")
    out.branch_if(streams, past, through)
    out.start(past)
    hint = f"{note}, !nontemporal {out.module.node('i32 1')}"
    out.effect(f"store {value.typed}, ptr {pointer.text}, align {_ALIGNMENT}{hint}", value, pointer)
    out.branch(done)
    out.start(through)
    memory.store(out, place, pointer, value, note)
    out.branch(done)
    out.start(done)
    out.streams = True
