"""The tables of planted bugs: what catches each, on how many programs. A command for any number of programs.

From the root: `PYTHONPATH=tests:. python -m mutation.table --programs 100 --mutants 10000 --good 2000`. The first table
is of bugs of the storage rewrite alone, the second of all else on the way from a kernel or a graph to its result.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from mutation.corpus import Subject, library, provoking, random_programs
from mutation.finder_bugs import FINDER_BUGS
from mutation.graph_bugs import GRAPH_BUGS, found
from mutation.pass_bugs import PASS_BUGS
from mutation.plan_mutants import Tally, try_mutants
from mutation.planner_bugs import PLANNER_BUGS
from mutation.scale_bugs import SCALE_BUGS, is_seen
from mutation.shape_mutants import try_shape_mutants
from mutation.trial import Bug, Fate, fates
from mutation.whole_trial import Catcher, catchers

from tirlite.diag import TirliteError
from tirlite.plan import Plan
from tirlite.rewrite import ByShape, SplitThreads, StorageRewrite

BUGS = (*FINDER_BUGS, *PLANNER_BUGS)
STRATEGIES = ("share", "pack", "tvm")
GOOD_STRATEGIES = (*STRATEGIES, "per_shape")
# Graphs on which a bug of a graph planner is tried.
GRAPHS = range(40)


def tried(bug: Bug, subjects: Sequence[Subject]) -> Counter[Fate]:
    """How often each fate met the bug: on all `subjects`, each under one strategy, the first 40 under all."""
    counts: Counter[Fate] = Counter()
    for number, subject in enumerate(subjects):
        if subject.only is not None and bug.name not in subject.only:
            continue
        few = bug.strategies if number < 40 else (bug.strategies[number % len(bug.strategies)],)
        for strategy in few:
            for fate in fates(bug, subject, strategy):
                counts[fate] += 1
                if fate is Fate.MISSED:
                    print(f"missed: {bug.name} in {subject.name} under {strategy}", file=sys.stderr)
    return counts


def false_alarms(subjects: Iterable[Subject]) -> list[str]:
    """The programs whose good plans are refused. In every second one, blocks of threads are loops already."""
    alarms = []
    for number, subject in enumerate(subjects):
        strategy = GOOD_STRATEGIES[number % len(GOOD_STRATEGIES)]
        try:
            func = SplitThreads()(subject.func) if number // len(GOOD_STRATEGIES) % 2 else subject.func
            _at_some_shapes(StorageRewrite(strategy, target=subject.target).planned(func).plan)
        except TirliteError as error:
            alarms.append(f"{subject.name} under {strategy}: {str(error).splitlines()[0]}")
    return alarms


def _at_some_shapes(plan: Plan | ByShape | None) -> None:
    """Plans for shapes are checked when they are made."""
    if isinstance(plan, ByShape):
        for step in range(3):
            plan.plans.entries_at(tuple(dim.nth(2 * step + number) for number, dim in enumerate(plan.plans.dims)))


def caught() -> list[tuple[str, str, str]]:
    """Each bug beside the storage rewrite, its classes, and what catches it; nothing, if that is so."""
    lines = []
    for bug in PASS_BUGS:
        who = catchers(bug)
        lines.append((bug.name, bug.classes, ", ".join(each.value for each in Catcher if each in who)))
    for bug in GRAPH_BUGS:
        number = found(bug, GRAPHS)
        lines.append((bug.name, bug.classes, f"{bug.caught_by}, on {number} of {len(GRAPHS)} graphs" if number else ""))
    lines += [(bug.name, bug.classes, bug.caught_by if is_seen(bug) else "") for bug in SCALE_BUGS]
    return lines


def classes() -> dict[int, list[str]]:
    """The names of the bugs of each class of what goes wrong in planners."""
    named: dict[int, list[str]] = {}
    for bug in (*BUGS, *PASS_BUGS, *GRAPH_BUGS, *SCALE_BUGS):
        for each in bug.classes.split(", "):
            named.setdefault(int(each), []).append(bug.name)
    return dict(sorted(named.items()))


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
    print(f"{len(subjects)} programs\n")
    others = caught()
    missed += sum(not who for _, _, who in others)
    print(_text(("planted bug", "class", "caught by"), others))
    print("\n" + "\n".join(f"class {number}: {'; '.join(names)}" for number, names in classes().items()) + "\n")
    tally, of_shapes = _mutants(subjects, given.mutants)
    print(f"{tally}\nat some shapes: {of_shapes}")
    alarms = false_alarms(random_programs(given.first, given.good))
    print(f"{given.good} good plans of random programs: {len(alarms)} false alarms")
    print("\n".join(alarms))
    return 1 if missed or tally.missed or of_shapes.missed or alarms else 0


def _mutants(subjects: Sequence[Subject], count: int) -> tuple[Tally, Tally]:
    """What becomes of so many mutants of plans, and of a third as many of plans for shapes."""
    tally, of_shapes = Tally(), Tally()
    for number, subject in enumerate(subjects * 1_000):
        if tally.tried >= count:
            break
        try_mutants(subject, STRATEGIES[number % 3], number, 20, tally)
        if of_shapes.tried < count // 3:
            try_shape_mutants(subject, number, 20, of_shapes)
    return tally, of_shapes


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
