"""Sums of multiples of unknown integers."""

from __future__ import annotations

from tirlite.analysis.linear import Linear, Unknown


def test_nothing_is_added_by_a_factor_of_zero() -> None:
    i = Unknown("i")
    assert Linear(3).plus(Linear(5, {i: 2}), 0).same_as(Linear(3))


def test_what_cancels_is_gone() -> None:
    i = Unknown("i")
    assert Linear(0, {i: 2}).plus(Linear(1, {i: 1}), -2).same_as(Linear(-2))
