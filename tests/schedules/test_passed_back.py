"""The schedule that tirlite chose, printed, read again and passed back, gives the same code in all versions."""

from __future__ import annotations

import pytest
from random_cases import some

import tirlite as tl
from tirlite.bench import definitions
from tirlite.kernels.gallery import CASES
from tirlite.rewrite.forms import Form

n, m = tl.dims("n m")


@tl.kernel
def smoothed(x: tl.u8[n + 4, m + 4], y: tl.out[tl.u8[n, m]]):
    rows = tl.alloc(tl.u16[n + 4, m])
    for i in range(n + 4):
        for j in range(m):
            rows[i, j] = tl.u16(x[i, j]) + 4 * x[i, j + 1] + 6 * x[i, j + 2] + 4 * x[i, j + 3] + x[i, j + 4]
    for i in range(n):
        for j in range(m):
            total = rows[i, j] + 4 * rows[i + 1, j] + 6 * rows[i + 2, j] + 4 * rows[i + 3, j] + rows[i + 4, j]
            y[i, j] = tl.u8(total >> 8)


@tl.kernel
def sharpened(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    up = tl.alloc(tl.f32[n, m])
    aside = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            up[i, j] = x[max(i - 1, 0), j] + x[min(i + 1, n - 1), j]
    for i in range(n):
        for j in range(m):
            aside[i, j] = up[i, max(j - 1, 0)] - up[i, min(j + 1, m - 1)]
    for i in range(n):
        for j in range(m):
            y[i, j] = aside[i, j] + up[i, j] * x[i, j]


OWN = [each for each in vars(definitions).values() if isinstance(each, tl.Kernel)]
KERNELS = [smoothed, *(case.kernel for case in CASES), *OWN]


def read(schedule: tl.Schedule, kernel: tl.Kernel) -> tl.Schedule:
    names: dict[str, object] = {"tl": tl, kernel.name: kernel}
    exec(str(schedule), names)
    found = names["s"]
    assert isinstance(found, type(schedule))
    return found


@pytest.mark.parametrize("given", ["auto", "compact"])
@pytest.mark.parametrize("kernel", some(KERNELS), ids=lambda kernel: kernel.name)
def test_the_same_code(kernel: tl.Kernel, given: str) -> None:
    target = tl.Target.host(workers=2)
    chosen = tl.compile(kernel, target=target, schedule=given)
    again = tl.compile(kernel, target=target, schedule=read(chosen.schedule, kernel))
    limits = chosen._version.rewritten.limits
    assert again._version.rewritten.limits == limits
    apart = [Form.SMALL] * bool(limits.small_below) + [Form.LARGE] * bool(limits.large_from)
    for form in (Form.USUAL, *apart):
        ours, theirs = (each._in_form(False, form, None).rewritten.func for each in (chosen, again))
        assert str(ours) == str(theirs)


def test_what_a_compact_schedule_tells_is_what_is_made() -> None:
    chosen = tl.compile(sharpened, target=tl.Target("x86-64-v3"), schedule="compact")
    again = tl.compile(sharpened, target=tl.Target("x86-64-v3"), schedule=read(chosen.schedule, sharpened))
    assert again._version.rewritten.limits == chosen._version.rewritten.limits


def test_steps_for_large_arrays_print_as_a_function() -> None:
    told = str(tl.compile(smoothed, target=tl.Target("x86-64-v4")).schedule)
    assert "def large(s):\n    s.split(s.loop('i', 1), 32)\n" in told
    assert "\n    s.vectorize('j.inner', 64, 16)\n" in told
    assert "\ns.for_large(12582912, large)" in told
    assert "def small(s):\n    s.apply(" in told
    assert "\ns.for_small(174762, small)" in told
