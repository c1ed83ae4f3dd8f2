"""Gives problems that differ in the names of their dims one form, and so one plan.

Sums order their products by the names of dims, and proofs and heuristics depend on that order. Here dims have numbers
for names, by where they occur in the sizes.
"""

from __future__ import annotations

from _blake2 import blake2b  # the module hashlib loads a library
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tirlite.diag import TirliteError
from tirlite.plan.check import check
from tirlite.plan.layout import Decision, Placement, PlannedPool
from tirlite.plan.order import SizeOrder, drawn, samples
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.record import record, replace
from tirlite.sizes import Dim, Size, dims_of, is_at_most, substitute
from tirlite.sizes.poly import Atom, inside_out, terms_of
from tirlite.sizes.terms import spell

# Texts that are longer are digested, and more dims than this that nothing tells apart are ordered by their names.
_LONG, _SINGLED = 64, 8
# Bindings at which plans are compared where no proof does.
_SAMPLES, _DRAWN = 4, 12


def planned(problem: Problem, strategy: Callable[[Problem], Plan]) -> Plan:
    """The plan of a strategy; problems that differ only in the names of dims get the same plan.

    Facts never cost bytes: if a plan made without them is better, it is taken.
    """
    plan = _in_one_form(problem, problem.dims, strategy)
    loose = [Dim(dim.name, min=min(dim.low, 1)) for dim in problem.dims]
    has_facts = any(
        (dim.bounds, dim.divisor) != (other.bounds, 1) for dim, other in zip(problem.dims, loose, strict=True)
    )
    if not has_facts or plan.proved_optimal:
        return plan
    try:
        other = _in_one_form(problem, loose, strategy)
    except TirliteError:  # a division that may be one by zero
        return plan
    return other if _is_better(problem, other, plan) and check(problem, other) else plan


def _is_better(problem: Problem, one: Plan, other: Plan) -> bool:
    """Whether one plan needs fewer bytes: proved, or else in the mean of some bindings."""
    if is_at_most(other.total, one.total):
        return False
    if is_at_most(one.total, other.total):
        return True
    values = SizeOrder((*samples(problem.dims, _SAMPLES), *drawn(problem.dims, _DRAWN))).values
    pairs = zip(values(one.total), values(other.total), strict=True)
    return sum(first / max(second, 1) - 1 for first, second in pairs) < 0


def _in_one_form(problem: Problem, facts: Sequence[Dim], strategy: Callable[[Problem], Plan]) -> Plan:
    """The plan of a strategy for the problem with numbered dims, which have the facts of the dims `facts`."""
    form = _Form.of(problem, facts)
    try:
        plan = strategy(form.problem)
    except TirliteError:
        # What is wrong is told in the names of the author.
        if facts is not problem.dims:
            raise
        return strategy(problem)
    return transferred(plan, problem, form.dims)


@record
class _Form:
    """A problem with numbered dims, and the original dim of each."""

    problem: Problem
    dims: Mapping[Dim, Dim]

    @classmethod
    def of(cls, problem: Problem, facts: Sequence[Dim]) -> _Form:
        sizes = list(dict.fromkeys(request.size for request in problem.requests if not isinstance(request.size, int)))
        copies = [pool.copies for pool in problem.pools if not isinstance(pool.copies, int)]
        like = dict(zip(problem.dims, facts, strict=True))
        ordered = _ordered([*sizes, *copies], problem.dims)
        numbered = {dim: _numbered(number, like[dim]) for number, dim in enumerate(ordered)}
        images: dict[Size, Size] = {size: substitute(size, numbered) for size in (*sizes, *copies)}
        return cls(
            Problem(
                tuple(replace(r, size=images[r.size]) if r.size in images else r for r in problem.requests),
                tuple(replace(p, copies=images[p.copies]) if p.copies in images else p for p in problem.pools),
                problem.in_place,
                contiguous=problem.contiguous,
            ),
            {other: dim for dim, other in numbered.items()},
        )


def _numbered(number: int, facts: Dim) -> Dim:
    return Dim(f"d{number:06}", facts.min, facts.max, facts.multiple_of)


def _ordered(sizes: Sequence[Size], dims: Sequence[Dim]) -> list[Dim]:
    """The dims ordered by where they occur in the sizes, and by their facts. Ties are symmetric."""
    users: dict[Dim, list[Size]] = {dim: [] for dim in dims}
    first: dict[Dim, int] = {}
    for number, size in enumerate(sizes):
        for dim in dims_of(size):
            users[dim].append(size)
            first.setdefault(dim, number)
    ranks = _ranks({dim: (first[dim], dim.low, -1 if dim.high is None else dim.high, dim.divisor) for dim in dims})
    for _ in range(_SINGLED):
        count = 0
        while count < len(set(ranks.values())) < len(dims):
            count = len(set(ranks.values()))
            tied = _tied(ranks)
            seen = {dim: tuple(_text(size, ranks, dim) for size in users[dim]) if dim in tied else () for dim in dims}
            ranks = _ranks({dim: (rank, seen[dim]) for dim, rank in ranks.items()})
        tied = _tied(ranks)
        if not tied:
            break
        # One of those that are alike comes first, whichever; that may tell the others apart.
        chosen = min(tied, key=lambda dim: (ranks[dim], dim.name, dim.ident))
        ranks = _ranks({dim: (rank, dim is not chosen) for dim, rank in ranks.items()})
    return sorted(dims, key=lambda dim: (ranks[dim], dim.name, dim.ident))


def _tied(ranks: Mapping[Dim, int]) -> set[Dim]:
    counts = Counter(ranks.values())
    return {dim for dim, rank in ranks.items() if counts[rank] > 1}


def _ranks(keys: Mapping[Dim, tuple[object, ...]]) -> dict[Dim, int]:
    numbers = {key: rank for rank, key in enumerate(sorted(set(keys.values())))}
    return {dim: numbers[key] for dim, key in keys.items()}


def _text(size: Size, ranks: Mapping[Dim, int], marked: Dim) -> str:
    """A size as text, with ranks for names, one of them marked, and digests for long parts."""
    atoms = inside_out(size)
    names: dict[Atom, str] = {}
    loose = dict.fromkeys(atoms, False)
    for atom in atoms:
        if isinstance(atom, Dim):
            names[atom] = f"d{ranks[atom]}{'_' if atom == marked else ''}"
            continue
        text = atom.spell([spell(terms_of(each), names, loose) for each in atom.operands])
        names[atom] = text if len(text) < _LONG else blake2b(text.encode(), digest_size=16).hexdigest()
    return spell(terms_of(size), names, loose)


def transferred(plan: Plan, problem: Problem, dims: Mapping[Dim, Dim]) -> Plan:
    """The plan for a problem that differs only in names, and in the dims that `dims` replace."""
    names = {a.id: b.id for a, b in zip(plan.problem.requests, problem.requests, strict=True)}
    pools = _pool_names(plan, names)
    known: dict[Size, Size] = {}

    def renamed(size: Size) -> Size:
        if isinstance(size, int):
            return size
        if size not in known:
            known[size] = substitute(size, dims)
        return known[size]

    return replace(
        plan,
        problem=problem,
        placements={names[i]: Placement(pools[p.pool], renamed(p.offset)) for i, p in plan.placements.items()},
        pools={pools[n]: PlannedPool(r.memory, r.scope, renamed(r.size), r.align) for n, r in plan.pools.items()},
        decisions={
            names[i]: Decision(d.choice, None if d.before is None else renamed(d.before))
            for i, d in plan.decisions.items()
        },
        in_place=tuple((names[dst], names[src]) for dst, src in plan.in_place),
        proved=renamed(plan.proved),
        proved_open=renamed(plan.proved_open),
    )


def _pool_names(plan: Plan, names: Mapping[str, str]) -> dict[str, str]:
    """The names of pools after renaming requests: slots are named after a request, arenas are not."""
    taken = set(names.values())
    found = {pool: names[pool] for pool in plan.pools if pool in names}
    for pool, region in plan.pools.items():
        if pool not in names:
            name = region.memory if pool.rstrip("'") == region.memory else pool
            while name in taken:
                name += "'"
            taken.add(name)
            found[pool] = name
    return {pool: found[pool] for pool in plan.pools}
