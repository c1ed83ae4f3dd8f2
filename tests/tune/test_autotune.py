"""`tl.autotune`: which schedules are tried, compared and refused, and which is returned. No test reads a clock."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tirlite as tl
from tirlite.ir import Store
from tirlite.schedules import Split
from tirlite.show import status_line
from tirlite.show.status_line import StatusLine
from tirlite.tune import Trial, Tuned
from tirlite.tune.autotune import Tuning
from tirlite.tune.contest import Candidate, Share, Watch, around, contest

n, m = tl.dims("n m")
ONE = tl.Target.host(workers=1)


@tl.kernel(target=ONE)
def turned(x: tl.f32[n, m], y: tl.out[tl.f32[m, n]]):
    for i in range(n):
        for j in range(m):
            y[j, i] = x[i, j]


@tl.kernel(target=ONE)
def shifted(x: tl.f32[40], y: tl.out[tl.f32[40]]):
    for i in range(40):
        y[i] = x[i] + 1


@tl.kernel(target=ONE)
def sums(x: tl.f32[n, m], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 0
        for j in tl.reduce(m):
            y[i] += x[i, j]


@tl.kernel(target=ONE)
def doubled(x: tl.f32[n]):
    for i in range(n):
        x[i] = x[i] * 2


@tl.kernel(target=ONE)
def positive(x: tl.f32[n]):
    for i in range(n):
        assert x[i] > 0, "it is positive"


ROW = np.arange(40, dtype=np.float32)
X = np.random.default_rng(0).normal(size=(33, 50)).astype(np.float32)


class Clock:
    """Time that stands still but while calls are timed: those of a candidate take what `seconds` says, else 1."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._seconds = seconds
        self.time = 0.0
        self.timed: list[str] = []

    def watch(self) -> Watch:
        return Watch(lambda: self.time, self._timed)

    def _timed(self, candidate: Candidate, call: Callable[[], object], times: int) -> float:
        call()
        self.timed.append(candidate.change)
        took = self._seconds.get(candidate.change, 1.0)
        self.time += took
        return took


def tuned(kernel: tl.schedules.Schedule, *args: object, seconds: float = 1e6, space=None, **takes: float) -> Tuned:
    clock = Clock({name.replace("_", " "): value for name, value in takes.items()})
    return Tuning(kernel, args, 2, seconds, watch=clock.watch()).best(space)


def rowwise(s: tl.Schedule) -> None:
    s.split("i", 8)


def columnwise(s: tl.Schedule) -> None:
    s.reorder("j", "i")


def test_the_quickest_is_returned_and_can_be_passed_and_printed_and_read_again() -> None:
    clock = Clock({"tiles of 16 x 16 over 'i' and 'j'": 0.5})
    found = Tuning(turned, (X,), 2, 1e6, watch=clock.watch()).best(None)
    assert (found.change, found.seconds) == ("tiles of 16 x 16 over 'i' and 'j'", 0.5)
    assert str(found).splitlines()[1:4] == [
        "s.split('i', 16)",
        "s.split('j', 16)",
        "s.reorder('i.outer', 'j.outer', 'i.inner', 'j.inner')",
    ]
    made = tl.compile(turned, schedule=found)
    assert np.array_equal(made(X), X.T)
    names = {"tl": tl, "turned": turned}
    exec(str(found), names)
    assert str(tl.compile(turned, schedule=names["s"]).lowered) == str(made.lowered)
    # It went on around the quickest, and found nothing better.
    changes = [trial.candidate.change for trial in found.trials]
    assert "turn 2: split('i', 8) in place of 16" in changes
    steps = [trial.candidate.steps for trial in found.trials]
    assert all(steps.count(each) == 1 for each in steps)


def test_what_is_hardly_quicker_does_not_take_the_place_of_the_answer() -> None:
    found = tuned(turned, X, space=[rowwise, columnwise], rowwise=1.0, columnwise=0.985)
    assert (found.change, found.seconds) == ("rowwise", 1.0)


def test_what_was_quicker_once_by_chance_is_not_taken() -> None:
    clock, calls = Clock({}), []
    watch = clock.watch()

    def timed(candidate: Candidate, call: Callable[[], object], times: int) -> float:
        calls.append(candidate.change)
        is_lucky = candidate.change == "columnwise" and calls.count("columnwise") <= 3
        return watch.timed(candidate, call, times) * (0.5 if is_lucky else 1.0)

    found = Tuning(turned, (X,), 2, 1e6, watch=Watch(watch.now, timed)).best([rowwise, columnwise])
    assert calls.count("columnwise") == 6
    assert found.change == "rowwise"


def test_candidates_come_in_the_same_order_each_time_and_those_of_the_same_loops_once() -> None:
    first, second = (tuned(shifted, ROW) for _ in range(2))
    assert first.trials == second.trials
    assert first.trials[1].same_as == "as tirlite chooses"
    assert [bool(each.same_as) for each in first.trials] == [False, *[True] * (len(first.trials) - 1)]
    assert first.report.endswith(f"{len(first.trials) - 1} come to the same loops as others")


def test_an_authors_space_is_all_that_is_tried() -> None:
    found = tuned(turned, X, space=[rowwise, columnwise, None, "auto", tl.schedule(turned)], columnwise=0.5)
    assert [trial.candidate.change for trial in found.trials] == [
        *("rowwise", "columnwise", "schedule 2", "schedule 3", "schedule 4")
    ]
    assert str(found).splitlines()[1:] == ["s.reorder('j', 'i')"]


def test_time_that_is_over_leaves_the_first_one() -> None:
    found = tuned(turned, X, space=[rowwise, columnwise, None], seconds=0.0)
    assert found.change == "rowwise"
    assert [trial.seconds for trial in found.trials] == [1.0, *[None] * (len(found.trials) - 1)]
    assert found.report.endswith(f"{len(found.trials) - 1} not tried, as the time was over")


def test_an_interrupt_returns_the_best_so_far_or_goes_through_where_nothing_was_timed() -> None:
    clock = Clock({"columnwise": 0.5})
    watch = clock.watch()

    def interrupted(candidate: Candidate, call: Callable[[], object], times: int) -> float:
        if len(clock.timed) > 4:
            raise KeyboardInterrupt
        return watch.timed(candidate, call, times)

    early = Tuning(turned, (X,), 9, 1e6, watch=Watch(watch.now, interrupted), line=None)
    clock.timed += [""] * 3  # it comes when two have been compiled, and none timed in turns
    assert early.best([rowwise, columnwise, None]).change == "columnwise"
    clock.timed.clear()
    tuning = Tuning(turned, (X,), 9, 1e6, watch=Watch(watch.now, interrupted))
    assert tuning.best([rowwise, columnwise]).change == "columnwise"
    with pytest.raises(KeyboardInterrupt):
        Tuning(turned, (X,), 9, 1e6, watch=Watch(watch.now, interrupted)).best([rowwise, columnwise])


@pytest.mark.parametrize("space", ["auto", 5, rowwise, tl.schedule(turned)])
def test_a_space_is_a_list(space: object) -> None:
    with pytest.raises(tl.CallValueError, match="a tuning cannot have space="):
        tl.autotune(turned, X, space=space)  # type: ignore[arg-type]


def test_what_schedule_does_not_take_is_refused() -> None:
    found = tuned(turned, X, space=["auto", 1, "fast"])
    assert [reason.rpartition(" ")[2] for reason in found.refused] == ["1", "'fast'"]


class Wrong:
    """A pass that no schedule has: it stores something else."""

    name = "wrong"

    def __call__(self, func: tl.PrimFunc) -> tl.PrimFunc:
        return tl.ir.rewrite(func, {Store: lambda each: each.replaced(value=each.value + 1)})


def test_what_computes_something_else_is_refused_however_quick() -> None:
    found = tuned(turned, X, space=["auto", (Wrong(),), lambda s: s.split("q", 8)], schedule_1=0.1)
    assert found.change == "schedule 0"
    told = {trial.candidate.change: trial.refused for trial in found.trials}
    assert told["schedule 1"] == f"y[0, 0] is {X[0, 0] + 1} in place of {X[0, 0]}"
    assert told["<lambda>"].startswith("error[no-loop]: there is no loop `q`")
    assert list(found.refused.values()) == [1, 1]
    assert "1 refused: y[0, 0] is" in found.report


def test_arrays_that_are_updated_keep_their_values_and_each_call_begins_with_them() -> None:
    x, seen = np.arange(1, 6, dtype=np.float32), []
    clock = Clock({})
    watch = clock.watch()

    def timed(candidate: Candidate, call: Callable[[], object], times: int) -> float:
        array = call.__closure__[0].cell_contents[0]
        seen.append(array.tolist())
        assert times == 1
        return watch.timed(candidate, call, times)

    Tuning(doubled, (x,), 3, 1e6, watch=Watch(watch.now, timed)).best(None)
    assert x.tolist() == [1, 2, 3, 4, 5]
    assert len(seen) > 3
    assert all(each == x.tolist() for each in seen)


def test_sums_may_be_grouped_otherwise_and_integers_may_not() -> None:
    x = np.random.default_rng(1).normal(size=(3, 5000)).astype(np.float32)
    found = tuned(sums, x, space=["auto", None], schedule_1=0.5)
    assert found.change == "schedule 1"
    assert not found.refused


def test_places_far_apart_try_shares_beside_the_one_to_beat() -> None:
    shares: list[Share] = []

    def spread(function: Callable[[Share], object], given: list[Share]) -> list[object]:
        shares[:] = [pickle.loads(pickle.dumps(each)) for each in given]
        clock = Clock({"schedule 0": 2.0, "schedule 1": 1.0})
        return [contest(each, clock.watch()) for each in shares]

    clock = Clock({"schedule 0": 4.0, "schedule 1": 3.0})
    space = ["auto", None, lambda s: s.split("i", 4), *((Split("j", by),) for by in range(2, 7))]
    found = Tuning(turned, (X,), 2, 1e6, watch=clock.watch(), map=spread).best(space)
    assert [len(share.candidates) for share in shares] == [5, 4]
    assert all(share.candidates[0] == found.trials[0].candidate for share in shares)
    # Twice as quick as the one to beat there, and quicker here too, where the two are tried once more.
    assert (found.change, found.seconds) == ("schedule 1", 3.0)


def test_a_pool_is_a_map() -> None:
    with ThreadPoolExecutor(2) as pool:
        found = tl.autotune(turned, X, space=[None, rowwise, columnwise], rounds=1, map=pool.map)
    assert isinstance(found, tl.Schedule)
    assert sorted(trial.candidate.change for trial in found.trials) == ["columnwise", "rowwise", "schedule 0"]
    assert all(isinstance(trial, Trial) and trial.seconds for trial in found.trials)


def test_what_differs_around_a_schedule_is_one_thing() -> None:
    steps = tl.schedule(turned)
    steps.split("i", 8)
    steps.parallel("i.outer")
    assert [each.change for each in around(steps.steps)] == [
        "split('i', 2) in place of 8",
        "split('i', 4) in place of 8",
        "split('i', 16) in place of 8",
        "split('i', 32) in place of 8",
        "without split('i', 8)",
        "without parallel('i.outer')",
    ]


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (7, 0)])
def test_small_and_empty_arrays(shape: tuple[int, int]) -> None:
    x = np.ones(shape, np.float32)
    made = tl.compile(turned, schedule=tl.autotune(turned, x, rounds=1, seconds=0))
    assert made(x).shape == shape[::-1]


def test_what_no_call_survives_is_told() -> None:
    with pytest.raises(tl.CallValueError, match="nothing-tuned") as caught:
        tuned(positive, np.zeros(3, np.float32))
    assert " refused: error[assert-failed]: assertion failed: it is positive (x[i] = 0.0, i = 0)" in str(caught.value)


def test_progress_is_shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(status_line, "_QUIET", 0.0)
    monkeypatch.setattr(status_line, "_EVERY", 0.0)
    monkeypatch.setenv("COLUMNS", "200")
    stream = Terminal()
    line = StatusLine(stream)
    Tuning(turned, (X,), 2, 100.0, watch=Clock({}).watch(), line=line).best([None, "auto"])
    assert "2 of 2 compiled: schedule 1 (99 s left, Ctrl-C takes the best)" in stream.getvalue()
    assert "round 2 of 2: schedule 0" in stream.getvalue()
