"""A `while` that looks for an element is led up to it by vectors, and reads nothing behind the end."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.guard import guarded

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel(unchecked=True)
def first_above(x: tl.f32[n, m], t: tl.f32, start: tl.i64, y: tl.i64[n, 2]):
    for i in range(n):
        j = start
        while j < m and not x[i, j] > t:
            j += 1
        y[i, 0] = j
        y[i, 1] = -1
        for k in range(m):
            if x[i, k] > t:
                y[i, 1] = k
                break


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 100])
def test_the_first_is_found_wherever_it_is(size: int) -> None:
    assert str(first_above.lowered).count("tl.any(") == 2
    where = [*range(0, size, 7), size - 1, size]
    x = np.full((len(where), size), np.nan, np.float32)
    x[:, ::3] = -1
    for row, place in enumerate(where):
        x[row, place:] = 2
    for start in (0, size // 2, size, 2**63 - 5):
        for at_end in (True, False):
            results = []
            for run in (first_above, first_above.interpret, tl.compile(first_above.lowered).interpret):
                y = np.zeros((len(where), 2), np.int64)
                run(guarded(x, at_end=at_end), 1.0, start, y)
                results.append(y)
            wanted = [[max(place, start), place if place < size else -1] for place in where]
            np.testing.assert_array_equal(results, [wanted] * 3)


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("while j < m - 1 and x[j + 1] > 0:\n        j += 1", id="behind the counter"),
        pytest.param("while j < 5 and x[j] > 0:\n        j += 1", id="another limit"),
        pytest.param("while j < m and x[j] > 0:\n        j += 2", id="another step"),
        pytest.param("while j < m and at[j] // at[0] > 0:\n        j += 1", id="a division"),
        pytest.param("while j < m and x[at[j]] > 0:\n        j += 1", id="elements anywhere"),
        pytest.param("while x[j] > 0 and j < m:\n        j += 1", id="the limit comes last"),
        pytest.param("while j < m and x[j] > 0:\n        j += 1\n        x[0] = -1", id="more to do"),
    ],
)
def test_what_does_more_than_search_stays(loop: str) -> None:
    func = tl.parse(
        f"""
m = tl.dim("m")

@tl.kernel
def f(x: tl.f32[m], at: tl.i32[m], y: tl.i64[1]):
    j = tl.i64(0)
    {loop}
    y[0] = j
"""
    )
    assert "tl.any" not in str(tl.compile(func, unchecked=True).lowered)


@tl.kernel
def checked(x: tl.f32[n, m], at: tl.buffer(tl.u8[m], least=2, below=9), y: tl.f32[n]):
    for i in range(n):
        for j in range(m):
            assert x[i, j] >= at[j] or at[j] == 5, "too small"
        y[i] = 1


@pytest.mark.parametrize("size", [2, 31, 129, 200])
def test_assertions_of_elements_fail_at_the_first(size: int) -> None:
    """Those of a vector hold at once; where they do not, the first that fails is told, and what was stored before."""
    assert str(checked.lowered).count("tl.any(") == 2
    x, at = np.full((3, size), 9, np.float32), np.full(size, 8, np.uint8)
    x[0, 0], at[0] = np.nan, 5
    for name, value in ((None, 0), ("x", 7), ("x", np.nan), ("at", 9), ("at", 1)):
        for place in (size - 1, size // 2):
            given = {"x": x.copy(), "at": at.copy()}
            if name is not None:
                given[name][..., place:] = value
            told = []
            for run in (checked, checked.interpret, tl.compile(checked.lowered).interpret):
                y = np.zeros(3, np.float32)
                try:
                    run(guarded(given["x"], at_end=True), guarded(given["at"], at_end=True), y)
                    told.append(("", y.tolist()))
                except tl.KernelRunError as error:
                    told.append((str(error).splitlines()[0], y.tolist()))
            assert told[0] == told[1] == told[2], (name, place)
            assert bool(told[0][0]) == (name is not None)


@pytest.mark.parametrize("condition", ["x[i, j] >= i", "x[i, 0] <= x[i, j]", "x[i, j] >= 0"])
@pytest.mark.parametrize("columns", ["m", "m - 1"])
def test_assertions_in_nests_whose_rows_are_told_apart(condition: str, columns: str) -> None:
    """Those of whole rows go as one; others of each row by itself."""
    kernel = tl.compile(
        tl.parse(f"""
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.i32[n, m], y: tl.i32[n]):
    for i in range(n):
        for j in range({columns}):
            assert {condition}, "too small"
    for i in range(n):
        y[i] = 1
""")
    )
    for rows, length in ((1, 3), (3, 7), (2, 100)):
        x, y = np.full((rows, length), 5, np.int32), np.zeros(rows, np.int32)
        kernel(x, y)
        assert y.all()
        x[-1, -2] = -1
        told = []
        for run in (kernel, kernel.interpret):
            with pytest.raises(tl.KernelAssertionError) as caught:
                run(x, y)
            told.append(str(caught.value))
        assert told[0] == told[1]
