"""Sizes as text: what `str` writes is read back, by Python's rules and no others."""

from random import Random

import pytest

from tirlite.diag import PlanError
from tirlite.plan.size_text import parse_size
from tirlite.sizes import Dim, evaluate

N, M = Dim("n"), Dim("m")
DIMS = {"n": N, "m": M}


@pytest.mark.parametrize(
    "text",
    [
        "4*n*m + 8",
        "-n//8",
        "-(n//8)",
        "n - m - 1",
        "n - (m - 1)",
        "(n + 7)//8*8",
        "n % 5 * 2",
        "n*-m",
        "--n",
        "max(n, 2*m, 7) - min(n, m)",
        "max(n)",
        "2*max(min(n, m) + 1, (3))",
        " n+m ",
    ],
)
def test_texts_mean_what_they_mean_in_python(text):
    for n, m in ((1, 1), (3, 8), (17, 2)):
        # `max(n)` is the value itself here, and no iteration.
        expected = eval(text, {"n": n, "m": m, "max": lambda *v: max(v), "min": lambda *v: min(v)})
        assert evaluate(parse_size(text, DIMS), {N: n, M: m}) == expected


@pytest.mark.parametrize(
    "text",
    ["", "n +", "n m", "(n", "n)", "()", "max()", "max(n", "max", "max n", "max + 1", "(n, m)", "n, m", "n ** 2",
     "n / 2", "x", "1.5", "'n'", "n.max", "n[0]", "n < m", "+", "4n", "max(n,)", "min(, n)", "n(m)"],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(PlanError, match="bad-size-text"):
        parse_size(text, DIMS)


def random_size(random, depth):
    if depth == 0:
        return random.choice([N + 0, M + 0, random.randrange(1, 9)])
    a, b = random_size(random, depth - 1), random_size(random, depth - 1)
    return random.choice([a + b, a - b, a * b, a // random.randrange(1, 9), a % random.randrange(1, 9)])


@pytest.mark.parametrize("seed", range(100))
def test_what_str_writes_is_read_back(seed):
    size = random_size(Random(seed), 4)
    assert parse_size(str(size), DIMS) == size


def test_a_sum_of_ten_thousand_terms_is_read():
    text = " + ".join(["n*m", "n", "m", "1"] * 2500)
    assert parse_size(text, DIMS) == 2500 * (N * M + N + M + 1)


def test_deep_parentheses_are_read():
    assert parse_size("(" * 5000 + "n" + ")" * 5000, DIMS) == N + 0
