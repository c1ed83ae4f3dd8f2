"""Dims that no array has as an extent by itself: `h + 2` tells `h`, with outputs that are left out and without."""

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


@tl.kernel
def lengths(starts: tl.i64[h + 1], total: tl.i64[1]):
    total[0] = 0
    for i in range(h):
        total[0] += starts[i + 1] - starts[i]


def test_no_extent_has_to_be_the_dim_alone() -> None:
    starts, total = np.array([2, 3, 7]), np.zeros(1, np.int64)
    for run in (lengths, lengths.interpret):
        run(starts, total)
        assert total.tolist() == [5]
    called_quickly = lengths._version.executable.quick()
    assert called_quickly is not None
    assert called_quickly(starts[:2], total) is None
    assert total.tolist() == [1]
    assert called_quickly(starts[:1], total) is NotImplemented
    lengths(starts[:1], total)
    assert total.tolist() == [0]
    with pytest.raises(tl.CallError, match="axis 0 of `starts` must be `h [+] 1`, and is 0"):
        lengths(starts[:0], total)


limited = tl.dim("limited", max=2)


@tl.kernel
def shifted(y: tl.out[tl.i64[2 * limited + 1]]):
    for i in range(limited):
        y[i] = i


def test_a_dim_that_a_sum_tells_keeps_its_facts() -> None:
    with pytest.raises(tl.CallError, match="`limited`.*axis 0 of `y`"):
        shifted(np.zeros(7, np.int64))
    with pytest.raises(tl.CallError, match="`y` was left out, and `limited` in its shape is known from no other"):
        shifted()


def test_a_call_inside_a_kernel_tells_the_dim_as_well() -> None:
    @tl.kernel
    def called(starts: tl.i64[k], total: tl.i64[1]):
        lengths(starts, total)

    total = np.zeros(1, np.int64)
    called(np.array([2, 3, 7]), total)
    assert total.tolist() == [5]
