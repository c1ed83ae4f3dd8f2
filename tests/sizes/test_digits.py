"""Quotients of one size by numbers that divide each other are told apart by digits."""

from __future__ import annotations

import random

import pytest

from tirlite.sizes import Dim, Proof, Size, evaluate, prove_le
from tirlite.sizes.poly import terms_of
from tirlite.sizes.search import minimum_by_digits

h, w = Dim("h", min=0), Dim("w", min=0)
n = Dim("n")


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (2 * (h // 8), h // 4),
        (4 * ((h + 7) // 8), 2 * ((h + 3) // 4) + 2),
        ((h + 3) // 4, 2 * ((h + 7) // 8)),
        # What four layers leave of an image, with twice as many channels each.
        (128 * n * (h // 32) * (w // 32) + 96 * n * (h // 16) * (w // 16), 128 * n * (h // 8) * (w // 8)),
        (8 * ((h + 15) // 16) * ((w + 15) // 16), ((h + 3) // 4 + 7) * ((w + 3) // 4 + 7)),
        (6 * (h // 6), h),
        # An image, padded to an even extent, is never empty.
        (1, 2 * ((n + 3) // 4) - 2 * ((n + 3) // 8)),
        (w // 2 + 1, (w // 2) * ((n + 3) // 4) + 2 * ((n + 3) // 4) - 2 * ((n + 3) // 8)),
    ],
    ids=str,
)
def test_sums_over_strides_are_compared(small: Size, large: Size) -> None:
    assert prove_le(small, large) is Proof.YES


def test_one_size_divided_by_numbers_that_divide_no_other_has_no_digits() -> None:
    assert minimum_by_digits(terms_of(h // 4 - h // 6)) is None
    assert minimum_by_digits(terms_of(h // 4 - w // 8)) is None


def test_no_value_of_a_sum_is_below_its_bound() -> None:
    random_ = random.Random(5)
    found = 0
    for _ in range(500):
        parts = [
            random_.randint(-9, 9)
            * ((random_.choice([h, h + w]) + random_.randint(-9, 9)) // random_.choice([2, 3, 4, 6, 8, 12]))
            * random_.choice([1, 1, n, w // 2])
            for _ in range(3)
        ]
        size = sum(parts, random_.randint(-5, 5))
        bound = minimum_by_digits(terms_of(size))
        if bound is None:
            continue
        found += 1
        for _ in range(40):
            binding = {h: random_.randint(0, 60), w: random_.randint(0, 40), n: random_.randint(1, 5)}
            assert evaluate(size, binding) >= bound
    assert found > 25
