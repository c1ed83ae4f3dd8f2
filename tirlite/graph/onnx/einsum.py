"""Writes the product of an equation of Einsum as transpositions, products of matrices and sums of its operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.extents import is_equal, product


def einsum(b: Builder, equation: str, operands: Sequence[Expr]) -> Expr | None:
    """The result; None for equations that contradict the operands."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters_alone = all(each.isascii() and (each.isalpha() or each in ".,->") for each in equation.replace(" ", ""))
    if len(terms) != len(operands) or not letters_alone:
        return None
    spelled = [_without_dots(term, each.tensor.rank) for term, each in zip(terms, operands, strict=True)]
    written = [term for term in spelled if term is not None]
    if len(written) < len(spelled):
        return None
    if any(len(term) != each.tensor.rank for term, each in zip(written, operands, strict=True)):
        return None
    dots = max((_dots(term, each) for term, each in zip(terms, operands, strict=True)), default=0)
    target = _target(written, right if arrow else None, dots)
    pairs = [_diagonal(b, each, term) for each, term in zip(operands, written, strict=True)]
    if any(pair is None for pair in pairs):
        return None
    operands, letters = zip(*(pair for pair in pairs if pair is not None), strict=True)
    value, have = operands[0], letters[0]
    for number in range(1, len(operands)):
        later = set("".join(letters[number + 1 :])) | set(target)
        value, have = _multiplied(b, value, have, operands[number], letters[number], later)
    return _arranged(b, value, have, target)


def _diagonal(b: Builder, x: Expr, have: str) -> tuple[Expr, str] | None:
    """Without letters that stand twice: along these only the elements count whose indices are equal."""
    while (twice := next((letter for letter in have if have.count(letter) > 1), None)) is not None:
        first, second = have.index(twice), have.rindex(twice)
        extent = x.shape[first]
        if not is_equal(extent, x.shape[second]):
            return None
        steps = b.range(b.constant(np.int64(0)), b.constant(np.int64(1)), extent)
        row, column = (b.reshape(steps, (extent, *(1,) * (len(have) - axis - 1))) for axis in (first, second))
        others = b.cast(b.constant(np.int64(0)), x.dtype)
        x = b.reduce_sum(b.where(b.equal(row, column), x, others), second)
        have = have[:second] + have[second + 1 :]
    return x, have


# The axes that `...` stands for, from the last one backwards.
_DOTS = "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8"


def _dots(term: str, operand: Expr) -> int:
    return operand.tensor.rank - len(term.replace("...", "")) if "..." in term else 0


def _without_dots(term: str, rank: int) -> str | None:
    if "..." not in term:
        return term
    count = rank - len(term.replace("...", ""))
    return term.replace("...", _DOTS[:count][::-1]) if 0 <= count <= len(_DOTS) else None


def _target(terms: Sequence[str], right: str | None, dots: int) -> str:
    if right is not None:
        return right.replace("...", _DOTS[:dots][::-1])
    every = "".join(terms)
    once = sorted(letter for letter in set(every) if every.count(letter) == 1 and letter not in _DOTS)
    return _DOTS[:dots][::-1] + "".join(once)


def _multiplied(b: Builder, x: Expr, have: str, y: Expr, other: str, later: set[str]) -> tuple[Expr, str]:
    """The product over the letters that are not used later, as a product of matrices."""
    both = [letter for letter in have if letter in other]
    batch = [letter for letter in both if letter in later]
    summed = [letter for letter in both if letter not in later]
    x, have = _reduced(b, x, have, set(other) | later)
    y, other = _reduced(b, y, other, set(have) | later)
    rows = [letter for letter in have if letter not in both]
    columns = [letter for letter in other if letter not in both]
    sizes = dict(zip(have, x.shape, strict=True)) | dict(zip(other, y.shape, strict=True))
    first = _ordered(b, x, have, [*batch, *rows, *summed])
    second = _ordered(b, y, other, [*batch, *summed, *columns])
    outer = [sizes[letter] for letter in batch]
    across, down, inner = (product(sizes[letter] for letter in part) for part in (rows, columns, summed))
    made = b.matmul(b.reshape(first, (*outer, across, inner)), b.reshape(second, (*outer, inner, down)))
    letters = [*batch, *rows, *columns]
    return b.reshape(made, [sizes[letter] for letter in letters]), "".join(letters)


def _reduced(b: Builder, x: Expr, have: str, kept: set[str]) -> tuple[Expr, str]:
    gone = [place for place, letter in enumerate(have) if letter not in kept]
    if not gone:
        return x, have
    return b.reduce_sum(x, gone), "".join(letter for letter in have if letter in kept)


def _ordered(b: Builder, x: Expr, have: str, wanted: Sequence[str]) -> Expr:
    axes = [have.index(letter) for letter in wanted]
    return x if axes == sorted(axes) else b.transpose(x, axes)


def _arranged(b: Builder, x: Expr, have: str, target: str) -> Expr | None:
    x, have = _reduced(b, x, have, set(target))
    if sorted(have) != sorted(target):
        return None
    return _ordered(b, x, have, list(target))
