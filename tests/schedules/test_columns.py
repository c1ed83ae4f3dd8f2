"""What tirlite does with loops that go down a column each: all columns of a block go from row to row together."""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.schedules import Expand, Reorder

b, t, c = tl.dims("b t c")


@tl.kernel
def filtered(x: tl.f32[b, t, c], k: tl.f32[t], y: tl.out[tl.f32[b, t, c]], last: tl.out[tl.f32[b, c]]):
    for q in range(b):
        for j in range(c):
            s = tl.f32(0)
            before = x[q, 0, j]
            for i in range(t - 1, -1, -1):
                s = s * k[i] + before
                before = x[q, i, j]
                y[q, i, j] = s
            last[q, j] = s + before


def test_columns_go_from_row_to_row_together() -> None:
    with effort(Effort.NONE):
        for workers in (1, 2):
            compiled = tl.compile(filtered.ir, target=tl.Target.host(workers=workers))
            steps = compiled.schedule.steps
            assert sum(isinstance(step, Expand) for step in steps) == 2
            assert any(isinstance(step, Reorder) for step in steps)
            random = np.random.default_rng(7)
            for sizes in ((1, 1, 1), (2, 3, 63), (1, 2, 64), (2, 3, 1100)):
                given = [random.standard_normal(shape).astype("f") for shape in (sizes, sizes[1:2])]
                for found, wanted in zip(compiled(*given), filtered.interpret(*given), strict=True):
                    np.testing.assert_array_equal(found, wanted)


@tl.kernel
def swept(a: tl.f32[t, c], y: tl.f32[t, c], z: tl.f32[t, c]):
    """Forth and back, with what is carried along in arrays."""
    for j in range(c):
        z[0, j] = a[0, j] / 2
        for i in range(1, t):
            part = 1 / (3 - a[i, j] * z[i - 1, j])
            z[i, j] = a[i, j] * part
            y[i, j] = (y[i, j] - y[i - 1, j]) * part
        y[t - 1, j] = z[t - 1, j]
        for i in range(t - 2, -1, -1):
            y[i, j] -= z[i, j] * y[i + 1, j]


def test_columns_that_carry_numbers_in_arrays_go_row_by_row_however_many() -> None:
    with effort(Effort.NONE):
        for workers in (1, 2):
            compiled = tl.compile(swept.ir, target=tl.Target.host(workers=workers))
            steps = compiled.schedule.steps
            assert sum(isinstance(step, Reorder) for step in steps) == 2
            random = np.random.default_rng(7)
            for sizes in ((1, 1), (2, 3), (5, 31), (3, 1100)):
                given = [random.standard_normal(sizes).astype("f") for _ in range(3)]
                wanted = [each.copy() for each in given]
                compiled(*given)
                swept.interpret(*wanted)
                for found, right in zip(given, wanted, strict=True):
                    np.testing.assert_array_equal(found, right)


def test_columns_that_pass_on_nothing_go_on_as_they_are() -> None:
    @tl.kernel
    def doubled(x: tl.f32[t, c], y: tl.f32[t, c]):
        for j in range(c):
            for i in range(t):
                y[i, j] = y[i, j] + x[i, j]

    assert not any(isinstance(step, Reorder) for step in tl.compile(doubled).schedule.steps)


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("s = s * 2 + x[j, i]\n            y[j, i] = s", id="along rows"),
        pytest.param("s = s * 2 + x[i, j]\n            y[0, j] = s", id="to one row"),
        pytest.param("s = s * 2 + x[i, i + j]\n            y[i, j] = s", id="along a diagonal"),
        pytest.param("s = s * 2 + y[i, 0]\n            y[i, j] = s", id="one that another column writes"),
    ],
)
def test_other_loops_go_on_as_they_are(step: str) -> None:
    kernel = tl.parse(f"""
n = tl.dim("n")

@tl.kernel
def f(x: tl.f32[n, 2 * n], y: tl.f32[n, n]):
    for j in range(n):
        s = tl.f32(0)
        for i in range(n):
            {step}
""")
    assert "expand" not in str(tl.compile(kernel).schedule)
