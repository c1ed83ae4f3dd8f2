"""C functions that kernels call: by name, by address, and as functions of ctypes."""

from __future__ import annotations

import ctypes
import ctypes.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))
COSINE = LIBM.cos


def test_a_symbol_of_the_process_is_called() -> None:
    @tl.kernel
    def hypotenuse(x: tl.f64[n], y: tl.f64[n], z: tl.out[tl.f64[n]]):
        for i in range(n):
            z[i] = tl.call_extern("f64", "hypot", x[i], y[i])

    np.testing.assert_array_equal(hypotenuse(np.array([3.0, 5.0]), np.array([4.0, 12.0])), [5, 13])


FIRST = """
import numpy as np
import tirlite as tl

func = tl.parse('''
n = tl.dim("n")
@tl.kernel
def copy(x: tl.f32[n], y: tl.f32[n]):
    tl.call_extern("handle", "memcpy", tl.access_ptr(y, 0, n, "w"), tl.access_ptr(x, 0, n, "r"), n * 4)
''')
y = np.zeros(3, np.float32)
tl.compile(func)(np.ones(3, np.float32), y)
print(y)
"""


def test_symbols_are_there_for_the_first_kernel_of_a_process(tmp_path: Path) -> None:
    file = tmp_path / "first.py"
    file.write_text(FIRST)
    run = subprocess.run([sys.executable, str(file)], check=True, capture_output=True, text=True)
    assert run.stdout == "[1. 1. 1.]\n"


def test_a_function_of_ctypes_is_called_at_its_address() -> None:
    @tl.kernel
    def cosines(x: tl.f64[n], y: tl.out[tl.f64[n]]):
        for i in range(n):
            y[i] = tl.call_extern("f64", COSINE, x[i])

    x = np.linspace(0, 3, 5)
    np.testing.assert_allclose(cosines(x), np.cos(x), rtol=1e-15)
    assert cosines.captures == {"COSINE": COSINE}
    assert tl.structural_equal(tl.parse(str(cosines.ir)), cosines.ir)


def test_an_address_is_an_integer_too() -> None:
    seen = []
    callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(lambda value: seen.append(value) or value + 1)
    address = ctypes.cast(callback, ctypes.c_void_p).value

    @tl.kernel
    def kernel(x: tl.i32[n]):
        for i in range(n):
            x[i] = tl.call_extern("i32", address, x[i])

    x = np.array([4, 7], np.int32)
    kernel(x)
    assert seen == [4, 7]
    assert x.tolist() == [5, 8]


def test_memory_is_given_by_address() -> None:
    @tl.kernel
    def kernel(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        tl.call_extern("handle", "memset", y, tl.i32(0), 4 * n)
        tl.call_extern("handle", "memcpy", tl.access_ptr(y, 1, 2, "w"), tl.address_of(x[0]), 8)

    x = np.array([1, 2, 3, 4], np.float32)
    np.testing.assert_array_equal(kernel(x), [0, 1, 2, 0])


@pytest.mark.parametrize("function", ["0", "-1", "1.5", "True", "x", "''"])
def test_what_is_no_function_is_refused(function: str) -> None:
    with pytest.raises(tl.KernelError, match="wrong-argument"):
        tl.parse(f"@tl.kernel\ndef f(x: tl.f32[4]):\n    tl.call_extern('f32', {function}, x[0])")
