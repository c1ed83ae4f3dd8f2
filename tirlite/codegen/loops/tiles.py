"""Emits loops over rows of byte dot products as calls of the AMX tile functions.

If the system does not grant the tile registers, the loops run as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tirlite.analysis.loops.tiled import Copied, Products, copied_from, products_of, slopes
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.tiles import granted, summed
from tirlite.codegen.llvm.values import FALSE, TRUE, Value, integer
from tirlite.ir.dtype import bool_, i64
from tirlite.ir.expr import Buffer, Load
from tirlite.ir.stmt import For, Stmt, View
from tirlite.ir.trampoline import run
from tirlite.ir.walk import allocated_in, loads_in, statements_of
from tirlite.record import record

_POINTER = 8
# Tiles are stored where they belong from this many groups of terms on, or one for so many bytes between rows. Sums of
# 64 terms took up to twice as long for 4096 rows of 16 KiB, and sums of 256 between 0.6 and 1.03 of the time.
_LONG, _FAR = 64, 128


@record(eq=False)
class Begun:
    """A loop that has a tile version: the block after both, and the one after the loop `copy` if tiles skip that."""

    done: str
    copy: For | None = None
    behind: str = ""


def begin(values: Expressions, loop: For, start: Value, stop: Value, rest: Sequence[Stmt]) -> Begun | None:
    """Emits the tile version of a loop; the caller emits the plain loop next, which runs if tiles are not granted.

    `rest` follows the loop in its block. Where that only copies the sums to a result that no operand can overlap, tiles
    are stored there at once, and the rest is skipped. None with nothing emitted if the loop does not fit.
    """
    found, out = products_of(loop), values.out
    if found is None or not _is_own(values, found.sums.buffer):
        return None
    assert isinstance(out, KernelFunction)
    out.has_tiles = True
    first, last = (values.value(each) for each in (found.groups.start, found.groups.stop))
    rows, groups = out.op("sub", stop, start), out.op("sub", last, first)
    may, plain, done = out.label("tiles"), out.label("plain"), out.label("done")
    is_some = out.op("and", *(out.compare("icmp sgt", each, integer(0)) for each in (rows, groups)))
    is_granted = out.invoke(bool_, granted(out.module), ())
    out.branch_if(out.op("and", is_some, is_granted), may, plain)
    out.start(may)
    for each, value in ((found.rows, start), (found.groups, first)):
        values.bind(each.var, value)
    pointers = _address_table(values, found)
    a, b = _stride(values, found.a, found.rows), _stride(values, found.b, found.groups)
    lanes, count = integer(found.sums.dtype.lanes), integer(prod(found.counts))
    name = summed(out.module, found.types)
    out.calls[name] = None

    def add_up(sums: Load, along: For) -> None:
        values.bind(along.var, start)
        (pointer,) = run(values.pointers(values.environment.places[sums.buffer], sums.indices))
        to_row, adds = _stride(values, sums, along), FALSE if found.is_new else TRUE
        operands = (pointer, to_row, pointers, count, a, b, rows, groups, lanes, adds)
        out.effect(f"call void @{name}({', '.join(each.typed for each in operands)})", *operands)

    copied = _copied(values, found, rest)
    if copied is not None:
        direct, through = out.label("direct"), out.label("through")
        values.bind(copied.loop.var, start)
        is_long = _is_long(values, groups, _stride(values, copied.result, copied.loop))
        is_whole = TRUE if copied.condition is None else values.value(copied.condition)
        out.branch_if(out.op("and", is_long, is_whole), direct, through)
        out.start(direct)
        add_up(copied.result, copied.loop)
        behind = out.label("copied")
        out.branch(behind)
        out.start(through)
    add_up(found.sums, found.rows)
    out.branch(done)
    out.start(plain)
    return Begun(done) if copied is None else Begun(done, copied.loop, behind)


def _is_long(values: Expressions, groups: Value, to_row: Value) -> Value:
    """Whether computing a tile takes so long that its lines, in rows this far apart, are stored meanwhile."""
    out = values.out
    least = out.intrinsic("smax", out.op("lshr", to_row, integer(_FAR.bit_length() - 1)), integer(_LONG))
    return out.compare("icmp sge", groups, least)


def _copied(values: Expressions, found: Products, rest: Sequence[Stmt]) -> Copied | None:
    """The copy of the sums to a result, if nothing else reads the sums, and no operand can overlap the result."""
    copied = copied_from(found, rest)
    if copied is None or values.facts is None or copied.result.buffer not in values.facts.func.params:
        return None
    if not all(_is_own(values, each.buffer) for each in (found.a, found.b)):
        return None
    sums = found.sums.buffer
    read = [load for load in loads_in(values.facts.func.body) if load.buffer is sums]
    return copied if len(read) == sum(load.buffer is sums for load in loads_in(found.rows, copied.loop)) else None


def _is_own(values: Expressions, buffer: Buffer) -> bool:
    """Whether the buffer's bytes belong to no other buffer during its lifetime, so that operands do not overlap it."""
    if values.facts is None:
        return False
    body = values.facts.func.body
    views = [*statements_of(body, View)]
    made = allocated_in(body) | {each.buffer for each in views if each.fresh}
    return buffer in made and not any(each.source is buffer for each in views)


def _address_table(values: Expressions, found: Products) -> Value:
    """The address of a table with the addresses of all pairs of operands."""
    out, counts = values.out, found.counts
    count = prod(counts)
    table = out.alloca(2 * _POINTER * count, _POINTER)
    if count == 1:
        for loop in found.parts:
            values.bind(loop.var, values.value(loop.start))
        _store_addresses(values, found, table)
        return table
    before, body, done, following = out.block, out.label("part"), out.label("told"), out.later(i64)
    out.branch(body)
    out.start(body)
    number = rest = out.phi(i64, (integer(0), before), (following, body))
    for loop, each in reversed([*zip(found.parts, counts, strict=True)]):
        place = out.op("urem", rest, integer(each))
        values.bind(loop.var, out.op("add", values.value(loop.start), place))
        rest = out.op("udiv", rest, integer(each))
    _store_addresses(values, found, out.move(table, out.product(number, integer(2 * _POINTER))))
    out.define_later(following, f"add {number.typed}, 1", number)
    out.branch_if(out.compare("icmp ult", following, integer(count)), body, done)
    out.start(done)
    return table


def _store_addresses(values: Expressions, found: Products, slot: Value) -> None:
    for place, load in enumerate((found.a, found.b)):
        (pointer,) = run(values.pointers(values.environment.places[load.buffer], load.indices))
        values.out.store(pointer, values.out.move(slot, integer(_POINTER * place)))


def _stride(values: Expressions, load: Load, loop: For) -> Value:
    """The bytes between what successive iterations of the loop read."""
    strides = values.environment.places[load.buffer].strides
    total = integer(0)
    for slope, stride in zip(slopes(load, loop.var), strides, strict=True):
        if slope:
            total = values.out.op("add", values.out.product(stride, integer(slope)), total)
    return values.out.product(total, integer(load.buffer.dtype.bytes))
