"""Reads sizes over named dims from text, what `str(size)` writes and more; and facts about dims, `N<=64, N%8==0`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from math import lcm
from typing import NamedTuple

from tirlite.diag import KernelError, PlanMessage, Source, Span, public
from tirlite.plan.arguments import demand
from tirlite.record import record
from tirlite.sizes import (
    Dim,
    Proof,
    Size,
    SizeLike,
    as_size,
    ceildiv,
    dims_of,
    evaluate,
    maximum,
    minimum,
    prove_divides,
)
from tirlite.sizes.evaluate import sample_bindings
from tirlite.sizes.poly import terms_of
from tirlite.sizes.terms import SizeTooLong

_TOKEN = re.compile(r"\s*([0-9]+|[^\W\d]\w*|//|\*\*|[-+*/%(),])")
# Stands for the minus in front of an operand.
_NEGATE = "negate"
_SHOWN = 12
_HIGHEST_POWER = 64
# Of a text that is not a size.
_MOST_SHOWN = 60
# Python prints no integer of more bits than about this.
_MOST_BITS = 13_000


class BadSizeText(PlanMessage):
    """A text is not a size.

    Example: `n +` in the column `size_expr` of a table.
    Fix: Write integers and dims with the operators that the message lists.
    """

    title = "`{text}` is not a size: {why}"
    help = (
        "a size is made of integers, the dims {known}, `+ - * // % **`, `max min floor ceil ceildiv`, and of `/` where "
        "the division leaves no rest or stands in `floor` or `ceil`"
    )


class _Ratio(NamedTuple):
    """A quotient that is not yet rounded."""

    top: Size
    bottom: Size = 1


class _NoSize(Exception):
    """What is wrong with the text, in words."""


def parse_size(text: str, dims: Mapping[str, SizeLike]) -> Size:
    """The size that `text` spells, by Python's rules. Raises PlanError for anything else than a size over `dims`."""
    try:
        return _whole(_Reader(dims).read(text))
    except _NoSize as error:
        why = str(error)
    except KernelError as error:
        why = "multiplied out, it is too long" if error.code == SizeTooLong.code else "it divides by zero"
    known = [f"`{name}`" for name in islice(dims, _SHOWN)] + ["..."] * (len(dims) > _SHOWN)
    raise BadSizeText(_shortened(text), why, ", ".join(known) or "(none)").error()


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def names_in(text: str) -> tuple[str, ...]:
    """The names that stand for dims in the text of a size, in the order in which they appear."""
    names = (token for token in re.findall(r"[^\W\d]\w*", text) if token not in _FUNCTIONS)
    return tuple(dict.fromkeys(names))


def is_dim_name(text: str) -> bool:
    """Whether a dim of this name can be told in the text of a size."""
    return re.fullmatch(r"[^\W\d]\w*", text) is not None and text not in _FUNCTIONS


def _whole(ratio: _Ratio) -> Size:
    """The quotient where it is proved to leave no rest."""
    top, bottom = ratio
    if bottom == 1:
        return top
    if isinstance(bottom, int) and bottom and prove_divides(bottom, top) is Proof.YES:
        return as_size(top // bottom)
    quotient = _floor(ratio)
    if quotient * bottom == top:
        return quotient
    raise _NoSize(f"`{top}` divided by `{bottom}` may leave a rest")


def _floor(ratio: _Ratio) -> Size:
    return ratio.top if ratio.bottom == 1 else as_size(ratio.top // ratio.bottom)


def _ceil(ratio: _Ratio) -> Size:
    return ratio.top if ratio.bottom == 1 else ceildiv(ratio.top, ratio.bottom)


def _divisor(size: Size) -> Size:
    """The size, which something is divided by. Raises _NoSize where it is 0 at one of a few values of its dims."""
    for binding in sample_bindings(dims_of(size)):
        if evaluate(size, binding) == 0:
            told = " and ".join(f"`{dim.name}` is {value}" for dim, value in binding.items())
            raise _NoSize(f"it divides by zero where {told}" if told else "it divides by zero")
    return size


def _sum(a: _Ratio, b: _Ratio) -> _Ratio:
    if a.bottom == b.bottom:
        return _Ratio(a.top + b.top, a.bottom)
    return _Ratio(_times(a.top, b.bottom) + _times(b.top, a.bottom), _times(a.bottom, b.bottom))


def _product(a: _Ratio, b: _Ratio) -> _Ratio:
    return _Ratio(_times(a.top, b.top), _times(a.bottom, b.bottom))


def _times(a: Size, b: Size) -> Size:
    product = a * b
    if any(coefficient.bit_length() > _MOST_BITS for coefficient in terms_of(product).values()):
        raise _NoSize("a number has too many digits")
    return product


def _negated(a: _Ratio) -> _Ratio:
    return _Ratio(-a.top, a.bottom)


def _quotient(a: _Ratio, b: _Ratio) -> _Ratio:
    return _product(a, _Ratio(b.bottom, _divisor(b.top)))


def _modulo(a: _Ratio, b: _Ratio) -> _Ratio:
    return _Ratio(as_size(_whole(a) % _divisor(_whole(b))))


def _power(a: _Ratio, b: _Ratio) -> _Ratio:
    exponent = _whole(b)
    if not isinstance(exponent, int) or not 0 <= exponent <= _HIGHEST_POWER:
        raise _NoSize(f"an exponent is a number from 0 to {_HIGHEST_POWER}")
    power = _Ratio(1)
    for _ in range(exponent):
        power = _product(power, a)
    return power


# Each with how tightly it binds. The minus in front binds less tightly than a power alone.
_OPERATORS: Mapping[str, tuple[int, Callable[[_Ratio, _Ratio], _Ratio]]] = {
    "+": (1, _sum),
    "-": (1, lambda a, b: _sum(a, _negated(b))),
    "*": (2, _product),
    "/": (2, _quotient),
    "//": (2, lambda a, b: _Ratio(_floor(_quotient(a, b)))),
    "%": (2, _modulo),
    "**": (4, _power),
}
_TIGHTNESS = {name: tightness for name, (tightness, _) in _OPERATORS.items()} | {_NEGATE: 3}

# Each with the fewest and the most operands it takes.
_FUNCTIONS: Mapping[str, tuple[int, int | None, Callable[..., Size]]] = {
    "max": (1, None, lambda *operands: maximum(*map(_whole, operands))),
    "min": (1, None, lambda *operands: minimum(*map(_whole, operands))),
    "floor": (1, 1, _floor),
    "ceil": (1, 1, _ceil),
    "ceildiv": (2, 2, lambda a, b: _ceil(_quotient(a, b))),
}


@record(frozen=False)
class _Reader:
    """Operator-precedence parsing with two stacks, as sums may have ten thousand terms."""

    dims: Mapping[str, SizeLike]
    values: list[_Ratio] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def read(self, text: str) -> _Ratio:
        wants_operand = True
        for token in _tokens(text):
            wants_operand = self._operand(token) if wants_operand else self._operator(token)
        if wants_operand:
            raise _NoSize("an operand is missing at the end")
        self._apply_down_to(0)
        if self.pending:
            raise _NoSize("a parenthesis is never closed")
        (value,) = self.values
        return value

    def _operand(self, token: str) -> bool:
        """Take a token where an operand may begin; whether one may begin after it."""
        if self.pending and self.pending[-1] in _FUNCTIONS and token != "(":
            raise _NoSize(f"`{self.pending[-1]}` has no operands")
        if token == "(":
            self.pending.append(token)
            self.calls.append(1)
        elif token == "-":
            self.pending.append(_NEGATE)
        elif token in _FUNCTIONS and token not in self.dims:
            self.pending.append(token)
        elif token.isdecimal():
            self.values.append(_Ratio(_number(token)))
            return False
        elif token in self.dims:
            self.values.append(_Ratio(as_size(self.dims[token])))
            return False
        else:
            raise _NoSize(
                f"`{token}` is not a dim" if token.isidentifier() else f"an operand is missing before `{token}`"
            )
        return True

    def _operator(self, token: str) -> bool:
        """Take a token where an operand has just ended; whether one may begin after it."""
        if token == ")":
            self._close()
            return False
        if token == ",":
            self._apply_down_to(0)
            if len(self.pending) < 2 or self.pending[-2] not in _FUNCTIONS:
                raise _NoSize("a comma stands outside of a call")
            self.calls[-1] += 1
            return True
        if token not in _OPERATORS:
            raise _NoSize(f"an operator is missing before `{token}`")
        # Powers group from the right, all else from the left.
        self._apply_down_to(_TIGHTNESS[token] + (token == "**"))
        self.pending.append(token)
        return True

    def _close(self) -> None:
        self._apply_down_to(0)
        if not self.pending:
            raise _NoSize("a parenthesis is never opened")
        self.pending.pop()
        count = self.calls.pop()
        if self.pending and self.pending[-1] in _FUNCTIONS:
            name = self.pending.pop()
            fewest, most, apply = _FUNCTIONS[name]
            if count < fewest or (most is not None and count > most):
                raise _NoSize(f"`{name}` does not take {count} operand{'s' if count > 1 else ''}")
            operands = self.values[len(self.values) - count :]
            del self.values[len(self.values) - count :]
            self.values.append(_Ratio(apply(*operands)))
        elif count > 1:
            raise _NoSize("a comma stands outside of a call")

    def _apply_down_to(self, level: int) -> None:
        """Apply what is pending and binds as tightly as `level` or more, up to the innermost open parenthesis."""
        while self.pending and _TIGHTNESS.get(self.pending[-1], -1) >= level:
            name = self.pending.pop()
            right = self.values.pop()
            self.values.append(_negated(right) if name == _NEGATE else _OPERATORS[name][1](self.values.pop(), right))


def _tokens(text: str) -> Iterator[str]:
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].lstrip()
            raise _NoSize(f"`{rest[0]}` has no meaning here")
        yield match[1]
        place = match.end()


def _number(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise _NoSize("a number has too many digits") from None


_NAME = r"(?P<name>[^\W\d]\w*)"
_COMPARISON = re.compile(
    rf"(?:(?P<low>-?[0-9]+)\s*(?P<before><=?)\s*)?{_NAME}\s*(?P<after><=?|>=?|==?)\s*(?P<value>-?[0-9]+)"
)
_BACKWARD = re.compile(rf"(?P<value>-?[0-9]+)\s*(?P<after><=?|>=?|==?)\s*{_NAME}")
_MULTIPLE = re.compile(rf"{_NAME}\s*%\s*(?P<factor>[1-9][0-9]*)\s*==\s*0")
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "==": "=="}


class BadFact(PlanMessage):
    """A part of the text is not a fact about one dim.

    Example: `--facts 'N<'`.
    Fix: Write comparisons with commas between: `N<=64, N%8==0`.
    """

    title = "`{text}` is not a fact about a dim"
    help = "separate facts by commas, as in `N<=64, 2<=M<=9, N%8==0, K==3`"


class ContraryFacts(PlanMessage):
    """The facts about one dim leave it no value.

    Example: `--facts 'N<8, N%16==0'`.
    Fix: Drop one of the facts.
    """

    title = "the facts leave the dim `{name}` no value: it is a multiple of {multiple_of}, {told}"
    help = "drop one of them; a dim is at least 1 where nothing else is told"


@record(frozen=False)
class _Known:
    """What has been told of one dim so far."""

    low: int = 1
    high: int | None = None
    multiple_of: int = 1

    def at_most(self, value: int) -> None:
        self.high = value if self.high is None else min(self.high, value)

    def at_least(self, value: int) -> None:
        self.low = max(self.low, value)


@public
def parse_facts(text: str) -> dict[str, Dim]:
    """The dims that `text` tells of, by name: positive integers that obey all that is told.

    A fact is a comparison with a number (`N<=64`, `2<=N<9`, `N==4`) or a divisor (`N%8==0`). Raises PlanError.
    """
    demand("parse_facts", "text", text, "a text", fits=isinstance(text, str))
    known: dict[str, _Known] = {}
    for part, span in _parts(text):
        _take(part, span, known)
    return {name: _dim(name, facts) for name, facts in known.items()}


def _parts(text: str) -> Iterator[tuple[str, Span]]:
    source = Source.of("facts", text)
    column = 0
    for part in text.split(","):
        begin = column + len(part) - len(part.lstrip())
        stripped = part.strip()
        span = Span(source, 1, begin, 1, begin + len(stripped))
        column += len(part) + 1
        if stripped:
            yield stripped, span


def _take(part: str, span: Span, known: dict[str, _Known]) -> None:
    if match := _MULTIPLE.fullmatch(part):
        facts = known.setdefault(match["name"], _Known())
        facts.multiple_of = lcm(facts.multiple_of, int(match["factor"]))
    elif match := _COMPARISON.fullmatch(part):
        facts = known.setdefault(match["name"], _Known())
        _compare(facts, match["after"], int(match["value"]))
        if match["low"] is not None:
            _compare(facts, _MIRROR[match["before"]], int(match["low"]))
    elif match := _BACKWARD.fullmatch(part):
        _compare(known.setdefault(match["name"], _Known()), _MIRROR[match["after"]], int(match["value"]))
    else:
        raise BadFact(part, span=span).error()


def _compare(facts: _Known, sign: str, value: int) -> None:
    if sign in ("<", "<=", "=", "=="):
        facts.at_most(value - (sign == "<"))
    if sign in (">", ">=", "=", "=="):
        facts.at_least(value + (sign == ">"))


def _dim(name: str, facts: _Known) -> Dim:
    try:
        return Dim(name, facts.low, facts.high, facts.multiple_of)
    except KernelError:
        told = f"at least {facts.low}" + ("" if facts.high is None else f" and at most {facts.high}")
        raise ContraryFacts(name, facts.multiple_of, told).error() from None
