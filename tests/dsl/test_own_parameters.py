"""A parameter that is a number may be assigned: it is a local that begins with what the caller gave."""

from __future__ import annotations

import numpy as np

import tirlite as tl

n = tl.dim("n")


@tl.inline
def shuffled(state, by=13):
    state ^= state << by
    state ^= state >> 7
    return state


@tl.inline
def scaled(v, by=0.5):
    by *= v
    return by


@tl.kernel
def digits(x: tl.u64[n], y: tl.out[tl.i32[n]], z: tl.f32[n], k: tl.i32 = 9):
    for i in range(n):
        y[i] = k % 2
        k //= 2
        x[i] = shuffled(x[i])
        z[i] = scaled(z[i])


def test_an_assigned_parameter_is_a_local() -> None:
    for run in (digits, digits.interpret):
        x, z = np.array([2, 3, 1 << 60], np.uint64), np.ones(3, np.float32)
        assert run(x, z).tolist() == [1, 0, 0]
        assert run(x.copy(), z, 7).tolist() == [1, 1, 1]
        shifted = np.array([2, 3, 1 << 60], np.uint64)
        shifted ^= shifted << np.uint64(13)
        assert x.tolist() == (shifted ^ shifted >> np.uint64(7)).tolist()
        assert z.tolist() == [0.25] * 3
    assert tl.structural_equal(tl.parse(str(digits.ir)), digits.ir)


def test_names_of_one_assignment_have_types_of_their_own() -> None:
    text = "count, mean = 0, 0.0\n    count += 1\n    mean += x[0]\n    x[0] = mean / count"
    func = tl.parse(f"n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n]):\n    {text}")
    assert "count = tl.alloc(tl.i64[()]" in str(func)
    assert "mean = tl.alloc(tl.f32[()]" in str(func)
