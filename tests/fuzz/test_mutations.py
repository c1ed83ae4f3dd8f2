"""Whatever the text, `tl.parse` gives a function or a clear refusal, within seconds: tried on mutated kernels."""

from __future__ import annotations

import random

import pytest
from fuzz.mutations import mutated, outcome, texts
from random_cases import groups

MUTATIONS = 400
GROUP = 40


@pytest.fixture(scope="module")
def given() -> list[str]:
    return texts()


def test_the_texts_themselves_are_kernels(given: list[str]) -> None:
    assert [outcome(text) for text in given] == [""] * len(given)


@pytest.mark.parametrize("first", groups(MUTATIONS, GROUP))
def test_mutated_text_is_a_kernel_or_refused(first: int, given: list[str]) -> None:
    codes = set()
    for seed in range(first, first + GROUP):
        rng = random.Random(seed)
        codes.add(outcome(mutated(rng.choice(given), rng)))
    assert len(codes) > 3
