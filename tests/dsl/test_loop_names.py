"""The name that a loop assigns is a local of the function, as in Python, where something else uses it too."""

from __future__ import annotations

import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def positions(x: tl.f32[n], y: tl.out[tl.i64[4]]):
    i = -1
    for i in range(n):
        if x[i] > 0:
            break
    y[0] = i
    y[1] = -1
    for i in range(n):
        if x[i] < 0:
            continue
        y[1] = i
    for i in range(9, 0, -2):  # noqa: B007
        pass
    y[2] = i
    for i in range(0):  # noqa: B007
        y[0] = 0
    y[3] = i


def in_python(x: np.ndarray) -> list[int]:
    found = [-1, -1, 1, 1]
    for i in range(len(x)):
        found[0] = i
        if x[i] > 0:
            break
    for i in range(len(x)):
        if x[i] >= 0:
            found[1] = i
    return found


def test_it_has_its_last_value_behind_the_loop() -> None:
    for values in ([-1, -1, 3, -1], [-1], [2, 2], []):
        x = np.array(values, np.float32)
        assert positions(x).tolist() == positions.interpret(x).tolist() == in_python(x)


@tl.kernel
def scattered(x: tl.f32[n], k: tl.i64[n], y: tl.out[tl.f32[n]]):
    for v in tl.parallel(n):
        y[v] = 0
    for i in range(n):
        v = k[i]
        y[v] += x[i]


def test_a_loop_and_a_scalar_may_have_one_name() -> None:
    assert scattered(np.ones(3, np.float32), np.array([0, 0, 2])).tolist() == [2, 0, 1]
    assert "for v_1 in tl.parallel(n):\n        v = v_1\n" in str(scattered.ir)
