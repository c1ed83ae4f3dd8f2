"""Planted bugs are caught or do no harm, mutants of plans too, and good plans raise no alarm."""

from __future__ import annotations

from functools import cache

import pytest
from mutation.corpus import Subject, library, provoking, random_programs
from mutation.graph_bugs import GRAPH_BUGS, GraphBug, alarms, found
from mutation.pass_bugs import PASS_BUGS
from mutation.plan_mutants import Tally, try_mutants
from mutation.scale_bugs import SCALE_BUGS, ScaleBug, is_seen
from mutation.shape_mutants import try_shape_mutants
from mutation.table import BUGS, STRATEGIES, classes, false_alarms, tried
from mutation.trial import Bug, Fate
from mutation.whole_trial import WholeBug, catchers, is_right_without
from random_cases import groups, some

FIRST, RANDOM = 0, len(groups(8))
GOOD = 200
GROUP = 20
GRAPHS = groups(180)

each_bug = pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)


@cache
def subjects() -> tuple[Subject, ...]:
    return (*provoking(), *some([*library()]), *random_programs(FIRST, RANDOM))


@each_bug
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    fates = tried(bug, subjects())
    assert fates[Fate.MISSED] == 0
    assert fates[Fate.PLAN_CHECK] + fates[Fate.STORAGE_CHECK] > 0


def test_there_are_enough_of_them() -> None:
    names = [bug.name for bug in (*BUGS, *PASS_BUGS, *GRAPH_BUGS, *SCALE_BUGS)]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


def test_there_is_one_of_each_class() -> None:
    assert [*classes()] == [*range(1, 23)]


@pytest.mark.parametrize("bug", PASS_BUGS, ids=lambda bug: bug.name)
def test_a_bug_of_a_pass_is_caught(bug: WholeBug) -> None:
    assert is_right_without(bug)
    assert catchers(bug)


@pytest.mark.parametrize("bug", GRAPH_BUGS, ids=lambda bug: bug.name)
def test_a_bug_of_a_planner_of_graphs_is_caught(bug: GraphBug) -> None:
    assert found(bug, GRAPHS) > 0
    assert alarms(bug, GRAPHS) == 0


@pytest.mark.parametrize("bug", SCALE_BUGS, ids=lambda bug: bug.name)
def test_a_bug_that_takes_more_than_one_small_program_is_caught(bug: ScaleBug) -> None:
    assert bug.is_right()
    assert is_seen(bug)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_mutants_of_plans_are_rejected_or_harmless(strategy: str) -> None:
    tally = Tally()
    for seed, subject in enumerate(subjects()):
        try_mutants(subject, strategy, seed, 10, tally)
    assert tally.missed == []
    assert tally.rejected > tally.tried / 3


def test_mutants_of_plans_for_shapes_are_rejected_or_harmless() -> None:
    tally = Tally()
    for seed, subject in enumerate(subjects()):
        try_shape_mutants(subject, seed, 10, tally)
    assert tally.missed == []
    assert tally.rejected > tally.tried / 3


@pytest.mark.parametrize("first", groups(GOOD, GROUP))
def test_good_plans_raise_no_alarm(first: int) -> None:
    assert false_alarms(random_programs(1_000 + first, GROUP)) == []
