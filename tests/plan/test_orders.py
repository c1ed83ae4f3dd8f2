"""Orders of blocks of symbolic sizes: what is known of one order gives the heights of the next as if stacked anew."""

from __future__ import annotations

from random import Random

import numpy as np

from tirlite.plan.blocks import Block, Piece, sections_of
from tirlite.plan.pack.symbolic.orders import Trials

COLUMNS = 3


def trials_of(random: Random) -> Trials:
    blocks = []
    for _ in range(12):
        times = sorted(random.sample(range(20), 4))
        spans = [(times[0], times[1]), (times[2], times[3])][: random.choice((1, 2))]
        blocks.append(Block(tuple(Piece(low, high, random.randrange(1, 9)) for low, high in spans)))
    values = [
        np.array([[random.choice((4.0, 8.0, 12.0, 15.0)) for _ in range(COLUMNS)] for _ in block.pieces])
        for block in blocks
    ]
    aligns = [random.choice((1, 8)) for _ in blocks]
    return Trials.of(sections_of(blocks), aligns, values, np.full(COLUMNS, 1e9), COLUMNS)


def test_a_known_order_changes_no_height() -> None:
    random = Random(0)
    for _ in range(20):
        trials = trials_of(random)
        known = trials.stacked(trials.births)
        for _ in range(40):
            order = [*known.order]
            one, other = random.randrange(len(order)), random.randrange(len(order))
            if random.random() < 0.5:
                order[one], order[other] = order[other], order[one]
            else:
                order.insert(other, order.pop(one))
            anew = trials.stacked(tuple(order))
            known = trials.stacked(tuple(order), known)
            assert known.under == anew.under
            assert known.last == anew.last
            np.testing.assert_array_equal(known.heights, anew.heights)
