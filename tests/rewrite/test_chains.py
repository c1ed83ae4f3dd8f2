"""A reduction that waits for itself combines its iterations into several results by turns."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.rewrite import CheckReductions, Normalize, SplitReductions

n, m = tl.dims("n m")


def lowered(source: str) -> tl.PrimFunc:
    return SplitReductions("x86-64-v4")(CheckReductions()(Normalize()(tl.parse(source))))


SOURCE = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], k: tl.i32[n, m], y: tl.f32[64]):
    s = tl.alloc(tl.f32[64], scope="local")
    t = tl.alloc(tl.f32[()], scope="local")
    c = tl.alloc(tl.i32[()], scope="local")
    {}
    y[0] = s[0] + t[()] + tl.f32(c[()])
"""


def test_rows_go_into_four_vectors_of_columns() -> None:
    columns = "tl.ramp(0, 1, 32)"
    found = lowered(SOURCE.format(f"for i in tl.reduce(n): s[{columns}] = max(s[{columns}], x[i, {columns}])"))
    declared = "".join(
        f"""
        s{at} = tl.alloc(tl.f32[64], scope="local")
        s{at}[{columns}] = tl.broadcast(tl.f32("-inf"), 32)"""
        for at in (1, 2, 3)
    )
    rows = "".join(
        f"\n            s{at}[{columns}] = max(s{at}[{columns}], x[i + {at}, {columns}])" for at in (1, 2, 3)
    )
    wanted = SOURCE.format(f"""if n >= 8:{declared}
        for i in range(0, n // 4 * 4, 4):
            s[{columns}] = max(s[{columns}], x[i, {columns}]){rows}
        s[{columns}] = max(s[{columns}], s2[{columns}])
        s1[{columns}] = max(s1[{columns}], s3[{columns}])
        s[{columns}] = max(s[{columns}], s1[{columns}])
        for i in range(n // 4 * 4, n):
            s[{columns}] = max(s[{columns}], x[i, {columns}])
    else:
        for i in range(n):
            s[{columns}] = max(s[{columns}], x[i, {columns}])""")
    assert tl.structural_equal(found, Normalize()(tl.parse(wanted))), str(found)


def test_rows_behind_groups_of_rows_go_by_turns_if_they_are_all_there_is() -> None:
    body = "for i in range(m // 4 * 4, m):\n        for p in tl.reduce(n):\n            t[()] += x[p, i]"
    (choice,) = tl.ir.statements_of(lowered(SOURCE.format(body)).body, tl.ir.IfThenElse)
    assert tl.ir.text(choice.condition) == "m // 4 * 4 == 0 and n >= 8"


@every(
    "loop",
    [
        "for i in tl.reduce(7): t[()] += x[i, 0]",  # too short
        "for i in tl.reduce(n): s[tl.ramp(0, 1, 64)] += x[i, tl.ramp(0, 1, 64)]",  # keeps four registers busy
        "for i in tl.reduce(n): c[()] += k[i, 0]",  # LLVM may regroup integers
        "for i in tl.reduce(n): y[3] += x[i, 0]",  # stands in memory
        "for i in tl.reduce(n): t[()] += tl.exp(x[i, 0])",  # takes longer than it waits
        "for i in tl.reduce(n): t[()] += product",  # as does one of 60 factors
        "for i in tl.reduce(n):\n        if x[i, 0] > 0:\n            t[()] += x[i, 1]",
    ],
)
def test_other_loops_go_in_order(loop: str) -> None:
    source = SOURCE.format(loop.replace("product", " * ".join(["x[i, 0]"] * 60)))
    assert tl.structural_equal(lowered(source), Normalize()(tl.parse(source.replace("tl.reduce", "range"))))


@tl.kernel(allow="contract")
def columns(x: tl.f32[n, m], total: tl.f32[m], least: tl.f32[m], power: tl.f64[2]):
    for j in range(m):
        s, t = tl.f32(0), x[0, j]
        for i in tl.reduce(n):
            square = x[i, j] * x[i, j]
            s += square
            t = min(t, x[i, j])
        total[j], least[j] = s, t
    p = tl.f64(1)
    q = tl.f64(0)
    for i in tl.reduce(n):
        p *= tl.f64(x[i, 0])
        q -= tl.f64(x[i, m - 1])
    power[0], power[1] = p, q


@pytest.mark.parametrize("machine", ["host", "x86-64-v3"])
def test_results_are_those_of_the_lowered_function(machine: str) -> None:
    kernel = tl.compile(columns, target=tl.Target(machine) if machine != "host" else tl.Target.host())
    as_lowered = tl.compile(kernel.lowered).interpret
    for rows in (1, 3, 4, 7, 8, 9, 30):
        for width in (1, 2, 16, 33, 64, 70):
            x = np.random.default_rng(rows).integers(-2, 3, (rows, width)).astype(np.float32)
            found = [np.zeros(width, np.float32), np.zeros(width, np.float32), np.zeros(2)]
            again = [each.copy() for each in found]
            kernel(x, *found)
            as_lowered(x, *again)
            for mine, its in zip(found, again, strict=True):
                np.testing.assert_array_equal(mine, its)
            np.testing.assert_array_equal(found[0], (x * x).sum(0))
            np.testing.assert_array_equal(found[1], x.min(0))
            np.testing.assert_array_equal(found[2], [x[:, 0].astype(np.float64).prod(), -x[:, -1].sum()])
