"""Calls of C functions, and what native code refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import BufferRef, Call, Expr, IntImm, Op, StringImm, bf16, f16, f32, f64, handle, i32, i64
from tirlite.ir.builder import Builder


def extern(dtype: tl.ir.DType, name: str, *args: Expr) -> Call:
    return Call(dtype, Op.CALL_EXTERN, (StringImm(name), *args))


def test_a_c_function_gets_numbers_and_gives_one() -> None:
    b = Builder("length")
    x, y = b.param("x", f64[2]), b.param("y", f64[1], out=True)
    b.store(y, 0, extern(f64, "hypot", x[0], x[1]))
    assert tl.compile(b.build())(np.array([3.0, 4.0])).tolist() == [5]


def test_a_c_function_gets_addresses() -> None:
    b = Builder("copies")
    x, y = b.param("x", f32[6]), b.param("y", f32[6], out=True)
    pointer = Call(handle, Op.ACCESS_PTR, (BufferRef(y), IntImm(i64, 2), IntImm(i64, 4), StringImm("w")))
    b.evaluate(extern(handle, "memset", BufferRef(y), IntImm(i32, 0), IntImm(i64, 24)))
    b.evaluate(extern(handle, "memcpy", pointer, Call(handle, Op.ADDRESS_OF, (x[1],)), IntImm(i64, 16)))
    x = np.arange(6, dtype=np.float32)
    assert tl.compile(b.build())(x).tolist() == [0, 0, 1, 2, 3, 4]


def test_a_missing_c_function_is_named_before_linking() -> None:
    b = Builder("missing")
    y = b.param("y", f64[1], out=True)
    b.store(y, 0, extern(f64, "no_such_function", y[0]))
    with pytest.raises(tl.KernelError, match="the extern function `no_such_function` is not in this process"):
        tl.compile(b.build())()


@pytest.mark.parametrize("name", ["llvm.sqrt.f64", "a b", ""])
def test_a_name_that_is_none_in_c_is_refused(name: str) -> None:
    b = Builder("odd")
    y = b.param("y", f64[1], out=True)
    b.store(y, 0, extern(f64, name, y[0]))
    with pytest.raises(tl.KernelError):
        tl.compile(b.build())()


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_half_precision_is_not_passed_to_extern_functions(dtype: tl.ir.DType) -> None:
    b = Builder("half")
    x, y = b.param("x", f32[1]), b.param("y", f32[1], out=True)
    b.store(y, 0, extern(f32, "fabsf", x[0].astype(dtype)))
    with pytest.raises(tl.KernelError, match="16-bit floating point cannot be compiled") as caught:
        tl.compile(b.build())(np.zeros(1, np.float32))
    assert "test_extern.py" in str(caught.value)


def test_a_barrier_is_no_value() -> None:
    b = Builder("threads")
    y = b.param("y", f32[8], out=True)
    b.store(y, 0, Call(i32, Op.BARRIER, (StringImm("shared"),)).astype(f32))
    with pytest.raises(tl.KernelError, match="`barrier` cannot be compiled"):
        tl.compile(b.build())()
