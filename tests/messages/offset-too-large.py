from tirlite.plan import Problem, Request, solve
from tirlite.sizes import Dim
from tirlite.solver import compiled_offsets

n = Dim("n")
plan = solve(Problem((Request("a", 16 * n, (0, 2)), Request("b", 8 * n, (1, 3)))), "pack")
compiled_offsets(plan)((1 << 62,))
