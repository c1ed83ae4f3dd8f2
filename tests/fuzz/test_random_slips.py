"""A few random kernels with slips, in a process of their own; `slip_trial.py` tries as many as one likes."""

from __future__ import annotations

from fuzz.slip_trial import trial
from fuzz.trial import Failure, apart

KERNELS = 16


def test_slips_are_told_as_the_interpreter_tells_them() -> None:
    def first_failure() -> Failure | None:
        return next((failure for seed in range(KERNELS) if (failure := trial(seed)[1]) is not None), None)

    failure = apart(first_failure)
    assert failure is None, failure.told
