"""Sizes as text: what `str` writes is read back, by Python's rules and no others."""

from random import Random

import pytest
from every import every

from tirlite.diag import PlanError
from tirlite.plan.tables.text import names_in, parse_size
from tirlite.sizes import Dim, ceildiv, evaluate

N, M = Dim("n"), Dim("m")
DIMS = {"n": N, "m": M}


@every(
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
        "-n**2 + (n + 1)**0",
        "2**3**2*n",
    ],
)
def test_texts_mean_what_they_mean_in_python(text):
    for n, m in ((1, 1), (3, 8), (17, 2)):
        # `max(n)` is the value itself here, and no iteration.
        expected = eval(text, {"n": n, "m": m, "max": lambda *v: max(v), "min": lambda *v: min(v)})
        assert evaluate(parse_size(text, DIMS), {N: n, M: m}) == expected


@every(
    "text",
    ["", "n +", "n m", "(n", "n)", "()", "max()", "max(n", "max", "max n", "max + 1", "(n, m)", "n, m", "n ** m",
     "n ** -1", "n ** 65", "n / 2", "n / 0", "n // 0", "n % 0", "n % (m/2)", "max(n/2)", "floor(n, m)",
     "ceildiv(n)", "floor()", "9" * 5000, "x", "1.5", "'n'",
     "n.max", "n[0]", "n < m", "+", "4n", "max(n,)", "min(, n)", "n(m)", "٤*n"],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(PlanError, match="bad-size-text"):
        parse_size(text, DIMS)


@every(
    "text, expected",
    [
        ("4*n/2", 2 * N),
        ("n*m/m", N + 0),
        ("(n + m)/2 + (n + m)/2", N + M),
        ("n/2*6", 3 * N),
        ("n / (1/2)", 2 * N),
        ("floor(n/2)", N // 2),
        ("floor(n/2 + 1/2)", (N + 1) // 2),
        ("ceil(n/2)*4", ceildiv(N, 2) * 4),
        ("ceil(n/3 + m/2)", ceildiv(2 * N + 3 * M, 6)),
        ("ceildiv(n + 1, 2*m)", ceildiv(N + 1, 2 * M)),
        ("n / 2 // 3", N // 6),
    ],
)
def test_divisions_are_exact_or_rounded_as_told(text, expected):
    size = parse_size(text, DIMS)
    for binding in ({N: 1, M: 1}, {N: 6, M: 5}, {N: 17, M: 4}):
        assert evaluate(size, binding) == evaluate(expected, binding)


def test_a_division_is_exact_where_the_facts_say_so():
    even = Dim("n", multiple_of=2)
    assert evaluate(parse_size("n / 2", {"n": even}), {even: 6}) == 3


@every(
    "text, why",
    [
        ("4*x", "`x` is not a dim"),
        ("n / 2", "`n` divided by `2` may leave a rest"),
        ("n // 0", "it divides by zero"),
        ("n // (m - 1)", "it divides by zero where `m` is 1"),
        ("n % (m // 16)", "it divides by zero where `m` is 1"),
        ("1.5", "`.` has no meaning here"),
        ("4n", "an operator is missing before `n`"),
        ("n)", "a parenthesis is never opened"),
        ("(n", "a parenthesis is never closed"),
        ("floor(n, m)", "`floor` does not take 2 operands"),
        ("(1 + n + m)**40 * (1 + n - m)**40", "multiplied out, it is too long"),
    ],
)
def test_it_says_what_is_wrong(text, why):
    with pytest.raises(PlanError) as caught:
        parse_size(text, DIMS)
    assert str(caught.value).splitlines()[0] == f"error[bad-size-text]: `{text}` is not a size: {why}"


def test_the_names_in_a_text():
    assert names_in("max(4*n, ceil(m/2)) + n - 3") == ("n", "m")


def random_size(random, depth):
    if depth == 0:
        return random.choice([N + 0, M + 0, random.randrange(1, 9)])
    a, b = random_size(random, depth - 1), random_size(random, depth - 1)
    return random.choice([a + b, a - b, a * b, a // random.randrange(1, 9), a % random.randrange(1, 9)])


@every("seed", range(100))
def test_what_str_writes_is_read_back(seed):
    size = random_size(Random(seed), 4)
    assert parse_size(str(size), DIMS) == size


def test_a_sum_of_ten_thousand_terms_is_read():
    text = " + ".join(["n*m", "n", "m", "1"] * 2500)
    assert parse_size(text, DIMS) == 2500 * (N * M + N + M + 1)


def test_deep_parentheses_are_read():
    assert parse_size("(" * 5000 + "n" + ")" * 5000, DIMS) == N + 0
