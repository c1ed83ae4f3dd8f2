"""Emits the instructions of statements with all checks.

Loops of all kinds run in order, as in the interpreter. Buffers lie on the stack or on the heap, where they are
declared, each with its shadow.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from tirlite.analysis import demands_of
from tirlite.codegen.debug import shadows
from tirlite.codegen.debug.conflicts import SentLoop, doubtful_buffers, received, sent, watch
from tirlite.codegen.debug.expressions import CheckedExpressions
from tirlite.codegen.debug.poison import Checks, Mark, Read, settled
from tirlite.codegen.debug.shadows import ShadowEnvironment, Shadows, Window
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import (
    KernelFunction,
    any_of,
    as_bits,
    checked_bytes,
    require_exact,
    require_extents,
    require_view,
)
from tirlite.codegen.functions.kernel_calls import Calls, Version
from tirlite.codegen.functions.pieces import Weights
from tirlite.codegen.llvm.values import NULL, Value, constant, integer
from tirlite.codegen.loops.aliases import Aliases
from tirlite.codegen.memory import largest_divisor
from tirlite.codegen.reports import FailedAssert, MemoryReport
from tirlite.codegen.statements import Statements
from tirlite.codegen.storage import Storage
from tirlite.ir.dtype import bool_, handle, i8, i64
from tirlite.ir.expr import Buffer, Var
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.stmt import Allocate, Assert, For, Let, Store, View, While
from tirlite.ir.trampoline import Steps
from tirlite.ir.walk import walk
from tirlite.record import record, replace
from tirlite.sizes import round_up


@record
class CheckedVersion(Version):
    """A function, and which of its buffers come with a shadow (`shadowed`).

    `ranks` has, for each parameter, how many indices tell where the poison of a scalar was read; None for no poison.
    `loops` are those around its calls whose iterations may conflict.
    """

    shadowed: tuple[bool, ...]
    ranks: tuple[int | None, ...]
    loops: tuple[SentLoop, ...]


class CheckedCalls(Calls):
    """Writes the calls in one function that checks itself."""

    def check(
        self,
        call: KernelCall,
        buffers: Mapping[Buffer, Buffer],
        known: Mapping[Var, Value],
        values: Expressions,
        out: KernelFunction,
    ) -> None:
        """Makes sure of the scalars that extents are computed from, too."""
        assert isinstance(values, CheckedExpressions)
        marks = {param: values.marks[value] for param, value in known.items() if value in values.marks}
        for demand in demands_of(call, self.facts.extents) if marks else ():
            for node in walk(demand.condition):
                if isinstance(node, Var) and node in marks:
                    values.checks.good(marks[node], f"a scalar that `{call.callee.name}` takes for an extent")
        super().check(call, buffers, known, values, out)

    def version(
        self, call: KernelCall, buffers: Mapping[Buffer, Buffer], known: Mapping[Var, Value], values: Expressions
    ) -> tuple[Version, list[Value]]:
        assert isinstance(values, CheckedExpressions)
        plain, operands = super().version(call, buffers, known, values)
        shadowed: list[bool] = []
        ranks: list[int | None] = []
        for param in call.callee.params:
            rank = None
            window = values.environment.windows[buffers[param]] if isinstance(param, Buffer) else None
            if window is not None and window.shadow is not None:
                operands += [window.shadow.pointer, window.owner]
            elif isinstance(param, Var) and (mark := values.marks.get(known[param])) is not None:
                origin = settled(values.out, mark).origin
                assert isinstance(origin, Read)
                operands += [mark.flag, origin.buffer, *origin.indices]
                rank = len(origin.indices)
            shadowed.append(window is not None and window.shadow is not None)
            ranks.append(rank)
        loops: list[SentLoop] = []
        for watched in values.watched:
            about, given = sent(watched, call, values.environment.variables)
            loops += [about] if given else []
            operands += given
        return CheckedVersion(
            plain.func, plain.apart, plain.aligned, tuple(shadowed), tuple(ranks), tuple(loops)
        ), operands


class CheckedStatements(Statements):
    """Writes the instructions of statements with their checks."""

    values: CheckedExpressions
    environment: ShadowEnvironment

    def __init__(
        self,
        out: KernelFunction,
        shared: Shadows,
        name: str,
        storage: Storage,
        weights: Weights,
        aliases: tuple[Aliases, Aliases],
        calls: Calls,
    ) -> None:
        """`aliases` are those of the buffers and those of their shadows, which have scopes of their own."""
        self.checks = Checks(out, shared)
        values = CheckedExpressions(self.checks, ShadowEnvironment())
        super().__init__(out, values, name, storage, weights, aliases[0], calls)
        self.module.processor = replace(self.module.processor, has_tiles=False)  # these check nothing
        self.shadow_aliases = aliases[1]
        self.doubtful = doubtful_buffers(calls.facts)
        self.levels: dict[Buffer, int] = {}  # the loops around each declaration of storage; a function is called anew

    def enter(self, out: KernelFunction) -> None:
        super().enter(out)
        self.checks.out = out

    def as_one_row(self, stmt: For, *bounds: Value) -> tuple[For, tuple[Value, ...]]:
        """The loop itself: indices are checked along each axis."""
        return stmt, bounds

    def receive(self, version: Version) -> None:
        """Of each buffer with a shadow, that comes too, and of each scalar that may be poisoned, where it was read."""
        super().receive(version)
        assert isinstance(version, CheckedVersion)
        shared = Value(handle, "shadows")  # what the shadows of all parameters lead into: they may share bytes
        for number, param in enumerate(version.func.params):
            rank = version.ranks[number]
            if isinstance(param, Buffer) and version.shadowed[number]:
                pointer = replace(self.out.parameter(handle, f"%s{number}"), leads_into=shared)
                self._declare(param, pointer, self.bytes_of(param), self.out.parameter(i8, f"%o{number}"))
            elif isinstance(param, Var) and rank is not None:
                flag = self.out.parameter(bool_, f"%f{number}")
                buffer, *indices = (self.out.parameter(i64, f"%r{number}_{k}") for k in range(1 + rank))
                mark = Mark(flag, Read(flag, buffer, tuple(indices)))
                self.values.marks[self.environment.variables[param]] = mark
        loops = enumerate(version.loops)
        self.values.watched = tuple(received(self.out, number, each, self.calls.facts) for number, each in loops)

    def place(self, buffer: Buffer, pointer: Value, extents: list[Value], align: int) -> None:
        """A parameter; what is declared has a shadow too."""
        super().place(buffer, pointer, extents, align)
        self._declare(buffer, None, integer(0), constant(0, i8))

    def _declare(self, buffer: Buffer, shadow: Value | None, size: Value, owner: Value) -> None:
        """Says what is known of a buffer that has been placed, with its shadow at an address, if it has one."""
        place = None if shadow is None else replace(self.environment.places[buffer], pointer=shadow)
        self.environment.windows[buffer] = Window(size, place, owner)

    def store(self, stmt: Store) -> None:
        self.values.store(stmt)

    def let(self, stmt: Let) -> None:
        if stmt.var in self._sizing and (flags := self._checked((stmt.value,))[1]):
            self._wrapped[stmt.var] = any_of(self.out, flags)
        self.values.bind(stmt.var, self.values.value(stmt.value))

    def _extents(self, buffer: Buffer) -> list[Value]:
        """The extents of a declaration, all good and none negative."""
        extents = [self.values.value(extent) for extent in buffer.shape]
        for axis, extent in enumerate(extents):
            self.values.demand_good(extent, f"extent {axis} of `{buffer.name}`")
        require_exact(self.out, buffer, self._checked(buffer.shape)[1], extents)
        require_extents(self.out, buffer, extents)
        return extents

    def allocate(self, stmt: Allocate) -> None:
        buffer, out, align = stmt.buffer, self.out, self.storage.line
        extents = self._extents(buffer)
        if self.storage.homes[buffer] == "stack":
            padded = round_up(self.storage.sizes[buffer], align)
            if buffer not in out.slots:
                out.slots[buffer] = out.alloca(2 * padded, align)
            pointer, size = out.slots[buffer], integer(self.storage.sizes[buffer])
            shadow = out.move(pointer, integer(padded)).alone()
        else:
            pointer, shadow, size = self._on_heap(buffer, extents)
        super().place(buffer, pointer, extents, align)
        self._declare(buffer, shadow, size, self.checks.shadows.next_owner())
        shadows.fill(out, shadow, size, constant(0, i8))
        self.levels[buffer] = self._depth

    def _on_heap(self, buffer: Buffer, extents: list[Value]) -> tuple[Value, Value, Value]:
        """Fresh memory for a buffer and for its shadow: both addresses, and the bytes of each."""
        out = self.out
        size, bad = checked_bytes(out, buffer, extents)
        report = MemoryReport(self.checks.span, buffer)
        self.out.stop_if(bad, report, lambda: extents)
        padded = out.padded(size)
        found = []
        for _ in range(2):
            pointer = out.fresh(padded)
            self.out.stop_if(out.compare("icmp eq", pointer, NULL), report, lambda: extents)
            out.hold(pointer)
            found.append(pointer)
        return found[0], found[1], size

    def view(self, stmt: View) -> None:
        buffer, out = stmt.buffer, self.out
        extents = self._extents(buffer)
        offset = self.values.value(stmt.byte_offset)
        self.values.demand_good(offset, f"the byte offset of `{buffer.name}`")
        size = require_view(out, self.environment, stmt, offset, extents)
        self._place_view(stmt, offset, extents, size)

    def _place_view(self, stmt: View, offset: Value, extents: list[Value], size: Value) -> None:
        out, buffer, source = self.out, stmt.buffer, stmt.source
        place, whole = self.environment.places[source], self.environment.windows[source]
        align = gcd(place.align, largest_divisor(stmt.byte_offset))
        pointer = out.move(place.pointer, offset)
        shadow = None if whole.shadow is None else out.move(whole.shadow.pointer, offset)
        super().place(buffer, pointer, extents, align)
        owner = self.checks.shadows.next_owner() if stmt.fresh else whole.owner
        self._declare(buffer, shadow, size, owner)
        level = self.levels[buffer] = self._depth if stmt.fresh else self.levels.get(source, -1)
        if stmt.fresh and shadow is not None and level > self.levels.get(source, -1):
            shadows.forget(out, shadow, size, owner)

    def bytes_of(self, buffer: Buffer) -> Value:
        """The bytes of a buffer; of a parameter, as its extents say."""
        window = self.environment.windows[buffer]
        if window.shadow is not None:
            return window.bytes
        size = integer(buffer.dtype.bytes)
        for extent in self.environment.places[buffer].extents:
            size = self.out.product(size, extent)
        return size

    def tell(self, stmt: Assert, values: list[Value]) -> None:
        found = []
        for value in values:
            mark = self.values.marks.get(value)
            flag = integer(0) if mark is None else self.out.cast("zext", self.out.any_lane(mark.flag), i64)
            found += [as_bits(self.out, value), flag]
        self.out.tell(FailedAssert(stmt, is_marked=True), found)

    def nest(self, stmt: For | While) -> Steps[None]:
        is_outermost = self._depth == 0
        if is_outermost:
            self.environment.shadow_notes = self.shadow_aliases.notes(stmt)
        around, held = self.values.watched, self.out.cleanup
        if isinstance(stmt, For) and stmt in self.doubtful:
            watched = watch(self.out, stmt, self.doubtful[stmt], self.environment.places, self.checks.span)
            self.values.watched = (*around, watched)
        yield super().nest(stmt)
        self.out.release_to(held)
        self.values.watched = around
        if is_outermost:
            self.environment.shadow_notes = {}
