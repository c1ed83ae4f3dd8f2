"""Reads facts about dims from text, `N<=64, N%8==0`: what it says of each name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import lcm

from tirlite.diag import KernelError, Message, PlanError, Source, Span, public
from tirlite.plan.arguments import demand
from tirlite.record import record
from tirlite.sizes import Dim

_NAME = r"(?P<name>[^\W\d]\w*)"
_COMPARISON = re.compile(
    rf"(?:(?P<low>-?\d+)\s*(?P<before><=?)\s*)?{_NAME}\s*(?P<after><=?|>=?|==?)\s*(?P<value>-?\d+)"
)
_BACKWARD = re.compile(rf"(?P<value>-?\d+)\s*(?P<after><=?|>=?|==?)\s*{_NAME}")
_MULTIPLE = re.compile(rf"{_NAME}\s*%\s*(?P<factor>[1-9]\d*)\s*==\s*0")
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "==": "=="}


class BadFact(Message):
    """A part of the text is not a fact about one dim.

    Example: `--facts 'N<'`.
    Fix: Write comparisons with commas between: `N<=64, N%8==0`.
    """

    code = "bad-fact"
    raises = PlanError
    title = "`{text}` is not a fact about a dim"
    help = "facts stand one behind the other with commas between, as in `N<=64, 2<=M<=9, N%8==0, K==3`"

    text: str


class ContraryFacts(Message):
    """The facts about one dim leave it no value.

    Example: `--facts 'N<8, N%16==0'`.
    Fix: Drop one of the facts.
    """

    code = "contrary-facts"
    raises = PlanError
    title = "the facts leave the dim `{name}` no value: it is a multiple of {multiple_of}, {told}"
    help = "drop one of them; a dim is at least 1 where nothing else is told"

    name: str
    multiple_of: int
    told: str


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
