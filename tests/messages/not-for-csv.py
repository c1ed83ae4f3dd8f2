from tirlite.plan import Problem, Request, write_csv

write_csv(Problem((Request("a", 4, (0, 2)), Request("b", 4, (1, 3))), in_place=(("b", "a"),)))
