"""Strategy `pack`: offsets in one arena for each memory, never more bytes than `share`, good at every binding."""

from itertools import permutations
from random import Random

import pytest
from every import every
from random_cases import groups

from tirlite.plan import Choice, Pool, Problem, Request, check, lower_bound, solve
from tirlite.plan.blocks import Block, Piece, sections_of, top_of
from tirlite.plan.pack import heuristics
from tirlite.plan.pack.heuristics import Looks, Skyline
from tirlite.plan.strategies.pack import pack
from tirlite.sizes import Dim, evaluate


def test_offsets_let_small_requests_stand_on_each_other_below_a_large_one():
    requests = (Request("a", 60, (0, 2)), Request("b", 40, (0, 3)), Request("c", 100, (3, 5)), Request("d", 60, (2, 3)))
    plan = solve(Problem(requests), "pack")
    assert plan.total == plan.lower_bound == 100
    assert plan.proved_optimal
    assert set(plan.pools) == {"global"}
    assert plan.decisions["c"].choice is Choice.PACKED


def test_alignments_of_requests_and_memory_are_kept():
    requests = (
        Request("a", 10, (0, 2), align=4, pools=("p",)),
        Request("b", 40, (0, 2), align=64, pools=("p",)),
        Request("c", 100, (2, 4), pools=("p",)),
    )
    plan = solve(Problem(requests, (Pool("p", align=16),)), "pack")
    assert plan.total == 100
    assert {name: place.offset for name, place in plan.placements.items()} == {"a": 48, "b": 0, "c": 0}
    assert plan.pools["p"].align == 64


def test_slots_that_need_no_padding_between_them_are_kept():
    requests = (
        Request("a", 10, (0, 2), align=4),
        Request("b", 10, (0, 2), align=64),
        Request("c", 10, (0, 2), align=64),
    )
    assert solve(Problem(requests), "pack").total == solve(Problem(requests), "share").total == 30


def test_the_others_lie_around_fixed_offsets():
    requests = (Request("a", 10, (0, 9), fixed=20), Request("b", 20, (0, 5)), Request("c", 25, (4, 9)))
    plan = solve(Problem(requests), "pack")
    assert plan.total == 55
    assert plan.placements["a"] == ("global", 20)
    assert plan.decisions["a"].choice is Choice.FIXED


def test_gaps_of_lifetimes_are_used():
    requests = (Request("a", 64, ((0, 1), (5, 6))), Request("b", 64, (2, 4)), Request("c", 8, (0, 6)))
    assert solve(Problem(requests), "pack").total == 72


def test_memories_are_apart():
    requests = (Request("a", 64, (0, 2)), Request("b", 32, (0, 2), "shared"))
    plan = solve(Problem(requests), "pack")
    assert {name: region.size for name, region in plan.pools.items()} == {"global": 64, "shared": 32}


def test_an_arena_is_not_called_like_a_request():
    plan = solve(Problem((Request("global", 64, (0, 2)),)), "pack")
    assert list(plan.pools) == ["global'"]


def test_nothing_to_pack():
    assert solve(Problem(()), "pack").total == 0
    assert solve(Problem((Request("a", 0, (0, 1)), Request("b", 0, (0, 1)))), "pack").total == 0


def random_requests(random, count, sizes, *, fixed=False):
    requests = []
    for i in range(count):
        low = random.randrange(12)
        live = [(low, low + random.randrange(1, 8))]
        if random.random() < 0.25:
            live.append((live[0][1] + 2, live[0][1] + 4))
        align = random.choice([1, 1, 4, 16])
        offset = random.randrange(4) * 16 if fixed and i == 0 else None
        requests.append(Request(f"r{i}", random.choice(sizes), tuple(live), align=align, fixed=offset))
    return tuple(requests)


def best_total(problem):
    """The least bytes, by putting requests as low as they go, in every order."""
    return min(first_fit_total(problem.requests, order) for order in permutations(problem.requests))


def first_fit_total(requests, order):
    placed = {r.id: r.fixed for r in requests if r.fixed is not None}
    by_id = {r.id: r for r in requests}
    for request in order:
        if request.id in placed:
            continue
        taken = sorted((o, o + by_id[n].size) for n, o in placed.items() if together(by_id[n], request))
        offset = 0
        for low, high in taken:
            if offset + request.size > low and offset < high:
                offset = -(-high // request.align) * request.align
        placed[request.id] = offset
    return max(offset + by_id[name].size for name, offset in placed.items())


def together(a, b):
    return a.size and b.size and any(s < y and x < t for s, t in a.live for x, y in b.live)


@every("seed", range(60))
def test_small_problems_are_mostly_packed_as_well_as_in_any_order(seed):
    random = Random(seed)
    problem = Problem(random_requests(random, random.randrange(1, 7), [8, 16, 24, 40, 100], fixed=seed % 3 == 0))
    total = solve(problem, "pack").total
    assert total >= best_total(problem) >= lower_bound(problem)
    assert total <= best_total(problem) * 1.1


def random_problem(seed, sizes):
    random = Random(seed)
    requests = random_requests(random, random.randrange(1, 40), sizes)
    scopes = ["global"] * 4 + ["shared"]
    return Problem(tuple(Request(r.id, r.size, r.live, random.choice(scopes), r.align) for r in requests))


@every("seed", range(60))
def test_on_random_constant_problems_it_is_between_the_bound_and_share(seed):
    problem = random_problem(seed, [0, 1, 4, 5, 16, 60, 64, 100, 255, 256, 1000, 5000])
    packed, share, tvm = (solve(problem, name).total for name in ("pack", "share", "tvm"))
    assert lower_bound(problem) <= packed <= share <= tvm


@pytest.mark.parametrize("seed", groups(30))
def test_on_random_symbolic_problems_it_is_so_at_every_binding_beside_slots_that_are_aligned(seed):
    n, m, k = Dim("n"), Dim("m", max=64), Dim("k", multiple_of=8)
    problem = random_problem(seed, [4 * n, 8 * n, 4 * m, 4 * n * m, 64, 1000, 4 * k, k * m, 4 * n + 4 * k, n // 4 + 1])
    plans = [solve(problem, name) for name in ("pack", "share", "tvm")]
    random, sizes = Random(seed), [lower_bound(problem), *(plan.total for plan in plans)]
    for _ in range(20):
        binding = {n: 2 ** random.randrange(9), m: random.randrange(1, 65), k: 8 * random.randrange(1, 40)}
        bound, pack, share, tvm = [evaluate(size, binding) for size in sizes]
        aligned = sum(-(-region.size // 16) * 16 for region in plans[1].at(binding).pools.values())
        assert bound <= pack <= aligned
        assert share <= tvm


def test_multiples_of_one_size_are_packed_as_numbers():
    n = Dim("n")
    requests = (Request("a", 6 * n, (0, 2)), Request("b", 4 * n, (0, 3)), Request("c", 10 * n, (3, 5)))
    plan = solve(Problem((*requests, Request("d", 6 * n, (2, 3)))), "pack")
    assert plan.total == 10 * n
    assert plan.proved_optimal


def test_symbolic_offsets_are_maxima_of_what_lies_below():
    n, m = Dim("n"), Dim("m")
    requests = [Request("a", 4 * n, (0, 2)), Request("b", 4 * m, (2, 4)), Request("c", 8, (1, 3))]
    plan = solve(Problem((*requests, Request("d", 4 * n * m, (1, 3)))), "pack")
    assert str(plan.total) in ("4*m*n + 4*max(m, n) + 8", "4*m*n + 8 + 4*max(m, n)", str(lower_bound(plan.problem)))


def test_the_answer_does_not_depend_on_the_budget_being_more_than_enough():
    problem = random_problem(7, [16, 60, 64, 100, 255, 256, 1000, 5000])
    assert pack(problem, 10).total >= pack(problem, 20_000).total == pack(problem, 20_000).total


def test_blocks_of_one_lifetime_are_looked_at_once():
    blocks = [Block((Piece(0, 9, 1 + i % 7),)) for i in range(300)] + [Block((Piece(i, i + 1, 4),)) for i in range(9)]
    work = Looks(100_000)
    offsets = Skyline(sections_of(blocks), [1] * len(blocks)).fill([0.0] * len(blocks), work)
    assert top_of(blocks, offsets) == sum(block.size for block in blocks[:300]) + 4
    assert work.left > 100_000 - 5_000  # each of 300 again for each other would be 45,000 looks


def branches(count: int) -> Problem:
    """Each has two temporaries, and a result that lives until all are joined at the end."""
    numbers = Random(1)
    lives = [((3 * i, 3 * i + 2), (3 * i + 1, 3 * i + 3), (3 * i + 2, 3 * count + 1)) for i in range(count)]
    spans = [live for each in lives for live in each]
    return Problem(tuple(Request(f"b{i}", numbers.randrange(1, 5000), live) for i, live in enumerate(spans)))


def test_the_fill_comes_first_where_hundreds_of_blocks_live_to_one_end(monkeypatch):
    monkeypatch.setattr(Skyline, "fill", None)
    plan = solve(branches(330), "pack")
    assert plan.total == plan.lower_bound


def test_a_skyline_that_takes_too_long_is_given_up(monkeypatch):
    problem = branches(20)
    monkeypatch.setattr(heuristics, "_PATIENCE", 0)
    monkeypatch.setattr(heuristics, "_PATIENCE_PER_BLOCK", 0)
    sections = sections_of([Block((Piece(*request.live[0], request.size),)) for request in problem.requests])
    assert Skyline(sections, [1] * len(problem.requests)).fill([0.0] * len(problem.requests), Looks(10)) == []
    plan = solve(problem, "pack")
    assert plan.lower_bound <= plan.total <= solve(problem, "share").total


def test_a_fixed_offset_among_lifetimes_with_many_gaps():
    often = tuple((2 * time, 2 * time + 1) for time in range(5))
    problem = Problem((Request("a", 4, (0, 9), fixed=4), Request("b", 4, often)))
    assert solve(problem, "pack").placements["b"].offset == 0


def test_pairs_of_share_that_pack_would_not_take_are_no_reason_to_need_more():
    requests = (
        Request("a", 7, (0, 1), align=2),
        Request("b", 7, (0, 4), align=4),
        Request("c", 7, ((0, 3), (4, 6))),
        Request("d", 7, (4, 7)),
        Request("e", 7, (4, 7), align=4),
        Request("f", 7, (5, 9), align=2),
    )
    pairs = (("b", "a"), ("f", "d"), ("d", "c"), ("f", "e"), ("e", "c"), ("e", "d"), ("c", "a"), ("f", "c"))
    problem = Problem(requests, in_place=pairs)
    assert solve(problem, "pack").total <= solve(problem, "share").total == 14


def test_very_many_pairs_in_place_that_reach_what_any_plan_needs_are_proved_to():
    n = Dim("n")
    for size in (8, 8 * n):
        requests = tuple(Request(f"r{i}", size, (i, i + 2)) for i in range(200))
        pairs = tuple((f"r{i + 1}", f"r{i}") for i in range(199))
        plan = pack(Problem(requests, in_place=pairs))
        assert (plan.total, plan.proved_open, plan.proved_optimal) == (size, size, True)
        assert check(plan.problem, plan)
        assert solve(plan.problem, "share").total == size
