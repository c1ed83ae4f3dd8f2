"""Emits loops over rows of byte dot products as calls of the AMX tile functions.

If the system does not grant the tile registers, the loops run as they are.
"""

from __future__ import annotations

from math import prod

from tirlite.analysis.loops.tiled import Products, products_of, slopes
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.llvm.tiles import granted, summed
from tirlite.codegen.llvm.values import FALSE, TRUE, Value, integer
from tirlite.ir.dtype import bool_, i64
from tirlite.ir.expr import Buffer, Load
from tirlite.ir.stmt import For, View
from tirlite.ir.trampoline import run
from tirlite.ir.walk import allocated_in, statements_of

_POINTER = 8


def begin(values: Expressions, loop: For, start: Value, stop: Value) -> str:
    """Emits the tile version of a loop; the caller emits the plain loop next, which runs if tiles are not granted.

    Returns the block after both; or "" with nothing emitted, if the loop does not fit.
    """
    found, out = products_of(loop), values.out
    if found is None or not _is_own(values, found.sums.buffer):
        return ""
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
    (sums,) = run(values.pointers(values.environment.places[found.sums.buffer], found.sums.indices))
    strides = ((found.sums, found.rows), (found.a, found.rows), (found.b, found.groups))
    to_row, a, b = (_stride(values, *each) for each in strides)
    lanes, count = integer(found.sums.dtype.lanes), integer(prod(found.counts))
    operands = (sums, to_row, pointers, count, a, b, rows, groups, lanes, FALSE if found.is_new else TRUE)
    name = summed(out.module, found.types)
    out.calls[name] = None
    out.effect(f"call void @{name}({', '.join(each.typed for each in operands)})", *operands)
    out.branch(done)
    out.start(plain)
    return done


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
