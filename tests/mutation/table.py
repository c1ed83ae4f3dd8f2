"""The table of planted bugs: which check catches each, on how many programs. A command for any number of programs.

From the root: `PYTHONPATH=tests:. python -m mutation.table --programs 100 --mutants 10000 --good 2000`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from mutation.corpus import Subject, library, provoking, random_programs
from mutation.finder_bugs import FINDER_BUGS
from mutation.plan_mutants import Tally, try_mutants
from mutation.planner_bugs import PLANNER_BUGS
from mutation.trial import Bug, Fate, fates

from tirlite.diag import TirliteError
from tirlite.rewrite import StorageRewrite

BUGS = (*FINDER_BUGS, *PLANNER_BUGS)
STRATEGIES = ("share", "pack", "tvm")


def tried(bug: Bug, subjects: Sequence[Subject]) -> Counter[Fate]:
    """How often each fate met the bug: on all `subjects`, each under one strategy, the first 40 under all."""
    found: Counter[Fate] = Counter()
    for number, subject in enumerate(subjects):
        if subject.only is not None and bug.name not in subject.only:
            continue
        few = bug.strategies if number < 40 else (bug.strategies[number % len(bug.strategies)],)
        for strategy in few:
            for fate in fates(bug, subject, strategy):
                found[fate] += 1
                if fate is Fate.MISSED:
                    print(f"missed: {bug.name} in {subject.name} under {strategy}", file=sys.stderr)
    return found


def false_alarms(subjects: Iterable[Subject]) -> list[str]:
    """The programs whose good plans are refused."""
    found = []
    for number, subject in enumerate(subjects):
        try:
            StorageRewrite(STRATEGIES[number % len(STRATEGIES)], target=subject.target)(subject.func)
        except TirliteError as error:
            found.append(f"{subject.name}: {str(error).splitlines()[0]}")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Tries all, and prints a table; the exit code says whether something was missed."""
    parser = argparse.ArgumentParser(description="what the two checks of storage catch")
    parser.add_argument("--programs", type=int, default=100, help="random programs on which each bug is tried")
    parser.add_argument("--mutants", type=int, default=1_000, help="mutants of good plans")
    parser.add_argument("--good", type=int, default=300, help="random programs whose plans must pass")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args(argv)
    subjects = [*provoking(), *library(), *random_programs(given.first, given.programs)]
    missed = 0
    kinds = (Fate.PLAN_CHECK, Fate.STORAGE_CHECK, Fate.CRASH, Fate.HARMLESS, Fate.MISSED)
    lines = []
    for bug in BUGS:
        counts = tried(bug, subjects)
        missed += counts[Fate.MISSED]
        lines.append((bug.name, bug.classes, *(str(counts[kind]) for kind in kinds)))
        print(f"{bug.name}: {', '.join(f'{kind.value} {counts[kind]}' for kind in kinds)}", file=sys.stderr, flush=True)
    print(_text(("planted bug", "class", *(kind.value for kind in kinds)), lines))
    print(f"{len(subjects)} programs")
    tally = Tally()
    for number, subject in enumerate(subjects * 1_000):
        if tally.tried >= given.mutants:
            break
        try_mutants(subject, STRATEGIES[number % 3], number, 20, tally)
    print(tally)
    alarms = false_alarms(random_programs(given.first, given.good))
    print(f"{given.good} good plans of random programs: {len(alarms)} false alarms")
    print("\n".join(alarms))
    return 1 if missed or tally.missed or alarms else 0


def _text(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in (head, *lines)) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, *lines)
    )


if __name__ == "__main__":
    sys.exit(main())
