"""Writes what finds two iterations of a parallel loop that touch one element, one of them writing it.

For each element of a buffer from outside of the loop a word says who touched it last: `2 * i` for one who read it in
iteration `i`, `2 * i + 1` for one who wrote it. Checked loops run in order, so the first who reads, or the one who
writes, stands for all before: there is no conflict that is not seen. There are words only where no proof shows that
iterations lie apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from tirlite.codegen import memory
from tirlite.codegen.debug import shadows
from tirlite.codegen.llvm.values import NULL, Value, constant, integer
from tirlite.codegen.memory import Place
from tirlite.codegen.reports import MemoryReport, Report
from tirlite.diag import Message, Span
from tirlite.ir import Buffer, DType, For, Load, Store, i8, i64
from tirlite.ir.faults import IterationConflict
from tirlite.record import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tirlite.analysis.facts import Facts
    from tirlite.codegen.debug.poison import Checks
    from tirlite.codegen.faults import KernelFunction
    from tirlite.codegen.reports import Number

# The places of accesses: those that read, and those that write.
Spans: TypeAlias = "tuple[tuple[Span | None, ...], tuple[Span | None, ...]]"
# What a word is before anything has touched its element: all of its bytes are this.
_BYTE = -128
_NOBODY = int.from_bytes(bytes([_BYTE % 256]) * 8, "little", signed=True)


@record
class ConflictReport(Report):
    """Two iterations on one element: its indices, the iteration that came second, and the word of the first.

    `others` are the places of the accesses in the loop.
    """

    loop: str
    buffer: Buffer
    is_write: bool
    others: Spans

    @property
    def types(self) -> tuple[DType, ...]:
        return (i64,) * (len(self.buffer.shape) + 2)

    def message(self, values: Sequence[Number]) -> Message:
        *indices, second, word = map(int, values)
        element = f"{self.buffer.name}[{', '.join(map(str, indices)) or '()'}]"
        uses = ("read", "written")
        spans = self.others[word & 1]
        # Which of several it was is not known.
        related = spans[0] if len(spans) == 1 and spans[0] != self.span else None
        return IterationConflict(
            element, self.loop, uses[self.is_write], second, uses[word & 1], word >> 1, span=self.span, related=related
        )


@record(eq=False)
class Watched:
    """A run of a loop that is watched: the words of each buffer, and the places of its accesses."""

    loop: For
    words: Mapping[Buffer, Place]
    others: Mapping[Buffer, Spans]

    def note(self, checks: Checks, buffer: Buffer, indices: list[Value], current: Value, *, is_write: bool) -> None:
        """Says that an element is touched in the iteration `current`; ends the function where others conflict."""
        out, place = checks.out, self.words[buffer]
        pointer = memory.address(out, place, memory.offset_in(out, place, indices))
        word = out.load(i64, pointer)
        touched = out.compare("icmp ne", word, integer(_NOBODY))
        other = out.compare("icmp ne", out.op("ashr", word, integer(1)), current)
        wrong = out.op("and", touched, other)
        mine = out.op("shl", current, integer(1))
        if is_write:
            mine = out.op("or", mine, integer(1))
        else:
            wrong = out.op("and", wrong, out.compare("icmp ne", out.op("and", word, integer(1)), integer(0)))
            mine = out.select(touched, word, mine)
        report = ConflictReport(checks.span, self.loop.var.name, buffer, is_write, self.others[buffer])
        out.stop_if(wrong, report, lambda: [*indices, current, word])
        out.store(mine, pointer)


def doubtful_buffers(facts: Facts) -> dict[For, dict[Buffer, Spans]]:
    """The loops that no proof shows to be independent, with the buffers whose elements iterations may share, and where.

    What functions that are called touch is left out, and so are buffers with strides.
    """
    return {loop: _shared(loop, facts) for loop in facts.doubtful_loops}


def _shared(loop: For, facts: Facts) -> dict[Buffer, Spans]:
    found: dict[Buffer, Spans] = {}
    for touches in facts.shared_in(loop).values():
        uses: dict[Buffer, tuple[dict[Span | None, None], dict[Span | None, None]]] = {}
        for touch in touches:
            if isinstance(touch.node, Load | Store):
                each = uses.setdefault(touch.node.buffer, ({}, {}))
                each[isinstance(touch.node, Store)][touch.stmt.span] = None
        found |= {buffer: ((*reads,), (*writes,)) for buffer, (reads, writes) in uses.items() if writes}
    return {buffer: spans for buffer, spans in found.items() if not buffer.strides}


def watch(
    out: KernelFunction, loop: For, shared: Mapping[Buffer, Spans], places: Mapping[Buffer, Place], span: Span | None
) -> Watched:
    """Takes the words of a loop that begins, of the buffers that stand before it; `release_to` gives them back."""
    words = {buffer: _words(out, places[buffer], span) for buffer in shared if buffer in places}
    return Watched(loop, words, shared)


def _words(out: KernelFunction, place: Place, span: Span | None) -> Place:
    count = integer(8)
    for extent in place.extents:
        count = out.product(count, extent)
    pointer = out.fresh(out.padded(count))
    report = MemoryReport(span, replace(place.buffer, dtype=i64))
    out.stop_if(out.compare("icmp eq", pointer, NULL), report, lambda: [*place.extents])
    out.hold(pointer)
    shadows.fill(out, pointer, count, constant(_BYTE, i8))
    return replace(place, buffer=replace(place.buffer, dtype=i64), pointer=pointer, align=8)
