"""What offsets of a plan cost at a binding, by Python and by native code, which must agree."""

from __future__ import annotations

import numpy as np
import pytest

from tirlite.bench import plans as measuring
from tirlite.bench.plans import offset_speed
from tirlite.diag import InternalError
from tirlite.plan import Plan, Problem, Request, offset_evaluator, solve
from tirlite.sizes import Dim

n = Dim("n")
SAMPLES = [{n: value} for value in (1, 8, 100)]


def plan() -> Plan:
    return solve(Problem((Request("a", 4 * n, (0, 2)), Request("b", 8 * n, (1, 3))), facts={"n": n}), "pack")


def test_both_take_some_time() -> None:
    speed = offset_speed(plan(), SAMPLES)
    assert speed.python > 0
    assert speed.native > 0


def test_a_difference_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(made: Plan):
        right = offset_evaluator(made)
        return lambda values: np.array(right(values)) + (values[0] == 100)

    monkeypatch.setattr(measuring, "compiled_offsets", wrong)
    with pytest.raises(InternalError, match=r"offsets-differ.* at \(100,\) differ"):
        offset_speed(plan(), SAMPLES)
