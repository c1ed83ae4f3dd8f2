"""Calls are timed in turn."""

from __future__ import annotations

from math import inf

import pytest

from tirlite.cli.turns import medians


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "ab" + 5 * "ab"),
        ({"is_settled": True}, "ab" + 5 * "aabb"),
        ({"patience": inf}, "ab" + 5 * "ab"),
        ({"patience": 0}, "ab" + 3 * "ab"),
    ],
)
def test_each_is_called_once_before_and_then_in_turn(options: dict[str, float], wanted: str) -> None:
    called: list[str] = []
    seconds = medians([lambda: called.append("a"), lambda: called.append("b")], 5, **options)
    assert "".join(called) == wanted
    assert len(seconds) == 2
