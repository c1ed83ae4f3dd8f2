"""Finds constant rows that a loop of multiply-adds goes through one behind the other, to ask for those ahead of it.

Weights are read once at each call of a network, from memory. Several tiles of sums go through the same ones in turn:
the first waits for them, and the others find them in a cache, so that what a processor fetches ahead by itself comes
too late for the one and is of no use to the others. Asked for a page ahead, weights come while products are summed
up: a chain of convolutions of 128 channels at 14 x 14 by Winograd, with 24 MB of weights, took two thirds of the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tirlite.analysis.loops.work import parted
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.llvm.values import integer
from tirlite.ir.checked import is_checked
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Call, Expr, IntImm, Load, Ramp
from tirlite.ir.op import Op
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import For, SeqStmt, Store, View
from tirlite.ir.trampoline import run
from tirlite.ir.walk import is_constant, statements_of, walk
from tirlite.target import Processor

# How far ahead, in bytes: as many as take longer to be multiplied than to come.
_AHEAD = 4096
# A line of the caches.
_LINE = 64
# Multiply-adds of vectors for each line that is asked for, at least; and the bytes of a row that is worth it.
_PRODUCTS, _ROW = 12, 32


def rows_ahead(body: SeqStmt, processor: Processor) -> dict[For, list[Load]]:
    """By loop, loads from the rows that it reads whole, the next ones in the next iteration.

    Of arrays that are given to the function, that nothing writes to, and that the first cache does not hold.
    """
    found = {loop: rows for loop in statements_of(body, For) if (rows := [*_rows(loop, processor)])}
    if not found:
        return found
    roots = {view.buffer: view.source for view in statements_of(body, View)}
    near = {_root(store.buffer, roots) for store in statements_of(body, Store)}
    for rows in found.values():
        arrays = (_root(row.buffer, roots) for row in rows)
        near |= {each for each in arrays if (constant_bytes(each) or processor.caches[0] + 1) <= processor.caches[0]}
    kept = {loop: [row for row in rows if _root(row.buffer, roots) not in near] for loop, rows in found.items()}
    return {loop: rows for loop, rows in kept.items() if rows}


def ask(values: Expressions, row: Load) -> None:
    """Asks for what lies a page behind the beginning of a row, as many bytes as that has."""
    out, place = values.out, values.environment.places[row.buffer]
    begin = run(values.address(place, (*row.indices[:-1], IntImm(i64, 0))))
    name = "llvm.prefetch.p0"
    out.module.declarations[name] = f"declare void @{name}(ptr, i32, i32, i32)"
    for line in range(0, _row_bytes(row.buffer), _LINE):
        pointer = out.move(begin, integer(_AHEAD + line), flags="")
        out.effect(f"call void @{name}({pointer.typed}, i32 0, i32 3, i32 1)", pointer)


def _rows(loop: For, processor: Processor) -> Iterator[Load]:
    """A load from each row that a loop of multiply-adds reads whole."""
    stores = [stmt for stmt in loop.body.stmts if isinstance(stmt, Store)]
    if loop.step != 1 or len(stores) < len(loop.body.stmts):
        return
    sums = [each.value for each in stores if isinstance(each.value, Call) and each.value.op is Op.FMA]
    products = sum(-(-each.dtype.lanes * each.dtype.bytes // processor.vector_bytes) for each in sums)
    read: defaultdict[tuple[Buffer, Expr | None], dict[int, Load]] = defaultdict(dict)
    for load in (node for node in walk(*sums) if isinstance(node, Load)):
        if len(load.indices) > 1 and load.indices[-2] is loop.var and not any(map(is_checked, load.indices)):
            base, elements = _along(load.indices[-1])
            read[load.buffer, base] |= dict.fromkeys(elements, load)
    for (buffer, _), row in read.items():
        size = _row_bytes(buffer)
        if size >= _ROW and len(row) * buffer.dtype.bytes == size and products * _LINE >= _PRODUCTS * size:
            yield next(iter(row.values()))


def _along(index: Expr) -> tuple[Expr | None, range]:
    """What an index along a row is relative to, and the elements that it stands for from there."""
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
    """The bytes of a row; 0 where that is not known."""
    last = buffer.shape[-1]
    return last.value * buffer.dtype.bytes if isinstance(last, IntImm) else 0


def _root(buffer: Buffer, roots: Mapping[Buffer, Buffer]) -> Buffer:
    while buffer in roots:
        buffer = roots[buffer]
    return buffer
