"""Emits statements with all checks.

Loops of all kinds run sequentially, as in the interpreter. Buffers are allocated on the stack or on the heap where they
are declared, each with its shadow.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from tirlite.analysis import demands_of
from tirlite.codegen.debug import shadows
from tirlite.codegen.debug.conflicts import SentLoop, doubtful_buffers, received, sent, watch
from tirlite.codegen.debug.expressions import CheckedExpressions
from tirlite.codegen.debug.poison import Checks, Poisoned, Read, resolved
from tirlite.codegen.debug.shadows import ShadowEnvironment, Shadows, Tracked
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
from tirlite.codegen.functions.pieces import StatementCosts
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
    """A function as callers of debug code see it.

    `shadowed`: which parameters come with a shadow.
    `ranks`: for each scalar that may be poisoned, the number of indices of the load that it came from; else None.
    `loops`: the loops around its calls whose iterations may conflict.
    """

    shadowed: tuple[bool, ...]
    ranks: tuple[int | None, ...]
    loops: tuple[SentLoop, ...]


class CheckedCalls(Calls):
    """Emits the calls in a function with checks."""

    def check(
        self,
        call: KernelCall,
        buffers: Mapping[Buffer, Buffer],
        known: Mapping[Var, Value],
        values: Expressions,
        out: KernelFunction,
    ) -> None:
        """Also stops if a scalar that extents depend on is poisoned."""
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
            tracked = values.environment.tracked[buffers[param]] if isinstance(param, Buffer) else None
            if tracked is not None and tracked.shadow is not None:
                operands += [tracked.shadow.pointer, tracked.owner]
            elif isinstance(param, Var) and (mark := values.marks.get(known[param])) is not None:
                origin = resolved(values.out, mark).origin
                assert isinstance(origin, Read)
                operands += [mark.flag, origin.buffer, *origin.indices]
                rank = len(origin.indices)
            shadowed.append(tracked is not None and tracked.shadow is not None)
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
    """Emits statements with checks."""

    values: CheckedExpressions
    environment: ShadowEnvironment

    def __init__(
        self,
        out: KernelFunction,
        shared: Shadows,
        name: str,
        storage: Storage,
        weights: StatementCosts,
        aliases: tuple[Aliases, Aliases],
        calls: Calls,
    ) -> None:
        """`aliases`: those of the buffers, and those of their shadows, which have their own alias scopes."""
        self.checks = Checks(out, shared)
        values = CheckedExpressions(self.checks, ShadowEnvironment())
        super().__init__(out, values, name, storage, weights, aliases[0], calls)
        self.module.processor = replace(self.module.processor, has_tiles=False)  # tile instructions have no checks
        self.shadow_aliases = aliases[1]
        self.doubtful = doubtful_buffers(calls.facts)
        self.levels: dict[Buffer, int] = {}  # the loop depth of each declaration of storage in its function

    def enter(self, out: KernelFunction) -> None:
        super().enter(out)
        self.checks.out = out

    def receive(self, version: Version) -> None:
        """Also receives the shadow of each buffer that has one, and the mark of each scalar that may be poisoned."""
        super().receive(version)
        assert isinstance(version, CheckedVersion)
        shared = Value(handle, "shadows")  # a common root: the shadows of parameters may overlap
        for number, param in enumerate(version.func.params):
            rank = version.ranks[number]
            if isinstance(param, Buffer) and version.shadowed[number]:
                pointer = replace(self.out.parameter(handle, f"%s{number}"), leads_into=shared)
                self._declare(param, pointer, self.bytes_of(param), self.out.parameter(i8, f"%o{number}"))
            elif isinstance(param, Var) and rank is not None:
                flag = self.out.parameter(bool_, f"%f{number}")
                buffer, *indices = (self.out.parameter(i64, f"%r{number}_{k}") for k in range(1 + rank))
                mark = Poisoned(flag, Read(flag, buffer, tuple(indices)))
                self.values.marks[self.environment.variables[param]] = mark
        loops = enumerate(version.loops)
        self.values.watched = tuple(received(self.out, number, each, self.calls.facts) for number, each in loops)

    def place(self, buffer: Buffer, pointer: Value, extents: list[Value], align: int) -> None:
        """Places a parameter, without a shadow; declared buffers get theirs afterwards."""
        super().place(buffer, pointer, extents, align)
        self._declare(buffer, None, integer(0), constant(0, i8))

    def _declare(self, buffer: Buffer, shadow: Value | None, size: Value, owner: Value) -> None:
        """Records what is known of a placed buffer; `shadow` is the address of its shadow, if it has one."""
        place = None if shadow is None else replace(self.environment.places[buffer], pointer=shadow)
        self.environment.tracked[buffer] = Tracked(size, place, owner)

    def store(self, stmt: Store) -> None:
        self.values.store(stmt)

    def let(self, stmt: Let) -> None:
        if stmt.var in self._sizing and (flags := self._checked((stmt.value,))[1]):
            self._wrapped[stmt.var] = any_of(self.out, flags)
        self.values.bind(stmt.var, self.values.value(stmt.value))

    def _extents(self, buffer: Buffer) -> list[Value]:
        """The extents of a declaration: stops if one is poison, negative or has overflowed."""
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
        """Allocates memory for a buffer and for its shadow; returns both addresses and the size of each."""
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
        place, whole = self.environment.places[source], self.environment.tracked[source]
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
        """The size of a buffer in bytes; of a parameter without a shadow, by its extents."""
        tracked = self.environment.tracked[buffer]
        if tracked.shadow is not None:
            return tracked.bytes
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
