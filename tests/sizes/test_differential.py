"""Sizes of all kinds over dims of all kinds of facts, against the same arithmetic on plain ints.

`test_random.py` draws short expressions over four dims that never change. Here hypothesis draws the facts too
(negative, fixed, bounded, multiples), long sums over many dims, squares and nested divisions, and what is claimed of
them: bounds, proofs with and without cases, equal texts, alternatives of maxima.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import TypeAlias

from hypothesis import assume, given, strategies as st

from tirlite.diag import KernelError
from tirlite.sizes import (
    Dim,
    Proof,
    Size,
    alternatives,
    ceildiv,
    evaluate,
    lower_bound,
    maximum,
    minimum,
    prove_divides,
    prove_eq,
    prove_le,
    prove_le_by_cases,
    prove_lt,
    round_up,
    substitute,
    upper_bound,
)

Facts: TypeAlias = tuple[int, int | None, int]
Tree: TypeAlias = "int | str | tuple[str, Tree, Tree]"

OVER_SIZES = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": maximum,
    "min": minimum,
    "ceildiv": ceildiv,
    "round_up": round_up,
}
OVER_NUMBERS = {
    **OVER_SIZES,
    "max": max,
    "min": min,
    "ceildiv": lambda a, b: -(-a // b),
    "round_up": lambda a, b: -(-a // b) * b,
}
NAMES = "abcd"
BINDINGS = 120

widths = st.one_of(st.none(), st.integers(0, 12), st.sampled_from([0, 1, 63, 1023]))
facts = st.tuples(st.integers(-9, 12), widths, st.sampled_from([1, 1, 1, 2, 3, 4, 8])).filter(
    lambda fact: fact[1] is None or (fact[0] + fact[1]) // fact[2] >= -(-fact[0] // fact[2])
)
leaves = st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), st.integers(-9, 9))
divisors = st.one_of(st.integers(2, 16), st.integers(2, 16), st.integers(-5, -1), st.sampled_from(NAMES))


def grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "max", "min"]), inner, inner),
        st.tuples(st.sampled_from(["//", "%", "ceildiv", "round_up"]), inner, divisors),
        inner.map(lambda tree: ("*", tree, tree)),
        st.tuples(st.sampled_from(["//", "%"]), inner, inner),
    )


trees = st.recursive(leaves, grown, max_leaves=6)
terms = st.tuples(st.just("*"), st.integers(-9, 9), st.recursive(leaves, grown, max_leaves=3))
sums = st.lists(terms, min_size=3, max_size=7).map(lambda found: _sum(found))
any_tree = st.one_of(trees, trees, sums)


def _sum(found: list[Tree]) -> Tree:
    total = found[0]
    for term in found[1:]:
        total = ("+", total, term)
    return total


def over(tree: Tree, leaf: dict[str, object], operators: dict[str, object]) -> object:
    if isinstance(tree, tuple):
        operator, left, right = tree
        return operators[operator](over(left, leaf, operators), over(right, leaf, operators))
    return leaf[tree] if isinstance(tree, str) else tree


def values(fact: Facts) -> list[int]:
    """The first values that the facts allow, the last ones, and large ones."""
    least, width, step = fact
    first = -(-least // step) * step
    if width is None:
        return [first + step * place for place in (0, 1, 2, 3, 5, 8, 40, 1000)]
    last = (least + width) // step * step
    return sorted({*range(first, last + 1, step)[:6], *range(last, first - 1, -step)[:3]})


class Drawn:
    """Dims, and bindings of them that obey their facts."""

    def __init__(self, drawn: list[Facts]) -> None:
        named = dict(zip(NAMES, drawn, strict=True))
        self.dims = {
            name: Dim(name, min=least, max=None if width is None else least + width, multiple_of=step)
            for name, (least, width, step) in named.items()
        }
        every = list(product(*(values(fact) for fact in drawn)))
        rows = every if len(every) <= BINDINGS else Random(len(every)).sample(every, BINDINGS)
        self.bindings = [dict(zip(NAMES, row, strict=True)) for row in rows]

    def size(self, tree: Tree) -> Size:
        try:
            return over(tree, {name: dim + 0 for name, dim in self.dims.items()}, OVER_SIZES)
        except (KernelError, ZeroDivisionError):  # it divides by zero wherever it is evaluated
            assume(False)
            raise

    def of(self, values_of: dict[str, int]) -> dict[Dim, int]:
        return {self.dims[name]: value for name, value in values_of.items()}

    def numbers(self, *trees: Tree) -> list[tuple[dict[str, int], list[int]]]:
        """What the trees are at each binding at which none of them divides by zero."""
        found = []
        for binding in self.bindings:
            try:
                found.append((binding, [over(tree, binding, OVER_NUMBERS) for tree in trees]))
            except ZeroDivisionError:
                continue
        return found


drawn = st.lists(facts, min_size=len(NAMES), max_size=len(NAMES)).map(Drawn)


@given(drawn, any_tree)
def test_a_size_is_its_arithmetic(over_dims: Drawn, tree: Tree) -> None:
    size = over_dims.size(tree)
    low, high = lower_bound(size), upper_bound(size)
    parts = alternatives(size)
    printed = compile(str(size), "printed", "eval")
    for binding, (number,) in over_dims.numbers(tree):
        dims = over_dims.of(binding)
        assert evaluate(size, dims) == number, binding
        assert eval(printed, {**binding, "max": max, "min": min}) == number, binding
        assert substitute(size, dims) == number, binding
        assert max(evaluate(part, dims) for part in parts) == number, binding
        assert low is None or low <= number, binding
        assert high is None or number <= high, binding


@given(drawn, any_tree, any_tree, st.integers(-12, 12))
def test_a_proof_holds_everywhere(over_dims: Drawn, a: Tree, b: Tree, k: int) -> None:
    left, right = over_dims.size(a), over_dims.size(b)
    proofs = {
        "<=": (prove_le(left, right), prove_le_by_cases(left, right)),
        "<": (prove_lt(left, right),),
        "==": (prove_eq(left, right),),
        "divides": (prove_divides(k, left),),
    }
    for binding, (x, y) in over_dims.numbers(a, b):
        truths = {"<=": x <= y, "<": x < y, "==": x == y, "divides": x % k == 0 if k else x == 0}
        for relation, truth in truths.items():
            for proof in proofs[relation]:
                assert proof is Proof.UNKNOWN or truth == (proof is Proof.YES), (relation, binding)


@given(drawn, any_tree, st.integers(-3, 3), st.integers(1, 5))
def test_a_tight_statement_is_proved_only_where_it_holds(over_dims: Drawn, tree: Tree, gap: int, times: int) -> None:
    """Of `tree` and what is near it: the least of its numbers, and other ways to write about as much."""
    numbers = over_dims.numbers(tree)
    assume(numbers)
    least = min(number for _, (number,) in numbers) + gap
    size = over_dims.size(tree)
    assert gap <= 0 or prove_le(least, size) is not Proof.YES
    near = ("+", ("//", ("*", tree, times), times), gap)
    rounded = ("round_up", tree, times)
    for other in (near, rounded):
        proofs = prove_le(size, over_dims.size(other)), prove_le_by_cases(size, over_dims.size(other))
        truths = [x <= y for _, (x, y) in over_dims.numbers(tree, other)]
        assert Proof.YES not in proofs or all(truths), other
        assert Proof.NO not in proofs or not any(truths), other
