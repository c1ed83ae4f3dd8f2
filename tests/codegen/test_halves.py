"""float16 and bfloat16: rounded once after each operation, over all their values, without a function of a runtime."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from llvmlite import binding
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.codegen import lower
from tirlite.interp import interpret
from tirlite.ir.builder import Builder
from tirlite.ir.dtype import SCALARS, DType, bf16, bool_, f16, f32, f64, i64
from tirlite.ir.expr import (
    EQ,
    LE,
    LT,
    NE,
    Add,
    Call,
    Cast,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Max,
    Min,
    Mul,
    Neg,
    Ramp,
    Sub,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op

HALVES = (f16, bf16)
ALL = 1 << 16
EACH = 7 if IS_THOROUGH else 29  # of all values is interpreted as a scalar


def element_wise(make, result: DType, count: int, dtypes: list[DType], lanes: int = 1) -> PrimFunc:
    """`y[i] = make(x0[i], x1[i], ...)`."""
    b = Builder("apply")
    params = [b.param(f"x{number}", dtype[count]) for number, dtype in enumerate(dtypes)]
    y = b.param("y", result[count], out=True)
    with b.for_("i", 0, count // lanes) as i:
        index: Expr = i if lanes == 1 else Ramp(i * lanes, IntImm(i64, 1), lanes)
        b.store(y, index, make(*(param[index] for param in params)))
    return b.build()


def every(dtype: DType) -> np.ndarray:
    return np.arange(ALL, dtype=np.uint16).view(dtype.stored)


def as_f32(array: np.ndarray) -> np.ndarray:
    """The values of an array of f16, or of the bits of bfloat16."""
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array.astype(np.float32)


def nearest_bfloat(value: int) -> int:
    """The bits of the bfloat16 next to an integer; the even one of two as near."""
    extra = max(abs(value).bit_length() - 8, 0)
    kept, left = abs(value) >> extra, abs(value) & ((1 << extra) - 1)
    kept += 2 * left > 1 << extra or (2 * left == 1 << extra and kept & 1 == 1)
    return int(np.float32((-kept if value < 0 else kept) * 2.0**extra).view(np.uint32) >> 16)


def nearest_bfloats(values: np.ndarray) -> np.ndarray:
    """The bits of the bfloat16 next to each f64, in integers alone; the even one of two as near."""
    bits = values.astype(np.float64).view(np.int64)
    exponent = ((bits >> 52) & 0x7FF) - 1023
    digits = (bits & ((1 << 52) - 1)) | (1 << 52)
    extra = np.minimum(45 + np.maximum(-126 - exponent, 0), 62)
    kept, left = digits >> extra, digits & ((np.int64(1) << extra) - 1)
    half = np.int64(1) << (extra - 1)
    kept += (left > half) | ((left == half) & (kept & 1 == 1))
    # A carry goes on into the exponent.
    size = np.minimum(kept + (np.maximum(exponent, -126) + 126 << 7), 0x7F80)
    size = np.where(np.isnan(values), 0x7FC0, np.where(np.isinf(values), 0x7F80, size))
    return (size | ((bits >> 48) & 0x8000)).astype(np.uint16)


def assert_same(got: np.ndarray, wanted: np.ndarray, dtype: DType) -> None:
    """The same bits, but for nan, which is any nan."""
    if dtype is bf16:
        same = (got == wanted) | (np.isnan(as_f32(got)) & np.isnan(as_f32(wanted)))
    elif dtype.is_float:
        same = ((got == wanted) & (np.signbit(got) == np.signbit(wanted))) | (np.isnan(got) & np.isnan(wanted))
    else:
        same = got == wanted
    assert same.all(), (np.flatnonzero(~same)[:5], got[~same][:5], wanted[~same][:5])


def interpreted(func: PrimFunc, *arrays: np.ndarray) -> np.ndarray:
    *inputs, y = func.params
    result = np.zeros(arrays[0].size, y.dtype.stored)
    interpret(func, {**dict(zip(inputs, arrays, strict=True)), y: result})
    return result


def assert_interpreted(make, result: DType, wanted: np.ndarray, *inputs: tuple[DType, np.ndarray]) -> None:
    """The interpreter gives what is wanted: for all operands in vectors, and for some as scalars.

    `make` takes a number of lanes, and gives what makes an expression of operands.
    """
    for lanes, part in ((128, slice(None)), (1, slice(None, None, EACH))):
        count = -(-wanted[part].size // lanes) * lanes
        func = element_wise(make(lanes), result, count, [dtype for dtype, _ in inputs], lanes)
        arrays = [np.resize(array[part], count) for _, array in inputs]
        assert_same(interpreted(func, *arrays), np.resize(wanted[part], count), result)


@pytest.mark.parametrize("source", HALVES, ids=str)
@pytest.mark.parametrize("target", SCALARS, ids=str)
def test_every_value_is_cast_to_every_type_as_in_numpy(source: DType, target: DType) -> None:
    values = every(source)
    with np.errstate(all="ignore"):
        wide = as_f32(values).astype(np.float64)
    if target.is_integer:
        top = np.nan_to_num(wide, nan=0.0, posinf=1e300, neginf=-1e300)
        wanted = np.array([min(max(int(x), target.min), target.max) for x in top], target.numpy)
    elif target is bf16:
        wanted = nearest_bfloats(wide)
    else:
        with np.errstate(all="ignore"):
            wanted = (wide != 0) if target is bool_ else wide.astype(target.numpy)
    for lanes in (1, 8):
        func = element_wise(partial(Cast, target.with_lanes(lanes)), target, ALL, [source], lanes)
        assert_same(tl.compile(func)(values), wanted, target)
    assert_interpreted(lambda lanes: partial(Cast, target.with_lanes(lanes)), target, wanted, (source, values))


def numbers_between(dtype: DType) -> np.ndarray:
    """As f64: the finite values of a type, the ties between them, and what is next to those."""
    finite = as_f32(every(dtype)[:0x7C00] if dtype is f16 else every(dtype)[:0x7F80]).astype(np.float64)
    last = 2 * finite[-1] - finite[-2]
    ties = (finite + np.append(finite[1:], last)) / 2
    some = np.concatenate([finite, ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf)])
    return np.concatenate([some, -some, [np.inf, -np.inf, np.nan, 1e300, -1e-300]])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("source", [f32, f64], ids=str)
def test_floats_are_rounded_once_at_ties_and_beside_them(source: DType, dtype: DType) -> None:
    with np.errstate(all="ignore"):
        values = numbers_between(dtype).astype(source.numpy)
    with np.errstate(all="ignore"):
        wanted = rounded_to(dtype, values)
    func = element_wise(lambda x: Cast(dtype, x), dtype, values.size, [source])
    assert_same(tl.compile(func)(values), wanted, dtype)
    assert_interpreted(lambda lanes: partial(Cast, dtype.with_lanes(lanes)), dtype, wanted, (source, values))


@pytest.mark.parametrize("source", [dtype for dtype in SCALARS if dtype.is_integer], ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_integers_are_rounded_once(source: DType, dtype: DType) -> None:
    points = [m << s for m in (1, 255, 256, 257, 511, 513, 2049, 4097) for s in range(60)]
    near = [p + d for p in [*points, 65504, 65520] for d in (-1, 0, 1)]
    values = [v for p in near for v in (p, -p) if source.min <= v <= source.max]
    array = np.array([*values, source.min, source.max], source.numpy)
    if dtype is f16:
        with np.errstate(all="ignore"):
            wanted = array.astype(np.float16)
    else:
        wanted = np.array([nearest_bfloat(int(v)) for v in array], np.uint16)
    func = element_wise(lambda x: Cast(dtype, x), dtype, array.size, [source])
    assert_same(tl.compile(func)(array), wanted, dtype)
    assert_same(interpreted(func, array), wanted, dtype)


ARITHMETIC = {Add: np.add, Sub: np.subtract, Mul: np.multiply, Div: np.divide}
ARITHMETIC |= {FloorDiv: np.floor_divide, FloorMod: np.remainder}
COMPARISONS = {EQ: np.equal, NE: np.not_equal, LT: np.less, LE: np.less_equal}


def partners(dtype: DType) -> np.ndarray:
    """For each value another one, about as many times each."""
    shuffled = (np.arange(ALL, dtype=np.uint32) * 40503 + 12345).astype(np.uint16)
    return shuffled.view(dtype.stored)


def rounded_to(dtype: DType, exact: np.ndarray) -> np.ndarray:
    """Floats as `dtype`."""
    return exact.astype(np.float16) if dtype is f16 else nearest_bfloats(exact)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("kind", [Add, Sub, Mul, Div])
def test_arithmetic_rounds_the_exact_result_once(kind: type, dtype: DType) -> None:
    a, b = every(dtype), partners(dtype)
    # In f64 products are exact, and sums and quotients are never so near to a tie that f64 cannot tell.
    with np.errstate(all="ignore"):
        wanted = rounded_to(dtype, ARITHMETIC[kind](as_f32(a).astype(np.float64), as_f32(b).astype(np.float64)))
    for lanes in (1, 4):
        func = element_wise(kind, dtype, ALL, [dtype, dtype], lanes)
        assert_same(tl.compile(func)(a, b), wanted, dtype)
    assert_interpreted(lambda lanes: kind, dtype, wanted, (dtype, a), (dtype, b))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("kind", [FloorDiv, FloorMod, Min, Max, EQ, NE, LT, LE, Neg])
def test_the_other_operators_are_the_same_in_the_interpreter_and_in_code(kind: type, dtype: DType) -> None:
    a, b = every(dtype)[::5].copy(), partners(dtype)[::5].copy()
    operands = [a] if kind is Neg else [a, b]
    result = bool_ if kind in COMPARISONS else dtype
    func = element_wise(kind, result, a.size, [dtype] * len(operands))
    got = tl.compile(func)(*operands)
    assert_interpreted(lambda lanes: kind, result, got, *((dtype, each) for each in operands))
    with np.errstate(all="ignore"):
        x, y = as_f32(a), as_f32(b)
        if kind in COMPARISONS:
            assert_same(got, COMPARISONS[kind](x, y), bool_)
        elif dtype is f16 and kind in ARITHMETIC:
            assert_same(got, ARITHMETIC[kind](a, b), f16)
        elif kind is Min:
            assert_same(got, np.where((x < y) | (x != x), a, b), dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("op", [Op.SQRT, Op.ABS, Op.FLOOR, Op.CEIL, Op.ROUND, Op.TRUNC, Op.ISNAN], ids=str)
def test_roundings_and_roots_are_exact(op: Op, dtype: DType) -> None:
    reference = {Op.ABS: np.abs, Op.ROUND: np.rint}.get(op) or getattr(np, op.label)
    result = bool_ if op is Op.ISNAN else dtype
    with np.errstate(all="ignore"):
        wanted = reference(as_f32(every(dtype)).astype(np.float64))
        wanted = wanted if op is Op.ISNAN else rounded_to(dtype, wanted)

    def make(lanes: int):
        return lambda x: Call(result.with_lanes(lanes), op, (x,))

    func = element_wise(make(1), result, ALL, [dtype])
    assert_same(tl.compile(func)(every(dtype)), wanted, result)
    assert_interpreted(make, result, wanted, (dtype, every(dtype)))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_fused_product_is_rounded_once(dtype: DType) -> None:
    digits = 11 if dtype is f16 else 8
    one = 1 + 2.0 ** (1 - digits)
    # The product is a tie, which only the tiny summand breaks.
    product = [one, one, one, 1.5, np.inf, np.nan]
    other = [1 + 2.0 ** -(digits - 1), one, 0.5, one, 0.0, 1.0]
    tiny = 2.0**-24 if dtype is f16 else 2.0**-120
    added = [tiny, -tiny, 1.0, -tiny, 1.0, 1.0]
    arrays = [rounded_to(dtype, np.array(each)) for each in (product, other, added)]
    a, b, c = (as_f32(each) for each in arrays)
    exact = [
        Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        for x, y, z in zip(a[:4], b[:4], c[:4], strict=True)
    ]
    func = element_wise(lambda x, y, z: Call(dtype, Op.FMA, (x, y, z)), dtype, 6, [dtype] * 3)
    got, again = tl.compile(func)(*arrays), interpreted(func, *arrays)
    assert_same(got, again, dtype)
    candidates = [Fraction(float(x)) for x in as_f32(every(dtype)) if np.isfinite(x)]
    for result, value in zip(as_f32(got[:4]), exact, strict=True):
        assert abs(Fraction(float(result)) - value) == min(abs(each - value) for each in candidates)
    assert np.isnan(as_f32(got)[4:]).all()


def test_a_scalar_is_rounded_and_its_range_is_checked() -> None:
    b = Builder("scaled")
    s, y = b.param("s", f16), b.param("y", f16[1], out=True)
    b.store(y, 0, s)
    kernel = tl.compile(b.build())
    assert kernel(0.1)[0] == np.float16(0.1)
    assert kernel(np.float16(2.5))[0] == 2.5
    with pytest.raises(tl.CallValueError, match="65504"):
        kernel(70000.0)


def test_bfloat_arrays_are_their_bits() -> None:
    @tl.kernel
    def double(x: tl.bf16[4], y: tl.out[tl.bf16[4]]):
        for i in range(4):
            y[i] = x[i] * 2.0 + 1

    bits = (np.array([0.0, 1.0, -0.5, 3.0], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    result = double(bits)
    assert result.dtype == np.uint16
    assert as_f32(result).tolist() == [1.0, 3.0, 0.0, 7.0]
    with pytest.raises(tl.CallTypeError, match="bits of bfloat16"):
        double(np.zeros(4, np.float32))


def test_bfloat_arrays_of_another_library_are_taken() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    func = element_wise(lambda x: Add(x, x), bf16, 4, [bf16])
    x = np.array([0.5, 1, 2, 3], bfloat16)
    assert tl.compile(func)(x).view(bfloat16).astype(np.float32).tolist() == [1, 2, 4, 6]
    y = np.zeros(4, bfloat16)
    tl.compile(func)(x, y)
    assert y.astype(np.float32).tolist() == [1, 2, 4, 6]


def test_no_function_of_a_runtime_is_called() -> None:
    """On a processor that has no conversions of its own."""
    b = Builder("all_casts")
    x = [b.param(f"x{dtype}", dtype[8]) for dtype in SCALARS if not dtype.is_bool]
    y = [b.param(f"y{dtype}", dtype[8]) for dtype in SCALARS if not dtype.is_bool]
    with b.for_("i", 0, 8) as i:
        for source in x:
            for target in y:
                b.store(target, i, (source[i].astype(target.dtype) + target[i]).astype(target.dtype))
    b.store(y[-1], 0, Call(bf16, Op.FMA, (const(2.0, bf16),) * 3).astype(f64))
    module = binding.parse_assembly(lower(b.build()).text)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="x86-64", features="-f16c", opt=2, reloc="pic")
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    calls = {word for word in machine.emit_assembly(module).split() if word.endswith("@PLT")}
    assert calls == set()


@pytest.mark.parametrize(("target", "is_one"), [("x86-64-v2", False), ("x86-64-v3", True), ("aarch64", True)])
def test_processors_that_convert_float16_do_so_by_one_instruction(target: str, is_one: bool) -> None:
    func = element_wise(lambda a, b: Add(Mul(a, b), b), f16, 64, [f16, f16])
    text = tl.compile(func, target=tl.Target(target)).llvm
    assert ("fpext half" in text) is ("fptrunc float" in text) is is_one


def test_vectors_of_f64_are_rounded_to_float16_by_way_of_f32() -> None:
    """LLVM would call `__truncdfhf2` for each lane."""
    func = tl.parse("""
    n = tl.dim("n")

    @tl.kernel
    def powers(x: tl.f64[n], y: tl.f16[n]):
        for i in range(n):
            y[i] = tl.f16(tl.exp(x[i]))
    """)
    lines = tl.compile(func, target=tl.Target("x86-64-v3")).llvm.splitlines()
    narrowed = [line for line in lines if "fptrunc" in line and "half>" in line]
    assert narrowed
    assert not any("double" in line for line in narrowed)
