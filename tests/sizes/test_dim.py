from itertools import pairwise
from math import prod

import pytest

from tirlite.diag import KernelError
from tirlite.sizes import Dim, Scalar, evaluate, lower_bound, maximum, upper_bound
from tirlite.sizes.dim import contradiction
from tirlite.sizes.poly import terms_of
from tirlite.sizes.terms import Origin


def test_a_dim_is_positive_and_unbounded_unless_facts_say_otherwise() -> None:
    n = Dim("n")
    assert (n.min, n.max, n.multiple_of) == (1, None, 1)
    assert (lower_bound(n), upper_bound(n)) == (1, None)


def test_bounds_are_rounded_to_multiples() -> None:
    n = Dim("n", min=3, max=30, multiple_of=8)
    assert (n.low, n.high) == (8, 24)
    assert [n.nth(step) for step in (0, 1, 7)] == [8, 16, 24]


def test_a_dim_is_its_name_and_its_facts() -> None:
    n = Dim("n")
    assert n == Dim("n", min=1)
    assert n + 1 == 1 + Dim("n")
    assert {n: 5}[Dim("n")] == 5
    for other in (Dim("m"), Dim("n", max=8), Dim("n", min=0), Dim("n", multiple_of=2), Scalar("n")):
        assert n != other
        assert n - other != 0
    assert [repr(n), repr(Dim("größe", max=8))] == ["Dim('n')", "Dim('größe', max=8)"]


def test_a_scalar_is_itself_alone() -> None:
    first, second = Scalar("k", min=0), Scalar("k", min=0)
    assert first == first
    assert first != second
    assert evaluate(first - second, {first: 5, second: 3}) == 2


def test_what_is_made_of_scalars_has_one_order_whatever_was_made_before() -> None:
    orders = []
    for _ in range(8):
        origin = Origin()
        scalars = [Scalar(name, min=0, origin=origin) for name in "abcdef"]
        total = prod(maximum(each - 3, other // 7) for each, other in pairwise(scalars))
        (product,) = terms_of(total)
        orders.append([str(factor + 0) for factor in product])
    assert orders == orders[:1] * 8
    with pytest.raises(AssertionError, match="two functions"):
        maximum(scalars[0] - 3, Scalar("a", min=0))


def test_the_facts_of_one_name_contradict_each_other_where_they_differ() -> None:
    assert contradiction((Dim("n"), Dim("m"), Dim("n"), Scalar("n"), Scalar("n"))) is None
    assert "two dims are called `n`: no facts, and min=0, max=8" in str(
        contradiction((Dim("n"), Dim("n", min=0, max=8)))
    )


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"min": 5, "max": 4}, "max=4 is below min=5"),
        ({"multiple_of": 0}, "multiple_of=0 is below 1"),
        ({"min": 9, "max": 15, "multiple_of": 8}, "no multiple of 8 lies between min=9 and max=15"),
    ],
)
def test_facts_that_nothing_obeys_are_refused(facts: dict[str, int], why: str) -> None:
    with pytest.raises(KernelError) as error:
        Dim("n", **facts)
    assert error.value.code == "bad-dim-facts"
    assert f"`n`: {why}" in str(error.value)
