from tirlite.plan import Plan, Problem, Request, solve


def all_at_zero(problem):
    return Plan.of(problem, {request.id: ("global", 0) for request in problem.requests})


solve(Problem((Request("a", 4, (0, 2)), Request("b", 8, (1, 3)))), strategy=all_at_zero)
