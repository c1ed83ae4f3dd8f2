"""Facts about dims as text: what is read, and what is refused with which words."""

import pytest
from every import every

from tirlite.diag import PlanError
from tirlite.plan.tables.text import parse_facts


def told(text):
    return {name: (dim.low, dim.high, dim.multiple_of) for name, dim in parse_facts(text).items()}


@every(
    "text, low, high, multiple_of",
    [
        ("N<=64", 1, 64, 1),
        ("N<64", 1, 63, 1),
        ("N>=2", 2, None, 1),
        ("N > 2", 3, None, 1),
        ("64>=N", 1, 64, 1),
        ("2<=N<9", 2, 8, 1),
        ("N==4", 4, 4, 1),
        ("N=4", 4, 4, 1),
        ("N%8==0", 8, None, 8),
        ("N<=64, N%8==0", 8, 64, 8),
        ("N % 4 == 0, N % 6 == 0", 12, None, 12),
        ("N>=0", 1, None, 1),
        ("N<=64, N<=32,", 1, 32, 1),
    ],
)
def test_facts_about_one_dim(text, low, high, multiple_of):
    assert told(text) == {"N": (low, high, multiple_of)}


def test_facts_about_several_dims_stand_in_the_order_of_their_first():
    assert list(parse_facts("M<=2, N%8==0, M>=2")) == ["M", "N"]
    assert parse_facts("") == {}


@every("text", ["N", "N<", "N<M", "N<=2.5", "N%0==0", "N%8", "N%8==1", "8%N==0", "N!=3", "N<=2;M<=3"])
def test_anything_else_is_refused_at_its_place(text):
    with pytest.raises(PlanError, match="bad-fact") as caught:
        parse_facts(f"K<=3, {text}")
    assert "--> facts:1:7" in str(caught.value)


def test_facts_that_leave_no_value_are_refused():
    with pytest.raises(PlanError, match="leave the dim `N` no value: it is a multiple of 8, at least 1 and at most 7"):
        parse_facts("N<8, N%8==0")
