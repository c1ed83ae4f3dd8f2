"""Checked kernels that call kernels: poison goes into the callee with what it is given, and comes back."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.diag import TirliteError

pytestmark = pytest.mark.usefixtures("without_effort")

n, m = tl.dims("n m")


@tl.kernel
def half_of(x: tl.f32[n], y: tl.f32[n], count: tl.i64):
    for i in range(count):
        y[i] = x[i] / 2


@tl.kernel
def shift(x: tl.f32[n], y: tl.f32[n], by: tl.f32):
    t = tl.alloc(tl.f32[n])
    tl.call(half_of, x, t, n)
    for i in range(n):
        y[i] = t[i] + by


@tl.kernel
def right(x: tl.f32[m], y: tl.out[tl.f32[m]]):
    t = tl.alloc(tl.f32[m])
    u = tl.alloc(tl.f32[m])
    tl.call(shift, x, t, tl.f32(1))
    tl.call(shift, t, u, x[0])
    tl.call(half_of, u, y, m)


@tl.kernel
def not_all(x: tl.f32[m], y: tl.f32[m]):
    t = tl.alloc(tl.f32[m])
    tl.call(half_of, x, t, m - 1)
    for i in range(m):
        y[i] = t[i]


@tl.kernel
def fresh_argument(x: tl.f32[m], y: tl.f32[m]):
    t = tl.alloc(tl.f32[m])
    tl.call(half_of, t, y, m)


@tl.kernel
def by_way_of_others(x: tl.f32[m], y: tl.f32[m]):
    t = tl.alloc(tl.f32[m])
    u = tl.alloc(tl.f32[m])
    tl.call(half_of, t, u, m)
    for i in range(m):
        y[i] = u[i]


@tl.kernel
def poisoned_scalar(x: tl.f32[m], y: tl.f32[m]):
    t = tl.alloc(tl.f32[m, 3])
    tl.call(shift, x, y, t[2, 1])


@tl.kernel
def poisoned_bound(x: tl.f32[m], y: tl.f32[m]):
    k = tl.alloc(tl.i64[4])
    tl.call(half_of, x, y, k[3])


@tl.kernel
def first_above_one(x: tl.f32[n], storage: tl.f32[n], y: tl.f32[n]):
    t = tl.view(storage, tl.f32[n], fresh=True)
    if x[0] > 1:
        t[0] = x[0]
    y[0] = t[0]


@tl.kernel
def left_by_another_call(x: tl.f32[m], y: tl.f32[m]):
    storage = tl.alloc(tl.f32[m])
    larger = tl.alloc(tl.f32[m])
    for i in range(m):
        larger[i] = x[i] + 1
    tl.call(first_above_one, larger, storage, y)
    tl.call(first_above_one, x, storage, y)


@tl.kernel
def too_far(x: tl.f32[m], y: tl.f32[m]):
    t = tl.alloc(tl.f32[m])
    tl.call(shift, x, t, tl.f32(1))
    tl.call(half_of, t, y, m + 1)


WRONG = {
    not_all: "the value stored into `y` depends on `t[2]`",
    fresh_argument: "the value stored into `y` depends on `x[0]`",
    by_way_of_others: "the value stored into `y` depends on `u[0]`",
    poisoned_scalar: "the value stored into `y` depends on `t[2, 1]`",
    poisoned_bound: "a bound of the loop over `i` depends on `k[3]`",
    left_by_another_call: "the value stored into `y` depends on `t[0]`",
    too_far: "index 3 is out of bounds for axis 0 of `x` with extent 3",
}


@pytest.mark.parametrize("strategy", ["none", "tvm", "share", "pack"])
def test_a_right_kernel_runs_as_ever(strategy: str) -> None:
    x = np.array([2, 4, 8], np.float32)
    assert tl.compile(right, strategy=strategy, debug=True)(x).tolist() == right(x).tolist()


@pytest.mark.parametrize("kernel", WRONG, ids=lambda kernel: kernel.name)
def test_checked_code_says_what_the_interpreter_says(kernel: tl.Kernel) -> None:
    texts = []
    for strategy in ("none", "share", "pack"):
        checked = tl.compile(kernel, strategy=strategy, debug=True)
        for run in (kernel.interpret, checked):
            with pytest.raises(TirliteError) as caught:
                run(np.ones(3, np.float32), np.zeros(3, np.float32))
            texts.append(str(caught.value))
    assert WRONG[kernel] in texts[0]
    assert set(texts) == {texts[0]}


@tl.kernel
def stored(y: tl.f32[n], at: tl.i64, value: tl.f32):
    y[at] = value


@tl.kernel
def stored_by_another(y: tl.f32[n], at: tl.i64, value: tl.f32):
    behind = tl.view(y, tl.f32[n - 1], byte_offset=4)
    if at > 0:
        tl.call(stored, behind, at - 1, value)


@tl.kernel
def second_byte(y: tl.f32[n], at: tl.i64):
    parts = tl.view(y, tl.u8[4 * n])
    parts[4 * at + 1] = 0


@tl.kernel
def scattered(x: tl.f32[m], at: tl.i64[m], y: tl.f32[n]):
    for i in tl.parallel(m):
        tl.call(stored_by_another, y, at[i], x[i])


@tl.kernel
def both(x: tl.f32[m], at: tl.i64[m], y: tl.f32[n]):
    for i in tl.parallel(m):
        y[i] = x[i]
        tl.call(second_byte, y, at[i])


@tl.kernel
def nested(x: tl.f32[m], at: tl.i64[m], y: tl.f32[n]):
    for j in tl.parallel(2):
        for i in tl.parallel(m):
            if i % 2 == j:
                tl.call(stored, y, at[i], x[i])


@pytest.mark.parametrize("kernel", [scattered, both, nested])
@pytest.mark.parametrize("last", [1, 2])
def test_iterations_that_conflict_in_functions_that_they_call(kernel: tl.Kernel, last: int) -> None:
    """As the interpreter sees them: by its own parameters, views of them, and those of functions that it calls."""
    found = []
    for run in (kernel.interpret, tl.compile(kernel, debug=True)):
        y = np.zeros(4, np.float32)
        try:
            run(np.ones(3, np.float32), np.int64([0, 1, last]), y)
            found.append(("", y.tolist()))
        except TirliteError as error:
            found.append((str(error).splitlines()[0], y.tolist()))
    assert found[0] == found[1]
    assert ("in any order" in found[0][0]) == (last == 1)
