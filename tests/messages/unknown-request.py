from tirlite.plan import Problem, Request, solve

solve(Problem((Request("rows", 4, (0, 2)),))).explain("rovs")
