"""SplitReductions, before and after: partial results in vectors, the last one masked, combined by halves."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from unittest.mock import patch

import numpy as np
import pytest

import tirlite as tl
from tirlite.interp import interpret
from tirlite.rewrite import CheckReductions, Normalize, SplitReductions

n, m = tl.dims("n m")
SIZES = (0, 1, 15, 16, 17, 63, 64, 65, 80, 200)


def lowered(source: str, target: str = "host") -> tl.PrimFunc:
    return SplitReductions(target)(CheckReductions()(Normalize()(tl.parse(source))))


def expect(before: str, after: str, target: str = "host") -> None:
    found, wanted = lowered(before, target), Normalize()(tl.parse(after))
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"


def test_a_sum_of_f64_has_32_partial_results() -> None:
    expect(
        """
        n = tl.dim("n")

        @tl.kernel
        def total(x: tl.f64[n], y: tl.f64[1]):
            for i in tl.reduce(n):
                y[0] += x[i]
        """,
        """
        n = tl.dim("n")

        @tl.kernel
        def total(x: tl.f64[n], y: tl.f64[1]):
            if n >= 1:
                partial = tl.alloc(tl.f64[8], scope="local")
                partial[tl.ramp(0, 1, 8)] = tl.broadcast(tl.f64(-0.0), 8)
                if n >= 32:
                    wide = tl.alloc(tl.f64[32], scope="local")
                    wide[tl.ramp(0, 1, 32)] = tl.broadcast(tl.f64(-0.0), 32)
                    for i in range(0, n // 32 * 32, 32):
                        wide[tl.ramp(0, 1, 32)] = wide[tl.ramp(0, 1, 32)] + x[tl.ramp(i, 1, 32)]
                    wide[tl.ramp(0, 1, 16)] = wide[tl.ramp(0, 1, 16)] + wide[tl.ramp(16, 1, 16)]
                    wide[tl.ramp(0, 1, 8)] = wide[tl.ramp(0, 1, 8)] + wide[tl.ramp(8, 1, 8)]
                    partial[tl.ramp(0, 1, 8)] = wide[tl.ramp(0, 1, 8)]
                for i in range(n // 32 * 32, n // 8 * 8, 8):
                    partial[tl.ramp(0, 1, 8)] = partial[tl.ramp(0, 1, 8)] + x[tl.ramp(i, 1, 8)]
                if n % 8 >= 1:
                    left = tl.ramp(0, 1, 8) < tl.broadcast(n % 8, 8)
                    partial[tl.ramp(0, 1, 8)] = tl.select(
                        left,
                        partial[tl.ramp(0, 1, 8)] + x[tl.masked(tl.ramp(n // 8 * 8, 1, 8), left)],
                        partial[tl.ramp(0, 1, 8)],
                    )
                partial[tl.ramp(0, 1, 4)] = partial[tl.ramp(0, 1, 4)] + partial[tl.ramp(4, 1, 4)]
                partial[tl.ramp(0, 1, 2)] = partial[tl.ramp(0, 1, 2)] + partial[tl.ramp(2, 1, 2)]
                partial[0] = partial[0] + partial[1]
                y[0] = y[0] + partial[0]
        """,
    )


@pytest.mark.parametrize(("count", "lanes"), [(3, 1), (7, 1), (8, 8), (9, 16), (16, 16)])
def test_few_terms_take_half_a_vector_if_they_fill_it(count: int, lanes: int) -> None:
    found = lowered(
        f"""
        n = tl.dim("n")

        @tl.kernel
        def products(x: tl.f32[n, {count}], y: tl.f32[n]):
            for i in range(n):
                for p in tl.reduce({count}):
                    y[i] += x[i, p]
        """
    )
    assert max(store.value.dtype.lanes for store in tl.ir.statements_of(found.body, tl.ir.Store)) == lanes


def test_partial_results_are_kept_for_a_nest() -> None:
    expect(
        """
        n = tl.dim("n")

        @tl.kernel
        def forms(x: tl.f64[8], m: tl.f64[n, 8, 8], y: tl.f64[n]):
            for i in range(n):
                y[i] = 0
                for p in tl.reduce(8):
                    weight = x[p]
                    for q in tl.reduce(8):
                        y[i] += weight * m[i, p, q]
        """,
        """
        n = tl.dim("n")

        @tl.kernel
        def forms(x: tl.f64[8], m: tl.f64[n, 8, 8], y: tl.f64[n]):
            for i in range(n):
                y[i] = 0
                partial = tl.alloc(tl.f64[8], scope="local")
                partial[tl.ramp(0, 1, 8)] = tl.broadcast(tl.f64(-0.0), 8)
                for p in range(8):
                    weight = x[p]
                    for q in range(0, 8, 8):
                        partial[tl.ramp(0, 1, 8)] = (
                            partial[tl.ramp(0, 1, 8)] + tl.broadcast(weight, 8) * m[i, p, tl.ramp(q, 1, 8)]
                        )
                partial[tl.ramp(0, 1, 4)] = partial[tl.ramp(0, 1, 4)] + partial[tl.ramp(4, 1, 4)]
                partial[tl.ramp(0, 1, 2)] = partial[tl.ramp(0, 1, 2)] + partial[tl.ramp(2, 1, 2)]
                partial[0] = partial[0] + partial[1]
                y[i] = y[i] + partial[0]
        """,
    )


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (3, 7), (2, 64), (5, 100), (100, 3)])
def test_nests_of_any_extents(shape: tuple[int, int]) -> None:
    @tl.kernel
    def both(x: tl.i32[n, m], y: tl.i32[2]):
        total = tl.i32(7)
        most = tl.i32(-5)
        for i in tl.reduce(n):
            for j in tl.reduce(m):
                total += x[i, j] * x[i, j]
                most = max(most, x[i, j])
        y[0] = total
        y[1] = most

    x = np.random.default_rng(1).integers(-100, 100, shape, dtype=np.int32)
    y = np.zeros(2, np.int32)
    both(x, y)
    assert y.tolist() == [7 + int((x.astype(np.int64) ** 2).sum()), max([-5, *x.ravel()])]


def test_a_nest_whose_elements_may_not_be_there_combines_row_by_row() -> None:
    """Where it has no iteration, there may be no `y[0]`."""
    made = lowered(
        """
        n, m, k = tl.dims("n m k")

        @tl.kernel
        def total(x: tl.f64[n, m], y: tl.f64[k]):
            for i in tl.reduce(n):
                for j in tl.reduce(m):
                    y[0] += x[i, j]
        """
    )
    assert isinstance(made.body.stmts[0], tl.ir.For)


def test_few_lanes_that_lie_anywhere_follow_in_order_where_gathers_have_no_masks() -> None:
    expect(
        """
        n, k = tl.dims("n k")

        @tl.kernel
        def total(x: tl.f64[n], at: tl.i32[k], y: tl.f64[1]):
            for i in tl.reduce(k):
                y[0] += x[at[i]]
        """,
        """
        n, k = tl.dims("n k")

        @tl.kernel
        def total(x: tl.f64[n], at: tl.i32[k], y: tl.f64[1]):
            if k >= 32:
                partial = tl.alloc(tl.f64[8], scope="local")
                partial[tl.ramp(0, 1, 8)] = tl.broadcast(tl.f64(-0.0), 8)
                wide = tl.alloc(tl.f64[32], scope="local")
                wide[tl.ramp(0, 1, 32)] = tl.broadcast(tl.f64(-0.0), 32)
                for i in range(0, k // 32 * 32, 32):
                    wide[tl.ramp(0, 1, 32)] = wide[tl.ramp(0, 1, 32)] + x[at[tl.ramp(i, 1, 32)]]
                wide[tl.ramp(0, 1, 16)] = wide[tl.ramp(0, 1, 16)] + wide[tl.ramp(16, 1, 16)]
                wide[tl.ramp(0, 1, 8)] = wide[tl.ramp(0, 1, 8)] + wide[tl.ramp(8, 1, 8)]
                partial[tl.ramp(0, 1, 8)] = wide[tl.ramp(0, 1, 8)]
                for i in range(k // 32 * 32, k // 8 * 8, 8):
                    partial[tl.ramp(0, 1, 8)] = partial[tl.ramp(0, 1, 8)] + x[at[tl.ramp(i, 1, 8)]]
                partial[tl.ramp(0, 1, 4)] = partial[tl.ramp(0, 1, 4)] + partial[tl.ramp(4, 1, 4)]
                partial[tl.ramp(0, 1, 2)] = partial[tl.ramp(0, 1, 2)] + partial[tl.ramp(2, 1, 2)]
                partial[0] = partial[0] + partial[1]
                y[0] = y[0] + partial[0]
                for i in range(k // 8 * 8, k):
                    y[0] = y[0] + x[at[i]]
            else:
                for i in range(k):
                    y[0] = y[0] + x[at[i]]
        """,
        "x86-64-v3",
    )


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for i in tl.reduce(n):\n                y[0] += x[i, 0]", id="no neighbours"),
        pytest.param("for i in tl.reduce(0, m, 2):\n                y[0] += x[0, i]", id="a step"),
        pytest.param("for i in tl.reduce(3):\n                y[i % 2] += x[0, i]", id="different elements"),
        pytest.param(
            "for i in tl.reduce(m):\n                if i < 5:\n                    for p in range(3):\n"
            "                        y[0] += x[0, i]",
            id="a loop inside",
        ),
        pytest.param(
            "for i in tl.reduce(m):\n                if n > 5:\n                    y[n - 5] += x[0, i]",
            id="an element that may not be there",
        ),
    ],
)
def test_other_loops_run_in_order(loop: str) -> None:
    source = f"""
        n, m = tl.dims("n m")

        @tl.kernel
        def f(x: tl.f32[n, m], y: tl.f32[2]):
            {loop}
        """
    expect(source, source.replace("tl.reduce", "range"))


def both(kernel: tl.Kernel, *args: np.ndarray) -> np.ndarray:
    """What compiled code and the interpreter, both on the lowered function, leave in the last array: the same."""
    results = []
    for run in (kernel, tl.compile(kernel.lowered).interpret):
        given = [each.copy() for each in args]
        run(*given)
        results.append(given[-1])
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(*(np.copysign(1.0, each)[each == each] for each in results))
    return results[0]


@tl.kernel
def combine(x: tl.f32[n], y: tl.f32[4]):
    for i in tl.reduce(n):
        y[0] += x[i]
        y[1] = min(x[i], y[1])
        y[2] = max(y[2], x[i])
        y[3] -= x[i] * x[i]


@tl.kernel
def combine_bits(x: tl.i64[n], y: tl.i64[6]):
    for i in tl.reduce(n):
        square = x[i] * x[i]
        y[0] += x[i]
        y[1] *= x[i]
        y[2] &= square
        y[3] |= x[i]
        y[4] ^= square
        y[5] = max(y[5], x[i])


@pytest.mark.parametrize("size", SIZES)
def test_integers_come_out_as_in_order(size: int) -> None:
    x = np.random.default_rng(size).integers(-(2**62), 2**62, size)
    start = np.array([5, 3, -1, 0, 7, -(2**63)])
    wanted = start.copy()
    combine_bits.interpret(x, wanted)
    np.testing.assert_array_equal(both(combine_bits, x, start), wanted)


@pytest.mark.parametrize("size", SIZES)
def test_floats_lie_within_the_bound(size: int) -> None:
    x = np.random.default_rng(size).standard_normal(size, np.float32)
    found = both(combine, x, np.array([1, inf, -inf, 0], np.float32))
    wide = x.astype(np.float64)
    eps = np.finfo(np.float32).eps
    assert abs(found[0] - (1 + wide.sum())) <= (size + 1) * eps * (1 + abs(wide).sum())
    assert abs(found[3] + (wide**2).sum()) <= (size + 1) * eps * (wide**2).sum()
    assert found[1] == min([inf, *x])
    assert found[2] == max([-inf, *x])


def test_sums_of_nothing_of_negative_zeros_and_of_infinities() -> None:
    @tl.kernel
    def total(x: tl.f32[n], y: tl.f32[1]):
        for i in tl.reduce(n):
            y[0] += x[i]

    minus_zero = np.float32([-0.0])
    for size in (0, 1, 16, 100):
        assert np.signbit(both(total, np.full(size, -0.0, np.float32), minus_zero))[0]
        assert not np.signbit(both(total, np.full(size + 1, 0.0, np.float32), minus_zero))[0]
    infinite = np.ones(100, np.float32)
    infinite[40] = inf
    assert both(total, infinite, np.float32([0]))[0] == inf
    infinite[90] = -inf
    assert np.isnan(both(total, infinite, np.float32([0]))[0])


def test_nan_is_found_wherever_it_stands() -> None:
    for place in (0, 20, 64, 79):
        x = np.arange(80, dtype=np.float32)
        x[place] = nan
        found = both(combine, x, np.array([0, inf, -inf, 0], np.float32))
        assert np.isnan(found).all()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("i8", "int8"), ("u8", "uint8"), ("i16", "int16"), ("u32", "uint32"), ("f16", "float16"), ("bool_", "bool")],
)
def test_elements_of_every_type(name: str, dtype: str) -> None:
    source = f"""
    n = tl.dim("n")

    @tl.kernel
    def f(x: tl.{name}[n], y: tl.{name}[2]):
        for i in tl.reduce(n):
            y[0] {"|" if name == "bool_" else "+"}= x[i]
            y[1] {"&" if name == "bool_" else "*"}= x[i]
    """
    kernel = tl.compile(tl.parse(source))
    for size in (0, 5, 70, 150):
        x = np.random.default_rng(size).integers(0, 2, size).astype(dtype)
        wanted = np.ones(2, x.dtype)
        kernel.interpret(x, wanted)
        np.testing.assert_array_equal(both(kernel, x, np.ones(2, x.dtype)), wanted)


def test_bounds_that_cross_or_wrap_around_give_no_iterations() -> None:
    @tl.kernel
    def total(x: tl.i64[n], y: tl.i64[1], start: tl.i64, stop: tl.i64):
        for i in tl.reduce(start, stop):
            y[0] += x[i]

    x = np.arange(100)
    for start, stop in ((0, 100), (3, 90), (90, 3), (2**63 - 1, -(2**63)), (-(2**63), -(2**63)), (40, 40)):
        found = np.zeros(1, np.int64)
        total(x, found, start, stop)
        assert found[0] == sum(range(start, min(stop, 100)))


def test_rows_with_elements_of_the_iterations_own() -> None:
    @tl.kernel
    def growth(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]], z: tl.out[tl.f32[n]]):
        for i in tl.parallel(n):
            total = tl.f32(0)
            for j in tl.reduce(m):
                y[i, j] = tl.exp(x[i, j])
                total += y[i, j]
            z[i] = total

    x = np.random.default_rng(1).standard_normal((3, 100), np.float32)
    y, z = growth(x)
    np.testing.assert_allclose(y, np.exp(x), rtol=2e-7)
    np.testing.assert_allclose(z, np.exp(x.astype(np.float64)).sum(1), rtol=1e-6)
    assert "tl.ramp" in str(growth.lowered)


@tl.kernel
def combine_some(x: tl.f32[n], t: tl.f32, y: tl.f32[4], at: tl.i64[2]):
    top = tl.f32(-1)
    place = tl.i64(-1)
    for i in tl.reduce(n):
        if x[i] > t:
            y[0] += x[i]
            y[1] = min(y[1], x[i])
            if i > 0 and x[i - 1] <= t:
                y[2] -= x[i] * x[i - 1]
            top, place = tl.argmax((top, place), (x[i], i))
        else:
            y[3] *= tl.select(x[i] < 0, tl.f32(-1), tl.f32(1))
    at[0] = place
    at[1] = tl.i64(top)


@pytest.mark.parametrize("size", [1, 16, 63, 64, 200])
def test_updates_under_conditions_take_some_lanes(size: int) -> None:
    """What is left out changes nothing: not -0.0, and not the sign of a product."""
    assert "tl.select(holds" in str(combine_some.lowered)
    for limit in (-10.0, 0.0, 10.0):
        x = np.random.default_rng(size).integers(-3, 4, size).astype(np.float32)
        y, at = np.float32([-0.0, 2, -0.0, 1]), np.zeros(2, np.int64)
        results = []
        for run in (combine_some, tl.compile(combine_some.lowered).interpret, combine_some.interpret):
            given = y.copy(), at.copy()
            run(x, limit, *given)
            results.append(given)
        for ours, theirs in zip(results[0] * 2, (*results[1], *results[2]), strict=True):
            np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


def test_lanes_that_are_no_iterations_load_nothing_of_their_own() -> None:
    """In bounds in every iteration is not in bounds in every lane; what is the same in all of them is loaded once."""
    text = lowered(
        """
        n = tl.dim("n")

        @tl.kernel
        def f(x: tl.f32[n], mean: tl.f32[1], at: tl.i32[n], y: tl.f32[1]):
            for i in tl.reduce(n):
                y[0] += (x[i] - mean[0]) * tl.f32(at[i])
        """
    )
    (line,) = (line for line in str(text).splitlines() if "tl.select(left" in line)
    assert line.count("tl.masked(") == 2
    assert "- tl.broadcast(mean[0], 16)" in line


@pytest.mark.parametrize(
    ("bounds", "has_rest"),
    [
        pytest.param("i", False, id="the last elements have just been stored"),
        pytest.param("i + 1, n", True, id="they were stored long ago"),
        pytest.param("n", True, id="another iteration's were"),
    ],
)
def test_a_vector_of_what_is_left_waits_for_no_store(bounds: str, has_rest: bool) -> None:
    source = f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.f64[n, n], y: tl.f64[n]):
    for i in range(n):
        t = tl.f64(0)
        for p in tl.reduce({bounds}):
            t += x[i, p] * y[p]
        y[i] = t
"""
    assert ("masked" in str(lowered(source))) is has_rest


def test_rows_whose_ends_are_loaded_are_no_gathers() -> None:
    source = """
n, k = tl.dims("n k")

@tl.kernel
def f(x: tl.f32[k], ends: tl.i64[n + 1], y: tl.f32[n]):
    for i in range(n):
        for p in tl.reduce(ends[i], ends[i + 1]):
            y[i] += x[p]
"""
    assert "masked" in str(lowered(source))


def test_what_lanes_ask_for_where_memory_says_so_is_no_gather() -> None:
    source = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], on: tl.u8[n], y: tl.f32[1]):
    for p in tl.reduce(n):
        y[0] += tl.exp(x[p]) if on[p] != 0 else tl.f32(1)
"""
    assert "if on[p]" not in str(lowered(source))
    x, on, y = np.zeros(21, np.float32), np.arange(21, dtype=np.uint8) % 2, np.zeros(1, np.float32)
    tl.compile(tl.parse(source))(x, on, y)
    assert y[0] == 21


@pytest.mark.parametrize(("dtype", "wide"), [("i8", "i32"), ("f32", "f32")])
def test_the_last_integers_follow_in_order_where_masks_of_them_are_missing(dtype: str, wide: str) -> None:
    """Of floats they never do: sums are grouped alike on every machine."""
    source = f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.{dtype}[n], y: tl.{wide}[1]):
    for i in tl.reduce(n):
        y[0] += tl.{wide}(x[i])
"""
    checked = CheckReductions()(Normalize()(tl.parse(source)))
    few, many = (str(SplitReductions(machine)(checked)) for machine in ("x86-64-v3", "x86-64-v4"))
    assert "tl.masked" in many
    assert ("tl.masked" in few) == (dtype == "f32")
    summed = tl.compile(tl.parse(source))
    for n in (1, 15, 16, 67):
        x, y = np.arange(n).astype(dtype.replace("f32", "f4").replace("i8", "i1")), np.zeros(1, wide.replace("32", "4"))
        summed(x, y)
        assert y[0] == n * (n - 1) // 2


@pytest.mark.parametrize("machine", ["x86-64", "x86-64-v3", "host"])
@pytest.mark.parametrize(("left", "right"), [("i8", "u8"), ("i16", "i16"), ("u8", "i16")])
def test_products_of_narrow_integers_are_summed_up_by_pairs(left: str, right: str, machine: str) -> None:
    source = f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.{left}[n], y: tl.{right}[n], z: tl.i32[1]):
    z[0] = 3
    for i in tl.reduce(n):
        z[0] += tl.i32(x[i]) * tl.i32(y[i])
"""
    assert "tl.dot" in str(lowered(source))
    kernel = tl.compile(tl.parse(source), target=tl.Target(machine) if machine != "host" else tl.Target.host())
    for size in (1, 15, 16, 64, 201):
        draw = np.random.default_rng(size)
        x, y = (draw.integers(0, 1 << 16, size, np.uint16).astype(getattr(tl, kind).numpy) for kind in (left, right))
        z = np.zeros(1, np.int32)
        kernel(x, y, z)
        assert z[0] == 3 + np.sum(x.astype(np.int32) * y.astype(np.int32), dtype=np.int32)


@pytest.mark.parametrize(
    ("operand", "is_left"),
    [
        ("tl.i32(x[i] == y[i])", True),
        ("abs(tl.i32(x[i]) - tl.i32(y[i]))", True),
        ("tl.i32(x[i])", False),  # only widened
        ("tl.i32(x[i]) * tl.i32(y[i])", False),  # dots
        ("tl.i32(x[i] // 3 == y[i])", False),
        ("w[i] ^ 5", False),  # words
    ],
)
def test_what_is_made_of_narrow_integers_is_left_to_llvm(operand: str, is_left: bool) -> None:
    kernel = tl.compile(
        tl.parse(f"""
n = tl.dim("n")
@tl.kernel
def f(x: tl.u8[n], y: tl.u8[n], w: tl.i32[n], z: tl.i32[1]):
    for i in tl.reduce(n):
        z[0] += {operand}
""")
    )
    assert ("partial" not in str(tl.passes.SplitReductions("x86-64-v3")(tl.passes.Normalize()(kernel.ir)))) is is_left
    random = np.random.default_rng(0)
    for size in (0, 1, 15, 100):
        x, y = random.integers(0, 256, (2, size)).astype(np.uint8)
        w = random.integers(-9, 9, size).astype(np.int32)
        found, wanted = np.zeros((2, 1), np.int32)
        kernel(x, y, w, found)
        kernel.interpret(x, y, w, wanted)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("loop", ["range", "tl.reduce"])
@pytest.mark.parametrize("machine", ["x86-64-v3", "x86-64-v4"])
def test_differences_of_bytes_are_summed_up_by_fours_where_there_are_such_dots(loop: str, machine: str) -> None:
    source = f"""
n, m = tl.dims("n m")

@tl.kernel
def apart(x: tl.u8[n, m], y: tl.u8[m], z: tl.i32[n]):
    for i in range(n):
        total = tl.i32(2147483000)
        for j in {loop}(m):
            total += abs(tl.i32(x[i, j]) - tl.i32(y[j]))
        z[i] = total
"""
    checked = CheckReductions()(Normalize()(tl.parse(source)))
    processor = replace(tl.Target(machine).processor, dots=("u8 s8",))
    with patch("tirlite.rewrite.reductions.processor_called", lambda _: processor):
        func = SplitReductions(machine)(checked)
    assert "tl.dot(" in str(func)
    assert "tl.dot(" not in str(SplitReductions("x86-64-v3")(checked))
    kernel = tl.compile(tl.parse(source))
    for size in (1, 7, 15, 16, 40, 64, 127, 200):
        numbers = np.random.default_rng(size)
        x = np.where(numbers.random((3, size)) < 0.5, numbers.choice((0, 255), (3, size)), 100).astype(np.uint8)
        y, z, found = np.full(size, 255, np.uint8), np.zeros(3, np.int32), np.zeros(3, np.int32)
        kernel(x, y, z)
        interpret(func, {**dict(zip(func.params, (x, y, found), strict=True)), func.dims[0]: 3, func.dims[1]: size})
        wanted = (2147483000 + (255 - x.astype(np.int64)).sum(axis=1)).astype(np.int32)
        np.testing.assert_array_equal(z, wanted)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("update", ["total += x[i, j] * 3", "total = max(total, x[i, j])"])
def test_a_few_elements_of_a_row_are_one_narrow_vector_with_the_sums_of_a_wide_one(dtype: str, update: str) -> None:
    func = tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def rows(x: tl.{dtype}[n, m], y: tl.{dtype}[n]):
    for i in range(n):
        total = tl.{dtype}(0)
        for j in tl.reduce(m):
            {update}
        y[i] = total
""")
    made = tl.compile(func)
    assert "elif m > 4:" in str(made.lowered) or dtype == "f64"
    with patch("tirlite.rewrite.vectors.partials._SHORT", ()):
        wide = tl.compile(func)
        assert "m > " not in str(wide.lowered)
    rng = np.random.default_rng(0)
    for count in range(12):
        x = rng.normal(size=(5, count)).astype(made.ir.params[0].dtype.numpy)
        x[rng.random(x.shape) < 0.1] = nan
        x[rng.random(x.shape) < 0.1] = -0.0
        found, wanted = np.ones(5, x.dtype), np.ones(5, x.dtype)
        made(x, found)
        wide(x, wanted)
        np.testing.assert_array_equal(found, wanted)
        tl.compile(made.lowered, strategy="none").interpret(x, wanted)
        np.testing.assert_array_equal(found, wanted)


def test_a_whole_array_takes_no_narrow_vector() -> None:
    total = tl.compile(
        tl.parse("""
n = tl.dim("n")

@tl.kernel
def total(x: tl.f32[n], y: tl.f32[1]):
    for i in tl.reduce(n):
        y[0] += x[i]
""")
    )
    assert "for i_block in" in str(total.lowered)
    assert "> 4" not in str(total.lowered)
    x, y = np.arange(5, dtype=np.float32), np.ones(1, np.float32)
    total(x, y)
    assert y[0] == 11
