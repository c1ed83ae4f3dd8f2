"""Parallel loops in native code: which are handed to workers, what these share, and which fault wins."""

from __future__ import annotations

import ctypes
import re

import llvmlite.binding
import numpy as np
import pytest

import tirlite as tl
from tirlite.codegen.functions.outline import chunk_count
from tirlite.codegen.llvm.text import FunctionText, ModuleText
from tirlite.target.processor import processor_called

n, m = tl.dims("n m")
WORKERS = (1, 2, 3, 7)


def with_workers(kernel: tl.Kernel, workers: int, strategy: str = "auto") -> tl.Kernel:
    return tl.compile(kernel, strategy=strategy, target=tl.Target.host(workers=workers))


@tl.kernel
def softmax(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    weights = tl.alloc(tl.f32[m])
    for j in range(m):
        weights[j] = 1 + j
    for i in tl.parallel(n):
        e = tl.alloc(tl.f32[m])
        total = tl.alloc(tl.f32[1])
        total[0] = 0
        for j in range(m):
            e[j] = tl.exp(x[i, j]) * weights[j]
            total[0] += e[j]
        for j in range(m):
            y[i, j] = e[j] / total[0]


def test_results_do_not_depend_on_the_number_of_workers() -> None:
    x = np.random.default_rng(1).standard_normal((301, 257)).astype(np.float32)
    results = [with_workers(softmax, workers, strategy)(x) for workers in WORKERS for strategy in ("none", "share")]
    for result in results:
        np.testing.assert_array_equal(result, results[0])
    small = x[:3, :5].copy()
    np.testing.assert_array_equal(with_workers(softmax, 2)(small), softmax.interpret(small))


def test_workers_know_what_the_sizes_of_arrays_are_made_of() -> None:
    """Rows of so many elements lie apart, as LLVM sees: those of a size that it is only given may not."""

    @tl.kernel
    def twice_each_way(x: tl.f32[n, m], y: tl.f32[2 * n, 2 * m + 1]):
        for i in tl.parallel(n):
            for u in range(2):
                for j in range(m):
                    y[2 * i + u, 2 * j] = x[i, j]

    of_workers, _ = with_workers(twice_each_way, 2).llvm.split("_task1(ptr %closure", 1)
    width = re.search(r"(%v\d+) = mul i64 2, %d1\n", of_workers)
    assert width is not None
    assert f"add i64 {width[1]}, 1\n" in of_workers


@pytest.mark.parametrize(("first", "stop", "step"), [(0, 300_000, 1), (299_999, -1, -1), (5, 300_000, 7), (9, 3, 1)])
def test_any_step_goes_to_workers(first: int, stop: int, step: int) -> None:
    @tl.kernel(target=tl.Target.host(workers=3))
    def count(y: tl.i64[300_000]):
        for i in tl.parallel(first, stop, step):
            y[i] = y[i] + i + 1

    y = np.zeros(300_000, np.int64)
    count(y)
    wanted = np.zeros(300_000, np.int64)
    for i in range(first, stop, step):
        wanted[i] = i + 1
    np.testing.assert_array_equal(y, wanted)


@tl.kernel(target=tl.Target.host(workers=4))
def checked(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in tl.parallel(n):
        t = tl.alloc(tl.i64[x[i] * 100])
        t[0] = x[i]
        assert x[i] < 5, f"x is {x[i]} at {i}"
        for j in range(20):
            y[i] = t[0] + j


def test_the_fault_of_the_lowest_iteration_wins() -> None:
    size = 50_000
    for wrong in ([7], [size - 1], [3, size // 2, size - 1], [size // 2 + 1, size // 2 + 2], range(0, size, 17)):
        x = np.ones(size, np.int64)
        x[list(wrong)] = 9
        with pytest.raises(tl.KernelAssertionError, match=f"x is 9 at {min(wrong)} "):
            checked(x)
    np.testing.assert_array_equal(checked(np.ones(size, np.int64)), 20)


def tasks(kernel: tl.Kernel) -> int:
    return kernel.llvm.count("define internal i64 @tirlite_" + kernel.name + "_task")


@tl.kernel
def nested(y: tl.f32[n, m]):
    for _ in tl.parallel(1):
        for i in tl.parallel(n):
            for j in tl.parallel(m):
                y[i, j] += 1


def test_the_outermost_loop_that_can_have_several_iterations_is_handed_out() -> None:
    assert [tasks(with_workers(nested, workers)) for workers in (1, 2)] == [0, 1]
    assert "tirlite.fork_join" not in with_workers(nested, 1).llvm
    y = np.zeros((700, 900), np.float32)
    with_workers(nested, 2)(y)
    assert (y == 1).all()


def test_of_two_branches_the_larger_one_tells_how_much_there_is_to_do() -> None:
    source = """
    n, m = tl.dims("n m")

    @tl.kernel
    def scaled(x: tl.f32[n, 99], y: tl.out[tl.f32[n, 99]], large: tl.i64):
        for i in tl.parallel(n):
            if i < large:
                for j in range({}):
                    y[i, j] = x[i, j] * 2
            else:
                for j in range({}):
                    y[i, j] = x[i, j] * 3
    """

    def work(most: str, least: str) -> str:
        target = tl.Target("x86-64-v4", workers=2)
        llvm = tl.compile(tl.parse(source.format(most, least)), target=target, schedule=None).llvm
        return llvm[llvm.index("lshr") : llvm.index("fcmp oge")]

    for least in ("0", "9", "10"):
        assert re.search(r"fmul double %v\d+, 1.200000e\+01", work("10", least))
    assert "maxnum" in work("min(large, 99)", "9")
    assert "maxnum" not in work("min(large, 99)", "0")


def test_a_block_that_is_longer_than_the_row_counts_as_one() -> None:
    @tl.kernel
    def doubled(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        for i in tl.parallel(n):
            for o in range(0, m, 1024):
                for j in range(o, min(o + 1024, m)):
                    y[i, j] = x[i, j] * 2

    llvm = tl.compile(doubled, target=tl.Target("x86-64-v4", workers=2), schedule=None).llvm
    work = llvm[: llvm.index("fcmp oge")]
    (reach,) = re.findall(r"(%v\d+) = add i64 %\w+, 1023\n", work)
    assert f"sdiv i64 {reach}, 1024" in work
    assert re.search(r"srem i64 %v\d+, 1024", work)  # the block in the middle begins where one does


def test_what_becomes_vectors_counts_by_them() -> None:
    source = """
    n = tl.dim("n")

    @tl.kernel
    def changed(x: tl.{0}[n], t: tl.{0}[256], k: tl.i64[n], y: tl.out[tl.{0}[n]]):
        for i in tl.parallel(n):
            y[i] = {1}
    """

    def work(dtype: str, value: str) -> float:
        target = tl.Target("x86-64-v3", workers=2)
        llvm = tl.compile(tl.parse(source.format(dtype, value)), target=target, schedule=None).llvm
        found = re.search(r"fmul double %v\d+, (\S+)", llvm[llvm.index("lshr") : llvm.index("fcmp oge")])
        assert found is not None
        return float(found[1])

    # A load, a store, a sum, and what counts the iterations.
    assert work("f32", "x[i] + 1") == (3 + 6 + 1 + 1) * 4 / 32
    assert work("u8", "x[i] + 1") == (3 + 6 + 1 + 1) / 32
    assert work("u8", "t[x[i]]") == 3 + 3 + 6 + 1
    assert work("f32", "x[i] / t[3]") == (3 + 3 + 6 + 16 + 1) * 4 / 32


def test_the_first_iteration_of_a_worker_is_no_number_below_0() -> None:
    """So LLVM parts vectors of neighbours, which it would have to gather if multiples of it might wrap around."""
    source = """
    n = tl.dim("n")

    @tl.kernel
    def apart(x: tl.f32[n, 3], y: tl.out[tl.f32[n]], first: tl.i64):
        for i in tl.parallel({}, n):
            y[i] = x[i, 0] - x[i, 2]
    """
    target = tl.Target("x86-64-v3", workers=2)
    texts = [tl.compile(tl.parse(source.format(first)), target=target).llvm for first in ("0", "max(first, 0)")]
    assert ["%p1, i64 range(i64 0, -9223372036854775808) %first" in text for text in texts] == [True, False]


def test_longer_work_is_cut_into_more_chunks() -> None:
    module = ModuleText(processor_called("host"))
    out = FunctionText(module)
    count, work = out.parameter(tl.ir.i64, "%count"), out.parameter(tl.ir.f64, "%work")
    out.effect(f"ret i64 {chunk_count(out, count, work, 2).text}")
    out.define("chunks", linkage="")
    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    declared = "\n".join(module.declarations.values())
    engine = llvmlite.binding.create_mcjit_compiler(
        llvmlite.binding.parse_assembly(f"{declared}\n{module.functions[0]}"),
        llvmlite.binding.Target.from_default_triple().create_target_machine(),
    )
    chunks = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_double)(engine.get_function_address("chunks"))

    assert [chunks(1000, work) for work in (9e4, 1e5, 1.9e6, 2e6, 1e8, 1e9, 1e300)] == [1, 2, 2, 8, 25, 64, 64]
    assert chunks(50, 1e9) == 50


def test_a_kernel_may_be_called_as_the_pool_is() -> None:
    @tl.kernel(target=tl.Target.host(workers=2))
    def fork_join(y: tl.f32[n]):
        for i in tl.parallel(n):
            y[i] = i

    y = np.zeros(5, np.float32)
    fork_join(y)
    assert y.tolist() == [0, 1, 2, 3, 4]


@tl.kernel
def repeated(x: tl.f32[n, m], y: tl.f32[n, m], times: tl.i64):
    for t in range(times):
        if t % 2 == 0:
            for i in tl.parallel(n):
                for j in range(m):
                    y[i, j] = x[i, j] + t
        else:
            for i in tl.parallel(n):
                for j in range(m):
                    x[i, j] = y[i, j] * 2


def test_a_loop_may_be_handed_out_again_and_again() -> None:
    x = np.random.default_rng(2).standard_normal((400, 500)).astype(np.float32)
    found = []
    for workers in (1, 2):
        a, b = x.copy(), np.zeros_like(x)
        with_workers(repeated, workers)(a, b, 9)
        found.append((a, b))
    np.testing.assert_array_equal(found[0], found[1])


@tl.kernel
def types(a: tl.bool_, h: tl.f16, s: tl.i8, x: tl.f64[n], y: tl.out[tl.f64[n]]):
    big = s * 2
    for i in tl.parallel(n):
        y[i] = (x[i] + h if a else x[i] - s) + big


def test_values_of_all_types_reach_the_workers() -> None:
    x = np.arange(200_000, dtype=np.float64)
    for flag in (True, False):
        results = [with_workers(types, workers)(flag, 1.5, -3, x) for workers in (1, 2)]
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], (x + 1.5 if flag else x + 3) - 6)


@pytest.mark.usefixtures("without_effort")
def test_parallel_loops_may_stand_in_functions_that_are_cut() -> None:
    from tirlite.ir import f32
    from tirlite.ir.builder import Builder

    b = Builder("long")
    x, y = b.param("x", f32[50_000]), b.param("y", f32[50_000])
    for number in range(120):
        with b.parallel("i", 0, 50_000) as i:
            t = b.alloc("t", f32[300])
            for k in range(3):
                b.store(t, k, x[i] + number)
            b.store(y, i, y[i] + t[0] + t[1] + t[2])
    given = np.random.default_rng(3).standard_normal(50_000).astype(np.float32)
    results = []
    for workers in (1, 2):
        out = np.zeros(50_000, np.float32)
        with_workers(tl.compile(b.build()), workers)(given, out)
        results.append(out)
    np.testing.assert_array_equal(results[0], results[1])


def test_handing_a_loop_out_costs_no_vectors() -> None:
    @tl.kernel
    def tiles(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in tl.parallel(n // 8):
            t = tl.alloc(tl.f32[8])
            for j in range(8):
                t[j] = x[i * 8 + j] * 3
            for j in range(8):
                y[i * 8 + j] = t[j]

    for workers in (1, 2):
        assert "fmul <8 x float>" in with_workers(tiles, workers).optimised_llvm
