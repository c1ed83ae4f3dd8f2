"""Arrays of any strides as arguments: used where they are, with the results of dense ones to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tirlite as tl
from tirlite.analysis.array_overlap import meets_itself, share_elements
from tirlite.interp import interpret
from tirlite.ir import f32, i64
from tirlite.ir.builder import Builder
from tirlite.rewrite.forms import Form

n, m = tl.dims("n m")


@tl.kernel
def blended(x: tl.f32[n, m], y: tl.f32[n, m], z: tl.out[tl.f32[n, m]]):
    t = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            t[i, j] = x[i, j] * y[i, j]
    for i in range(n):
        for j in range(m):
            z[i, j] = t[i, j] + x[i, m - 1 - j]


@tl.kernel
def total(x: tl.f32[n], s: tl.out[tl.f32[1]]):
    acc = tl.f32(0)
    for i in tl.reduce(n):
        acc += x[i]
    s[0] = acc


@tl.kernel
def picked(x: tl.f32[n], at: tl.i64[m], y: tl.out[tl.f32[m]]):
    for i in range(m):
        y[i] = x[at[i]]


def dense(given: object) -> Any:
    return np.array(given) if isinstance(given, np.ndarray) else given


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32)


B = numbers(14, 26)
VIEWS = {
    "transposed": numbers(13, 7).T,
    "slices": B[::2, ::2],
    "reversed": numbers(7, 13)[::-1, ::-1],
    "columns": B[1:8, 5:18],
    "rows backwards": B[::-2, 3:16],
    "broadcast rows": np.broadcast_to(numbers(13), (7, 13)),
    "broadcast columns": np.broadcast_to(numbers(7, 1), (7, 13)),
    "one number": np.broadcast_to(np.float32(3), (7, 13)),
    "fields": np.rec.fromarrays([numbers(7, 13), numbers(7, 13), numbers(7, 13)], names="a,b,c").b,
}


def test_views_give_the_bits_that_dense_arrays_give() -> None:
    other = numbers(7, 13)
    for name, view in VIEWS.items():
        assert not view.flags.c_contiguous
        assert blended(view, other).tobytes() == blended(dense(view), other).tobytes(), name
        assert blended(other, view).tobytes() == blended(other, dense(view)).tobytes(), name
        assert blended.interpret(view, view).tobytes() == blended(dense(view), dense(view)).tobytes(), name
    x = numbers(3001)
    for each in (x[::3], x[::-1], x[5:6], x[::-1500]):
        assert total(each).tobytes() == total(dense(each)).tobytes()
    one = as_strided(x, (1, 5), (-4000, 8))
    assert blended(one, one).tobytes() == blended(dense(one), dense(one)).tobytes()


def test_other_element_types_have_strides_too() -> None:
    for dtype in (tl.bool_, tl.f16, tl.i64, tl.bf16):
        b = Builder("copied")
        x, y = b.param("x", dtype[n, m]), b.param("y", dtype[n, m], out=True)
        with b.for_("i", 0, x.shape[0]) as i, b.for_("j", 0, x.shape[1]) as j:
            b.store(y, (i, j), x[i, j])
        kernel = tl.compile(b.build())
        given = np.random.default_rng(1).integers(0, 2, (9, 5)).astype(dtype.stored)
        wide = np.zeros((5, 18), dtype.stored)
        kernel(given.T, wide[:, ::2])
        assert (wide[:, ::2] == given.T).all()
        assert not wide[:, 1::2].any()


def test_what_lies_between_the_elements_stays() -> None:
    x = numbers(4, 6)
    for at in (np.s_[:, 1::2], np.s_[::2, ::-2], np.s_[2:6, 3:9]):
        room = np.full((8, 12) if at[0] != np.s_[:] else (4, 12), 7, np.float32)
        before = room.copy()
        result = room[at]
        blended(x, x, result)
        assert result.tobytes() == blended(x, x).tobytes()
        room[at] = before[at] = 0
        assert (room == before).all()


def test_the_interpreter_gives_the_bits_of_the_code() -> None:
    x = B[::2, ::-2]
    binding = blended._binder.bind((x, x.T.copy().T), {})
    form = blended._strided.of(binding)
    version = blended._in_form(binding.is_empty, Form.USUAL, form)
    call = form.called(binding)
    func = version.final
    names, values = (*func.params, *func.dims), (*call.arguments, *call.dims)
    interpret(func, dict(zip(names, values, strict=True)))
    assert binding.results[0].tobytes() == blended(x, x).tobytes()


def test_what_the_kernel_writes_overlaps_nothing() -> None:
    room = numbers(6, 8)
    even, odd = room[:, ::2], room[:, 1::2]
    want = blended(dense(even), dense(even))
    blended(even, even, odd)
    assert (odd == want).all()
    for given in (room[:, 1:5], room[:, 2:6], room[::-1, ::2], even):
        with pytest.raises(tl.CallValueError, match="overlaps `x`"):
            blended(even, numbers(6, 4), given)
    with pytest.raises(tl.CallValueError, match="overlaps `y`"):
        blended(numbers(6, 4), even, even)


def test_each_element_that_is_written_is_there_once() -> None:
    x, room = numbers(3, 4), np.zeros(64, np.float32)
    for steps in ((0, 4), (4, 0), (4, 4), (8, 4), (-4, 4)):
        with pytest.raises(tl.CallValueError, match="elements that lie apart"):
            blended(x, x, as_strided(room[32:], (3, 4), steps))
    assert not room.any()
    blended(x, x, as_strided(room[32:], (3, 4), (-20, 4)))
    assert room.any()


def test_overlap_is_decided_exactly() -> None:
    room = np.zeros(400, np.int8)
    rng = np.random.default_rng(0)
    for _ in range(300):
        arrays, sets = [], []
        for _ in range(2):
            shape = tuple(map(int, rng.integers(1, 5, rng.integers(1, 4))))
            steps = tuple(map(int, rng.integers(-20, 21, len(shape))))
            array = as_strided(room[200:], shape, steps)
            places = [sum(i * s for i, s in zip(at, steps, strict=True)) for at in np.ndindex(shape)]
            assert meets_itself(array) == (len(set(places)) < len(places)), (shape, steps)
            arrays.append(array)
            sets.append(set(places))
        assert share_elements(*arrays) == bool(sets[0] & sets[1])


def test_indices_are_checked() -> None:
    x, room = numbers(20), np.full(8, 5, np.float32)
    assert (picked(x[::4], np.array([4, 0]), room[::4]), room.tolist()) == (None, [x[16], 5, 5, 5, x[0], 5, 5, 5])
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        picked(x[::4], np.array([4, 5]), room[1::4])
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        picked(x[::4], np.array([5, -1])[::-1])


def test_debug_code_and_empty_arrays() -> None:
    checked = tl.compile(blended, debug=True)
    x = B[::2, ::2]
    assert checked(x, x).tobytes() == blended(x, x).tobytes()
    assert blended(numbers(4, 0).T, np.zeros((0, 8), np.float32)[:, ::2]).shape == (0, 4)
    assert total(np.zeros((0, 2), np.float32)[:, 0]) == 0
    shaped = tl.compile(blended, strategy="per_shape")
    assert shaped(x, x[::-1]).tobytes() == blended(x, x[::-1]).tobytes()


@tl.kernel
def windowed(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    row = tl.view(x, tl.f32[m])
    whole = tl.view(y, tl.f32[m])
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] + row[j]
    for j in range(m):
        whole[j] = 0


def test_what_is_used_as_a_whole_is_copied_or_refused() -> None:
    x = numbers(13, 7).T
    assert (windowed(x) == windowed(dense(x))).all()
    with pytest.raises(tl.CallValueError, match="`y` must be contiguous.*as the kernel uses its bytes as a whole"):
        windowed(x, numbers(13, 7).T)
    room = numbers(7, 26)
    with pytest.raises(tl.CallValueError, match="overlaps"):
        windowed(room[:, ::2], room.reshape(-1)[13:104].reshape(7, 13))


def test_a_kernel_has_few_versions() -> None:
    every = tl.compile(blended)
    dense_, columns, slices = numbers(7, 13), B[:7, :13], B[::2, ::2]
    for x in (dense_, columns, slices):
        for y in (dense_, columns, slices):
            for room in (np.zeros((7, 13), np.float32), np.zeros((7, 26), np.float32)[:, ::2]):
                every(x, y, room)
                assert room.tobytes() == blended(dense(x), dense(y)).tobytes()
    assert len(every._others) <= 5


def test_strides_are_declared_printed_and_parsed() -> None:
    text = """n, m = tl.dims("n m")

@tl.kernel
def halves(step: tl.i64, x: tl.buffer(tl.f32[n, m], strides=(step, 2)), y: tl.out[tl.f32[n, m]]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] / tl.f32(2)
"""
    func = tl.parse(text)
    assert tl.structural_equal(tl.parse(str(func)), func)
    assert not tl.structural_equal(tl.parse(text.replace("(step, 2)", "(step, 3)")), func)
    assert not tl.structural_equal(tl.parse(text.replace("(step, 2)", "(2, step)")), func)
    kernel, x = tl.compile(func), numbers(4, 6)
    assert (kernel(6, x[:, ::2]) == x[:, ::2] / 2).all()
    assert (kernel.interpret(6, x[:, ::2]) == x[:, ::2] / 2).all()
    with pytest.raises(tl.CallValueError, match="`x` must be of stride 5 along axis 0, and is not\n.*given with 6"):
        kernel(5, x[:, ::2])
    with pytest.raises(tl.CallValueError, match="`x` must be of stride 2 along axis 1, and is not\n.*given with 1"):
        kernel(6, x)
    assert repr(kernel) == "<Kernel halves(step: i64, x: f32[n, m] with strides (step, 2), y: out[f32[n, m]])>"
    with pytest.raises(tl.KernelError, match="strides=0.5 of a buffer"):
        tl.parse(text.replace("(step, 2)", "(step, 0.5)"))


def test_strides_are_for_elements_of_parameters() -> None:
    b = Builder("viewed")
    step = b.param("step", i64)
    x = tl.ir.Buffer("x", f32, (step,), strides=(step,))
    func = tl.ir.PrimFunc("viewed", (step, x), tl.ir.seq(tl.ir.Evaluate(x[0])))
    tl.compile(func)
    for given in (step, step + 1), (step + 1,), (tl.ir.const(1, tl.i32),):
        x = tl.ir.Buffer("x", f32, (step,), strides=given)
        with pytest.raises(tl.KernelError, match="`x` has strides"):
            tl.compile(tl.ir.PrimFunc("viewed", (step, x), tl.ir.seq(tl.ir.Evaluate(x[0]))))


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_arrays_of_other_libraries_have_strides_too(library: str) -> None:
    np_like = pytest.importorskip(library)
    x = numbers(26, 14)
    given = np_like.asarray(x).T[::2, ::2] if library != "torch" else np_like.from_numpy(x).T[::2, ::2]
    assert (blended(given, given) == blended(x.T[::2, ::2], x.T[::2, ::2])).all()


VECTORS = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], at: tl.i64[4], y: tl.f32[n, m]):
    for i in range(n):
        y[i, tl.ramp(0, 1, 4)] = x[i, tl.ramp(1, 1, 4)] + x[i, at[tl.ramp(0, 1, 4)]] * x[i, tl.ramp(4, -1, 4)]
        on = x[i, tl.ramp(0, 1, 4)] > tl.broadcast(tl.f32(0), 4)
        y[i, tl.masked(tl.ramp(3, 1, 4), on)] = x[i, tl.masked(tl.ramp(2, 1, 4), on)]
        y[i, tl.masked(at[tl.ramp(0, 1, 4)], on)] = x[i, tl.masked(at[tl.ramp(0, 1, 4)], on)]
"""


def test_vectors_of_arrays_with_strides() -> None:
    at = np.array([6, 0, 2, 5])
    for debug in (False, True):
        kernel = tl.compile(tl.parse(VECTORS), debug=debug)
        for x in (B[::2, :7], B[::2, 20:6:-2], numbers(7, 7).T):
            wanted, told, got = (
                np.zeros((7, 7), np.float32),
                np.zeros((7, 14), np.float32),
                np.zeros((7, 14), np.float32),
            )
            kernel(dense(x), at, wanted)
            kernel(x, at, got[:, ::-2])
            kernel.interpret(x, at, told[:, ::-2])
            assert got[:, ::-2].tobytes() == told[:, ::-2].tobytes() == wanted.tobytes()
            assert not got[:, ::2].any()
