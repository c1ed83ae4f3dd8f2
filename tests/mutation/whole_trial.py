"""A bug planted anywhere and a kernel that offers it in, all that catches it out: checks, interpreter, debug, runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from textwrap import dedent, indent

import numpy as np
import pytest
from mutation.trial import PLAN_CODES, Plant

import tirlite as tl
from tirlite.diag import TirliteError
from tirlite.interp import interpret
from tirlite.ir import Buffer, PrimFunc
from tirlite.plan import Ok
from tirlite.rewrite import default_pipeline, run_pipeline

WORKERS = tl.Target.host(workers=2)
HEADER = 'n, m = tl.dims("n m")\n\n'
KERNEL = "@tl.kernel\ndef f(x: tl.f32[n, m], y: tl.f32[n, m]):\n"


class Catcher(Enum):
    """What can catch a bug."""

    PLAN_CHECK = "plan.check"
    STORAGE_CHECK = "check_storage"
    CRASH = "crash"
    INTERPRETER = "interpreter"
    DEBUG = "debug"
    RUN = "run"


@dataclass(frozen=True)
class WholeBug:
    """One wrong rule somewhere on the way from a kernel to its result, and the body of a kernel over x and y.

    `others` are kernels that stand before it, `sizes` the n and m with which it is called. With `is_racy` what goes
    wrong does so in native code alone, which is run several times.
    """

    name: str
    classes: str
    plant: Plant
    body: str
    strategy: str = "share"
    others: str = ""
    sizes: tuple[int, int] = (8, 9)
    is_racy: bool = False

    @property
    def func(self) -> PrimFunc:
        return tl.parse(HEADER + dedent(self.others) + KERNEL + indent(dedent(self.body).strip("\n"), "    "))


def catchers(bug: WholeBug) -> set[Catcher]:
    """All that catches the bug, each asked on its own: the checks, and then, without them, what the result computes."""
    wanted = _wanted(bug)
    with pytest.MonkeyPatch.context() as patch:
        bug.plant(patch)
        found = _refused(bug)
        if found and bug.strategy == "per_shape":
            return found
        with pytest.MonkeyPatch.context() as blind:
            _blind(blind)
            crashed = _refused(bug)
            return found | (crashed or _computed(bug, wanted))


def is_right_without(bug: WholeBug) -> bool:
    """Whether nothing is caught where the bug is not planted: the kernel is fine, and so are those who judge."""
    wanted = _wanted(bug)
    return not _refused(bug) and not _computed(bug, wanted, tries=3)


def _refused(bug: WholeBug) -> set[Catcher]:
    """The check that stops the bug before anything is computed, or when a plan is made for the shapes of a call."""
    try:
        func = bug.func
        run_pipeline(func, default_pipeline(bug.strategy))
        if bug.strategy == "per_shape":
            tl.compile(func, strategy=bug.strategy, cache=None)(*_arguments(bug, func).values())
    except TirliteError as error:
        if error.code in (*PLAN_CODES, "unsafe-shape"):
            return {Catcher.PLAN_CHECK}
        return {Catcher.STORAGE_CHECK if error.code == "unsafe-rewrite" else Catcher.CRASH}
    except (AssertionError, KeyError, IndexError, RecursionError):
        return {Catcher.CRASH}
    return set()


def _blind(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(import_module("tirlite.plan.solve"), "check", lambda *given: Ok())
    patch.setattr(import_module("tirlite.analysis"), "check_storage", lambda *given: Ok())


_Outcome = Mapping[str, np.ndarray] | str


def _computed(bug: WholeBug, wanted: _Outcome, tries: int = 20) -> set[Catcher]:
    """Who sees that the rewritten kernel does not compute what it should, checks of plans being blind.

    Native code without checks is run only where nothing else saw anything: it might write anywhere. It does not see
    what only the interpreter and debug mode look at.
    """
    found: set[Catcher] = set()
    if bug.strategy != "per_shape" and not bug.is_racy:
        func = run_pipeline(bug.func, default_pipeline(bug.strategy))
        if not _same(_interpreted(bug, func), wanted):
            found.add(Catcher.INTERPRETER)
    for debug in (True, False):
        if debug or not (found or isinstance(wanted, str)):
            kernel = tl.compile(bug.func, strategy=bug.strategy, debug=debug, target=WORKERS, cache=None)
            outcomes = (_native(bug, kernel) for _ in range(tries if bug.is_racy else 1))
            if not all(_same(each, wanted) for each in outcomes):
                found.add(Catcher.DEBUG if debug else Catcher.RUN)
    return found


def _wanted(bug: WholeBug) -> _Outcome:
    """What the kernel is to do. Large kernels take the interpreter too long: those run on storage of their own."""
    if bug.is_racy:
        return _native(bug, tl.compile(bug.func, strategy="none"))
    return _interpreted(bug, bug.func)


def _interpreted(bug: WholeBug, func: PrimFunc) -> _Outcome:
    sizes = {dim: bug.sizes["nm".index(dim.name)] for dim in func.dims}
    return _outcome(bug, lambda arguments: interpret(func, {**arguments, **sizes}), func)


def _native(bug: WholeBug, kernel: tl.Kernel) -> _Outcome:
    return _outcome(bug, lambda arguments: kernel(*arguments.values()), kernel.ir)


def _arguments(bug: WholeBug, func: PrimFunc) -> dict[object, object]:
    values = np.arange(bug.sizes[0] * bug.sizes[1], dtype=np.float32).reshape(bug.sizes) * 3 % 17
    return dict(zip(func.params, (values, np.zeros_like(values)), strict=True))


def _outcome(bug: WholeBug, run: Callable[[dict[object, object]], object], func: PrimFunc) -> _Outcome:
    """The arrays after a run, or the code of the error that it ends in."""
    arguments = _arguments(bug, func)
    try:
        run(arguments)
    except TirliteError as error:
        return error.code
    except ZeroDivisionError as error:
        return type(error).__name__
    return {key.name: value for key, value in arguments.items() if isinstance(key, Buffer)}


def _same(one: _Outcome, other: _Outcome) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)
