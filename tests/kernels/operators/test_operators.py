"""Every operator's kernel gives what its NumPy reference gives, interpreted and compiled."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest

import tirlite as tl
from tirlite.kernels.operators.case import Case
from tirlite.kernels.operators.library import CASES

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def kernel(case: Case) -> tl.Kernel:
    return tl.compile(case.make())


def inputs(case: Case) -> tuple[object, ...]:
    return case.inputs(np.random.default_rng(len(case.name)))


def outputs(given: object) -> tuple[np.ndarray, ...]:
    return tuple(map(np.asarray, given)) if isinstance(given, tuple) else (np.asarray(given),)


def assert_close(result: object, expected: object, tolerance: float) -> None:
    for made, wanted in zip(outputs(result), outputs(expected), strict=True):
        assert made.dtype == wanted.dtype
        assert made.shape == wanted.shape
        if tolerance == 0:
            np.testing.assert_array_equal(made, wanted)
        else:
            largest = np.abs(wanted[np.isfinite(wanted)], dtype=np.float64).max(initial=0)
            np.testing.assert_allclose(made.astype(np.float64), wanted, rtol=0, atol=tolerance * largest)


@each_case
def test_compiled_operators_give_what_numpy_gives(case: Case) -> None:
    assert_close(kernel(case)(*inputs(case)), case.reference(*inputs(case)), case.tolerance)


@each_case
def test_interpreted_operators_give_what_numpy_gives(case: Case) -> None:
    assert_close(kernel(case).interpret(*inputs(case)), case.reference(*inputs(case)), case.tolerance)


def test_names_tell_cases_apart() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []
