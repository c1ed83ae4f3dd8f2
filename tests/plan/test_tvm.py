"""Strategy `tvm`: one test for each rule of the ancestor."""

from tirlite.plan import Choice, Pool, Problem, Request, solve
from tirlite.sizes import Dim


def slots(*requests, pools=()):
    """Who shares with whom, as a list of texts, and the total."""
    plan = solve(Problem(requests, pools), "tvm")
    return [" ".join(ids) for ids in plan.residents.values()], plan.total


def test_storage_is_free_again_when_its_user_has_died():
    assert slots(Request("a", 64, (0, 2)), Request("b", 64, (2, 4))) == (["a b"], 64)
    assert slots(Request("a", 64, (0, 3)), Request("b", 64, (2, 4))) == (["a", "b"], 128)


def test_it_looks_upward_first_and_takes_the_smallest_with_room():
    small, large, larger = Request("s", 64, (0, 1)), Request("l", 128, (0, 1)), Request("x", 256, (0, 1))
    assert slots(small, larger, large, Request("r", 96, (1, 2)))[0] == ["s", "x", "l r"]


def test_downward_it_takes_the_largest_and_that_grows():
    small, smaller = Request("s", 64, (0, 1)), Request("t", 32, (0, 1))
    assert slots(small, smaller, Request("r", 96, (1, 2))) == (["s r", "t"], 96 + 32)


def test_the_match_range_is_sixteen_both_ways():
    assert slots(Request("a", 16, (0, 1)), Request("b", 256, (1, 2)))[0] == ["a b"]
    assert slots(Request("a", 16, (0, 1)), Request("b", 257, (1, 2)))[0] == ["a b"], "the lower end is rounded down"
    assert slots(Request("a", 16, (0, 1)), Request("b", 272, (1, 2)))[0] == ["a", "b"]
    assert slots(Request("a", 256, (0, 1)), Request("b", 16, (1, 2)))[0] == ["a b"]
    assert slots(Request("a", 257, (0, 1)), Request("b", 16, (1, 2)))[0] == ["a", "b"]


def test_of_equal_sizes_the_one_that_is_free_for_longest_is_taken_upward():
    a, b = Request("a", 64, (0, 2)), Request("b", 64, (0, 1))
    assert slots(a, b, Request("r", 64, (2, 3)))[0] == ["a", "b r"]


def of_kind(kind, name, size, live):
    return Request(name, size, live, kind=kind)


def test_any_kind_takes_storage_with_room_and_what_must_grow_keeps_its_own():
    assert slots(of_kind("float32", "a", 64, (0, 1)), of_kind("int32", "b", 64, (1, 2)))[0] == ["a b"]
    assert slots(of_kind("float32", "a", 64, (0, 1)), of_kind("int8", "b", 16, (1, 2)))[0] == ["a b"]
    assert slots(of_kind("float32", "a", 16, (0, 1)), of_kind("int8", "b", 64, (1, 2)))[0] == ["a", "b"]
    smaller = of_kind("int8", "a", 16, (0, 1)), of_kind("float32", "b", 32, (0, 1))
    assert slots(*smaller, of_kind("int8", "c", 64, (1, 2)))[0] == ["a c", "b"], "not the largest, but of its kind"


def test_symbolic_storage_keeps_its_kind():
    n = Dim("n")
    assert slots(of_kind("float32", "a", 4 * n, (0, 1)), of_kind("int32", "b", 4 * n, (1, 2)))[0] == ["a", "b"]


def test_storage_is_of_the_kind_that_opened_it():
    a, b = of_kind("float32", "a", 64, (0, 1)), of_kind("int8", "b", 64, (1, 2))
    assert slots(a, b, of_kind("int8", "c", 80, (2, 3)))[0] == ["a b", "c"]
    assert slots(a, b, of_kind("float32", "c", 80, (2, 3)))[0] == ["a b c"]
    handed_on = of_kind("int8", "b", 64, (1, 3))
    for kind, wanted in (("int8", ["a b", "c"]), ("float32", ["a b c"])):
        problem = Problem((a, handed_on, of_kind(kind, "c", 64, (2, 4))), in_place=(("c", "b"),))
        assert [" ".join(ids) for ids in solve(problem, "tvm").residents.values()] == wanted


def test_in_place_the_storage_of_the_source_counts_with_all_that_it_has_grown_to():
    a, b = Request("a", 128, (0, 1)), Request("b", 64, (1, 3))
    for size, wanted in ((64, 192), (128, 128)):
        assert solve(Problem((a, b, Request("c", size, (2, 4))), in_place=(("c", "b"),)), "tvm").total == wanted


def test_in_place_symbolic_sizes_need_not_be_equal():
    n, m = Dim("n"), Dim("m")
    problem = Problem((Request("a", 4 * n, (0, 2)), Request("b", 4 * m, (1, 3))), in_place=(("b", "a"),))
    assert str(solve(problem, "tvm").total) == "4*max(m, n)"


def test_memories_do_not_mix():
    pools = (Pool("p"), Pool("q"))
    assert slots(Request("a", 64, (0, 1), pools=("p",)), Request("b", 64, (1, 2), pools=("q",)), pools=pools)[0] == [
        "a",
        "b",
    ]
    assert slots(Request("a", 64, (0, 1)), Request("b", 64, (1, 2), scope="shared"))[0] == ["a", "b"]


def test_registers_are_not_shared():
    assert slots(Request("a", 4, (0, 1)), Request("b", 4, (1, 2)))[0] == ["a", "b"], "32 bits and less"
    assert slots(Request("a", 5, (0, 1)), Request("b", 5, (1, 2)))[0] == ["a b"], "40 bits"
    assert slots(Request("a", 64, (0, 1), scope="local"), Request("b", 64, (1, 2), scope="local"))[0] == ["a", "b"]
    assert slots(Request("a", 64, (0, 1), scope="warp"), Request("b", 64, (1, 2), scope="warp"))[0] == ["a", "b"]
    assert slots(Request("a", 64, (0, 1), kind="handle"), Request("b", 64, (1, 2), kind="handle"))[0] == ["a", "b"]


def test_tagged_local_memory_is_shared():
    assert slots(Request("a", 64, (0, 1), scope="local.UB"), Request("b", 64, (1, 2), scope="local.UB"))[0] == ["a b"]


def test_symbolic_storage_is_taken_first_in_first_out_and_becomes_the_maximum():
    n, m = Dim("n"), Dim("m")
    a, b = Request("a", 4 * n, (0, 2)), Request("b", 4 * m, (0, 1))
    ids, total = slots(a, b, Request("c", 8 * n, (2, 3)), Request("d", 4 * n, (2, 3)))
    assert ids == ["a d", "b c"]
    assert str(total) == "4*max(2*n, m) + 4*n"


def test_symbolic_and_constant_storage_do_not_mix():
    n = Dim("n")
    assert slots(Request("a", 4 * n, (0, 1)), Request("b", 64, (1, 2)))[0] == ["a", "b"]


def test_gaps_in_lifetimes_are_not_used():
    assert slots(Request("a", 64, ((0, 1), (5, 6))), Request("b", 64, (2, 3)))[0] == ["a", "b"]


def test_decisions_tell_the_rule():
    plan = solve(Problem((Request("a", 64, (0, 1)), Request("b", 96, (1, 2)), Request("c", 4, (1, 2)))), "tvm")
    assert [plan.decisions[name].choice for name in "abc"] == [Choice.OPENS, Choice.GROWS, Choice.REGISTER]
    assert plan.decisions["b"].before == 64


def test_a_source_that_is_born_with_its_destination_and_comes_later_hands_nothing_over():
    problem = Problem((Request("b", 64, (2, 6)), Request("a", 64, (2, 3))), in_place=(("b", "a"),))
    assert solve(problem, "tvm").total == 128
