"""Every operator on every type, edge values against edge values, as NumPy has it, in scalar and in vector code."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir.builder import Builder
from tirlite.ir.dtype import DType, bool_, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
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
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Ramp,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
)
from tirlite.ir.func import PrimFunc

INTEGERS = (i8, i16, i32, i64, u8, u16, u32, u64)
FLOATS = (f32, f64)
LANES = 4


def edge_values(dtype: DType) -> np.ndarray:
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_float:
        values = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, -7.0, 1e30, -1e30, np.inf, -np.inf, np.nan]
        tiny = np.finfo(dtype.numpy)
        return np.array([*values, tiny.tiny, tiny.smallest_subnormal, tiny.max, 0.1, -0.3], dtype.numpy)
    values = {0, 1, 2, 3, 7, 8, 31, 63, 64, 100, dtype.max, dtype.max - 1, dtype.min, dtype.min + 1, dtype.max // 3}
    values |= {-1, -2, -3, -8} if dtype.is_signed else set()
    return np.array(sorted(value for value in values if dtype.min <= value <= dtype.max), dtype.numpy)


def pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Each edge value beside each, as many as a whole number of vectors takes."""
    values = edge_values(dtype)
    a, b = (part.ravel() for part in np.meshgrid(values, values))
    size = -(-a.size // LANES) * LANES
    return np.resize(a, size), np.resize(b, size)


def element_wise(kind: type, dtype: DType, result: DType, count: int, operands: int) -> tuple[PrimFunc, PrimFunc]:
    """`z[i] = kind(x[i], y[i])`, one element at a time and four."""
    funcs = []
    for lanes in (1, LANES):
        b = Builder("apply")
        arrays = [b.param(name, dtype[count]) for name in "xy"[:operands]]
        z = b.param("z", result[count], out=True)
        with b.for_("i", 0, count // lanes) as i:
            index = i if lanes == 1 else Ramp(i * lanes, IntImm(i64, 1), lanes)
            values = [array[index] for array in arrays]
            b.store(z, index, Cast(result.with_lanes(lanes), *values) if kind is Cast else kind(*values))
        funcs.append(b.build())
    return funcs[0], funcs[1]


def check(kind: type, dtype: DType, expected: np.ndarray, *arrays: np.ndarray, result: DType | None = None) -> None:
    for func in element_wise(kind, dtype, result or dtype, arrays[0].size, len(arrays)):
        got = tl.compile(func)(*arrays)
        np.testing.assert_array_equal(got, expected, err_msg=f"{kind.__name__} of {dtype}")
        if got.dtype.kind == "f":
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


PLAIN = {Add: np.add, Sub: np.subtract, Mul: np.multiply, FloorDiv: np.floor_divide, FloorMod: np.remainder}
BITS = {BitAnd: np.bitwise_and, BitOr: np.bitwise_or, BitXor: np.bitwise_xor}
SHIFTS = {ShiftLeft: np.left_shift, ShiftRight: np.right_shift}
COMPARISONS = {EQ: np.equal, NE: np.not_equal, LT: np.less, LE: np.less_equal, GT: np.greater, GE: np.greater_equal}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_as_in_numpy(dtype: DType) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        for kind, reference in (PLAIN | BITS | SHIFTS).items():
            check(kind, dtype, reference(a, b), a, b)
    check(Neg, dtype, -a, a)
    check(BitNot, dtype, ~a, a)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_truncated_division_rounds_to_zero_and_gives_zero_for_zero(dtype: DType) -> None:
    a, b = pairs(dtype)
    quotients = [
        0 if y == 0 else abs(int(x)) // abs(int(y)) * (-1 if (x < 0) != (y < 0) else 1)
        for x, y in zip(a, b, strict=True)
    ]
    wrapped = np.array([(q - dtype.min) % 2**dtype.bits + dtype.min for q in quotients], dtype.numpy)
    check(TruncDiv, dtype, wrapped, a, b)
    remainders = [0 if y == 0 else int(x) - q * int(y) for x, y, q in zip(a, b, quotients, strict=True)]
    check(TruncMod, dtype, np.array(remainders, dtype.numpy), a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_are_as_in_numpy(dtype: DType) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        for kind, reference in (PLAIN | {Div: np.divide}).items():
            check(kind, dtype, reference(a, b), a, b)
    check(Neg, dtype, -a, a)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, bool_], ids=str)
def test_comparisons_are_ordered_but_for_not_equal(dtype: DType) -> None:
    a, b = pairs(dtype)
    for kind, reference in COMPARISONS.items():
        check(kind, dtype, reference(a, b), a, b, result=bool_)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, bool_], ids=str)
def test_minimum_and_maximum_give_the_second_of_equals_and_propagate_nan(dtype: DType) -> None:
    a, b = pairs(dtype)
    check(Min, dtype, np.where((a < b) | (a != a), a, b), a, b)
    check(Max, dtype, np.where((a > b) | (a != a), a, b), a, b)


def test_bools_are_zero_or_one_in_memory() -> None:
    a, b = pairs(bool_)
    for kind, reference in BITS.items():
        check(kind, bool_, reference(a, b), a, b)
    check(Not, bool_, ~a, a)
    func = element_wise(Not, bool_, bool_, 4, 1)[0]
    result = tl.compile(func)(np.array([0, 1, 2, 255], np.uint8).view(np.bool_))
    assert result.view(np.uint8).tolist() == [1, 0, 0, 0]


def saturated(values: np.ndarray, target: DType) -> np.ndarray:
    def one(value: float) -> int:
        if value != value:
            return 0
        return target.max if value >= target.max else target.min if value <= target.min else int(value)

    return np.array([one(float(value)) for value in values], target.numpy)


@pytest.mark.parametrize("source", [*INTEGERS, *FLOATS, bool_], ids=str)
def test_casts_wrap_round_and_saturate(source: DType) -> None:
    values = np.resize(edge_values(source), 20)
    for target in (*INTEGERS, *FLOATS, bool_):
        with np.errstate(all="ignore"):
            expected = values.astype(target.numpy)
        if source.is_float and target.is_integer:
            expected = saturated(values, target)
        check(Cast, source, expected, values, result=target)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_casts_of_clamped_floats_take_nan_to_zero(dtype: DType) -> None:
    values = np.resize(edge_values(dtype), 20)
    clamped = {(-1.0, 2.5): (i8, i16, i32, i64), (0.0, 255.0): (*INTEGERS[1:4], *INTEGERS[4:]), (-0.75, 0.5): INTEGERS}
    for (low, high), targets in clamped.items():
        within = np.minimum(np.maximum(values, dtype.numpy.type(low)), dtype.numpy.type(high))
        for target in targets:
            for lanes in (1, LANES):
                b = Builder("clamped")
                x, z = b.param("x", dtype[values.size]), b.param("z", target[values.size], out=True)
                ends = [FloatImm(dtype, end) for end in (low, high)]
                bounds = ends if lanes == 1 else [Broadcast(end, lanes) for end in ends]
                with b.for_("i", 0, values.size // lanes) as i:
                    index = i if lanes == 1 else Ramp(i * lanes, IntImm(i64, 1), lanes)
                    number = Min(Max(x[index], bounds[0]), bounds[1])
                    b.store(z, index, Cast(target.with_lanes(lanes), number))
                np.testing.assert_array_equal(tl.compile(b.build())(values), saturated(within, target))


def test_what_lies_where_floats_say_is_found_as_elsewhere() -> None:
    values = edge_values(f32)
    b = Builder("bins")
    x, z = b.param("x", f32[values.size]), b.param("z", i32[4])
    with b.for_("i", 0, values.size) as i:
        place = Min(Max(Cast(i32, x[i]), IntImm(i32, 0)), IntImm(i32, 3))
        b.store(z, place, z[place] + 1)
    counts = np.zeros(4, np.int32)
    tl.compile(b.build())(values, counts)
    assert counts.tolist() == np.bincount(np.clip(saturated(values, i32), 0, 3), minlength=4).tolist()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ends_of_what_floats_become_are_ends_of_the_floats(dtype: DType) -> None:
    values = np.resize(edge_values(dtype), 20)
    for target in (i8, u8, i32, u32, i64, u64):
        for low, high in ((0, 3), (0, 100), *([(-7, 0), (-50, 99), (2, 9)] if target.is_signed else [])):
            b = Builder("rounded")
            x, z, w = b.param("x", dtype[values.size]), *(b.param(c, target[values.size], out=True) for c in "zw")
            with b.for_("i", 0, values.size) as i:
                number = Cast(target, x[i])
                b.store(z, i, Min(Max(number, IntImm(target, low)), IntImm(target, high)))
                b.store(w, i, Max(IntImm(target, low), Min(IntImm(target, high), number)))
            kernel = tl.compile(b.build())
            assert low > 0 or ".sat." not in kernel.llvm
            for found in kernel(values):
                np.testing.assert_array_equal(found, np.clip(saturated(values, target), low, high))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_constant_divisors_and_shifts_give_what_variable_ones_give(dtype: DType) -> None:
    values = edge_values(dtype)
    constants = [c for c in (0, 1, 2, 3, 8, 64, -1, -2, -3, dtype.max, dtype.min) if dtype.min <= c <= dtype.max]
    kinds = (FloorDiv, FloorMod, TruncDiv, TruncMod, ShiftLeft, ShiftRight)
    b = Builder("constants")
    x = b.param("x", dtype[values.size])
    y = b.param("y", dtype[len(constants)])
    known = b.param("known", dtype[len(kinds), len(constants), values.size], out=True)
    unknown = b.param("unknown", dtype[len(kinds), len(constants), values.size], out=True)
    with b.for_("i", 0, values.size) as i:
        for row, kind in enumerate(kinds):
            for column, constant in enumerate(constants):
                b.store(known, (row, column, i), kind(x[i], IntImm(dtype, constant)))
                b.store(unknown, (row, column, i), kind(x[i], y[column]))
    got, expected = tl.compile(b.build())(values, np.array(constants, dtype.numpy))
    np.testing.assert_array_equal(got, expected)


def test_a_constant_vector_is_a_splat() -> None:
    b = Builder("halves")
    x, y = b.param("x", f32[8]), b.param("y", f32[8], out=True)
    index = Ramp(IntImm(i64, 0), IntImm(i64, 1), 8)
    b.store(y, index, x[index] * Broadcast(tl.ir.const(0.5, f32), 8))
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(tl.compile(b.build())(x), x / 2)


@pytest.mark.parametrize("dtype", [i8, u8, i16, u16, i32, u32], ids=str)
def test_vectors_divide_exactly_beside_multiples(dtype: DType) -> None:
    source = f"""
n = tl.dim("n")

@tl.kernel
def divided(a: tl.{dtype}[n], b: tl.{dtype}[n], y: tl.out[tl.{dtype}[n]], z: tl.out[tl.{dtype}[n]]):
    for i in range(n):
        y[i] = a[i] // b[i] if b[i] != 1 else a[i]
        z[i] = a[i] % b[i]
"""
    kernel, rng = tl.compile(tl.parse(source)), np.random.default_rng(0)
    assert "tl.ramp" in str(kernel.lowered)
    bits = rng.integers(1, dtype.bits, 4099)
    b = rng.integers(0, 1 << bits) * rng.choice([1, -1], bits.size)
    multiples = b * (rng.integers(0, 1 << 40, bits.size) >> (40 - dtype.bits + bits)) + rng.integers(-1, 2, bits.size)
    a, b = multiples.astype(dtype.numpy), b.astype(dtype.numpy)
    quotients, rests = kernel(a, b)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(rests, a % b)
        np.testing.assert_array_equal(quotients, np.where(b == 1, a, a // b))
