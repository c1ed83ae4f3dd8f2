"""Programs that are deeper or longer than any that a person writes compile, and do what they say."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from effort import effort

import tirlite as tl
from tirlite.codegen import statements
from tirlite.codegen.functions import pieces
from tirlite.codegen.llvm import machine
from tirlite.codegen.llvm.machine import Effort, effort_for
from tirlite.codegen.llvm.text import Extent
from tirlite.ir import IntImm, f32, i64, u8
from tirlite.ir.builder import Builder


def test_a_sum_of_ten_thousand_terms() -> None:
    b = Builder("total")
    x, y = b.param("x", f32[10_000]), b.param("y", f32[1], out=True)
    total = x[0]
    for k in range(1, 10_000):
        total = total + x[k]
    b.store(y, 0, total)
    kernel = tl.compile(b.build())
    assert kernel(np.ones(10_000, np.float32)).tolist() == [10_000]
    assert "LLVM's effort: little" in str(kernel.timing)


def test_ten_thousand_statements_in_a_row() -> None:
    b = Builder("rows")
    x, y = b.param("x", f32[10_000]), b.param("y", f32[10_000], out=True)
    for k in range(10_000):
        b.store(y, k, x[k] * 2)
    x = np.arange(10_000, dtype=np.float32)
    with effort(Effort.NONE):  # at least effort LLVM looks at each two of them
        np.testing.assert_array_equal(tl.compile(b.build())(x), 2 * x)


def test_two_thousand_nested_loops() -> None:
    b = Builder("nest")
    y = b.param("y", i64[1])
    with contextlib.ExitStack() as loops:
        for k in range(2000):
            loops.enter_context(b.for_(f"i{k}", 0, 1))
        b.store(y, 0, y[0] + 1)
    y = np.zeros(1, np.int64)
    kernel = tl.compile(b.build())
    kernel(y)
    assert y.tolist() == [1]
    assert "2000 loops (2000 deep)" in str(kernel.timing)


@pytest.mark.parametrize(
    ("extent", "effort"),
    [
        (Extent(lines=50_000, longest=1_400, loops=40), Effort.FULL),
        (Extent(lines=50_000, longest=1_400, loops=40, vectors=40_000), Effort.MOST),
        (Extent(lines=1_900, longest=700, loops=20, vectors=1_900), Effort.MOST),
        (Extent(lines=1_900, longest=700, loops=20, vectors=1_900, by_elements=1), Effort.FULL),
        (Extent(lines=50_000, longest=1_400, loops=40, pieces=4), Effort.FULL),
        (Extent(lines=50_000, longest=1_400, loops=40, pieces=35), Effort.SOME),
        (Extent(lines=5_000, longest=1_400, loops=400), Effort.SOME),
    ],
    ids=[
        "network",
        "network by vectors",
        "kernel by vectors",
        "kernel by vectors and elements",
        "network whose main is cut",
        "one function in pieces",
        "loops",
    ],
)
def test_effort_goes_by_the_greatest_function(extent: Extent, effort: Effort) -> None:
    assert effort_for(extent) is effort


def test_deep_conditions_and_conditionals() -> None:
    b = Builder("deep")
    x, y = b.param("x", i64[2]), b.param("y", i64[2], out=True)
    condition, value = x[0] > 0, IntImm(i64, 0)
    for k in range(1000):
        condition = tl.ir.And(condition, x[0] > k)
        value = tl.ir.Call(i64, tl.ir.Op.IF_THEN_ELSE, (x[1] > k, value + x[1], value))
    b.store(y, 0, condition.astype(i64))
    kernel = tl.compile(b.build())
    assert kernel(np.array([1000, 3])).tolist()[0] == 1
    assert kernel(np.array([999, 3])).tolist()[0] == 0


def test_two_thousand_nested_branches() -> None:
    b = Builder("branches")
    x, y = b.param("x", i64[1]), b.param("y", i64[1], out=True)
    with contextlib.ExitStack() as branches:
        for k in range(2000):
            branches.enter_context(b.if_(x[0] > k))
            b.store(y, 0, k)
    kernel = tl.compile(b.build())
    for most in (1, 1500, 9999):
        assert kernel(np.array([most])).tolist() == [min(most, 2000) - 1]


def long_chain(count: int) -> tl.PrimFunc:
    """Temporaries in a row, each made of the one before, with an assert and a let in between."""
    b = Builder("chain")
    n = tl.dim("n")
    x, y = b.param("x", f32[n]), b.param("y", f32[n], out=True)
    before = x
    for k in range(count):
        t = b.alloc(f"t{k}", f32[n])
        factor = b.let(f"f{k}", IntImm(i64, k % 3) + n - n)
        with b.for_("i", 0, n) as i:
            b.store(t, i, before[i] + factor)
        b.assert_(t[0] < 100, f"too much after {k}")  # noqa: PT009
        before = t
    with b.for_("i", 0, n) as i:
        b.store(y, i, before[i])
    return b.build()


def test_long_blocks_are_cut_into_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tl.compile(long_chain(20))
    x = np.arange(9, dtype=np.float32)
    expected = whole(x)
    assert "_piece" not in whole.llvm
    monkeypatch.setattr(pieces, "LARGEST", 100)
    monkeypatch.setattr(statements, "LARGEST", 100)
    monkeypatch.setattr(pieces, "SMALLEST", 1)
    for strategy in ("none", "share"):
        cut = tl.compile(long_chain(20), strategy=strategy)
        np.testing.assert_array_equal(cut(x), expected)
        assert cut.llvm.count("define internal") >= 4
        with pytest.raises(tl.KernelAssertionError, match=r"too much after 1 \(t1\[0\] = 100.0\)"):
            cut(x + 99)


def test_pieces_count_for_the_function_that_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of many functions of middle length is no function that LLVM would take minutes over."""
    b = Builder("network")
    x, y = b.param("x", f32[9]), b.param("y", f32[9], out=True)
    middle = b.alloc("middle", f32[9])
    for number, (source, target) in enumerate(((x, middle), (middle, y))):
        chain = replace(long_chain(20), name=f"chain{number}")
        b.add(tl.ir.KernelCall(chain, (tl.ir.BufferRef(source), tl.ir.BufferRef(target))))
    monkeypatch.setattr(pieces, "LARGEST", 100)
    monkeypatch.setattr(statements, "LARGEST", 100)
    monkeypatch.setattr(pieces, "SMALLEST", 1)
    seen = []
    with patch.object(machine, "effort_for", lambda extent: seen.append(extent) or Effort.NONE):
        whole, one = tl.compile(b.build()), tl.compile(long_chain(20))
        assert whole(np.zeros(9, np.float32)).shape == (9,)
        assert one(np.zeros(9, np.float32)).shape == (9,)
    assert "callee1_piece1" in whole.llvm
    assert seen[0].pieces == seen[1].pieces > 0


def test_a_piece_takes_the_arena_in_place_of_its_views(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder("views")
    x, y = b.param("x", f32[8]), b.param("y", f32[8], out=True)
    arena, before = b.alloc("arena", u8[1 << 20]), x
    for k in range(20):
        t = b.view(f"t{k}", arena, f32[8], 4096 * k, fresh=True)
        with b.for_("i", 0, 8) as i:
            b.store(t, i, before[i] + 1)
        before = t
    with b.for_("i", 0, 8) as i:
        b.store(y, i, before[i])
    monkeypatch.setattr(pieces, "LARGEST", 200)
    monkeypatch.setattr(statements, "LARGEST", 200)
    kernel = tl.compile(b.build())
    assert kernel(np.zeros(8, np.float32)).tolist() == [20] * 8
    heads = [line for line in kernel.llvm.splitlines() if "_piece" in line and line.startswith("define")]
    assert len(heads) >= 2
    assert all(head.count("ptr") <= 2 for head in heads)


def test_a_thousand_temporaries() -> None:
    x = np.zeros(5, np.float32)
    x[0] = -1000
    kernel = tl.compile(long_chain(1000), strategy="share")
    np.testing.assert_array_equal(kernel(x), x + sum(k % 3 for k in range(1000)))
