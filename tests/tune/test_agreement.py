"""When two results of one kernel agree."""

from __future__ import annotations

import numpy as np
import pytest

from tirlite.tune.contest import disagreement

nan, inf = np.nan, np.inf


@pytest.mark.parametrize(
    ("expected", "found"),
    [([1.0, nan], [1.0, -nan]), ([-0.0], [-0.0]), ([inf, -inf], [inf, -inf]), ([], []), (2.0, 2.0)],
)
def test_the_same_bits_agree(expected: object, found: object) -> None:
    for dtype in (np.float16, np.float32, np.float64):
        assert not disagreement("y", np.array(expected, dtype), np.array(found, dtype), may_differ=False)


def test_other_bits_do_not_and_the_first_place_is_named() -> None:
    one, other = np.float32([[1, 2], [3, 4]]), np.float32([[1, 2], [3, 5]])
    assert disagreement("y", one, other, may_differ=True) == "y[1, 1] is 5.0 in place of 4.0"
    assert disagreement("y", np.float32([0.0]), np.float32([-0.0]), may_differ=False)
    assert disagreement("y", np.int8([1]), np.int8([2]), may_differ=True) == "y[0] is 2 in place of 1"
    assert disagreement("y", np.array(True), np.array(False), may_differ=True)


def test_last_digits_may_differ_where_that_is_permitted() -> None:
    one = np.float32([1000.0, 1.0])
    other = one + np.float32([1e-4, 1e-4])
    assert disagreement("y", one, other, may_differ=False)
    assert not disagreement("y", one, other, may_differ=True)
    assert not disagreement("y", np.float64([0.0]), np.float64([-0.0]), may_differ=True)
    assert disagreement("y", one, one + 1, may_differ=True)


@pytest.mark.parametrize(("expected", "found"), [(nan, 1.0), (1.0, nan), (inf, 1e30), (1.0, inf), (inf, -inf)])
def test_what_is_not_a_number_is_no_rounding(expected: float, found: float) -> None:
    assert disagreement("y", np.float32([expected, 1e30]), np.float32([found, 1e30]), may_differ=True)
