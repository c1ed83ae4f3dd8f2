"""Poison in registers: which lanes of a value come from memory that was never written, and from which load.

A mark consists of LLVM values. The flags are computed along with the value; the origin is computed only in the block of
a fault, from the tree of loads that the value depends on.
"""

from __future__ import annotations

from typing import TypeAlias

from tirlite.codegen.debug.shadows import Shadows
from tirlite.codegen.faults import KernelFunction, first_flagged
from tirlite.codegen.llvm.text import FunctionText
from tirlite.codegen.llvm.values import FALSE, Value, constant, integer, zero
from tirlite.codegen.reports import PoisonReport, TrapReport
from tirlite.diag import Span
from tirlite.ir import Binary
from tirlite.ir.faults import QUOTIENTS, SHIFTS
from tirlite.record import record


@record(eq=False)
class Read:
    """A load that may have read poison: its flags, the number of its buffer in the module, and the indices."""

    flag: Value
    buffer: Value
    indices: tuple[Value, ...]


@record(eq=False)
class Either:
    """The first of several origins that has poison."""

    origins: tuple[Origin, ...]


@record(eq=False)
class Guarded:
    """An origin that counts only in the lanes that a select took from it."""

    chosen: Value
    origin: Origin


Origin: TypeAlias = Read | Either | Guarded


@record(eq=False)
class Poisoned:
    """The poisoned lanes of a value, a bool or a vector of them, and their origin."""

    flag: Value
    origin: Origin


def joined(out: FunctionText, *marks: Poisoned | None) -> Poisoned | None:
    """The mark of a value that is computed lane by lane from values with these marks."""
    found = [mark for mark in marks if mark is not None]
    if len(found) < 2:
        return found[0] if found else None
    flag = found[0].flag
    for mark in found[1:]:
        flag = out.op("or", flag, mark.flag)
    return Poisoned(flag, Either(tuple(mark.origin for mark in found)))


def chosen(
    out: FunctionText, condition: Value, if_true: Poisoned | None, if_false: Poisoned | None, lanes: int
) -> Poisoned | None:
    """The mark of a select between two values of `lanes` lanes, by a condition without poison."""
    sides = []
    for mark, is_true in ((if_true, True), (if_false, False)):
        if mark is not None:
            taken = condition if is_true else out.op("xor", condition, constant(1, condition.dtype))
            both = out.op("and", mark.flag, _spread(out, taken, lanes))
            sides.append(Poisoned(both, Guarded(taken, mark.origin)))
    return joined(out, *sides)


def _spread(out: FunctionText, flag: Value, lanes: int) -> Value:
    """A flag broadcast to `lanes` lanes."""
    return flag if flag.dtype.lanes == lanes else out.splat(flag, lanes)


def spread_mark(out: FunctionText, mark: Poisoned | None, lanes: int) -> Poisoned | None:
    return None if mark is None else Poisoned(_spread(out, mark.flag, lanes), mark.origin)


def first_read(out: FunctionText, origin: Origin) -> tuple[Value, list[Value]]:
    """The buffer number and the indices of the first load in the origin that read poison."""
    found: list[tuple[Value, Read]] = []
    stack: list[tuple[Origin, tuple[Value, ...]]] = [(origin, ())]
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
    numbers = filled(last, rank)
    for flag, read in reversed(found):
        own = filled(read, rank)
        numbers = [a if a.text == b.text else out.select(flag, a, b) for a, b in zip(own, numbers, strict=True)]
    return numbers[0], numbers[1:]


def filled(read: Read, rank: int) -> list[Value]:
    """The buffer number and the indices of a read, padded with zeros to `rank` indices."""
    return [read.buffer, *read.indices, *[integer(0)] * (rank - len(read.indices))]


def _counts(out: FunctionText, flag: Value, guards: tuple[Value, ...]) -> Value:
    """Whether a read had poison in a lane that all guards chose."""
    lanes = max(each.dtype.lanes for each in (flag, *guards))
    for guard in guards:
        flag = out.op("and", _spread(out, flag, lanes), _spread(out, guard, lanes))
    return out.any_lane(flag)


def resolved(out: FunctionText, mark: Poisoned) -> Poisoned:
    """The same mark with its origin computed here, for use where the loads' own values are not available."""
    if isinstance(mark.origin, Read):
        return mark
    buffer, indices = first_read(out, mark.origin)
    return Poisoned(mark.flag, Read(mark.flag, buffer, tuple(indices)))


class Checks:
    """Emits checks to `out`."""

    def __init__(self, out: KernelFunction, shadows: Shadows) -> None:
        self.out = out
        self.shadows = shadows

    @property
    def span(self) -> Span | None:
        return self.out.module.span

    def good(self, mark: Poisoned | None, use: str) -> None:
        """Stops if a value is poisoned."""
        if mark is None:
            return
        out = self.out
        failed, passed = out.label("poisoned"), out.label("good")
        out.branch_if(out.any_lane(mark.flag), failed, passed)
        out.start(failed)
        buffer, indices = first_read(out, mark.origin)
        out.tell(PoisonReport(self.span, use, self.shadows.buffers, len(indices)), [buffer, *indices])
        out.start(passed)

    def trap(self, kind: type[Binary], a: Value, b: Value, mark: Poisoned | None) -> None:
        """Stops if an integer operation has no value for its operands, in a lane that is not poisoned."""
        out, dtype = self.out, a.dtype
        if kind in SHIFTS:
            wrong = out.compare("icmp uge", b, constant(dtype.bits, dtype))
        else:
            wrong = out.compare("icmp eq", b, constant(0, dtype))
        if kind in QUOTIENTS and dtype.is_signed:
            least = out.compare("icmp eq", a, constant(dtype.min, dtype))
            minus_one = out.compare("icmp eq", b, constant(-1, dtype))
            wrong = out.op("or", wrong, out.op("and", least, minus_one))
        if mark is not None:
            none = FALSE if dtype.lanes == 1 else zero(wrong.dtype)
            wrong = out.select(mark.flag, none, wrong)
        report = TrapReport(self.span, kind, dtype)
        out.stop_if(out.any_lane(wrong), report, lambda: [first_flagged(out, each, wrong) for each in (a, b)])
