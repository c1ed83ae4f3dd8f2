"""Random expressions as text: once over dims, once over plain Python ints, which are the oracle."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from every import every

from tirlite.diag import KernelError
from tirlite.sizes import (
    Dim,
    Proof,
    Size,
    evaluate,
    from_sympy,
    lower_bound,
    maximum,
    minimum,
    prove_divides,
    prove_eq,
    prove_le,
    prove_lt,
    substitute,
    to_sympy,
    upper_bound,
)

DIMS = {
    "n": Dim("n"),
    "z": Dim("z", min=0, max=4),
    "s": Dim("s", min=-3, max=2),
    "k": Dim("k", multiple_of=4, max=20),
}
VALUES = {"n": (1, 2, 3, 5, 8, 13), "z": range(5), "s": range(-3, 3), "k": (4, 8, 12, 16, 20)}
BINDINGS = [dict(zip(VALUES, values, strict=True)) for values in itertools.product(*VALUES.values())]


def expression(rng: random.Random, depth: int, operators: str) -> str:
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([*DIMS, *DIMS, str(rng.randint(-9, 9))])
    left = expression(rng, depth - 1, operators)
    operator = rng.choice(operators)
    if operator in "/%" and rng.random() < 0.8:
        return f"(({left}) {operator.replace('/', '//')} {rng.choice([2, 3, 4, 7, 8, -3])})"
    right = expression(rng, depth - 1, operators)
    if operator == "M":
        return f"max({left}, {right})"
    if operator == "m":
        return f"min({left}, {right})"
    return f"(({left}) {operator.replace('/', '//')} ({right}))"


def over_dims(text: str) -> Size | None:
    try:
        return eval(text, {**DIMS, "max": maximum, "min": minimum}) + 0
    except (KernelError, ZeroDivisionError):
        return None


def over_ints(text: str) -> Iterator[tuple[dict[str, int], int]]:
    code = compile(text, "size", "eval")
    for binding in BINDINGS:
        try:
            yield binding, eval(code, dict(binding))
        except ZeroDivisionError:
            continue


def as_binding(values: dict[str, int]) -> dict[Dim, int]:
    return {DIMS[name]: value for name, value in values.items()}


@every("seed", range(150))
def test_value_text_and_bounds(seed: int) -> None:
    rng = random.Random(seed)
    text = expression(rng, rng.choice([2, 3]), "++-**/%Mm")
    size = over_dims(text)
    if size is None:
        return
    low, high = lower_bound(size), upper_bound(size)
    printed = compile(str(size), "printed", "eval")
    for values, expected in over_ints(text):
        assert evaluate(size, as_binding(values)) == expected, text
        assert eval(printed, dict(values)) == expected, text
        assert low is None or low <= expected, text
        assert high is None or expected <= high, text


@every("seed", range(200))
def test_no_proof_is_ever_contradicted(seed: int) -> None:
    rng = random.Random(1000 + seed)
    a, b = (expression(rng, rng.choice([1, 2]), "++-**/%Mm") for _ in "ab")
    left, right = over_dims(a), over_dims(b)
    if left is None or right is None:
        return
    divisor = rng.choice([2, 3, 4])
    statements = {
        f"({a}) <= ({b})": prove_le(left, right),
        f"({a}) < ({b})": prove_lt(left, right),
        f"({a}) == ({b})": prove_eq(left, right),
        f"({a}) % {divisor} == 0": prove_divides(divisor, left),
    }
    for statement, proof in statements.items():
        for values, truth in over_ints(statement):
            assert proof is Proof.UNKNOWN or truth == (proof is Proof.YES), (statement, values)


@every("seed", range(60))
def test_polynomials_are_equal_if_and_only_if_their_values_are(seed: int) -> None:
    rng = random.Random(2000 + seed)
    a = expression(rng, 2, "+-*")
    # The same value written differently, and something else.
    for b in (f"({a}) * (n + 1) - n * ({a})", expression(rng, 2, "+-*")):
        left, right = over_dims(a), over_dims(b)
        same = all(x == y for (_, x), (_, y) in zip(over_ints(a), over_ints(b), strict=True))
        # The degree is at most 4 in each dim, 5 in n, so a polynomial that is 0 at all values in VALUES is 0.
        assert (left == right) == same
        assert not same or hash(left) == hash(right)


@every("seed", range(60))
def test_substitution_is_evaluation_in_steps(seed: int) -> None:
    rng = random.Random(3000 + seed)
    text = expression(rng, 2, "+-*/%Mm")
    size = over_dims(text)
    if size is None:
        return
    values = rng.choice(BINDINGS)
    try:
        expected = eval(text, dict(values))
    except ZeroDivisionError:
        return
    assert substitute(size, as_binding(values)) == expected
    some = {dim: value for dim, value in as_binding(values).items() if rng.random() < 0.5}
    assert evaluate(substitute(size, some), as_binding(values)) == expected


@every("seed", range(25))
def test_sympy_agrees(seed: int) -> None:
    rng = random.Random(4000 + seed)
    text = expression(rng, 2, "+-*/%Mm")
    size = over_dims(text)
    if size is None:
        return
    expected = to_sympy(size)
    back = from_sympy(expected, DIMS)
    for values in rng.sample(BINDINGS, 5):
        try:
            number = eval(text, dict(values))
        except ZeroDivisionError:
            continue
        assert evaluate(back, as_binding(values)) == number
        assert expected.subs({symbol: values[symbol.name] for symbol in expected.free_symbols}) == number
