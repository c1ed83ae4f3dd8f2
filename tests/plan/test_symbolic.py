"""Packing of symbolic sizes: one order for all values of the dims, near the bound at each, never above whole slots."""

import re
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from every import every

from tirlite.plan import Ok, Problem, Request, check, lower_bound, solve
from tirlite.plan.blocks import Block, Piece, sections_of
from tirlite.plan.in_place import handover
from tirlite.plan.order import drawn
from tirlite.plan.pack.symbolic.vectors import Cover, Products, fronts_of
from tirlite.sizes import Dim, Proof, alternatives, evaluate, maximum, prove_le

n, m, k = Dim("n", min=2), Dim("m", multiple_of=8), Dim("k", max=512)
KINDS = {
    "sums": [8 * n, 4 * m, 16 * k + 4 * n, 32 * n, 24 * m + 120, 64 * k, 4096],
    "products": [8 * n, 4 * n * k, 16 * m, 2 * n * m, 64 * k, 256],
    "quotients": [24 * ((n + 1) // 2), 8 * n, 16 * n + 64, 4 * m, 12 * (k // 4), 1024],
}


def table(sizes, count, seed):
    random = Random(seed)
    lows = [random.randrange(count) for _ in range(count)]
    return Problem(
        tuple(Request(f"b{i}", random.choice(sizes), (low, low + random.randrange(1, 9))) for i, low in enumerate(lows))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_one_plan_is_near_the_bound_at_many_bindings_and_never_above_share(kind):
    problem = table(KINDS[kind], 60, kind)
    plan, share, bound = solve(problem, "pack"), solve(problem, "share"), lower_bound(problem)
    assert plan.strategy == "pack"
    ratios = []
    for binding in drawn(problem.dims, 200):
        total = evaluate(plan.total, binding)
        assert total <= evaluate(share.total, binding)
        ratios.append(total / evaluate(bound, binding))
    assert sum(ratios) / len(ratios) < 1.06


def test_the_total_is_the_maximum_of_more_sizes_where_that_saves_bytes():
    problem = table(KINDS["products"], 150, 3)
    plan, bound = solve(problem, "pack"), lower_bound(problem)
    ratios = [evaluate(plan.total, binding) / evaluate(bound, binding) for binding in drawn(problem.dims, 100)]
    assert sum(ratios) / len(ratios) < 1.05
    assert 12 < len(alternatives(plan.total)) <= 48


def paired(sizes, count, seed):
    """Each request may take the place of an earlier one, often of another size."""
    random = Random(seed)
    requests, pairs = [], []
    for i in range(count):
        source = random.choice(requests[-6:]) if requests else None
        low = random.randrange(count) if source is None or random.random() < 0.3 else source.live[-1][1] - 1
        request = Request(f"b{i}", random.choice(sizes), (low, low + random.randrange(1, 8)))
        if source is not None and handover(request.live, source.live):
            pairs.append((request.id, source.id))
        requests.append(request)
    return Problem(tuple(requests), in_place=tuple(pairs))


@pytest.mark.parametrize("seed", [6, 16, 22])
def test_pairs_in_place_cost_nothing_at_any_binding(seed):
    problem = paired(KINDS[sorted(KINDS)[seed % 3]], 16, seed)
    totals = [solve(problem, "pack").total, solve(Problem(problem.requests), "pack").total]
    share = solve(problem, "share").total
    gained = 0
    for binding in drawn(problem.dims, 100):
        joint, alone = (evaluate(total, binding) for total in totals)
        assert joint <= min(alone, evaluate(share, binding))
        gained += joint < alone
    assert gained


def test_offsets_of_many_kinds_of_sizes_stay_short_maxima():
    dims = [Dim(name) for name in "abcd"]
    plan = solve(table([factor * dim for factor in (4, 12, 40) for dim in dims], 60, 3), "pack")
    assert plan.strategy == "pack"
    assert max(len(alternatives(place.offset)) for place in plan.placements.values()) <= 12
    assert check(plan.problem, plan) == Ok()


def test_vectors_count_from_the_least_values_and_come_back():
    sizes = [4 * n * m + 8, n * n - n, 12 * ((k + 1) // 2)]
    products = Products.of(sizes)
    for size in sizes:
        vector = products.vectors[size]
        assert products.size(vector) == size
        for binding in drawn((n, m, k), 9):
            worth = products.values([binding])[:, 0]
            assert np.dot(vector, worth) == evaluate(size, binding)
    for fact in products.facts():
        assert prove_le(0, products.size(fact)) is Proof.YES


def test_wide_fronts_are_merged_into_vectors_above_all():
    random = np.random.default_rng(1)
    blocks = [Block((Piece(0, 1, 1),)), *(Block((Piece(i, i + 1, 1),)) for i in range(40)), Block((Piece(0, 40, 1),))]
    sizes = [[random.integers(0, 9, (1, 4))] for _ in blocks]
    fronts = fronts_of(sections_of(blocks), sizes, range(len(blocks)), random.random((4, 6)), 12)
    below = np.concatenate([fronts.offsets[i] + sizes[i][0] for i in range(len(blocks) - 1)])
    top = fronts.offsets[-1]
    assert 1 < len(top) <= 12
    assert (below[:, None, :] <= top[None, :, :]).all(axis=2).any(axis=1).all()


NONE = np.zeros((0, 2), np.int64)


def test_a_mean_of_sizes_covers_what_no_single_one_does():
    slots = [np.array([[4, 0], [0, 4]])] * 2
    cover = Cover.of(slots, NONE)
    assert cover.excess(np.array([[4, 4], [8, 0], [3, 5]])) is None
    direction = cover.excess(np.array([[4, 5]]))
    assert 4 * direction[0] + 5 * direction[1] > 8 * max(direction)


def test_facts_cover_one_product_by_another():
    fact = np.array([[-2, 1]])  # twice the first product is at most the second one
    row = np.array([[6, 1]])
    assert Cover.of([np.array([[0, 4]])], NONE).excess(row) is not None
    assert Cover.of([np.array([[0, 4]])], fact).excess(row) is None
    assert Cover.of([np.array([[0, 4]])], fact).excess(row + 1) is not None


@every("seed", range(20))
def test_what_is_covered_is_so_at_random_values(seed):
    random = np.random.default_rng(seed)
    slots = [random.integers(0, 20, (random.integers(1, 5), 4)) for _ in range(6)]
    cover = Cover.of(slots, np.zeros((0, 4), np.int64))
    values = np.concatenate([random.exponential(1, (60, 4)) ** 3, np.eye(4)])
    limit = sum((values @ slot.T).max(axis=1) for slot in slots)
    for _ in range(10):
        row = random.integers(0, 60, (1, 4))
        direction = cover.excess(row)
        if direction is None:
            assert (values @ row[0] <= limit + 1e-9).all()
        else:
            assert row[0] @ direction > sum((slot @ direction).max() for slot in slots) * (1 - 1e-6)


def test_no_cover_is_claimed_where_a_slot_may_be_negative():
    assert Cover.of([np.array([[4, -1]])], NONE) is None


def test_a_pair_in_place_that_splits_what_is_free_is_left_out() -> None:
    """Large tensors, small ones in their places, and further ones in the places of those, beside the next large one."""
    sizes = [3, 1, 1, 1, 3, 3, 1, 1, 1, 3]
    begins = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]
    requests = tuple(
        Request(f"r{i}", 64 * size * n, ((low, low + 3),))
        for i, (size, low) in enumerate(zip(sizes, begins, strict=True))
    )
    pairs = tuple((f"r{i + 1}", f"r{i}") for i in (0, 1, 2, 4, 5, 6, 7))
    plan = solve(Problem(requests, in_place=pairs), "pack")
    assert plan.total == 256 * n


def test_a_pair_in_place_is_left_out_where_that_shows_at_some_bindings_only() -> None:
    """Two LSTMs of two directions: floats of all steps (`s`) or of one, with their lives, and what goes in place."""
    rows = (
        "12s:1-21 40s:3-18 40:5-41 20:7-26 10:9-18 10:12-18 10s:17-34 10:17-18 10:17-18 40s:20-31 10:22-31 "
        "10:25-31 10s:30-34 10:30-31 10:30-31 20s:33-36 20s:35-54 40s:38-51 20:40-59 10:42-51 10:45-51 "
        "10s:50-67 10:50-51 10:50-51 40s:53-64 10:55-64 10:58-64 10s:63-67 10:63-64 10:63-64 20s:66-69 "
        "20s:68-72 20s:71-74 5s:73-76 "
    )
    pairs = (
        "6<1 6<4 6<5 7<4 8<4 8<5 11<3 12<10 12<11 13<10 14<10 14<11 18<2 21<17 21<19 21<20 22<19 23<19 23<20 "
        "26<18 27<25 27<26 28<25 29<25 29<26 "
    )
    s, b = Dim("s"), Dim("b")
    requests = []
    for number, row in enumerate(rows.split()):
        floats, low, high = re.split("[:-]", row)
        size = 4 * b * (int(floats[:-1]) * s if floats.endswith("s") else int(floats))
        requests.append(Request(f"r{number}", size, (int(low), int(high)), align=4))
    taken = tuple((f"r{dst}", f"r{src}") for dst, src in (pair.split("<") for pair in pairs.split()))
    plan = solve(Problem(tuple(requests), in_place=taken), "pack")
    assert all(evaluate(plan.total, at) == evaluate(plan.open_bound, at) for at in drawn(plan.problem.dims, 100))


def test_pairs_in_place_of_one_memory_are_looked_at_beside_those_of_another() -> None:
    sizes = (8 * n, 8 * n, 4 * n + 40, 8 * n + 8)
    requests = [
        Request(f"{scope}{i}", size, (2 * i, 2 * i + 3), scope=scope)
        for scope in ("global", "shared")
        for i, size in enumerate(sizes)
    ]
    pairs = tuple((f"{scope}{i + 1}", f"{scope}{i}") for scope in ("global", "shared") for i in range(3))
    problem = Problem(tuple(requests), in_place=pairs)
    assert check(problem, solve(problem, "pack")) == Ok()


def test_one_of_two_halves_in_place_is_left_out_that_keeps_what_is_whole_from_its_place() -> None:
    """Rotary embeddings, one after the other: what is whole is halved, turned half by half, and joined again."""
    s, t = Dim("s"), Dim("t")
    rows = [(2, 0, 4), (1, 3, 15), (1, 3, 17), (1, 5, 13), (1, 12, 19), (1, 14, 17), (1, 16, 19)]
    rows += [(2, 18, 21), (2, 20, 23), (2, 22, 27)]
    requests, pairs = [Request("mask", 64 * t, (0, 60))], [("10", "9")]
    for first in (0, 10):
        for number, (size, low, high) in enumerate(rows, first):
            requests.append(Request(f"{number}", 64 * size * s, (low + 26 * first // 10, high + 26 * first // 10)))
        pairs += [(f"{first + one}", f"{first + other}") for one, other in ((4, 3), (5, 1), (6, 2), (8, 7))]
    assert solve(Problem(tuple(requests), in_place=tuple(pairs)), "pack").total == 256 * s + 64 * t


def test_an_order_is_found_that_needs_the_least_at_every_binding() -> None:
    """Four corners of each point of an image, gathered with weights: sizes over its height and width, padded or not."""
    b, h, w = Dim("b"), Dim("h"), Dim("w")
    line, padded = 8 * b * h * w, 8 * b * h * w + 16 * b * h
    half = line // 2
    rows = [(8 * h * w, 13, 17), (line, 16, 28), (half, 18, 25), (half, 24, 37), (half, 27, 34), (half, 33, 37)]
    rows += [(line, 36, 39), (line, 38, 41), (padded + 16 * b * w + 32 * b, 40, 77)]
    for low in (42, 59, 76):
        rows += [(padded, low, low + 13), *((line, low + at, low + at + 3) for at in (2, 7, 12))]
        rows += [(half, low + at, 93) for at in (4, 9, 14)]
    problem = Problem(tuple(Request(f"r{i}", size, (low, high), align=4) for i, (size, low, high) in enumerate(rows)))
    plan = solve(problem, "pack")
    assert all(evaluate(plan.total, at) == evaluate(plan.lower_bound, at) for at in drawn(problem.dims, 100))


@pytest.mark.parametrize("seed", [0, 4, 11])
def test_sizes_that_are_no_multiples_of_the_alignment_share_an_arena(seed) -> None:
    """Rows that are aligned to a line of the cache, and scores and masks between them."""
    b, s, t = Dim("b"), Dim("s", max=64), Dim("t")
    aligns = {64 * b * s: 64, 64 * b * t: 64, 8 * b * s * s: 8, s * s: 1, 8 * b * s * t: 8}
    requests = [replace(each, align=aligns[each.size]) for each in table(list(aligns), 24, seed).requests]
    plan = solve(Problem(tuple(requests)), "pack")
    assert plan.strategy == "pack"
    assert check(plan.problem, plan) == Ok()
    every = [plan.at(binding) for binding in drawn(plan.problem.dims, 100)]
    assert len(plan.pools) == 1
    assert sum(each.total / each.lower_bound for each in every) / len(every) < 1.01


def test_no_size_is_rounded_up_where_nothing_has_to_rest_on_it() -> None:
    """States of a scan, and two of its results: what is aligned to 8 lies below what is not."""
    t = Dim("t")
    rows = [(8, 1, 7, 8), (8, 3, 7, 8), (8, 6, 7, 8), (12 * t, 6, 12, 4), (8, 8, 11, 8), (8 * t, 10, 12, 8)]
    requests = [Request(f"r{i}", size, (low, high), align=align) for i, (size, low, high, align) in enumerate(rows)]
    plan = solve(Problem(tuple(requests)), "pack")
    assert all(plan.at(binding).total == plan.at(binding).lower_bound for binding in drawn((t,), 100))


def test_an_arena_is_taken_that_needs_no_more_than_slots_where_only_the_proof_of_that_is_missing() -> None:
    """A detector over images of any height and width: each layer halves both, then all places look at all others."""
    b, h, w = Dim("b"), Dim("h"), Dim("w")
    high, wide = (h + 7) // 8, (w + 7) // 8
    place, pairs = b * high * wide, b * high * high * wide * wide
    kinds = {"a": (384 * b, 64), "b": (32 * b * ((h + 1) // 2) * ((w + 1) // 2), 4)}
    kinds |= {"c": (32 * b * ((h + 3) // 4) * ((w + 3) // 4), 4), "d": (64 * place, 64), "e": (4 * b * h * w, 4)}
    kinds |= {"f": (place, 1), "g": (4 * place, 4), "h": (4 * b * wide, 4), "i": (32 * place, 4), "j": (16 * place, 4)}
    kinds |= {"k": (4 * b * high, 4), "l": (8 * pairs, 4), "m": (8 * high * wide, 8), "n": (high * wide, 1)}
    kinds |= {"o": (8 * b, 8), "p": (8 * place, 8), "q": (16 * place, 8), "r": (pairs, 1), "s": (4 * pairs, 4)}
    rows = (
        "a:43-231 a:45-48 a:47-51 a:50-209 b:52-55 c:54-59 c:56-59 c:58-65 d:60-63 d:62-65 d:64-67 d:66-70 d:69-186 "
        "e:71-75 f:74-77 f:76-164 g:78-99 g:80-85 h:82-85 g:84-88 i:87-93 j:89-96 j:92-96 i:95-117 g:98-103 k:100-103 "
        "g:102-106 i:105-111 j:107-114 j:110-114 i:113-117 d:116-119 d:118-122 d:121-196 d:123-131 d:125-129 d:128-142 "
        "d:130-134 d:133-137 d:136-140 d:139-142 l:141-172 m:143-159 n:147-166 o:150-155 p:154-162 p:158-162 q:161-164 "
        "f:163-211 r:165-168 r:167-170 s:169-172 l:171-174 l:173-181 d:175-179 d:178-181 d:180-183 d:182-186 d:185-188 "
        "d:187-192"
    )
    requests = []
    for number, row in enumerate(rows.split()):
        kind, low, end = re.split("[:-]", row)
        requests.append(Request(f"r{number}", kinds[kind][0], (int(low), int(end)), align=kinds[kind][1]))
    places = "15<14 19<17 24<16 26<24 40<39 50<49 52<41 53<52 59<58"
    taken = tuple((f"r{dst}", f"r{src}") for dst, src in (pair.split("<") for pair in places.split()))
    plan, slots = (solve(Problem(tuple(requests), in_place=taken), each) for each in ("pack", "share"))
    for at in drawn(plan.problem.dims, 60):
        total = evaluate(plan.total, at)
        assert total <= evaluate(slots.total, at)
        assert total < 1.02 * evaluate(plan.open_bound, at)


def test_facts_of_more_bits_than_proofs_take_are_left_out_of_them():
    far = Dim("far", max=10**20)
    requests = (
        Request("a", 16 * far, (0, 2)),
        Request("b", 8 * far, (1, 3)),
        Request("c", maximum(16 * far, 64), (2, 4)),
    )
    assert check(Problem(requests), solve(Problem(requests), "pack")) == Ok()
