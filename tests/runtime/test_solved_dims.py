"""Outputs that are left out where no array has their dims as an extent by itself: `h + 2` of an input tells `h`."""

import numpy as np
import pytest

import tirlite as tl

h, w, k = tl.dims("h w k")


@tl.kernel
def valid(x: tl.f32[h + 2, 2 * w], y: tl.out[tl.f32[h]], z: tl.out[tl.i64[w]]):
    for i in range(h):
        y[i] = x[i + 2, 0]
    for i in range(w):
        z[i] = h


def test_a_sum_and_a_multiple_of_a_dim_tell_it() -> None:
    x = np.arange(20, dtype=np.float32).reshape(5, 4)
    for run in (valid, valid.interpret):
        y, z = run(x)
        assert (y.tolist(), z.tolist()) == ([8, 12, 16], [3, 3])
    assert valid(x, z=np.zeros(2, np.int64)).tolist() == [8, 12, 16]
    assert [each.size for each in valid(np.zeros((2, 0), np.float32))] == [0, 0]


@tl.kernel
def joined(x: tl.f32[h * k + w], y: tl.f32[w + k - 1], z: tl.f32[k], out: tl.out[tl.i64[h]], last: tl.out[tl.i64[w]]):
    for i in range(h):
        out[i] = w


def test_a_dim_that_is_told_tells_another() -> None:
    out, last = joined(*(np.zeros(length, np.float32) for length in (13, 6, 3)))
    assert (out.tolist(), last.size) == ([4, 4, 4], 4)


@tl.kernel
def halved(x: tl.f32[h // 2], y: tl.out[tl.f32[h]]):
    for i in range(h):
        y[i] = 0


@pytest.mark.parametrize(
    ("run", "shapes", "text"),
    [
        (valid, [(1, 4)], "axis 0 of `x` must be `h [+] 2`, and is 1"),
        (valid, [(5, 3)], "axis 1 of `x` must be `2 [*] w`, and is 3"),
        (joined, [13, 7, 3], "axis 0 of `x` must be `h [*] k [+] w`, and is 13"),
        (halved, [4], "`h` in its shape is known from no other"),
    ],
)
def test_what_no_dim_makes_is_refused(run: tl.Kernel, shapes: list[int], text: str) -> None:
    with pytest.raises(tl.CallError, match=text):
        run(*(np.zeros(shape, np.float32) for shape in shapes))
