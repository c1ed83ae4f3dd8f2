"""Element types against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tirlite.ir import SCALARS, bf16, bool_, dtype_of, f16, f32, handle, i8, i64, u8, u64
from tirlite.ir.dtype import DType

NUMPY_SCALARS = [dtype for dtype in SCALARS if dtype is not bf16]


@pytest.mark.parametrize("dtype", NUMPY_SCALARS, ids=str)
def test_sizes_and_ranges_are_those_of_numpy(dtype: DType) -> None:
    assert dtype.bytes == dtype.numpy.itemsize
    assert dtype.is_float == np.issubdtype(dtype.numpy, np.floating)
    assert dtype.is_integer == np.issubdtype(dtype.numpy, np.integer)
    if dtype.is_integer:
        assert (dtype.min, dtype.max) == (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)


@pytest.mark.parametrize("dtype", [bf16, handle], ids=str)
def test_some_types_are_not_in_numpy(dtype: DType) -> None:
    with pytest.raises(TypeError, match="NumPy has no type for"):
        dtype.numpy


@pytest.mark.parametrize("dtype", [*SCALARS, handle, f32.with_lanes(8), bool_.with_lanes(16)], ids=str)
def test_a_name_leads_back_to_its_type(dtype: DType) -> None:
    assert dtype_of(str(dtype)) == dtype


@pytest.mark.parametrize("name", ["", "f8", "f32x1", "f32x04", "f32x", "x4", "float32", "bool"])
def test_other_names_lead_to_none(name: str) -> None:
    assert dtype_of(name) is None


def test_lanes() -> None:
    wide = u8.with_lanes(16)
    assert (wide.name, wide.bytes, wide.scalar) == ("u8x16", 16, u8)
    assert wide.with_lanes(1) == u8
    assert bool_.with_lanes(4).bytes == 4


def test_a_type_with_a_shape() -> None:
    assert f32[3, 4].shape == (3, 4)
    assert f32[3].shape == (3,)
    assert f32[()].shape == ()
    assert f32[3] == f32[3]
    assert f32[3] != f16[3]


def test_one_family_each() -> None:
    families = ("is_bool", "is_integer", "is_float", "is_handle")
    for dtype in (*SCALARS, handle):
        assert sum(getattr(dtype, family) for family in families) == 1
    assert i8.is_signed
    assert not u64.is_signed
    assert i64.is_signed
