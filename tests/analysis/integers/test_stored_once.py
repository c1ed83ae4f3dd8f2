"""Ranges of index expressions, and which loops store to each element once."""

from __future__ import annotations

from itertools import product
from random import Random

from every import every

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.ir import Builder, Expr, PrimFunc, Store, const, i64, statements_of
from tirlite.rewrite import Normalize
from tirlite.sizes.unknown import ends


def nest(loops: str, index: str, *, before: str = "pass", shape: str = "n") -> PrimFunc:
    """A function that stores to y at `index` inside `loops`, one a line."""
    lines = ['n, m = tl.dims("n m")', "", "@tl.kernel", f"def f(x: tl.i64[n], k: tl.i64[n, m], y: tl.i64[{shape}]):"]
    lines += [f"    {line}" for line in before.splitlines() if line != "pass"]
    depth = 1
    for line in loops.strip().splitlines():
        lines.append("    " * depth + line.strip())
        depth += 1
    lines.append("    " * depth + f"y[{index}] = 0")
    return Normalize()(tl.parse("\n".join(lines)))


def range_of(loops: str, index: str, before: str = "pass") -> str:
    func = nest(loops, index, before=before)
    (store,) = statements_of(func.body, Store)
    low, high = ends(Facts(func).space.size(store.indices[0]))
    return "unknown" if low is None or high is None else f"{low} to {high}"


@every(
    "loops, index, expected",
    [
        ("for i in range(n):", "i", "0 to n - 1"),
        ("for i in range(n):", "n - 1 - i", "0 to n - 1"),
        ("for i in range(2, n, 3):", "i", "2 to 3*(n//3) - 1"),
        ("for i in range(7, 0, -2):", "i", "1 to 7"),
        ("for i in range(n):\nfor j in range(m):", "i + j", "0 to m + n - 2"),
        ("for i in range(0, n, 8):\nfor j in range(i, min(i + 8, n)):", "j - i", "0 to min(n - 1, 7)"),
        ("for i in range(min(n - 1, 7) + 1):", "i", "0 to min(n - 1, 7)"),
        ("for i in range(n):", "i % 5", "0 to 4"),
        ("for i in range(10):", "(i * 4 + 3) // 4", "0 to 9"),
        ("for i in range(10):", "i // 4", "0 to 2"),
        ("for i in range(n):", "x[i]", "unknown"),
        ("for i in range(n):", "min(x[i], 3)", "unknown"),
        ("for i in range(n):", "max(i - 1, 0)", "0 to max(n - 2, 0)"),
        ("for i in range(n):", "tl.i64(tl.i8(x[i])) + 1", "-127 to 128"),
    ],
)
def test_index_range(loops: str, index: str, expected: str) -> None:
    assert range_of(loops, index) == expected


def test_a_let_counts_as_what_it_stands_for() -> None:
    assert range_of("for i in range(n):", "half + i", "half = n // 2") == "n//2 to n + n//2 - 1"


@every(
    "loops, index, expected",
    [
        ("for i in range(n):", "i", True),
        ("for i in range(n):", "2 * i + 1", True),
        ("for i in range(n):", "0", False),
        ("for i in range(1):", "0", True),
        ("for i in range(n):\nfor j in range(m):", "j, i", True),
        ("for i in range(n):\nfor j in range(8):", "i * 8 + j", True),
        ("for i in range(n):\nfor j in range(9):", "i * 8 + j", False),
        ("for i in range(n):\nfor j in range(m):", "i", False),
        ("for i in range(n):", "i // 4, i % 4", True),
        ("for i in range(n):", "i // 4, i % 3", False),
        ("for i in range(n):\nfor j in range(i, n):", "j", False),
        ("for i in range(0, n, 4):\nfor j in range(i, i + 4):", "j", True),
        ("for i in range(n):", "x[i]", False),
        ("for i in range(n):", "i * 4611686018427387904", False),
        ("for i in range(n):\nfor j in range(m):", "i * i, j", False),
    ],
)
def test_each_element_is_stored_once(loops: str, index: str, expected: bool) -> None:
    shape = ", ".join(["n"] * len(index.split(",")))
    assert (Facts(nest(loops, index, shape=shape)).dependences == ()) is expected


def test_digits_of_symbolic_width() -> None:
    func = nest("for i in range(n):\nfor j in range(m):", "i * m + j", shape="n * m")
    assert Facts(func).dependences == ()


def test_it_agrees_with_counting() -> None:
    proved = 0
    for seed in range(300):
        random = Random(seed)
        b = Builder("f")
        y = b.param("y", i64[100])
        extents = [random.randint(1, 5) for _ in range(random.randint(1, 3))]
        strides = [random.randint(-9, 9) for _ in extents]
        blocks = [b.for_(f"i{k}", 0, extent) for k, extent in enumerate(extents)]
        total: Expr = const(50, i64)
        for block, stride in zip(blocks, strides, strict=True):
            total = total + block.__enter__() * stride
        b.store(y, total % 100, 0)
        for block in reversed(blocks):
            block.__exit__(None, None, None)
        values = [sum(map(int.__mul__, strides, point)) for point in product(*map(range, extents))]
        if Facts(b.build()).dependences == ():
            assert len(set(values)) == len(values), f"seed {seed}"
            proved += 1
    assert proved > 50
