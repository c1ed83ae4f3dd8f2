"""Finds a fast schedule of a kernel by trying: `tl.autotune`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tirlite.diag import CallTypeError, CallValueError, Message, TirliteError, boundary
from tirlite.diag.error import an
from tirlite.driver import Kernel
from tirlite.ir import PrimFunc
from tirlite.record import replace
from tirlite.rewrite.pipeline import Pass, versions
from tirlite.runtime.signature import signature_of
from tirlite.schedules.auto import schedule_of
from tirlite.schedules.schedule import Schedule
from tirlite.show import shown, table
from tirlite.show.status_line import StatusLine
from tirlite.tune.contest import Candidate, Outcome, Share, Trial, Watch, around, beside, contest

if TYPE_CHECKING:
    # The values of `schedule=`.
    Given: TypeAlias = Schedule | Iterable[Pass] | Callable[[Schedule], object] | str | None
    Map: TypeAlias = Callable[[Callable[[Share], Outcome], Sequence[Share]], Iterable[Outcome]]

# A candidate wins only if both its median and its minimum are below this part of the current best's.
_CLEAR = 0.98
# The number of candidates per share, beside the one to beat, when `map` distributes them.
_TOGETHER = 4


class NotTuned(Message):
    """Something is given to be tuned that is not a kernel.

    Example: `tl.autotune(np.add, x, y)`.
    """

    raises = CallTypeError
    title = "{kind} cannot be tuned"
    help = "give a kernel, as `@tl.kernel` and `tl.compile` make them, and the arguments of a call"


class BadTuning(Message):
    """A limit of a tuning has a value that it cannot have.

    Example: `tl.autotune(product, a, b, rounds=0)`.
    Fix: Give one round or more, and a number of seconds from 0 on.
    """

    raises = CallValueError
    title = "a tuning cannot have {what}={value}"
    help = "rounds are a whole number from 1 on, seconds a number from 0 on, the space is a list of schedules"


class NothingTuned(Message):
    """No candidate of a tuning could be compiled, or computed what the kernel computes.

    Example: `tl.autotune(product, a, b, space=[lambda s: s.split("q", 8)])`.
    Fix: Look at the reasons; try the schedules one by one with `tl.schedule`.
    """

    raises = CallValueError
    title = "no schedule that was tried for `{kernel}` could be taken"
    help = "{reasons}"


class Tuned(Schedule):
    """The fastest schedule that a tuning found, usable like any other, with its `trials`.

    `seconds`: the median time of a call.
    """

    def __init__(self, func: PrimFunc, best: Trial, trials: Sequence[Trial]) -> None:
        super().__init__(func, best.candidate.steps)
        assert best.seconds is not None
        self.change, self.seconds, self.trials = best.candidate.change, best.seconds, tuple(trials)

    @property
    def refused(self) -> dict[str, int]:
        """The number of refused candidates, by reason."""
        return dict(Counter(trial.refused for trial in self.trials if trial.refused))

    @property
    def report(self) -> str:
        """A table of all timed candidates, fastest first, then the reasons why others were refused."""
        timed = [(trial.seconds, trial.candidate.change) for trial in self.trials if trial.seconds is not None]
        rows = [(f"{1e3 * seconds:.4g}", change) for seconds, change in sorted(timed, key=lambda each: each[0])]
        parts = [table(("ms", "schedule"), rows)]
        parts += [f"{count} refused: {reason}" for reason, count in self.refused.items()]
        if alike := sum(bool(trial.same_as) for trial in self.trials):
            parts.append(f"{alike} come to the same loops as others")
        if untried := sum(trial == Trial(trial.candidate) for trial in self.trials):
            parts.append(f"{untried} not tried, as the time was over")
        return "\n".join(parts)


def autotune(
    kernel: Kernel,
    *args: object,
    space: Iterable[Given] | None = None,
    seconds: float = 60.0,
    rounds: int = 7,
    map: Map | None = None,  # noqa: A002
) -> Tuned:
    """The fastest schedule found for a kernel, for calls with arguments like `args`; pass it as `schedule=`.

    Candidates are the kernel's own schedule, those that differ from it in one number or lack one of its steps, loops as
    written, and tiled nests; then the neighbours of the fastest, as long as one of them is faster. With `space`, only
    the candidates that it lists, in the forms of `schedule=`. They are compiled and called in the same order each time,
    alternating for `rounds` calls, and compared by medians.

    The results of each are compared with those of the first: the same bits, or with `tl.reduce` or permissions, floats
    that differ by no more than the square root of epsilon times the largest. Candidates that differ more, or cannot be
    compiled, are refused; `refused` of the result counts the reasons, `report` tells all. The arrays that are passed
    are not changed: the kernel writes to copies.

    No candidate is started after `seconds`, and Ctrl-C ends the search; both return the best so far. `map`
    distributes candidates, as `Executor.map` does, each beside the best so far: see docs/cluster.md.

    Raises CallTypeError and CallValueError for arguments that do not fit, and if no candidate is valid.
    """
    with boundary:
        if not isinstance(kernel, Kernel):
            raise NotTuned(an(type(kernel).__name__)).error()
        if not isinstance(rounds, int | np.integer) or rounds < 1:
            raise BadTuning("rounds", shown(rounds)).error()
        if isinstance(seconds, bool) or not isinstance(seconds, int | float | np.number) or not seconds >= 0:
            raise BadTuning("seconds", shown(seconds)).error()
        if isinstance(space, str) or not isinstance(space, Iterable | None):
            raise BadTuning("space", shown(space)).error()
        line = StatusLine(sys.stderr)
        try:
            return Tuning(kernel, args, rounds, seconds, map=map, line=line).best(space)
        finally:
            line.clear()


class Tuning:
    """One search. `watch` is the clock; `map`, if given, distributes candidates."""

    def __init__(
        self,
        kernel: Kernel,
        args: Sequence[object],
        rounds: int,
        seconds: float,
        *,
        watch: Watch | None = None,
        map: Map | None = None,  # noqa: A002
        line: StatusLine | None = None,
    ) -> None:
        self._kernel, self._rounds, self._seconds = kernel, rounds, seconds
        self._watch, self._map = watch or Watch(), map
        self._line = line or StatusLine(None)
        self._end = self._watch.now() + seconds
        signature = signature_of(kernel.ir)
        self._arguments = tuple(kernel.arguments(*args).items())
        self._written = tuple((each.name, not each.is_output) for each in signature.arrays if each.is_written)
        self._trials: list[Trial] = []
        self._is_over = False

    def best(self, space: Iterable[Given] | None) -> Tuned:
        """The fastest schedule in `space`, or in the neighbourhood of the kernel's own schedule."""
        best = self._first([*self._listed(space)] if space is not None else self._own())
        first, turn = next(trial for trial in self._trials if trial.seconds is not None), 1
        while space is None and not self._is_over:
            turn += 1
            tried = [trial.candidate.steps for trial in self._trials]
            near = _distinct(around(best.candidate.steps))
            new = [replace(each, change=f"turn {turn}: {each.change}") for each in near if each.steps not in tried]
            found = self._tried(best, new) if new else best
            if found.candidate == best.candidate:
                break
            best = found
        if best.candidate != first.candidate and not self._is_over:
            # The best of many may be lucky: compare it with the first once more.
            best = self._here([first.candidate, best.candidate])
        return Tuned(self._kernel.ir, best, self._trials)

    def _own(self) -> list[Candidate]:
        func, options = self._kernel.ir, self._kernel.options
        own, *others = versions(schedule_of(func, options.schedule, options.target).steps).items()
        change = "as tirlite chooses" if options.schedule == "auto" else "as the kernel has it"
        found = [Candidate(change, own[1]), *(Candidate(f"{change} for {form.value}", steps) for form, steps in others)]
        if options.schedule != "auto":
            found.append(Candidate("as tirlite chooses", schedule_of(func, "auto", options.target).steps))
        # Candidates far from tirlite's choice come last: loops as written may take most of the time.
        return _distinct([*found, *around(own[1]), *beside(Schedule(func).func, own[1])])

    def _listed(self, space: Iterable[Given]) -> Iterator[Candidate]:
        for number, given in enumerate(space):
            change = getattr(given, "__name__", f"schedule {number}")
            try:
                options = replace(self._kernel.options, schedule=given)  # type: ignore[arg-type]
                made = schedule_of(self._kernel.ir, options.schedule, options.target)
            except TirliteError as error:
                self._trials.append(Trial(Candidate(change, ()), refused=str(error).splitlines()[0]))
            else:
                yield Candidate(change, made.steps)

    def _first(self, candidates: Sequence[Candidate]) -> Trial:
        """The fastest of these; the first one if none is clearly faster.

        With `map`, the first candidate that is not refused is timed here, and is the one to beat elsewhere.
        """
        if self._map is None:
            return self._here(candidates)
        for place, each in enumerate(candidates):
            (trial,) = trials = self._contest([each]).trials
            self._note(trials)
            if trial.seconds is not None:
                return self._tried(trial, candidates[place + 1 :])
        raise self._nothing()

    def _tried(self, beat: Trial, candidates: Sequence[Candidate]) -> Trial:
        """The fastest candidate if it is clearly faster than the one to beat, else that one."""
        if self._map is None:
            return self._here([beat.candidate, *candidates])
        groups = [candidates[start : start + _TOGETHER] for start in range(0, len(candidates), _TOGETHER)]
        # Divide the time, in case a single worker tries all shares.
        shares = [self._share([beat.candidate, *group], len(groups)) for group in groups]
        found = [beat]
        for outcome in self._map(contest, shares):
            again, *others = outcome.trials
            trials = [_scaled(each, beat, again) for each in others]
            self._note(trials)
            found += trials
        self._is_over = self._watch.now() >= self._end
        return _quickest(found)

    def _here(self, candidates: Sequence[Candidate]) -> Trial:
        outcome = self._contest(candidates)
        self._note(outcome.trials)
        found = [trial for trial in outcome.trials if trial.seconds is not None]
        if not found:
            if outcome.was_interrupted:
                raise KeyboardInterrupt
            raise self._nothing()
        return _quickest(found)

    def _note(self, trials: Iterable[Trial]) -> None:
        """Records trials, replacing earlier ones of the same candidates."""
        for each in trials:
            places = [place for place, old in enumerate(self._trials) if old.candidate == each.candidate]
            if places:
                self._trials[places[0]] = each
            else:
                self._trials.append(each)

    def _contest(self, candidates: Sequence[Candidate]) -> Outcome:
        def listen(text: str) -> None:
            left = max(0.0, self._end - self._watch.now())
            self._line.show(f"{text} ({left:.0f} s left, Ctrl-C takes the best)")

        outcome = contest(self._share(candidates), self._watch, listen)
        self._is_over = outcome.was_interrupted or self._watch.now() >= self._end
        return outcome

    def _share(self, candidates: Sequence[Candidate], parts: int = 1) -> Share:
        left = max(0.0, self._end - self._watch.now()) / parts
        return Share(self._kernel, self._arguments, self._written, tuple(candidates), self._rounds, left)

    def _nothing(self) -> TirliteError:
        reasons = Counter(trial.refused for trial in self._trials if trial.refused)
        why = "; ".join(f"{count} refused: {reason}" for reason, count in reasons.items()) or "the space is empty"
        return NothingTuned(self._kernel.name, why).error()


def _distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    found: list[Candidate] = []
    for each in candidates:
        if all(each.steps != other.steps for other in found):
            found.append(each)
    return found


def _scaled(trial: Trial, beat: Trial, again: Trial) -> Trial:
    """Scales a trial from elsewhere by the ratio of the one to beat, which was timed here and there."""
    if trial.seconds is None or not (beat.seconds and again.seconds and beat.least and again.least and trial.least):
        return trial
    seconds, least = beat.seconds / again.seconds, beat.least / again.least
    return replace(trial, seconds=trial.seconds * seconds, least=trial.least * least)


def _quickest(trials: Sequence[Trial]) -> Trial:
    """The trial with the least median that is clearly faster than the first one; else the first."""
    first, best = trials[0], trials[0]
    assert first.seconds is not None
    assert first.least is not None
    for each in trials:
        if each.seconds is None or each.least is None:
            continue
        is_clear = each.seconds < _CLEAR * first.seconds and each.least < _CLEAR * first.least
        if is_clear and each.seconds < (best.seconds or 0.0):
            best = each
    return best
