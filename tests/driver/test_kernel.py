"""Kernels: how they are made, called and looked at."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import sys
import threading
import traceback
from types import SimpleNamespace

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import f32
from tirlite.ir.builder import Builder
from tirlite.rewrite.fit_callees import allowing_zero
from tirlite.rewrite.options import Options
from tirlite.rewrite.pipelines import pipeline
from tirlite.schedules.auto import auto

n, m = tl.dims("n m")


@tl.kernel
def smooth(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    """Each element beside its neighbours."""
    rows = tl.alloc(tl.f32[n, m])
    halves = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            rows[i, j] = x[i, j] + x[i, max(j - 1, 0)]
    for i in range(n):
        for j in range(m):
            halves[i, j] = rows[i, j] / 2
    for i in range(n):
        for j in range(m):
            y[i, j] = halves[i, j]


X = np.arange(12, dtype=np.float32).reshape(3, 4)
SMOOTH = (X + X[:, [0, 0, 1, 2]]) / 2


def test_a_kernel_shows_each_stage_of_its_way() -> None:
    np.testing.assert_array_equal(smooth(X), SMOOTH)
    np.testing.assert_array_equal(smooth.interpret(X), SMOOTH)
    assert repr(smooth) == "<Kernel smooth(x: f32[n, m], y: out[f32[n, m]])>"
    assert smooth.__doc__ == "Each element beside its neighbours."
    assert smooth.name == smooth.__name__ == "smooth"
    assert "rows = tl.alloc" in str(smooth.ir)
    assert smooth.plan.lower_bound is not None
    as_written = tl.compile(smooth, schedule=None)
    assert [each.name for each in tl.allocations(as_written.lowered)] == ["rows"]  # `halves` in its place
    assert smooth.llvm.startswith('source_filename = "tirlite_smooth"')
    assert "i64 @tirlite_smooth(" in smooth.optimised_llvm
    assert "tirlite_smooth:" in smooth.asm


@pytest.mark.parametrize("strategy", ["none", "share", "exact", "per_shape"])
def test_a_kernel_without_temporaries_has_a_plan_of_no_bytes(strategy: str) -> None:
    steps: list[tl.passes.Step] = []

    @tl.kernel(strategy=strategy, observers=[steps.append])
    def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i] * 2

    assert (twice.plan.strategy, twice.plan.total, twice.plan.gap) == (strategy, 0, 0.0)
    assert twice.plan is twice.plan
    assert twice.plan_at(n=3).total == 0
    assert [step.changed for step in steps if step.name == "storage-rewrite"] == [False]


def test_a_kernel_is_pickled_by_name_as_functions_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (smooth.__module__, smooth.__qualname__) == (__name__, "smooth")
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(smooth=smooth))
    assert pickle.loads(pickle.dumps(smooth)) is smooth
    assert copy.copy(smooth) is copy.deepcopy(smooth) is smooth


def test_timing_names_each_stage_in_order() -> None:
    kernel = tl.compile(smooth)
    assert "link" not in kernel.timing
    kernel(X)
    stages = list(kernel.timing)
    assert stages[:2] == ["front end", "normalize"]
    assert stages[-5:] == ["llvm load", "llvm parse", "llvm optimise", "llvm emit", "link"]
    assert all(seconds >= 0 for seconds in kernel.timing.values())
    assert kernel.timing.total == pytest.approx(sum(kernel.timing.values()))
    assert re.search(r"^llvm emit +\d+\.\d{3} ms$", str(kernel.timing), re.MULTILINE)


def test_options_choose_the_strategy_and_watch_the_passes() -> None:
    steps: list[str] = []
    for strategy in ("none", "tvm", "share", "auto"):
        kernel = tl.compile(smooth, strategy=strategy, observers=[lambda step: steps.append(step.name)])
        np.testing.assert_array_equal(kernel(X), SMOOTH)
    assert steps == [each.name for each in pipeline(Options(), auto=auto(tl.Target.host()))] * 4

    @tl.kernel(strategy="none")
    def copy(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i]

    assert copy.options.strategy == "none"
    with pytest.raises(tl.PlanError, match=r"there is no strategy `shar`(.|\n)*did you mean `share`"):
        tl.compile(smooth, strategy="shar")


def test_compile_takes_functions_kernels_and_primfuncs() -> None:
    def double(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = 2 * x[i]

    x = np.ones(3, np.float32)
    kernel = tl.compile(double)
    for again in (kernel, tl.compile(kernel), tl.compile(kernel.ir)):
        assert again(x).tolist() == [2, 2, 2]
    for nothing in (3, "text", len):
        with pytest.raises(tl.CallTypeError, match="cannot be compiled to a kernel"):
            tl.compile(nothing)


def test_a_kernel_whose_name_is_a_c_function_is_called_itself() -> None:
    b = Builder("expf")
    x, y = b.param("x", f32[1]), b.param("y", f32[1], out=True)
    b.store(y, 0, x[0] + 1)
    assert tl.compile(b.build())(np.ones(1, np.float32)).tolist() == [2]


def test_an_ill_formed_function_is_refused_when_it_is_compiled() -> None:
    b = Builder("wrong")
    y = b.param("y", f32[2], out=True)
    b.store(y, 0, 1)
    func = b.build()
    stranger = tl.ir.Var("stranger")
    with pytest.raises(tl.KernelError, match="stranger"):
        tl.compile(func.replaced(body=tl.ir.seq(*func.body.stmts, tl.ir.Evaluate(stranger))))


def test_errors_of_calls_show_no_frames_from_inside() -> None:
    with pytest.raises(tl.CallTypeError) as caught:
        smooth([1])
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_errors_of_calls_show_no_frames_from_inside"]


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_empty_arrays_run_a_version_without_the_fact_that_dims_are_positive(shape: tuple[int, int]) -> None:
    kernel = tl.compile(smooth)
    assert kernel(np.zeros(shape, np.float32)).shape == shape
    np.testing.assert_array_equal(kernel(X), SMOOTH)
    assert kernel.interpret(np.zeros(shape, np.float32)).shape == shape


def test_the_version_for_empty_arrays_reads_sizes_from_its_own_parameters() -> None:
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def filled(size: tl.i64[1], x: tl.f32[n], y: tl.f32[1]):
    t = tl.alloc(tl.f32[size[0]])
    for i in range(size[0]):
        t[i] = 5
    y[0] = t[size[0] - 1]
""")
    y = np.zeros(1, np.float32)
    tl.compile(func)(np.array([3]), np.zeros(0, np.float32), y)
    assert y[0] == 5


def test_the_version_for_empty_arrays_keeps_all_other_facts() -> None:
    k = tl.dim("k", min=1, max=64, multiple_of=8)
    least = tl.dim("least", min=2)
    b = Builder("facts")
    x = b.param("x", f32[k, least])
    y = b.param("y", f32[k, least + 1], out=True)
    b.store(y, (0, 0), x[0, 0])
    weaker = allowing_zero(b.build())
    dims = [(var.name, var.dim.min, var.dim.max, var.dim.multiple_of) for var in weaker.dims]
    assert dims == [("k", 0, 64, 8), ("least", 2, None, 1)]
    assert weaker.outputs == (weaker.params[1],)


def test_the_first_call_compiles_once_in_however_many_threads() -> None:
    kernel = tl.compile(smooth)
    start = threading.Barrier(6)
    results: list[np.ndarray] = []

    def call() -> None:
        start.wait()
        results.append(kernel(X))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(np.array_equal(result, SMOOTH) for result in results)
    assert len(kernel._version.stages) == len(dict(kernel._version.stages))


def test_other_python_threads_run_while_a_kernel_does() -> None:
    b = Builder("wait")
    go, seen = b.param("go", tl.i64[1]), b.param("seen", tl.i64[1])
    rounds = b.alloc("rounds", tl.i64[1], volatile=True)
    b.store(rounds, 0, 0)
    with b.while_(rounds[0] < 300_000_000):
        b.store(rounds, 0, rounds[0] + 1)
    b.store(seen, 0, go[0])
    kernel = tl.compile(b.build())
    kernel.llvm
    kernel._version.executable
    go, seen = np.zeros(1, np.int64), np.zeros(1, np.int64)
    running = threading.Thread(target=kernel, args=(go, seen))
    running.start()
    go[0] = 7
    was_alive = running.is_alive()
    running.join()
    assert was_alive
    assert seen[0] == 7


def test_its_signature_is_that_of_its_parameters() -> None:
    assert str(inspect.signature(smooth)) == "(x: f32[n, m], y: out[f32[n, m]] = ...) -> f32[n, m]"
    assert inspect.signature(smooth).bind(X).arguments == {"x": X}
    assert next(iter(inspect.signature(tl.Kernel).parameters)) == "func"


def test_outputs_before_inputs_are_given_by_name() -> None:
    b = Builder("f")
    y, x, k, z = b.param("y", f32[n], out=True), b.param("x", f32[n]), b.param("k", f32), b.param("z", f32[1], out=True)
    b.store(y, 0, x[0] + k)
    b.store(z, 0, k)
    kernel = tl.compile(b.build())
    shown = str(inspect.signature(kernel))
    assert shown == "(x: f32[n], k: f32, *, y: out[f32[n]] = ..., z: out[f32[1]] = ...) -> tuple[f32[n], f32[1]]"
    given = inspect.signature(kernel).bind(np.ones(1, np.float32), 2, y=np.zeros(1, np.float32))
    assert kernel(*given.args, **given.kwargs) == 2
    assert given.kwargs["y"] == 3
