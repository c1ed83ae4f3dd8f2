"""What the iteration before has stored is taken in last, so that only one comparison waits for it."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.codegen.loops.carried import carried_last
from tirlite.ir import For, Store, statements_of

n, m = tl.dims("n m")


def ordered(value: str) -> str:
    """What is stored in the place of a value."""
    func = tl.parse(
        f"""
n, m = tl.dims("n m")

@tl.kernel
def f(d: tl.i32[n + 1, m + 1], x: tl.i32[n], a: tl.i32[m]):
    for i in range(n):
        for j in range(m):
            d[i + 1, j + 1] = {value}
"""
    )
    (store,) = statements_of(func.body, Store)
    return str(carried_last(store.value, [*statements_of(func.body, For)][-1]))


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("min(min(d[i + 1, j] + 1, a[j]), d[i, j])", "min(min(a[j], d[i, j]), d[i + 1, j] + tl.i32(1))"),
        ("2 + max(a[j], max(d[i + 1, j], d[i, j]))", "tl.i32(2) + max(max(a[j], d[i, j]), d[i + 1, j])"),
    ],
)
def test_what_is_carried_comes_last(written: str, found: str) -> None:
    assert ordered(written) == found


def test_what_goes_by_a_scalar_of_the_iteration_is_ordered_too() -> None:
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def f(d: tl.i32[n + 1], a: tl.i32[n]):
    for i in range(n):
        v = tl.i32(2)
        v = max(max(d[i], v), a[i])
        d[i + 1] = v
""")
    (loop,) = statements_of(func.body, For)
    (_, longest, _) = statements_of(func.body, Store)
    assert str(carried_last(longest.value, loop)) == "max(max(v[()], a[i]), d[i])"


@pytest.mark.parametrize(
    "written",
    [
        "min(min(a[j], d[i, j]), d[i + 1, j])",
        "min(max(d[i + 1, j], a[j]), d[i, j])",
        "min(d[i + 1, j], a[j])",
        "min(min(d[i + 1, j], a[j]), d[i, j] // a[j])",
    ],
)
def test_other_values_stay(written: str) -> None:
    assert ordered(written) == ordered("a[j]").replace("a[j]", written)


def test_distances_of_words() -> None:
    @tl.kernel
    def edits(s: tl.u8[n], t: tl.u8[m], d: tl.i32[n + 1, m + 1]):
        for i in range(n):
            for j in range(m):
                cost = tl.i32(0) if s[i] == t[j] else tl.i32(1)
                d[i + 1, j + 1] = min(min(d[i + 1, j] + 1, d[i, j + 1] + 1), d[i, j] + cost)

    s, t = np.frombuffer(b"kitten", np.uint8), np.frombuffer(b"sitting", np.uint8)
    for run in (edits, edits.interpret):
        d = np.zeros((7, 8), np.int32)
        d[0], d[:, 0] = np.arange(8), np.arange(7)
        run(s, t, d)
        assert d[-1, -1] == 3
