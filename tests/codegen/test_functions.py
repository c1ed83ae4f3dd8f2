"""Math functions: close to NumPy's, in both precisions, scalar and vector."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import Call, DType, IntImm, Op, Ramp, bool_, f32, f64, i8, i64, u8
from tirlite.ir.builder import Builder

NUMPY = {
    **{op: getattr(np, op.label) for op in (Op.SQRT, Op.EXP, Op.EXP2, Op.EXPM1, Op.LOG, Op.LOG2, Op.LOG10, Op.LOG1P)},
    **{op: getattr(np, op.label) for op in (Op.SIN, Op.COS, Op.TAN, Op.SINH, Op.COSH, Op.TANH, Op.FLOOR, Op.CEIL)},
    Op.ABS: np.abs,
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos,
    Op.ATAN: np.arctan,
    Op.ATAN2: np.arctan2,
    Op.POW: np.power,
    Op.ROUND: np.round,
    Op.TRUNC: np.trunc,
    Op.ERF: np.vectorize(math.erf),
    Op.RSQRT: lambda x: 1 / np.sqrt(x),
    Op.RECIPROCAL: np.reciprocal,
    Op.SIGMOID: lambda x: 1 / (1 + np.exp(-x)),
    Op.FMA: lambda x, y, z: x * y + z,
    Op.ISNAN: np.isnan,
}
EXACT = (Op.ABS, Op.SQRT, Op.FLOOR, Op.CEIL, Op.ROUND, Op.TRUNC, Op.ISNAN)


def arguments(dtype: DType, count: int) -> list[np.ndarray]:
    values = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 1e-6, 10.0, -10.0, 0.1, 3.7, np.nan, np.inf]
    return [np.roll(np.array(values, dtype.numpy), shift) for shift in range(count)]


def applied(op: Op, dtype: DType, arrays: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Results one by one, and in vectors of four."""
    b = Builder("apply")
    params = [b.param(f"x{number}", dtype[array.size]) for number, array in enumerate(arrays)]
    result = bool_ if op is Op.ISNAN else dtype
    for name, lanes in (("scalars", 1), ("vectors", 4)):
        y = b.param(name, result[arrays[0].size], out=True)
        with b.for_("i", 0, arrays[0].size // lanes) as i:
            index = i if lanes == 1 else Ramp(i * lanes, IntImm(i64, 1), lanes)
            b.store(y, index, Call(result.with_lanes(lanes), op, tuple(param[index] for param in params)))
    return tl.compile(b.build())(*arrays)


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("op", [op for op in Op if op.is_math and not op.is_fast], ids=lambda op: op.label)
def test_a_function_is_near_the_reference(op: Op, dtype: DType) -> None:
    assert op.arity is not None
    arrays = arguments(dtype, op.arity)
    with np.errstate(all="ignore"):
        expected = NUMPY[op](*[array.astype(np.float64) for array in arrays])
    for got in applied(op, dtype, arrays):
        if op in EXACT:
            np.testing.assert_array_equal(got, expected.astype(got.dtype))
        else:
            with np.errstate(all="ignore"):
                wanted = expected.astype(dtype.numpy)
            np.testing.assert_allclose(got, wanted, rtol=8 * np.finfo(dtype.numpy).eps, atol=1e-30)


@pytest.mark.parametrize("dtype", [i8, u8], ids=str)
def test_the_absolute_of_integers_wraps(dtype: DType) -> None:
    values = np.array([dtype.min, dtype.min + 1, 0, dtype.max], dtype.numpy)
    for got in applied(Op.ABS, dtype, [values]):
        np.testing.assert_array_equal(got, np.abs(values))


def test_fma_rounds_once() -> None:
    x = np.full(4, 1 + 2**-30, np.float64)
    for got in applied(Op.FMA, f64, [x, x, -(x * x)]):
        assert got.tolist() == [2.0**-60] * 4
