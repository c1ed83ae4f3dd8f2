"""Emits checks that no two iterations of a parallel loop access the same element if one of them writes it.

A word for each element of memory from outside of the loop records the last access, through whichever view: `2 * i` for
a read in iteration `i`, `2 * i + 1` for a write. Debug code runs the iterations in order, so the first read, or the
write, represents all earlier accesses and no conflict is missed. Only memory whose iterations are not proved
independent has words. Functions that the loop calls receive the words and the iteration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from tirlite.analysis.loops.dependence import writes
from tirlite.codegen import memory
from tirlite.codegen.debug import shadows
from tirlite.codegen.llvm.values import NULL, Value, constant, integer
from tirlite.codegen.memory import Place
from tirlite.codegen.reports import MemoryReport, Report
from tirlite.diag import Message, Span
from tirlite.ir import Buffer, DType, For, KernelCall, Load, Store, Var, View, handle, i8, i64, statements_of
from tirlite.ir.faults import IterationConflict
from tirlite.ir.kernel_call import closure_of
from tirlite.record import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tirlite.analysis.facts import Facts
    from tirlite.codegen.debug.poison import Checks
    from tirlite.codegen.faults import KernelFunction
    from tirlite.codegen.reports import Number

# The source spans of the reads, and those of the writes.
Spans: TypeAlias = "tuple[tuple[Span | None, ...], tuple[Span | None, ...]]"
# The byte that fills the words of elements that have not been accessed.
_BYTE = -128
_NOBODY = int.from_bytes(bytes([_BYTE % 256]) * 8, "little", signed=True)


@record
class ConflictReport(Report):
    """Two iterations accessed the same element; values: the indices, the second iteration, the first one's word.

    `others`: the spans of the loop's accesses to the buffer.
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
        # The word does not tell which of several accesses it was.
        related = spans[0] if len(spans) == 1 and spans[0] != self.span else None
        return IterationConflict(
            element, self.loop, uses[self.is_write], second, uses[word & 1], word >> 1, span=self.span, related=related
        )


@record(eq=False)
class Shared:
    """An allocation whose elements several iterations may access.

    `root`: the buffer of the whole allocation. `grain`: the bytes per word, the size of the smallest element type used.
    `others`: the spans of the accesses; empty if called functions access the memory too.
    """

    root: Buffer
    grain: int
    others: Spans


@record(eq=False)
class Watched:
    """A parallel loop that is running and checked for conflicts.
    `shared`: the shared memory, by each buffer that accesses it. `words`, `roots`: the words and the memory of each
    root. `current`: the iteration, in a function that the loop calls.
    """

    loop: For
    shared: Mapping[Buffer, Shared]
    words: Mapping[Buffer, Place]
    roots: Mapping[Buffer, Place]
    current: Value | None = None

    def iteration(self, variables: Mapping[Var, Value]) -> Value:
        """The current iteration, given the values of the variables."""
        return self.current or variables[self.loop.var]

    def note(self, checks: Checks, place: Place, indices: list[Value], current: Value, *, is_write: bool) -> None:
        """Records an access to an element in iteration `current`; stops at a conflict with an earlier one."""
        out, shared = checks.out, self.shared[place.buffer]
        words, root = self.words[shared.root], self.roots[shared.root]
        each = place.buffer.dtype.bytes // shared.grain
        if place is root:
            first = memory.offset_in(out, words, indices)
            first = out.op("mul", first, integer(each)) if each > 1 else first
        else:
            pointer = memory.address(out, place, memory.offset_in(out, place, indices))
            ends = [out.cast("ptrtoint", at, i64) for at in (pointer, root.pointer)]
            first = out.op("sdiv", out.op("sub", *ends), integer(shared.grain))
        for number in range(each):
            at = memory.address(out, words, out.op("add", first, integer(number)) if number else first)
            self._note(checks, at, place.buffer, shared.others, indices, current, is_write=is_write)

    def _note(
        self,
        checks: Checks,
        pointer: Value,
        buffer: Buffer,
        others: Spans,
        indices: list[Value],
        current: Value,
        *,
        is_write: bool,
    ) -> None:
        out = checks.out
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
        report = ConflictReport(checks.span, self.loop.var.name, buffer, is_write, others)
        out.stop_if(wrong, report, lambda: [*indices, current, word])
        out.store(mine, pointer)


def doubtful_buffers(facts: Facts) -> dict[For, dict[Buffer, Shared]]:
    """The loops that are not proved independent, and for each the buffers whose elements iterations may share.

    Views of an array with strides are left out.
    """
    return {loop: _shared(loop, facts) for loop in facts.doubtful_loops}


def _shared(loop: For, facts: Facts) -> dict[Buffer, Shared]:
    found: dict[Buffer, Shared] = {}
    for allocation, touches in facts.shared_in(loop).items():
        seen = [touch for touch in touches if isinstance(touch.node, Load | Store | KernelCall)]
        if not any(map(writes, seen)):
            continue
        root, buffers = allocation.buffer, {touch.buffer for touch in seen}
        called = [
            each for touch in seen if isinstance(touch.node, KernelCall) for each in closure_of(touch.node.callee)
        ]
        views = (stmt.buffer for each in called for stmt in statements_of(each.body, View))
        spans = [
            tuple(dict.fromkeys(each.stmt.span for each in seen if not called and isinstance(each.node, kind)))
            for kind in (Load, Store)
        ]
        shared = Shared(root, min(each.dtype.bytes for each in (*buffers, *views)), (spans[0], spans[1]))
        found |= {each: shared for each in buffers if each is root or not root.strides}
    return found


def watch(
    out: KernelFunction, loop: For, shared: Mapping[Buffer, Shared], places: Mapping[Buffer, Place], span: Span | None
) -> Watched:
    """Allocates the words for a loop that begins, for memory that exists outside of it; `release_to` frees them."""
    kept = {buffer: each for buffer, each in shared.items() if each.root in places}
    roots = {each.root: places[each.root] for each in kept.values()}
    grains = {each.root: each.grain for each in kept.values()}
    words = {root: _words(out, place, grains[root], span) for root, place in roots.items()}
    return Watched(loop, kept, words, roots)


# What a callee needs to know of a loop around its call: which of its parameters are memory that iterations may share.
SentLoop: TypeAlias = "tuple[For, tuple[tuple[Buffer, Shared], ...]]"


def sent(watched: Watched, call: KernelCall, variables: Mapping[Var, Value]) -> tuple[SentLoop, list[Value]]:
    """The facts and the arguments that a callee receives about a loop; no arguments if it shares no memory."""
    given = [(param, each) for param, each in call.buffers() if each in watched.shared and not each.strides]
    shared = tuple((param, watched.shared[each]) for param, each in given)
    roots = dict.fromkeys(each.root for _, each in shared)
    pointers = [places[each].pointer for each in roots for places in (watched.words, watched.roots)]
    return (watched.loop, shared), [watched.iteration(variables), *pointers] if shared else []


def received(out: KernelFunction, number: int, loop_sent: SentLoop, facts: Facts) -> Watched:
    """The loop as a callee sees it: by its own parameters and their views."""
    loop, given = loop_sent[0], dict(loop_sent[1])
    current = out.parameter(i64, f"%i{number}")
    words, roots = dict[Buffer, Place](), dict[Buffer, Place]()
    for place, root in enumerate(dict.fromkeys(each.root for each in given.values())):
        for places, name in ((words, "w"), (roots, "b")):
            pointer = out.parameter(handle, f"%{name}{number}_{place}")
            places[root] = Place(Buffer(root.name, i64, ()), pointer, (), 8, ())
    root_of = facts.definitions.root
    reached = (*given, *(stmt.buffer for stmt in statements_of(facts.func.body, View)))
    shared = {each: given[root_of(each)] for each in reached if root_of(each) in given}
    return Watched(loop, shared, words, roots, current)


def _words(out: KernelFunction, place: Place, grain: int, span: Span | None) -> Place:
    """Allocates the words of a buffer, in the layout of its elements without strides."""
    each, strides = place.buffer.dtype.bytes, list[Value]()
    count = integer(max(each // grain, 1))
    for extent in place.extents:
        count = out.product(count, extent)
        strides = [*(out.product(stride, extent) for stride in strides), integer(1)]
    # An arena's element type is bytes, smaller than the grain: it gets a word per grain.
    count = out.op("add", out.op("udiv", count, integer(grain // each)), integer(1)) if each < grain else count
    count = out.op("mul", count, integer(8))
    pointer = out.fresh(out.padded(count))
    words = Buffer(place.buffer.name, i64, place.buffer.shape)
    report = MemoryReport(span, words)
    out.stop_if(out.compare("icmp eq", pointer, NULL), report, lambda: [*place.extents])
    out.hold(pointer)
    shadows.fill(out, pointer, count, constant(_BYTE, i8))
    return Place(words, pointer, tuple(strides), 8, place.extents)
