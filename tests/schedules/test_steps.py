"""Each step of a schedule: the loops before and after, and what it refuses."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.schedules import Pack, Split

n, m, k = tl.dims("n m k")


@tl.kernel
def product(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 0
            for p in tl.reduce(k):
                y[i, j] += a[i, p] * b[p, j]


@tl.kernel
def running(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(1, n):
        for j in range(m - 1):
            y[i, j] = y[i - 1, j + 1] + x[i, j]


def body_of(schedule: tl.Schedule) -> str:
    """The printed body, without the head and its indentation."""
    lines = str(schedule.func).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("def ")) + 1
    return "\n".join(line[4:] for line in lines[start:])


def tiled() -> tl.Schedule:
    s = tl.schedule(product)
    s.split("j", 8)
    s.reorder("j.outer", "i", "j.inner")
    s.distribute("p", out_of="i")
    s.split("p", 16)
    s.reorder("p.outer", "i", "j.inner")
    return s


def test_split() -> None:
    s = tl.schedule(running)
    s.split("j", 8)
    assert body_of(s) == (
        "for i in range(1, n):\n"
        "    for j_outer in range(0, m - 1, 8):\n"
        "        for j_inner in range(j_outer, min(j_outer + 8, m - 1)):\n"
        "            y[i, j_inner] = y[i - 1, j_inner + 1] + x[i, j_inner]"
    )


def test_one_loop_of_two_goes_through_both_in_their_order() -> None:
    s = tl.schedule(running)
    s.fuse("i", "j")
    assert body_of(s) == (
        "for i_j in range((n - 1) * (m - 1)):\n"
        "    i = i_j // (m - 1) + 1\n"
        "    j = i_j % (m - 1)\n"
        "    y[i, j] = y[i - 1, j + 1] + x[i, j]"
    )
    x = np.random.default_rng(3).normal(size=(5, 7)).astype("f")
    wanted, found = (np.ones((5, 7), "f") for _ in range(2))
    running(x, wanted)
    tl.compile(running, schedule=s)(x, found)
    np.testing.assert_array_equal(found, wanted)


@tl.kernel
def windows(x: tl.f32[k, n + 1, m + 1], f: tl.f32[3, k, 2, 2], y: tl.out[tl.f32[3, n, m]]):
    for q in range(3):
        for i in range(n):
            for j in range(m):
                s = tl.f32(0)
                for p in tl.reduce(k):
                    for u in tl.reduce(2):
                        for v in tl.reduce(2):
                            s += f[q, p, u, v] * x[p, i + u, j + v]
                y[q, i, j] = s


def test_loops_over_whole_rows_are_one_that_goes_on_over_their_ends() -> None:
    s = tl.schedule(windows)
    s.fuse("i", "j", flat=True)
    assert "y_flat = tl.view(y, tl.f32[3, n * m])\n" in body_of(s)
    assert "+ f[q, p, u, v] * x[p, i_j // m + u, i_j % m + v]" in body_of(s)
    assert "y_flat[q, i_j] = s" in body_of(s)
    s.split("i.j", 8)
    s.reorder("i.j.outer", "q", "i.j.inner")
    s.pack("x", at="i.j.outer", axes=["p", "u", "v", "i.j.inner"], whole=8, masked=True)
    assert "for x_row in range(i_j_outer // m, (min(i_j_outer + 8, n * m) - 1) // m + 1):" in body_of(s)
    s.vectorize("i.j.inner", 8, padded=True, masked=True)
    scheduled = tl.compile(windows, schedule=s)
    for rows, columns in ((1, 1), (3, 5), (7, 1), (1, 20), (2, 8), (5, 13)):
        x = np.random.default_rng(3).integers(-9, 9, (2, rows + 1, columns + 1)).astype("f")
        f = np.random.default_rng(4).integers(-9, 9, (3, 2, 2, 2)).astype("f")
        wanted = np.zeros((3, rows, columns), "f")
        windows.interpret(x, f, wanted)
        np.testing.assert_array_equal(scheduled(x, f), wanted)


def test_blocks_and_a_nest_for_what_begins_sums() -> None:
    assert body_of(tiled()) == (
        "for j_outer in range(0, m, 8):\n"
        "    for i_before in range(n):\n"
        "        for j_inner_before in range(j_outer, min(j_outer + 8, m)):\n"
        "            y[i_before, j_inner_before] = tl.f32(0.0)\n"
        "    for p_outer in tl.reduce(0, k, 16):\n"
        "        for i in range(n):\n"
        "            for j_inner in range(j_outer, min(j_outer + 8, m)):\n"
        "                for p_inner in tl.reduce(p_outer, min(p_outer + 16, k)):\n"
        "                    y[i, j_inner] = y[i, j_inner] + a[i, p_inner] * b[p_inner, j_inner]"
    )


def test_a_packed_panel_is_an_allocation_and_a_copy() -> None:
    s = tiled()
    s.pack("b", at="p.outer", axes=["p.inner", "j.inner"])
    assert (
        "    for p_outer in tl.reduce(0, k, 16):\n"
        "        b_packed = tl.alloc(tl.f32[16, 8])\n"
        "        if min(m - j_outer, 8) < 8:\n"
        "            for b_p_inner in range(p_outer, min(p_outer + 16, k)):\n"
        "                for b_rest in range(8):\n"
        "                    b_packed[b_p_inner - p_outer, b_rest] = tl.f32(0.0)\n"
        "        for b_p_inner in range(p_outer, min(p_outer + 16, k)):\n"
        "            for b_j_inner in range(j_outer, min(j_outer + 8, m)):\n"
        "                b_packed[b_p_inner - p_outer, b_j_inner - j_outer] = b[b_p_inner, b_j_inner]\n"
    ) in body_of(s)
    assert "a[i, p_inner] * b_packed[p_inner - p_outer, j_inner - j_outer]" in body_of(s)
    kernel = tl.compile(product, schedule=s)
    assert kernel.plan.total == 4 * 16 * 8


def test_what_is_packed_may_be_a_view() -> None:
    @tl.kernel
    def viewed(a: tl.f32[n, k], b: tl.f32[k * m], y: tl.out[tl.f32[n, m]]):
        matrix = tl.view(b, tl.f32[k, m])
        for j in range(m):
            for i in range(n):
                total = tl.f32(0)
                for p in tl.reduce(k):
                    total += a[i, p] * matrix[p, j]
                y[i, j] = total

    s = tl.schedule(viewed)
    s.split("j", 8)
    s.reorder("j.outer", "i", "j.inner")
    s.pack("matrix", at="j.outer", axes=["p", "j.inner"])
    assert "matrix_packed[matrix_p, matrix_j_inner - j_outer] = matrix[matrix_p, matrix_j_inner]" in body_of(s)
    assert "a[i, p] * matrix_packed[p, j_inner - j_outer]" in body_of(s)


def test_vectors_and_rows_together() -> None:
    s = tl.schedule(product)
    s.cache_write("y", at="j")
    s.vectorize("j", 8)
    s.unroll_jam("i", 2)
    assert (
        "for i in range(0, n // 2 * 2, 2):\n"
        "    for j in range(0, m // 8 * 8, 8):\n"
        '        y_1 = tl.alloc(tl.f32[8], scope="local")\n'
        '        y_2 = tl.alloc(tl.f32[8], scope="local")\n'
        "        y_1[tl.ramp(0, 1, 8)] = tl.broadcast(tl.f32(0.0), 8)\n"
        "        y_2[tl.ramp(0, 1, 8)] = tl.broadcast(tl.f32(0.0), 8)\n"
        "        for p in tl.reduce(k):\n"
    ) in body_of(s)


def by_fours(s: tl.Schedule) -> None:
    s.cache_write("y", at="j")
    s.vectorize("j", 8)
    s.unroll_jam("i", 4)


BY_FOURS = tl.compile(product, schedule=by_fours)


@pytest.mark.parametrize("rows", [4, 5, 6, 7, 9, 13])
def test_rows_that_are_left_go_by_twos(rows: int) -> None:
    assert "for i in range(n // 4 * 4, n, 2):" in str(BY_FOURS.lowered)
    assert "a[min(i + 1, n - 1), p]" in str(BY_FOURS.lowered)
    numbers = np.random.default_rng(rows)
    a, b = numbers.normal(size=(rows, 5)).astype("f"), numbers.normal(size=(5, 19)).astype("f")
    np.testing.assert_array_equal(BY_FOURS(a, b), product.interpret(a, b))


def test_rows_that_may_not_go_twice_or_that_llvm_writes_by_vectors_follow_one_by_one() -> None:

    @tl.kernel
    def grown(y: tl.f32[n, m], x: tl.f32[m]):
        for i in range(n):
            for j in range(m):
                y[i, j] += x[j]

    @tl.kernel
    def doubled(y: tl.out[tl.f32[n, m]], x: tl.f32[n, m]):
        for i in range(n):
            for j in range(m):
                y[i, j] = 2 * x[i, j]

    for kernel in (grown, doubled):
        s = tl.schedule(kernel)
        s.unroll_jam("i", 4)
        assert "for i in range(n // 4 * 4, n):" in body_of(s)


@tl.kernel
def small(a: tl.f32[8, 3], b: tl.f32[3, 11], y: tl.out[tl.f32[8, 11]]):
    for i in range(8):
        for j in range(11):
            s = tl.f32(0)
            for p in tl.reduce(3):
                s += a[i, p] * b[p, j]
            y[i, j] = s


def by_panels(s: tl.Schedule) -> None:
    s.split("j", 8)
    s.split("j.inner", 4)
    s.reorder("j.outer", "i", "j.inner.outer", "j.inner.inner")
    s.pack("b", at="j.outer", axes=["j.inner.outer", "p", "j.inner.inner"], whole=4, masked=True)
    s.vectorize("j.inner.inner", 4, padded=True, masked=True)
    s.unroll_jam("i", 3)


def test_panels_are_packed_together_row_by_row() -> None:
    s = tl.schedule(small)
    by_panels(s)
    assert "b_packed = tl.alloc(tl.f32[2, 3, 4])" in body_of(s)
    assert (
        "    for b_p in range(3):\n        for b_j_inner_outer in range(j_outer, min(j_outer + 8, 11), 4):\n"
    ) in body_of(s)
    assert "b_packed[(b_j_inner_outer - j_outer) // 4, b_p, tl.ramp(0, 1, 4)] = " in body_of(s)


def test_whole_vectors_are_stored_without_a_mask_and_rows_that_are_left_together() -> None:
    s = tl.schedule(small)
    by_panels(s)
    assert (
        "            if j_inner_outer + 4 <= min(j_inner_outer + 4, min(j_outer + 8, 11)):\n"
        "                y[i, tl.ramp(j_inner_outer, 1, 4)] = s[tl.ramp(0, 1, 4)]\n"
        "                y[i + 1, tl.ramp(j_inner_outer, 1, 4)] = s_1[tl.ramp(0, 1, 4)]\n"
        "                y[i + 2, tl.ramp(j_inner_outer, 1, 4)] = s_2[tl.ramp(0, 1, 4)]\n"
        "            else:\n"
        "                y[i, tl.masked(tl.ramp(j_inner_outer, 1, 4), on_1)] = s[tl.ramp(0, 1, 4)]\n"
    ) in body_of(s)
    assert "for i in range(0, 6, 3):\n" in body_of(s)
    assert "y[6, tl.ramp(j_inner_outer, 1, 4)] = s_3[tl.ramp(0, 1, 4)]\n" in body_of(s)
    assert body_of(s).count("for p in ") == 2
    numbers = np.random.default_rng(0)
    a, b = numbers.normal(size=(8, 3)).astype("f"), numbers.normal(size=(3, 11)).astype("f")
    kernel = tl.compile(small, schedule=by_panels)
    np.testing.assert_array_equal(kernel(a, b), small.interpret(a, b))
    np.testing.assert_array_equal(tl.compile(kernel.lowered, schedule=None).interpret(a, b), small.interpret(a, b))


def test_specialize() -> None:
    s = tl.schedule(product)
    s.specialize("i", {"i": 4, "p * j": 64})
    assert body_of(s).startswith("if n >= 4 and k * m >= 64:\n    for i in range(n):\n")
    assert "else:\n    for i_else in range(n):\n        for j_else in range(m):\n" in body_of(s)


def test_no_condition_stands_before_what_it_names() -> None:
    s = tl.schedule(product)
    s.split("j", 4)
    s.fuse("i", "j.outer")
    with pytest.raises(tl.KernelError, match="how often the loop over `j.inner` runs is decided inside"):
        s.specialize("i.j.outer", {"j.inner": 4})


def test_a_loop_of_one_block_leaves_the_other_loop_as_it_is() -> None:
    s = tl.schedule(product)
    s.split("i", 16)
    s.split("i.inner", 32)
    s.reorder("i.outer", "j", "i.inner.outer", "i.inner.inner")
    s.fuse("j", "i.inner.outer")
    assert body_of(s).startswith(
        "for i_outer in range(0, n, 16):\n"
        "    for j_i_inner_outer in range(m):\n"
        "        j = j_i_inner_outer\n"
        "        i_inner_outer = i_outer\n"
    )


def test_loops_that_descend_are_not_fused() -> None:
    @tl.kernel
    def backwards(x: tl.f32[n, m]):
        for i in range(n - 1, -1, -1):
            for j in range(m):
                x[i, j] = i

    with pytest.raises(tl.KernelError, match="the loop over `i` has step -1"):
        tl.schedule(backwards).fuse("i", "j")


@every(
    "step, reason",
    [
        (lambda s: s.split("j", "8"), r"s.split\('j', '8'\)` does not fit: `by` takes integers"),
        (lambda s: s.split("j", 1 << 63), "`by` takes integers of 64 bits"),
        (lambda s: s.split("j", True), "`by` takes integers of 64 bits"),
        (lambda s: s.peel("j", first=0.5), "`first` takes integers"),
        (lambda s: s.specialize("j", {s.loop("j"): 3}), "`least` takes .*text"),
        (lambda s: s.parallel(None), "`loop` takes loops"),
        (lambda s: s.parallel(()), "`loop` takes loops"),
        (lambda s: s.store_at("y", at=("j",)), "`at` takes loops"),
        (lambda s: s.shrink(3), "`buffers` takes buffers"),
        (lambda s: s.specialize("j", {"j": 3.5}), "`least` takes integers of 64 bits or text"),
        (lambda s: s.join(("j",), "j"), "`loops` takes loops"),
        (lambda s: s.reorder(()), "`loops` takes loops"),
        (lambda s: s.vectorize("j", ()), "`lanes` takes integers of 64 bits"),
        (lambda s: s.shrink(("y",)), "`buffers` takes buffers"),
        (lambda s: s.tile({1: 2}), "`sizes` takes numbers by loops"),
        (lambda s: s.tile({"j": "j"}), "`sizes` takes numbers by loops"),
        (lambda s: s.join(), "there are two loops or more"),
        (lambda s: s.dots(outside="j", at="j", axes=[], whole=8, types=("i16", "i16")), "its axes are loops"),
        (lambda s: s.tile([("j", 8)]), r"tile\(\) takes a Mapping, and is given a list"),
        (lambda s: s.specialize("j", ["j"]), r"specialize\(\) takes a Mapping, and is given a list"),
        (lambda s: s.pack("x", at="j", axes=3), r"pack\(\) takes an Iterable, and is given an int"),
        (lambda s: s.for_large(0, print), r"for_large\(0, large\)` does not fit: it takes a number of bytes from 1"),
        (lambda s: s.pack("x", at="i", axes=["j"], whole=0), r"`whole` is 1 or more"),
        (lambda s: s.for_large(10, None), r"for_large\(\) takes a Callable, and is given a NoneType"),
        (lambda s: [s.for_large(9, str), s.for_small(4, str), s.for_large(5, str)], "large arrays already"),
        (lambda s: s.for_small(9, lambda t: t.for_large(5, str)), "its steps are for all sizes that it is for"),
        (lambda s: s.loop("j", 0.5), r"loop\(\) takes an int, and is given a float"),
        (lambda s: s.buffer(3), r"buffer\(\) takes a str, and is given an int"),
        (lambda s: s.apply(3), r"apply\(\) takes a Callable, and is given an int"),
    ],
)
def test_what_a_step_does_not_take_is_named(step: Callable[[tl.Schedule], None], reason: str) -> None:
    s = tl.schedule(running)
    with pytest.raises((tl.KernelError, tl.CallTypeError), match=reason):
        step(s)
    s.split("j", np.int64(8))
    assert "range(0, m - 1, 8)" in str(s.func)
    assert str(s).endswith("s.split('j', 8)")


def test_passes_of_ones_own_print_by_their_names() -> None:
    def looked_at(func: tl.PrimFunc) -> tl.PrimFunc:
        return func

    s = tl.schedule(running)
    s.apply(looked_at)
    assert str(s).endswith("\ns.apply(looked_at)")
    seen: list[str] = []
    tl.compile(running, schedule=s, observers=[lambda step: seen.append(step.name)])(*np.zeros((2, 3, 3), "f"))
    assert "looked_at" in seen


@pytest.mark.parametrize("names", [("i", "i"), ("j", "i", "j")])
def test_a_loop_has_one_place_in_an_order(names: tuple[str, ...]) -> None:
    """It was put inside of itself: the function then ran it for each of its own iterations."""
    with pytest.raises(tl.KernelError, match=r"s\.reorder\(.*does not fit: a loop is named twice"):
        tl.schedule(running).reorder(*names)


def everything(s: tl.Schedule) -> None:
    s.specialize("i", {"i": 3})
    s.split("j", 8)
    s.reorder("j.outer", "i", "j.inner")
    s.distribute("p", out_of="i")
    s.parallel("j.outer")
    s.split("p", 16)
    s.reorder("p.outer", "i", "j.inner")
    s.pack("b", at="p.outer", axes=["p.inner", "j.inner"], whole=4)
    s.cache_write("y", at="j.inner")
    s.vectorize("j.inner", 8, 4, padded=True)
    s.unroll_jam("i", 3)


EVERYTHING = tl.compile(product, schedule=everything)


@pytest.mark.parametrize(("rows", "terms", "columns"), [(1, 1, 1), (3, 16, 8), (7, 35, 23), (8, 1, 12), (2, 3, 4)])
def test_results_stay_the_same_to_the_bit(rows: int, terms: int, columns: int) -> None:
    numbers = np.random.default_rng(0)
    a, b = numbers.normal(size=(rows, terms)).astype("f"), numbers.normal(size=(terms, columns)).astype("f")
    kernel = EVERYTHING
    wanted = product.interpret(a, b)
    np.testing.assert_array_equal(kernel(a, b), wanted)
    np.testing.assert_array_equal(tl.compile(kernel.lowered, schedule=None).interpret(a, b), wanted)


def test_statements_that_stand_several_times_define_names_of_their_own() -> None:
    @tl.kernel
    def scaled(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        for i in range(n):
            half = tl.alloc(tl.f32[m])
            for j in range(m):
                value = x[i, j] / 2
                half[j] = value
            for j in range(m):
                y[i, j] = half[j]

    s = tl.schedule(scaled)
    s.split("i", 8, tail="peeled")
    s.unroll_jam("i.inner", 4)
    assert s.func.is_normal
    defined = [getattr(node, name) for node in tl.ir.walk(s.func.body) for name in node.DEFINES if node is not s.func]
    assert len(defined) > 10
    assert len(set(defined)) == len(defined)


def test_a_schedule_prints_as_python_and_replays() -> None:
    s = tl.schedule(product)
    everything(s)
    assert str(s).splitlines()[:3] == ["s = tl.schedule(product)", "s.specialize('i', {'i': 3})", "s.split('j', 8)"]
    names: dict[str, object] = {"tl": tl, "product": product}
    exec(str(s), names)
    again = names["s"]
    assert isinstance(again, tl.Schedule)
    assert again.steps == s.steps
    s, again = tiled(), tl.Schedule(product.ir, tiled().steps)
    assert tl.structural_equal(again.func, s.func)


def test_a_kernel_tells_its_schedule() -> None:
    given = tl.compile(product, schedule=[Split("j", 8)])
    assert given.schedule.steps == (Split("j", 8),)
    assert tl.compile(product, schedule=None).schedule.steps == ()
    chosen = product.schedule
    assert any(isinstance(step, Pack) for step in chosen.steps)
    passes = ("ParallelizeLoops", "PartitionLoops", "VectorizeLoops")
    steps = [line for line in str(chosen).splitlines() if not line.startswith("#")]
    assert steps[-3:] == [f"s.apply(tl.passes.{each}())" for each in passes]
    assert tl.structural_equal(tl.compile(product, schedule=chosen).lowered, product.lowered)


def test_a_kernel_tells_the_figures_that_decided_and_which_loops_stay_in_order() -> None:
    @tl.kernel
    def decay(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]], last: tl.f32[1]):
        for i in range(n):
            for j in range(1, m):
                y[i, j] = y[i, j - 1] * 0.5 + x[i, j]
        for i in range(n):
            last[0] += y[i, 0]

    first = decay.ir.span.line
    assert tl.compile(decay, target=tl.Target("x86-64-v3")).schedule.notes == (
        f"in order: the loop over `j`, as y[i, j - 1] (line {first + 3}) must come after y[i, j] (line {first + 3})",
        f"in order: the loop over `i`, as it combines values into last[0] (line {first + 5}) as written: "
        "`tl.reduce` says that they may be regrouped",
    )
    tile, *_ = tl.compile(product, target=tl.Target("x86-64-v3")).schedule.notes
    assert tile.startswith("a tile of 6 x 16 sums takes 12 vectors of 32 bytes; a panel pays from 16384 bytes on")
    assert str(decay.schedule).splitlines()[-2:] == [f"# {each}" for each in decay.schedule.notes]
    assert tl.schedule(decay).notes == ()


def test_rows_that_are_added_up_column_by_column_are_no_loop_in_order() -> None:
    """Columns go side by side: that `tl.reduce` would allow more says nothing of a loop that has it."""

    @tl.kernel
    def columns(x: tl.f32[n, m], y: tl.out[tl.f32[m]]):
        for j in range(m):
            s = tl.f32(0)
            for i in tl.reduce(n):
                s += x[i, j]
            y[j] = s

    assert tl.compile(columns).schedule.notes == ()


def test_what_would_change_results_is_refused_with_the_accesses() -> None:
    s = tl.schedule(running)
    with pytest.raises(tl.KernelError) as error:
        s.reorder("j", "i")
    assert error.value.code == "step-breaks-order"
    assert "y[i - 1, j + 1] (line" in str(error.value)
    with pytest.raises(tl.KernelError, match="must come after"):
        s.parallel("i")
    s.parallel("j")
    assert [str(step) for step in s.steps] == ["s.parallel('j')"]


def test_a_reduction_may_be_regrouped_and_a_sum_in_order_may_not() -> None:
    @tl.kernel
    def sums(x: tl.f32[n, m], y: tl.f32[1]):
        for i in tl.reduce(n):
            for j in tl.reduce(m):
                y[0] += x[i, j]

    s = tl.schedule(sums)
    s.reorder("j", "i")

    @tl.kernel
    def in_order(x: tl.f32[n, m], y: tl.f32[1]):
        for i in range(n):
            for j in range(m):
                y[0] += x[i, j]

    with pytest.raises(tl.KernelError, match="must come after"):
        tl.schedule(in_order).reorder("j", "i")


def test_each_statement_of_a_loop_comes_into_a_loop_of_its_own() -> None:
    @tl.kernel
    def thrice(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
        for i in range(1, n):
            y[i] = x[i]
            z[i] = y[i - 1]
            if i > 2:
                x[i - 1] = 0

    s = tl.schedule(thrice)
    s.distribute("i", out_of="i")
    assert body_of(s) == (
        "for i_before in range(1, n):\n"
        "    y[i_before] = x[i_before]\n"
        "for i_before in range(1, n):\n"
        "    z[i_before] = y[i_before - 1]\n"
        "for i in range(1, n):\n"
        "    if i > 2:\n"
        "        x[i - 1] = tl.f32(0.0)"
    )


def test_statements_of_a_loop_stay_together_where_a_later_one_feeds_an_earlier_one() -> None:
    @tl.kernel
    def feeding(x: tl.f32[n], y: tl.f32[n]):
        for i in range(1, n):
            y[i] = x[i - 1]
            x[i] = y[i] + 1

    with pytest.raises(tl.KernelError) as error:
        tl.schedule(feeding).distribute("i", out_of="i")
    assert error.value.code == "step-breaks-order"


def test_statements_stay_together_where_a_later_one_loads_what_an_earlier_one_has_loaded_too() -> None:
    @tl.kernel
    def running(x: tl.f32[n], y: tl.f32[n]):
        total = tl.f32(0)
        for i in range(n):
            total += x[i]
            y[i] = total

    with pytest.raises(tl.KernelError) as error:
        tl.schedule(running).distribute("i", out_of="i")
    assert error.value.code == "step-breaks-order"


def test_what_stands_before_a_loop_stays_where_the_loop_feeds_it() -> None:
    @tl.kernel
    def feeding(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
        for i in range(1, n):
            z[i] = y[i - 1]
            for j in range(2):
                y[i] = x[i] + j

    with pytest.raises(tl.KernelError) as error:
        tl.schedule(feeding).distribute("j", out_of="i")
    assert error.value.code == "step-breaks-order"


@every(
    "step, code",
    [
        (lambda s: s.split("q", 8), "no-loop"),
        (lambda s: s.split("i", 0), "step-does-not-fit"),
        (lambda s: s.loop("i", 2), "no-loop"),
        (lambda s: s.buffer("c"), "no-buffer"),
        (lambda s: s.reorder("p", "j"), "step-does-not-fit"),
        (lambda s: s.distribute("i", out_of="p"), "step-does-not-fit"),
        (lambda s: s.pack("y", at="i", axes=["j"]), "step-does-not-fit"),
        (lambda s: s.pack("b", at="i", axes=["i"]), "step-does-not-fit"),
        (lambda s: s.pack("b", at="j", axes=["p", "j"]), "step-does-not-fit"),
        (lambda s: s.cache_write("a", at="i"), "step-does-not-fit"),
        (lambda s: s.vectorize("j", 8, padded=True), "step-does-not-fit"),
        (lambda s: s.vectorize("i", 8), "step-does-not-fit"),
        (lambda s: s.unroll_jam("p", 4), "step-does-not-fit"),
        (lambda s: s.parallel("p"), "step-does-not-fit"),
        (lambda s: s.specialize("i", {"q": 8}), "step-does-not-fit"),
        (lambda s: s.fuse("j", "p"), "step-does-not-fit"),
        (lambda s: s.fuse("i", "i"), "step-does-not-fit"),
    ],
)
def test_what_does_not_fit_is_told(step: object, code: str) -> None:
    s = tl.schedule(product)
    with pytest.raises(tl.KernelError) as error:
        step(s)  # type: ignore[operator]
    assert error.value.code == code
    assert s.steps == ()


def test_a_step_that_names_nothing_is_told_where_a_schedule_is_replayed() -> None:
    @tl.kernel
    def renamed(a: tl.f32[n, n], b: tl.f32[n, n], y: tl.out[tl.f32[n, n]]):
        for row in range(n):
            for j in range(n):
                y[row, j] = a[row, j] + b[row, j]

    s = tl.schedule(product)
    s.split("j", 16)
    s.parallel("i")
    with pytest.raises(tl.KernelError) as error:
        tl.compile(renamed, schedule=s).compile()
    assert str(error.value).endswith("the loops are `row`, `j.outer`, `j.inner`; the step is `s.parallel('i')`")


def test_sums_in_memory_are_not_added_up_twice_where_the_last_iteration_runs_again() -> None:
    @tl.kernel
    def columns(x: tl.f32[n, m], y: tl.f32[m]):
        for j in range(m):
            y[j] = 0
            for i in tl.reduce(n):
                y[j] += x[i, j]

    kernel, y = tl.compile(columns, schedule=lambda s: s.unroll_jam("j", 4)), np.zeros(7, np.float32)
    kernel(np.ones((3, 7), np.float32), y)
    assert y.tolist() == [3] * 7


def test_what_each_iteration_allocates_is_neither_cached_nor_packed() -> None:
    @tl.kernel
    def own(x: tl.f32[n, m], y: tl.f32[n]):
        for i in range(n):
            t = tl.alloc(tl.f32[8])
            for j in range(8):
                t[j] = j
            for p in range(8):
                y[i] = t[p]

    for step in (lambda s: s.cache_write("t", at="i"), lambda s: s.pack("t", at="i", axes=["p"])):
        with pytest.raises(tl.KernelError, match="each iteration's own|may write"):
            step(tl.schedule(own))


def test_a_copy_for_a_loop_that_may_not_run_has_no_extent_below_zero() -> None:
    @tl.kernel(schedule=lambda s: s.pack("x", at="i", axes=["j"]))
    def inner(x: tl.f32[n], y: tl.f32[m]):
        for i in range(m):
            for j in range(3, n - 1):
                y[i] += x[j]

    y = np.zeros(2, "f")
    inner(np.ones(2, "f"), y)
    assert y.tolist() == [0, 0]
    inner(np.ones(6, "f"), y)
    assert y.tolist() == [2, 2]


def test_calls_with_empty_arrays_need_no_schedule() -> None:
    @tl.kernel(schedule=lambda s: s.cache_write("y", at="i"))
    def last(x: tl.f32[n], y: tl.f32[m]):
        for i in range(n):
            y[m - 1] = x[i]

    y = np.zeros(2, "f")
    last(np.ones(3, "f"), y)
    assert y.tolist() == [0, 1]
    last(np.ones(0, "f"), y)


def test_buffers_of_one_name_are_told_apart_by_place_or_by_the_loop_that_uses_them() -> None:
    @tl.kernel
    def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for _ in range(2):
            t = tl.alloc(tl.f32[n])
            for i in range(n):
                t[i] = x[i]
                y[i] = t[i]
        for _ in range(2):
            t = tl.alloc(tl.f32[n])
            for j in range(n):
                t[j] = x[j] + 1
            for j in range(n):
                y[j] = t[j]

    s = tl.schedule(twice)
    for step in (lambda: s.inline("t"), lambda: s.shrink("t"), lambda: s.buffer("t")):
        with pytest.raises(tl.KernelError, match="there are 2 buffers `t`") as error:
            step()
        assert error.value.code == "several-buffers"
    s.store_at("t", at="i")
    s.inline(s.buffer("t", 1))
    assert str(s).splitlines()[1:] == ["s.store_at('t', at='i')", "s.inline(s.buffer('t', 1))"]
    assert str(s.func).count("tl.alloc(tl.f32[1])") == str(s.func).count("tl.alloc") == 1
    with pytest.raises(tl.KernelError, match="there is no buffer `t` at place 1"):
        s.buffer("t", 1)
    x = np.float32([1, 2, 3])
    again = tl.schedule(twice)
    exec("\n".join(str(s).splitlines()[1:]), {"s": again})
    assert np.array_equal(tl.compile(twice, schedule=again)(x), twice.interpret(x))


def test_loops_of_one_name_are_told_apart_by_place_or_by_what_is_around() -> None:
    @tl.kernel
    def twice(x: tl.f32[n, m], y: tl.f32[n, m]):
        for i in range(n):
            for j in range(m):
                y[i, j] = x[i, j]
        for t in range(n):
            for j in range(m):
                y[t, j] = y[t, j] + 1

    s = tl.schedule(twice)
    with pytest.raises(tl.KernelError) as error:
        s.split("j", 4)
    assert error.value.code == "several-loops"
    s.split(s.loop("t/j"), 4)
    s.split(s.loop("j", 0), 8)
    assert str(s).endswith("s.split('t/j', 4)\ns.split(s.loop('j', 0), 8)")


@tl.kernel
def looked_up(x: tl.f32[n], z: tl.f32[m], y: tl.f32[n]):
    at = tl.alloc(tl.i64[n])
    for j in range(n):
        at[j] = tl.i64(x[j])
    for i in range(n):
        y[i] = z[at[i]]


def test_iterations_with_a_check_stay_in_order() -> None:
    with pytest.raises(
        tl.KernelError, match=r"s.parallel\('i'\)` does not fit: an index in the loop over `i` is checked"
    ):
        tl.compile(looked_up, schedule=lambda s: s.parallel("i")).lowered
    assert "in tl.parallel(n)" in str(tl.compile(looked_up, schedule=lambda s: s.parallel("j")).lowered)
    assert "in tl.parallel(n)" in str(tl.compile(looked_up, schedule=lambda s: s.parallel("i"), unchecked=True).lowered)


@tl.kernel
def blur(x: tl.f32[n, m + 2], y: tl.out[tl.f32[n, m]]):
    rows = tl.alloc(tl.f32[n, m + 2])
    for i in range(n):
        for j in range(m + 2):
            rows[i, j] = x[i, j] * 2
    for i in range(n):
        for j in range(m):
            y[i, j] = rows[i, j] + rows[max(i - 1, 0), j + 2]


def test_compute_at_computes_what_an_iteration_reads() -> None:
    s = tl.schedule(blur)
    s.split(s.loop("i", 1), 8)
    s.compute_at("i", at="i.outer")
    assert body_of(s) == (
        "for i_outer in range(0, n, 8):\n"
        "    rows = tl.alloc(tl.f32[9, m + 2])\n"
        "    for rows_i in range(max(0, i_outer - 1), min(n, i_outer + 8)):\n"
        "        for rows_j in range(m + 2):\n"
        "            rows[rows_i - (i_outer - 1), rows_j] = x[rows_i, rows_j] * tl.f32(2.0)\n"
        "    for i_inner in range(i_outer, min(i_outer + 8, n)):\n"
        "        for j in range(m):\n"
        "            y[i_inner, j] = rows[i_inner - (i_outer - 1), j]"
        " + rows[max(i_inner, 1) - i_outer, j + 2]"
    )


def test_compute_at_makes_no_tile_of_more_elements_than_an_array_can_have() -> None:
    @tl.kernel
    def far_apart(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            t[i] = 2 * x[i]
        for j in range(n):
            y[j] = t[j] + t[min(j + (1 << 60), n - 1)]

    s = tl.schedule(far_apart)
    s.split("j", 8)
    with pytest.raises(tl.KernelError, match="each iteration of the loop over `j.outer` may read all of it"):
        s.compute_at("i", at="j.outer")


def test_compute_at_leaves_a_temporary_that_has_a_view() -> None:
    @tl.kernel
    def viewed(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        bits = tl.view(t, tl.u32[n])  # noqa: F841
        for i in range(n):
            t[i] = 2 * x[i]
        for j in range(n):
            y[j] = t[j]

    with pytest.raises(tl.KernelError, match="`bits` is a view of `t`"):
        tl.schedule(viewed).compute_at("i", at="j")


def test_compute_at_leaves_a_line_that_another_iteration_set() -> None:
    @tl.kernel
    def lines(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        line = tl.alloc(tl.f32[2, m])
        for i in range(n):
            for p in range(m):
                line[i % 2, p] = x[i, p]
            for q in range(m):
                y[i, q] = line[i % 2, q]
                if i > 0:
                    y[i, q] += line[(i + 1) % 2, q]

    with pytest.raises(tl.KernelError, match=r"line\[\(i \+ 1\) % 2, q\] .* is what the nest set another time"):
        tl.schedule(lines).compute_at("p", at="q")


@tl.kernel
def weights(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        total = tl.f32(0)
        for j in tl.reduce(m):
            total += tl.exp(x[i, j])
        for j in range(m):
            y[i, j] = tl.exp(x[i, j]) / total


def test_precompute_expand_and_distribute() -> None:
    s = tl.schedule(weights)
    s.precompute(s.loop("j", 0))
    s.expand("total", at="i")
    s.expand("exp", at="i")
    s.distribute("exp.j", out_of="i", behind=True)
    assert body_of(s) == (
        "total = tl.alloc(tl.f32[n])\n"
        "exp = tl.alloc(tl.f32[m, n])\n"
        "for i_before in range(n):\n"
        "    total[i_before] = tl.f32(0.0)\n"
        "    for exp_j in range(m):\n"
        "        exp[exp_j, i_before] = tl.exp(x[i_before, exp_j])\n"
        "for i in range(n):\n"
        "    for j in tl.reduce(m):\n"
        "        total[i] = total[i] + exp[j, i]\n"
        "    for j in range(m):\n"
        "        y[i, j] = exp[j, i] / total[i]"
    )
    x = np.random.default_rng(7).normal(size=(5, 9)).astype("f")
    # What was summed up along a row is summed up by rows: in another grouping.
    np.testing.assert_allclose(tl.compile(weights, schedule=s)(x), tl.compile(weights, schedule=None)(x), rtol=1e-6)


def test_what_is_written_in_between_is_not_computed_beforehand() -> None:
    @tl.kernel
    def changed(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = tl.exp(x[i])
        for i in range(n):
            x[i] = y[i] + tl.exp(x[i])

    s = tl.schedule(changed)
    with pytest.raises(tl.KernelError, match=r"`x\[i\] = .*` writes what is computed from"):
        s.precompute(s.loop("i", 0))


def test_narrow_vectors_do_not_go_before_wide_ones() -> None:
    """What the wide ones leave would go twice."""

    @tl.kernel
    def counted(x: tl.f32[n]):
        for i in range(n):
            x[i] += 1

    for lanes in ((4, 16), (8, 4, 16), (0,), (3,), ()):
        with pytest.raises(tl.KernelError, match="the widest first"):
            tl.schedule(counted).vectorize("i", *lanes)
    x = np.zeros(23, np.float32)
    tl.compile(counted, schedule=lambda s: s.vectorize("i", 16, 4))(x)
    assert x.tolist() == [1] * 23


def test_a_name_of_the_body_is_stored_lane_by_lane_beyond_the_last_whole_vector() -> None:
    @tl.kernel
    def turned(x: tl.f32[n], y: tl.out[tl.f32[m, n]]):
        for i in range(n):
            for j in range(m):
                t = x[i] + tl.f32(j)
                y[j, i] = t * t

    s = tl.schedule(turned)
    s.vectorize("j", 4, padded=True)
    x = np.arange(5, dtype=np.float32)
    assert np.array_equal(tl.compile(turned, schedule=s)(x, m=7), turned.interpret(x, m=7))


def test_views_have_names_for_steps_too() -> None:
    @tl.kernel(schedule=lambda s: s.pack("rows", at="i", axes=["j"]))
    def inner(x: tl.f32[6], y: tl.f32[2]):
        rows = tl.view(x, tl.f32[2, 3])
        for i in range(2):
            for j in range(3):
                y[i] += rows[i, j]

    y = np.zeros(2, "f")
    inner(np.ones(6, "f"), y)
    assert y.tolist() == [3, 3]


@tl.kernel
def doubled(x: tl.f32[m, n], y: tl.out[tl.f32[m, n]], total: tl.out[tl.f32[n]]):
    for i in range(n):
        total[i] = 0
        for j in range(m):
            y[j, i] = 2 * x[j, i]
        for j in tl.reduce(m):
            total[i] += y[j, i]


def test_loops_inside_store_under_the_mask_of_a_block_that_is_not_whole() -> None:
    s = tl.schedule(doubled)
    s.split("i", 64)
    s.vectorize("i.inner", 64, padded=True, masked=True)
    text = str(s.func)
    assert "if i_outer + 64 <= min(i_outer + 64, n):" in text
    assert "y[j, tl.masked(tl.ramp(i_outer, 1, 64), on)] = " in text
    assert "for i_" not in text.replace("for i_outer", "")
    kernel = tl.compile(doubled, schedule=s)
    for columns in (1, 50, 64, 130):
        x = np.arange(3 * columns, dtype=np.float32).reshape(3, columns)
        y, total = kernel(x)
        np.testing.assert_array_equal(y, 2 * x)
        np.testing.assert_array_equal(total, 2 * x.sum(0))


@tl.kernel
def shifted(x: tl.f32[n], by: tl.i64, y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = x[i + by]


@pytest.mark.parametrize("is_function", [True, False])
@every("kernel", (product, shifted))  # nothing changes the one before its steps, and checks do the other
def test_what_an_author_has_applied_is_not_applied_again(kernel: tl.Kernel, is_function: bool) -> None:
    split: list[tl.PrimFunc] = []

    class Watched(Split):
        def rewritten(self, facts: tl.analysis.Facts) -> tl.PrimFunc:
            split.append(facts.func)
            return super().rewritten(facts)

    schedule = tl.schedule(kernel)
    schedule.apply(Watched("i", 8))
    given = (lambda s: s.apply(Watched("i", 8))) if is_function else schedule
    made = tl.compile(kernel.ir, schedule=given)
    by_author = made.lowered
    assert len(split) == len({*split}) + is_function  # the schedule's own is of the same function
    assert tl.structural_equal(by_author, tl.compile(kernel.ir, schedule=[Split("i", 8)]).lowered)


def test_steps_of_a_schedule_that_is_gone_are_steps() -> None:
    schedule = tl.schedule(product)
    schedule.split("i", 8)
    made = tl.compile(product, schedule=schedule)
    steps, other = schedule.steps, pickle.loads(pickle.dumps(made))
    del schedule
    assert made.options.schedule == other.options.schedule == steps
    assert tl.structural_equal(made.lowered, tl.compile(product, schedule=iter(steps)).lowered)
