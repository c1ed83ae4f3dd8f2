"""Sizes as text: the text of a size over named dims in, the Size out. The inverse of `str(size)`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from tirlite.diag import Message, PlanError
from tirlite.sizes import Dim, Size, maximum, minimum

_TOKEN = re.compile(r"\s*(\d+|[^\W\d]\w*|//|[-+*%(),])")
_FUNCTIONS: Mapping[str, Callable[..., Size]] = {"max": maximum, "min": minimum}
_OPERATORS: Mapping[str, tuple[int, Callable[[Size, Size], Size]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "//": (2, operator.floordiv),
    "%": (2, operator.mod),
}
# Stands for the minus in front of an operand, which binds most tightly.
_NEGATE = "negate"
_SHOWN = 12


@dataclass(frozen=True)
class BadSizeText(Message):
    code = "bad-size-text"
    raises = PlanError
    title = "`{text}` is no size"
    help = "a size is made of integers, the dims {known}, `+ - * // %`, `max` and `min`"

    text: str
    known: str


def parse_size(text: str, dims: Mapping[str, Dim]) -> Size:
    """The size that `text` spells, by Python's rules. Raises PlanError for anything else than a size over `dims`."""
    try:
        return _Reader(dims).read(text)
    except (IndexError, KeyError, ValueError):
        known = [f"`{name}`" for name in islice(dims, _SHOWN)] + ["..."] * (len(dims) > _SHOWN)
        raise BadSizeText(text, ", ".join(known) or "(none)").error() from None


@dataclass(slots=True)
class _Reader:
    """Operator-precedence parsing with two stacks, as sums may have ten thousand terms.

    What is no size runs into an IndexError (operand missing), a KeyError (unknown name) or a ValueError.
    """

    dims: Mapping[str, Dim]
    values: list[Size] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def read(self, text: str) -> Size:
        wants_operand = True
        for token in _tokens(text):
            wants_operand = self._operand(token) if wants_operand else self._operator(token)
        if wants_operand:
            raise ValueError("operand missing at the end")
        self._apply_down_to(0)
        if self.pending:
            raise ValueError("open parenthesis")
        (value,) = self.values
        return value

    def _operand(self, token: str) -> bool:
        """Take a token where an operand may begin; whether one may begin after it."""
        if self.pending and self.pending[-1] in _FUNCTIONS and token != "(":
            raise ValueError("a function without arguments")
        if token == "(":
            self.pending.append(token)
            self.calls.append(1)
        elif token == "-":
            self.pending.append(_NEGATE)
        elif token in _FUNCTIONS and token not in self.dims:
            self.pending.append(token)
        elif token.isdecimal():
            self.values.append(int(token))
            return False
        else:
            self.values.append(self.dims[token] + 0)
            return False
        return True

    def _operator(self, token: str) -> bool:
        """Take a token where an operand has just ended; whether one may begin after it."""
        if token == ")":
            self._close()
            return False
        if token == ",":
            self._apply_down_to(0)
            if self.pending[-2] not in _FUNCTIONS:
                raise ValueError("a comma outside of a call")
            self.calls[-1] += 1
            return True
        self._apply_down_to(_OPERATORS[token][0])
        self.pending.append(token)
        return True

    def _close(self) -> None:
        self._apply_down_to(0)
        self.pending.pop()
        count = self.calls.pop()
        if self.pending and self.pending[-1] in _FUNCTIONS:
            operands = self.values[len(self.values) - count :]
            del self.values[len(self.values) - count :]
            self.values.append(_FUNCTIONS[self.pending.pop()](*operands))

    def _apply_down_to(self, level: int) -> None:
        """Apply what is pending and binds as tightly as `level` or more, up to the innermost open parenthesis."""
        while self.pending and (self.pending[-1] == _NEGATE or self.pending[-1] in _OPERATORS):
            name = self.pending[-1]
            if name == _NEGATE:
                self.values.append(-self.values.pop())
            else:
                tightness, apply = _OPERATORS[name]
                if tightness < level:
                    return
                right, left = self.values.pop(), self.values.pop()
                self.values.append(apply(left, right))
            self.pending.pop()


def _tokens(text: str) -> Iterator[str]:
    place, end = 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(text[place])
        yield match[1]
        place = match.end()
