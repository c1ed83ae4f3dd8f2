"""The message of an access out of bounds gives the values of the loops around, by the names that their author gave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tirlite as tl
from tirlite.diag import KernelAssertionError, KernelIndexError
from tirlite.interp import interpret
from tirlite.schedules import Schedule

n, m = tl.dims("n m")
SIX = 6


@tl.kernel
def nested(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for j in range(m):
        for q in range(n):
            if x[q] > 3 and j > 3:
                y[k[j]] = 2


@tl.kernel
def by_two(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for j in range(m - 1, -1, -2):
        y[k[j]] = x[j]


@tl.kernel
def by_two_up(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for j in range(m):
        y[k[j]] = x[j]


@tl.kernel
def left(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for i in range(n):
        if x[i] > 3:
            y[k[i + 1]] = 1
            break


@tl.kernel
def computed_step(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for j in range(m - 1, -1, -m // 4):
        y[k[j]] = x[j]


@tl.kernel
def viewed(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for i in range(2):
        for j in range(m):
            if x[j] >= i:
                window = tl.view(y, tl.f32[1], byte_offset=4 * k[j])
                window[0] = 3


@tl.kernel
def workers(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for i in tl.parallel(n):
        for j in range(2):
            y[i] = x[k[i] + j]


@tl.kernel
def threads(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for b in tl.thread("blockIdx.x", 1):
        for t in tl.thread("threadIdx.x", n):
            own = tl.alloc(tl.f32[2], scope="local")
            for r in range(m):
                own[k[r + b]] = x[t]
                tl.barrier("shared")
            y[t] = own[0]


@tl.kernel
def virtual(x: tl.f32[n], k: tl.i64[m], y: tl.f32[2, n]):
    for b in tl.thread("blockIdx.x", 1):
        for v in tl.thread("vthread", 2):
            for t in tl.thread("threadIdx.x", n):
                own = tl.alloc(tl.f32[2], scope="local")
                own[k[t + b]] = x[t]
                y[v, t] = own[k[t]]


@tl.kernel
def callee(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for i in range(3):
        y[i] = 1
        tl.call(by_two, x, k, y)


def told(run: Callable[..., object], y: np.ndarray) -> str:
    with pytest.raises(KernelIndexError) as raised:
        run(np.arange(SIX, dtype=np.float32), np.int64([0, 1, 1, 0, 0, 9]), y)
    return str(raised.value).splitlines()[0].partition("of ")[2]


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (nested, "bounds for axis 0 of `y` with extent 6, at j = 5, q = 4"),
        (by_two, "bounds for axis 0 of `y` with extent 6, at j = 5"),
        (left, "bounds for axis 0 of `y` with extent 6, at i = 4"),
        (computed_step, "bounds for axis 0 of `y` with extent 6, at j = 5"),
        (viewed, "`y`, which has 24, at i = 0, j = 5"),
        (workers, "bounds for axis 0 of `x` with extent 6, at i = 5, j = 0"),
        (threads, "bounds for axis 0 of `own` with extent 2, at b = 0, t = 0, r = 5"),
        (virtual, "bounds for axis 0 of `own` with extent 2, at b = 0, v = 0, t = 5"),
        (callee, "bounds for axis 0 of `y` with extent 6, at j = 5"),
    ],
    ids=lambda each: each.name if isinstance(each, tl.Kernel) else "",
)
def test_the_loops_around_are_told_alike_by_all_that_runs_a_kernel(kernel: tl.Kernel, says: str) -> None:
    arrays = [np.zeros((2, SIX) if kernel is virtual else SIX, np.float32) for _ in range(3)]
    runs = (kernel.interpret, tl.compile(kernel), tl.compile(kernel, debug=True))
    assert [told(run, y) for run, y in zip(runs, arrays, strict=True)] == [says] * 3
    if kernel not in (workers, virtual):  # others may have run
        assert arrays[0].tolist() == arrays[1].tolist() == arrays[2].tolist()


def fused(s: Schedule) -> None:
    s.split("q", 4)
    s.split("j", 2)
    s.fuse("j.inner", "q.outer")


def test_loops_of_a_schedule_are_told_as_their_author_knows_them() -> None:
    kernel = tl.compile(nested, schedule=fused)
    func = kernel.lowered
    assert "q_inner in range" in str(func)

    def lowered(*arrays: np.ndarray) -> None:
        interpret(func, {**dict(zip(func.params, arrays, strict=True)), **dict.fromkeys(func.dims, SIX)})

    says = "bounds for axis 0 of `y` with extent 6, at j = 5, q = 4"
    assert [told(run, np.zeros(SIX, np.float32)) for run in (kernel, lowered)] == [says] * 2


@tl.kernel
def clamped(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for i in range(n):
        assert k[max(i - 1, 0)] < i + 2
        y[i] = x[i] + x[max(i - 1, 0)]


@pytest.mark.parametrize(
    "steps",
    [
        lambda s: s.peel("i"),
        lambda s: s.split("i", 4),
        lambda s: s.split("i", 4, tail="peeled"),
        lambda s: s.specialize("i", {"n": 100}),
        lambda s: s.peel("i", last=2),
    ],
)
@pytest.mark.parametrize("at", [0, 3, 5])
def test_an_assert_tells_a_loop_of_a_schedule_by_its_name(steps: Callable[[Schedule], None], at: int) -> None:
    kernel = tl.compile(clamped, schedule=steps)
    k = np.zeros(SIX, np.int64)
    k[at - 1 if at else 0] = 9
    first = 0 if at < 2 else at
    says = f"(k[max(i - 1, 0)] = 9, i + 2 = {first + 2})"
    for run in (kernel, kernel.interpret):
        with pytest.raises(KernelAssertionError) as raised:
            run(np.ones(SIX, np.float32), k, np.zeros(SIX, np.float32))
        assert says in str(raised.value)


def test_the_ends_of_a_loop_are_told_by_its_name() -> None:
    kernel = tl.compile(by_two_up, schedule=lambda s: s.peel("j", first=2, last=1))
    assert "j_last" in str(kernel.lowered)
    assert told(kernel, np.zeros(SIX, np.float32)).endswith("at j = 5")


@tl.kernel
def stepping_threads(x: tl.f32[n], k: tl.i64[m], y: tl.f32[n]):
    for b in tl.thread("blockIdx.x", 1):
        for t in tl.thread("threadIdx.x", n):
            own = tl.alloc(tl.f32[2], scope="local")
            for r in range(m - 1, -1, -m // 6):
                own[k[m - 1 - r + b]] = x[t]
                tl.barrier("shared")
            y[t] = own[0]


def test_what_a_loop_counts_instead_of_its_variable_is_not_told() -> None:
    assert told(stepping_threads.interpret, np.zeros(SIX, np.float32)).endswith("at b = 0, t = 0, r = 0")
    assert told(stepping_threads, np.zeros(SIX, np.float32)).endswith("at b = 0, t = 0")
