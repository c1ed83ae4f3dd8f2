"""Loops that count the ones of an integer become straight code."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

LOWEST = "v = v & (v - 1)\n            t += 1"
LAST = "t += tl.i32(v & 1)\n            v = v >> 1"
WIDTHS = {"u8": np.uint8, "i16": np.int16, "u32": np.uint32, "i32": np.int32, "u64": np.uint64, "i64": np.int64}


def counting(dtype: str, body: str) -> tl.Kernel:
    return tl.compile(
        tl.parse(
            f"""
n = tl.dim("n")

@tl.kernel
def ones(x: tl.{dtype}[n], y: tl.out[tl.i32[n]]):
    for i in range(n):
        v = x[i]
        t = tl.i32(3)
        while v != 0:
            {body}
        y[i] = t
"""
        )
    )


@pytest.mark.parametrize("body", [LOWEST, LAST])
@pytest.mark.parametrize("dtype", WIDTHS)
def test_ones_of_integers_of_all_widths(dtype: str, body: str) -> None:
    kernel, numpy = counting(dtype, body), np.dtype(WIDTHS[dtype])
    is_counted = body is LOWEST or numpy.kind == "u"
    assert ("while" not in str(kernel.lowered)) == is_counted
    x = np.frombuffer(np.random.default_rng(0).bytes(50 * numpy.itemsize), numpy).copy()
    x[:3] = 0, 1, np.iinfo(numpy).max
    if body is LAST:
        x = abs(x >> 1)
    wanted = [3 + bin(int(each) % 2 ** (8 * numpy.itemsize)).count("1") for each in x]
    assert kernel(x).tolist() == kernel.interpret(x).tolist() == wanted


@pytest.mark.parametrize("other", ["v = v & (v - 2)\n            t += 1", "v = v & (v - 1)\n            t -= 1"])
def test_other_loops_stay(other: str) -> None:
    assert "while" in str(counting("u32", other).lowered)
