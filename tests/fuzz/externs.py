"""A function in, the same with its copying loops made calls of C out: memory is read and written outside."""

from __future__ import annotations

from tirlite.ir.dtype import handle, i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import Buffer, BufferRef, Call, IntImm, Load, StringImm, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Evaluate, For, ForKind, Stmt, Store, View
from tirlite.ir.walk import walk


def with_externs(func: PrimFunc) -> PrimFunc:
    """`func` with `memcpy` for each loop that copies a whole buffer of one axis into another one."""
    sources = {node.buffer: node.source for node in walk(func) if isinstance(node, View)}

    def root(buffer: Buffer) -> Buffer:
        while buffer in sources:
            buffer = sources[buffer]
        return buffer

    def replace(loop: For) -> Stmt:
        copied = _copied(loop)
        if copied is None or root(copied[0]) is root(copied[1]):
            return loop
        target, source = copied
        places = [
            Call(handle, Op.ACCESS_PTR, (BufferRef(buffer), const(0, i64), loop.stop, StringImm(mask)))
            for buffer, mask in ((target, "w"), (source, "r"))
        ]
        size = loop.stop * target.dtype.bytes
        return Evaluate(Call(handle, Op.CALL_EXTERN, (StringImm("memcpy"), *places, size)), span=loop.span)

    result = rewrite(func, {For: replace})
    assert isinstance(result, PrimFunc)
    return result


def _copied(loop: For) -> tuple[Buffer, Buffer] | None:
    """The target and the source of a loop over all elements that does nothing but copy them."""
    is_plain = loop.kind is ForKind.SERIAL and loop.step == 1
    if not (is_plain and isinstance(loop.start, IntImm) and loop.start.value == 0 and len(loop.body.stmts) == 1):
        return None
    (store,) = loop.body.stmts
    if not isinstance(store, Store) or not isinstance(store.value, Load) or not _is_at(store, loop):
        return None
    return (store.buffer, store.value.buffer) if _is_at(store.value, loop) else None


def _is_at(access: Store | Load, loop: For) -> bool:
    """Whether the loop's variable is the one index, and goes over the whole axis."""
    return access.indices == (loop.var,) and structural_equal(access.buffer.shape[0], loop.stop).equal
