"""Compiles the candidates for a kernel's schedule, compares their results, and times them in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tirlite.diag import TirliteError
from tirlite.driver import Kernel
from tirlite.ir import AttrKey, AttrStmt, For, ForKind, PrimFunc, statements_of
from tirlite.ir.kernel_call import closure_of
from tirlite.record import record, replace
from tirlite.rewrite.loops.parallelize_loops import ParallelizeLoops
from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.pipelines import LOOPS
from tirlite.schedules.annotate import Parallel
from tirlite.schedules.handle import LoopHandle, LoopName, handle_of, loops_around
from tirlite.schedules.pack import Pack
from tirlite.schedules.pack_padded import PackPadded
from tirlite.schedules.reorder import Reorder
from tirlite.schedules.split import Split
from tirlite.schedules.unroll_jam import UnrollJam
from tirlite.schedules.vectorize import Vectorize

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

Steps = tuple[Pass, ...]

# The tile sizes tried on the two inner loops of a nest.
_TILES = (16, 32, 64)


@record
class Candidate:
    """The steps of a schedule, and a short description of what is different about it."""

    change: str
    steps: Steps


def beside(func: PrimFunc, answer: Steps) -> Iterator[Candidate]:
    """Schedules that do not vary the current one: vectors and workers alone, tiles, loops as written."""
    if answer != LOOPS:
        yield Candidate("vectors and workers alone", LOOPS)
    for outer, inner in _pairs(func):
        for by in _TILES:
            steps: Steps = (Split(outer, by), Split(inner, by), Reorder(_order(outer, inner)), *LOOPS)
            yield Candidate(f"tiles of {by} x {by} over {handle_of(outer)} and {handle_of(inner)}", steps)
    yield Candidate("loops as written", ())


def around(answer: Steps) -> Iterator[Candidate]:
    """Schedules that differ from `answer` in one number, lack one of its steps, or lack all parallel steps."""
    widths = {lanes for step in answer if isinstance(step, Vectorize) for lanes in step.lanes}
    for width in sorted(widths, reverse=True):
        for other in _others(width, (1, 2), (2, 1)):
            steps = tuple(_with_width(step, width, other) for step in answer)
            yield Candidate(f"{other} lanes in place of {width}", steps)
    for place, step in enumerate(answer):
        if isinstance(step, Split | UnrollJam) and step.by not in widths:
            parts = ((1, 4), (1, 2), (2, 1), (4, 1)) if isinstance(step, Split) else ((1, 2), (2, 3), (4, 3), (2, 1))
            for other in _others(step.by, *parts):
                made = replace(step, by=other)
                yield Candidate(
                    f"{_step_text(made)} in place of {step.by}", (*answer[:place], made, *answer[place + 1 :])
                )
    for place, step in enumerate(answer):
        yield Candidate(f"without {_step_text(step)}", (*answer[:place], *answer[place + 1 :]))
    serial = tuple(step for step in answer if not isinstance(step, Parallel | ParallelizeLoops))
    if len(answer) - len(serial) > 1:
        yield Candidate("without workers", serial)


def _others(number: int, *parts: tuple[int, int]) -> Iterator[int]:
    """The given fractions of a number that are integers above 1."""
    for over, under in parts:
        if number * over % under == 0 and number * over // under > 1:
            yield number * over // under


def _with_width(step: Pass, width: int, other: int) -> Pass:
    """The step with another number of lanes, for vectors and for blocks and panels of the same width."""
    if isinstance(step, Vectorize):
        lanes = tuple(dict.fromkeys(other if each == width else each for each in step.lanes))
        return replace(step, lanes=tuple(sorted(lanes, reverse=True)))
    if isinstance(step, Split) and step.by == width:
        return replace(step, by=other)
    if isinstance(step, Pack | PackPadded) and step.whole == width:
        return replace(step, whole=other)
    return step


def _step_text(step: Pass) -> str:
    text = str(step)
    return text.removeprefix("s.") if text.startswith("s.") else type(step).__name__


def _pairs(func: PrimFunc) -> Iterator[tuple[LoopName, LoopName]]:
    """The two innermost loops of each perfect nest, by their names in steps."""
    every = [loop for loop, _ in loops_around(func)]
    for loop, around_it in loops_around(func):
        outer = around_it[-1] if around_it else None
        if outer is None or len(outer.body.stmts) > 1 or any(isinstance(each, For) for each in loop.body.stmts):
            continue
        if all(each.kind in (ForKind.SERIAL, ForKind.PARALLEL) and each.step == 1 for each in (outer, loop)):
            yield _name(outer, every), _name(loop, every)


def _name(loop: For, every: list[For]) -> LoopName:
    alike = [each for each in every if each.var.name == loop.var.name]
    return loop.var.name if len(alike) == 1 else LoopHandle(loop.var.name, alike.index(loop))


def _order(outer: LoopName, inner: LoopName) -> tuple[LoopName, ...]:
    # After a split, the halves have names of their own.
    paths = [handle_of(each).path for each in (outer, inner)]
    return (*(f"{each}.outer" for each in paths), *(f"{each}.inner" for each in paths))


def may_regroup(func: PrimFunc) -> bool:
    """Whether schedules may change the last digits: there are reductions or permissions, here or in callees."""
    for each in closure_of(func):
        if any(loop.kind is ForKind.REDUCE for loop in statements_of(each.body, For)):
            return True
        if any(attr.key is AttrKey.ALLOW for attr in statements_of(each.body, AttrStmt)):
            return True
    return False


def disagreement(name: str, expected: Array, found: Array, *, may_differ: bool) -> str:
    """The first element that differs, with both values; empty if all agree.
    Equal means the same bits, except for the payload of nan. With `may_differ`, floats may differ by the square root of
    the machine epsilon times the largest value, and zeros in sign: a bound on mistakes, not on rounding.
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
    # A view as another type needs a contiguous last axis; the reshape keeps arrays of rank 0.
    return np.ascontiguousarray(array).reshape(array.shape)


def _close(expected: Array, found: Array) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        exact, other = expected.astype(np.float64), found.astype(np.float64)
        finite = np.abs(exact[np.isfinite(exact)])
        most = float(finite.max()) if finite.size else 0.0
        bound = float(np.finfo(expected.dtype).eps) ** 0.5 * most
        return np.asarray((exact == other) | (np.abs(exact - other) <= bound))


# A candidate whose fastest of so many rounds exceeds the best time by this factor is not timed again.
_HOPELESS, _CHANCES = 2.0, 3
# Short calls are repeated so that a turn takes at least so many seconds.
_TURN, _MOST_CALLS = 1e-3, 1000


def timed(candidate: Candidate, call: Callable[[], object], times: int) -> float:
    """The average seconds of a call, over `times` calls."""
    start = perf_counter()
    for _ in range(times):
        call()
    return (perf_counter() - start) / times


@record
class Watch:
    """The clock of a tuning, and the function that times calls of a candidate."""

    now: Callable[[], float] = perf_counter
    timed: Callable[[Candidate, Callable[[], object], int], float] = timed


@record
class Trial:
    """The outcome of a candidate.

    `seconds`, `least`: the median and the minimum time of a call. `refused`: why it was refused. `same_as`: an earlier
    candidate with the same loops. None of these if the time was over.
    """

    candidate: Candidate
    seconds: float | None = None
    least: float | None = None
    refused: str = ""
    same_as: str = ""


@record
class Share:
    """Candidates to compare. The first one that is not refused defines the expected results.
    `arguments`: those of a call, in the order of the parameters, outputs included. `written`: the names of arrays that
    the kernel writes, and whether it reads them before; the arrays themselves are never changed.
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
    """A compiled candidate, and the seconds of its calls."""

    def __init__(self, candidate: Candidate, kernel: Kernel) -> None:
        self.candidate, self.kernel = candidate, kernel
        self.seconds: list[float] = []


def contest(share: Share, watch: Watch | None = None, listen: Callable[[str], object] = lambda text: None) -> Outcome:
    """Compares the candidates of a share. The first that is not refused is timed even if there is no time left."""
    return _Contest(share, watch or Watch(), listen).outcome()


class _Contest:
    def __init__(self, share: Share, watch: Watch, listen: Callable[[str], object]) -> None:
        self._share, self._watch, self._listen = share, watch, listen
        self._end = watch.now() + share.seconds
        self._may_differ = may_regroup(share.kernel.ir)
        # Calls write to copies; arrays that are read before they are written are restored for each call.
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
                # Time it at once, so that an interrupted search has results.
                self._time_one(entrant)
                if len(self._entrants) == 1:
                    self._times = min(_MOST_CALLS, max(1, int(_TURN / max(entrant.seconds[0], 1e-9))))

    def _compared(self, entrant: _Entrant) -> str:
        """The first difference from the expected results; empty if there is none."""
        for name, value in self._kept.items():
            self._arrays[name][...] = value
        self._call(entrant)
        if not self._expected:
            self._expected = {name: value.copy() for name, value in self._arrays.items()}
        for name, value in self._arrays.items():
            if reason := disagreement(name, self._expected[name], value, may_differ=self._may_differ):
                return reason
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
