"""A program in, mutants of its plans for some shapes out, and what the check of such plans says of each."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from mutation.corpus import Subject
from mutation.plan_mutants import Tally

from tirlite.diag import TirliteError
from tirlite.plan import PerShape
from tirlite.rewrite.storage.shape_rewrite import ByShape
from tirlite.rewrite.storage.storage_problem import storage_problem


def try_shape_mutants(subject: Subject, seed: int, count: int, tally: Tally) -> None:
    """Adds what becomes of `count` mutants of plans for shapes; those that pass are looked at byte by byte."""
    try:
        plans = ByShape.of(storage_problem(subject.func, subject.target, lines=True), 0).plans
    except TirliteError:
        return
    if not plans.places:
        return
    random = Random(seed)
    for number in range(count):
        values = tuple(dim.nth(random.randint(0, 6)) for dim in plans.dims)
        entries, sizes = list(plans.entries_at(values)), plans._sizes_at(values)
        _mutate(entries, sizes, plans, random)
        if tuple(entries) == tuple(plans.entries_at(values)):
            continue
        tally.tried += 1
        if plans.conditions.fault(entries, sizes):
            tally.rejected += 1
        elif _is_sound(plans, entries, sizes):
            tally.harmless += 1
        else:
            tally.missed.append(f"{subject.name} at {values}, seed {seed}, {number}")


def _mutate(entries: list[int], sizes: Sequence[int], plans: PerShape, random: Random) -> None:
    """Changes one number: a place moves a little, or to where another one lies, two trade, or an arena shrinks."""
    arenas = len(plans.arenas)
    place, other = random.randrange(arenas, len(entries)), random.randrange(arenas, len(entries))
    kind = random.choice(("move", "onto", "trade", "shrink"))
    if kind == "move":
        entries[place] += random.choice((-64, -8, -4, -1, 1, 4, 8, 64, sizes[other]))
    elif kind == "onto":
        entries[place] = entries[other]
    elif kind == "trade":
        entries[place], entries[other] = entries[other], entries[place]
    else:
        entries[random.randrange(arenas)] -= random.choice((1, 4, 64))


def _is_sound(plans: PerShape, entries: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether no two requests that live together share a byte, but for those at one place, and each lies inside."""
    arenas = len(plans.arenas)
    ends = [entry + size for entry, size in zip(entries, sizes, strict=True)]
    for one in range(arenas, len(entries)):
        home = plans.conditions.arenas[one]
        requests = [plans.problem.by_id[name] for name in plans.places[one - arenas]]
        if entries[one] < 0 or ends[one] > entries[home] or any(entries[one] % each.align for each in requests):
            return False
        for other in range(arenas, one):
            if home != plans.conditions.arenas[other] or not sizes[one] or not sizes[other]:
                continue
            lives = [i for each in requests for i in each.live]
            others = [i for name in plans.places[other - arenas] for i in plans.problem.by_id[name].live]
            together = any(a < d and c < b for a, b in lives for c, d in others)
            if together and entries[one] < ends[other] and entries[other] < ends[one]:
                return False
    return True
