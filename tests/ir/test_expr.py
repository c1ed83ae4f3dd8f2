"""Expressions: what the operators make, and the types of what they make."""

from __future__ import annotations

import math
import operator
import random
import struct
from collections.abc import Callable

import numpy as np
import pytest
import sympy
from every import every

from tirlite import ir, sizes
from tirlite.ir import bf16, bool_, const, f16, f32, f64, handle, i8, i32, i64, u8
from tirlite.ir.dtype import rounded

k = ir.Var("k")
a = ir.Var("a", f32)
small = ir.Var("small", i8)
x = ir.Buffer("x", f32, (k, k))


@every(
    "python, kind",
    [
        (operator.add, ir.Add),
        (operator.sub, ir.Sub),
        (operator.mul, ir.Mul),
        (operator.floordiv, ir.FloorDiv),
        (operator.mod, ir.FloorMod),
        (operator.lt, ir.LT),
        (operator.le, ir.LE),
        (operator.gt, ir.GT),
        (operator.ge, ir.GE),
    ],
)
def test_operators_make_nodes(python: Callable[[ir.Expr, object], ir.Expr], kind: type[ir.Node]) -> None:
    made = python(k, 2)
    assert type(made) is kind
    assert made.a is k
    assert (made.b.dtype, made.b.value) == (i64, 2)


@pytest.mark.parametrize(
    ("python", "kind"),
    [
        (operator.add, ir.Add),
        (operator.sub, ir.Sub),
        (operator.mul, ir.Mul),
        (operator.floordiv, ir.FloorDiv),
        (operator.mod, ir.FloorMod),
    ],
)
def test_a_literal_may_stand_on_the_left(python: Callable[[object, ir.Expr], ir.Expr], kind: type[ir.Node]) -> None:
    made = python(2, k)
    assert type(made) is kind
    assert made.b is k
    assert made.a.value == 2


def test_a_reflected_comparison_is_turned_round() -> None:
    made = 2 < k
    assert type(made) is ir.GT
    assert made.a is k


def test_division_of_integers_is_in_f64() -> None:
    made = k / 2
    assert made.dtype == f64
    assert isinstance(made.a, ir.Cast)
    assert (a / 2).dtype == f32
    assert (2 / a).a.dtype == f32


def test_operands_are_promoted_by_explicit_casts() -> None:
    made = small + a
    assert made.dtype == f32
    assert isinstance(made.a, ir.Cast)
    assert made.b is a


def test_a_vector_and_a_scalar_meet_in_a_broadcast() -> None:
    made = ir.Ramp(k, const(1, i64), 4) + small
    assert made.dtype == i64.with_lanes(4)
    assert isinstance(made.b, ir.Broadcast)
    assert isinstance(made.b.value, ir.Cast)


def test_operands_that_never_meet_are_refused() -> None:
    with pytest.raises(TypeError, match="Add of handle and i64"):
        ir.Var("h", handle) + k


def test_a_literal_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OverflowError, match=r"300 does not fit into i8 \(-128 to 127\)"):
        small + 300


def test_comparisons_give_bools_of_as_many_lanes() -> None:
    assert (k < 3).dtype == bool_
    assert (ir.Ramp(k, const(1, i64), 4) < 3).dtype == bool_.with_lanes(4)


SIZE = 3 * sizes.Dim("n", min=1) + 1
SYMBOL = sympy.Symbol("n", integer=True, positive=True)


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod])
@pytest.mark.parametrize("other", [SIZE, SYMBOL, 2 * SYMBOL + 1, np.int64(3)])
def test_sizes_and_symbols_are_operands_on_both_sides(operation: Callable[..., object], other: object) -> None:
    """A symbol is the dim of its name, which has the same variable on both sides."""
    n = ir.Var("n", i64, sizes.Dim("n", min=1))
    assert isinstance(operation(n, other), ir.Expr)
    assert {node for node in ir.walk(operation(n, other)) if isinstance(node, ir.Var)} == {n}
    assert sizes.as_size(operation(n, other)) == operation(sizes.as_size(n), sizes.as_size(sympy.sympify(other)))
    assert sizes.as_size(operation(other, n)) == operation(sizes.as_size(sympy.sympify(other)), sizes.as_size(n))


def test_an_element_and_a_size_meet() -> None:
    assert (x[k, 0] + SIZE).dtype == f64
    assert (SIZE + x[k, 0]).dtype == f64


def test_dims_become_symbols() -> None:
    n = ir.Var("n", i64, sizes.Dim("n", min=1))
    assert sympy.sympify(n * n + 1) == SYMBOL**2 + 1
    with pytest.raises(sympy.SympifyError):
        sympy.sympify(x[k, 0], strict=True)


@pytest.mark.parametrize("other", ["a", None, [1], object()])
def test_what_is_no_operand_is_told(other: object) -> None:
    with pytest.raises(TypeError, match="a size is an int, a dim or a sum of them, not"):
        operator.add(k, other)


def test_an_expression_has_no_truth() -> None:
    with pytest.raises(TypeError, match="the value of `k < 3` is known only when the kernel runs"):
        bool(k < 3)


def test_equality_is_identity() -> None:
    assert k == k
    assert ir.Var("k") != k
    assert len({k, ir.Var("k")}) == 2


def test_an_element_has_the_type_of_its_buffer_times_the_lanes_of_the_index() -> None:
    assert x[k, 0].dtype == f32
    assert x[k, ir.Ramp(k, const(1, i64), 4)].dtype == f32.with_lanes(4)
    assert ir.Buffer("s", u8, ())[()].dtype == u8


def test_constants() -> None:
    assert isinstance(const(1, f32), ir.FloatImm)
    assert isinstance(const(True, bool_), ir.IntImm)
    spread = const(3, i32.with_lanes(4))
    assert isinstance(spread, ir.Broadcast)
    assert spread.dtype == i32.with_lanes(4)
    with pytest.raises(TypeError, match=r"1\.5 is not a constant of type i32"):
        const(1.5, i32)
    with pytest.raises(OverflowError):
        const(2, bool_)


def random_floats(count: int) -> list[float]:
    draw = random.Random(7)
    anywhere = [struct.unpack("d", draw.randbytes(8))[0] for _ in range(count)]
    in_range = [draw.uniform(-1, 1) * 2.0 ** draw.randint(-160, 140) for _ in range(count)]
    halves = [math.ldexp(2 * draw.randint(0, 2**11) + 1, draw.randint(-26, 4)) for _ in range(count)]
    return [*anywhere, *in_range, *halves, 0.0, -0.0, math.inf, -math.inf, 65519.999, 65520.0]


@pytest.mark.parametrize("dtype", [f16, f32, f64], ids=str)
def test_float_constants_are_rounded_as_numpy_rounds(dtype: ir.DType) -> None:
    for value in random_floats(3000):
        with np.errstate(all="ignore"):
            expected = float(dtype.numpy.type(value))
        assert struct.pack("d", rounded(value, dtype)) == struct.pack("d", expected) or math.isnan(value)


def test_bfloat16_constants_are_rounded_once() -> None:
    # A hair above the middle between two neighbours; by way of f32 it would become the middle, and go to even.
    assert rounded(1 + 2.0**-8 + 2.0**-40, bf16) == 1 + 2.0**-7
    assert rounded(1 + 2.0**-8, bf16) == 1.0
    assert rounded(3.4e38, bf16) == math.inf
    assert rounded(2.0**-133, bf16) == 2.0**-133
    assert math.copysign(1, rounded(-(2.0**-140), bf16)) == -1
