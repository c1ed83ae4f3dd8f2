"""UsePermissions: what is granted is done in the lowered function, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.rewrite import Normalize, UsePermissions

HEADER = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n], h: tl.f16[n], k: tl.i32[n]):
    for i in range(n):
"""


def rewritten(*lines: str) -> tl.PrimFunc:
    return UsePermissions()(Normalize()(tl.parse(HEADER + "".join(f"        {line}\n" for line in lines))))


def expect(allowed: str, before: str, after: str) -> None:
    found = rewritten(f"with tl.allow({allowed}):", f"    {before}")
    wanted = Normalize()(tl.parse(HEADER + f"        {after}\n"))
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"


@every(
    "before, after",
    [
        ("y[i] = x[i] * 2 + y[i]", "y[i] = tl.fma(x[i], 2, y[i])"),
        ("y[i] = y[i] + x[i] * 2", "y[i] = tl.fma(x[i], 2, y[i])"),
        ("y[i] = x[i] * 2 - y[i]", "y[i] = tl.fma(x[i], 2, -y[i])"),
        ("y[i] = y[i] - x[i] * 2", "y[i] = tl.fma(-x[i], 2, y[i])"),
        ("y[i] = y[i] + -(x[i] * 2)", "y[i] = tl.fma(-x[i], 2, y[i])"),
        ("y[i] = x[i] * x[i] + y[i] * y[i]", "y[i] = tl.fma(y[i], y[i], x[i] * x[i])"),
        ("y[i] = x[i] * 2 + y[i - 1] * 3", "y[i] = tl.fma(y[i - 1], 3, x[i] * 2)"),
        ("y[i] = y[i - 1] * 3 + x[i] * 2", "y[i] = tl.fma(y[i - 1], 3, x[i] * 2)"),
        ("y[i] = y[i - 1] * 3 - x[i] * 2", "y[i] = tl.fma(y[i - 1], 3, -(x[i] * 2))"),
        ("y[i] = x[i] * 2 - y[i - 1] * 3", "y[i] = tl.fma(-y[i - 1], 3, x[i] * 2)"),
        ("y[i] = x[i] + (y[i] + x[i] * 3)", "y[i] = x[i] + tl.fma(x[i], 3, y[i])"),
        ("k[i] = k[i] * 2 + 1", "k[i] = k[i] * 2 + 1"),
        ("h[i] = h[i] * h[i] + h[i]", "h[i] = h[i] * h[i] + h[i]"),
        ("y[i] = tl.tanh(x[i])", "y[i] = tl.tanh(x[i])"),
    ],
)
def test_products_and_sums_are_contracted(before: str, after: str) -> None:
    expect('"contract"', before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y[i] = tl.tanh(x[i])", "y[i] = tl.tanh(x[i], fast=True)"),
        ("y[i] = tl.sqrt(x[i]) + tl.log(x[i], fast=True)", "y[i] = tl.sqrt(x[i]) + tl.log(x[i], fast=True)"),
        ("y[i] = x[i] * 2 + y[i]", "y[i] = x[i] * 2 + y[i]"),
        ("y[i] = x[i] ** 3", "y[i] = tl.let(base, x[i], base * base * base)"),
        ("y[i] = tl.pow(x[i] + 1, 4.0)", "y[i] = tl.let(base, x[i] + 1, (base * base) * (base * base))"),
        ("y[i] = tl.pow(x[i], y[i]) + x[i] ** 2.5", "y[i] = tl.pow(x[i], y[i]) + x[i] ** 2.5"),
        ("h[i] = h[i] ** 3", "h[i] = h[i] ** 3"),
    ],
)
def test_functions_are_approximated(before: str, after: str) -> None:
    expect('"approximate"', before, after)


def test_permissions_of_blocks_add_up_and_end_with_the_block() -> None:
    found = rewritten(
        'with tl.allow("contract"):',
        "    y[i] = x[i] * 2 + y[i]",
        '    with tl.allow("approximate"):',
        "        y[i] = tl.sin(x[i]) * 2 + y[i]",
        "y[i] = x[i] * 2 + y[i]",
    )
    wanted = tl.parse(
        HEADER
        + "        y[i] = tl.fma(x[i], 2, y[i])\n"
        + "        y[i] = tl.fma(tl.sin(x[i], fast=True), 2, y[i])\n"
        + "        y[i] = x[i] * 2 + y[i]\n"
    )
    assert tl.structural_equal(found, Normalize()(wanted)), str(found)


PRODUCT = """
@tl.kernel
def product(a: tl.f32[64, 96], b: tl.f32[96, 128], c: tl.out[tl.f32[64, 128]]):
"""
AROUND_ALL = """
    with tl.allow("contract"):
        for i in range(64):
            for j in range(128):
                s = tl.f32(0)
                for p in tl.reduce(96):
                    s += a[i, p] * b[p, j]
                c[i, j] = s
"""
INSIDE = """
    for i in range(64):
        for j in range(128):
            with tl.allow("contract"):
                s = tl.f32(0)
                for p in tl.reduce(96):
                    s += a[i, p] * b[p, j]
                c[i, j] = s
"""
INNERMOST = """
    for i in range(64):
        for j in range(128):
            s = tl.f32(0)
            for p in tl.reduce(96):
                with tl.allow("contract"):
                    s += a[i, p] * b[p, j]
            c[i, j] = s
"""


def test_a_permission_goes_around_loops_of_which_it_is_for_all_operations() -> None:
    around, inside, innermost = (tl.parse(PRODUCT + text) for text in (AROUND_ALL, INSIDE, INNERMOST))
    assert tl.structural_equal(Normalize()(inside), Normalize()(around))
    assert tl.structural_equal(Normalize()(innermost), Normalize()(around))
    # Schedules see the same nest, wherever the permission is written.
    assert str(tl.compile(innermost).schedule) == str(tl.compile(around).schedule)


def test_a_permission_stays_where_other_operations_would_come_in() -> None:
    found = rewritten("t = x[i] * 2 + y[i]", 'with tl.allow("contract"):', "    y[i] = x[i] * 2 + t")
    wanted = Normalize()(tl.parse(HEADER + "        t = x[i] * 2 + y[i]\n        y[i] = tl.fma(x[i], 2, t)\n"))
    assert tl.structural_equal(found, wanted), found


def test_without_permissions_nothing_changes() -> None:
    func = Normalize()(tl.parse(HEADER + "        y[i] = x[i] * 2 + tl.tanh(y[i])\n"))
    assert UsePermissions()(func) is func


def test_a_sum_of_products_is_exact_to_one_rounding_each() -> None:
    n = tl.dim("n")

    @tl.kernel(allow="contract")
    def dot(a: tl.f64[n], b: tl.f64[n], y: tl.out[tl.f64[1]]):
        total = tl.f64(0)
        for i in tl.reduce(n):
            total += a[i] * b[i]
        y[0] = total

    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(100), rng.standard_normal(100)
    assert "tl.fma(a[tl.ramp(i, 1, 32)]" in str(dot.lowered)
    assert dot(a, b)[0] == tl.compile(dot.lowered).interpret(a, b)[0]
    # The product of what rounds apart is lost without fma: (1 + e) * (1 - e) - 1 = -e * e. Both are of one lane.
    tiny = 2.0**-30
    a, b = np.zeros((2, 33))
    a[[0, 32]], b[[0, 32]] = (-1, 1 + tiny), (1, 1 - tiny)
    assert dot(a, b)[0] == -(tiny**2)


def test_a_kernel_prints_its_permissions_and_reads_them_back() -> None:
    n = tl.dim("n")

    @tl.kernel(allow=("approximate", "contract"))
    def f(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i] * 2 + 1

    assert 'with tl.allow("approximate", "contract"):' in str(f.ir)
    assert tl.structural_equal(tl.parse(str(f.ir)), f.ir)
    assert tl.structural_equal(tl.compile(f.ir).lowered, f.lowered)


@pytest.mark.parametrize("given", ["fast", ("contract", "quick"), 3])
def test_unknown_permissions_are_refused(given: object) -> None:
    with pytest.raises(tl.CallTypeError, match="option `allow` takes one or several of 'approximate', 'contract'"):
        tl.kernel(allow=given)
    with pytest.raises(tl.KernelError, match=r"tl\.allow"):
        rewritten(f"with tl.allow({given!r}):", "    y[i] = 0")


def test_quotients_by_what_stays_the_same_are_products_with_its_reciprocal() -> None:
    n = tl.dim("n")

    @tl.kernel(allow="approximate")
    def divide(x: tl.f32[n], by: tl.f32, y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i] / by

    body = "\n".join(str(UsePermissions()(Normalize()(divide.ir))).splitlines()[4:])
    assert (
        body
        == """\
    shift = tl.select(tl.abs(by) < tl.f32(7.888609e-31), tl.f32(16777216.0), tl.select(tl.abs(by) > \
tl.f32(1.2676506e+30), tl.f32(5.9604645e-08), tl.f32(1.0)))
    inverse = tl.f32(1.0) / (by * shift)
    for i in range(n):
        y[i] = x[i] * shift * inverse"""
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_by_reciprocals_err_by_two_digits_at_most_whatever_their_size(dtype: type) -> None:
    n, kind = tl.dim("n"), tl.f32 if dtype is np.float32 else tl.f64

    @tl.kernel(allow="approximate")
    def divide(x: kind[n], by: kind, y: tl.out[kind[n]]):
        for i in range(n):
            y[i] = x[i] / by

    form = np.finfo(dtype)
    sizes = [
        0,
        form.smallest_subnormal,
        form.tiny / 3,
        form.tiny,
        1e-30,
        0.3,
        1,
        3,
        7e30,
        form.max / 3,
        form.max,
        np.inf,
    ]
    values = np.array([*sizes, *(-size for size in sizes), np.nan], dtype)
    with np.errstate(all="ignore"):
        for by in values:
            exact = values / by
            found = divide(values, by)
            assert np.array_equal(np.isnan(found), np.isnan(exact))
            assert np.array_equal(np.signbit(found), np.signbit(exact)) or np.isnan(exact).any()
            finite = np.isfinite(exact)
            assert np.array_equal(found[np.isinf(exact)], exact[np.isinf(exact)])
            assert np.all(np.abs(found - exact)[finite] <= 2 * np.spacing(np.abs(exact[finite])))


@pytest.mark.parametrize(
    "lines", [("y[i] = x[i] / y[i]",), ("y[i] = x[i] / x[0]",), ("for j in range(4):", "    y[j] = x[j] / y[i]")]
)
def test_divisors_that_may_change_are_left(lines: tuple[str, ...]) -> None:
    func = rewritten('with tl.allow("approximate"):', *(f"    {line}" for line in lines))
    assert "inverse" not in str(func)
