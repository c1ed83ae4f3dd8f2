"""Element types against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from every import every

from tirlite import dim
from tirlite.diag import KernelError
from tirlite.ir import SCALARS, bf16, bool_, dtype_of, f16, f32, handle, i8, i64, u8, u64
from tirlite.ir.dtype import DType
from tirlite.sizes import Dim

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


@every("name", ["", "f8", "f32x1", "f32x04", "f32x", "x4", "float32", "bool"])
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


@pytest.mark.parametrize(
    "extent",
    [2.5, -1, True, None, "n", 2 * dim("n") / 3, slice(2), -(10**5000)],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_extent_is_refused_where_it_is_written(extent: object) -> None:
    with pytest.raises(KernelError, match=r"^error\[type-extent\]: extent 1 of .* tl.f32 is"):
        f32[4, extent]


def test_a_dim_in_quotes_is_answered_with_a_dim() -> None:
    with pytest.raises(KernelError, match=r"extent 0 of .* is 'n'(?s:.*)expression of dims: n = tl\.dim\('n'\)"):
        f32["n"]


def test_a_quotient_is_answered_with_the_division_of_integers() -> None:
    with pytest.raises(KernelError, match=r"is an expression of type f64(?s:.*)integers are divided by //"):
        f32[dim("n") / 2]


def test_extents_are_integers_of_any_kind_and_expressions() -> None:
    n = dim("n")
    assert f32[n, 2 * n, np.int32(3)].shape[::2] == (n, 3)
    size = Dim("m")
    assert f32[size, 2 * size].shape == (size, 2 * size)


def test_one_family_each() -> None:
    families = ("is_bool", "is_integer", "is_float", "is_handle")
    for dtype in (*SCALARS, handle):
        assert sum(getattr(dtype, family) for family in families) == 1
    assert i8.is_signed
    assert not u64.is_signed
    assert i64.is_signed
