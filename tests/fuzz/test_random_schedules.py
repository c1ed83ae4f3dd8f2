"""Random steps on random nests do what is written, or are refused."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz.schedules import trial

PAIRS = 20


@pytest.mark.parametrize("first", range(0, PAIRS, 10))
def test_what_is_accepted_does_what_is_written(first: int) -> None:
    accepted: Counter[str] = Counter()
    for seed in range(first, first + 10):
        accepted += trial(seed).accepted
    assert sum(accepted.values()) >= 10
