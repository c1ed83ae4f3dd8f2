"""A program and a seed in, mutants of its good plan out, and what the check of plans says of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from random import Random

from fuzz.program import assert_same
from mutation.corpus import Outcome, Subject

from tirlite.diag import TirliteError
from tirlite.plan import Plan, check
from tirlite.plan.layout import Placement
from tirlite.rewrite import StorageRewrite

# The package has a function of this name.
STRATEGIES = import_module("tirlite.plan.strategy").STRATEGIES

# How often is drawn until a mutant is not the plan itself: some plans have one request.
_DRAWS = 20


@dataclass
class Tally:
    """How many mutants were tried, rejected, harmless, and which were missed."""

    tried: int = 0
    rejected: int = 0
    harmless: int = 0
    missed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.tried} mutants of plans: {self.rejected} rejected, {self.harmless} shown harmless by running,"
            f" {len(self.missed)} missed {'; '.join(self.missed[:10])}"
        )


def mutant(plan: Plan, random: Random) -> Plan:
    """The plan with one thing changed: a place, two places, a pool, a pair."""
    names, pools = list(plan.placements), list(plan.pools)
    places, regions = dict(plan.placements), dict(plan.pools)
    name, other = random.choice(names), random.choice(names)
    pool = random.choice(pools)
    region = regions[pool]
    kind = random.choice(("move", "move", "swap", "join", "shrink", "misalign", "merge", "drop", "unpair", "trade"))
    if kind == "move":
        step = random.choice((-64, -8, -4, 4, 8, 64, plan.problem.by_id[other].size))
        places[name] = Placement(places[name].pool, places[name].offset + step)
    elif kind == "swap":
        places[name], places[other] = places[other], places[name]
    elif kind == "join":
        places[name] = places[other]
    elif kind == "shrink":
        regions[pool] = replace(region, size=region.size - random.choice((1, 4, 64)))
    elif kind == "misalign":
        places[name] = Placement(places[name].pool, places[name].offset + random.choice((1, 2)))
    elif kind == "merge":
        places = {each: Placement(pool, place.offset) for each, place in places.items()}
        regions = {pool: region}
    elif kind == "drop":
        del places[name]
    elif kind == "trade":
        places[name] = Placement(pool, places[name].offset)
    pairs = plan.in_place[1:] if kind == "unpair" else plan.in_place
    used = {place.pool for place in places.values()}
    return replace(plan, placements=places, pools={n: r for n, r in regions.items() if n in used}, in_place=pairs)


def _are_alike(one: Plan, other: Plan) -> bool:
    return (one.placements, one.pools, one.in_place) == (other.placements, other.pools, other.in_place)


def try_mutants(subject: Subject, strategy: str, seed: int, count: int, tally: Tally) -> None:
    """Adds what becomes of `count` mutants of the program's plan."""
    try:
        rewrite = StorageRewrite(STRATEGIES[strategy], target=subject.target, webs=False)
        plan = rewrite.planned(subject.func).plan
    except TirliteError:
        return
    assert isinstance(plan, Plan)
    if not plan.placements:
        return
    random = Random(seed)
    wanted: Outcome | None = None
    for number in range(count):
        drawn = (mutant(plan, random) for _ in range(_DRAWS))
        changed = next((each for each in drawn if not _are_alike(each, plan)), None)
        if changed is None:
            continue
        tally.tried += 1
        if not check(plan.problem, changed):
            tally.rejected += 1
        else:
            try:
                func = StorageRewrite(lambda _, made=changed: made, target=subject.target, webs=False)(subject.func)
                if subject.run is not None:
                    wanted = wanted or subject.run(subject.raw)
                    assert_same(wanted, subject.run(func))
                tally.harmless += 1
            except (TirliteError, AssertionError, KeyError) as error:
                tally.missed.append(f"{subject.name} under {strategy}, seed {seed}, {number}: {error!r}")
