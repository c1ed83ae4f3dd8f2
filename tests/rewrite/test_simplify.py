"""Integer expressions, conditions and loops, and what is left of them under what is known around them."""

from __future__ import annotations

import numpy as np
import pytest
from every import every
from rewrite.simplify_trial import counted, trial

import tirlite as tl
from tirlite.ir import PrimFunc, Store, statements, text
from tirlite.rewrite import Normalize, Simplify

# What stands around the expression, and the expression before and after. `i` is below n, `j` below 64.
NEST = "for i in range(n)\nfor j in range(64)"
TILES = "for i in range(0, n, 64)\nfor j in range(i, min(i + 64, n))"

SUMS = """
i * 64 + j - i * 64                     | j
i + 1 + j + 2 - 3                       | i + j
2 * (i + j) - i - j                     | i + j
i * 64 + j * 64                         | (i + j) * 64
i * n + j * n                           | (i + j) * n
-(j - i)                                | i - j
0 - j                                   | -j
i * 4 * 16 + 0                          | 64 * i
(i << 3) + (i << 3)                     | 16 * i
s + 1 - s                               | 1
x[i] * 2 + x[i]                         | 3 * x[i]
max(i - 3, 0) + 3                       | max(i, 3)
n - max(n - i, j)                       | min(n - j, i)
min(i * 8 + 8, n) - i * 8               | min(n - 8 * i, 8)
"""
QUOTIENTS = """
(i * 64 + j) // 64                      | i
(i * 64 + j + 64) // 64                 | i + 1
(i * 64 + j * 64) // 64                 | i + j
(i * n + j * n) // n                    | (i + j) * n // n
(i * 128 + j * 2 + 1) // 2              | 64 * i + j
i // 4 // 16                            | i // 64
j // 64                                 | 0
(j + 64 * s) // 64                      | (j + 64 * s) // 64
i * 8 >> 3                              | i
tl.truncdiv(i * 4 + 4, 4)               | i + 1
k // 8 * 8                              | k
"""
REMAINDERS = """
(i * 64 + j) % 64                       | j
(i * 64 + j) % 32                       | j % 32
(i * n + j) % n                         | (i * n + j) % n
(i + s * 8) % 8                         | i % 8
i * 64 % 64                             | 0
(i * 64 + j) & 63                       | j
i % n                                   | i
i // 64 * 64 + i % 64                   | i
k % 4                                   | 0
(i * 2 + 1) % 2                         | 1
"""
EXTREMA = """
min(i, n)                               | i
max(i, 0)                               | i
min(j, 63)                              | j
max(min(j, 100), -1)                    | j
min(min(i, n), i + 1)                   | i
min(i, j, n, 64)                        | min(i, j)
max(j, j + i)                           | j + i
min(i + 4, j + 4)                       | min(i, j) + 4
"""
CONDITIONS = """
tl.i64(i < n)                           | 1
tl.i64(j >= 64)                         | 0
tl.i64(i + 3 < n + 3)                   | 1
tl.i64(i + 3 < j + 3)                   | tl.i64(i < j)
tl.i64(i * 4 < j * 4 + 2)               | tl.i64(i <= j)
tl.i64(2 * i == 2 * j + 1)              | 0
tl.i64(2 * i != 2 * j)                  | tl.i64(i != j)
tl.i64(not i < j)                       | tl.i64(i >= j)
tl.i64(i < j and i < n)                 | tl.i64(i < j)
tl.i64(i < 8 and i < 4)                 | tl.i64(i < 4)
tl.i64(i < 4 or i < 8)                  | tl.i64(i < 8)
tl.i64(i < j or j < 64)                 | 1
tl.i64(i < 4 and min(i, 8) < j)         | tl.i64(i < 4 and i < j)
tl.select(j < 64, i, s)                 | i
tl.if_then_else(i >= n, x[s], i)        | i
tl.if_then_else(i < 4, min(i, 4), i)    | i
tl.i64(tl.i32(j))                       | j
"""


def nest(around: str, *stmts: str) -> PrimFunc:
    lines = ['n = tl.dim("n")', 'k = tl.dim("k", multiple_of=8)', "", "@tl.kernel"]
    lines.append("def f(x: tl.i64[n], z: tl.i64[k], s: tl.i64, y: tl.i64[n]):")
    depth = 1
    for line in around.splitlines():
        lines.append("    " * depth + line + ":")
        depth += 1
    lines += ["    " * depth + stmt for stmt in stmts]
    return Normalize()(tl.parse("\n".join(lines)))


def simplified(around: str, expr: str) -> str:
    func = Simplify()(nest(around, f"y[0] = {expr}"))
    (store,) = (stmt for stmt in statements(func.body) if isinstance(stmt, Store))
    return text(store.value)


FORMS = [line for line in (SUMS + QUOTIENTS + REMAINDERS + EXTREMA + CONDITIONS).splitlines() if line]


@every("line", FORMS)
def test_each_form_becomes_its_shortest(line: str) -> None:
    before, after = map(str.strip, line.split(" | "))
    assert simplified(NEST, before) == after


@pytest.mark.parametrize(
    "expr",
    [
        "x[i] - x[i]",
        "0 * (i // s)",
        "min(i, n) * 0 + s % s",
        "(i // s << 3) * 4611686018427387904",
        "tl.select(i < n, i, x[s])",
        "tl.i64(x[s] > 0 and i < 0)",
    ],
)
def test_what_may_stop_the_kernel_stays(expr: str) -> None:
    """A read may be outside of its buffer, and of what nothing wrote; a divisor may be 0."""
    before = nest(NEST, f"y[0] = {expr}")
    assert ("[" in simplified(NEST, expr)) == ("[" in expr)
    (store,) = (stmt for stmt in statements(Simplify()(before).body) if isinstance(stmt, Store))
    assert any(kept in text(store.value) for kept in ("x[", "s"))


def test_scalars_may_be_anything_and_wrap_around() -> None:
    assert simplified(NEST, "s * 64 // 64") == "s * 64 // 64"
    assert simplified(NEST, "min(s, s + 1)") == "min(s, s + 1)"


def body(around: str, *stmts: str) -> list[str]:
    """The lines of what is left of statements."""
    printed = str(Simplify()(nest(around, *stmts))).splitlines()
    start = next(number for number, line in enumerate(printed) if line.startswith("def "))
    return [line.removeprefix("    ") for line in printed[start + 1 :]]


def test_branches_that_are_never_taken_go() -> None:
    stmts = "if 4 >= 64:", "    y[i] = 1", "else:", "    y[i] = 2"
    assert body("for i in range(n)", *stmts) == ["for i in range(n):", "    y[i] = 2"]


def test_conditions_are_known_in_their_branches() -> None:
    stmts = "if i < 8 and s < 4:", "    y[i] = min(i, 9) + max(s, 4)", "elif i >= 8:", "    y[i] = max(i, 7)"
    assert body("for i in range(n)", *stmts) == [
        "for i in range(n):",
        "    if i < 8 and s < 4:",
        "        y[i] = i + 4",
        "    elif i >= 8:",
        "        y[i] = i",
    ]


def test_tiles_begin_and_end_in_bounds() -> None:
    assert body(TILES, "y[j] = (j - i) // 64 + min(j, n) + i % 64") == [
        "for i in range(0, n, 64):",
        "    for j in range(i, min(i + 64, n)):",
        "        y[j] = j",
    ]


def test_what_begins_at_the_greater_of_two_is_at_least_either() -> None:
    """The counter's last is one thing where the tile begins the loop, another where the 2 does."""
    around = "for i in range(0, n, 64)\nfor j in range(max(i, 2), min(i + 64, n - 2))"
    assert body(around, "y[j] = max(j - 2, 0) + min(j + 2, n - 1)")[2:] == ["        y[j] = 2 * j"]


def test_loops_of_one_iteration_and_of_none_go() -> None:
    assert body("for i in range(3, 3)", "y[i] = 1") == ["pass"]
    assert body("for i in range(n, n + 1)", "y[0] = i") == ["y[0] = n"]
    assert body("for i in range(s % 4, s % 4 + 1)", "y[i] = i") == ["i = s % 4", "y[i] = i"]


def test_names_of_narrow_integers_are_read_where_they_are_defined_alone() -> None:
    size = tl.dim("size")

    @tl.kernel
    def named(a: tl.u8, y: tl.i64[size]):
        for i in range(size):
            if i > 2:
                wide = tl.i32(a)
                y[i] = wide
        for i in range(size):
            y[i] += max(tl.i64(a), tl.i64(a)) ^ i

    y = np.zeros(5, np.int64)
    named(3, y)
    assert y.tolist() == [3, 2, 1, 3, 10]
    assert "y[i] = y[i] + (tl.i64(a) ^ i)" in str(named.lowered)


def test_what_changes_nothing_gives_the_same_function() -> None:
    func = nest(NEST, "y[i] = i + j")
    assert Simplify()(func) is func


def test_random_expressions_keep_their_values_and_errors() -> None:
    with counted() as fired:
        for seed in range(400):
            trial(seed)
    assert len(fired) > 20
