"""The elementary functions: at most 1 ULP from the exact value, 4 for the fast variants, right at the edges, the same
bits however computed.

`pytest tests/codegen/test_math_accuracy.py -n0 -s` prints the largest error that was seen of each function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import mpmath
import numpy as np
import pytest
from random_cases import IS_THOROUGH, some

import tirlite as tl
from tirlite.interp import interpret
from tirlite.interp.math_functions import apply_formula, fused, fused_singles
from tirlite.ir import Call, DType, IntImm, Op, PrimFunc, Ramp, bf16, f16, f32, f64, i64
from tirlite.ir.builder import Builder
from tirlite.ir.functions import formula_of, has_fast
from tirlite.ir.functions.fast_angles import LARGEST

EXACT: dict[Op, Callable] = {
    Op.EXP: mpmath.exp,
    Op.EXP2: lambda x: mpmath.power(2, x),
    Op.EXPM1: mpmath.expm1,
    Op.SINH: mpmath.sinh,
    Op.COSH: mpmath.cosh,
    Op.TANH: mpmath.tanh,
    Op.SIGMOID: lambda x: 1 / (1 + mpmath.exp(-x)),
    Op.LOG: mpmath.log,
    Op.LOG2: lambda x: mpmath.log(x, 2),
    Op.LOG10: mpmath.log10,
    Op.LOG1P: mpmath.log1p,
    Op.SIN: mpmath.sin,
    Op.COS: mpmath.cos,
    Op.TAN: mpmath.tan,
    Op.ASIN: mpmath.asin,
    Op.ACOS: mpmath.acos,
    Op.ATAN: mpmath.atan,
    Op.ATAN2: mpmath.atan2,
    Op.ERF: mpmath.erf,
    Op.POW: mpmath.power,
    Op.RSQRT: lambda x: 1 / mpmath.sqrt(x),
    Op.RECIPROCAL: lambda x: 1 / x,
}
EXACT |= {op: EXACT[op.exact] for op in Op if op.is_fast}
COUNT = 300 if IS_THOROUGH else 100
every_function = pytest.mark.parametrize("op", EXACT, ids=lambda op: op.name.lower())
every_type = pytest.mark.parametrize("dtype", [f32, f64], ids=str)


def both_signs(random: np.random.Generator, most: float) -> np.ndarray:
    """Evenly up to `most`, and evenly by order of magnitude."""
    even, sizes = random.uniform(-most, most, COUNT), np.exp(random.uniform(-30, np.log(most), COUNT))
    return np.concatenate([even, sizes * random.choice([-1, 1], COUNT)])


def arguments(op: Op, random: np.random.Generator) -> list[np.ndarray]:
    is_fast, op = op.is_fast, op.exact
    widest = {Op.EXP: 745, Op.EXP2: 1074, Op.EXPM1: 709, Op.SINH: 710, Op.COSH: 710, Op.TANH: 22, Op.SIGMOID: 740}
    widest |= {Op.ASIN: 1, Op.ACOS: 1, Op.ATAN: 1e5, Op.ERF: 6}
    if op in widest:
        return [both_signs(random, widest[op])]
    if op in (Op.SIN, Op.COS, Op.TAN):
        return [
            np.concatenate(
                [both_signs(random, most) for most in ((10, 1e3, 1e6, LARGEST) if is_fast else (10, 1e5, 1e30, 1e300))]
            )
        ]
    if op is Op.LOG1P:
        return [np.concatenate([both_signs(random, 0.999), np.exp(random.uniform(-50, 700, COUNT))])]
    if op is Op.ATAN2:
        return [both_signs(random, 10) * np.exp(random.uniform(-50, 50, 2 * COUNT)), both_signs(random, 10)]
    if op is Op.POW:
        base = np.concatenate([random.uniform(0.5, 2, COUNT), np.exp(random.uniform(-30, 30, COUNT))])
        return [base, random.uniform(-740, 705, 2 * COUNT) / np.log(base)]
    near_one = 1 + random.uniform(-1, 1, COUNT) * np.exp(random.uniform(-30, -1, COUNT))
    return [np.concatenate([np.exp(random.uniform(-744, 709, COUNT)), random.uniform(0.5, 2, COUNT), near_one])]


def error_in_ulp(got: float, exact: mpmath.mpf, dtype: DType) -> mpmath.mpf:
    """The distance in units of the last place of the exact value."""
    form = np.finfo(dtype.numpy)
    exponent = max(mpmath.frexp(exact)[1] if exact else form.minexp, form.minexp + 1)
    return abs(mpmath.mpf(got) - exact) / mpmath.ldexp(1, exponent - form.nmant - 1)


@every_type
@every_function
def test_the_error_is_at_most_one_ulp_and_four_of_fast_variants(op: Op, dtype: DType) -> None:
    formula = formula_of(op, dtype)
    assert formula is not None
    largest = mpmath.mpf(float(np.finfo(dtype.numpy).max))
    with np.errstate(all="ignore"):
        arrays = [array.astype(dtype.numpy) for array in arguments(op, np.random.default_rng(1))]
        usable = np.all([np.isfinite(array) for array in arrays], axis=0)
        if op.exact in (Op.LOG, Op.LOG2, Op.LOG10, Op.RSQRT, Op.POW):
            usable &= arrays[0] > 0
        if op.exact is Op.RECIPROCAL:
            usable &= arrays[0] != 0
        arrays = [array[usable] for array in arrays]
        got = apply_formula(formula, dtype)(*arrays)
    worst, where = mpmath.mpf(0), None
    # Angles may be as large as 1e300, and are reduced by as many digits of pi.
    with mpmath.workprec(1300 if op.exact in (Op.SIN, Op.COS, Op.TAN) else 200):
        for result, *values in zip(got, *arrays, strict=True):
            exact = EXACT[op](*(mpmath.mpf(float(value)) for value in values))
            if not np.isfinite(result):
                assert abs(exact) > largest
                continue
            error = error_in_ulp(float(result), exact, dtype)
            worst, where = max((worst, where), (error, values), key=lambda pair: pair[0])
    print(f"{op.name.lower():12} {dtype}  {float(worst):.3f} ULP")
    assert worst <= (4 if op.is_fast else 1), where


def edges(dtype: DType) -> np.ndarray:
    form = np.finfo(dtype.numpy)
    sizes = [0, 1, 0.5, 2, 3, 1.5, 10, 89, 100, 700, 710, 745.2, 746, 800, 1e4, 1e10, 1e20, np.inf]
    sizes += [form.max, form.tiny, form.smallest_subnormal, form.eps, 1 - form.epsneg, 1 + form.eps, form.tiny / 3]
    return np.array([*sizes, *(-np.array(sizes)), np.nan], dtype.numpy)


REFERENCE: dict[Op, Callable] = {
    **{op: getattr(np, op.label) for op in (Op.EXP, Op.EXP2, Op.EXPM1, Op.SINH, Op.COSH, Op.TANH, Op.SIN, Op.COS)},
    **{op: getattr(np, op.label) for op in (Op.TAN, Op.LOG, Op.LOG2, Op.LOG10, Op.LOG1P)},
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos,
    Op.ATAN: np.arctan,
    Op.ATAN2: np.arctan2,
    Op.POW: np.power,
    Op.ERF: np.vectorize(math.erf, otypes=[np.float64]),
    Op.RSQRT: lambda x: 1 / np.sqrt(x),
    Op.RECIPROCAL: np.reciprocal,
    Op.SIGMOID: lambda x: np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x))),
}


@every_type
@every_function
def test_infinities_nan_denormals_and_signed_zeros_are_as_in_c(op: Op, dtype: DType) -> None:
    one = edges(dtype)
    if op in (Op.FAST_SIN, Op.FAST_COS, Op.FAST_TAN):
        one = one[~(np.isfinite(one) & (np.abs(one) > LARGEST))]
    arrays = [one] if op.arity == 1 else [part.ravel().copy() for part in np.meshgrid(one, one)]
    formula = formula_of(op, dtype)
    assert formula is not None
    with np.errstate(all="ignore"):
        wanted = REFERENCE[op.exact](*(array.astype(np.float64) for array in arrays)).astype(dtype.numpy)
        got = apply_formula(formula, dtype)(*arrays)
        near = np.isclose(got, wanted, rtol=4 * np.finfo(dtype.numpy).eps, atol=0) | (
            np.abs(got - wanted) <= np.finfo(dtype.numpy).smallest_subnormal
        )
    same = (near & (np.signbit(got) == np.signbit(wanted))) | (np.isnan(got) & np.isnan(wanted))
    assert same.all(), [(*(a[i] for a in arrays), got[i], wanted[i]) for i in np.flatnonzero(~same)[:5]]


def applied(op: Op, dtype: DType, count: int) -> PrimFunc:
    """A function that applies `op` to scalars, and again to vectors of 8 lanes."""
    b = Builder("apply")
    params = [b.param(f"x{number}", dtype[count]) for number in range(op.arity or 1)]
    for name, lanes in (("scalars", 1), ("vectors", 8)):
        y = b.param(name, dtype[count], out=True)
        with b.for_("i", 0, count // lanes) as i:
            index = i if lanes == 1 else Ramp(i * lanes, IntImm(i64, 1), lanes)
            b.store(y, index, Call(dtype.with_lanes(lanes), op, tuple(param[index] for param in params)))
    return b.build()


# Halves are computed as f32 and rounded: a share of the functions shows that.
PAIRS = [*product(EXACT, (f32, f64)), *product(some([*EXACT]), (f16, bf16))]
MADE_ANEW = [(op, dtype) for op, dtype in PAIRS if not op.is_fast or (dtype.bits >= 32 and has_fast(op, dtype))]


@pytest.mark.parametrize(("op", "dtype"), MADE_ANEW, ids=lambda each: each.name.lower() if each in EXACT else str(each))
def test_code_gives_the_bits_of_the_interpreter_in_scalars_and_vectors(op: Op, dtype: DType) -> None:
    random = np.random.default_rng(2)
    count = 400 if IS_THOROUGH else 160
    chosen = (np.concatenate([edges(f64), random.permutation(array)])[:count] for array in arguments(op, random))
    arrays = [random.permutation(array) for array in chosen]
    with np.errstate(all="ignore"):
        if dtype is bf16:
            arrays = [(array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for array in arrays]
        else:
            arrays = [array.astype(dtype.numpy) for array in arrays]
    func = applied(op, dtype, count)
    wanted, vectors = np.zeros(count, dtype.stored), np.zeros(count, dtype.stored)
    interpret(func, dict(zip(func.params, [*arrays, wanted, vectors], strict=True)))
    for got in (vectors, *tl.compile(func)(*arrays)):
        bits = np.dtype(f"u{got.itemsize}")
        nan = (got & 0x7FFF) > 0x7F80 if dtype is bf16 else np.isnan(got)
        also = (wanted & 0x7FFF) > 0x7F80 if dtype is bf16 else np.isnan(wanted)
        np.testing.assert_array_equal(nan, also)
        np.testing.assert_array_equal(got[~nan].view(bits), wanted[~nan].view(bits))


@every_type
def test_fast_variants_take_angles_too_large_for_them_for_zero(dtype: DType) -> None:
    large = np.array([1.01 * LARGEST, -1e30], dtype.numpy)
    values = {op: apply_formula(formula_of(op, dtype), dtype)(large) for op in (Op.FAST_SIN, Op.FAST_COS, Op.FAST_TAN)}
    assert [value.tolist() for value in values.values()] == [[0, 0], [1, 1], [0, 0]]


def test_where_nothing_is_gained_fast_means_the_exact_function() -> None:
    assert Op.POW.fast is Op.POW
    assert not has_fast(Op.EXP, f64)
    assert not has_fast(Op.LOG, f64)
    assert formula_of(Op.FAST_LOG, f64) is formula_of(Op.LOG, f64)
    assert formula_of(Op.FAST_EXP, f64) is formula_of(Op.EXP, f64)


def test_fused_products_of_f32_are_rounded_once() -> None:
    draw = np.random.default_rng(0)
    sizes = 2.0 ** draw.integers(-60, 60, (3, 2000))
    a, b, c = (draw.standard_normal((3, 2000)) * sizes).astype(np.float32)
    # Sums that all but vanish, beside those of any size, and what is special.
    c[:1000] = -(a.astype(np.float64) * b)[:1000]
    corners = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 3e38, 1e-45]
    grid = np.stack(np.meshgrid(corners, corners, corners)).reshape(3, -1).astype(np.float32)
    operands = np.concatenate([np.stack([a, b, c]), grid], axis=1)
    with np.errstate(all="ignore"):
        got = fused_singles(*operands)
        one_by_one = np.array([fused_singles(*each) for each in operands.T])
        wanted = np.array([fused(*map(float, each), narrow=True) for each in operands.T]).astype(np.float32)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(wanted[~np.isnan(got)]))
    np.testing.assert_array_equal(one_by_one, got)
    np.testing.assert_array_equal(np.signbit(one_by_one), np.signbit(got))


def test_a_function_with_very_many_formulas_calls_the_last_of_them() -> None:
    b = Builder("many")
    x, y = b.param("x", f64[1]), b.param("y", f64[400], out=True)
    for place in range(400):
        b.store(y, place, Call(f64, Op.POW, (x[0], x[0] + place)))
    got = tl.compile(b.build())(np.array([1.5]))
    power = formula_of(Op.POW, f64)
    assert power is not None
    wanted = apply_formula(power, f64)(np.full(400, 1.5), 1.5 + np.arange(400))
    np.testing.assert_array_equal(got, wanted)
