"""Problems: what is accepted, how it is brought into normal form, and what is refused with which words."""

from math import prod

import numpy as np
import pytest
from every import every

from tirlite.diag import PlanError
from tirlite.plan import Pool, Problem, Request, StorageScope, solve
from tirlite.sizes import Dim, evaluate

N = Dim("n")


def refused(make):
    with pytest.raises(PlanError) as caught:
        make()
    return str(caught.value)


def test_a_bare_interval_is_a_lifetime():
    assert Request("a", 4, (0, 2)).live == ((0, 2),)


def test_intervals_are_sorted_and_joined_where_they_meet_or_touch():
    assert Request("a", 4, ((7, 9), (0, 2), (2, 4), (8, 12))).live == ((0, 4), (7, 12))


def test_integers_of_numpy_are_integers():
    eight = np.int64(8)
    request = Request("a", eight, (np.int64(0), np.int32(2)), align=eight, fixed=eight, pools=("p",))
    problem = Problem((request,), (Pool("p", capacity=np.uint8(16), align=eight, copies=np.int64(2)),))
    same = Problem(
        (Request("a", 8, (0, 2), align=8, fixed=8, pools=("p",)),), (Pool("p", capacity=16, align=8, copies=2),)
    )
    assert problem.to_json() == same.to_json()
    assert solve(problem).placements["a"].offset == 8


def test_a_request_lives_in_the_memory_of_its_scope_unless_it_names_others():
    assert Request("a", 4, (0, 2), scope="shared").memories == ("shared",)
    assert Request("a", 4, (0, 2), pools=("x", "y")).memories == ("x", "y")


def test_without_pools_there_is_one_for_each_scope():
    problem = Problem((Request("a", 4, (0, 2)), Request("b", 4, (0, 2), scope="shared"), Request("c", 4, (0, 2))))
    assert list(problem.memories) == ["global", "shared"]
    assert problem.memories["shared"] == Pool("shared", "shared")


def test_a_dim_is_a_size():
    n = Dim("n")
    assert Request("a", n, (0, 2)).size == n + 0


def test_sympy_sizes_use_the_given_dims_and_share_the_others():
    sympy = pytest.importorskip("sympy")
    n = Dim("n", multiple_of=8)
    a, b = sympy.symbols("n m")
    problem = Problem((Request("x", 4 * a * b, (0, 2)), Request("y", b + 1, (0, 2))), facts={"n": n})
    m = next(dim for dim in problem.dims if dim is not n)
    assert (m.name, m.min) == ("m", 1)
    assert problem.by_id["x"].size == 4 * n * m
    assert problem.by_id["y"].size == m + 1


def test_a_size_that_may_be_negative_counts_as_zero_there():
    n, m = Dim("n"), Dim("m")
    size = Problem((Request("x", n - m, (0, 2)),)).requests[0].size
    assert evaluate(size, {n: 3, m: 5}) == 0
    assert evaluate(size, {n: 5, m: 3}) == 2


def test_a_problem_at_a_binding_has_constant_sizes():
    n = Dim("n")
    problem = Problem((Request("x", 4 * n, (0, 2)),), (Pool("global", copies=n),)).at({n: 3})
    assert problem.requests[0].size == 12
    assert problem.memories["global"].copies == 3


def test_a_problem_prints_one_request_a_line():
    assert str(Problem((Request("a", 4, ((0, 2), (5, 6))),))) == "a: 4 bytes, live [0, 2) [5, 6), in global"


@every(
    "make, words",
    [
        (lambda: Request("a", 4, (3, 3)), ["empty-lifetime", "`a`", "[3, 3)"]),
        (lambda: Request("a", 4, (5, 2)), ["empty-lifetime", "`a`", "[5, 2)"]),
        (lambda: Request("a", 4, ()), ["no-lifetime", "`a`"]),
        (lambda: Request("a", 4, ((1, 2, 3),)), ["bad-lifetime", "`a`", "(1, 2, 3)"]),
        (lambda: Request("a", 4, 7), ["bad-lifetime", "`a`", "7"]),
        (lambda: Request("a", -4, (0, 1)), ["negative-size", "`a`", "-4"]),
        (lambda: Problem((Request("a", -Dim("n"), (0, 1)),)), ["negative-size", "`a`", "-n"]),
        (lambda: Request("a", 1.5, (0, 1)), ["bad-size", "`a`", "1.5"]),
        (lambda: Request("a", True, (0, 1)), ["bad-size", "`a`", "True"]),
        (lambda: Request("a", 4, (0, 1), align=True), ["bad-alignment", "request `a`", "True"]),
        (lambda: Request("a", 4, (0, 1), fixed=False), ["bad-fixed", "`a`", "False"]),
        (lambda: Request("a", 4, (0, 1), align=3), ["bad-alignment", "request `a`", "3"]),
        (lambda: Pool("p", align=0), ["bad-alignment", "pool `p`", "0"]),
        (lambda: Pool("p", capacity=-1), ["bad-pool", "`p`", "-1"]),
        (lambda: Pool("p", capacity=1.5), ["bad-pool", "`p`", "1.5"]),
        (lambda: Pool("p", capacity=True), ["bad-pool", "`p`", "True"]),
        (lambda: Pool("p", copies="two"), ["bad-pool", "`p`", "two"]),
        (lambda: Pool(7), ["not-text", "the name of a pool is 7"]),
        (lambda: Problem((Request("a", 4, (0, 2)),), in_place=("ab",)), ["problem-part", "pairs in place"]),
        (lambda: Problem((Request("a", 4, (0, 2)),), in_place=((["a"], "a"),)), ["unknown-in-place"]),
        (lambda: Request("a", 4, (0, 1), align=8, fixed=12), ["bad-fixed", "`a`", "12", "8"]),
        (lambda: Request("a", 4, (0, 1), fixed=-8), ["bad-fixed", "`a`", "-8"]),
        (lambda: Request("a", 4, (0, 1), fixed="8"), ["bad-fixed", "`a`", "'8'"]),
        (lambda: Request(3, 4, (0, 1)), ["not-text", "id", "3"]),
        (lambda: Request("a", 4, (0, 1), scope=3), ["not-text", "scope", "`a`", "3"]),
        (lambda: Request("a", 4, (0, 1), pools="fast"), ["not-text", "pools", "`a`", "a tuple of names"]),
        (lambda: Request("a", 4, (0, 1), pools=(3,)), ["not-text", "pools", "`a`", "(3,)"]),
        (lambda: Problem(3), ["problem-part", "requests", "3"]),
        (lambda: Problem((Request("a", 4, (0, 1)), "b")), ["problem-part", "requests", "`Request`"]),
        (lambda: Problem((), ("sram",)), ["problem-part", "pools", "sram", "`Pool`"]),
        (
            lambda: Problem((Request("a", 4, (0, 1), fixed=4),), (Pool("global", align=8),)),
            ["bad-fixed", "`a`", "4", "8"],
        ),
        (lambda: Problem((Request("a", 4, (0, 1)), Request("a", 8, (0, 1)))), ["duplicate-id", "`a`"]),
        (lambda: Problem((), (Pool("p"), Pool("p"))), ["duplicate-id", "`p`"]),
        (
            lambda: Problem((Request("a", 4, (0, 1), pools=("gobal",)),), (Pool("global"),)),
            ["unknown-pool", "`global`"],
        ),
        (lambda: Problem((Request("a", 4, (0, 1), scope="shraed"),)), ["unknown-scope", "`shraed`", "`shared`?"]),
        (lambda: Problem((Request("a", 4, (0, 1)),), in_place=(("a", "b"),)), ["unknown-in-place", "`b`"]),
        (lambda: Problem((Request("a", 4, (0, 1)),), in_place=(("a", "a"),)), ["unknown-in-place"]),
        (lambda: Problem((Request("a", 10**310, (0, 2)),)), ["number-too-large", "`a`", "size", "1030 bits", "900"]),
        (lambda: Problem((Request("a", 10**310 * Dim("n"), (0, 2)),)), ["number-too-large", "`a`", "1030 bits", "256"]),
        (lambda: Problem((Request("a", Dim("n", min=10**99), (0, 2)),)), ["number-too-large", "`a`", "329 bits"]),
        (lambda: Problem((Request("a", 4, (0, 2**200)),)), ["number-too-large", "`a`", "lifetime", "201 bits", "100"]),
        (lambda: Problem((Request("a", 4, (0, 2), fixed=2**1000),)), ["number-too-large", "`a`", "offset"]),
        (lambda: Problem((Request("a", 4, (0, 2), align=2**1000),)), ["number-too-large", "`a`", "alignment"]),
        (lambda: Problem((), (Pool("p", capacity=2**1000),)), ["number-too-large", "pool `p`", "capacity"]),
    ],
)
def test_what_is_ill_formed_is_refused_with_its_name_and_values(make, words):
    text = refused(make)
    assert all(word in text for word in words), text


@pytest.mark.parametrize("strategy", ["share", "pack", "exact", "auto"])
@pytest.mark.parametrize(
    "size", [2**899, (2**256 - 1) * prod([N] * 24)], ids=["many bytes", "many bytes for each value of a dim"]
)
def test_the_largest_numbers_are_planned_exactly(size, strategy):
    problem = Problem((Request("a", size, (0, 2)), Request("b", size, (1, 2**100 - 1)), Request("c", 7, (2, 4))))
    plan = solve(problem, strategy=strategy)
    assert evaluate(plan.total - 2 * size, {N: 3}) in range(8)
    assert plan.to_svg()


def test_a_scope_is_a_rank_and_a_tag():
    assert str(StorageScope.parse("local.UB")) == "local.UB"
    assert StorageScope.parse("shared.dyn").tag == "dyn"
    assert StorageScope.parse("global") != StorageScope.parse("global.workspace")
    assert "unknown-scope" in refused(lambda: StorageScope.parse("local."))
