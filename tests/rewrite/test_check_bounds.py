"""CheckBounds, before and after: what is not proved to be in bounds is marked."""

from textwrap import dedent

import numpy as np
import pytest
from every import every
from parsed import parsed
from rewrite.before_after import BeforeAfter
from told import told_by

import tirlite as tl
from tirlite.ir import Assert, text
from tirlite.rewrite import CheckBounds, Normalize

PASS = BeforeAfter((CheckBounds(),))


def test_what_a_loop_bounds_stays_as_it_is() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                t[i, j] = x[n - 1 - i, j]
        for i in range(1, n):
            for j in range(m):
                y[i, j] = t[i - 1, min(j + 1, m - 1)]
        """
    )


def test_tests_around_an_access_count() -> None:
    PASS.expect_unchanged(
        """
        for i in range(n):
            if i < m and x[i, i] > 0:
                y[i, i] = x[i, i + 1] if not (i + 1 >= m) else x[i, 0]
        """
    )


def test_the_end_of_a_loop_counts_for_what_moves_with_it() -> None:
    PASS.expect_unchanged(
        """
        for i0 in range(0, n, 4):
            for i in range(i0, min(i0 + 4, n)):
                for j in range(i, m):
                    y[i, j] = x[i, j - i]
        """
    )


def test_the_lesser_of_two_ends_counts_with_what_is_added_to_it() -> None:
    """Along an anti-diagonal, from what its author wrote as the last one on."""
    PASS.expect_unchanged(
        """
        for d in range(n + m - 1):
            for i in range(max(0, d - m + 1), min(n - 1, d) + 1):
                y[i, d - i] = x[i, d - i]
        """
    )


def test_a_loop_does_not_run_over_what_is_nothing_times_anything() -> None:
    """Here n may be 0, and is not where a place below 3 * n is divided by it."""
    PASS.expect_unchanged(
        """
        for place in range(3 * n):
            y[place % n, 0] = x[place % n, place // n] if place // n < m else 0
        """
    )
    PASS.expect(
        "for place in range(m):\n    if n > 0:\n        y[place % n, 0] = 1",
        "for place in range(m):\n    if n > 0:\n        y[tl.checked(place % n), 0] = 1",
    )


def test_a_stretch_that_is_halved_counts() -> None:
    PASS.expect_unchanged(
        """
        t = tl.alloc(tl.f32[32])
        for i in range(32):
            t[i] = i
        for step in range(5):
            half = 32 >> (step + 1)
            for i in range(32):
                if i < half:
                    t[i] += t[i + half]
        if n > 0:
            y[0, 0] = t[0]
        """
    )


def test_what_an_assert_says_counts_behind_it() -> None:
    PASS.expect(
        """
        if n == 3 and m == 2:
            for j in range(m):
                y[j + 0 * n, j] = 1
        if n > 9 and x[0, 0] > 0:
            y[m + 9, 0] = 1
            assert m + 9 < n, "wide"
            y[m + 9, 0] = 2
        """,
        """
        if n == 3 and m == 2:
            for j in range(m):
                y[j + 0 * n, j] = 1
        if n > 9 and x[0, 0] > 0:
            y[tl.checked(m + 9), 0] = 1
            assert m + 9 < n, "wide"
            y[m + 9, 0] = 2
        """,
    )


def test_the_author_may_leave_checks_out() -> None:
    PASS.expect(
        """
        if m <= n:
            with tl.unchecked():
                y[0, m - n // n] = 1
        """,
        """
        if m <= n:
            y[0, m - n // n] = 1
        """,
    )


def test_a_view_that_may_reach_too_far_is_marked() -> None:
    PASS.expect(
        """
        if n > 1:
            a = tl.view(x, tl.f32[m], byte_offset=4 * m * (n - 1))
            y[0, 0] = a[0]
        if n != 0 and n != 1:
            b = tl.view(x, tl.f32[m], byte_offset=4 * m)
            y[0, 0] = b[0]
        """,
        """
        if n > 1:
            a = tl.view(x, tl.f32[m], byte_offset=4 * m * (n - 1))
            y[0, 0] = a[0]
        if n != 0 and n != 1:
            b = tl.view(x, tl.f32[m], byte_offset=tl.checked(4 * m))
            y[0, 0] = b[0]
        """,
    )


def test_an_extent_that_is_read_from_memory_is_marked() -> None:
    PASS.expect(
        """
        if m * m < n * n:
            t = tl.alloc(tl.f32[1 + tl.i64(x[m, 0]) % 4])
            t[0] = 1
            y[0, 0] = t[0]
        """,
        """
        if m * m < n * n:
            t = tl.alloc(tl.f32[1 + tl.i64(x[tl.checked(m), 0]) % 4])
            t[0] = 1
            y[tl.checked(0), 0] = t[0]
        """,
    )


def test_marks_stay_single() -> None:
    source = """
    n = tl.dim("n")

    @tl.kernel
    def first(x: tl.f32[n], k: tl.i64, y: tl.f32[1]):
        y[0] = x[k]
    """
    once = CheckBounds()(tl.parse(dedent(source)))
    assert str(once).count("x[tl.checked(k)]") == 1
    assert CheckBounds()(once) is once


def decided(source: str) -> str:
    """The conditions at entry of a kernel, one a line, without those that keep numbers ordinary."""
    func = CheckBounds(at_entry=True)(Normalize()(tl.parse(dedent(source))))
    assert "tl.checked" not in str(func)
    asserted = next(stmt for stmt in func.body.stmts if isinstance(stmt, Assert))
    return text(asserted.condition).replace("-70368744177664 <= k and k <= 70368744177664 and ", "")


def test_conditions_on_dims_and_scalars_decide_at_entry() -> None:
    source = """
    n, m = tl.dims("n m")

    @tl.kernel
    def f(x: tl.f32[n], k: tl.i64, h: tl.i32, y: tl.f32[m]):
        for i in range({}):
            y[{}] = x[{}]
    """
    assert decided(source.format("m", "i", "i")) == "m <= n"
    assert decided(source.format("k", "i", "i")) == "(k <= n or 1 > k) and (k <= m or 1 > k)"
    assert (
        decided(source.format("min(n, m)", "i", "n - 1 - i + h"))
        == "min(n - 1, m - 1) + 1 <= n + tl.i64(h) and tl.i64(h) <= 0"
    )
    assert decided(source.format("1", "2", "0")) == "3 <= m"


@every("index", ["s // 4294967296 // 4294967296", "(s // 1152921504606846976 + 10) // 4", "(s >> 31) // (1 << 40)"])
@every("given", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_numbers_that_are_divided_twice_are_asked_twice(index: str, given: int) -> None:
    func = tl.parse(f"@tl.kernel\ndef f(s: tl.i64, y: tl.i64[3]):\n    for i in range(2):\n        y[{index}] += 1")
    found = []
    for call in (tl.compile(func), tl.compile(func).interpret):
        y = np.zeros(3, np.int64)
        try:
            call(given, y)
        except IndexError as error:
            found.append((y.tolist(), str(error).splitlines()[0]))
        else:
            found.append((y.tolist(), ""))
    assert found[0] == found[1]


def test_what_is_read_as_an_index_is_looked_at_as_a_whole() -> None:
    source = """
    n, m, e = tl.dims("n m e")

    @tl.kernel
    def rows(starts: tl.i32[n], at: tl.i32[e], x: tl.f32[m], y: tl.f32[n]):
        for i in range(n - 1):
            for k in range(starts[i], starts[i + 1]):
                y[i] += x[at[k]]
    """
    assert decided(source) == (
        "(0 <= least_starts and greatest_starts <= e or 2 > n) and (0 <= least_at and greatest_at + 1 <= m or 2 > n)"
    )


def test_places_in_an_image_are_decided_by_what_rounds_its_extent() -> None:
    """Integers up to 2**24 are floats of 32 bits, and an extent beyond may be rounded up."""
    n, m = tl.dims("n m")

    @tl.kernel
    def nearest(x: tl.f32[n], y: tl.out[tl.f32[m]]):
        for i in range(m):
            place = min(max((tl.f32(i) + 0.5) * (tl.f32(n) / tl.f32(m)), 0.0), tl.f32(n - 1))
            y[i] = x[tl.i64(place)]

    func = CheckBounds(at_entry=True)(Normalize()(nearest.ir))
    assert "assert n <= 16777217," in text(func)
    assert "checked" not in text(func)
    y = np.empty(3, np.float32)
    nearest(np.arange(7, dtype=np.float32), y)
    assert y.tolist() == [1, 3, 5]


def test_products_of_extents_do_not_wrap_around_where_no_axis_is_long() -> None:
    source = """
    n, m, h, w = tl.dims("n m h w")

    @tl.kernel
    def nearest(x: tl.u8[h, w], y: tl.out[tl.u8[n, m]]):
        for i in range(n):
            for j in range(m):
                y[i, j] = x[min((2 * i + 1) * h // (2 * n), h - 1), j * w // m]
    """
    func = CheckBounds(at_entry=True)(Normalize()(tl.parse(source)))
    assert all(f"{dim} <= 1073741824" in text(func) for dim in "nmhw")
    assert "checked" not in text(func)
    x = np.arange(35, dtype=np.uint8).reshape(5, 7)
    places = np.ix_((2 * np.arange(11) + 1) * 5 // 22, np.arange(3) * 7 // 3)
    y = np.empty((11, 3), np.uint8)
    tl.compile(tl.parse(source))(x, y)
    np.testing.assert_array_equal(y, x[places])


def test_an_axis_that_cancels_out_may_not_be_long_either() -> None:
    n, m = tl.dims("n m")

    @tl.kernel
    def copy(x: tl.u8[n], z: tl.u8[m], y: tl.out[tl.u8[n]]):
        for i in range(n):
            y[i] = x[i * m // m]

    assert "m <= 1073741824" in text(CheckBounds(at_entry=True)(Normalize()(copy.ir)))
    long = np.broadcast_to(np.uint8(0), (1 << 31,))
    assert copy(np.arange(5, dtype=np.uint8), long).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("test", ["", "if 0 <= at:", "if at < n:"])
def test_a_number_that_counters_are_multiplied_by_is_at_least_0(test: str) -> None:
    """A dilation or a stride, of which nothing else tells the sign; what tests tell of one end counts."""
    source = f"""
    n, m, k = tl.dims("n m k")

    @tl.kernel
    def dilated(x: tl.f32[n], g: tl.f32[k], y: tl.f32[m], step: tl.i64):
        for i in range(m):
            y[i] = 0
            for t in range(k):
                at = {"i - t * step" if "0" in test else "i + t * step"}
                {f"{test} y[i] += g[t] * x[at]".strip()}
    """
    func = tl.parse(dedent(source))
    checked = str(CheckBounds(at_entry=True)(Normalize()(func)))
    assert "tl.checked" not in checked
    assert "0 <= step" in checked
    assert "k <= 1073741824" in checked
    kernel = tl.compile(func)
    x, g = np.arange(1, 8, dtype=np.float32), np.float32([1, 10, 100])
    for step in (0, 1, 2, -1, 3, 1 << 30, 1 << 62, -(1 << 63)):
        found, wanted = np.full(3, -1, np.float32), np.full(3, -1, np.float32)
        args = (x, g, found, np.int64(step)), (x, g, wanted, np.int64(step))
        assert told_by(kernel, args[0]) == told_by(kernel.interpret, args[1]), step
        assert found.tolist() == wanted.tolist(), step


def test_what_a_test_leaves_open_at_the_other_end_is_decided() -> None:
    source = """
    n = tl.dim("n")

    @tl.kernel
    def lagged(x: tl.f32[n], lag: tl.i64, y: tl.f32[n]):
        for i in range(n):
            y[i] = x[i - lag] if i >= lag else 0.0
    """
    checked = str(CheckBounds(at_entry=True)(Normalize()(tl.parse(dedent(source)))))
    assert "0 <= lag" in checked
    assert "tl.checked" not in checked


def test_what_a_test_in_a_loop_may_rule_out_is_checked_where_it_stands() -> None:
    source = """
    n, m = tl.dims("n m")

    @tl.kernel
    def f(x: tl.f32[n], at: tl.i32[m], y: tl.f32[m]):
        for i in range(m):
            if at[i] >= 0:
                y[i] = x[at[i]]
        for i in range(m):
            if x[0] > 0:
                y[i + 1] = 0
    """
    func = CheckBounds(at_entry=True)(Normalize()(tl.parse(dedent(source))))
    assert "x[tl.checked(at[i])]" in str(func)
    assert "y[tl.checked(i + 1)]" in str(func)
    assert "assert" not in str(func)


def refused(body: str) -> str:
    """The code of the error that a kernel with this body is refused with, or ""."""
    source = "n, m = tl.dims('n m')\n\n@tl.kernel\ndef f(x: tl.f32[n, m], k: tl.i64, y: tl.f32[n, m]):\n"
    try:
        CheckBounds(at_entry=True)(Normalize()(parsed(source, body)))
    except tl.KernelError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    "body",
    [
        "y[n, 0] = 1",
        "y[0, 0] = x[0, m + n]",
        "for i in range(n + 1):\n    for j in range(m):\n        y[i, j] = 0",
        "for i in range(n):\n    y[i - 1, 0] = 0",
        "for i in range(0, 2 * n, 2):\n    y[n + i - 2, 0] = x[i // 2, 0]",
    ],
)
def test_what_every_call_would_do_outside_is_refused(body: str) -> None:
    # A loop by two over one row leaves a single iteration, which is inside.
    assert refused(body) == ("" if "2 * n" in body else "always-out-of-bounds")


@every(
    "body",
    [
        "if k > 0:\n    y[n, 0] = 1",
        "for i in range(k):\n    y[n, 0] = 1",
        "for i in range(1, n):\n    y[i + 1, 0] = 1",
        'assert k > 0, "positive"\ny[n, 0] = 1',
        "y[0, 0] = x[n, 0] if k > 0 else 0",
        "while k > 0:\n    y[0, 0] = 1\ny[n, 0] = 1",
        "y[k, 0] = 1",
        "t = tl.alloc(tl.f32[8])\nfor i in range(tl.i64(1 << 62) * 4):\n    t[i] = 1",
        "with tl.unchecked():\n    y[n, 0] = 1",
    ],
)
def test_what_a_call_may_leave_out_is_not_refused(body: str) -> None:
    assert refused(body) == ""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("t = tl.alloc(tl.f32[n])\nfor i in range(n):\n    y[i, 0] = 2 * t[i]", "never-written"),
        ("t = tl.alloc(tl.f32[n])\nfor i in range(n):\n    y[i, 0] = tl.select(k > 0, t[i], 1)", ""),
        ("t = tl.alloc(tl.f32[n])\nif k > 0:\n    y[0, 0] = t[0]", ""),
        ("t = tl.alloc(tl.f32[n])\nw = tl.view(t, tl.f32[n], byte_offset=0)\nw[0] = 1\ny[0, 0] = t[0]", ""),
        ("t = tl.alloc(tl.f32[1])\nu = tl.alloc(tl.f32[1])\nu[0] = t[0]\ny[0, 0] = 1", ""),
    ],
)
def test_a_store_of_what_nothing_writes_is_refused(body: str, code: str) -> None:
    assert refused(body) == code


def test_what_only_the_innermost_loop_moves_is_decided_in_front_of_it() -> None:
    func = tl.parse(
        dedent(
            """
            n, m = tl.dims("n m")

            @tl.kernel
            def f(x: tl.f32[n], at: tl.i64[m], y: tl.f32[m, 8]):
                for i in range(m):
                    at[i] = at[i] * 2
                    first = at[i]
                    for q in range(8):
                        y[i, q] = x[first + q]
            """
        )
    )
    hoisted = CheckBounds(at_loops=True)(Normalize()(func))
    assert dedent(
        """
        first = at[i]
        if 0 <= first and first < n - 7:
            for q in range(8):
                y[i, q] = x[first + q]
        else:
            for q in range(8):
                y[i, q] = x[tl.checked(first + q)]
        """
    ).strip() in dedent("\n".join(str(hoisted).splitlines()[5:]))
    made = tl.compile(func)
    assert [(each.access, each.how, each.where) for each in made.safety if each.how != "proved"] == [
        ("x[first + q]", "decided", "at its loop")
    ]
    x, y = np.arange(20, dtype=np.float32), np.zeros((3, 8), np.float32)
    made(x, np.array([0, 6, 2]), y)
    assert y[:, 7].tolist() == [7, 19, 11]
    for outside in (7, -1, 2**62, -(2**62) - 3, 2**63 - 1):
        left, right = np.zeros((3, 8), np.float32), np.zeros((3, 8), np.float32)
        with pytest.raises(IndexError) as found:
            made(x, np.array([0, outside, 2]), left)
        with pytest.raises(IndexError) as wanted:
            made.interpret(x, np.array([0, outside, 2]), right)
        assert str(found.value) == str(wanted.value)
        assert left.tolist() == right.tolist()


def test_a_sum_with_the_counter_is_decided_in_front_of_its_loop_by_its_values_at_both_ends() -> None:
    func = tl.parse(
        dedent(
            """
            n = tl.dim("n")

            @tl.kernel
            def f(x: tl.f32[n], y: tl.f32[n], half: tl.i64):
                for i in range(0, n, 2 * half):
                    for j in range(half):
                        y[i + j] = x[i + j + half]
            """
        )
    )
    made = tl.compile(func)
    assert [(each.access, each.how, each.where) for each in made.safety if each.how != "proved"] == [
        ("x[i + j + half]", "decided", "at its loop"),
        ("y[i + j]", "decided", "at its loop"),
    ]
    x, y = np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    made(x, y, 3)
    assert y.tolist() == [3, 4, 5, 0, 0, 0, 9, 10, 11, 0, 0, 0]
    for half in (4, 5, 7, 2**61, 2**62 - 1):
        left, right = np.zeros(12, np.float32), np.zeros(12, np.float32)
        with pytest.raises(IndexError) as found:
            made(x, left, half)
        with pytest.raises(IndexError) as wanted:
            made.interpret(x, right, half)
        assert str(found.value) == str(wanted.value)
        assert left.tolist() == right.tolist()


def test_what_calls_may_change_by_its_address_is_not_asked_in_front_of_a_loop() -> None:
    @tl.kernel
    def of_array(y: tl.f32[4], at: tl.i64[1]):
        for i in range(4):
            y[i + at[0]] = 1.0
            tl.call_extern("i32", "memset", tl.address_of(at[0]), tl.i32(1), tl.i64(1))

    @tl.kernel
    def of_number(y: tl.f32[4], at: tl.i64[1]):
        first = at[0]
        first = at[0]
        for i in range(4):
            y[i + first] = 1.0
            tl.call_extern("i32", "memset", tl.address_of(first), tl.i32(1), tl.i64(1))

    for each in (of_array, of_number):
        memory = np.zeros(5, np.float32)
        with pytest.raises(IndexError, match="index 4"):
            each(memory[:4], np.zeros(1, np.int64))
        assert memory.tolist() == [1, 0, 1, 1, 0]


@pytest.mark.parametrize("taps", [3, 5, 8])
def test_a_row_that_is_reflected_at_its_ends_is_asked_how_long_it_is_once(taps: int) -> None:
    size = tl.dim("size")

    @tl.kernel
    def smooth(x: tl.f32[size], y: tl.f32[size]):
        for i in range(size):
            total = tl.f32(0)
            for q in range(taps):
                total += x[size - 1 - abs(size - 1 - abs(i + q - taps // 2))]
            y[i] = total

    text = str(smooth.lowered)
    assert "tl.checked" not in text
    assert "tl.parallel" in text
    for count in (1, 2, 3, 4, 5, 9, 40):
        x = np.arange(count, dtype=np.float32)
        found, wanted = np.zeros_like(x), np.zeros_like(x)
        assert told_by(smooth, [x, found]) == told_by(smooth.interpret, [x, wanted])
        np.testing.assert_array_equal(found, wanted)
