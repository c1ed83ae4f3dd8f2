"""Join, skew and tile: an iterated stencil goes by tiles of time and space, and gives the same bits."""

from __future__ import annotations

from functools import cache
from textwrap import indent
from unittest.mock import patch

import numpy as np
import pytest
from schedules.test_steps import body_of, product, running

import tirlite as tl
from tirlite.schedules.auto import stencils

pytestmark = pytest.mark.usefixtures("without_effort")

n, m = tl.dims("n m")


@tl.kernel
def smoothed(a: tl.f64[n], b: tl.f64[n], steps: tl.i64):
    for t in range(steps):  # noqa: B007
        for i in range(1, n - 1):
            b[i] = 0.5 * (a[i - 1] + a[i + 1])
        for i in range(1, n - 1):
            a[i] = 0.5 * (b[i - 1] + b[i + 1])


def by_tiles(s: tl.Schedule, ahead: int = 2) -> None:
    s.join(s.loop("i", 0), s.loop("i", 1), behind=1)
    s.split("t", 4)
    s.skew("i", along="t.inner", by=ahead)
    s.tile({"t.inner": 0, "i.skewed": 8})


def test_two_loops_in_a_row_become_one_where_the_second_runs_behind() -> None:
    s = tl.schedule(smoothed)
    s.join(s.loop("i", 0), s.loop("i", 1), behind=1)
    assert body_of(s) == (
        "for t in range(steps):\n"
        "    for i in range(1, n):\n"
        "        if i < n - 1:\n"
        "            b[i] = 0.5 * (a[i - 1] + a[i + 1])\n"
        "        if 2 <= i:\n"
        "            a[i - 1] = 0.5 * (b[i - 2] + b[i])"
    )


def test_the_condition_of_a_branch_goes_into_the_loop_that_is_all_it_holds() -> None:
    @tl.kernel
    def edges(x: tl.f32[n, m], y: tl.f32[n, m], z: tl.f32[n, m]):
        for i in range(n):
            if i > 0:
                for j in range(m):
                    y[i, j] = x[i - 1, j]
            for j in range(1, m):
                z[i, j] = y[i, j - 1]

    s = tl.schedule(edges)
    s.join(s.loop("j", 0), s.loop("j", 1))
    assert body_of(s) == (
        "for i in range(n):\n"
        "    for j in range(m):\n"
        "        if i > 0:\n"
        "            y[i, j] = x[i - 1, j]\n"
        "        if 1 <= j:\n"
        "            z[i, j] = y[i, j - 1]"
    )


@pytest.mark.parametrize(
    "branch",
    [
        pytest.param("if i > 0:\n{0}    z[i, 0] = 1", id="something else"),
        pytest.param("if i > 0:\n    pass\nelse:\n{0}", id="nothing before"),
    ],
)
def test_a_loop_of_another_branch_is_no_neighbour(branch: str) -> None:
    loop = "    for j in range(m):\n        y[i, j] = x[i, j]\n"
    body = f"{branch.format(loop)}\nfor j in range(1, m):\n    z[i, j] = y[i, j - 1]\n"
    head = 'n, m = tl.dims("n m")\n\n@tl.kernel\ndef edges(x: tl.f32[n, m], y: tl.f32[n, m], z: tl.f32[n, m]):\n'
    s = tl.schedule(tl.parse(f"{head}    for i in range(n):\n{indent(body, ' ' * 8)}"))
    with pytest.raises(tl.KernelError, match="do not follow"):
        s.join(s.loop("j", 0), s.loop("j", 1))


def test_loops_that_read_ahead_are_not_joined_without_a_distance() -> None:
    s = tl.schedule(smoothed)
    with pytest.raises(tl.KernelError, match=r"would change results: a\[i - 1\] \(line \d+\) must come after a\[i\]"):
        s.join(s.loop("i", 0), s.loop("i", 1))


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [(1, 0, "do not follow"), (0, 0, "do not follow")],
)
def test_only_neighbours_are_joined(first: int, second: int, reason: str) -> None:
    s = tl.schedule(smoothed)
    with pytest.raises(tl.KernelError, match=reason):
        s.join(s.loop("i", first), s.loop("i", second))


def test_several_loops_become_one_each_at_a_distance() -> None:
    @tl.kernel
    def thrice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        a = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = 2 * x[i]
        half = n // 2
        b = tl.alloc(tl.f32[n])
        for j in range(n):
            b[j] = a[j] + tl.f32(half)
        for k in range(n - 2):
            y[k] = b[k] + b[k + 2]

    s = tl.schedule(thrice)
    s.join("i", "j", "k", behind=(0, 2))
    assert str(s).endswith("s.join('i', 'j', 'k', behind=(0, 2))")
    assert body_of(s) == (
        "a = tl.alloc(tl.f32[n])\n"
        "half = n // 2\n"
        "b = tl.alloc(tl.f32[n])\n"
        "for i in range(n):\n"
        "    a[i] = tl.f32(2.0) * x[i]\n"
        "    b[i] = a[i] + tl.f32(half)\n"
        "    if 2 <= i:\n"
        "        y[i - 2] = b[i - 2] + b[i]"
    )
    s.shrink("a", "b")
    s.store_at("b", at="i")
    assert "b = tl.alloc(tl.f32[3])" in str(s.func)
    x = np.random.default_rng(0).normal(size=9).astype("f")
    np.testing.assert_array_equal(tl.compile(thrice, schedule=s)(x)[:7], thrice.interpret(x)[:7])
    with pytest.raises(tl.KernelError, match="two loops or more, with a distance for each"):
        tl.schedule(thrice).join("i", "j", behind=(0, 2))


def test_a_size_that_the_first_loop_computes_is_read_before_no_other() -> None:
    @tl.kernel
    def sized(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        size = tl.alloc(tl.i64[1])
        for i in range(n):
            size[0] = i
        t = tl.alloc(tl.f32[size[0]])
        for i in range(n):
            y[i] = x[i]
        t[0] = y[0]

    s = tl.schedule(sized)
    with pytest.raises(tl.KernelError, match="the loops do not follow each other"):
        s.join(s.loop("i", 0), s.loop("i", 1))


def test_time_and_space_go_by_tiles() -> None:
    s = tl.schedule(smoothed)
    by_tiles(s)
    assert body_of(s) == (
        "for t_outer in range(0, steps, 4):\n"
        "    for i_skewed_outer in range(1, n + 6, 8):\n"
        "        for t_inner in range(min(4, steps - t_outer)):\n"
        "            for i_skewed_inner in range(max(i_skewed_outer, t_inner * 2 + 1),"
        " min(i_skewed_outer + 8, n + t_inner * 2)):\n"
        "                if i_skewed_inner - t_inner * 2 < n - 1:\n"
        "                    b[i_skewed_inner - t_inner * 2] = 0.5 * (a[i_skewed_inner - t_inner * 2 - 1]"
        " + a[i_skewed_inner - t_inner * 2 + 1])\n"
        "                if 2 <= i_skewed_inner - t_inner * 2:\n"
        "                    a[i_skewed_inner - t_inner * 2 - 1] = 0.5 * (b[i_skewed_inner - t_inner * 2 - 2]"
        " + b[i_skewed_inner - t_inner * 2])"
    )


@pytest.mark.parametrize("size", [1, 2, 3, 9, 30])
@pytest.mark.parametrize("steps", [0, 1, 3, 4, 11])
def test_tiles_of_time_and_space_give_the_same_bits(size: int, steps: int) -> None:
    start = np.random.default_rng(0).normal(size=(2, size))
    wanted, found = start.copy(), start.copy()
    smoothed.interpret(*wanted, steps)
    BY_TILES(*found, steps)
    np.testing.assert_array_equal(found, wanted)


BY_TILES = tl.compile(smoothed, schedule=by_tiles)


@pytest.mark.parametrize("ahead", [1, -2])
def test_tiles_are_refused_where_the_loop_is_skewed_too_little(ahead: int) -> None:
    with pytest.raises(tl.KernelError) as error:
        by_tiles(tl.schedule(smoothed), ahead)
    assert error.value.code == "step-breaks-order"


def test_a_loop_of_any_number_of_iterations_is_not_skewed_along() -> None:
    s = tl.schedule(smoothed)
    with pytest.raises(tl.KernelError, match="how far the loop over `i` would move is not known; split `t`"):
        s.skew(s.loop("i", 0), along="t")


def test_a_skewed_loop_takes_its_iterations_from_each_block() -> None:
    s = tl.schedule(running)
    s.skew("j", along="i")
    s.tile({"i": 2, "j.skewed": 4})
    x = np.random.default_rng(3).normal(size=(7, 9)).astype("f")
    wanted, found = np.ones((7, 9), "f"), np.ones((7, 9), "f")
    running(x, wanted)
    tl.compile(running, schedule=s)(x, found)
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(tl.KernelError, match="must come after"):
        tl.schedule(running).tile({"i": 2, "j": 4})


def test_a_product_goes_by_tiles_in_all_three_directions() -> None:
    s = tl.schedule(product)
    s.distribute("p", out_of="i")
    s.tile({"i": 4, "j": 0, "p": 8})
    assert body_of(s).endswith(
        "for i_outer in range(0, n, 4):\n"
        "    for p_outer in tl.reduce(0, k, 8):\n"
        "        for i_inner in range(i_outer, min(i_outer + 4, n)):\n"
        "            for j in range(m):\n"
        "                for p_inner in tl.reduce(p_outer, min(p_outer + 8, k)):\n"
        "                    y[i_inner, j] = y[i_inner, j] + a[i_inner, p_inner] * b[p_inner, j]"
    )


def test_a_schedule_by_tiles_replays_after_a_change_elsewhere() -> None:
    names: dict[str, object] = {"tl": tl, "smoothed": changed}
    s = tl.schedule(smoothed)
    by_tiles(s)
    exec(str(s), names)
    again = names["s"]
    assert isinstance(again, tl.Schedule)
    assert again.steps == s.steps
    assert "a[i_skewed_inner - t_inner * 2 - 1] = 0.25 *" in body_of(again)


@tl.kernel
def changed(a: tl.f64[n], b: tl.f64[n], c: tl.f64[m], steps: tl.i64):
    for j in range(m):
        c[j] = 2 * c[j]
    for t in range(steps):  # noqa: B007
        for i in range(1, n - 1):
            b[i] = 0.5 * (a[i - 1] + a[i + 1])
        for i in range(1, n - 1):
            a[i] = 0.25 * (b[i - 1] + b[i + 1])


@tl.kernel
def jacobi(a: tl.f64[n, m], b: tl.f64[n, m], steps: tl.i64):
    for t in range(steps):  # noqa: B007
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                b[i, j] = 0.25 * (a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j])
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                a[i, j] = 0.25 * (b[i, j - 1] + b[i, j + 1] + b[i - 1, j] + b[i + 1, j])


@tl.kernel
def in_place(a: tl.f32[n, m], steps: tl.i64):
    for t in range(steps):  # noqa: B007
        for i in range(2, n):
            for j in range(1, m - 1):
                a[i, j] = a[i - 2, j + 1] + a[min(i + 1, n - 1), j - 1] - a[i, j]


@tl.kernel
def relaxed(a: tl.f32[n, m], steps: tl.i64):
    for t in range(steps):  # noqa: B007
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = min(a[i - 1, j], a[i + 1, j], a[i, j - 1], a[i, j + 1])
                a[i, j] += 0.5 * (around - a[i, j])


@tl.kernel
def turned(a: tl.f32[n, n], b: tl.f32[n, n], steps: tl.i64):
    for t in range(steps):  # noqa: B007
        for i in range(n):
            for j in range(n):
                b[i, j] = a[j, i]
        for i in range(n):
            for j in range(n):
                a[i, j] = 2 * b[i, j]


def test_an_iterated_stencil_goes_by_tiles_for_one_worker() -> None:
    alone = tl.compile(jacobi, target=tl.Target("x86-64-v4"))
    steps = ["s.specialize('t', {'i * j': 32768})"]  # half of a second cache of 1 MiB
    steps += ["s.join(s.loop('i', 0), s.loop('i', 1), behind=1)", "s.join(s.loop('j', 0), s.loop('j', 1), behind=1)"]
    steps += ["s.split('t', 12)", "s.skew('i', along='t.inner', by=2)", "s.skew('j', along='t.inner', by=2)"]
    steps += ["s.tile({'t.inner': 0, 'i.skewed': 24, 'j.skewed': 336})"]
    steps += ["s.distribute('j.skewed.inner', out_of='j.skewed.inner')", "s.apply(tl.passes.TightenLoops())"]
    assert str(alone.schedule).splitlines()[1:10] == steps
    assert alone.schedule.notes[0].startswith(
        "12 steps of time for tiles of 24 rows of pieces of 336 columns: each moves"
    )
    shared = tl.compile(jacobi, target=tl.Target("x86-64-v4", workers=4))
    assert "tile" not in str(shared.schedule)


def test_the_nests_of_short_rows_stay_apart_in_tiles() -> None:
    @tl.kernel
    def short(a: tl.f64[n, 300], b: tl.f64[n, 300], steps: tl.i64):
        for t in range(steps):  # noqa: B007
            for i in range(1, n - 1):
                for j in range(1, 299):
                    b[i, j] = 0.25 * (a[i, j - 1] + a[i, j + 1] + a[i - 1, j] + a[i + 1, j])
            for i in range(1, n - 1):
                for j in range(1, 299):
                    a[i, j] = 0.25 * (b[i, j - 1] + b[i, j + 1] + b[i - 1, j] + b[i + 1, j])

    alone = tl.compile(short, target=tl.Target("x86-64-v4"))
    steps = ["s.specialize('t', {'i * j': 32768})", "s.join(s.loop('i', 0), s.loop('i', 1), behind=1)"]
    steps += ["s.split('t', 8)", "s.skew('i', along='t.inner', by=2)", "s.tile({'t.inner': 0, 'i.skewed': 16})"]
    assert str(alone.schedule).splitlines()[1:6] == steps
    assert alone.schedule.notes[0].startswith("8 steps of time for tiles of 16 rows: each moves 2 rows on")


def test_two_workers_have_tiles_of_time_one_behind_the_other() -> None:
    kernel = tl.compile(jacobi, target=tl.Target("x86-64-v4", workers=2))
    steps = ["s.specialize('t', {'t': 24, 'i * j': 32768})", "s.join(s.loop('i', 0), s.loop('i', 1), behind=1)"]
    steps += ["s.join(s.loop('j', 0), s.loop('j', 1), behind=1)", "s.split('t', 48)"]
    steps += ["s.skew('i', along='t.inner', by=2)", "s.skew('j', along='t.inner', by=2)"]
    steps += ["s.tile({'t.inner': 12, 'i.skewed': 24, 'j.skewed': 336})"]
    steps += ["s.skew('i.skewed.outer', along='t.inner.outer', by=2)"]
    steps += ["s.tile({'t.inner.outer': 0, 'i.skewed.outer.skewed': 1})", "s.parallel('t.inner.outer')"]
    assert str(kernel.schedule).splitlines()[1:11] == steps
    wanted = "12 steps of time for tiles of 24 rows of pieces of 336 columns, 4 of them one behind the other:"
    assert kernel.schedule.notes[0].startswith(wanted)
    assert {each.how for each in kernel.safety} == {"proved"}


def test_a_name_in_the_only_loop_of_a_step_does_not_keep_it_from_pieces() -> None:
    for workers in 1, 2:
        schedule = str(tl.compile(relaxed, target=tl.Target("x86-64-v4", workers=workers)).schedule)
        assert "'j.skewed': 1360" in schedule
        assert "distribute" not in schedule


@pytest.mark.parametrize("kernel", [jacobi, in_place, relaxed], ids=["jacobi", "in_place", "relaxed"])
def test_tiles_of_several_workers_give_the_same_bits(kernel: tl.Kernel) -> None:
    arrays, dtype = (2, "d") if kernel is jacobi else (1, "f")
    plain, shared = plain_and_tiled(kernel, workers=2)
    for shape in (1, 1), (3, 3), (9, 40), (70, 70), (300, 400), (30, 1300):
        for steps in 15, 23, 24, 31, 49:
            start = np.random.default_rng(0).normal(size=(arrays, *shape)).astype(dtype)
            wanted, found = start.copy(), start.copy()
            plain(*wanted, steps)
            shared(*found, steps)
            np.testing.assert_array_equal(found, wanted)


def waves(s: tl.Schedule, by: int) -> None:
    s.skew("j", along="i")
    s.tile({"i": 2, "j.skewed": 4})
    s.skew("j.skewed.outer", along="i.outer", by=by)
    s.tile({"i.outer": 0, "j.skewed.outer.skewed": 1})
    s.parallel("i.outer")


def test_blocks_that_do_not_depend_on_each_other_run_at_once() -> None:
    s = tl.schedule(running)
    waves(s, 3)
    assert body_of(s).splitlines()[:4] == [
        "for j_skewed_outer_skewed_outer in range(0, m + 4 * n - 9, 4):",
        "    for i_outer in tl.parallel(1, n, 2):",
        "        if j_skewed_outer_skewed_outer >= 4 * i_outer - 4"
        " and j_skewed_outer_skewed_outer < m + min(n - 2, i_outer) + 3 * i_outer - 4:",
        "            for i_inner in range(i_outer, min(i_outer + 2, n)):",
    ]
    x = np.random.default_rng(3).normal(size=(70, 90)).astype("f")
    wanted, found = np.ones((70, 90), "f"), np.ones((70, 90), "f")
    running(x, wanted)
    tl.compile(running, schedule=s)(x, found)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("by", "reason"), [(2, "may be moved by parts of its blocks"), (1, "must come after")])
def test_blocks_wait_for_those_that_they_need(by: int, reason: str) -> None:
    with pytest.raises(tl.KernelError, match=reason):
        waves(tl.schedule(running), by)


def test_what_reads_rows_from_everywhere_goes_step_by_step() -> None:
    assert "tile" not in str(tl.compile(turned, target=tl.Target("x86-64-v4")).schedule)


@cache
def plain_and_tiled(kernel: tl.Kernel, workers: int = 1) -> tuple[tl.Kernel, tl.Kernel]:
    tiled = tl.compile(kernel, target=tl.Target.host(workers=workers))
    with patch.object(stencils, "_HELD", 1 << 60):  # arrays of any size
        assert "i * j" not in str(tiled.schedule)
    return tl.compile(kernel, schedule=None), tiled


@pytest.mark.parametrize("kernel", [jacobi, in_place, turned])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (5, 9), (40, 12), (30, 1300)])
@pytest.mark.parametrize("steps", [0, 1, 8, 25])
def test_iterated_stencils_give_the_same_bits(kernel: tl.Kernel, shape: tuple[int, int], steps: int) -> None:
    rows, columns = shape
    shape = (rows, rows) if kernel is turned else (rows, columns)
    count = sum(isinstance(param, tl.ir.Buffer) for param in kernel.ir.params)
    start = np.random.default_rng(0).integers(-2, 3, size=(count, *shape))
    dtype = np.float64 if kernel is jacobi else np.float32
    wanted, found = start.astype(dtype), start.astype(dtype)
    plain, tiled = plain_and_tiled(kernel)
    plain(*wanted, steps)
    tiled(*found, steps)
    np.testing.assert_array_equal(found, wanted)


def test_arrays_that_the_second_cache_holds_go_step_by_step() -> None:
    plain, chosen = tl.compile(jacobi, schedule=None), tl.compile(jacobi, target=tl.Target.host(workers=1))
    for shape in (3, 3), (40, 50), (600, 700):
        start = np.random.default_rng(0).normal(size=(2, *shape))
        wanted, found = start.copy(), start.copy()
        plain(*wanted, 13)
        chosen(*found, 13)
        np.testing.assert_array_equal(found, wanted)


@tl.kernel
def shifted(x: tl.f32[n], y: tl.f32[n + 4]):
    for t in range(4):
        for i in tl.parallel(n):
            y[i - t + 4] = x[i] * t


@tl.kernel
def added(x: tl.f32[4, n], y: tl.f32[n]):
    for t in range(4):
        for i in tl.parallel(n):
            y[i] = y[i] + x[t, i]


@pytest.mark.parametrize("step", ["reorder", "tile"])
def test_a_parallel_loop_runs_in_order_where_a_loop_that_was_around_it_carries_what_it_writes(step: str) -> None:
    s = tl.schedule(shifted)
    if step == "reorder":
        s.reorder("i", "t")
        assert body_of(s).splitlines()[0] == "for i in range(n):"
    else:
        s.tile({"t": 0, "i": 8})
        assert body_of(s).splitlines()[0] == "for i_outer in range(0, n, 8):"


def test_a_parallel_loop_stays_parallel_outside_of_a_loop_that_carries_nothing_across_it() -> None:
    s = tl.schedule(added)
    s.reorder("i", "t")
    assert body_of(s).splitlines()[0] == "for i in tl.parallel(n):"
