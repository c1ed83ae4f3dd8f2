"""Statements in, their instructions out, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any, TypeAlias

from tirlite.codegen import memory
from tirlite.codegen.expressions import Expressions, is_unit_ramp
from tirlite.codegen.faults import Faults
from tirlite.codegen.memory import Place
from tirlite.codegen.multiples import largest_divisor
from tirlite.codegen.storage import Home, Storage
from tirlite.diag import Span
from tirlite.ir import (
    Allocate,
    Assert,
    AttrStmt,
    Buffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Let,
    Ramp,
    SeqStmt,
    Steps,
    Stmt,
    Store,
    View,
    While,
    i64,
    run,
)

_LOOP_PROPERTIES = {
    ForKind.UNROLLED: '!{!"llvm.loop.unroll.enable"}',
    ForKind.VECTORIZED: '!{!"llvm.loop.vectorize.enable", i1 true}',
}


class Statements:
    """Writes the instructions of statements. `at` is the span of the statement that is being written."""

    def __init__(self, values: Expressions, storage: Storage, addresses: dict[Buffer, str]) -> None:
        self.out = values.out
        self.values = values
        self.storage = storage
        self.addresses = addresses  # of what lies in the workspace, and then on the stack
        self.faults = Faults(values.out, storage.line)
        self.at: Span | None = None
        self.deepest = 0  # loops around one another, at most
        self._depth = 0

    def write(self, body: SeqStmt) -> None:
        """The statements of a function; control stands behind them afterwards."""
        run(self.block(body))

    def block(self, body: SeqStmt) -> Steps[None]:
        held = self.faults.cleanup
        for stmt in body.stmts:
            self.at = stmt.span
            steps = RULES[type(stmt)](self, stmt)
            if steps is not None:
                yield steps
        self.faults.release_to(held)

    def store(self, stmt: Store) -> None:
        values, place = self.values, self.values.places[stmt.buffer]
        value = values.value(stmt.value)
        last = stmt.indices[-1] if stmt.indices else None
        if last is None or last.dtype.lanes == 1:
            pointer = run(values.address(place, stmt.indices))
        elif isinstance(last, Ramp) and is_unit_ramp(last):
            pointer = run(values.address(place, (*stmt.indices[:-1], last.base)))
        else:
            pointers = run(values.lane_addresses(place, stmt.indices))
            memory.scatter(self.out, place, pointers, stmt.value.dtype, value)
            return
        memory.store(self.out, place, pointer, stmt.value.dtype, value)

    def evaluate(self, stmt: Evaluate) -> None:
        self.values.value(stmt.value)

    def let(self, stmt: Let) -> None:
        self.values.variables[stmt.var] = self.values.value(stmt.value)

    def allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        home = self.storage.homes[buffer]
        extents = [self.values.value(extent) for extent in buffer.shape]
        align = self.storage.line
        if home is Home.HEAP:
            pointer = self.faults.allocate(buffer, extents, self.at)
        elif buffer in self.addresses:
            pointer = self.addresses[buffer]
        else:
            pointer = self.addresses[buffer] = self.out.alloca(self.storage.sizes[buffer], align)
        self.place(buffer, pointer, extents, align)

    def place(self, buffer: Buffer, pointer: str, extents: list[str], align: int) -> None:
        """Says where a buffer lies from here on."""
        strides = ["1"]
        for extent in reversed(extents[1:]):
            strides.append(extent if strides[-1] == "1" else self._product(extent, strides[-1]))
        self.values.places[buffer] = Place(buffer, pointer, tuple(reversed(strides[: len(extents)])), align)

    def _product(self, a: str, b: str) -> str:
        if a.isdecimal() and b.isdecimal():
            return str(int(a) * int(b))
        return self.out.value(f"mul i64 {a}, {b}")

    def view(self, stmt: View) -> None:
        source = self.values.places[stmt.source]
        offset = self.values.value(stmt.byte_offset)
        pointer = source.pointer
        if offset != "0":
            pointer = self.out.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}")
        extents = [self.values.value(extent) for extent in stmt.buffer.shape]
        self.place(stmt.buffer, pointer, extents, gcd(source.align, largest_divisor(stmt.byte_offset)))

    def assertion(self, stmt: Assert) -> None:
        held = self.out.label("held")
        condition = self.values.value(stmt.condition)
        self.out.branch_if(condition, held, self.faults.assertion(stmt.message, stmt.span))
        self.out.start(held)

    def attribute(self, stmt: AttrStmt) -> Steps[None]:
        return self.block(stmt.body)

    def conditional(self, stmt: IfThenElse) -> Steps[None]:
        out = self.out
        condition = self.values.value(stmt.condition)
        then, done = out.label("then"), out.label("done")
        otherwise = out.label("else") if stmt.else_body.stmts else done
        out.branch_if(condition, then, otherwise)
        out.start(then)
        yield self.block(stmt.then_body)
        out.branch(done)
        if stmt.else_body.stmts:
            out.start(otherwise)
            yield self.block(stmt.else_body)
            out.branch(done)
        out.start(done)

    def body(self, body: SeqStmt) -> Steps[None]:
        """The block of a loop."""
        self._depth += 1
        self.deepest = max(self.deepest, self._depth)
        yield self.block(body)
        self._depth -= 1

    def while_loop(self, stmt: While) -> Steps[None]:
        out = self.out
        test, body, done = out.label("test"), out.label("while"), out.label("done")
        out.branch(test)
        out.start(test)
        out.branch_if(self.values.value(stmt.condition), body, done)
        out.start(body)
        yield self.body(stmt.body)
        out.branch(test)
        out.start(done)

    def loop(self, stmt: For) -> Steps[None]:
        start, stop = self.values.value(stmt.start), self.values.value(stmt.stop)
        if abs(stmt.step) == 1:
            yield self._counted(stmt, start, stop, "slt" if stmt.step > 0 else "sgt", stmt.step)
        else:
            yield self._strided(stmt, start, stop)

    def _counted(self, stmt: For, start: str, stop: str, compare: str, step: int, scale: str = "") -> Steps[None]:
        """A loop whose counter goes from `start` to `stop` by 1 or -1, and so never runs past the ends of i64.

        With a `scale`, the loop variable is that much times the counter, from the loop's own start on.
        """
        out = self.out
        before, body, latch, done = out.block, out.label("loop"), out.label("latch"), out.label("done")
        out.branch_if(out.value(f"icmp {compare} i64 {start}, {stop}"), body, done)
        out.start(body)
        following = out.name()
        counter = out.phi(i64, (start, before), (following, latch))
        self.values.variables[stmt.var] = counter
        if scale:
            distance = out.value(f"mul i64 {counter}, {stmt.step}")
            self.values.variables[stmt.var] = out.value(f"add i64 {scale}, {distance}")
        yield self.body(stmt.body)
        out.branch(latch)
        out.start(latch)
        out.effect(f"{following} = add nsw i64 {counter}, {step}")
        note = out.loop_metadata(_LOOP_PROPERTIES[stmt.kind]) if stmt.kind in _LOOP_PROPERTIES else ""
        out.branch_if(out.value(f"icmp {compare} i64 {following}, {stop}"), body, done, note)
        out.start(done)

    def _strided(self, stmt: For, start: str, stop: str) -> Steps[None]:
        """A loop by another step: its iterations are counted, as the variable itself might wrap behind the last."""
        out, step = self.out, stmt.step
        low, high = (start, stop) if step > 0 else (stop, start)
        some = out.value(f"icmp slt i64 {low}, {high}")
        distance = out.value(f"sub i64 {high}, {low}")  # unsigned: below 2^64
        count = out.value(f"udiv i64 {out.value(f'sub i64 {distance}, 1')}, {abs(step)}")
        count = out.value(f"add i64 {count}, 1")
        count = out.value(f"select i1 {some}, i64 {count}, i64 0")
        yield self._counted(stmt, "0", count, "slt", 1, start)


Rule: TypeAlias = Callable[[Statements, Any], "Steps[None] | None"]

RULES: dict[type[Stmt], Rule] = {
    Store: Statements.store,
    Evaluate: Statements.evaluate,
    Allocate: Statements.allocate,
    View: Statements.view,
    Let: Statements.let,
    Assert: Statements.assertion,
    For: Statements.loop,
    While: Statements.while_loop,
    IfThenElse: Statements.conditional,
    AttrStmt: Statements.attribute,
}
