"""Scalars that are alike in all iterations stay scalars where a loop goes by vectors."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import Allocate, For, statements_of
from tirlite.rewrite.vectors.uniform import uniform_scalars

n = tl.dim("n")


@tl.kernel
def roots(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in range(n):
        left = x[i]
        root = tl.i64(0)
        bit = tl.i64(1) << 40
        while bit != 0:
            if left >= root + bit:
                left -= root + bit
                root = (root >> 1) + bit
            else:
                root = root >> 1
            bit = bit >> 2
        y[i] = root


@pytest.mark.parametrize("size", [1, 5, 37])
def test_a_loop_that_is_alike_needs_no_mask(size: int) -> None:
    wide = {each.buffer.name for each in statements_of(roots.lowered.body, Allocate) if each.buffer.shape}
    assert wide == {"left", "root"}
    assert "while bit[()] != 0:" in str(roots.lowered)
    x = np.random.default_rng(0).integers(0, 2**40, size)
    found, wanted = np.zeros_like(x), np.zeros_like(x)
    roots(x, found)
    tl.compile(roots.lowered, strategy="none").interpret(x, wanted)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(found, np.sqrt(x.astype(float)).astype(int))


@tl.kernel
def counted(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in range(n):
        count = 0
        for a in range(5):
            if a * a > 6:
                break
            count += 1
        else:
            count += 100
        y[i] = x[i] + count


@tl.kernel
def multiples(x: tl.i64[n], of: tl.i64, y: tl.out[tl.i64[n]]):
    """As above, of numbers whose remainder lanes that are off must not compute."""
    for i in range(n):
        count = 0
        a = 0
        while a < 5:
            a += 1
            if a % of == 0:
                count += 1
        y[i] = x[i] + count


@pytest.mark.parametrize("size", [1, 5, 8, 31, 37])
def test_what_all_lanes_share_is_stored_where_its_branch_is_taken(size: int) -> None:
    x = np.arange(size)
    np.testing.assert_array_equal(counted(x), x + 3)
    np.testing.assert_array_equal(multiples(x, 2), x + 2)


@pytest.mark.parametrize(
    ("start", "stmt", "alike"),
    [
        ("40", "q -= 1", ["q"]),
        ("m", "q -= z[0]", ["q"]),
        ("i", "q -= 1", []),
        ("40", "q -= 1 if x[i] > 0 else 2", []),
        ("40", "if x[i] > 0: q = 0", []),
        ("40", "q -= y[0]", []),
        ("40", "t = q * i; q = t", []),
    ],
)
def test_what_is_alike(start: str, stmt: str, alike: list[str]) -> None:
    lines = "\n            ".join(stmt.split("; "))
    func = tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.i64[n], y: tl.i64[n], z: tl.i64[m]):
    for i in range(n):
        q = {start} + z[0]
        while q > 0:
            {lines}
        y[i] = x[i]
""")
    (loop,) = statements_of(func.body, For)
    assert sorted(each.name for each in uniform_scalars(loop.body, loop.var)) == alike
