"""Numbers of random programs in, what fails of them out: each program with a setup of its own, or with all of them.

As a command: `PYTHONPATH=.:tests python tests/fuzz/campaign.py 20000 --jobs 2`; `--full-cross` tries each program with
every setup; `--seed S` tries one, and prints the smallest program that fails in the same way.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from time import perf_counter

from fuzz.coverage import coverage
from fuzz.generator import generate
from fuzz.setups import Setup, full_cross, setup_of
from fuzz.shrink import smallest
from fuzz.trial import Failure, apart, trial

# Programs that one process tries: one that crashes is tried anew, one by one.
GROUP = 20


def tried(seeds: Sequence[int], *, crossed: bool = False) -> Iterator[tuple[int, Setup, Failure]]:
    """The failures of the programs of these seeds."""
    with few_collections():
        for seed in seeds:
            program = generate(seed)
            for setup in full_cross() if crossed else (setup_of(seed),):
                failure = trial(program, setup)
                if failure is not None:
                    yield seed, setup, failure


@contextmanager
def few_collections() -> Iterator[None]:
    """Garbage is collected afterwards: looking for it while programs are compiled takes a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _group(task: tuple[range, bool]) -> list[tuple[int, Setup, Failure]]:
    """The failures of a few seeds; those of a crash are found out one by one."""
    seeds, crossed = task
    if apart(lambda: next((found[2] for found in tried(seeds, crossed=crossed)), None)) is None:
        return []
    failures = []
    for seed in seeds:
        program = generate(seed)
        for setup in full_cross() if crossed else (setup_of(seed),):
            failure = apart(lambda program=program, setup=setup: trial(program, setup))
            if failure is not None:
                failures.append((seed, setup, failure))
    return failures


def explained(seed: int, setup: Setup) -> str:
    """What goes wrong with a program, and the smallest one with which it does; "" for nothing."""
    program = generate(seed)
    failure = apart(lambda: trial(program, setup))
    if failure is None:
        return ""
    least = smallest(program, lambda candidate: failure.is_like(apart(lambda: trial(candidate, setup))))
    bindings = [{dim.name: size for dim, size in binding.items()} for binding in least.bindings]
    return f"seed {seed}: {setup}\nstep {failure.step}\n\n{least.func}\nat {bindings}\n\n{failure.told}"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="random programs against the interpreter")
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--full-cross", action="store_true", help="each program with all setups")
    parser.add_argument("--seed", type=int, help="shrink one program")
    arguments = parser.parse_args(argv)
    if arguments.seed is not None:
        told = explained(arguments.seed, setup_of(arguments.seed))
        print(told or f"seed {arguments.seed} passes: {setup_of(arguments.seed)}")
        return 1 if told else 0
    start, end = perf_counter(), arguments.first + arguments.count
    groups = [range(first, min(first + GROUP, end)) for first in range(arguments.first, end, GROUP)]
    kinds: Counter[str] = Counter()
    with get_context("fork").Pool(arguments.jobs) as pool:
        tasks = [(group, arguments.full_cross) for group in groups]
        for number, failures in enumerate(pool.imap_unordered(_group, tasks), 1):
            if not number % 10:
                print(f"{number * GROUP} programs, {perf_counter() - start:.0f} s", flush=True)
            for seed, setup, failure in failures:
                kinds[f"{failure.step}: {failure.kind}"] += 1
                print(f"=== seed {seed}: {setup}: {failure.step}: {failure.kind}\n{failure.told}", flush=True)
    sample = [generate(seed) for seed in range(arguments.first, min(end, arguments.first + 500))]
    print("\n".join(f"{share:4.0%}  {feature}" for feature, share in coverage(sample).items()))
    print(f"{arguments.count} programs, {kinds.total()} failures, {perf_counter() - start:.0f} s: {dict(kinds)}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
