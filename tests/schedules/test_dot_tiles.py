"""Products of bytes by tiles of a processor: exact to the bit, whatever the sizes, and where the system has none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from schedules.test_dots import product_of
from small_tiles import SMALL

import tirlite as tl
from tirlite.kernels.operators.byte_sums import conv_bytes
from tirlite.schedules import UnrollJam
from tirlite.schedules.auto.tiling import Tiling
from tirlite.target.processor import HOST, processor_called

n, m, k = tl.dims("n m k")
TILED = replace(SMALL, row_bytes=128, vector_bytes=64, dots=("u8 s8", "s16 s16"), masks_bytes=True, has_tiles=True)
PAIRS = [(one, other) for one in (tl.i8, tl.u8) for other in (tl.i8, tl.u8)]


@pytest.fixture(autouse=True)
def _tiles() -> Iterator[None]:
    """Schedules are made for tiles; where there are none the loops run as they are written."""
    with patch.object(Tiling, "of", lambda target: TILED):
        yield


def extremes(rng: np.random.Generator, dtype: tl.ir.DType, *shape: int) -> np.ndarray:
    """Numbers of all sizes, and many of the largest and of the least."""
    numbers = rng.integers(dtype.min, dtype.max, shape, dtype.numpy, endpoint=True)
    ends = rng.choice([dtype.min, dtype.max], shape)
    return np.where(rng.random(shape) < 0.4, ends, numbers).astype(dtype.numpy)


def goes_by_tiles(kernel: tl.Kernel) -> bool:
    return any(isinstance(step, UnrollJam) and step.rolled for step in kernel.schedule.steps)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_products_of_all_sizes_are_exact(one: tl.ir.DType, other: tl.ir.DType) -> None:
    rng = np.random.default_rng(5)
    kernel, shared = (tl.compile(product_of(one, other), target=tl.Target.host(workers=count)) for count in (1, 2))
    assert goes_by_tiles(kernel)
    for number in range(30):
        rows, columns, terms = (int(each) for each in rng.integers(1, 131, 3))
        a, b = extremes(rng, one, rows, terms), extremes(rng, other, terms, columns)
        wanted = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
        np.testing.assert_array_equal((shared if number % 3 == 0 else kernel)(a, b), wanted)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_few_rows_are_one_tile_beside_four(one: tl.ir.DType, other: tl.ir.DType) -> None:
    rng = np.random.default_rng(11)
    with patch.object(Tiling, "of", lambda target: replace(TILED, row_bytes=256)):
        kernel = tl.compile(product_of(one, other), target=tl.Target.host(workers=1))
        assert goes_by_tiles(kernel)
    for rows in (1, 7, 15, 16, 17):
        columns, terms = (int(each) for each in rng.integers(1, 200, 2))
        a, b = extremes(rng, one, rows, terms), extremes(rng, other, terms, columns)
        np.testing.assert_array_equal(kernel(a, b), (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))


def test_a_row_may_have_more_columns_than_a_byte_counts() -> None:
    rng, kernel = np.random.default_rng(9), product_of(tl.i8, tl.i8)
    with patch.object(Tiling, "of", lambda target: replace(TILED, row_bytes=256)):
        for columns in (100, 127, 128, 129):
            a, b = extremes(rng, tl.i8, 5, 9), extremes(rng, tl.i8, 9, columns)
            np.testing.assert_array_equal(kernel(a, b), a.astype(np.int32) @ b.astype(np.int32))


def test_lowered_code_means_the_same() -> None:
    rng = np.random.default_rng(6)
    kernel = product_of(tl.i8, tl.i8)
    assert "a tile of 32 x 64 sums goes by those of the processor" in str(kernel.schedule)
    lowered = tl.compile(kernel.lowered, schedule=None)
    for rows, columns, terms in ((37, 20, 9), (4, 33, 70), (33, 2, 1)):
        a, b = extremes(rng, tl.i8, rows, terms), extremes(rng, tl.i8, terms, columns)
        wanted = kernel.interpret(a, b)
        np.testing.assert_array_equal(lowered.interpret(a, b), wanted)
        np.testing.assert_array_equal(kernel(a, b), wanted)
        np.testing.assert_array_equal(tl.compile(kernel, debug=True)(a, b), wanted)


@pytest.mark.parametrize("workers", [1, 2])
def test_long_sums_are_stored_where_they_belong(workers: int) -> None:
    rng, kernel = (
        np.random.default_rng(12),
        tl.compile(product_of(tl.i8, tl.u8), target=tl.Target.host(workers=workers)),
    )
    assert "direct" in kernel.llvm
    for rows, columns, terms in (
        (1, 64, 256),
        (31, 64, 300),
        (33, 130, 256),
        (64, 63, 513),
        (70, 192, 255),
        (7, 1, 700),
    ):
        a, b = extremes(rng, tl.i8, rows, terms), extremes(rng, tl.u8, terms, columns)
        memory = np.full((rows + 2, columns), 77, np.int32)
        kernel(a, b, memory[1:-1])
        np.testing.assert_array_equal(memory[1:-1], (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32))
        assert (memory[[0, -1]] == 77).all()


def test_sums_that_are_scaled_are_not_stored_at_once() -> None:
    @tl.kernel
    def scaled(a: tl.i8[n, k], b: tl.i8[k, m], y: tl.out[tl.f32[n, m]]):
        for i in range(n):
            for j in range(m):
                total = tl.i32(0)
                for p in tl.reduce(k):
                    total += tl.i32(a[i, p]) * tl.i32(b[p, j])
                y[i, j] = 0.5 * tl.f32(total)

    kernel = tl.compile(scaled, target=tl.Target.host(workers=1))
    assert goes_by_tiles(kernel)
    assert "direct" not in kernel.llvm
    rng = np.random.default_rng(13)
    a, b = extremes(rng, tl.i8, 40, 300), extremes(rng, tl.i8, 300, 64)
    np.testing.assert_array_equal(kernel(a, b), np.float32(0.5) * (a.astype(np.int32) @ b.astype(np.int32)))


def test_sums_wrap_around() -> None:
    a, b = np.full((9, 1 << 17), 255, np.uint8), np.full((1 << 17, 17), -128, np.int8)
    wanted = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(product_of(tl.u8, tl.i8)(a, b), wanted)


def convolution(outputs: int, inputs: int) -> tuple[tl.ir.PrimFunc, list[tuple[tl.ir.DType, tuple[int, ...]]]]:
    shapes = [(tl.u8, (1, inputs, 9, 20)), (tl.u8, (1,)), (tl.i8, (outputs, 3, 3, inputs)), (tl.i32, (outputs,))]
    types = [tl.ir.TensorType(dtype, shape) for dtype, shape in (*shapes, (tl.i32, (1, outputs, 9, 20)))]
    return conv_bytes(*types, strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1)), shapes


@pytest.mark.parametrize(("outputs", "inputs"), [(16, 32), (75, 40), (150, 80)])
def test_windows_are_parts_of_the_terms(outputs: int, inputs: int) -> None:
    rng = np.random.default_rng(7)
    function, shapes = convolution(outputs, inputs)
    kernel = tl.compile(function, target=tl.Target.host(workers=2))
    assert goes_by_tiles(kernel)
    given = [extremes(rng, dtype, *shape) for dtype, shape in shapes]
    np.testing.assert_array_equal(kernel(*given), tl.compile(function, schedule=None)(*given))


def test_few_terms_fill_no_tiles() -> None:
    assert not goes_by_tiles(tl.compile(convolution(64, 16)[0]))


def test_rows_that_add_to_one_sum_stay_loops() -> None:
    @tl.kernel
    def together(a: tl.u8[9, 8], b: tl.i8[2, 64], y: tl.out[tl.i32[16]]):
        t = tl.alloc(tl.i32[1, 16])
        t[0, tl.ramp(0, 1, 16)] = tl.broadcast(tl.i32(0), 16)
        for i in range(9):
            for p in range(2):
                t[0, tl.ramp(0, 1, 16)] = tl.dot(
                    t[0, tl.ramp(0, 1, 16)], a[i, tl.ramp(p * 4, 1, 4)], b[p, tl.ramp(0, 1, 64)]
                )
        y[tl.ramp(0, 1, 16)] = t[0, tl.ramp(0, 1, 16)]

    rng = np.random.default_rng(8)
    a, b = extremes(rng, tl.u8, 9, 8), extremes(rng, tl.i8, 2, 64)
    np.testing.assert_array_equal(tl.compile(together, schedule=None)(a, b), together.interpret(a, b))


needs_tiles = pytest.mark.skipif(not processor_called(HOST).has_tiles, reason="this processor has no tiles")


@needs_tiles
def test_code_has_their_instructions() -> None:
    assert "tdpbusd" in product_of(tl.u8, tl.i8).asm
    assert "tdpbsud" in product_of(tl.i8, tl.u8).asm


_DENIED = """
import ctypes
import numpy as np
import tirlite as tl
from tirlite.target import processor

# A thread whose handlers have too small a stack for these registers keeps the process from having them.
class Stack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

space = ctypes.create_string_buffer(4096)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.sigaltstack(ctypes.byref(Stack(ctypes.addressof(space), 0, 4096)), None) == 0
assert not processor.lets_tiles_be()
IS_MADE_ELSEWHERE and setattr(processor, "lets_tiles_be", lambda: True)

@tl.kernel
def multiply(a: tl.LEFT[64, 64], b: tl.i8[64, 64], y: tl.out[tl.i32[64, 64]]):
    for i in range(64):
        for j in range(64):
            y[i, j] = 0
            for p in tl.reduce(64):
                y[i, j] += tl.i32(a[i, p]) * tl.i32(b[p, j])

a, b = np.full((64, 64), tl.LEFT.min, tl.LEFT.numpy), np.full((64, 64), -128, np.int8)
a[::3] = tl.LEFT.max
assert ("tdpb" in multiply.asm) is IS_MADE_ELSEWHERE
assert (multiply(a, b) == a.astype(np.int32) @ b.astype(np.int32)).all()
"""


@needs_tiles
@pytest.mark.parametrize("left", ["u8", "i8"])
@pytest.mark.parametrize("is_made_elsewhere", [False, True])
def test_nothing_goes_by_tiles_where_the_system_has_none_for_the_process(
    tmp_path: Path, left: str, *, is_made_elsewhere: bool
) -> None:
    program = tmp_path / "denied.py"
    program.write_text(_DENIED.replace("IS_MADE_ELSEWHERE", str(is_made_elsewhere)).replace("LEFT", left))
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
