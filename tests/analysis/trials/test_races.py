"""Which conflicts between iterations of a parallel loop are seen when a kernel is compiled, and which are not."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.analysis.trials.races import Race, find_race
from tirlite.ir import Broadcast, Ramp, const, f32, i64
from tirlite.ir.builder import Builder
from tirlite.rewrite import CheckRaces, Normalize

n, m = tl.dims("n m")
k = tl.dim("k", max=8)
eights = tl.dim("eights", multiple_of=8)


def race(kernel: tl.Kernel) -> Race | None:
    return find_race(Normalize()(kernel.ir))


def told(kernel: tl.Kernel) -> str:
    found = race(kernel)
    assert found is not None
    one, other = found.first, found.second
    uses = "written", "written" if other.is_write else "read"
    assert one.is_write
    return f"{one.element} {uses[0]} at {found.loop.var.name} = {one.iteration}, {uses[1]} at {other.iteration}"


def test_a_reduction_into_one_element() -> None:
    @tl.kernel
    def total(x: tl.f32[n], y: tl.out[tl.f32[1]]):
        y[0] = 0
        for i in tl.parallel(n):
            y[0] += x[i]

    assert told(total) == "y[0] written at i = 0, written at 1"
    with pytest.raises(tl.KernelError, match=r"`y\[0\]` is written by iteration i = 0 and written by i = 1"):
        total(np.ones(3, np.float32))


def test_a_neighbour_that_is_written() -> None:
    @tl.kernel
    def shift(x: tl.f32[n]):
        for i in tl.parallel(n - 1):
            x[i] = x[i + 1]

    assert told(shift) == "x[1] written at i = 1, read at 0"


def test_a_temporary_from_outside_of_the_loop() -> None:
    @tl.kernel
    def rows(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        row = tl.alloc(tl.f32[m])
        for i in tl.parallel(n):
            for j in range(m):
                row[j] = x[i, j]
            for j in range(m):
                y[i, j] = row[m - 1 - j]

    assert told(rows) == "row[0] written at i = 0, written at 1"
    with pytest.raises(tl.KernelError, match="help: allocate `row` in the loop, so that each iteration has one"):
        tl.compile(rows).compile()


def test_tiles_that_overlap() -> None:
    @tl.kernel
    def tiles(y: tl.f32[1024]):
        for t in tl.parallel(100):
            for j in range(8):
                y[t * 7 + j] = t

    assert told(tiles) == "y[7] written at t = 0, written at 1"


def test_elements_that_meet_far_apart() -> None:
    @tl.kernel
    def wrapped(x: tl.f32[n], y: tl.f32[64]):
        for i in tl.parallel(n):
            y[i % 64] = x[i]

    assert told(wrapped) == "y[0] written at i = 0, written at 64"


def test_views_of_one_buffer() -> None:
    @tl.kernel
    def halves(x: tl.f32[256]):
        low = tl.view(x, tl.f32[128], byte_offset=0)
        high = tl.view(x, tl.u8[512], byte_offset=508)
        for i in tl.parallel(128):
            low[i] = 1
            high[i * 4] = 2

    assert told(halves) == "high[0] written at i = 0, written at 127"


def test_the_inner_of_two_loops() -> None:
    @tl.kernel
    def inner(y: tl.f32[n, m]):
        for i in tl.parallel(n):
            for j in tl.parallel(m):
                y[i, 0] = j

    assert told(inner) == "y[0, 0] written at j = 0, written at 1"


def test_lanes_of_vectors() -> None:
    b = Builder("lanes")
    y = b.param("y", f32[64])
    with b.parallel("i", 0, 8) as i:
        b.store(y, Ramp(i * 4, const(1, i64), 8), Broadcast(const(1.0, f32), 8))
    assert find_race(Normalize()(b.build())) is not None


@tl.kernel
def copy_row(x: tl.f32[m], y: tl.f32[m], first: tl.i64):
    row = tl.alloc(tl.f32[m])
    view = tl.view(row, tl.f32[m])
    for j in range(m):
        view[j] = x[j]
    for j in range(first, m):
        y[j] = row[j]


@tl.kernel
def copy_all(x: tl.f32[m], y: tl.f32[m]):
    tl.call(copy_row, x, y, 0)


@tl.kernel
def in_eights(y: tl.f32[eights]):
    for j in range(eights):
        y[j] = j


def test_what_a_kernel_that_is_called_writes() -> None:
    @tl.kernel
    def shifted(x: tl.f32[n, m], y: tl.f32[n, m]):
        for i in tl.parallel(n):
            source = tl.view(x, tl.f32[m], byte_offset=i * m * 4)
            target = tl.view(y, tl.f32[m], byte_offset=i * 4)
            tl.call(copy_all, source, target)

    assert told(shifted) == "y[1] written at i = 0, written at 1"


def test_what_is_written_in_a_later_round_of_a_while() -> None:
    @tl.kernel
    def rounds(x: tl.f32[n], y: tl.f32[n]):
        for i in tl.parallel(n - 1):
            at = 0
            while at < 2:
                y[i + at] = x[i]
                at += 1

    assert told(rounds) == "y[1] written at i = 0, written at 1"


@tl.kernel
def private(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in tl.parallel(n):
        row = tl.alloc(tl.f32[m])
        last = tl.view(row, tl.f32[1], byte_offset=0)
        for j in range(m):
            row[j] = x[i, j]
        for j in range(m):
            y[i, j] = row[m - 1 - j] + last[0]


@tl.kernel
def in_steps(y: tl.f32[n, m]):
    for t in range(10):
        for i in tl.parallel(n):
            for j in range(m):
                y[i, j] = y[i, j] + t


@tl.kernel
def blocks(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for b in tl.parallel((n + 15) // 16):
        for j in range(b * 16, min(b * 16 + 16, n)):
            y[j] = x[j] + x[max(j - 1, 0)]


@tl.kernel
def one_alone(y: tl.f32[n]):
    for i in tl.parallel(n):
        if i == n - 1:
            y[0] = i


@tl.kernel
def asserted(y: tl.f32[n]):
    assert n == 1
    for i in tl.parallel(n):
        y[0] = i


@tl.kernel
def few(y: tl.f32[8], x: tl.f32[k]):
    for i in tl.parallel(k):
        y[i % 8] = x[i]


@tl.kernel
def only_read(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in tl.parallel(n):
        y[i] = x[0]


@tl.kernel
def rows_called(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in tl.parallel(n):
        source = tl.view(x, tl.f32[m], byte_offset=i * m * 4)
        target = tl.view(y, tl.f32[m], byte_offset=i * m * 4)
        kept = tl.alloc(tl.f32[m])
        tl.call(copy_all, source, kept)
        tl.call(copy_row, kept, target, 1)
        first = tl.view(y, tl.f32[m])
        tl.call(copy_row, kept, first, m if i > 0 else m - 1)


@tl.kernel
def call_that_does_not_fit(y: tl.f32[n]):
    for _ in tl.parallel(n):
        tl.call(in_eights, y)


@tl.kernel
def rounds_of_its_own(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in tl.parallel(n):
        at = 0
        while at < m:
            y[i, at] = x[i, at]
            at += 1
        while at < 1:
            y[0, 0] = 1
            at += 1


@tl.kernel
def rounds_that_memory_ends(x: tl.f32[n], y: tl.f32[n]):
    for i in tl.parallel(n):
        at = 0
        if x[i] > 0:
            at = 1
        while at < 1:
            y[0] = 1
            at += 1
        while x[i] < y[i]:
            y[0] = 2


RIGHT = [
    private,
    in_steps,
    blocks,
    one_alone,
    asserted,
    few,
    only_read,
    rows_called,
    call_that_does_not_fit,
    rounds_of_its_own,
    rounds_that_memory_ends,
]


@pytest.mark.parametrize("kernel", RIGHT, ids=str)
def test_what_is_right_passes(kernel: tl.Kernel) -> None:
    assert race(kernel) is None


@tl.kernel
def histogram(x: tl.u8[n], y: tl.i64[256]):
    for i in tl.parallel(n):
        y[x[i]] += 1


@tl.kernel
def count_some(x: tl.f32[n], y: tl.i64[1]):
    for i in tl.parallel(n):
        if x[i] > 0:
            y[0] += 1


@pytest.mark.parametrize(
    ("kernel", "given"),
    [(histogram, np.ones(2, np.uint8)), (count_some, np.ones(2, np.float32))],
    ids=["count", "some"],
)
def test_what_depends_on_memory_is_left_to_the_interpreter(kernel: tl.Kernel, given: np.ndarray) -> None:
    assert race(kernel) is None
    with pytest.raises(tl.KernelRunError, match="is read by iteration i = 1 and written by i = 0"):
        kernel.interpret(given, np.zeros(256 if kernel is histogram else 1, np.int64))


def test_lanes_do_not_conflict_either() -> None:
    @tl.kernel
    def counted(y: tl.f32[64]):
        for i in tl.vectorized(63):
            y[i + 1] = y[i] + 1

    with pytest.raises(tl.KernelError, match=r"`y\[1\]` is written by iteration i = 0 and read by i = 1"):
        _ = counted.lowered

    @tl.kernel
    def total(x: tl.f32[64], y: tl.f32[1]):
        for i in tl.vectorized(64):
            y[0] += x[i]

    with pytest.raises(tl.KernelError, match=r"declare it by `tl.reduce` in place of `tl.vectorized`"):
        _ = total.lowered


def test_planned_storage_of_lanes_that_stay_a_loop_is_used_in_turn() -> None:
    @tl.kernel
    def own(x: tl.f32[8, 40], y: tl.f32[8]):
        for i in tl.vectorized(8):
            t = tl.alloc(tl.f32[40])
            for j in range(40):
                t[j] = 2 * x[i, j]
            for j in range(40):
                y[i] = t[39 - j]

    x, y = np.ones((8, 40), np.float32), np.zeros(8, np.float32)
    tl.compile(own.lowered)(x, y)
    assert y.tolist() == [2] * 8


def refusal(*lines: str) -> str:
    """The code of the error for a parallel loop with this body; nothing where it passes."""
    head = "n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n], one: tl.f32[1]):\n    s = tl.f32(0)\n"
    body = "".join(f"        {line}\n" for line in lines)
    func = tl.parse(f"{head}    for i in tl.parallel(n):\n{body}    one[0] = s\n")
    try:
        CheckRaces()(Normalize()(func))
    except tl.KernelError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    "lines",
    [
        ("if x[i] > 0:", "    s += x[i]"),
        ("if x[i] > s:", "    s = x[i]"),
        ("for j in range(4):", "    if x[i] > j:", "        s += x[i]"),
        ("if x[i] > 0:", "    y[i] = 1", "else:", "    s *= 2"),
    ],
)
def test_updates_of_one_element_wherever_memory_says_so(lines: tuple[str, ...]) -> None:
    assert refusal(*lines) == "parallel-update"


@pytest.mark.parametrize(
    "lines",
    [
        ("if x[i] == 3:", "    s = i"),  # there may be one
        ("if i == 3 and x[i] > 0:", "    s += x[i]"),
        ("if i == 3:", "    if x[i] > 0:", "        s += x[i]"),
        ("t = tl.f32(0)", "for j in range(4):", "    if x[i] > j:", "        t += 1", "y[i] = t"),
        ("if x[i] > 0:", "    y[i] += 1"),
    ],
)
def test_what_one_iteration_may_do_alone_passes(lines: tuple[str, ...]) -> None:
    assert refusal(*lines) == ""


def test_long_functions_are_looked_at_as_far_as_it_costs_little() -> None:
    b = Builder("long")
    y = b.param("y", f32[64])
    with b.parallel("p", 0, 8) as p:
        for _ in range(5000):
            b.store(y, p, y[p] + 1.0)
    assert find_race(Normalize()(b.build())) is None
