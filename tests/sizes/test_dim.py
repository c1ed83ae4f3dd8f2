import pytest

from tirlite.diag import KernelError
from tirlite.sizes import Dim, evaluate, lower_bound, upper_bound


def test_a_dim_is_positive_and_unbounded_unless_facts_say_otherwise() -> None:
    n = Dim("n")
    assert (n.min, n.max, n.multiple_of) == (1, None, 1)
    assert (lower_bound(n), upper_bound(n)) == (1, None)


def test_bounds_are_rounded_to_multiples() -> None:
    n = Dim("n", min=3, max=30, multiple_of=8)
    assert (n.low, n.high) == (8, 24)
    assert [n.nth(step) for step in (0, 1, 7)] == [8, 16, 24]


def test_two_dims_of_one_name_are_two_dims() -> None:
    first, second = Dim("n"), Dim("n")
    assert first == first
    assert first != second
    assert first + 1 != second + 1
    assert evaluate(first - second, {first: 5, second: 3}) == 2


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
