"""What each operation does to values, in scalars and in vectors."""

import math

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.diag import KernelRunError
from tirlite.interp import interpret
from tirlite.ir.dtype import DType, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BitAnd,
    BitNot,
    BitOr,
    BitXor,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    LetExpr,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Ramp,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.stmt import Store, seq

NAN, INF = math.nan, math.inf


def value_of(expr: Expr) -> np.generic | np.ndarray:
    """The value of an expression without loads: an element, or an array of the lanes."""
    lanes = expr.dtype.lanes
    out = Buffer("out", expr.dtype.scalar, (const(lanes, i64),))
    index: Expr = const(0, i64) if lanes == 1 else Ramp(const(0, i64), const(1, i64), lanes)
    result = np.zeros(lanes, expr.dtype.scalar.numpy)
    interpret(PrimFunc("f", (out,), seq(Store(out, (index,), expr))), {out: result})
    return result[0] if lanes == 1 else result


def both(node: type, a: float, b: float, dtype: DType) -> np.generic:
    """`node(a, b)`, which is the same in a scalar and in each lane of a vector."""
    scalar = value_of(node(const(a, dtype), const(b, dtype)))
    vector = value_of(node(const(a, dtype.with_lanes(4)), const(b, dtype.with_lanes(4))))
    np.testing.assert_array_equal(vector, [scalar] * 4, strict=False)
    return scalar


@pytest.mark.parametrize(
    ("node", "a", "b", "dtype", "wanted"),
    [
        (Add, 127, 1, i8, -128),
        (Add, 255, 2, u8, 1),
        (Sub, 0, 1, u64, 2**64 - 1),
        (Sub, -(2**63), 1, i64, 2**63 - 1),
        (Mul, 2**31, 2, u32, 0),
        (Mul, 300, 300, i16, 90000 - 65536),
    ],
)
def test_integers_wrap(node: type, a: int, b: int, dtype: DType, wanted: int) -> None:
    assert both(node, a, b, dtype) == wanted


def test_negation_wraps() -> None:
    assert value_of(Neg(const(-128, i8))) == -128
    assert value_of(Neg(const(1, u16))) == 65535


@pytest.mark.parametrize(
    ("a", "b", "floor", "mod", "trunc", "rem"),
    [(7, 2, 3, 1, 3, 1), (-7, 2, -4, 1, -3, -1), (7, -2, -4, -1, -3, 1), (-7, -2, 3, -1, 3, -1), (6, -3, -2, 0, -2, 0)],
)
def test_division_floors_or_truncates(a: int, b: int, floor: int, mod: int, trunc: int, rem: int) -> None:
    assert both(FloorDiv, a, b, i32) == floor
    assert both(FloorMod, a, b, i32) == mod
    assert both(TruncDiv, a, b, i32) == trunc
    assert both(TruncMod, a, b, i32) == rem


@pytest.mark.parametrize("node", [FloorDiv, FloorMod, TruncDiv, TruncMod])
@pytest.mark.parametrize("dtype", [i32, u8])
def test_division_by_zero_is_an_error(node: type, dtype: DType) -> None:
    with pytest.raises(KernelRunError, match="division-by-zero.*5 .* 0"):
        value_of(node(const(5, dtype), const(0, dtype)))
    lanes = dtype.with_lanes(3)
    with pytest.raises(KernelRunError, match="division-by-zero"):
        value_of(node(const(5, lanes), Cast(lanes, Ramp(const(2, i32), const(-1, i32), 3))))


@pytest.mark.parametrize("node", [FloorDiv, TruncDiv])
def test_a_quotient_that_does_not_fit_is_an_error(node: type) -> None:
    with pytest.raises(KernelRunError, match=r"division-overflow.*-128 .* -1 does not fit into i8"):
        value_of(node(const(-128, i8), const(-1, i8)))


@pytest.mark.parametrize("node", [FloorMod, TruncMod])
def test_the_remainder_by_minus_one_is_zero(node: type) -> None:
    assert both(node, -128, -1, i8) == 0


def test_bits() -> None:
    assert both(BitAnd, 12, 10, u8) == 8
    assert both(BitOr, 12, 10, u8) == 14
    assert both(BitXor, 12, 10, u8) == 6
    assert value_of(BitNot(const(0, i16))) == -1
    assert both(ShiftLeft, 3, 7, u8) == 128
    assert both(ShiftRight, -8, 1, i8) == -4
    assert both(ShiftRight, 0xF8, 1, u8) == 0x7C


@pytest.mark.parametrize("node", [ShiftLeft, ShiftRight])
@pytest.mark.parametrize("count", [8, 100, -1])
def test_shifts_by_the_width_or_more_are_errors(node: type, count: int) -> None:
    with pytest.raises(KernelRunError, match=f"shift of i8 by {count} bits"):
        value_of(node(const(1, i8), const(count, i8)))


def test_floats_are_rounded_after_each_operation() -> None:
    assert both(Add, 1.0, 2.0**-24, f32) == 1.0
    assert both(Add, 2048.0, 1.0, f16) == 2048.0
    assert both(Mul, 0.1, 3.0, f64) == 0.1 * 3.0
    assert both(Div, 1.0, 3.0, f32) == np.float32(1) / np.float32(3)


def test_float_division_by_zero_gives_infinity_or_nan() -> None:
    assert both(Div, 1.0, 0.0, f32) == INF
    assert math.isnan(both(Div, 0.0, 0.0, f64))


@pytest.mark.parametrize(("a", "b"), [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-0.0, 3.0), (1e30, 3.0), (1.0, INF)])
@pytest.mark.parametrize("dtype", [f32, f64])
def test_float_floor_division_is_numpys(a: float, b: float, dtype: DType) -> None:
    x, y = dtype.numpy.type(a), dtype.numpy.type(b)
    assert both(FloorDiv, a, b, dtype) == x // y
    assert both(FloorMod, a, b, dtype) == x % y
    assert np.signbit(both(FloorMod, a, b, dtype)) == np.signbit(x % y)


def test_negation_flips_the_sign_of_zero() -> None:
    assert np.signbit(value_of(Neg(const(0.0, f32))))


def test_minimum_and_maximum_propagate_nan() -> None:
    for node in (Min, Max):
        assert math.isnan(both(node, NAN, 1.0, f32))
        assert math.isnan(both(node, 1.0, NAN, f64))
    assert both(Min, 3, -4, i8) == -4
    assert both(Max, 3, 250, u8) == 250


def test_minimum_and_maximum_of_equals_give_the_second() -> None:
    for node in (Min, Max):
        assert not np.signbit(both(node, -0.0, 0.0, f64))
        assert np.signbit(both(node, 0.0, -0.0, f64))


@pytest.mark.parametrize(
    ("node", "less", "equal", "greater", "unordered"),
    [
        (EQ, False, True, False, False),
        (NE, True, False, True, True),
        (LT, True, False, False, False),
        (LE, True, True, False, False),
        (GT, False, False, True, False),
        (GE, False, True, True, False),
    ],
)
def test_comparisons(node: type, less: bool, equal: bool, greater: bool, unordered: bool) -> None:
    assert both(node, 1.0, 2.0, f32) == less
    assert both(node, 2, 2, u8) == equal
    assert both(node, 200, 100, u8) == greater
    assert both(node, NAN, NAN, f64) == unordered


def test_not() -> None:
    assert value_of(Not(const(False, bool_)))
    np.testing.assert_array_equal(value_of(Not(const(True, bool_.with_lanes(2)))), [False, False])


@every(
    "value, dtype, wanted",
    [
        (2.9, i32, 2),
        (-2.9, i32, -2),
        (1e20, i32, 2**31 - 1),
        (-1e20, i64, -(2**63)),
        (1e20, i64, 2**63 - 1),
        (-3.0, u8, 0),
        (300.0, u8, 255),
        (INF, u64, 2**64 - 1),
        (-INF, i8, -128),
        (NAN, i32, 0),
    ],
)
def test_float_to_integer_saturates_and_takes_nan_to_zero(value: float, dtype: DType, wanted: int) -> None:
    assert value_of(Cast(dtype, const(value, f64))) == wanted
    np.testing.assert_array_equal(value_of(Cast(dtype.with_lanes(2), const(value, f64.with_lanes(2)))), [wanted] * 2)


def test_other_casts() -> None:
    assert value_of(Cast(i8, const(300, i32))) == 44
    assert value_of(Cast(u32, const(-1, i8))) == 2**32 - 1
    assert value_of(Cast(f32, const(2**24 + 1, i32))) == 2**24
    assert value_of(Cast(f32, const(2**64 - 1, u64))) == 2.0**64
    assert value_of(Cast(f32, const(1e300, f64))) == INF
    assert value_of(Cast(i32, const(True, bool_))) == 1
    assert value_of(Cast(bool_, const(0.5, f32)))
    assert value_of(Cast(bool_, const(NAN, f32)))
    assert not value_of(Cast(bool_, const(-0.0, f32)))


def test_select_takes_one_side_or_lane_by_lane() -> None:
    one, two = const(1, i32), const(2, i32)
    assert value_of(Select(const(False, bool_), one, two)) == 2
    lanes = LT(Ramp(const(0, i32), one, 4), Broadcast(two, 4))
    np.testing.assert_array_equal(value_of(Select(lanes, Broadcast(one, 4), Broadcast(two, 4))), [1, 1, 2, 2])


def test_ramp_wraps_and_broadcast_repeats() -> None:
    np.testing.assert_array_equal(value_of(Ramp(const(250, u8), const(3, u8), 4)), [250, 253, 0, 3])
    np.testing.assert_array_equal(value_of(Broadcast(const(1.5, f32), 3)), [1.5] * 3)


def test_a_let_in_an_expression_may_stand_twice() -> None:
    x = Var("x", i32)
    square = LetExpr(x, const(7, i32), x * x)
    assert value_of(square + square) == 98


def test_square_root_is_correctly_rounded() -> None:
    assert value_of(Call(f32, Op.SQRT, (const(2.0, f32),))) == np.sqrt(np.float32(2))
    assert math.isnan(value_of(Call(f64, Op.SQRT, (const(-1.0, f64),))))


@every(
    "op, x, wanted",
    [
        (Op.ABS, -2.5, 2.5),
        (Op.RSQRT, 4.0, 0.5),
        (Op.RECIPROCAL, 4.0, 0.25),
        (Op.EXP, 1.0, math.e),
        (Op.EXP2, 3.0, 8.0),
        (Op.EXPM1, 1e-5, math.expm1(1e-5)),
        (Op.LOG, 2.0, math.log(2)),
        (Op.LOG2, 8.0, 3.0),
        (Op.LOG10, 1000.0, 3.0),
        (Op.LOG1P, 1e-5, math.log1p(1e-5)),
        (Op.SIN, 1.0, math.sin(1)),
        (Op.COS, 1.0, math.cos(1)),
        (Op.TAN, 1.0, math.tan(1)),
        (Op.ASIN, 0.5, math.asin(0.5)),
        (Op.ACOS, 0.5, math.acos(0.5)),
        (Op.ATAN, 0.5, math.atan(0.5)),
        (Op.SINH, 1.0, math.sinh(1)),
        (Op.COSH, 1.0, math.cosh(1)),
        (Op.TANH, 0.5, math.tanh(0.5)),
        (Op.ERF, 0.5, math.erf(0.5)),
        (Op.SIGMOID, 0.0, 0.5),
        (Op.FLOOR, -1.5, -2.0),
        (Op.CEIL, -1.5, -1.0),
        (Op.ROUND, 2.5, 2.0),
        (Op.TRUNC, -1.5, -1.0),
    ],
)
def test_functions_of_one_argument(op: Op, x: float, wanted: float) -> None:
    for dtype, tolerance in ((f32, 3e-7), (f64, 1e-15)):
        assert value_of(Call(dtype, op, (const(x, dtype),))) == pytest.approx(wanted, rel=tolerance)
        lanes = dtype.with_lanes(2)
        assert value_of(Call(lanes, op, (const(x, lanes),))).tolist() == pytest.approx([wanted] * 2, rel=tolerance)


def test_functions_of_two_arguments() -> None:
    assert value_of(Call(f64, Op.POW, (const(2.0, f64), const(0.5, f64)))) == pytest.approx(math.sqrt(2))
    assert value_of(Call(f64, Op.ATAN2, (const(-1.0, f64), const(-1.0, f64)))) == pytest.approx(-3 * math.pi / 4)


def test_every_math_function_is_interpreted() -> None:
    for op in Op:
        if op.is_math:
            args = tuple(const(0.5, f32) for _ in range(op.arity or 0))
            assert value_of(Call(bool_ if op is Op.ISNAN else f32, op, args)) is not None


def test_isnan_gives_a_bool() -> None:
    assert value_of(Call(bool_, Op.ISNAN, (const(NAN, f32),)))
    assert not value_of(Call(bool_, Op.ISNAN, (const(INF, f32),)))


def fma(a: float, b: float, c: float, dtype: DType) -> np.generic:
    return value_of(Call(dtype, Op.FMA, (const(a, dtype), const(b, dtype), const(c, dtype))))


def test_fma_rounds_once() -> None:
    tiny = 2.0**-30
    assert fma(1 + tiny, 1 - tiny, -1.0, f64) == -tiny * tiny
    # Rounding to f64 first would make a tie of it, and the tie would go down.
    assert fma(1 + 2.0**-23, 1 + 2.0**-23, 2.0**-80, f32) == np.float32(1 + 2.0**-22)
    assert fma(1 + 2.0**-12, 1 + 2.0**-12, 2.0**-80, f32) == np.float32(1 + 2.0**-11 + 2.0**-23)
    assert fma(1e308, 10.0, -INF, f64) == -INF
    assert fma(1e308, 10.0, 0.0, f64) == INF
    assert math.isnan(fma(INF, 0.0, 1.0, f64))
    assert fma(2.0, 3.0, -6.0, f64) == 0.0


def test_abs_of_integers() -> None:
    assert value_of(Call(i8, Op.ABS, (IntImm(i8, -5),))) == 5
    assert value_of(Call(i8, Op.ABS, (IntImm(i8, -128),))) == -128


def test_arrays_of_another_librarys_bfloat16_are_interpreted_as_they_are_called():
    """NumPy has no such type: libraries that make one call it `bfloat16`."""
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    kernel = tl.compile(
        tl.parse("""n = tl.dim("n")

@tl.kernel
def twice(x: tl.bf16[n], y: tl.bf16[n]):
    for i in range(n):
        y[i] = x[i] + x[i]
""")
    )
    for run in (kernel, kernel.interpret):
        x, y = np.array([1.5, 3], bfloat16), np.zeros(2, bfloat16)
        run(x, y)
        assert y.astype(np.float32).tolist() == [3, 6]
