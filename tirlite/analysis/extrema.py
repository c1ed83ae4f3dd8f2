"""Minima and maxima of sums: as an unknown, as one of the operands and a bounded rest, and what the operands are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tirlite.analysis.definitions import Definitions
from tirlite.analysis.linear import Linear, Unknown, is_nonnegative
from tirlite.ir import Expr, Max, Min, Var
from tirlite.sizes import Size, maximum, minimum

# So many sums are written for one that is over extrema, itself included.
_MOST_FORMS = 6
# So many operands of one extremum are told apart.
_MOST_OPERANDS = 8


def picked_operand(kind: type[Min | Max], a: Linear, b: Linear) -> Linear | None:
    """The one of two sums that is always the extremum, if there is one."""
    low, high = a.plus(b, -1).ends()
    takes_less = kind is Min
    if low is not None and is_nonnegative(low):
        return b if takes_less else a
    if high is not None and is_nonnegative(-high):
        return a if takes_less else b
    return None


def extremum(kind: type[Min | Max], a: Linear, b: Linear) -> Unknown:
    """The lesser or the greater of two sums, in the bounds that follow from theirs."""
    takes_less = kind is Min
    (low_a, high_a), (low_b, high_b) = a.ends(), b.ends()
    pick = minimum if takes_less else maximum
    low = _picked(pick, low_a, low_b, one=not takes_less)
    high = _picked(pick, high_a, high_b, one=takes_less)
    return Unknown("min" if takes_less else "max", low, high, depends=(*a.terms, *b.terms))


def operand_forms(kind: type[Min | Max], a: Linear, b: Linear) -> tuple[Linear, Linear]:
    """The extremum as each of its operands, and how far it is below or above that, which is seldom far.

    So `max(i - 1, 0)`, with i at least 0, is i - 1 and no more than 1 above.
    """
    low, high = a.plus(b, -1).ends()
    from_a, from_b = (high, None if low is None else -low) if kind is Min else (None if low is None else -low, high)
    return _with_rest(kind, a, b, from_a), _with_rest(kind, b, a, from_b)


def forms_of(value: Linear, forms: Mapping[Unknown, Sequence[Linear]]) -> list[Linear]:
    """Sums that are all equal to `value`: itself, and what it is with the forms of its extrema put in."""
    found = [value]
    for each in found:
        for unknown in each.terms:
            if unknown in forms and len(found) < _MOST_FORMS:
                scale = each.terms[unknown]
                bare = each.plus(Linear(0, {unknown: 1}), -scale)
                found += [bare.plus(form, scale) for form in forms[unknown]]
    return found[:_MOST_FORMS]


def operands_of(expr: Expr, kind: type[Min | Max], definitions: Definitions) -> Iterator[Expr]:
    """What an expression, or what is named by it, is the minimum or the maximum of."""
    stack = [expr]
    for _ in range(_MOST_OPERANDS):
        if not stack:
            return
        top = stack.pop()
        named = definitions.of(top) if isinstance(top, Var) else None
        value = top if named is None or named.value is None else named.value
        if isinstance(value, kind):
            stack += (value.b, value.a)
        else:
            yield top
    yield from stack


def _with_rest(kind: type[Min | Max], operand: Linear, other: Linear, most: Size | None) -> Linear:
    """`most` is by how much the operand may be on the wrong side of the other one, if that is known."""
    rest = Unknown("a rest", 0, None if most is None else maximum(0, most), depends=(*operand.terms, *other.terms))
    return operand.plus(Linear(0, {rest: -1 if kind is Min else 1}))


def _picked(pick: Callable[[Size, Size], Size], a: Size | None, b: Size | None, *, one: bool) -> Size | None:
    """The end of an extremum; `one` says that the end of one operand alone is a bound too."""
    if a is None or b is None:
        return (b if a is None else a) if one else None
    return pick(a, b)
