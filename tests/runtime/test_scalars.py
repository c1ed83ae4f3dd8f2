"""Scalar arguments: what numbers are taken for each type."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.ir import SCALARS, DType, bool_, f32, f64, i8, i64, u8, u64
from tirlite.ir.builder import Builder
from tirlite.runtime.scalars import scalar_value

TAKEN = [dtype for dtype in SCALARS if dtype.bits != 16 or dtype.is_integer]


@pytest.mark.parametrize("dtype", TAKEN, ids=str)
def test_a_scalar_arrives_as_it_is(dtype: DType) -> None:
    b = Builder("keep")
    a, y = b.param("a", dtype), b.param("y", dtype[1], out=True)
    b.store(y, 0, a)
    kernel = tl.compile(b.build())
    values = [True, False] if dtype.is_bool else [0.1, -0.0, np.inf] if dtype.is_float else [dtype.min, dtype.max, 1]
    for value in values:
        for given in (value, dtype.numpy.type(value), np.array(value, dtype.numpy)):
            got = kernel(given)[0]
            assert got == dtype.numpy.type(value)
            assert np.signbit(got) == np.signbit(value) if dtype.is_float else True


@every(
    "dtype, given",
    [(i8, 128), (i8, -129), (u8, -1), (u8, 256), (i64, 2**63), (u64, 2**64), (bool_, 2), (f32, 1e39), (f64, 10**400)],
)
def test_a_number_beyond_its_type_is_refused(dtype: DType, given: float) -> None:
    with pytest.raises(tl.CallValueError, match=f"`a` is .*, which {dtype} does not hold"):
        scalar_value("a", dtype, given)


@pytest.mark.parametrize("dtype", [i64, f32, bool_], ids=str)
def test_a_number_that_python_does_not_write_is_refused_alike(dtype: DType) -> None:
    with pytest.raises(tl.CallValueError, match=rf"`a` is -1\.0e\+5000, which {dtype} does not hold"):
        scalar_value("a", dtype, -(10**5000))


@pytest.mark.parametrize(
    ("dtype", "given", "wanted"),
    [
        (i64, 1.0, "an integer"),
        (i64, np.float64(2), "an integer"),
        (bool_, 0.5, "True or False"),
        (f32, 1j, "a number"),
        (f32, "1", "a number"),
        (i64, None, "an integer"),
        (f32, np.zeros(1), "a number"),
    ],
)
def test_something_else_than_a_fitting_number_is_refused(dtype: DType, given: object, wanted: str) -> None:
    with pytest.raises(tl.CallTypeError, match=f"`a` must be {wanted} \\({dtype}\\), and is"):
        scalar_value("a", dtype, given)


def test_a_float_is_rounded_to_the_type_of_its_parameter() -> None:
    b = Builder("keep")
    a, y = b.param("a", f32), b.param("y", f64[1], out=True)
    b.store(y, 0, a)
    assert tl.compile(b.build())(0.1)[0] == np.float32(0.1)
