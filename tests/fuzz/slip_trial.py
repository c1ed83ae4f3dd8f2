"""Runs random kernels with slips, compiled and by the interpreter: both say the same and leave the same.

As a command: `PYTHONPATH=.:tests python tests/fuzz/slip_trial.py 20000 --jobs 2`; `--seed S` shows one.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from time import perf_counter

import numpy as np
from effort import at_effort
from fuzz.arena import WrittenBeside, watched
from fuzz.guard import guarded
from fuzz.setups import target_of
from fuzz.slips import slip
from fuzz.trial import Failure, apart

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.diag import KernelError, KernelIndexError, TirliteError
from tirlite.ir.faults import DivisionByZero, IndexOutOfBounds, UninitialisedRead, ViewOutOfBounds

GROUP = 20
_SIZES = ((4, 4), (1, 1), (5, 3), (3, 7), (0, 3), (9, 2), (6, 6))
# What plain code does not look for.
_OF_DEBUG = (UninitialisedRead, DivisionByZero)
# With `none` each buffer lies apart from all others: what is written beside one is seen.
_STRATEGIES = ("none", "auto", "none", "share", "none", "pack")


def arguments(seed: int, number: int) -> list[object]:
    """What a kernel of `slips` takes; indices are mostly in bounds."""
    draw = np.random.default_rng([seed, number])
    n, m = _SIZES[(seed + number) % len(_SIZES)]
    at = draw.integers(0, max(min(n, m), 1), m) + (draw.random(m) < 0.1) * draw.integers(-2, 9, m)
    far = draw.integers(0, max(min(n, m), 1), n)
    odd = np.choose(draw.integers(0, 3, n), [draw.integers(-(2**62), 2**62, n), 2**63 - 1 - far, -(2**63) + far])
    far = np.where(draw.random(n) < 0.1, odd, far)
    k = [0, 0, 1, -1, 3, 2**62, -(2**63)][int(draw.integers(0, 7))]
    small = [draw.integers(-4, 5, shape).astype(np.float32) for shape in ((n, m), n, (n, m), n)]
    return [small[0], small[1], at.astype(np.int32), far.astype(np.int64), k, int(draw.integers(-1, 4)), *small[2:]]


def told(run: Callable[..., object], given: Sequence[object]) -> tuple[TirliteError | None, list[np.ndarray]]:
    """The error of a run, if any, and what it leaves in the arrays."""
    error = None
    try:
        run(*given)
    except TirliteError as raised:
        error = raised
    return error, [each for each in given if isinstance(each, np.ndarray)]


def trial(seed: int) -> tuple[str, Failure | None]:
    """What became of the kernel of a seed in its runs, in a word; and what failed."""
    text = slip(seed)
    try:
        func = tl.parse(text)
    except KernelError:
        return "refused as it is read", None
    target = target_of(1 + seed % 2)
    made = tl.compile(func, strategy=_STRATEGIES[seed % 6], target=target)
    with watched():
        try:
            return _outcome(text, made, seed)
        except WrittenBeside as found:
            return "differs", Failure("beside", "padding", f"{text}\n{found}")


def _outcome(text: str, made: tl.Kernel, seed: int) -> tuple[str, Failure | None]:
    kernel = at_effort(Effort.FULL if seed % 7 == 0 else Effort.NONE, made)
    words = set()
    for number in range(3):
        given = arguments(seed, number)
        copies = [np.array(each) if isinstance(each, np.ndarray) else each for each in given]
        safe = [guarded(e, at_end=number != 1) if isinstance(e, np.ndarray) else e for e in given]
        wanted, left = told(made.interpret, copies)
        found, arrays = told(kernel, safe)
        words.add(_word(wanted))
        if isinstance(found, KernelError) and not isinstance(found, KernelIndexError):
            # Plain code does not stop at a division by zero, and comes to the access behind it.
            if isinstance(wanted, KernelIndexError) or (wanted and isinstance(wanted.messages[0], _OF_DEBUG)):
                return "refuted", None
            return "refused", Failure("refused", type(found).__name__, f"{text}\nat {given}\n{found}\n{wanted}")
        if wanted is not None and isinstance(wanted.messages[0], _OF_DEBUG):
            continue
        if str(wanted) != str(found):
            return "differs", Failure("told", type(found).__name__, f"{text}\nat {given}\n{found}\nbut\n{wanted}")
        for array, expected in zip(arrays, left, strict=True):
            if not np.array_equal(array, expected):
                return "differs", Failure("left", "arrays", f"{text}\nat {given}\n{array}\nbut\n{expected}\n{wanted}")
    return ", ".join(sorted(words)), None


def _word(error: TirliteError | None) -> str:
    if error is None:
        return "runs"
    return (
        "stops at an access" if isinstance(error.messages[0], IndexOutOfBounds | ViewOutOfBounds) else "stops otherwise"
    )


def _group(seeds: range) -> Iterator[tuple[int, str, Failure | None]]:
    return [(seed, *trial(seed)) for seed in seeds]  # type: ignore[return-value]


def _tried(seeds: range) -> list[tuple[int, str, Failure | None]]:
    """The trials of a few seeds in a process of their own; of a crash, one by one."""
    found: list[tuple[int, str, Failure | None]] = []

    def all_of_them() -> Failure | None:
        return next((failure for _, _, failure in _group(seeds) if failure is not None), None)

    if apart(all_of_them) is None:
        return [(seed, "passes", None) for seed in seeds]
    for seed in seeds:
        failure = apart(lambda seed=seed: trial(seed)[1])
        found.append((seed, "passes" if failure is None else failure.step, failure))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="random kernels with slips against the interpreter")
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, help="show one kernel, and what becomes of it")
    options = parser.parse_args(argv)
    if options.seed is not None:
        failure = apart(lambda: trial(options.seed)[1])
        print(slip(options.seed) if failure is None else failure.told)
        return failure is not None
    start, end = perf_counter(), options.first + options.count
    groups = [range(first, min(first + GROUP, end)) for first in range(options.first, end, GROUP)]
    kinds: Counter[str] = Counter()
    with get_context("fork").Pool(options.jobs) as pool:
        for number, found in enumerate(pool.imap_unordered(_tried, groups), 1):
            for seed, _, failure in found:
                if failure is not None:
                    kinds[f"{failure.step}: {failure.kind}"] += 1
                    print(f"=== seed {seed}: {failure.step}: {failure.kind}\n{failure.told}", flush=True)
            if not number % 25:
                print(f"{number * GROUP} kernels, {perf_counter() - start:.0f} s", flush=True)
    print(f"{options.count} kernels, {kinds.total()} failures, {perf_counter() - start:.0f} s: {dict(kinds)}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
