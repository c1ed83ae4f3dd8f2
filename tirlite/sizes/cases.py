"""Proves by cases that one size is at most another: the last resort of checks.

Storage is as large as the largest buffer in it, and `b <= max(a, b, c)` whatever maxima are within `b`: so each operand
is tried by itself. What holds for integers alone, as `n <= 4 * max(2 * n - 1, 0)` from 0 on, no bound of one side by
the other shows. So the range of a dim is cut where operands of a maximum cross, as `n - 2` and 0 do at 2, and each part
is a case of its own, in which one of the operands is the maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise

from tirlite.diag import KernelError
from tirlite.sizes.box import from_zero
from tirlite.sizes.dim import Dim
from tirlite.sizes.evaluate import dims_of, evaluate, sample_bindings, substitute
from tirlite.sizes.extrema import Maximum, Minimum, alternatives
from tirlite.sizes.poly import Product, Size, SizeLike, Terms, inside_out, terms_of
from tirlite.sizes.prove import Proof, is_at_most

# Dims of which cases are told apart, the first ones; the cuts of one dim; the cases in all.
_DIMS, _CUTS, _CASES = 3, 8, 200
# Operands are compared at steps of a dim up to the power of 2.
_POWERS = 16
# Sums that a proof may look into: what holds of some operand takes a few, and only then are all given more.
_BUDGETS = (8, None)
# Sizes of which the sums are kept: the same few are compared again and again.
_KEPT = 1024


def prove_le_by_cases(a: SizeLike, b: SizeLike) -> Proof:
    """Whether `a <= b`, where `prove_le` may not see it; NO is not looked for.

    Maxima are taken apart, into a few dozen operands at most; then the ranges of a few dims are cut, at 0 and where
    operands cross. Samples of the dims refute cheaply what does not hold.
    """
    if is_plainly_at_most(a, b):
        return Proof.YES
    if fails_at_a_sample(a, b):
        return Proof.UNKNOWN
    if _by_operands(a, b):
        return Proof.YES
    dims = dict.fromkeys((*dims_of(a), *dims_of(b)))
    cut = [(dim, parts) for dim in dims if len(parts := _parts(dim, a, b)) > 1]
    unproved: list[tuple[SizeLike, SizeLike, int]] = [(a, b, 0)]
    for _ in range(_CASES):
        if not unproved:
            return Proof.YES
        low, high, level = unproved.pop()
        if level == min(len(cut), _DIMS):
            return Proof.UNKNOWN
        cases = _cases(low, high, *cut[level])
        unproved += [(*case, level + 1) for case in cases if not _by_operands(*case)]
    return Proof.UNKNOWN


def is_plainly_at_most(a: SizeLike, b: SizeLike) -> bool:
    """Whether each size that `a` is the maximum of is at most one of those of `b`, term by term."""
    if _is_termwise(terms_of(a), terms_of(b)):
        return True
    highs = _sums_from_zero(b)
    return all(any(_is_within(one, other) for other in highs) for one in _sums_from_zero(a))


def _is_termwise(low: Terms, high: Terms) -> bool:
    """Whether no coefficient is larger in `low`, and each product with a smaller one is never negative."""
    more = {product: high.get(product, 0) - low.get(product, 0) for product in (*low, *high)}
    return all(
        count == 0 or (count > 0 and all(atom.bounds.nonnegative for atom in product))
        for product, count in more.items()
    )


@lru_cache(_KEPT)
def _sums_from_zero(size: SizeLike) -> tuple[Mapping[Product, int] | None, ...]:
    """The sums that a size is the maximum of, over factors that start at 0."""
    return tuple(from_zero(terms_of(part)) for part in alternatives(size))


def _is_within(low: Mapping[Product, int] | None, high: Mapping[Product, int] | None) -> bool:
    if low is None or high is None:
        return False
    return all(count <= high.get(product, 0) for product, count in low.items()) and all(
        count >= 0 or product in low for product, count in high.items()
    )


def _cases(a: SizeLike, b: SizeLike, dim: Dim, parts: Sequence[SizeLike]) -> Iterator[tuple[Size, Size]]:
    """The two sizes with each of the parts in place of the dim, except for parts at which they divide by 0."""
    for part in parts:
        try:
            yield substitute(a, {dim: part}), substitute(b, {dim: part})
        except KernelError:  # a division by zero
            continue


def _by_operands(a: SizeLike, b: SizeLike) -> bool:
    """Whether `a`, or each operand of the maximum `a`, is at most some operand of the maximum `b`, or all of it."""
    tops = alternatives(b)
    parts = alternatives(a)
    return any(
        any(is_at_most(a, top, budget) for top in (*tops, b))
        or all(any(is_at_most(part, top, budget) for top in tops) for part in parts)
        for budget in _BUDGETS
    )


def _parts(dim: Dim, a: SizeLike, b: SizeLike) -> list[SizeLike]:
    """Numbers, and dims over narrower ranges, that together take all values of `dim`; the greatest values last."""
    steps = _last_step(dim)
    cuts = _crossings(dim, a, b) | ({0} if dim.low == 0 and steps != 0 else set())
    ends = [-1, *sorted(cuts)[:_CUTS]]
    parts: list[SizeLike] = []
    for before, last in pairwise(ends):
        first = before + 1
        least, most = dim.nth(first), dim.nth(last)
        parts.append(least if first == last else _narrowed(dim, least, most))
    return [*parts, _narrowed(dim, dim.nth(ends[-1] + 1), dim.high)]


def _narrowed(dim: Dim, least: int, most: int | None) -> Size:
    return Dim(dim.name, min=least, max=most, multiple_of=dim.multiple_of) + 0


def _last_step(dim: Dim) -> int | None:
    return None if dim.high is None else (dim.high - dim.low) // dim.multiple_of


def _crossings(dim: Dim, a: SizeLike, b: SizeLike) -> set[int]:
    """The steps of `dim` after which two operands of a maximum or minimum change order, whatever other dims are."""
    others = [each for each in dict.fromkeys((*dims_of(a), *dims_of(b))) if each is not dim]
    found: set[int] = set()
    for difference in dict.fromkeys((*_differences(a), *_differences(b))):
        if dim in dims_of(difference):
            first, second = ({other: other.nth(step) for other in others} for step in (1, 5))
            try:
                found |= _changes(difference, dim, first) & _changes(difference, dim, second)
            except KernelError:  # a division by zero
                continue
    return found


def _differences(size: SizeLike) -> Iterator[Size]:
    """The differences of two operands of each maximum or minimum in `size`."""
    if isinstance(size, int):
        return
    for atom in inside_out(size):
        if isinstance(atom, Maximum | Minimum):
            for one, other in combinations(atom.sizes, 2):
                yield one - other


def _changes(size: Size, dim: Dim, binding: Mapping[Dim, int]) -> set[int]:
    """The steps of `dim` after which `size` changes from at most 0 to more, or back: those between powers of 2."""

    def positive(step: int) -> bool:
        return evaluate(size, {**binding, dim: dim.nth(step)}) > 0

    last = _last_step(dim)
    steps = [0, *(1 << power for power in range(_POWERS))]
    if last is not None:
        steps = [*(step for step in steps if step < last), last]
    signs = [positive(step) for step in steps]
    found = set()
    for (low, before), (high, after) in pairwise(zip(steps, signs, strict=True)):
        if before != after:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if positive(middle) == before else (low, middle)
            found.add(low)
    return found


def fails_at_a_sample(a: SizeLike, b: SizeLike) -> bool:
    """Whether `a > b` at one of a few bindings of the dims. If not, `a <= b` may hold, proved or not."""
    try:
        samples = sample_bindings((*dims_of(a), *dims_of(b)))
        return any(evaluate(a, binding) > evaluate(b, binding) for binding in samples)
    except KernelError:  # a division by zero
        return False
