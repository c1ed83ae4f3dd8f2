"""The base of all steps of a schedule: how they print, check their arguments, are refused, and replace a loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import pairwise
from numbers import Integral
from typing import ClassVar

import numpy as np

from tirlite.analysis.facts import Facts
from tirlite.diag import Message, TirliteError
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import substitute
from tirlite.ir.stmt import For, Stmt
from tirlite.ir.walk import is_steady
from tirlite.record import replace
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.schedules.handle import NAMES_NOTHING, BufferHandle, LoopHandle


class ScheduleStep(FactsPass):
    """A step of a schedule; its fields are the arguments of the `Schedule` method that applies it.

    `str` gives the call of that method: fields in KEYWORDS by name, the others by position, defaults left out.
    """

    KEYWORDS: ClassVar[frozenset[str]] = frozenset(
        {"along", "at", "axes", "behind", "cast", "flat", "masked", "once"}
        | {"out_of", "outside", "padded", "rolled", "rows_of", "tail", "types", "whole"}
    )

    def __str__(self) -> str:
        given: list[str] = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value == each.default:
                continue
            if each.name == "axes":
                given.append(f"axes=[{', '.join(map(_spelled, value))}]")
            elif each.name in self.KEYWORDS:
                given.append(f"{each.name}={_spelled(value)}")
            else:
                given += map(_spelled, value if isinstance(value, tuple) else (value,))
        return f"s.{self.name.replace('-', '_')}({', '.join(given)})"

    def on(self, facts: Facts) -> Rewritten:
        """The function after the step. Raises KernelError if a field has a wrong type, or the step is refused."""
        self.demand_taken()
        try:
            return FactsPass.on(self, facts)
        except TirliteError as error:
            message = error.messages[0]
            if not isinstance(message, NAMES_NOTHING):
                raise
            raise message.replaced(step=f"; the step is `{self}`").error() from None

    def demand_taken(self) -> None:
        """Raises KernelError if a field's value does not have the field's type."""
        for each in fields(self):
            kinds, given = set(_WORD.findall(str(each.type))), getattr(self, each.name)
            leaves = _leaves(given, str(each.type).count("tuple["))
            if kinds <= _TAKEN.keys() and not all(_is_taken(leaf, kinds) for leaf in leaves):
                words = " or ".join(text for kind, (_, text) in _TAKEN.items() if kind in kinds and text)
                raise does_not_fit(self, f"`{each.name}` takes {words}")
            if each.name == "whole" and given < 1:
                raise does_not_fit(self, "`whole` is 1 or more")


def plain(step: ScheduleStep) -> ScheduleStep:
    """The step with NumPy integers replaced by Python's, which print as literals and do not wrap around."""
    given = {each.name: getattr(step, each.name) for each in fields(step)}
    changed = {name: made for name, value in given.items() if (made := _plain(value)) is not value}
    return replace(step, **changed) if changed else step


def _plain(value: object) -> object:
    if not isinstance(value, tuple):
        return int(value) if isinstance(value, np.integer) else value
    made = tuple(map(_plain, value))
    return value if all(new is old for new, old in zip(made, value, strict=True)) else made


_WORD = re.compile(r"\w+")


# For each word in the annotation of a field: the Python types that it allows, and how an error names them.
_TAKEN: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((Integral,), "integers of 64 bits"),
    "str": ((str,), "text"),
    "bool": ((bool,), "True or False"),
    "LoopName": ((str, LoopHandle), "loops"),
    "BufferName": ((str, BufferHandle), "buffers"),
    "None": ((type(None),), "None"),
    "tuple": ((), ""),
}


def _leaves(value: object, depth: int) -> Iterator[object]:
    """The items of tuples nested up to this depth."""
    if depth and isinstance(value, tuple):
        for each in value:
            yield from _leaves(each, depth - 1)
    else:
        yield value


def _is_taken(leaf: object, kinds: Iterable[str]) -> bool:
    if isinstance(leaf, bool):
        return "bool" in kinds
    return any(isinstance(leaf, _TAKEN[each][0]) for each in kinds) and not (
        isinstance(leaf, int) and not i64.min <= leaf <= i64.max
    )


def _spelled(value: object) -> str:
    if isinstance(value, PrimFunc):
        return value.name
    return str(value) if isinstance(value, LoopHandle | BufferHandle) else repr(value)


class StepDoesNotFit(Message):
    """A step of a schedule is asked for where the loops do not have the form that it takes.

    Example: `s.reorder("j", "i")`, where the loop over `i` has statements beside the loop over `j`.
    Fix: See what the message asks for; print the schedule's function to see the loops as they are.
    """

    title = "`{step}` does not fit: {reason}"


def does_not_fit(step: object, reason: str) -> TirliteError:
    """The error that tells why a step is not possible."""
    return StepDoesNotFit(str(step), reason).error()


def with_loop(facts: Facts, loop: For, made: Iterable[Stmt]) -> PrimFunc:
    """The function with a loop replaced by these statements, in normal form."""
    return exchanged(facts.func, {loop: tuple(made)})


def named(loop: For, suffix: str) -> For:
    """The loop with a new variable, whose name ends with `suffix`."""
    var = Var(loop.var.name + suffix)
    return substitute(loop, {loop.var: var}).replaced(var=var)


def demand_nothing_beside(step: object, nest: Sequence[For]) -> None:
    """Raises KernelError unless the loops are perfectly nested."""
    for outer, inner in pairwise(nest):
        if outer.body.stmts != (inner,):
            raise does_not_fit(step, f"the loop over `{outer.var.name}` has more in it than `{inner.var.name}`")


def demand_plain(step: object, loop: For, *, by_blocks: bool = False) -> None:
    """Raises KernelError unless a loop has step 1, or `by_blocks` any positive step, and bounds that read no memory."""
    if loop.step != 1 and not (by_blocks and loop.step > 1):
        raise does_not_fit(step, f"the loop over `{loop.var.name}` has step {loop.step}")
    if not (is_steady(loop.start) and is_steady(loop.stop)):
        raise does_not_fit(step, f"the bounds of the loop over `{loop.var.name}` are read from memory")
