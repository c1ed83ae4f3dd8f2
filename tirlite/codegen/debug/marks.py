"""Poison in registers: which lanes of a value come from memory that was never written, and where that was read.

A mark is made of LLVM values. Whether there is poison is computed with the value; where it came from is only computed
where a fault needs it, from the tree of reads that the value was made of.
"""

from __future__ import annotations

from typing import TypeAlias

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import register_type
from tirlite.ir import bool_
from tirlite.record import record


@record
class Flag:
    """Which of so many lanes are poisoned: an `i1`, or a vector of them."""

    operand: str
    lanes: int

    @property
    def kind(self) -> str:
        return register_type(bool_.with_lanes(self.lanes) if self.lanes > 1 else bool_)


@record(eq=False)
class Read:
    """A load that may have read poison: the number of its buffer among those of the module, and the indices."""

    flag: Flag
    buffer: str
    indices: tuple[str, ...]


@record(eq=False)
class Either:
    """The first of several origins that has poison."""

    origins: tuple[Origin, ...]


@record(eq=False)
class Guarded:
    """An origin that counts in the lanes that were chosen."""

    chosen: Flag
    origin: Origin


Origin: TypeAlias = Read | Either | Guarded


@record(eq=False)
class Mark:
    """The poisoned lanes of a value, and their origin."""

    flag: Flag
    origin: Origin


def joined(out: FunctionText, *marks: Mark | None) -> Mark | None:
    """The mark of what is computed lane by lane from values with these marks."""
    found = [mark for mark in marks if mark is not None]
    if len(found) < 2:
        return found[0] if found else None
    flag = found[0].flag
    for mark in found[1:]:
        flag = either(out, flag, mark.flag)
    return Mark(flag, Either(tuple(mark.origin for mark in found)))


def chosen(out: FunctionText, condition: Flag, if_true: Mark | None, if_false: Mark | None, lanes: int) -> Mark | None:
    """The mark of a choice between two values of so many lanes, by a condition without poison."""
    sides = []
    for mark, is_true in ((if_true, True), (if_false, False)):
        if mark is not None:
            taken = (
                condition
                if is_true
                else Flag(out.value(f"xor {condition.kind} {condition.operand}, {_ones(condition)}"), condition.lanes)
            )
            both = _both(out, mark.flag, spread(out, taken, lanes))
            sides.append(Mark(both, Guarded(taken, mark.origin)))
    return joined(out, *sides)


def spread(out: FunctionText, flag: Flag, lanes: int) -> Flag:
    """A flag in each of so many lanes."""
    if flag.lanes == lanes:
        return flag
    wide = Flag("", lanes)
    first = out.value(f"insertelement {wide.kind} poison, i1 {flag.operand}, i64 0")
    return Flag(
        out.value(f"shufflevector {wide.kind} {first}, {wide.kind} poison, <{lanes} x i32> zeroinitializer"), lanes
    )


def spread_mark(out: FunctionText, mark: Mark | None, lanes: int) -> Mark | None:
    return None if mark is None else Mark(spread(out, mark.flag, lanes), mark.origin)


def either(out: FunctionText, a: Flag, b: Flag) -> Flag:
    return Flag(out.value(f"or {a.kind} {a.operand}, {b.operand}"), a.lanes)


def _both(out: FunctionText, a: Flag, b: Flag) -> Flag:
    return Flag(out.value(f"and {a.kind} {a.operand}, {b.operand}"), a.lanes)


def any_lane(out: FunctionText, flag: Flag) -> str:
    """Whether any lane is set, as an i1."""
    if flag.lanes == 1:
        return flag.operand
    bits = out.value(f"bitcast {flag.kind} {flag.operand} to i{flag.lanes}")
    return out.value(f"icmp ne i{flag.lanes} {bits}, 0")


def first_read(out: FunctionText, origin: Origin) -> tuple[str, list[str]]:
    """The number of the buffer that the poison of a value came from, and the indices there: of the first that did."""
    found: list[tuple[str, Read]] = []
    stack: list[tuple[Origin, tuple[Flag, ...]]] = [(origin, ())]
    while stack:
        node, guards = stack.pop()
        if isinstance(node, Either):
            stack += [(each, guards) for each in reversed(node.origins)]
        elif isinstance(node, Guarded):
            stack.append((node.origin, (*guards, node.chosen)))
        else:
            found.append((_counts(out, node.flag, guards), node))
    rank = max(len(read.indices) for _, read in found)
    _, last = found.pop()
    numbers = [last.buffer, *_filled(last, rank)]
    for flag, read in reversed(found):
        own = [read.buffer, *_filled(read, rank)]
        numbers = [
            a if a == b else out.value(f"select i1 {flag}, i64 {a}, i64 {b}") for a, b in zip(own, numbers, strict=True)
        ]
    return numbers[0], numbers[1:]


def _filled(read: Read, rank: int) -> list[str]:
    return [*read.indices, *["0"] * (rank - len(read.indices))]


def _counts(out: FunctionText, flag: Flag, guards: tuple[Flag, ...]) -> str:
    """Whether a read had poison in a lane that was chosen."""
    lanes = max(each.lanes for each in (flag, *guards))
    for guard in guards:
        flag = _both(out, spread(out, flag, lanes), spread(out, guard, lanes))
    return any_lane(out, flag)


def settled(out: FunctionText, mark: Mark) -> Mark:
    """The same mark with its origin computed here, so that it can be used where the reads themselves cannot."""
    if isinstance(mark.origin, Read):
        return mark
    buffer, indices = first_read(out, mark.origin)
    return Mark(mark.flag, Read(mark.flag, buffer, tuple(indices)))


def _ones(flag: Flag) -> str:
    return "true" if flag.lanes == 1 else "splat (i1 true)"
