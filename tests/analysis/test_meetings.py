"""Which of many buffers may meet: those that are there at one time, and not proved to lie apart."""

from __future__ import annotations

from collections import Counter
from random import Random

from every import every

from tirlite.analysis.storage_check.meetings import meetings
from tirlite.analysis.storage_check.resident import Bytes
from tirlite.sizes import Dim, Proof, Size, prove_le


@every("seed", range(40))
def test_they_are_those_that_a_look_at_all_pairs_finds(seed: int) -> None:
    random = Random(seed)
    places, hulls = [], []
    for _ in range(random.randrange(2, 30)):
        low, first = random.randrange(40), random.randrange(20)
        places.append(Bytes(low, low + random.choice((1, 4, 4, 12))))
        hulls.append((first, first + random.choice((0, 1, 8))) if random.random() < 0.9 else None)
    found = [frozenset(pair) for pair in meetings(places, hulls, lambda low, high: low <= high)]
    assert len(found) == len(set(found))
    assert set(found) == {
        frozenset((one, other))
        for one, mine in enumerate(hulls)
        for other, its in enumerate(hulls[:one])
        if mine and its and mine[0] <= its[1] and its[0] <= mine[1]
        if places[one].low < places[other].high and places[other].low < places[one].high
    }


def test_what_is_not_proved_to_lie_apart_may_meet() -> None:
    n, m = Dim("n"), Dim("m")
    places = [Bytes(0, n + 0), Bytes(n + 0, 2 * n), Bytes(m + 0, m + 4), Bytes(2 * n, 3 * n)]

    def at_most(low: Size, high: Size) -> bool:
        return prove_le(low, high) is Proof.YES

    found = meetings(places, [(0, 9), (0, 9), (3, 9), (4, 9)], at_most)
    assert sorted(map(sorted, found)) == [[0, 2], [1, 2], [2, 3]]


def test_many_that_each_take_over_the_bytes_of_another_are_compared_with_few() -> None:
    """Hundreds of branches end in one concat: each computes in place, and waits for the end."""
    count = 300
    asked: Counter[str] = Counter()

    def at_most(low: Size, high: Size) -> bool:
        asked["pairs"] += 1
        return low <= high

    places = [Bytes(8 * branch, 8 * branch + 8) for branch in range(count) for _ in range(2)]
    hulls = [hull for time in range(count) for hull in ((2 * time, 2 * time + 1), (2 * time + 1, 2 * count))]
    assert list(meetings(places, hulls, at_most)) == [(2 * branch, 2 * branch + 1) for branch in range(count)]
    assert asked["pairs"] < 20 * count
