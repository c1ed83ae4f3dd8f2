"""Statements in, their instructions with all checks out.

Loops of all kinds run in order, as in the interpreter. Buffers lie on the stack or on the heap, where they are
declared, each with its shadow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from typing import Any, TypeAlias

from tirlite.codegen import memory
from tirlite.codegen.aliases import Aliases
from tirlite.codegen.debug import shadows
from tirlite.codegen.debug.checks import Checks
from tirlite.codegen.debug.expressions import CheckedExpressions
from tirlite.codegen.debug.marks import Mark, any_lane
from tirlite.codegen.debug.reports import AssertReport, ExtentReport, MemoryReport, ViewReport
from tirlite.codegen.debug.shadows import ShadowEnvironment, Window
from tirlite.codegen.expressions import is_unit_ramp
from tirlite.codegen.faults import Faults, any_of, as_bits, checked_bytes
from tirlite.codegen.kernel_calls import Calls
from tirlite.codegen.memory import Place
from tirlite.codegen.multiples import largest_divisor
from tirlite.codegen.pieces import Weights
from tirlite.codegen.statements import RULES as PLAIN
from tirlite.codegen.statements import Statements
from tirlite.codegen.storage import Home, Storage, padded_bytes
from tirlite.codegen.text import FunctionText
from tirlite.diag import Span
from tirlite.ir import (
    Allocate,
    Assert,
    Buffer,
    Expr,
    For,
    Let,
    Steps,
    Stmt,
    Store,
    View,
    While,
    shown,
)


class CheckedStatements(Statements):
    """Writes the instructions of statements with their checks."""

    values: CheckedExpressions
    environment: ShadowEnvironment

    def __init__(
        self,
        out: FunctionText,
        span: Span | None,
        name: str,
        storage: Storage,
        weights: Weights,
        aliases: tuple[Aliases, Aliases],
        calls: Calls,
    ) -> None:
        """`aliases` are those of the buffers and those of their shadows, which have scopes of their own."""
        checks = Checks(out, Faults(out, storage.line, [], {}), span)
        super().__init__(CheckedExpressions(checks, ShadowEnvironment()), name, storage, weights, aliases[0], calls)
        self.shadow_aliases = aliases[1]
        self.checks = checks
        checks.faults = self.faults
        self.levels: dict[Buffer, int] = {}  # the loops around each declaration of storage; a function is called anew

    def _each(self, stmts: tuple[Stmt, ...]) -> Steps[None]:
        for stmt in stmts:
            if stmt.span is not None:
                self.at = self.checks.span = stmt.span
            steps = RULES.get(type(stmt), PLAIN[type(stmt)])(self, stmt)
            if steps is not None:
                yield steps

    def _write_to(self, out: FunctionText, faults: Faults, slots: dict[Buffer, str]) -> None:
        super()._write_to(out, faults, slots)
        self.checks.out, self.checks.faults = out, faults

    def place(self, buffer: Buffer, pointer: str, extents: list[str], align: int, root: str) -> None:
        """A parameter; what is declared has a shadow too."""
        super().place(buffer, pointer, extents, align, root)
        self.environment.open(buffer, Window(tuple(extents), "0", None, "0"))

    def _declare(self, buffer: Buffer, shadow: str, window: Window, root: str) -> None:
        """Says what is known of a buffer that has been placed, with its shadow at an address, if it has one."""
        place = self.environment.places[buffer]
        found = replace(place, pointer=shadow) if shadow else None
        self.environment.open(buffer, replace(window, shadow=found), root)

    def store(self, stmt: Store) -> None:
        values, out, buffer = self.values, self.out, stmt.buffer
        given = [values.value(index) for index in stmt.indices]
        value = values.value(stmt.value)
        mark = values.marks.get(value)
        place, window = self.environment.places[buffer], self.environment.windows[buffer]
        indices = values.checked_indices(buffer, stmt.indices, given)
        if window.shadow is None:
            self.checks.good(mark, f"the value stored into `{buffer.name}`")
        lanes = stmt.indices[-1].dtype.lanes if stmt.indices else 1
        if lanes > 1 and not is_unit_ramp(stmt.indices[-1]):
            self._scatter(stmt, place, window, indices, value, mark)
            return
        offset = memory.offset_in(out, place, values.first_lanes(indices, stmt.indices))
        pointer, dtype = memory.address(out, place, offset), stmt.value.dtype
        memory.store(out, place, pointer, dtype, value, self.environment.notes.get(buffer, ""))
        if window.shadow is not None:
            shadow, note = shadows.element(out, window, offset), self.environment.shadow_notes.get(buffer, "")
            shadows.write(out, window, shadow, dtype, None if mark is None else mark.flag, note)

    def _scatter(
        self, stmt: Store, place: Place, window: Window, indices: list[str], value: str, mark: Mark | None
    ) -> None:
        out, dtype = self.out, stmt.value.dtype
        offsets = self.values.lane_offsets(place, indices, stmt.indices[-1].dtype.lanes)
        memory.scatter(out, place, [memory.address(out, place, each) for each in offsets], dtype, value)
        if window.shadow is None:
            return
        for lane, offset in enumerate(offsets):
            flag = None
            if mark is not None:
                own = out.value(f"extractelement {mark.flag.kind} {mark.flag.operand}, i64 {lane}")
                flag = replace(mark.flag, operand=own, lanes=1)
            shadows.write(out, window, shadows.element(out, window, offset), dtype.scalar, flag)

    def let(self, stmt: Let) -> None:
        self.values.bind(stmt.var, self.values.value(stmt.value))

    def _extents(self, buffer: Buffer) -> list[str]:
        """The extents of a declaration, all good and none negative."""
        out, marks = self.out, self.values.marks
        extents = [self.values.value(extent) for extent in buffer.shape]
        for axis, extent in enumerate(extents):
            self.checks.good(marks.get(extent), f"extent {axis} of `{buffer.name}`")
        flags = [out.value(f"icmp slt i64 {extent}, 0") for extent in extents if not extent.isdecimal()]
        if flags:
            self.checks.stop_if(any_of(out, flags), ExtentReport(self.checks.span, buffer), lambda: extents)
        return extents

    def allocate(self, stmt: Allocate) -> None:
        buffer, out, align = stmt.buffer, self.out, self.storage.line
        extents = self._extents(buffer)
        if self.storage.homes[buffer] is Home.STACK:
            padded = padded_bytes(self.storage.sizes[buffer], align)
            if buffer not in self.slots:
                self.slots[buffer] = out.alloca(2 * padded, align)
            pointer, size = self.slots[buffer], str(self.storage.sizes[buffer])
            shadow = out.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {padded}")
        else:
            pointer, shadow, size = self._on_heap(buffer, extents)
        super().place(buffer, pointer, extents, align, pointer)
        self._declare(buffer, shadow, Window(tuple(extents), size, None, self.environment.next_owner()), shadow)
        shadows.fill(out, shadow, size, "0")
        self.levels[buffer] = self._depth

    def _on_heap(self, buffer: Buffer, extents: list[str]) -> tuple[str, str, str]:
        """Fresh memory for a buffer and for its shadow: both addresses, and the bytes of each."""
        out, line = self.out, self.storage.line
        size, bad = checked_bytes(out, buffer, extents)
        report = MemoryReport(self.checks.span, buffer)
        self.checks.stop_if(bad, report, lambda: extents)
        padded = out.value(f"and i64 {out.value(f'add i64 {size}, {2 * line - 1}')}, {-line}")
        found = []
        for _ in range(2):
            pointer = out.call("ptr", "aligned_alloc", f"i64 {line}", f"i64 {padded}")
            self.checks.stop_if(out.value(f"icmp eq ptr {pointer}, null"), report, lambda: extents)
            self.faults.hold(pointer)
            found.append(pointer)
        return found[0], found[1], size

    def view(self, stmt: View) -> None:
        buffer, source, out = stmt.buffer, stmt.source, self.out
        whole = self.environment.windows[source]
        extents = self._extents(buffer)
        offset = self.values.value(stmt.byte_offset)
        self.checks.good(self.values.marks.get(offset), f"the byte offset of `{buffer.name}`")
        size, bad = checked_bytes(out, buffer, extents)
        available = self.bytes_of(source, whole)
        last = out.value(f"add i64 {offset}, {size}")
        wrong = any_of(
            out,
            [
                bad,
                out.value(f"icmp slt i64 {offset}, 0"),
                out.value(f"icmp ugt i64 {offset}, {available}"),
                out.value(f"icmp ugt i64 {last}, {available}"),
            ],
        )
        report = ViewReport(self.checks.span, buffer, source)
        self.checks.stop_if(wrong, report, lambda: [offset, *extents, *whole.extents])
        self._place_view(stmt, offset, extents, size)

    def _place_view(self, stmt: View, offset: str, extents: list[str], size: str) -> None:
        out, buffer, source = self.out, stmt.buffer, stmt.source
        place, whole = self.environment.places[source], self.environment.windows[source]
        moved = [
            out.value(f"getelementptr inbounds i8, ptr {each}, i64 {offset}")
            for each in (place.pointer, *([whole.shadow.pointer] if whole.shadow is not None else []))
        ]
        align = gcd(place.align, largest_divisor(stmt.byte_offset))
        super().place(buffer, moved[0], extents, align, self.environment.root(source))
        root = self.environment.names[whole.shadow.pointer].root if whole.shadow is not None else ""
        owner = self.environment.next_owner() if stmt.fresh else whole.owner
        shadow = moved[1] if whole.shadow is not None else ""
        self._declare(buffer, shadow, Window(tuple(extents), size, None, owner), root)
        level = self.levels[buffer] = self._depth if stmt.fresh else self.levels.get(source, -1)
        if stmt.fresh and shadow and level > self.levels.get(source, -1):
            shadows.forget(out, shadow, size, owner)

    def bytes_of(self, buffer: Buffer, window: Window) -> str:
        """The bytes of a buffer; of a parameter, as its extents say."""
        if window.shadow is not None:
            return window.bytes
        size = str(buffer.dtype.bytes)
        for extent in window.extents:
            size = self._product(size, extent)
        return size

    def assertion(self, stmt: Assert) -> None:
        out = self.out
        held, failed = out.label("held"), out.label("failed")
        condition = self.values.good(stmt.condition, "the condition of an assert")
        told = shown(stmt)
        if not told.values:
            out.branch_if(condition, held, self.faults.assertion(stmt))
        else:
            out.branch_if(condition, held, failed)
            out.start(failed)
            found = []
            for expr in told.values:
                value = self.values.value(expr)
                mark = self.values.marks.get(value)
                flag = "0" if mark is None else out.value(f"zext i1 {any_lane(out, mark.flag)} to i64")
                found += [as_bits(out, value, expr.dtype), flag]
            self.faults.tell(AssertReport(self.checks.span, stmt), found)
        out.start(held)

    def nest(self, stmt: For | While) -> Steps[None]:
        is_outermost = self._depth == 0
        if is_outermost:
            self.environment.shadow_notes = self.shadow_aliases.notes(stmt)
        yield super().nest(stmt)
        if is_outermost:
            self.environment.shadow_notes = {}

    def condition(self, condition: Expr, use: str) -> str:
        return self.values.good(condition, use)

    def bounds(self, stmt: For) -> tuple[str, str]:
        found = self.values.value(stmt.start), self.values.value(stmt.stop)
        for bound in found:
            self.checks.good(self.values.marks.get(bound), f"a bound of the loop over `{stmt.var.name}`")
        return found


Rule: TypeAlias = Callable[[Any, Any], "Steps[None] | None"]

RULES: dict[type[Stmt], Rule] = {
    For: CheckedStatements.nest,
    While: CheckedStatements.nest,
    Store: CheckedStatements.store,
    Allocate: CheckedStatements.allocate,
    View: CheckedStatements.view,
    Let: CheckedStatements.let,
    Assert: CheckedStatements.assertion,
}
