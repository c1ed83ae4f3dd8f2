"""Numbers among the parameters may have defaults: calls from Python and from kernels may leave them out."""

from __future__ import annotations

import inspect
import math
import pickle

import numpy as np
import pytest

import tirlite as tl
from tirlite import ir

n = tl.dim("n")
QUARTER = np.float32(0.25)


@tl.kernel
def scaled(
    x: tl.f32[n],
    y: tl.out[tl.f32[n]],
    gain: tl.f32 = 2,
    shift: tl.i32 = -3,
    flip: tl.bool_ = False,
    more: tl.f16 = QUARTER,
    top: tl.f64 = math.inf,
):
    for i in range(n):
        value = gain * x[i] + shift + more
        y[i] = min(-value if flip else value, top)


@tl.kernel
def spliced(x: tl.f32[n], gain: tl.f32 = float("nan"), y: tl.out[tl.f32[n]] = None):
    scaled(x, y, shift=1)
    y[0] = gain


@tl.kernel
def called(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    tl.call(scaled, x, y, 3.0)


X = np.array([1, 2], np.float32)


def test_a_call_may_leave_them_out() -> None:
    assert scaled(X).tolist() == scaled.interpret(X).tolist() == [-0.75, 1.25]
    assert scaled(X, 3, 0).tolist() == [3.25, 6.25]
    assert scaled(X, flip=True, top=0).tolist() == [0, -1.25]
    assert called(X).tolist() == [0.25, 3.25]
    assert spliced(X).tolist()[1] == spliced(X, 7.0).tolist()[1] == 5.25
    assert math.isnan(spliced(X)[0])


def test_they_are_part_of_the_function() -> None:
    for each in (scaled.ir, spliced.ir):
        assert tl.structural_equal(tl.parse(str(each)), each)
    assert "gain: tl.f32 = 2.0, shift: tl.i32 = -3, flip: tl.bool_ = False" in str(scaled.ir)
    assert str(spliced.ir).count("= None") == 1
    other = scaled.ir.replaced(defaults=(None, None, 4.0))
    assert tl.structural_equal(other, scaled.ir).difference.startswith("defaults: ")
    assert pickle.loads(pickle.dumps(tl.compile(scaled.ir)))(X).tolist() == [-0.75, 1.25]
    assert inspect.signature(scaled).parameters["shift"].default == -3


@pytest.mark.parametrize(
    ("parameter", "code"),
    [
        ("k: tl.u8 = 300", "constant-range"),
        ("k: tl.i32 = 1.5", "lossy-store"),
        ("k: tl.f32 = 1e300", "constant-range"),
        ("k: tl.f32 = None", "bad-default"),
        ("k: tl.f32 = 'a'", "bad-default"),
        ("k: tl.out[tl.f32[n]] = 1", "bad-default"),
        ("k: tl.f32[n] = None", "bad-default"),
    ],
)
def test_what_is_no_value_of_the_parameter_is_refused(parameter: str, code: str) -> None:
    with pytest.raises(tl.KernelError) as caught:
        tl.parse(f"n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n], {parameter}): pass")
    assert caught.value.code == code


def test_the_validator_looks_at_them() -> None:
    x, k = ir.Buffer("x", ir.f32, ()), ir.Var("k", ir.i32)
    for defaults in ((1,), (None, 0.5), (None, 1 << 40), (None, None, 1)):
        with pytest.raises(tl.KernelError, match="wrong-default"):
            ir.validate(ir.PrimFunc("f", (x, k), ir.seq(), (), defaults))


def test_an_array_in_the_place_of_a_number_is_explained() -> None:
    with pytest.raises(tl.CallTypeError, match="give an output by its name"):
        scaled(X, np.empty_like(X))
