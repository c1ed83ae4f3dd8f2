"""Ranges of index expressions, indices as sums of counters, and which maps are injective."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

import tirlite as tl
from tirlite.analysis.integers.index_map import affine_map, is_injective
from tirlite.analysis.integers.index_space import IndexSpace, index_range
from tirlite.ir import Builder, Expr, For, PrimFunc, Store, const, i64, statements
from tirlite.rewrite import Normalize
from tirlite.sizes import Proof


def nest(loops: str, index: str, *, before: str = "pass") -> tuple[PrimFunc, list[For], tuple[Expr, ...]]:
    """A function that stores to y at `index` inside `loops`, one a line; its loops, and the indices."""
    axes = ", ".join(["n"] * len(index.split(";")))
    lines = ['n, m = tl.dims("n m")', "", "@tl.kernel", f"def f(x: tl.i64[n], k: tl.i64[n, m], y: tl.i64[{axes}]):"]
    lines += [f"    {line}" for line in before.splitlines() if line != "pass"]
    depth = 1
    for line in loops.strip().splitlines():
        lines.append("    " * depth + line.strip())
        depth += 1
    lines.append("    " * depth + f"y[{index.replace(';', ',')}] = 0")
    func = Normalize()(tl.parse("\n".join(lines)))
    (store,) = (s for s in statements(func.body) if isinstance(s, Store))
    return func, [s for s in statements(func.body) if isinstance(s, For)], store.indices


def ranges(loops: str, index: str, before: str = "pass") -> str:
    func, _, indices = nest(loops, index, before=before)
    found = [index_range(each, IndexSpace(func)) for each in indices]
    return "; ".join("unknown" if ends is None else f"{ends[0]} to {ends[1]}" for ends in found)


def injective(loops: str, index: str, before: str = "pass") -> Proof | None:
    func, nested, indices = nest(loops, index, before=before)
    found = affine_map(indices, IndexSpace(func))
    return None if found is None else is_injective(found, nested)


@pytest.mark.parametrize(
    ("loops", "index", "expected"),
    [
        ("for i in range(n):", "i", "0 to n - 1"),
        ("for i in range(n):", "n - 1 - i", "0 to n - 1"),
        ("for i in range(2, n, 3):", "i", "2 to 3*(n//3) - 1"),
        ("for i in range(7, 0, -2):", "i", "1 to 7"),
        ("for i in range(n):\nfor j in range(m):", "i + j", "0 to m + n - 2"),
        ("for i in range(0, n, 8):\nfor j in range(i, min(i + 8, n)):", "j - i", "0 to min(n - 1, 7)"),
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
    assert ranges(loops, index) == expected


def test_a_let_counts_as_what_it_stands_for() -> None:
    func, _, (index,) = nest("for i in range(n):", "half + i", before="half = n // 2")
    assert ranges("for i in range(n):", "half + i", "half = n // 2") == "n//2 to n + n//2 - 1"


@pytest.mark.parametrize(
    ("loops", "index", "expected"),
    [
        ("for i in range(n):", "i", Proof.YES),
        ("for i in range(n):", "2 * i + 1", Proof.YES),
        ("for i in range(n):", "0", Proof.UNKNOWN),
        ("for i in range(4):", "0", Proof.NO),
        ("for i in range(1):", "0", Proof.YES),
        ("for i in range(n):\nfor j in range(m):", "j; i", Proof.YES),
        ("for i in range(n):\nfor j in range(8):", "i * 8 + j", Proof.YES),
        ("for i in range(n):\nfor j in range(9):", "i * 8 + j", Proof.UNKNOWN),
        ("for i in range(n):\nfor j in range(m):", "i", Proof.UNKNOWN),
        ("for i in range(n):", "i // 4; i % 4", Proof.YES),
        ("for i in range(n):", "i // 4; i % 3", Proof.UNKNOWN),
        ("for i in range(n):\nfor j in range(i, n):", "j", Proof.UNKNOWN),
        ("for i in range(0, n, 4):\nfor j in range(i, i + 4):", "j", Proof.YES),
        ("for i in range(n):", "x[i]", None),
        ("for i in range(n):", "i * 4611686018427387904", None),
        ("for i in range(n):\nfor j in range(m):", "i * i; j", None),
    ],
)
def test_is_injective(loops: str, index: str, expected: Proof | None) -> None:
    assert injective(loops, index) is expected


def test_digits_of_symbolic_width() -> None:
    func, loops, (index,) = nest("for i in range(n):\nfor j in range(m):", "i * m + j")
    space = IndexSpace(func)
    # Nothing bounds n * m, which might wrap around; inside a buffer of as many elements it does not.
    assert affine_map([index], space) is None
    n, m = (space.extents.sizes[dim] for dim in func.dims)
    found = affine_map([index], space, [n * m])
    assert found is not None
    assert is_injective(found, loops) is Proof.YES
    assert str(index_range(index, space, n * m)) == "(0, m*n - 1)"


def test_it_agrees_with_counting() -> None:
    counts = dict.fromkeys(Proof, 0)
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
        func = b.build()
        loops = [s for s in statements(func.body) if isinstance(s, For)]
        found = affine_map([total], IndexSpace(func))
        assert found is not None
        proof = is_injective(found, loops)
        values = [sum(map(int.__mul__, strides, point)) for point in product(*map(range, extents))]
        truth = Proof.YES if len(set(values)) == len(values) else Proof.NO
        assert proof in (truth, Proof.UNKNOWN), f"seed {seed}"
        counts[proof] += 1
    assert counts[Proof.YES] > 50
    assert counts[Proof.NO] > 20
