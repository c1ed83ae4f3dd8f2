"""Promotion, cell by cell against NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
from every import every

from tirlite.ir import SCALARS, bf16, f16, f32, f64, handle, i8, i16, i32, i64, literal_type, promote, u8
from tirlite.ir.dtype import DType

NUMPY_SCALARS = [dtype for dtype in SCALARS if dtype is not bf16]


@every("a, b", product(NUMPY_SCALARS, repeat=2))
def test_every_pair_meets_where_numpy_says(a: DType, b: DType) -> None:
    met = promote(a, b)
    assert met is not None
    assert met.numpy == np.promote_types(a.numpy, b.numpy)


@every("literal, dtype", product([True, 1, 1.5], NUMPY_SCALARS))
def test_literals_are_weak_as_in_numpy(literal: bool | int | float, dtype: DType) -> None:
    met = promote(literal_type(literal, dtype), dtype)
    assert met is not None
    assert met.numpy == np.result_type(literal, dtype.numpy)


def test_literals_alone() -> None:
    assert [literal_type(value, None).name for value in (True, 1, 1.5)] == ["bool_", "i64", "f64"]


@every("other, met", [(bf16, bf16), (u8, bf16), (i16, f32), (i32, f64), (i64, f64), (f16, f32), (f32, f32), (f64, f64)])
def test_bfloat16_is_a_float_of_16_bits(other: DType, met: DType) -> None:
    assert promote(bf16, other) == promote(other, bf16) == met


def test_handles_meet_nothing_else() -> None:
    assert promote(handle, i64) is None
    assert promote(handle, handle) == handle


def test_a_scalar_spreads_over_lanes_but_lanes_differ_for_good() -> None:
    assert promote(i8.with_lanes(4), f32) == f32.with_lanes(4)
    assert promote(f32.with_lanes(4), i64.with_lanes(4)) == f64.with_lanes(4)
    assert promote(f32.with_lanes(4), f32.with_lanes(8)) is None
