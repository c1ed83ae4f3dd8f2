"""Which parameters a kernel may write."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.analysis.param_uses import written_params
from tirlite.ir import BufferRef, Call, IntImm, Op, StringImm, f32, handle, i32, i64
from tirlite.ir.builder import Builder


def test_stores_views_and_addresses_write() -> None:
    b = Builder("writes")
    names = ("read", "stored", "viewed", "passed", "element", "pointer", "read_pointer")
    params = {name: b.param(name, f32[4]) for name in names}
    b.param("output", f32[4], out=True)
    b.store(params["stored"], 0, params["read"][1])
    view = b.view("view", params["viewed"], f32[2], 8)
    b.store(b.view("inner", view, f32[1], 4), 0, 1)
    for name in names[3:]:
        b.evaluate(Call(i32, Op.CALL_EXTERN, (StringImm("f"), argument(name, params[name]))))
    written = [param.name for param in written_params(b.build())]
    assert written == ["stored", "viewed", "passed", "element", "pointer", "output"]


def argument(name: str, buffer: tl.ir.Buffer) -> tl.ir.Expr:
    if name == "passed":
        return BufferRef(buffer)
    if name == "element":
        return Call(handle, Op.ADDRESS_OF, (buffer[1],))
    mask = StringImm("r" if name == "read_pointer" else "rw")
    return Call(handle, Op.ACCESS_PTR, (BufferRef(buffer), IntImm(i64, 0), IntImm(i64, 4), mask))


def test_an_array_that_is_only_read_may_be_read_only() -> None:
    b = Builder("copy")
    x, y = b.param("x", f32[3]), b.param("y", f32[3])
    with b.for_("i", 0, 3) as i:
        b.store(y, i, x[i])
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False
    y = np.zeros(3, np.float32)
    tl.compile(b.build())(x, y)
    assert y.tolist() == [0, 1, 2]
