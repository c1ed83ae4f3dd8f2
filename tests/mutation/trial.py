"""A planted bug and a program in, what became of it out: no effect, caught and by which check, harmless, or missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module

import pytest
from fuzz.program import assert_same
from mutation.corpus import Outcome, Subject

from tirlite.diag import TirliteError
from tirlite.ir import PrimFunc, structural_equal
from tirlite.plan import Ok
from tirlite.rewrite import StorageRewrite

Plant = Callable[[pytest.MonkeyPatch], None]

PLAN_CODES = ("broken-strategy", "unsafe-plan", "over-capacity", "fixed-overlap")


@dataclass(frozen=True)
class Bug:
    """One wrong rule, planted where the right one is. `classes` are those of what goes wrong in planners."""

    name: str
    classes: str
    plant: Plant
    strategies: tuple[str, ...] = ("share", "pack", "tvm")
    normalizes: bool = True


class Fate(Enum):
    """What becomes of a bug in one program."""

    NO_EFFECT = "no effect"
    PLAN_CHECK = "plan.check"
    STORAGE_CHECK = "check_storage"
    CRASH = "crash"
    HARMLESS = "harmless"
    MISSED = "missed"


def fates(bug: Bug, subject: Subject, strategy: str) -> set[Fate]:
    """All that catches the bug in a program; or else that it has no effect, is harmless, or is missed.

    Each check is asked on its own.
    """
    func = subject.func if bug.normalizes else subject.raw
    right = _right(subject, strategy)
    if isinstance(right, Fate):
        return {Fate.NO_EFFECT}
    found: set[Fate] = set()
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        wrong = other = _rewritten(func, subject, strategy)
        # What passed that check does the same without it.
        if wrong in (Fate.PLAN_CHECK, Fate.CRASH):
            with pytest.MonkeyPatch.context() as blind:
                blind.setattr(import_module("tirlite.plan.solve"), "check", _accept)
                other = _rewritten(func, subject, strategy)
    found |= {each for each in (wrong, other) if isinstance(each, Fate)}
    if isinstance(wrong, Fate):
        return found
    if structural_equal(wrong, right):
        return {Fate.NO_EFFECT}
    return {Fate.HARMLESS if _computes_the_same(subject, wrong) else Fate.MISSED}


@cache
def _right(subject: Subject, strategy: str) -> PrimFunc | Fate:
    """What becomes of a program without any bug: the same for all of them."""
    return _rewritten(subject.func, subject, strategy)


@cache
def _computed(subject: Subject) -> Outcome:
    """What a program computes as it was made."""
    assert subject.run is not None
    return subject.run(subject.raw)


def _accept(problem: object, plan: object) -> Ok:
    return Ok()


def _rewritten(func: PrimFunc, subject: Subject, strategy: str) -> PrimFunc | Fate:
    try:
        return StorageRewrite(strategy, target=subject.target)(func)
    except TirliteError as error:
        if error.code in PLAN_CODES:
            return Fate.PLAN_CHECK
        return Fate.STORAGE_CHECK if error.code == "unsafe-rewrite" else Fate.CRASH
    except (AssertionError, KeyError, IndexError, ValueError, TypeError, StopIteration):
        return Fate.CRASH


def _computes_the_same(subject: Subject, func: PrimFunc) -> bool:
    """Whether a rewritten function computes what it should; a program that cannot be run counts as wrong."""
    if subject.run is None:
        return False
    try:
        assert_same(_computed(subject), subject.run(func))
    except (AssertionError, TirliteError):
        return False
    return True
