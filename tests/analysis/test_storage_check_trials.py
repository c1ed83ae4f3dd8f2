"""The trials of a rewrite's check: which instances of accesses touch the same byte."""

from types import SimpleNamespace

import numpy as np

from tirlite.analysis.storage_check.trials import _comes_before, _Instances
from tirlite.analysis.trials.points import Points


def instances(bytes_of: np.ndarray, width: int, position: int) -> _Instances:
    """Those of an access outside of loops, at this position of the program."""
    points = Points(len(bytes_of), {}, np.zeros((1, 1)), np.zeros((1, 1)))
    return _Instances(SimpleNamespace(position=position), (), points, bytes_of, width)


def test_a_write_comes_before_a_use_where_any_two_of_their_lanes_share_a_byte() -> None:
    random = np.random.default_rng(0)
    found = []
    for _ in range(200):
        (points, others), (lanes, lanes_of_others) = random.integers(1, 9, 2), random.integers(1, 40, 2)
        wide, narrow = random.choice([1, 2, 4, 8], 2).tolist()
        mine = random.integers(0, 9000, (points, lanes))
        other = random.integers(0, 9000, (others, lanes_of_others))
        meet = any(a < b + narrow and b < a + wide for a in mine.flat for b in other.flat)
        assert _comes_before(instances(mine, wide, 0), instances(other, narrow, 1)) is meet
        assert not _comes_before(instances(mine, wide, 1), instances(other, narrow, 0))
        found.append(meet)
    assert 40 < sum(found) < 160


def test_lanes_that_lie_between_one_another_meet_nowhere() -> None:
    even, odd = np.arange(0, 512, 8)[np.newaxis, :], np.arange(4, 512, 8)[np.newaxis, :]
    assert not _comes_before(instances(even, 4, 0), instances(odd, 4, 1))
    assert _comes_before(instances(even, 5, 0), instances(odd, 4, 1))
