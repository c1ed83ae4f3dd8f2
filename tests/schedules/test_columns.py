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
