"""Every operator on every type, edge values against edge values, as NumPy has it, in scalar and in vector code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


# What is to come of operators, and of casts, by the type of the result. To compile a function for each of them takes
# several times as long as one for all.
Wanted = Mapping[tuple[type, DType], np.ndarray]


def element_wise(kinds: Iterable[tuple[type, DType]], dtype: DType, count: int) -> tuple[PrimFunc, PrimFunc]:
    """`z[i] = kind(x[i], y[i])` in a loop for each kind, one element at a time and four."""
    funcs = []
    for lanes in (1, LANES):
        b = Builder("apply")
        arrays = [b.param(name, dtype[count]) for name in "xy"]
        for number, (kind, result) in enumerate(kinds):
            z = b.param(f"z{number}", result[count], out=True)
            with b.for_("i", 0, count // lanes) as i:
                index = i if lanes == 1 else Ramp(i * lanes, IntImm(i64, 1), lanes)
                values = [array[index] for array in arrays[: 1 if kind in UNARY else 2]]
                b.store(z, index, Cast(result.with_lanes(lanes), *values) if kind is Cast else kind(*values))
        funcs.append(b.build())
    return funcs[0], funcs[1]


def check(dtype: DType, wanted: Wanted, a: np.ndarray, b: np.ndarray) -> None:
    for func in element_wise(wanted, dtype, a.size):
        for (kind, result), expected, got in zip(wanted, wanted.values(), tl.compile(func)(a, b), strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=f"{kind.__name__} of {dtype} to {result}")
            if got.dtype.kind == "f":
                numbers = ~np.isnan(expected)
                np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(expected)[numbers])


UNARY = (Neg, BitNot, Not, Cast)
PLAIN = {Add: np.add, Sub: np.subtract, Mul: np.multiply, FloorDiv: np.floor_divide, FloorMod: np.remainder}
BITS = {BitAnd: np.bitwise_and, BitOr: np.bitwise_or, BitXor: np.bitwise_xor}
SHIFTS = {ShiftLeft: np.left_shift, ShiftRight: np.right_shift}
COMPARISONS = {EQ: np.equal, NE: np.not_equal, LT: np.less, LE: np.less_equal, GT: np.greater, GE: np.greater_equal}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_as_in_numpy(dtype: DType) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        wanted = {(kind, dtype): reference(a, b) for kind, reference in (PLAIN | BITS | SHIFTS).items()}
    check(dtype, {**wanted, (Neg, dtype): -a, (BitNot, dtype): ~a}, a, b)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_truncated_division_rounds_to_zero_and_gives_zero_for_zero(dtype: DType) -> None:
    a, b = pairs(dtype)
    quotients = [
        0 if y == 0 else abs(int(x)) // abs(int(y)) * (-1 if (x < 0) != (y < 0) else 1)
        for x, y in zip(a, b, strict=True)
    ]
    wrapped = np.array([(q - dtype.min) % 2**dtype.bits + dtype.min for q in quotients], dtype.numpy)
    remainders = [0 if y == 0 else int(x) - q * int(y) for x, y, q in zip(a, b, quotients, strict=True)]
    check(dtype, {(TruncDiv, dtype): wrapped, (TruncMod, dtype): np.array(remainders, dtype.numpy)}, a, b)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_are_as_in_numpy(dtype: DType) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        wanted = {(kind, dtype): reference(a, b) for kind, reference in (PLAIN | {Div: np.divide}).items()}
    check(dtype, {**wanted, (Neg, dtype): -a}, a, b)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, bool_], ids=str)
def test_comparisons_are_ordered_but_for_not_equal(dtype: DType) -> None:
    a, b = pairs(dtype)
    check(dtype, {(kind, bool_): reference(a, b) for kind, reference in COMPARISONS.items()}, a, b)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, bool_], ids=str)
def test_minimum_and_maximum_give_the_second_of_equals_and_propagate_nan(dtype: DType) -> None:
    a, b = pairs(dtype)
    least, most = (np.where(taken | (a != a), a, b) for taken in (a < b, a > b))
    check(dtype, {(Min, dtype): least, (Max, dtype): most}, a, b)


def test_bools_are_zero_or_one_in_memory() -> None:
    a, b = pairs(bool_)
    check(bool_, {**{(kind, bool_): reference(a, b) for kind, reference in BITS.items()}, (Not, bool_): ~a}, a, b)
    func, odd = element_wise([(Not, bool_)], bool_, 4)[0], np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    result = tl.compile(func)(odd, odd.copy())
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
    with np.errstate(all="ignore"):
        wanted = {(Cast, target): values.astype(target.numpy) for target in (*INTEGERS, *FLOATS, bool_)}
    if source.is_float:
        wanted |= {(Cast, target): saturated(values, target) for target in INTEGERS}
    check(source, wanted, values, values.copy())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_casts_of_clamped_floats_take_nan_to_zero(dtype: DType) -> None:
    values = np.resize(edge_values(dtype), 20)
    clamped = {(-1.0, 2.5): (i8, i16, i32, i64), (0.0, 255.0): (*INTEGERS[1:4], *INTEGERS[4:]), (-0.75, 0.5): INTEGERS}
    cases = [(ends, target) for ends, targets in clamped.items() for target in targets]
    for lanes in (1, LANES):
        b = Builder("clamped")
        x = b.param("x", dtype[values.size])
        for number, (ends, target) in enumerate(cases):
            z = b.param(f"z{number}", target[values.size], out=True)
            low, high = (each if lanes == 1 else Broadcast(each, lanes) for each in (FloatImm(dtype, e) for e in ends))
            with b.for_("i", 0, values.size // lanes) as i:
                index = i if lanes == 1 else Ramp(i * lanes, IntImm(i64, 1), lanes)
                b.store(z, index, Cast(target.with_lanes(lanes), Min(Max(x[index], low), high)))
        for ((low, high), target), found in zip(cases, tl.compile(b.build())(values), strict=True):
            within = np.minimum(np.maximum(values, dtype.numpy.type(low)), dtype.numpy.type(high))
            np.testing.assert_array_equal(found, saturated(within, target))


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
    cases = [(target, ends) for target in (i8, u8, i32, u32, i64, u64) for ends in ((0, 3), (0, 100))]
    cases += [(target, ends) for target in (i8, i32, i64) for ends in ((-7, 0), (-50, 99))]
    above = [(target, (2, 9)) for target in (i8, i32, i64)]
    for group in (cases, above):
        b = Builder("rounded")
        x = b.param("x", dtype[values.size])
        for number, (target, ends) in enumerate(group):
            z, w = (b.param(f"{name}{number}", target[values.size], out=True) for name in "zw")
            low, high = (IntImm(target, end) for end in ends)
            with b.for_("i", 0, values.size) as i:
                rounded = Cast(target, x[i])
                b.store(z, i, Min(Max(rounded, low), high))
                b.store(w, i, Max(low, Min(high, rounded)))
        kernel = tl.compile(b.build())
        assert group is above or ".sat." not in kernel.llvm
        found = kernel(values)
        for (target, ends), made in zip(group, zip(found[::2], found[1::2], strict=True), strict=True):
            for each in made:
                np.testing.assert_array_equal(each, np.clip(saturated(values, target), *ends))


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
