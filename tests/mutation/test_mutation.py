"""Planted bugs are caught by a check or do no harm, mutants of plans too, and good plans raise no alarm."""

from __future__ import annotations

from functools import cache

import pytest
from mutation.corpus import Subject, library, provoking, random_programs
from mutation.plan_mutants import Tally, try_mutants
from mutation.table import BUGS, STRATEGIES, false_alarms, tried
from mutation.trial import Bug, Fate

FIRST, RANDOM = 20, 16
GOOD = 400
GROUP = 50

each_bug = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)


@cache
def subjects() -> tuple[Subject, ...]:
    return (*provoking(), *library(), *random_programs(FIRST, RANDOM))


@each_bug
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    fates = tried(bug, subjects())
    assert fates[Fate.MISSED] == 0
    assert fates[Fate.PLAN_CHECK] + fates[Fate.STORAGE_CHECK] > 0


def test_there_are_enough_of_them() -> None:
    assert len(BUGS) >= 30
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_mutants_of_plans_are_rejected_or_harmless(strategy: str) -> None:
    tally = Tally()
    for seed, subject in enumerate(subjects()):
        try_mutants(subject, strategy, seed, 10, tally)
    assert tally.missed == []
    assert tally.rejected > tally.tried / 3


@pytest.mark.parametrize("first", range(1_000, 1_000 + GOOD, GROUP))
def test_good_plans_raise_no_alarm(first: int) -> None:
    assert false_alarms(random_programs(first, GROUP)) == []
