"""A few random kernels with slips, in a process of their own; `slip_trial.py` tries as many as one likes."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.arena import WrittenBeside, watched
from fuzz.slip_trial import trial
from fuzz.trial import Failure, apart
from random_cases import groups

import tirlite as tl

KERNELS = len(groups(48))


def test_slips_are_told_as_the_interpreter_tells_them() -> None:
    def first_failure() -> Failure | None:
        return next((failure for seed in range(KERNELS) if (failure := trial(seed)[1]) is not None), None)

    failure = apart(first_failure)
    assert failure is None, failure.told


def test_a_write_beside_a_temporary_is_found() -> None:
    n = tl.dim("n")

    @tl.kernel(unchecked=True, strategy="none")
    def f(at: tl.i64, y: tl.f32[n]):
        left = tl.alloc(tl.f32[n])
        right = tl.alloc(tl.f32[3])
        right[0] = 2
        for i in range(n):
            left[i] = i
        left[at] = 1
        for i in range(n):
            y[i] = left[i] + right[0]

    given = np.zeros(5, np.float32)
    with watched():
        f(4, given)
        for outside in (5, -1, 1000):
            with pytest.raises(WrittenBeside):
                f(outside, given)
