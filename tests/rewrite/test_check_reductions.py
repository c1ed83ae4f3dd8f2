"""What may stand in a loop over tl.reduce, and what is refused."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from every import every

import tirlite as tl
from tirlite import ir
from tirlite.ir import f32
from tirlite.rewrite import CheckReductions, Normalize

HEADER = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n], k: tl.i32[n]):
    total = tl.alloc(tl.f32[2])
    alias = tl.view(total, tl.f32[2])
    for i in tl.reduce(n):
        t = tl.alloc(tl.f32[2])
"""
CALLEES = """
n = tl.dim("n")

@tl.kernel
def fill(z: tl.f32[n]):
    z[0] = 0

@tl.kernel
def read(z: tl.f32[n], r: tl.f32[n]):
    r[0] = z[0]

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n]):
    total = tl.alloc(tl.f32[2])
    for i in tl.reduce(n):
        t = tl.alloc(tl.f32[2])
        read(x, t)
        fill(t)
"""


def check(body: str, header: str = HEADER) -> None:
    CheckReductions()(Normalize()(tl.parse(header + indent(dedent(body).strip("\n"), " " * 8))))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('total[0] += tl.call_extern("f32", "of", tl.access_ptr(x, i, 1, "r"))', id="an address to read"),
        pytest.param("y[k[i]] += 1", id="a histogram"),
        pytest.param("if x[i] > 0:\n    total[0] = total[0] + x[i]", id="in a branch"),
        pytest.param("total[0] = min(x[i], total[0])", id="on the right"),
        pytest.param("total[0] += x[i]\ntotal[1] *= x[i]", id="elements that are told apart"),
        pytest.param("y[i] = x[i]\ny[i] = y[i] * 2\ntotal[0] += y[i]", id="elements of its own"),
        pytest.param("y[2 * i + 1] = x[i]\ntotal[0] += y[2 * i]", id="elements that no other iteration writes"),
        pytest.param("for j in tl.reduce(3):\n    total[0] += x[i] * tl.f32(j)", id="two loops"),
    ],
)
def test_these_are_reductions(body: str) -> None:
    check(body)


@every(
    "code, body",
    [
        ("reduction-read", "y[k[i]] += y[0]"),
        ("reduction-read", "total[0] += x[i]\nif total[0] > 5:\n    y[i] = 0"),
        ("reduction-read", "total[0] += alias[1]"),
        ("reduction-mixture", "total[0] += x[i]\ntotal[0] = 0"),
        ("reduction-mixture", "total[0] += x[i]\nalias[1] *= x[i]"),
        ("reduction-carried", "y[0] = x[i]"),
        ("reduction-carried", "y[i] = x[i]\ntotal[0] += y[0]"),
        ("reduction-carried", "total[0] = x[i] - total[0]"),
        ("reduction-converted", "total[0] += tl.f64(x[i])"),
        ("reduction-converted", "total[0] = tl.f32(max(tl.f64(x[i]), tl.f64(total[0])))"),
        ("reduction-converted", "total[0] = tl.f32(tl.f64(total[0]) - x[i])"),
    ],
)
def test_these_are_not(code: str, body: str) -> None:
    with pytest.raises(tl.KernelError) as caught:
        check(body)
    assert caught.value.code == code


def test_calls_count_by_what_the_callee_does() -> None:
    check("total[0] += t[0]", CALLEES)
    for code, body in (
        ("reduction-read", "total[0] += x[i]\nread(total, t)"),
        ("reduction-mixture", "total[0] += x[i]\nfill(total)"),
        ("reduction-carried", "fill(y)"),
    ):
        with pytest.raises(tl.KernelError) as caught:
            check(body, CALLEES)
        assert caught.value.code == code


def test_one_load_object_that_stands_in_two_places_is_read_beside_the_update() -> None:
    n = tl.dim("n")
    b = ir.Builder("shared")
    x, y = b.param("x", f32[n]), b.param("y", f32[n])
    with b.reduce("i", 0, n) as i:
        element = x[0]
        b.store(x, 0, element + y[i])
        b.store(y, i, element)
    with pytest.raises(tl.KernelError, match="is combined over `i`, and read"):
        CheckReductions()(Normalize()(b.build()))


def test_elements_of_an_iteration_are_its_own_where_they_are_checked() -> None:
    func = tl.parse("""
    n = tl.dim("n")

    @tl.kernel
    def f(x: tl.i32[n], k: tl.i32[n], y: tl.i32[n], s: tl.i64):
        for i in tl.reduce(n - s):
            x[i] += 3
            if 0 <= k[i] and k[i] < n:
                y[k[i]] += x[tl.checked(i)]
    """)
    CheckReductions()(Normalize()(func))
