"""Stores that go past the caches: those of results that no cache holds, and that a kernel does not read.

An ordinary store reads the line that it writes to first, which for such results is a third of all that memory moves, or
a half. Whether a result is that large, and lies on 16 bytes, is decided where vectors are stored, on the way: two
branches that always go the same way. Where `nontemporal` says it of a buffer, its size is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.codegen import memory
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.values import Value, integer
from tirlite.codegen.memory import Place
from tirlite.ir import Allocate, AttrKey, AttrStmt, Buffer, For, Let, PrimFunc, Store, i64, statements_of, walk
from tirlite.ir.masked import mask_of
from tirlite.ir.shapes import constant_bytes
from tirlite.target import Processor

# The bytes that such an instruction writes at once, at addresses that are multiples of these.
_ALIGNMENT = 16
# A line of the caches.
_LINE = 64


def streamed_stores(func: PrimFunc, processor: Processor) -> dict[Store, bool]:
    """The stores of vectors, one behind the other, to parameters that nothing reads and that may be large.

    Where loops stand between two of them, a line would leave the processor in parts. By store, whether it is one that
    `nontemporal` stands around: its buffer may be of any size.
    """
    if processor.family != "x86-64":
        return {}
    return dict.fromkeys(_found(func, processor), False) | dict.fromkeys(_said(func), True)


def _said(func: PrimFunc) -> Iterator[Store]:
    """The stores of vectors that are to go past the caches."""
    for attr in statements_of(func.body, AttrStmt):
        if attr.key is AttrKey.NONTEMPORAL:
            for stmt in statements_of(attr.body, Store):
                if stmt.buffer is attr.buffer and _is_whole(stmt, _ALIGNMENT):
                    yield stmt


def _found(func: PrimFunc, processor: Processor) -> frozenset[Store]:
    """The stores that go past the caches without being told to."""
    found = [store for loop in statements_of(func.body, For) if loop.step > 1 for store in _stores(loop)]
    written = {store.buffer for store in found if _may_be_large(store.buffer, processor)}
    written &= {param for param in func.params if isinstance(param, Buffer)}
    if not written:
        return frozenset()
    for node in walk(func.body):
        used = {getattr(node, name) for name in node.USES}
        if not isinstance(node, Store):
            written -= used
    return frozenset(store for store in found if store.buffer in written)


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


def _may_be_large(buffer: Buffer, processor: Processor) -> bool:
    size = constant_bytes(buffer)
    return not buffer.volatile and (size is None or size > processor.caches[-1])


def store(out: KernelFunction, place: Place, pointer: Value, value: Value, note: str, *, always: bool) -> None:
    """Stores a vector past the caches: always, or where the buffer is larger than the last of these."""
    low = out.op("and", out.cast("ptrtoint", pointer, i64), integer(_ALIGNMENT - 1))
    streams = out.compare("icmp eq", low, integer(0))
    if not always:
        size = integer(place.buffer.dtype.bytes)
        for extent in place.extents:
            size = out.product(size, extent)
        streams = out.op("and", out.compare("icmp ugt", size, integer(out.module.processor.caches[-1])), streams)
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
