"""The best that one layout can do for several values of the dims, by CP-SAT: is a plan's distance to its bound its own?

From the root: `PYTHONPATH=tests:. python -m plan.one_layout MODEL.onnx --values 1,2,7,40 --count 12`. A layout says of
each two tensors that live at one time which lies below the other, or that one overwrites the other; offsets follow from
that at each call. The least of the largest ratio to the bound is sought over all such layouts.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from random import Random

from ortools.sat.python import cp_model

import tirlite as tl
from tirlite.plan import Plan, Problem
from tirlite.sizes import Dim, evaluate

_DIGITS = 10_000


def least_ratio(
    problem: Problem, at: Sequence[Mapping[Dim, int]], bounds: Sequence[int], seconds: float
) -> tuple[float, float]:
    """The least of the largest ratio of bytes to `bounds`, one a binding, that was found, and what it is at least."""
    model, every = cp_model.CpModel(), range(len(at))
    requests = [each for each in problem.requests if each.memories[0] == "global"]
    sizes = {each.id: [evaluate(each.size, binding) for binding in at] for each in requests}
    most = [sum(sizes[each.id][k] + each.align for each in requests) for k in every]
    offsets = {
        each.id: [each.align * model.new_int_var(0, most[k] // each.align, "") for k in every] for each in requests
    }
    pairs = {pair: model.new_bool_var("") for pair in problem.in_place if offsets.keys() >= set(pair)}
    for each in requests:
        for side in (0, 1):
            model.add_at_most_one(taken for pair, taken in pairs.items() if pair[side] == each.id)
    for (one, other), taken in pairs.items():
        for k in every:
            model.add(offsets[one][k] == offsets[other][k]).only_enforce_if(taken)
    for one, other in combinations(requests, 2):
        if not any(low < end and start < high for start, end in one.live for low, high in other.live):
            continue
        below = model.new_bool_var("")
        apart = [~taken for pair, taken in pairs.items() if set(pair) == {one.id, other.id}]
        for low, high, way in ((one.id, other.id, below), (other.id, one.id, ~below)):
            for k in every:
                model.add(offsets[low][k] + sizes[low][k] <= offsets[high][k]).only_enforce_if(way, *apart)
    ratio = model.new_int_var(_DIGITS, 100 * _DIGITS, "")
    for each, k in product(requests, every):
        model.add(_DIGITS * (offsets[each.id][k] + sizes[each.id][k]) <= ratio * bounds[k])
    model.minimize(ratio)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return float("inf"), solver.best_objective_bound / _DIGITS
    return solver.objective_value / _DIGITS, solver.best_objective_bound / _DIGITS


def told(plan: Plan, values: Sequence[int], count: int, seconds: float) -> str:
    """The largest ratio of a plan, that of the best layout, and what that is at least, over `count` bindings."""
    dims = plan.problem.dims
    every = [dict(zip(dims, each, strict=True)) for each in product(values, repeat=len(dims))]
    at = Random(0).sample(every, min(count, len(every)))
    bounds = [plan.at(binding).open_bound for binding in at]
    now = max(plan.at(binding).total / bound for binding, bound in zip(at, bounds, strict=True))
    best, least = least_ratio(plan.problem, at, bounds, seconds)
    return f"{now:.4f} of the bound at most; the best one layout {best:.4f}, none below {least:.4f}; {len(at)} bindings"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", metavar="MODEL.onnx", nargs="+")
    parser.add_argument("--values", default="1,2,7,40", help="of the dims (%(default)s)")
    parser.add_argument("--count", type=int, default=12, help="bindings of these values (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="for the search (%(default)s)")
    given = parser.parse_args()
    for model in given.models:
        plan = tl.graph.compile(tl.from_onnx(model)).plan
        print(model, told(plan, [int(each) for each in given.values.split(",")], given.count, given.seconds))
