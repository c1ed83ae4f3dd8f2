"""DoubleBuffer, before and after: the next iteration's data is loaded before this one's work."""

from textwrap import dedent, indent

import numpy as np
import pytest
from every import every
from rewrite.before_after import BeforeAfter, kernel

import tirlite as tl
from tirlite.interp import interpret
from tirlite.rewrite import DoubleBuffer, SplitThreads

PASS = BeforeAfter((DoubleBuffer(),))


def test_two_copies_in_turn_and_the_first_load_before_the_loop() -> None:
    PASS.expect(
        """
        row = tl.alloc(tl.f32[m])
        with tl.attr(row, "double_buffer"):
            for i in range(n):
                for j in range(m):
                    row[j] = x[i, j]
                for j in range(m):
                    y[i, j] = row[m - 1 - j]
        """,
        """
        row = tl.alloc(tl.f32[2, m])
        if 0 < n:
            for j in range(m):
                row[0, j] = x[0, j]
        for i in range(n):
            if i + 1 < n:
                for j in range(m):
                    row[(i + 1) % 2, j] = x[i + 1, j]
            for j in range(m):
                y[i, j] = row[i % 2, m - 1 - j]
        """,
    )


@pytest.mark.parametrize("rest", ["", "    "], ids=["around the fill", "around all"])
def test_the_mark_may_stand_in_the_loop_that_allocates_the_buffer(rest: str) -> None:
    PASS.expect(
        f"""
        for i in range(n):
            row = tl.alloc(tl.f32[m])
            with tl.attr(row, "double_buffer"):
                for j in range(m):
                    row[j] = x[i, j]
            {rest}for j in range(m):
            {rest}    y[i, j] = row[m - 1 - j]
        """,
        """
        row = tl.alloc(tl.f32[2, m])
        if 0 < n:
            for j in range(m):
                row[0, j] = x[0, j]
        for i in range(n):
            if i + 1 < n:
                for j in range(m):
                    row[(i + 1) % 2, j] = x[i + 1, j]
            for j in range(m):
                y[i, j] = row[i % 2, m - 1 - j]
        """,
    )


def test_several_buffers_of_one_loop() -> None:
    PASS.expect(
        """
        for k in range(n):
            row = tl.alloc(tl.f32[m])
            back = tl.alloc(tl.f32[m])
            with tl.attr(row, "double_buffer"):
                for j in range(m):
                    row[j] = x[k, j]
            with tl.attr(back, "double_buffer"):
                for j in range(m):
                    back[j] = x[n - 1 - k, j] * 2
            for j in range(m):
                y[k, j] = row[m - 1 - j] + back[j]
        """,
        """
        row = tl.alloc(tl.f32[2, m])
        back = tl.alloc(tl.f32[2, m])
        if 0 < n:
            for j in range(m):
                back[0, j] = x[n - 1, j] * 2
        if 0 < n:
            for j in range(m):
                row[0, j] = x[0, j]
        for k in range(n):
            if k + 1 < n:
                for j in range(m):
                    row[(k + 1) % 2, j] = x[k + 1, j]
            if k + 1 < n:
                for j in range(m):
                    back[(k + 1) % 2, j] = x[n - k - 2, j] * 2
            for j in range(m):
                y[k, j] = row[k % 2, m - 1 - j] + back[k % 2, j]
        """,
    )


@pytest.mark.parametrize("size", ["i + 1", "tl.i64(y[0, 0])"])
def test_a_buffer_of_another_size_in_each_iteration_stays_in_the_loop(size: str) -> None:
    func = kernel(
        f"""
        for i in range(n):
            row = tl.alloc(tl.f32[{size}])
            with tl.attr(row, "double_buffer"):
                row[i] = x[i, 0]
            y[i, 0] = row[i]
        """
    )
    with pytest.raises(tl.KernelError, match="its size changes from iteration to iteration"):
        DoubleBuffer()(func)


def test_steps_and_values_of_the_fill_that_the_work_needs() -> None:
    PASS.expect(
        """
        row = tl.alloc(tl.f32[m])
        with tl.attr(row, "double_buffer"):
            for i in range(1, n, 2):
                scale = tl.f32(i)
                for j in range(m):
                    row[j] = scale * x[i, j]
                y[i, 0] = row[0] / scale
        """,
        """
        row = tl.alloc(tl.f32[2, m])
        if 1 < n:
            first = tl.f32(tl.i64(1))
            for j in range(m):
                row[0, j] = first * x[1, j]
        for i in range(1, n, 2):
            scale = tl.f32(i)
            if i + 2 < n:
                ahead = tl.f32(i + 2)
                for j in range(m):
                    row[((i - 1) // 2 + 1) % 2, j] = ahead * x[i + 2, j]
            y[i, 0] = row[(i - 1) // 2 % 2, 0] / scale
        """,
    )


@every(
    "body, reason",
    [
        ("for i in range(n):\n    y[i, 0] = row[0]", "nothing in the loop fills it"),
        ("for i in tl.parallel(n):\n    row[i] = x[i, 0]\n    y[i, 0] = row[i]", "not in one serial loop"),
        ("row[0] = 1\nfor i in range(n):\n    row[0] = x[i, 0]\n    y[i, 0] = row[0]", "not in one serial loop"),
        ("for i in range(n):\n    row[0] = y[i, 0]\n    y[i, 0] = row[0]", "`y` is touched by the fill"),
        (
            "for i in range(n):\n    row[i] = x[i, 0]\n    y[i, 0] = row[0]",
            "nothing in the same iteration is proved to fill `row[0]`",
        ),
        (
            "for i in range(n):\n    t = tl.alloc(tl.f32[1])\n    row[0] = t[0]\n    y[i, 0] = row[0]",
            "declared in between",
        ),
        ("for i in range(n):\n    row[0] = x[i, 0]\n    assert row[0] < 1\n    y[i, 0] = row[0]", "cannot be moved"),
        (
            "for i in range(n):\n    row[0] = x[i, 0]\n    v = tl.view(x, tl.f32[tl.i64(row[0])])\n    y[i, 0] = v[0]",
            "cannot be moved",
        ),
        (
            # i + 2**62 is less than the stop in the last iteration too, as it wraps around.
            "for i in range(0, 9223372036854775807, 4611686018427387904):\n    row[0] = x[0, 0]\n    y[0, 0] = row[0]",
            "may wrap around",
        ),
    ],
)
def test_what_cannot_be_filled_ahead_is_an_error(body: str, reason: str) -> None:
    text = 'row = tl.alloc(tl.f32[n])\nwith tl.attr(row, "double_buffer"):\n' + "\n".join(
        f"    {line}" for line in body.splitlines()
    )
    with pytest.raises(tl.KernelError, match="cannot be filled one iteration ahead") as caught:
        DoubleBuffer()(kernel(text))
    assert reason in str(caught.value)


PART = """
t = tl.alloc(tl.f32[6])
with tl.attr(t, "double_buffer"):
    for b in range((m + 3) // 4):
{fill}
{work}
"""


def part(fill: str, work: str) -> tl.PrimFunc:
    return kernel(PART.format(fill=indent(dedent(fill).strip(), " " * 8), work=indent(dedent(work).strip(), " " * 8)))


def interpreted(func: tl.PrimFunc, width: int) -> np.ndarray:
    x = np.random.default_rng(width).uniform(1, 4, (1, width)).astype(np.float32)
    y = np.zeros_like(x)
    sizes = {dim: {"n": 1, "m": width}[dim.name] for dim in func.dims}
    interpret(func, {**sizes, **dict(zip(func.params, (x, y), strict=True))})
    return y


RAGGED = "for j in range(min(4, m - 4 * b)):\n    t[j] = x[0, 4 * b + j]"
GUARDED = "for j in range(4):\n    if 4 * b + j < m:\n        t[j] = x[0, 4 * b + j]"
HALO = "for j in range(min(6, m - 4 * b + 1)):\n    t[j] = x[0, max(4 * b + j - 1, 0)]"
PADDED = """
for j in range(min(6, m - 4 * b + 2)):
    k = 4 * b + j - 1
    if 0 <= k and k < m:
        t[j] = x[0, k]
    else:
        t[j] = 0
"""
FROM = "for k in range(max(4 * b - 1, 0), min(4 * b + 5, m)):\n    t[k - 4 * b + 1] = x[0, k]"
EVEN = "for j in range(0, min(4, m - 4 * b), 2):\n    t[j] = x[0, 4 * b + j]"
PAIRS = "for j in range(0, min(3, m - 4 * b - 1), 2):\n    "
IN_PAIRS = f"{PAIRS}t[tl.ramp(j, 1, 2)] = x[0, tl.ramp(4 * b + j, 1, 2)]"
COUNTED = "k = min(tl.i64(x[0, b]), 4)\nfor j in range(k):\n    t[j] = x[0, j]"


@pytest.mark.parametrize(
    ("fill", "work"),
    [
        (RAGGED, "for j in range(min(4, m - 4 * b)):\n    y[0, 4 * b + j] = t[j]"),
        (RAGGED, "for j in range(4):\n    if 4 * b + j < m:\n        y[0, 4 * b + j] = t[j]"),
        (RAGGED, "for k in range(4 * b, min(4 * b + 4, m)):\n    y[0, k] = t[k - 4 * b]"),
        (RAGGED, "w = min(4, m - 4 * b)\nfor j in range(w):\n    y[0, 4 * b + j] = t[w - 1 - j]"),
        (RAGGED, "y[0, b] = t[0]"),
        (GUARDED, "for j in range(min(4, m - 4 * b)):\n    y[0, 4 * b + j] = t[j]"),
        (GUARDED, "for j in range(4):\n    if 4 * b + j < m:\n        y[0, 4 * b + j] = t[j]"),
        (HALO, "for j in range(min(4, m - 4 * b)):\n    y[0, 4 * b + j] = t[j] + t[j + 1]"),
        (PADDED, "for j in range(min(4, m - 4 * b)):\n    y[0, 4 * b + j] = t[j] + t[j + 1] + t[j + 2]"),
        (PADDED, "for j in range(min(4, m - 4 * b)):\n    for d in range(3):\n        y[0, 4 * b + j] += t[j + d]"),
        (FROM, "for k in range(4 * b, min(4 * b + 4, m)):\n    y[0, k] = t[k - 4 * b + 1]"),
        (COUNTED, "for j in range(k):\n    y[0, j] = t[j]"),
        ("for j in range(3, 6):\n    t[j] = x[0, b]", "for j in range(3):\n    y[0, b] += t[5 - j]"),
        ("for r in range(2):\n    for j in range(3):\n        t[j] = x[0, b]", "y[0, b] = t[1] + t[2]"),
        (RAGGED + "\nt[5] = t[0]", "y[0, b] = t[5]"),
        (EVEN, "for j in range(0, min(4, m - 4 * b), 2):\n    y[0, 4 * b + j] = t[j]"),
        (EVEN, "for j in range(min(2, m - 4 * b - 2)):\n    y[0, 4 * b + j] = t[2 * j]"),
        (IN_PAIRS, f"{PAIRS}y[0, tl.ramp(4 * b + j, 1, 2)] = t[tl.ramp(j, 1, 2)]"),
        (RAGGED, f"{PAIRS}y[0, tl.ramp(4 * b + j, 1, 2)] = t[tl.ramp(j, 1, 2)]"),
        (RAGGED, f"{PAIRS}y[0, tl.ramp(4 * b + j, 1, 2)] = t[tl.ramp(j + 1, -1, 2)]"),
    ],
)
def test_a_fill_of_part_of_the_buffer_is_enough_where_no_more_is_read(fill: str, work: str) -> None:
    func = part(fill, work)
    doubled = DoubleBuffer()(func)
    for width in (4, 5, 8):
        assert np.array_equal(interpreted(doubled, width), interpreted(func, width))


@every(
    "fill, work",
    [
        (RAGGED, "for j in range(4):\n    y[0, j] = t[j]"),
        (RAGGED, "for j in range(min(5, m - 4 * b)):\n    y[0, j] = t[j]"),
        (RAGGED, "for j in range(min(4, m - 4 * b)):\n    y[0, j] = t[j + 1]"),
        (RAGGED, "y[0, b] = t[1]"),
        (GUARDED, "for j in range(4):\n    if 4 * b + j <= m:\n        y[0, j] = t[j]"),
        (HALO, "for j in range(min(4, m - 4 * b)):\n    y[0, j] = t[j + 2]"),
        (FROM, "for k in range(4 * b, min(4 * b + 4, m)):\n    y[0, k] = t[k - 4 * b]"),
        (COUNTED, "for j in range(tl.i64(x[0, b])):\n    y[0, j] = t[j]"),
        (COUNTED, "for j in range(k + 1):\n    y[0, j] = t[j]"),
        ("for j in range(0, 6, 2):\n    t[j] = x[0, b]", "y[0, b] = t[2] + t[b]"),
        (EVEN, "for j in range(min(4, m - 4 * b)):\n    y[0, 4 * b + j] = t[j]"),
        (EVEN, "for j in range(0, min(4, m - 4 * b), 2):\n    y[0, 4 * b + j] = t[j + 2]"),
        (IN_PAIRS, "for j in range(min(4, m - 4 * b) - 1):\n    y[0, 4 * b + j] = t[j]"),
        (IN_PAIRS, f"{PAIRS}y[0, tl.ramp(4 * b + j, 1, 2)] = t[tl.ramp(j + 1, 1, 2)]"),
        (RAGGED, "for j in range(min(4, m - 4 * b)):\n    y[0, tl.ramp(j, 1, 2)] = t[tl.ramp(j, 1, 2)]"),
        ("for r in range(n):\n    for j in range(3):\n        t[j] = x[0, b]", "y[0, b] = t[1]"),
        ("for j in range(6):\n    if x[0, j] > 0:\n        t[j] = x[0, b]", "y[0, b] = t[1]"),
        ("if b > 1:\n    t[0] = x[0, b]\nelse:\n    t[1] = x[0, b]", "y[0, b] = t[0]"),
        ("for j in range(4):\n    t[j] = 1.0\n    t[5] = t[3]", "y[0, b] = t[5]"),
        ("for j in range(6):\n    t[tl.i64(x[0, j])] = x[0, b]", "y[0, b] = t[1]"),
        ("for j in range(6):\n    k = tl.i64(x[0, j])\n    t[k] = x[0, b]", "y[0, b] = t[1]"),
    ],
)
def test_what_is_not_proved_to_be_filled_is_told(fill: str, work: str) -> None:
    with pytest.raises(tl.KernelError, match="nothing in the same iteration is proved to fill `t"):
        DoubleBuffer()(part(fill, work))


def test_the_message_names_what_is_read() -> None:
    with pytest.raises(tl.KernelError, match=r"nothing in the same iteration is proved to fill `t\[1\]` before"):
        DoubleBuffer()(part(RAGGED, "y[0, b] = t[1]"))


def test_ragged_blocks_with_a_halo_mean_the_same() -> None:
    func = part(PADDED, "for j in range(min(4, m - 4 * b)):\n    y[0, 4 * b + j] = t[j] + t[j + 1] + t[j + 2]")
    doubled = tl.compile(DoubleBuffer()(func), debug=True)
    for width in (1, 3, 4, 5, 8, 11):
        x = np.random.default_rng(width).uniform(1, 4, (1, width)).astype(np.float32)
        found = np.zeros_like(x)
        doubled(x, found)
        assert np.array_equal(found, interpreted(func, width))


DOUBLED_TILE = """
for b in tl.parallel(n):
    tile = tl.alloc(tl.f32[2, 4], scope="shared")
    if 0 < m // 4:
        for t in range(4):
            tile[0, t] = x[b, t]
    for k in range(m // 4):
        if k + 1 < m // 4:
            for t in range(4):
                tile[(k + 1) % 2, t] = x[b, 4 * (k + 1) + t]
        for t in range(4):
            y[b, 4 * k + t] = tile[k % 2, 3 - t]
"""


@pytest.mark.parametrize(
    "body",
    [
        """
        tile = tl.alloc(tl.f32[4], scope="shared")
        with tl.attr(tile, "double_buffer"):
            for k in range(m // 4):
                for t in tl.thread("threadIdx.x", 4):
                    tile[t] = x[b, 4 * k + t]
                for t in tl.thread("threadIdx.x", 4):
                    y[b, 4 * k + t] = tile[3 - t]
        """,
        """
        tile = tl.alloc(tl.f32[4], scope="shared")
        for t in tl.thread("threadIdx.x", 4):
            for k in range(m // 4):
                with tl.attr(tile, "double_buffer"):
                    tile[t] = x[b, 4 * k + t]
                tl.barrier("shared")
                y[b, 4 * k + t] = tile[3 - t]
                tl.barrier("shared")
        """,
        """
        for t in tl.thread("threadIdx.x", 4):
            for k in range(m // 4):
                tile = tl.alloc(tl.f32[4], scope="shared")
                with tl.attr(tile, "double_buffer"):
                    tile[t] = x[b, 4 * k + t]
                tl.barrier("shared")
                y[b, 4 * k + t] = tile[3 - t]
                tl.barrier("shared")
        """,
    ],
    ids=["around the loop", "around the fill of a thread", "a tile of the loop"],
)
def test_a_tile_of_a_block_of_threads(body: str) -> None:
    split = BeforeAfter((SplitThreads(), DoubleBuffer()))
    split.expect('for b in tl.thread("blockIdx.x", n):\n' + indent(dedent(body), "    "), DOUBLED_TILE)
