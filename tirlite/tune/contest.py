"""Compiles the candidates for a kernel's schedule, compares what they compute, and times them in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tirlite.diag import TirliteError
from tirlite.driver import Kernel
from tirlite.ir import AttrKey, AttrStmt, For, ForKind, PrimFunc, statements_of
from tirlite.ir.callees import closure_of
from tirlite.record import record
from tirlite.tune.space import Candidate

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


def may_regroup(func: PrimFunc) -> bool:
    """Whether schedules may change last digits: reductions are said, or permissions given, here or in what it calls."""
    for each in closure_of(func):
        if any(loop.kind is ForKind.REDUCE for loop in statements_of(each.body, For)):
            return True
        if any(attr.key is AttrKey.ALLOW for attr in statements_of(each.body, AttrStmt)):
            return True
    return False


def disagreement(name: str, expected: Array, found: Array, *, may_differ: bool) -> str:
    """The first element that is another one, with both values; empty where all agree.

    Those are the same bits, but for the payload of nan. With `may_differ` floats may be off by the square root of the
    machine epsilon times the largest of all, and zeros have any sign: a bound on mistakes, not on rounding.
    """
    wrong = ~_same_bits(expected, found)
    if may_differ and wrong.any() and np.issubdtype(expected.dtype, np.inexact):
        wrong &= ~_close(expected, found)
    if not wrong.any():
        return ""
    place = tuple(int(each) for each in np.argwhere(wrong)[0])
    index = ", ".join(map(str, place))
    return f"{name}[{index}] is {found[place]} in place of {expected[place]}"


def _same_bits(expected: Array, found: Array) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        both_nan = (expected != expected) & (found != found)
    bits = f"u{expected.dtype.itemsize}"
    return np.asarray((_plain(expected).view(bits) == _plain(found).view(bits)) | both_nan)


def _plain(array: Array) -> Array:
    # A view as another type wants neighbours along the last axis, which a number alone has not.
    return np.ascontiguousarray(array).reshape(array.shape)


def _close(expected: Array, found: Array) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        exact, other = expected.astype(np.float64), found.astype(np.float64)
        finite = np.abs(exact[np.isfinite(exact)])
        most = float(finite.max()) if finite.size else 0.0
        bound = float(np.finfo(expected.dtype).eps) ** 0.5 * most
        return np.asarray((exact == other) | (np.abs(exact - other) <= bound))


# Candidates that took more than so many times the least, each time in so many rounds, are not timed again.
_HOPELESS, _CHANCES = 2.0, 3
# Short calls are made so often that a turn takes so many seconds.
_TURN, _MOST_CALLS = 1e-3, 1000


def timed(candidate: Candidate, call: Callable[[], object], times: int) -> float:
    """The seconds of one of so many calls."""
    start = perf_counter()
    for _ in range(times):
        call()
    return (perf_counter() - start) / times


@record
class Watch:
    """What tells the time of day, in seconds, and that of calls of a candidate."""

    now: Callable[[], float] = perf_counter
    timed: Callable[[Candidate, Callable[[], object], int], float] = timed


@record
class Trial:
    """What became of a candidate: the median and the least seconds of a call, why it was refused, or which one before
    comes to the same loops; nothing where the time was over.
    """

    candidate: Candidate
    seconds: float | None = None
    least: float | None = None
    refused: str = ""
    same_as: str = ""


@record
class Share:
    """Candidates to be tried one against the other. The first that is not refused tells what they are to compute.

    `arguments` are those of a call, in the order of the parameters, outputs among them; `written` says by parameter
    name which arrays the kernel writes, and whether it reads them before: no call of a contest changes these arrays.
    """

    kernel: Kernel
    arguments: tuple[tuple[str, object], ...]
    written: tuple[tuple[str, bool], ...]
    candidates: tuple[Candidate, ...]
    rounds: int
    seconds: float


@record
class Outcome:
    """The trials of a share, in the order of its candidates, and whether Ctrl-C ended it."""

    trials: tuple[Trial, ...]
    was_interrupted: bool = False


class _Entrant:
    """A candidate that has been compiled, with the seconds of its calls."""

    def __init__(self, candidate: Candidate, kernel: Kernel) -> None:
        self.candidate, self.kernel = candidate, kernel
        self.seconds: list[float] = []


def contest(share: Share, watch: Watch | None = None, listen: Callable[[str], object] = lambda told: None) -> Outcome:
    """What the candidates of a share take. The first that is not refused is timed, however little time there is."""
    return _Contest(share, watch or Watch(), listen).outcome()


class _Contest:
    def __init__(self, share: Share, watch: Watch, listen: Callable[[str], object]) -> None:
        self._share, self._watch, self._listen = share, watch, listen
        self._end = watch.now() + share.seconds
        self._may_differ = may_regroup(share.kernel.ir)
        # Calls get copies of what is written, which those that are read before get back each time.
        self._kept = {name: np.array(value) for name, value in share.arguments if name in dict(share.written)}
        self._arrays = {name: value.copy() for name, value in self._kept.items()}
        self._updated = [name for name, is_read in share.written if is_read]
        self._expected: dict[str, Array] = {}
        self._refused: dict[int, str] = {}
        self._entrants: dict[int, _Entrant] = {}
        self._same: dict[int, str] = {}
        self._lowered: dict[str, str] = {}
        self._times = 1

    def outcome(self) -> Outcome:
        was_interrupted = False
        try:
            self._compile()
            self._time()
        except KeyboardInterrupt:
            was_interrupted = True
        return Outcome(tuple(map(self._trial, range(len(self._share.candidates)))), was_interrupted)

    def _trial(self, place: int) -> Trial:
        candidate, entrant = self._share.candidates[place], self._entrants.get(place)
        if entrant is not None and entrant.seconds:
            return Trial(candidate, median(entrant.seconds), min(entrant.seconds))
        return Trial(candidate, refused=self._refused.get(place, ""), same_as=self._same.get(place, ""))

    def _compile(self) -> None:
        for place, candidate in enumerate(self._share.candidates):
            if self._entrants and self._watch.now() >= self._end:
                return
            self._listen(f"{place + 1} of {len(self._share.candidates)} compiled: {candidate.change}")
            try:
                options = replace(self._share.kernel.options, schedule=candidate.steps, debug=False)
                entrant = _Entrant(candidate, self._share.kernel.with_options(options))
                text = str(entrant.kernel.lowered)
                if text in self._lowered:
                    self._same[place] = self._lowered[text]
                    continue
                self._lowered[text] = candidate.change
                reason = self._compared(entrant)
            except TirliteError as error:
                reason = str(error).splitlines()[0]
            if reason:
                self._refused[place] = reason
            else:
                self._entrants[place] = entrant
                # Who stops the search meanwhile has something to choose from.
                self._time_one(entrant)
                if len(self._entrants) == 1:
                    self._times = min(_MOST_CALLS, max(1, int(_TURN / max(entrant.seconds[0], 1e-9))))

    def _compared(self, entrant: _Entrant) -> str:
        """Where the candidate computes something else than the first one; empty where it does not."""
        for name, value in self._kept.items():
            self._arrays[name][...] = value
        self._call(entrant)
        if not self._expected:
            self._expected = {name: value.copy() for name, value in self._arrays.items()}
        for name, value in self._arrays.items():
            if told := disagreement(name, self._expected[name], value, may_differ=self._may_differ):
                return told
        return ""

    def _call(self, entrant: _Entrant) -> None:
        entrant.kernel(*(self._arrays.get(name, value) for name, value in self._share.arguments))

    def _time(self) -> None:
        for turn in range(self._share.rounds):
            for entrant in self._entrants.values():
                if self._watch.now() >= self._end:
                    return
                if turn >= _CHANCES and min(entrant.seconds) > _HOPELESS * self._least():
                    continue
                self._listen(f"round {turn + 1} of {self._share.rounds}: {entrant.candidate.change}")
                self._time_one(entrant)

    def _least(self) -> float:
        return min(min(each.seconds) for each in self._entrants.values())

    def _time_one(self, entrant: _Entrant) -> None:
        for name in self._updated:
            self._arrays[name][...] = self._kept[name]
        arguments = [self._arrays.get(name, value) for name, value in self._share.arguments]
        times = 1 if self._updated else self._times
        entrant.seconds.append(self._watch.timed(entrant.candidate, lambda: entrant.kernel(*arguments), times))
