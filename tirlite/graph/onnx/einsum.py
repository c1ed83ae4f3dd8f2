"""Writes the product of an equation of Einsum as transpositions, products of matrices and sums of its operands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.extents import is_equal, product
from tirlite.graph.onnx.node import Unsupported
from tirlite.graph.types import TensorType
from tirlite.sizes import Proof, Size, prove_eq


def einsum(b: Builder, equation: str, operands: Sequence[Expr]) -> Expr:
    """The result; extents of 1 go with all others of their letter. Raises Unsupported for what fits no equation."""
    of = f"equation '{equation}'"
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not all(each.isascii() and (each.isalpha() or each in ".,") for each in left + right):
        raise Unsupported(f"{of} has something else than letters, commas, dots and an arrow")
    if len(terms) != len(operands):
        raise Unsupported(f"{of} has terms for {len(terms)} operands, and there are {len(operands)}")
    written = [_without_dots(of, term, each.tensor) for term, each in zip(terms, operands, strict=True)]
    dots = max(_dots(term, each) for term, each in zip(terms, operands, strict=True))
    target = _target(written, right if arrow else None, dots)
    if len(set(target)) < len(target) or not set(target) <= set("".join(written)):
        raise Unsupported(f"{of} has a letter in its result twice, or one that no term has")
    pairs = [_diagonal(b, of, each, term) for each, term in zip(operands, written, strict=True)]
    (value, have), *rest = _broadcast(b, of, pairs)
    for number, (operand, letters) in enumerate(rest, 1):
        later = {letter for _, term in rest[number:] for letter in term} | set(target)
        value, have = _multiplied(b, value, have, operand, letters, later)
    value, have = _reduced(b, value, have, set(target))
    return _ordered(b, value, have, list(target))


def _broadcast(b: Builder, of: str, pairs: Sequence[tuple[Expr, str]]) -> list[tuple[Expr, str]]:
    """Operands without the axes of 1 along which others have more: they are the same for all indices there."""
    extents: dict[str, Size] = {}
    for x, have in pairs:
        for letter, extent in zip(have, x.shape, strict=True):
            known = extents.setdefault(letter, extent)
            if is_equal(known, 1):
                extents[letter] = extent
            elif not is_equal(extent, 1) and prove_eq(known, extent) is Proof.NO:
                raise Unsupported(f"`{letter}` of {of} is {known} in one operand, and {extent} in another")
    found = []
    for x, have in pairs:
        each = zip(have, x.shape, strict=True)
        kept = [letter for letter, extent in each if not is_equal(extent, 1) or is_equal(extents[letter], 1)]
        shape = [x.shape[have.index(letter)] for letter in kept]
        found.append((x if len(kept) == len(have) else b.reshape(x, shape), "".join(kept)))
    return found


def _diagonal(b: Builder, of: str, x: Expr, have: str) -> tuple[Expr, str]:
    """Without letters that stand twice: along these only the elements count whose indices are equal."""
    while (twice := next((letter for letter in have if have.count(letter) > 1), None)) is not None:
        first, second = have.index(twice), have.rindex(twice)
        extent = x.shape[first]
        if not is_equal(extent, x.shape[second]):
            raise Unsupported(f"`{twice}` of {of} is {extent} and {x.shape[second]} in one operand")
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


def _without_dots(of: str, term: str, operand: TensorType) -> str:
    count = operand.rank - len(term.replace("...", ""))
    if (count if "..." not in term else not 0 <= count <= len(_DOTS)) or "." in term.replace("...", "", 1):
        raise Unsupported(f"`{term}` of {of} does not fit {operand}")
    return term.replace("...", _DOTS[: max(count, 0)][::-1])


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
