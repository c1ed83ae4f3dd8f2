"""Wrong kernels stop in checked code with the words that the interpreter has for them, under each strategy."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.diag import TirliteError

pytestmark = pytest.mark.usefixtures("without_effort")

STRATEGIES = ("none", "tvm", "share", "pack")
HEADER = """
n = tl.dim("n", min=0)

@tl.kernel
def wrong(x: tl.f32[n], at: tl.i32[n], y: tl.f32[n], z: tl.i32[4]):
"""
ROOM = "    t = tl.alloc(tl.f32[n + 70])\n    u = tl.alloc(tl.f32[n + 70])\n    k = tl.alloc(tl.i32[n + 70])\n"

# A body, what is called with at = [3, 0, -1, 0, ...] and n = 40, and what the message says.
WRONG: dict[str, tuple[str, str]] = {
    "load": ("for i in range(n):\n    y[i] = x[i + 1]", "index 40 is out of bounds for axis 0 of `x` with extent 40"),
    "load below": ("for i in range(n):\n    y[i] = x[i - 1]", "index -1 is out of bounds"),
    "store": ("for i in range(n):\n    y[2 * i] = x[i]", "index 40 is out of bounds for axis 0 of `y`"),
    "descending": ("for i in range(n, -1, -1):\n    y[i] = 0.0", "index 40 is out of bounds"),
    "steps": ("for i in range(0, n + 3, 3):\n    y[i] = 0.0", "index 42 is out of bounds"),
    "indirect": ("for i in range(n):\n    y[i] = x[at[i]]", "index -1 is out of bounds for axis 0 of `x`"),
    "second axis": (
        "m = tl.alloc(tl.f32[4, n])\nfor i in range(4):\n    for j in range(n + i):\n        m[i, j] = 1",
        "index 40 is out of bounds for axis 1 of `m` with extent 40",
    ),
    "first of two axes": (
        "m = tl.alloc(tl.f32[4, n])\nm[z[0], n] = 1.0\ny[0] = m[0, 0]",
        "axis 0 of `m` with extent 4",
    ),
    "nothing to index": (
        "e = tl.alloc(tl.f32[n - 40])\nfor i in range(1):\n    e[i] = 1.0\ny[0] = e[0]",
        "with extent 0",
    ),
    "u64 index": ("y[tl.u64(at[2])] = 1.0", "index 18446744073709551615 is out of bounds"),
    "a thread's copy, uninitialised": (
        "for s in tl.thread('threadIdx.x', 4):\n    own = tl.alloc(tl.f32[3])\n    own[0] = x[s]\n"
        "    tl.barrier('shared')\n    y[s] = own[0] + own[1]",
        "depends on `own[1]`, which was never written",
    ),
    "a thread's copy, out of bounds": (
        "for s in tl.thread('threadIdx.x', 4):\n    own = tl.alloc(tl.f32[3])\n    own[0] = x[s]\n"
        "    tl.barrier('shared')\n    y[s] = own[at[0]]",
        "index 3 is out of bounds for axis 0 of `own` with extent 3",
    ),
    "vector load": ("v = tl.let(q, x[tl.ramp(n - 3, 1, 4)], q)\ny[tl.ramp(0, 1, 4)] = v", "index 40 is out of bounds"),
    "vector store": (
        "y[tl.ramp(2, -1, 4)] = tl.broadcast(tl.f32(0), 4)",
        "index -1 is out of bounds for axis 0 of `y`",
    ),
    "gather": ("y[tl.ramp(0, 1, 4)] = x[at[tl.ramp(0, 1, 4)]]", "index -1 is out of bounds for axis 0 of `x`"),
    "view": ("v = tl.view(x, tl.f32[n], byte_offset=4)\ny[0] = v[0]", "`v` takes bytes 4 to 164 of `x`, which has 160"),
    "view of a part": (
        "v = tl.view(t, tl.u8[8], byte_offset=4 * n)\nw = tl.view(v, tl.i32[2], byte_offset=tl.i64(z[1]))\nz[0] = w[0]",
        "`w` takes bytes 1 to 9 of `v`, which has 8",
    ),
    "view before": ("v = tl.view(x, tl.f32[1], byte_offset=tl.i64(at[2]))\ny[0] = v[0]", "takes bytes -1 to 3"),
    "in a view": (
        "v = tl.view(x, tl.f32[2], byte_offset=8)\ny[0] = v[2]",
        "index 2 is out of bounds for axis 0 of `v`",
    ),
    "extent": ("e = tl.alloc(tl.f32[8, tl.i64(at[2])])\ny[0] = e[0, 0]", "axis 1 of `e` has the negative extent -1"),
    "memory": (
        "e = tl.alloc(tl.f32[1 << 30, tl.i64(z[2]), 1 << 30])\ne[0, 0, 0] = 1.0\ny[0] = e[0, 0, 0]",
        "no memory for",
    ),
    "never written": ("for i in range(n):\n    y[i] = t[i]", "the value stored into `y` depends on `t[0]`"),
    "partly written": (
        "for i in range(n - 1):\n    t[i] = x[i]\nfor i in range(n):\n    y[i] = t[i] + 1",
        "depends on `t[39]`, which was never written",
    ),
    "rows that may be one": (
        "m = tl.alloc(tl.f32[4, n])\nfor j in range(n):\n    m[0, j] = 1\n"
        "for i in range(4):\n    for j in range(n):\n        y[0] = y[0] * 3 + m[i, j]",
        "depends on `m[1, 0]`, which was never written",
    ),
    "by way of another": ("u[3] = t[5]\nu[4] = 1.0\ny[0] = u[4]\ny[1] = u[3]", "depends on `u[3]`"),
    "of two": ("t[0] = 1.0\ny[0] = t[0] + u[1] + t[2]", "depends on `u[1]`"),
    "by name": ("v = t[7] * 2\nt[7] = 1.0\nfor i in range(n):\n    y[i] = v", "depends on `t[7]`"),
    "half of it": (
        "t[0] = 1.0\nb = tl.view(t, tl.u8[8])\nh = tl.view(t, tl.u16[4])\nb[6] = 1\nz[0] = h[1]\nz[1] = h[3]",
        "the value stored into `z` depends on `h[3]`",
    ),
    "chosen": ("t[0] = 1.0\ny[0] = tl.select(n > 3, t[0], t[1])\ny[1] = tl.select(n < 3, t[0], t[1])", "`t[1]`"),
    "chosen by poison": ("y[0] = tl.select(t[4] > 0, x[0], x[1])", "depends on `t[4]`"),
    "evaluated": ("y[0] = t[1] if n < 3 else 1.0\ny[1] = t[1] if n > 3 else 1.0", "depends on `t[1]`"),
    "condition": ("if t[2] > 0:\n    y[0] = 1.0", "the condition of an `if` depends on `t[2]`"),
    "while": ("while k[2] > 0:\n    y[0] = 1.0", "the condition of a `while` depends on `k[2]`"),
    "assert": ("assert t[2] > 0", "the condition of an assert depends on `t[2]`"),
    "and": ("y[0] = 1.0 if n > 3 and k[1] > 0 and n > 5 else 2.0", "the left side of `and` depends on `k[1]`"),
    "or": ("y[0] = 1.0 if k[1] > 0 or n > 5 else 2.0", "the left side of `or` depends on `k[1]`"),
    "expression": ("y[0] = 1.0 if k[1] > 0 else 2.0", "the condition of a conditional expression depends on `k[1]`"),
    "bound": ("for i in range(k[1]):\n    y[i] = 1.0", "a bound of the loop over `i` depends on `k[1]`"),
    "index": ("y[k[1]] = 1.0", "index 0 of `y` depends on `k[1]`"),
    "two indices": (
        "m = tl.alloc(tl.f32[4, n])\nm[z[0], k[1]] = 1.0\ny[0] = m[0, 0]",
        "index 9 is out of bounds for axis 0",
    ),
    "offset": ("v = tl.view(x, tl.f32[1], byte_offset=tl.i64(k[1]))\ny[0] = v[0]", "the byte offset of `v` depends on"),
    "poisoned extent": ("e = tl.alloc(tl.f32[tl.i64(k[1])])\ny[0] = e[0]", "extent 0 of `e` depends on `k[1]`"),
    "vector lanes": (
        "t[tl.ramp(0, 2, 4)] = x[tl.ramp(0, 1, 4)]\ny[0] = t[2]\ny[tl.ramp(0, 1, 2)] = t[tl.ramp(2, 1, 2)]",
        "depends on `t[2]`",
    ),
    "gathered": ("t[tl.ramp(0, 1, 4)] = x[tl.ramp(0, 1, 4)]\ny[tl.ramp(0, 1, 4)] = t[tl.ramp(1, 1, 4)]", "`t[1]`"),
    "in each iteration": (
        "for i in range(3):\n    s = tl.alloc(tl.f32[n + 100])\n    if i == 0:\n        s[1] = 1.0\n    y[i] = s[1]",
        "depends on `s[1]`",
    ),
    "after another": (
        "for i in range(n + 70):\n    t[i] = 1.0\nfor i in range(n):\n    y[i] = t[i]\nu[0] = 2.0\ny[0] = u[0] + u[1]",
        "depends on `u[1]`",
    ),
    "accumulated": (
        "for i in range(n):\n    t[i % 4] += x[i]\nfor i in range(4):\n    y[i] = t[i]",
        "depends on `t[0]`",
    ),
    "parallel": (
        "for i in tl.parallel(n):\n    if i != 7:\n        t[i] = x[i]\nfor i in tl.parallel(n):\n    y[i] = t[i]",
        "`t[7]`",
    ),
    "shared by iterations": (
        "for i in tl.parallel(n):\n    y[at[i] + 1] += x[i]",
        "`y[1]` is read by iteration i = 3 and written by i = 1",
    ),
    "shared by lanes": (
        "for i in tl.vectorized(n):\n    y[at[i] + 1] = x[i]",
        "`y[1]` is written by iteration i = 3 and written by i = 1",
    ),
    "read by an earlier one": (
        "for i in tl.parallel(4):\n    if i < 3:\n        x[i] = y[at[i] + 1]\n    else:\n        y[at[i] + 1] = 5",
        "`y[1]` is written by iteration i = 3 and read by i = 1",
    ),
    "of a temporary": (
        "for j in range(n):\n    t[j] = 0\nfor i in tl.parallel(n):\n    t[at[i] + 1] += x[i]\ny[0] = t[0]",
        "`t[1]` is read by iteration i = 3 and written by i = 1",
    ),
    "through a view": (
        "w = tl.view(y, tl.f32[20])\nfor i in tl.parallel(4):\n    w[at[i] + 1] = x[i]",
        "`w[1]` is written by iteration i = 3 and written by i = 1",
    ),
    "through a view of each": (
        "for i in tl.parallel(4):\n    w = tl.view(y, tl.i32[n])\n    w[at[i] + 1] = i",
        "`w[1]` is written by iteration i = 3 and written by i = 1",
    ),
    "through two views": (
        "w = tl.view(y, tl.i16[2 * n])\nfor i in tl.parallel(4):\n    w[2 * i] = 1\n    x[i] = y[at[i]]",
        "`y[0]` is read by iteration i = 1 and written by i = 0",
    ),
    "in an inner loop": (
        "for r in range(2):\n    for i in tl.parallel(3 + r):\n        y[at[i] + 1] = x[i + r]",
        "`y[1]` is written by iteration i = 3 and written by i = 1",
    ),
    "in place": (
        "for i in range(n):\n    t[i] = 1\nfor i in range(1, n):\n    u[i] = t[i]\nfor i in range(n):\n    y[i] = u[i]",
        "depends on `u[0]`",
    ),
    "division": ("z[0] = z[1] // z[3]", "1 // 0"),
    "remainder": ("z[0] = z[1] % z[3]", "1 % 0"),
    "overflow": ("z[0] = tl.i32(-2147483648) // at[2]", "-2147483648 // -1 does not fit into i32"),
    "shift": ("z[0] = z[1] << (z[1] * 32)", "shift of i32 by 32 bits"),
    "shift back": ("z[0] = z[1] >> at[2]", "shift of i32 by -1 bits"),
    "vector division": (
        "z[tl.ramp(0, 1, 4)] = tl.broadcast(tl.i32(7), 4) // at[tl.ramp(0, 1, 4)]",
        "7 // 0",
    ),
    "poison has no value": ("z[0] = z[1] // k[0]", "depends on `k[0]`"),
    "assertion": ("for i in range(n):\n    assert x[i] < 30", "assertion failed: x[i] < 30"),
    "told": ('assert n < 3, f"{n} with {t[2]}"', "40 with what was never written"),
}


def outcome(run: tl.Kernel, *, interpreted: bool = False) -> tuple[str, list[np.ndarray]]:
    """What a run says, and what it leaves in the arrays."""
    at = np.zeros(40, np.int32)
    at[:3] = (3, 0, -1)
    arrays = [np.arange(40, dtype=np.float32), at, np.zeros(40, np.float32), np.array([9, 1, 1 << 30, 0], np.int32)]
    with pytest.raises(TirliteError) as caught:
        run.interpret(*arrays) if interpreted else run(*arrays)
    return str(caught.value), arrays


@pytest.mark.parametrize("name", WRONG)
def test_checked_code_says_what_the_interpreter_says(name: str) -> None:
    body, words = WRONG[name]
    needed = ROOM if any(f"{letter}[" in body or f"view({letter}" in body for letter in "tuk") else ""
    func = tl.parse(HEADER + needed + "\n".join(f"    {line}" for line in body.split("\n")))
    wanted, left = outcome(tl.compile(func), interpreted=True)
    assert words in wanted
    for strategy in STRATEGIES:
        text, arrays = outcome(tl.compile(func, strategy=strategy, debug=True))
        assert text == wanted, strategy
        for array, expected in zip(arrays, left, strict=True):
            np.testing.assert_array_equal(array, expected)


def test_iterations_that_do_not_meet_in_larger_elements_of_a_memory_of_bytes_are_not_told() -> None:
    n = tl.dim("n")

    @tl.kernel(debug=True)
    def turned(x: tl.f32[n], at: tl.i64[n], y: tl.out[tl.f32[n]]):
        memory = tl.alloc(tl.u8[4 * n])
        for i in tl.parallel(n):
            t = tl.view(memory, tl.f32[n])
            t[at[i]] = x[i]
        u = tl.view(memory, tl.f32[n])
        for i in range(n):
            y[i] = u[i]

    x, at = np.arange(100, dtype=np.float32), np.random.default_rng(0).permutation(100)
    for _ in range(20):
        np.testing.assert_array_equal(turned(x, at)[at], x)
    with pytest.raises(TirliteError, match=r"`t\[7\]` is written by iteration i = 1 and written by i = 0"):
        turned(x, np.full(100, 7))


def test_iterations_that_meet_in_an_array_with_strides_are_told() -> None:
    n, m = tl.dims("n m")

    @tl.kernel(debug=True)
    def counted(u: tl.i64[n], c: tl.i64[m, 2]):
        for i in tl.parallel(n):
            c[u[i], 1] += 1

    room = np.zeros((10, 4), np.int64)
    counted(np.arange(5), room[::-2, 1::2])
    assert room.sum() == 5
    with pytest.raises(TirliteError, match=r"`c\[3, 1\]` is read by iteration i = 2 and written by i = 1"):
        counted(np.array([0, 3, 3]), room[::-2, 1::2])
