"""Convolutions that read windows in place, in rows that are longer than those of their results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from effort import effort

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.diag import KernelError

c, h, w, o, n = tl.dims("c h w o n")


@pytest.fixture(autouse=True)
def _quickly_compiled() -> Iterator[None]:
    with effort(Effort.NONE):
        yield


@tl.kernel
def windows(x: tl.f32[c, h + 2, w + 2], f: tl.f32[o, c, 3, 3], b: tl.f32[o], y: tl.out[tl.f32[o, h, w]]):
    for q in range(o):
        for i in range(h):
            for j in range(w):
                s = tl.f32(0)
                for p in tl.reduce(c):
                    for u in tl.reduce(3):
                        for v in tl.reduce(3):
                            s += f[q, p, u, v] * x[p, i + u, j + v]
                y[q, i, j] = s + b[q]


@tl.kernel
def accumulated(x: tl.f64[n, c, h + 1, w + 3], f: tl.f64[o, c, 2, 4], y: tl.out[tl.f64[n, o, h, w]]):
    for a in range(n):
        for q in range(o):
            for i in range(h):
                for j in range(w):
                    y[a, q, i, j] = 0
                    for p in tl.reduce(c):
                        for u in tl.reduce(2):
                            for v in tl.reduce(4):
                                y[a, q, i, j] += f[q, p, u, v] * x[a, p, i + u, j + v]


def fused() -> tl.Schedule:
    s = tl.schedule(windows)
    s.specialize("q", {"j": 4, "2 * j": "q"})
    s.reorder("i", "j", "q")
    s.fuse("i", "j", rows_of="x")
    return s


def same_as_interpreted(kernel: tl.Kernel, as_written: tl.Kernel, shapes: list[tuple[int, ...]]) -> None:
    """Whether sums of small integers, which are exact, are those of the kernel as it is written."""
    numbers = np.random.default_rng(3)
    kind = "f" if "f32" in str(as_written.ir) else "d"
    args = [numbers.integers(-9, 9, shape).astype(kind) for shape in shapes[:-1]]
    wanted, found, again = (np.full(shapes[-1], np.nan, kind) for _ in range(3))
    as_written.interpret(*args, wanted)
    kernel(*args, found)
    np.testing.assert_array_equal(found, wanted)
    tl.compile(kernel.lowered, schedule=None).interpret(*args, again)
    np.testing.assert_array_equal(again, wanted)


def of_windows(c: int, o: int, h: int, w: int) -> list[tuple[int, ...]]:
    return [(c, h + 2, w + 2), (o, c, 3, 3), (o,), (o, h, w)]


def test_one_loop_goes_through_the_longer_rows_and_stores_only_in_its_own() -> None:
    text = str(fused().func)
    assert "if w >= 4 and 2 * w >= o:" in text
    assert "x_flat = tl.view(x, tl.f32[c, (h + 2) * (w + 2)])" in text
    assert "for i_j in range((h - 1) * (w + 2) + w):" in text
    assert "f[q, p, u, v] * x_flat[p, i_j + u * (w + 2) + v]" in text
    assert "if i_j % (w + 2) < w:\n" in text
    assert "y[q, i_j // (w + 2), i_j % (w + 2)] = s[()] + b[q]" in text
    kernel = tl.compile(windows, schedule=fused())
    for sizes in ((2, 3, 4, 5), (1, 9, 1, 4), (2, 3, 3, 3), (1, 2, 0, 5)):
        same_as_interpreted(kernel, windows, of_windows(*sizes))


@pytest.mark.parametrize("together", [1, 3])
def test_vectors_go_across_the_ends_of_rows(together: int) -> None:
    s = fused()
    s.split("i.j", 8)
    s.reorder("i.j.outer", "q", "i.j.inner")
    s.vectorize("i.j.inner", 8, padded=True, masked=True)
    if together > 1:
        s.unroll_jam("q", together)
    text = str(s.func)
    assert "x_flat[p, tl.ramp(i_j_outer + u * (w + 2) + v, 1, 8)]" in text
    assert "x_flat[p, tl.masked(tl.ramp(i_j_outer + u * (w + 2) + v, 1, 8), on)]" in text, "of the last block"
    assert "row + 2, tl.masked(" in text, "a vector touches three rows at most"
    kernel = tl.compile(windows, schedule=s)
    for sizes in ((2, 3, 4, 5), (1, 7, 1, 4), (2, 8, 5, 4), (1, 5, 7, 6), (1, 4, 6, 16), (2, 3, 3, 3), (1, 2, 0, 5)):
        same_as_interpreted(kernel, windows, of_windows(*sizes))


def test_rows_must_be_half_as_long_as_vectors() -> None:
    s = fused()
    s.split("i.j", 16)
    s.reorder("i.j.outer", "q", "i.j.inner")
    with pytest.raises(KernelError, match="rows are not known to have 8 elements or more"):
        s.vectorize("i.j.inner", 16, padded=True, masked=True)


def test_nothing_but_windows_depends_on_the_place_in_a_row() -> None:
    @tl.kernel
    def scaled(x: tl.f32[h + 2, 9], g: tl.f32[h, 7], y: tl.out[tl.f32[h, 7]]):
        for i in range(h):
            for j in range(7):
                s = tl.f32(0)
                for u in range(3):
                    s += x[i + u, j] * g[i, j]
                y[i, j] = s

    s = tl.schedule(scaled)
    with pytest.raises(KernelError, match="more is read at `i` and `j` than windows of `x`"):
        s.fuse("i", "j", rows_of="x")

    @tl.kernel
    def apart(x: tl.f32[2 * h, 16], y: tl.out[tl.f32[h, 7]]):
        for i in range(h):
            for j in range(7):
                y[i, j] = x[2 * i, j]

    s = tl.schedule(apart)
    s.fuse("i", "j", rows_of="x")  # what is stored may be read anywhere
    same_as_interpreted(tl.compile(apart, schedule=s), apart, [(6, 16), (3, 7)])


def convolution(c: int, o: int, h: int, w: int, k: int) -> tl.Kernel:
    @tl.kernel
    def sized(x: tl.f32[c, h + k - 1, w + k - 1], f: tl.f32[o, c, k, k], y: tl.out[tl.f32[o, h, w]]):
        for q in range(o):
            for i in range(h):
                for j in range(w):
                    y[q, i, j] = 0
                    for p in tl.reduce(c):
                        for u in tl.reduce(k):
                            for v in tl.reduce(k):
                                y[q, i, j] += f[q, p, u, v] * x[p, i + u, j + v]

    return sized


@pytest.mark.parametrize(
    ("sizes", "is_in_place"),
    [
        ((64, 64, 56, 56, 3), True),
        ((32, 32, 64, 64, 3), True),
        ((16, 24, 33, 56, 5), True),
        ((64, 512, 56, 56, 3), False),  # a copy serves many rows
        ((3, 32, 56, 56, 3), False),  # short sums
        ((64, 64, 14, 14, 3), False),  # short rows
        ((512, 64, 56, 56, 3), False),  # rows of too many channels
        ((64, 16, 56, 56, 3), False),  # windows are not copied, either
    ],
)
def test_windows_are_read_in_place_if_a_copy_takes_longer(sizes: tuple[int, ...], is_in_place: bool) -> None:
    kernel = tl.compile(convolution(*sizes).ir, target=tl.Target("x86-64-v4"))
    assert ("rows_of='x'" in str(kernel.schedule)) is is_in_place
    narrow = tl.compile(convolution(*sizes).ir, target=tl.Target("x86-64-v3"))
    assert "rows_of" not in str(narrow.schedule), "stores under a mask are slow there"


def test_chosen_schedules_give_what_is_written() -> None:
    s = tl.compile(accumulated.ir, target=tl.Target("x86-64-v4")).schedule
    assert "rows_of" in str(s)
    kernel = tl.compile(accumulated.ir, schedule=s)
    for sizes in ((1, 16, 25, 33, 32), (2, 17, 24, 40, 31), (1, 16, 29, 21, 51)):
        n, c, o, h, w = sizes
        x = np.random.default_rng(3).integers(-9, 9, (n, c, h + 1, w + 3)).astype("d")
        f = np.random.default_rng(4).integers(-9, 9, (o, c, 2, 4)).astype("d")
        parts = np.lib.stride_tricks.sliding_window_view(x, (2, 4), axis=(2, 3))
        np.testing.assert_array_equal(kernel(x, f), np.einsum("ocuv,nchwuv->nohw", f, parts, optimize=True))
