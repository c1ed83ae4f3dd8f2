"""VectorizeLoops, before and after: vectorized loops of constant length become statements on vectors."""

from textwrap import indent

import numpy as np
import pytest
from fuzz.guard import guarded
from rewrite.before_after import BeforeAfter, kernel

import tirlite as tl
from tirlite.ir import DType, Store, statements_of, walk
from tirlite.rewrite import Normalize, UnmarkLoops, VectorizeLoops

n, m = tl.dims("n m")

PASS = BeforeAfter((VectorizeLoops(target="x86-64-v4"),))


def test_all_iterations_at_once() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[16])
        for i in range(n):
            for k in tl.vectorized(4):
                t[k] = tl.f32(k)
            for k in tl.vectorized(4):
                twice = 2 * t[3 - k]
                t[4 + 2 * k] = max(twice, x[i, 0]) + tl.exp(t[k])
            y[i, 0] = t[10]
        """,
        """
        t = tl.alloc(tl.f32[16])
        for i in range(n):
            t[tl.ramp(0, 1, 4)] = tl.f32x4(tl.ramp(0, 1, 4))
            twice = tl.broadcast(tl.f32(2), 4) * t[tl.ramp(3, -1, 4)]
            t[tl.ramp(4, 2, 4)] = max(twice, tl.broadcast(x[i, 0], 4)) + tl.exp(t[tl.ramp(0, 1, 4)])
            y[i, 0] = t[10]
        """,
    )


def test_casts_to_the_type_that_is_there_hide_nothing() -> None:
    source = """
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[PLACE] = tl.exp(x[PLACE])
"""
    cast, plain = (str(tl.compile(tl.parse(source.replace("PLACE", each))).lowered) for each in ("tl.i64(i)", "i"))
    assert cast == plain


def test_a_step_and_a_start() -> None:
    PASS.expect(
        """
        t = tl.alloc(tl.f32[16])
        for k in tl.vectorized(2, 14, 3):
            t[k + 1] = 1.0
        """,
        """
        t = tl.alloc(tl.f32[16])
        t[tl.ramp(3, 3, 4)] = tl.broadcast(tl.f32(1), 4)
        """,
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for k in tl.vectorized(m):\n    t[k, 0] = 1.0",
        "for k in tl.vectorized(4):\n    t[k, 0] = 1.0",
        "for k in tl.vectorized(4):\n    t[0, k] = tl.if_then_else(k > 1, x[0, 0], y[0, 0])",
        "for k in tl.vectorized(1):\n    t[0, k] = 1.0",
        "for k in tl.vectorized(100):\n    t[0, k] = 1.0",
        "for k in tl.vectorized(4):\n    t[0, k] = t[k, 0]",
        "for k in tl.vectorized(4):\n    t[0, 0] = 1.0",
    ],
)
def test_what_has_no_vector_form_stays(loop: str) -> None:
    PASS.expect_unchanged("t = tl.alloc(tl.f32[100 + m, 100 + m])\n" + loop)


@pytest.mark.parametrize(
    ("body", "is_unmarked"),
    [
        ("for k in tl.vectorized(m):\n    y[0, k] = x[0, k]", True),
        ("for k in tl.vectorized(100):\n    y[0, k] = x[0, k]", True),
        ("for k in tl.vectorized(4):\n    for i in range(n):\n        y[i, k] = x[i, k]", True),
        ("for k in tl.vectorized(4):\n    y[0, k] = x[0, k]", False),
        ("for k in tl.vectorized(m):\n    y[0, tl.i64(x[0, k])] = 1", False),
    ],
)
def test_marked_loops_are_as_others_where_they_are_independent_and_not_done_at_once(
    body: str, is_unmarked: bool
) -> None:
    func = Normalize()(kernel(body))
    result = str(UnmarkLoops()(func))
    assert result == str(func).replace("tl.vectorized", "range" if is_unmarked else "tl.vectorized")


def test_a_marked_loop_around_a_while_goes_by_vectors() -> None:
    source = """
    n = tl.dim("n")
    @tl.kernel
    def halved(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in {loop}(n):
            left = x[i]
            while left > 1:
                left = left / 2
            y[i] = left
    """
    marked, plain = (tl.compile(tl.parse(source.format(loop=loop))) for loop in ("tl.vectorized", "range"))
    assert "tl.any(" in str(marked.lowered)
    assert str(marked.lowered) == str(plain.lowered)


def test_a_loop_around_a_sum_ends_by_few_vectors_of_which_lanes_are_off() -> None:
    PASS.expect(
        """
        for i in range(n):
            k = 2 * i
            for j in range(m):
                y[i, j] = 0
                for p in range(n):
                    y[i, j] = y[i, j] + x[p, j]
        """,
        """
        for i in range(n):
            k = 2 * i
            if m == 1:
                u = tl.view(x, tl.f32[n])
                v = tl.view(y, tl.f32[n])
                v[i] = 0
                for p in range(n):
                    v[i] = v[i] + u[p]
            else:
                for j in range(0, m // 64 * 64, 64):
                    t = tl.alloc(tl.f32[64], scope="local")
                    t[tl.ramp(0, 1, 64)] = tl.broadcast(tl.f32(0), 64)
                    for p in range(n):
                        t[tl.ramp(0, 1, 64)] = t[tl.ramp(0, 1, 64)] + x[p, tl.ramp(j, 1, 64)]
                    y[i, tl.ramp(j, 1, 64)] = t[tl.ramp(0, 1, 64)]
                if m % 64 > 32:
                    on = tl.ramp(tl.i32(0), tl.i32(1), 64) < tl.broadcast(tl.i32(m % 64), 64)
                    t = tl.alloc(tl.f32[64], scope="local")
                    t[tl.ramp(0, 1, 64)] = tl.broadcast(tl.f32(0), 64)
                    for p in range(n):
                        t[tl.ramp(0, 1, 64)] = t[tl.ramp(0, 1, 64)] + x[p, tl.masked(tl.ramp(m // 64 * 64, 1, 64), on)]
                    y[i, tl.masked(tl.ramp(m // 64 * 64, 1, 64), on)] = t[tl.ramp(0, 1, 64)]
                elif m % 64 > 16:
                    on = tl.ramp(tl.i32(0), tl.i32(1), 32) < tl.broadcast(tl.i32(m % 64), 32)
                    t = tl.alloc(tl.f32[32], scope="local")
                    t[tl.ramp(0, 1, 32)] = tl.broadcast(tl.f32(0), 32)
                    for p in range(n):
                        t[tl.ramp(0, 1, 32)] = t[tl.ramp(0, 1, 32)] + x[p, tl.masked(tl.ramp(m // 64 * 64, 1, 32), on)]
                    y[i, tl.masked(tl.ramp(m // 64 * 64, 1, 32), on)] = t[tl.ramp(0, 1, 32)]
                elif m % 64 > 0:
                    on = tl.ramp(tl.i32(0), tl.i32(1), 16) < tl.broadcast(tl.i32(m % 64), 16)
                    t = tl.alloc(tl.f32[16], scope="local")
                    t[tl.ramp(0, 1, 16)] = tl.broadcast(tl.f32(0), 16)
                    for p in range(n):
                        t[tl.ramp(0, 1, 16)] = t[tl.ramp(0, 1, 16)] + x[p, tl.masked(tl.ramp(m // 64 * 64, 1, 16), on)]
                    y[i, tl.masked(tl.ramp(m // 64 * 64, 1, 16), on)] = t[tl.ramp(0, 1, 16)]
        """,
    )


@tl.kernel
def few_columns(x: tl.f32[n, 12], y: tl.out[tl.f32[n, 12]]):
    for i in range(n):
        first = x[i, 0]
        for j in range(12):
            y[i, j] = x[i, j] * first


@tl.kernel
def of_neighbours(x: tl.u8[n, m + 2], y: tl.out[tl.u8[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = tl.u8((tl.u16(x[i, j]) + x[i, j + 1] + x[i, j + 2]) // 3)


def test_few_bytes_are_16_lanes_of_which_some_are_off() -> None:
    text = str(VectorizeLoops(target="x86-64-v4")(Normalize()(of_neighbours.ir)))
    assert "tl.masked(tl.ramp(0, 1, 64), on_1)" in text
    assert "tl.masked(tl.ramp(0, 1, 16), on)" in text
    for columns in (1, 15, 16, 17, 63, 64, 65):
        x = guarded(np.arange(5 * (columns + 2), dtype=np.uint8).reshape(5, columns + 2), at_end=True)
        wide = x.astype(np.uint16)
        np.testing.assert_array_equal(of_neighbours(x), (wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) // 3)


def test_few_iterations_that_are_known_are_vectors_that_overlap() -> None:
    """In a row that does more, LLVM would write them out one by one, and find no vectors then."""
    text = str(VectorizeLoops(target="x86-64-v4")(Normalize()(few_columns.ir)))
    assert "for j in range(0, 12, 8):" in text
    assert "min(j, 4)" in text
    x = np.random.default_rng(0).standard_normal((5, 12), np.float32)
    np.testing.assert_array_equal(few_columns(x), x * x[:, :1])


@tl.kernel
def few_of_all(x: tl.f32[n, 12], z: tl.f32[n, 12], y: tl.out[tl.f32[n, 12]]):
    for i in range(n):
        for j in range(12):
            y[i, j] = 0
        for p in range(4):
            for j in range(12):
                y[i, j] += x[i, p] * z[p, j]


def test_few_that_other_loops_touch_stay_in_registers() -> None:
    """LLVM writes all loops of a row out: vectors that overlap would wait for each other in memory."""
    found = VectorizeLoops(target="x86-64-v4")(Normalize()(few_of_all.ir))
    assert {store.value.dtype.lanes for store in statements_of(found.body, Store)} == {1}


def test_an_index_with_a_name_reads_neighbours_like_one_without() -> None:
    PASS.expect(
        """
        for i in range(n):
            for j in range(m - 1):
                k = j + 1
                y[i, j] = tl.exp(x[i, k])
        """,
        """
        for i in range(n):
            count = max(m - 1, 0)
            if count >= 16:
                for j in range(0, count // 64 * 64, 64):
                    k = j + 1
                    y[i, tl.ramp(j, 1, 64)] = tl.exp(x[i, tl.ramp(k, 1, 64)])
                for j in range(count // 64 * 64, count, 16):
                    first = min(j, count - 16)
                    k = first + 1
                    y[i, tl.ramp(first, 1, 16)] = tl.exp(x[i, tl.ramp(k, 1, 16)])
            elif count == 1:
                k = tl.i64(1)
                y[i, 0] = tl.exp(x[i, k])
            elif count >= 1:
                on = tl.ramp(tl.i32(0), tl.i32(1), 16) < tl.broadcast(tl.i32(count), 16)
                k = tl.i64(1)
                y[i, tl.masked(tl.ramp(0, 1, 16), on)] = tl.exp(x[i, tl.masked(tl.ramp(k, 1, 16), on)])
        """,
    )


def test_four_rows_go_together_that_share_what_is_loaded() -> None:
    """What is loaded for a row serves four; what there was before is loaded first, where nothing is stored before."""
    func = kernel(
        """
        for i in range(n):
            for j in range(m):
                for p in range(m):
                    y[i, j] = y[i, j] + x[0, j] * x[i, p]
        """
    )
    wide = BeforeAfter((VectorizeLoops(target="x86-64-v4"),))
    assert "for i in range(0, n // 4 * 4, 4):" in (text := str(wide.rewritten(func)))
    vectors = text[text.index("for j in range(0, m // 64 * 64, 64):") :].splitlines()
    assert [line.strip() for line in vectors[5:14]] == [
        "y_1[tl.ramp(0, 1, 64)] = y[i, tl.ramp(j, 1, 64)]",
        "y_2[tl.ramp(0, 1, 64)] = y[i + 1, tl.ramp(j, 1, 64)]",
        "y_3[tl.ramp(0, 1, 64)] = y[i + 2, tl.ramp(j, 1, 64)]",
        "y_4[tl.ramp(0, 1, 64)] = y[i + 3, tl.ramp(j, 1, 64)]",
        "for p in range(m):",
        *(
            f"y_{row + 1}[tl.ramp(0, 1, 64)] = y_{row + 1}[tl.ramp(0, 1, 64)] + "
            f"x[0, tl.ramp(j, 1, 64)] * tl.broadcast(x[{'i' if row == 0 else f'i + {row}'}, p], 64)"
            for row in range(4)
        ),
    ]


@pytest.mark.parametrize(
    ("target", "row", "vector", "has_masks"),
    [("x86-64-v2", 8, 4, False), ("x86-64-v3", 16, 8, True), ("x86-64-v4", 64, 16, True), ("aarch64", 16, 4, False)],
)
def test_rows_that_go_together_are_as_long_as_registers_hold(
    target: str, row: int, vector: int, has_masks: bool
) -> None:
    func = kernel(
        """
        for i in range(n):
            for j in range(m):
                for p in range(m):
                    y[i, j] = y[i, j] + x[0, j] * x[i, p]
        """
    )
    text = str(BeforeAfter((VectorizeLoops(target=target),)).rewritten(func))
    assert f"for j in range(0, m // {row} * {row}, {row}):" in text
    rest = "for j in range(m // {row} * {row}, m // {vector} * {vector}, {vector}):"
    rest = "if m % {row} > {most}:" if has_masks else rest
    assert rest.format(row=row, vector=vector, most=row // 2) in text


@pytest.mark.parametrize(("columns", "lanes"), [(40, 16), (14, 8), (7, 4)])
def test_short_rows_of_windows_fill_as_much_of_a_register_as_they_can(columns: int, lanes: int) -> None:
    text = f"""
@tl.kernel
def sums(x: tl.f32[10, {columns}], y: tl.f32[8, {columns}]):
    for i in range(8):
        for j in range({columns}):
            y[i, j] = 0.0
            for r in range(3):
                y[i, j] = y[i, j] + x[i + r, j]
"""
    func = Normalize()(tl.parse(text))
    assert f"for j in range(0, {columns}, {lanes}):" in str(VectorizeLoops(target="x86-64-v4")(func))
    x, (y, z) = (
        np.random.default_rng(columns).standard_normal((10, columns), np.float32),
        np.zeros((2, 8, columns), "f"),
    )
    tl.compile(func)(x, y)
    tl.compile(func).interpret(x, z)
    np.testing.assert_array_equal(y, z)


def test_what_is_no_function_of_its_inputs_ends_by_a_vector_of_which_lanes_are_off() -> None:
    PASS.expect(
        """
        for i in range(n):
            for j in range(3, m):
                y[i, j] = tl.exp(y[i, j])
        """,
        """
        for i in range(n):
            count = max(max(m, 3) - 3, 0)
            for j in range(3, 3 + count // 64 * 64, 64):
                y[i, tl.ramp(j, 1, 64)] = tl.exp(y[i, tl.ramp(j, 1, 64)])
            for j in range(3 + count // 64 * 64, 3 + count // 16 * 16, 16):
                y[i, tl.ramp(j, 1, 16)] = tl.exp(y[i, tl.ramp(j, 1, 16)])
            if count % 16 == 1:
                y[i, count // 16 * 16 + 3] = tl.exp(y[i, count // 16 * 16 + 3])
            elif count % 16 >= 1:
                on = tl.ramp(tl.i32(0), tl.i32(1), 16) < tl.broadcast(tl.i32(count % 16), 16)
                y[i, tl.masked(tl.ramp(3 + count // 16 * 16, 1, 16), on)] = tl.exp(
                    y[i, tl.masked(tl.ramp(3 + count // 16 * 16, 1, 16), on)]
                )
        """,
    )


@tl.kernel
def scalars_in_each_lane(x: tl.f32[n, m], y: tl.out[tl.f32[20]], z: tl.out[tl.f64[m]]):
    for j in range(20):
        t = tl.f32(1)
        for p in range(n):
            t = t * x[p, 0] + tl.f32(j)
        y[j] = t
    for j in range(m):
        parts = tl.alloc(tl.f32[2])
        parts[0] = x[0, j]
        parts[1] = 1
        for p in range(n):
            parts[1] = parts[1] * parts[0] - x[p, j]
        z[j] = parts[1]


@tl.kernel
def several_outputs(x: tl.f32[n, m], y: tl.f32[n, m], z: tl.out[tl.i16[n, m]]):
    for i in range(n):
        for j in range(m):
            growth = tl.exp(x[i, j])
            z[i, j] = tl.i16(growth) - 3
            y[i, j] = y[i, j] + growth


@tl.kernel
def bounds(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(2, m - 2):
            y[i, j] = 0
            for u in range(3):
                for v in range(2):
                    y[i, j] += x[i, j + u - v] * tl.f32(u + 1)


@tl.kernel
def product(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            for p in range(n):
                y[i, j] += x[i, 0] * x[p, j]


@tl.kernel
def convolution(x: tl.f32[n, m], y: tl.f32[n, m]):
    for q in range(n):
        for i in range(1):
            for j in range(m - 2):
                y[q, j] = 1
                for p in range(n):
                    for v in range(3):
                        y[q, j] = y[q, j] - x[p, j + v + i] * x[q, v]


@tl.kernel
def triangles(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(min(16 * i, m)):
            for p in range(n):
                y[i, j] += x[i, 0] * x[p, j]
    for i in range(n):
        for k in range(i):
            for j in range(m):
                for p in range(n):
                    y[i, j] += x[i, k] * x[p, j]


@tl.kernel
def sums_of_those_before(x: tl.f32[n, m], y: tl.f32[n, m]):
    """At `t` = 0 no row of `y` is touched: there is none."""
    for t in range(n):
        for j in range(m):
            for p in range(t):
                y[t - 1, j] += x[p, j]


@tl.kernel
def names_in_expressions(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            if -1 < tl.floor(x[i, j] * 3) <= 2 and 0.1 < tl.exp(y[i, j]) < 1.5:
                y[i, j] = tl.exp(x[i, j]) ** 2 + tl.let(v, x[i, j] * 2, v * tl.let(w, v + y[i, j], w * w))


KERNELS = (
    names_in_expressions,
    scalars_in_each_lane,
    several_outputs,
    bounds,
    product,
    convolution,
    triangles,
    sums_of_those_before,
)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_vectors_give_what_is_written_at_every_length(kernel: tl.Kernel) -> None:
    """Fewer iterations than a vector has lanes are one of which the others are off: no page behind is read."""
    assert "tl.ramp" in str(kernel.lowered)
    for rows, size in (
        (1, 3),
        (2, 15),
        (3, 16),
        (4, 17),
        (5, 31),
        (8, 63),
        (3, 64),
        (6, 65),
        (1, 79),
        (3, 80),
        (4, 130),
    ):
        x, y = np.random.default_rng(size).standard_normal((2, rows, size), np.float32)
        given = (x, y) if kernel is not scalars_in_each_lane else (x,)
        wanted, found, again = ([guarded(each, at_end=True) for each in given] for _ in range(3))
        results = (kernel(*found), kernel.interpret(*wanted))
        tl.compile(kernel.lowered).interpret(*again)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(again, wanted)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in results), strict=True):
            np.testing.assert_array_equal(one, other)


def test_debug_code_and_callees_of_a_kernel_as_written_keep_their_loops() -> None:
    @tl.kernel
    def growth(x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = tl.exp(x[i])

    @tl.kernel
    def calling(x: tl.f32[n], y: tl.f32[n]):
        tl.call(growth, x, y)

    assert "tl.ramp" in str(growth.lowered)
    assert "tl.ramp" in str(calling.lowered)
    assert "tl.ramp" not in str(tl.compile(calling, schedule=None).lowered)
    assert "tl.ramp" not in str(tl.compile(growth, debug=True).lowered)


@pytest.mark.parametrize(
    ("loop", "lanes"),
    [
        ("for j in range(m):\n    y[i, j] = x[i, j] + 1", 64),
        ("for j in range(m):\n    y[i, j] = x[i, 2 * j - j]", 0),
        ("for j in range(m):\n    y[i, j] = y[i, j] + 1", 0),
        ("for j in range(m):\n    y[i, j] = tl.f32(tl.f64(x[i, j]) * 3)", 0),
    ],
)
def test_results_that_nothing_reads_are_written_by_vectors_that_may_go_past_the_caches(loop: str, lanes: int) -> None:
    text = str(PASS.rewritten(kernel("for i in range(n):\n" + indent(loop, "    "))))
    assert (f"y[i, tl.ramp(j, 1, {lanes})]" in text) is (lanes > 0)
    assert ("tl.ramp" in text) is (lanes > 0)


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for j in range(m):\n    y[i, j] = y[i, j] + 1", id="LLVM does as well"),
        pytest.param("for j in range(1, m):\n    y[0, j] = tl.exp(y[0, j // 2])", id="an iteration before is read"),
        pytest.param("for j in range(m):\n    y[0, 0] = tl.exp(x[0, j])", id="one element for all"),
        pytest.param(
            "for j in range(m):\n    for p in range(j):\n        y[0, j] = x[0, p]", id="loops of other lengths"
        ),
        pytest.param("if m > 2:\n    for j in range(3):\n        y[0, j] = tl.exp(x[0, j])", id="few iterations"),
        pytest.param(
            "u = tl.alloc(tl.f32[m])\nt = tl.alloc(tl.f32[m])\nfor j in range(m):\n    u[j] = x[0, j]\n"
            "for j in range(m):\n    t[j] = tl.exp(u[j])",
            id="a temporary that may take the place of another",
        ),
        pytest.param(
            "for j in range(m):\n    if x[0, j] > 0:\n        for p in range(n):\n            y[0, j] = x[p, j]",
            id="a loop on a condition that differs",
        ),
    ],
)
def test_other_serial_loops_stay(loop: str) -> None:
    PASS.expect_unchanged("for i in range(n):\n" + indent(loop, "    "))


def test_an_if_becomes_a_mask() -> None:
    """What the condition itself loads may be loaded by all lanes; what may lie outside, or divide by 0, may not."""
    PASS.expect(
        """
        for i in range(n):
            if m >= 4:
                for k in tl.vectorized(4):
                    if x[i, k] > 0:
                        y[i, k] = x[i, k]
                        if k > 0 and x[i, m - k] < 1:
                            y[i, k] = tl.f32(tl.i64(x[i, k]) // k)
                    else:
                        y[i, k] = -x[i, k + m - 4]
        """,
        """
        for i in range(n):
            if m >= 4:
                holds = x[i, tl.ramp(0, 1, 4)] > tl.broadcast(tl.f32(0), 4)
                y[i, tl.masked(tl.ramp(0, 1, 4), holds)] = x[i, tl.ramp(0, 1, 4)]
                inner = tl.select(
                    tl.ramp(0, 1, 4) > tl.broadcast(0, 4),
                    x[i, tl.masked(tl.ramp(m, -1, 4), holds & (tl.ramp(0, 1, 4) > tl.broadcast(0, 4)))]
                    < tl.broadcast(tl.f32(1), 4),
                    tl.broadcast(False, 4),
                )
                on = holds & inner
                y[i, tl.masked(tl.ramp(0, 1, 4), on)] = tl.f32x4(
                    tl.i64x4(x[i, tl.ramp(0, 1, 4)]) // tl.select(on, tl.ramp(0, 1, 4), tl.broadcast(1, 4))
                )
                off = not holds
                y[i, tl.masked(tl.ramp(0, 1, 4), off)] = -x[i, tl.masked(tl.ramp(m - 4, 1, 4), off)]
        """,
    )


@pytest.mark.parametrize(("columns", "is_turned"), [(2, False), (32, True)])
def test_a_few_rows_are_interleaved_by_llvm(columns: int, *, is_turned: bool) -> None:
    func = kernel(
        f"""
        for j in tl.parallel(m):
            for u in range(2):
                for v in range({columns}):
                    y[u, {columns} * j + v] = x[u + 2 * v, j]
        """
    )
    assert ("tl.interleave_low" in str(VectorizeLoops(target="x86-64-v4")(func))) is is_turned


def test_sums_of_rows_go_by_tiles_that_are_turned_over() -> None:
    """Each sum is in the order that is written; the tiles stand there once, loaded under a mask."""
    func = kernel(
        """
        for i in range(n):
            y[i, 0] = 0
            for j in range(m):
                y[i, 0] += x[i, j]
        """
    )
    text = str(VectorizeLoops(target="x86-64-v4")(func))
    assert "row_15 = x[first + 15, tl.masked(tl.ramp(tile, 1, 16), left)]" in text
    assert "row_16 = tl.interleave_low(row, row_8)" in text
    assert text.count("tl.interleave_high") == 4 * 8
    assert "for j in range(tile, min(tile + 16, m)):" in text
    assert "for j in range(tile, min(tile + 8, m)):" in str(VectorizeLoops(target="x86-64-v3")(func))


@tl.kernel
def nearest(x: tl.f32[n, m], c: tl.f32[n, m], y: tl.f32[n, n], at: tl.i64[n, 2]):
    for i in range(n):
        for j in range(n):
            s = tl.f32(0)
            for p in range(m):
                d = x[i, p] - c[j, p]
                s += d * d
            y[i, j] = s
    for i in range(n):
        best = y[i, 0]
        place = tl.i64(0)
        for j in range(n):
            if y[i, j] < best:
                best = y[i, j]
                place = j
        at[i, 1] = place
        at[i, 0] = tl.i64(x[i, m - 1])


@pytest.mark.parametrize(("inside", "behind", "fewest"), [("", "y[i, 0] = top", 8), ("y[i, j] = top", "", 32)])
def test_rows_of_dependent_steps_are_turned_over_from_some_columns_on(inside: str, behind: str, fewest: int) -> None:
    text = f"""
n, m = tl.dims("n m")
@tl.kernel
def highest(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        top = tl.f32(0)
        for j in range(m):
            top = max(top - 1, x[i, j])
            {inside}
        {behind}
"""
    func = Normalize()(tl.parse(text))
    found = VectorizeLoops(target="x86-64-v4")(func)
    assert f"if n >= 16 and m >= {fewest}:" in str(found)
    for columns in (fewest - 1, fewest):
        x, given = np.random.default_rng(1).standard_normal((20, columns), np.float32), np.zeros((2, 20, columns), "f")
        tl.compile(found)(x, given[0])
        tl.compile(func, schedule=None)(x, given[1])
        np.testing.assert_array_equal(*given)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (16, 16), (20, 33), (33, 5)])
def test_columns_do_what_is_written(rows: int, columns: int) -> None:
    """With forbidden pages behind the arrays, and before them: nothing is read beyond a row of the last element."""
    assert "c_columns" in str(nearest.lowered)
    assert "y_columns" in str(nearest.lowered)
    draw = np.random.default_rng(rows)
    for at_end in (True, False):
        given = [draw.standard_normal((rows, columns), np.float32) for _ in range(2)]
        given += [np.zeros((rows, rows), np.float32), np.zeros((rows, 2), np.int64)]
        results = []
        for run in (nearest, nearest.interpret, tl.compile(nearest.lowered).interpret):
            own = [guarded(each, at_end=at_end) for each in given]
            run(*own)
            results.append(own)
        for ours, *others in zip(*results, strict=True):
            for other in others:
                np.testing.assert_array_equal(ours, other)


def test_lanes_that_are_off_ask_for_no_condition_of_a_while() -> None:
    @tl.kernel
    def doubled(x: tl.i64[n], z: tl.i64[n], y: tl.out[tl.i64[n]]):
        for i in range(n):
            y[i] = 0
            if i > 0:
                c = tl.i64(0)
                while c < x[i] and z[i - 1] > 0:
                    c = 2 * c + 1
                y[i] = c

    assert "while tl.any(" in str(doubled.lowered)
    x, z = np.arange(37), np.arange(37) % 2
    np.testing.assert_array_equal(doubled(x, z), tl.compile(doubled.lowered, schedule=None).interpret(x, z))


def test_lanes_that_are_off_ask_for_no_flag_of_a_round() -> None:
    @tl.kernel
    def skipping(x: tl.f32[n], k: tl.i64[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            total = tl.f32(0)
            for a in range(3):
                if k[i] > a:
                    if x[i] > a:
                        continue
                    total += 1
                total += x[i] * 2
                if total > 9:
                    break
            y[i] = tl.sqrt(total)

    assert "while tl.any(" in str(skipping.lowered)
    x, k = np.linspace(0, 5, 37, dtype=np.float32), np.arange(37) % 4
    np.testing.assert_array_equal(skipping(x, k), tl.compile(skipping.lowered, schedule=None).interpret(x, k))


@tl.kernel
def escaped(x: tl.f32[n], limit: tl.i64[m], y: tl.i64[n, m]):
    for i in range(n):
        for j in range(m):
            z = x[i]
            count = tl.i64(0)
            while count < limit[j] and not z > 4:
                z = z * z + tl.f32(0.25) * j
                count += 1
            y[i, j] = count


@pytest.mark.parametrize(("rows", "columns"), [(3, 1), (5, 16), (4, 37)])
def test_a_while_runs_until_it_ends_in_all_lanes(rows: int, columns: int) -> None:
    assert "while tl.any(" in str(escaped.lowered)
    x = np.linspace(-2, 2, rows, dtype=np.float32)
    x[0] = np.nan
    limit = np.random.default_rng(columns).integers(0, 30, columns)
    results = []
    for run in (escaped, escaped.interpret, tl.compile(escaped.lowered).interpret):
        y = np.full((rows, columns), -1)
        run(x, limit, y)
        results.append(y)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_what_takes_long_is_left_out_where_no_lane_asks_for_it() -> None:
    PASS.expect(
        """
        for i in range(n):
            if m >= 4:
                for k in tl.vectorized(4):
                    if x[i, k] > 1:
                        y[i, k] = tl.exp(x[i, k])
        """,
        """
        for i in range(n):
            if m >= 4:
                holds = x[i, tl.ramp(0, 1, 4)] > tl.broadcast(tl.f32(1), 4)
                if tl.any(holds):
                    y[i, tl.masked(tl.ramp(0, 1, 4), holds)] = tl.exp(x[i, tl.ramp(0, 1, 4)])
        """,
    )


@tl.kernel
def by_another_name(x: tl.f32[n, m], y: tl.f32[n, m]):
    same = tl.view(y, tl.f32[n, m])
    for i in range(n):
        s = tl.f32(0)
        y[i, 0] = 1
        for j in range(1, m):
            s += x[i, j] * same[i, j - 1]
            y[i, j] = s


@tl.kernel
def running(x: tl.f64[n, m], y: tl.f64[n, m], z: tl.f64[n, m]):
    for i in range(n):
        s = tl.f64(0)
        for j in range(m):
            s += x[i, j]
            y[i, j] = s
            if x[i, j] > 0:
                z[i, j] = s


@pytest.mark.parametrize("kernel", [by_another_name, running])
def test_rows_that_are_stored_are_turned_back(kernel: tl.Kernel) -> None:
    """What is written under another name is not loaded ahead, and what some lanes store goes as it is written."""
    kind = kernel.ir.params[0].dtype.numpy
    for rows, columns in ((1, 1), (17, 21), (8, 32), (17, 37)):
        x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(kind)
        results = []
        for run in (kernel, kernel.interpret, tl.compile(kernel.lowered).interpret):
            given = [guarded(x, at_end=True), *(guarded(np.zeros_like(x), at_end=True) for _ in kernel.ir.params[1:])]
            run(*given)
            results.append(given[1:])
        for ours, *others in zip(*results, strict=True):
            for other in others:
                np.testing.assert_array_equal(ours, other)


def test_sums_along_rows_are_stored_by_tiles() -> None:
    func = kernel(
        """
        for i in range(n):
            s = x[i, 0]
            for j in range(1, m):
                s = s * x[i, j]
                y[i, j] = s
        """
    )
    text = str(VectorizeLoops(target="x86-64-v4")(func))
    assert "y_columns[j - tile, tl.ramp(0, 1, 16)] = s[tl.ramp(0, 1, 16)]" in text
    assert "y[first + 15, tl.ramp(tile, 1, 16)] = row" in text
    PASS.expect_unchanged("for i in range(n):\n    for j in range(m):\n        y[i, j] = y[i, j] + 1")


def transposed(dtype: DType) -> tl.Kernel:
    @tl.kernel
    def transposed(x: dtype[n, m], z: dtype[m, n], y: dtype[m, n]):
        for j in range(m):
            for i in range(n):
                y[j, i] = x[i, j] * z[j, i]

    return transposed


def test_one_column_alone_is_not_turned_over() -> None:
    @tl.kernel
    def moved(x: tl.f32[n, m], y: tl.f32[m, n]):
        for i in range(n):
            for j in range(m):
                y[j, i] = x[i, j]

    compiled = tl.compile(moved, target=tl.Target.host(workers=1))
    assert "if n >= 16 and m >= 2:" in str(tl.compile(moved, target=tl.Target("x86-64-v4")).lowered)
    for shape in ((40, 1), (40, 2), (3, 40)):
        x, y = np.random.default_rng(0).random(shape, np.float32), np.zeros(shape[::-1], np.float32)
        compiled(x, y)
        np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("dtype", [tl.f32, tl.f64, tl.i32, tl.u64, tl.u8])
def test_a_transpose_goes_by_tiles(dtype: DType) -> None:
    """Lanes find what they load side by side, and what they store along their rows is turned back."""
    kernel = transposed(dtype)
    assert "y_columns" in str(kernel.lowered)
    draw = np.random.default_rng(dtype.bits)
    for rows, columns in ((0, 3), (1, 1), (3, 40), (16, 16), (33, 21)):
        x, z = (draw.integers(0, 100, shape).astype(dtype.numpy) for shape in ((rows, columns), (columns, rows)))
        for run in (kernel, kernel.interpret, tl.compile(kernel.lowered).interpret):
            given = [guarded(each, at_end=True) for each in (x, z, np.zeros_like(z))]
            run(*given)
            np.testing.assert_array_equal(given[-1], x.T * z)


def test_colours_are_parted_by_llvm() -> None:
    """It has instructions for so few neighbours. Tiles of them would be filled with what is left out."""
    PASS.expect_unchanged(
        """
        for i in range(n):
            for c in range(3):
                y[c, i] = x[i, c]
        """
    )


@tl.kernel
def directions(x: tl.f32[n, 3], y: tl.out[tl.f32[n, 3]]):
    for i in range(n):
        length = tl.rsqrt(x[i, 0] * x[i, 0] + x[i, 1] * x[i, 1] + x[i, 2] * x[i, 2])
        y[i, 0] = x[i, 0] * length
        y[i, 1] = x[i, 1] * length
        y[i, 2] = x[i, 2] * length


@pytest.mark.parametrize(("target", "lanes"), [("x86-64-v2", 4), ("x86-64-v3", 1), ("x86-64-v4", 1)])
def test_coordinates_that_functions_are_of_are_parted_by_llvm_where_vectors_are_long(target: str, lanes: int) -> None:
    lowered = tl.compile(directions, target=tl.Target(target)).lowered
    widths = {node.dtype.lanes for node in walk(lowered.body) if isinstance(node, tl.ir.Call)}
    assert (max(widths) >= lanes) if lanes > 1 else (widths == {1})
    x = np.random.default_rng(0).standard_normal((37, 3)).astype(np.float32)
    np.testing.assert_array_equal(directions(x), directions.interpret(x))


@pytest.mark.parametrize(
    ("index", "stride"),
    [
        ("x[2 * j + 1]", 2),
        ("max(max(x[2 * j], x[2 * j + 1]), x[2 * j + 2])", 2),
        ("x[3 * j + 2]", 3),
        ("max(x[2 * j], x[2 * j + 1])", 0),  # LLVM parts what is all loaded
        ("2 * x[2 * j]", 0),  # and gathers what it computes with
        ("x[4 * j]", 0),
        ("min(x[3 * j], x[3 * j + 2])", 0),
    ],
)
def test_one_of_few_elements_is_copied_by_vectors(index: str, stride: int) -> None:
    func = tl.parse(f"""
n = tl.dim("n")

@tl.kernel
def few(x: tl.f32[4 * n + 2], y: tl.f32[n]):
    for j in range(n):
        y[j] = {index}
""")
    kernel = tl.compile(func)
    assert (f", {stride}, " in str(kernel.lowered)) is (stride > 0)
    for count in (1, 3, 4, 9, 16, 50):
        x, y = (
            guarded(np.random.default_rng(count).random(size, np.float32), at_end=True)
            for size in (4 * count + 2, count)
        )
        wanted = y.copy()
        kernel(x, y)
        kernel.interpret(x, wanted)
        np.testing.assert_array_equal(y, wanted)


def test_a_number_in_memory_that_some_lanes_alone_read() -> None:
    func = tl.parse("""
n = tl.dim("n")
@tl.kernel
def f(x: tl.f32[n], gain: tl.f32[()], y: tl.f32[n]):
    for i in tl.vectorized(8):
        y[i] = tl.log1p(x[i]) if x[i] <= 2 else x[i] + gain[()]
""")
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    tl.compile(func)(x, np.array(3, np.float32), y)
    np.testing.assert_allclose(y, np.where(x <= 2, np.log1p(x), x + 3), rtol=1e-6)


def test_bytes_that_iterations_share_are_loaded_by_vectors() -> None:
    """Two registers of what is computed. LLVM would keep elements for the next iteration, and shuffle vectors."""
    before = """
        n, m = tl.dims("n m")

        @tl.kernel
        def blur(x: tl.u8[n, m + 1], y: tl.u8[n, m]):
            for i in range(n):
                for j in range(m):
                    y[i, j] = tl.u8((tl.u16(x[i, j]) + tl.u16(x[i, j + 1])) >> 1)
        """
    blur = tl.parse(before)
    text = str(VectorizeLoops(target="x86-64-v3")(Normalize()(blur)))
    assert "y[i, tl.ramp(first, 1, 32)]" in text
    assert "x[i, tl.ramp(first + 1, 1, 32)]" in text
    # Bytes have no masks there: fewer go by narrower vectors.
    assert "y[i, tl.ramp(first_1, 1, 8)]" in text
    assert "y[i, tl.ramp(first_2, 1, 4)]" in text
    assert "tl.masked" not in text
    words = (
        before.replace("u8", "f32")
        .replace("u16", "f32")
        .replace(" >> 1", " * 0.5")
        .replace("] = tl", "] = y[i, j] + tl")
    )
    of_words = Normalize()(tl.parse(words))
    assert VectorizeLoops()(of_words) is of_words
    fast, plain = tl.compile(blur), tl.compile(blur, schedule=None)
    for m in (1, 5, 8, 31, 32, 33, 100):
        x = np.random.default_rng(m).integers(0, 256, (3, m + 1)).astype(np.uint8)
        found, wanted = np.zeros((2, 3, m), np.uint8)
        fast(x, found)
        plain(x, wanted)
        np.testing.assert_array_equal(found, wanted)


def test_places_that_are_computed_are_integers_of_32_bits() -> None:
    """Of these a register holds as many as of floats; the extents that they may come to are looked at."""
    resize = tl.parse(
        """
        n, m = tl.dims("n m")

        @tl.kernel
        def resize(x: tl.f32[n], y: tl.f32[m]):
            for j in range(m):
                place = tl.i64(min(max(tl.f64(j) * 0.7, 0), tl.f64(n - 1)))
                y[j] = x[place] + x[min(place + 1, n - 1)]
        """
    )
    lowered = str(VectorizeLoops(target="x86-64-v4")(Normalize()(resize)))
    assert "place = tl.i32x8(" in lowered
    assert "y[tl.ramp(first, 1, 8)] = x[tl.i64x8(place)] + x[tl.i64x8(min(place" in lowered
    assert "if max(m - 1, n) <= 2147483647:" in lowered
    few = Normalize()(resize)
    assert VectorizeLoops(target="x86-64-v3")(few) is few


def test_a_long_body_stands_once_where_its_last_vector_overlaps() -> None:
    """The last block of a parallel loop goes over what is left, too: no other one writes that."""
    turned = tl.parse(
        """
        n, m = tl.dims("n m")

        @tl.kernel
        def turned(x: tl.u8[n, m], y: tl.u8[m, n]):
            for i in tl.parallel(n):
                for j in range(m):
                    y[j, i] = x[i, j]
        """
    )
    lowered = str(VectorizeLoops(target="x86-64-v4")(Normalize()(turned)))
    assert "for i in tl.parallel(0, n // 16 * 16, 16):" in lowered
    assert "for i_1 in range(i, tl.select(n < i + 32, n, i + 16), 16):" in lowered
    assert lowered.count("row = x[") + lowered.count("row_1 = x[") == 2
    kernel = tl.compile(turned, target=tl.Target.host(workers=2))
    for n, m in ((1, 3), (15, 40), (16, 16), (17, 33), (47, 5), (300, 301)):
        x = np.random.default_rng(n).integers(0, 256, (n, m)).astype(np.uint8)
        y = np.zeros((m, n), np.uint8)
        kernel(x, y)
        np.testing.assert_array_equal(y, x.T)


@pytest.mark.parametrize("of_all", ["tl.f32({})", "tl.f32(-{})", "tl.f32({} + tl.i8(1))"])
def test_a_value_that_all_lanes_share_behind_a_name_that_they_do_not(of_all: str) -> None:
    func = tl.parse(f"""
    n = tl.dim("n")

    @tl.kernel
    def f(a: tl.u16[n], b: tl.f32[n]):
        for i in range(n):
            q = tl.u16(b[i]) // (a[i] % 8 + 1)
            b[i] = tl.f32(q) + {of_all.format("tl.let(e, b[i] * tl.f32(q), tl.i8(1))")}
    """)
    a = np.arange(70, dtype=np.uint16)
    found, wanted = (np.arange(70, dtype=np.float32) for _ in range(2))
    tl.compile(func)(a, found)
    tl.compile(func).interpret(a, wanted)
    np.testing.assert_array_equal(found, wanted)


def test_elements_of_an_iterations_own_array_at_computed_places_are_loaded_one_by_one() -> None:
    n = tl.dim("n")

    @tl.kernel
    def picked(x: tl.f32[n], y: tl.f32[n]):
        for j in range(n):
            own = tl.alloc(tl.f32[4])
            for a in range(min(4, n)):
                own[a] = x[a] + tl.f32(j)
            y[j] = own[j % 4]

    x, y = np.arange(70, dtype=np.float32), np.zeros(70, np.float32)
    picked(x, y)
    np.testing.assert_array_equal(y, np.arange(70) + np.arange(70) % 4)
