"""Names that other languages of kernels have are answered with what to write; constants go through `math` and NumPy."""

from __future__ import annotations

import math
import re
from math import sqrt

import numpy as np
import pytest
from every import every

import tirlite as tl

n = tl.dim("n")


@every(
    "value, told",
    [
        ("tl.maximum(x[0], 1)", "write `max(a, b)`, as in Python"),
        ("tl.prange(n)", "write `for i in tl.parallel(n):`"),
        ("tl.program_id(0)", 'for b in tl.thread("blockIdx.x", n):'),
        ("sum(x)", "for i in tl.reduce(n): total += x[i]"),
        ("enumerate(x)", "loop over indices"),
        ("tl.cdiv(n, 4)", "-(-a // b)"),
        ("x.sum()", "for i in tl.reduce(n): total += x[i]"),
        ("any(x)", "found = found or x[i] > 0"),
        ("x.max()", "most = max(most, x[i])"),
        ("x.argmin()", "least, at = tl.argmin((least, at), (x[i], i))"),
        ("tl.max(x[0], 1)", "write max(...), as in Python"),
        ("x.T", "index it, or make a window on its bytes by tl.view"),
        ("ndrange(n)", "write `for i in tl.parallel(n):`"),
        ("x[0].astype(tl.i32)", "call the type: `tl.f32(x)`"),
        ("...", "a body without statements is `pass`"),
        ("1\n    for w in (1, k):\n        x[0] += w", "write `for i in tl.static((1, k)):`, which is unrolled"),
    ],
)
def test_a_foreign_name_is_told_with_what_to_write(value: str, told: str) -> None:
    with pytest.raises(tl.KernelError, match=re.escape(told)):
        tl.parse(f'n = tl.dim("n")\n@tl.kernel\ndef f(x: tl.f32[n]):\n    x[0] = {value}\n')


def test_a_function_of_numpy_is_told_too() -> None:
    with pytest.raises(tl.KernelError, match=re.escape("allocate, `t = tl.alloc(tl.f32[n])`")):

        @tl.kernel
        def f(x: tl.f32[n]):
            t = np.zeros(4)
            x[0] = t[0]


def test_names_of_types_are_told_outside_of_kernels() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'float32': write tl\.f32"):
        tl.float32
    with pytest.raises(AttributeError, match=r"no attribute 'c64': keep real and imaginary parts in arrays"):
        tl.c64
    with pytest.raises(AttributeError, match=r"no attribute 'inout': write `y: tl\.f32\[n\]`"):
        tl.inout


def test_pure_functions_of_constants_are_weak_constants() -> None:
    scale = np.float32(4)

    @tl.kernel
    def f(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = math.sqrt(2 / math.pi) * x[i] + np.sqrt(scale) + math.floor(2.5)

    assert "tl.f32(0.7978846) * x[i] + tl.f32(2.0) + tl.f32(2.0)" in str(f.ir)


def test_a_pure_function_without_a_value_is_refused_and_one_of_an_element_is_told() -> None:
    with pytest.raises(tl.KernelError, match="this has no value: math domain error"):

        @tl.kernel
        def f(x: tl.f32[n]):
            x[0] = math.sqrt(-1)

    with pytest.raises(tl.KernelError, match=r"write tl\.sqrt"):

        @tl.kernel
        def g(x: tl.f32[n]):
            x[0] = math.sqrt(x[1])

    with pytest.raises(tl.KernelError, match=r"write tl\.sqrt"):

        @tl.kernel
        def h(x: tl.f32[n]):
            x[0] = sqrt(x[1])


def test_what_has_no_def_is_not_to_be_put_under_inline() -> None:
    with pytest.raises(tl.KernelError, match="help: write the computation in the kernel"):

        @tl.kernel
        def f(x: tl.f32[n]):
            x[0] = 1 if isinstance(x, int) else 2


def test_an_extent_that_is_left_open_is_answered_with_a_dim() -> None:
    with pytest.raises(tl.KernelError, match=r'n = tl\.dim\("n"\) stands for any'):
        tl.f32[:]
