"""Emits statements, at any depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import TYPE_CHECKING

from tirlite.codegen import memory
from tirlite.codegen.expressions import Expressions
from tirlite.codegen.faults import KernelFunction, any_of, as_bits, require_exact, require_view
from tirlite.codegen.functions.kernel_calls import Calls, Version, dim_parameters
from tirlite.codegen.functions.pieces import LARGEST, StatementCosts, are_only_calls, cut
from tirlite.codegen.llvm.values import Value, integer
from tirlite.codegen.loops.aliases import Aliases
from tirlite.codegen.loops.estimate import Work, is_unbound, iterations_between, polls_between, work_of
from tirlite.codegen.loops.loop_hints import goes_by_elements, hints_of, in_any_order, sums_taps, weights_of
from tirlite.codegen.loops.whole_rows import as_one_row
from tirlite.codegen.refused import Refused
from tirlite.codegen.storage import Storage, sizing
from tirlite.ir.checked import ELSE_IN_THE_OTHER, has_check, is_checked, mask_of
from tirlite.ir.dtype import f64, handle, i64
from tirlite.ir.expr import Buffer, Call, Expr, Ramp, Var
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.loop_values import counted_by
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import (
    Allocate,
    Assert,
    AttrStmt,
    Evaluate,
    For,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    Store,
    View,
    While,
)
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.walk import statements_of, walk
from tirlite.late import LateModule
from tirlite.record import replace

if TYPE_CHECKING:
    from tirlite.codegen import gathers
    from tirlite.codegen.loops import ahead, polling, tiles
    from tirlite.codegen.loops.streaming import Past, Shifted
    from tirlite.codegen.workspace_layout import WorkerPart
    from tirlite.ir import assertion
else:
    ahead = LateModule("tirlite.codegen.loops.ahead")  # only for tiles of sums
    gathers = LateModule("tirlite.codegen.gathers")  # only for lanes that are not adjacent
    tiles = LateModule("tirlite.codegen.loops.tiles")  # only for products of bytes
    polling = LateModule("tirlite.codegen.loops.polling")  # only for loops that may run long
    assertion = LateModule("tirlite.ir.assertion")  # only for messages with values

# The iterations of a `while` between polls for signals, and the fewest statements of a loop body that is a tile.
_BETWEEN, _TILE = 1 << 16, 6


class Statements:
    """Emits the statements of one function, by a method for each kind."""

    def __init__(
        self,
        out: KernelFunction,
        values: Expressions,
        name: str,
        storage: Storage,
        weights: StatementCosts,
        aliases: Aliases,
        calls: Calls,
    ) -> None:
        self.out = out
        self.module = out.module
        self.values = values
        self.environment = values.environment
        self.name = name
        self.storage = storage
        self.weights = weights
        self.aliases = aliases
        self.calls = calls
        self.streamed: Mapping[Store, Past] = {}  # non-temporal stores
        self.shifted: Shifted | None = None  # the loop around if it is aligned for non-temporal stores
        self.ahead: Mapping[For, Sequence[ahead.Prefetch]] = {}  # the rows that loops prefetch
        self.addresses: dict[Buffer, Value] = {}  # in the workspace
        self.parts: dict[For, WorkerPart] = {}  # the workspaces of parallel loops
        self._sizing: set[Var] = set()  # the lets that extents of heap buffers are computed from
        self._wrapped: dict[Node, Value] = {}  # overflow flags of such lets
        self._count(loops=max(self.module.extent.loops, weights.loops))
        self._pieces = self._depth = self._nesting = 0
        self.counting: list[polling.Count | None] = []  # the polling counters of the loops around
        self.once: dict[For, Work] = {}  # the work of one iteration of each loop
        self._rest: tuple[tuple[Stmt, ...], int] = ((), 0)  # the statements of a block, and where the next one stands
        self._skipped: dict[For | None, str] = {}  # the block after a copy that stored tiles make superfluous

    def _count(self, **counts: int) -> None:
        self.module.extent = replace(self.module.extent, **counts)

    def enter(self, out: KernelFunction) -> None:
        """Continues in another LLVM function."""
        self.out = self.values.out = out

    def receive(self, version: Version) -> None:
        """Declares the parameters of a function with callers in the module, and places its buffers."""
        func, variables = version.func, self.environment.variables
        pointers: dict[Buffer, Value] = {}
        shared = Value(handle, "shared")  # the common root of parameters that may overlap
        for number, param in enumerate(func.params):
            if isinstance(param, Buffer):
                noalias = " noalias" if version.apart[number] else ""
                align = f" align {memory.alignment_of(param)}" if version.aligned[number] else ""
                pointer = self.out.parameter(handle, f"%p{number}", noalias + align)
                pointers[param] = pointer if version.apart[number] else replace(pointer, leads_into=shared)
            else:
                variables[param] = self.out.parameter(param.dtype, f"%p{number}")
        variables |= zip(func.dims, dim_parameters(func, self.out), strict=True)
        for param, aligned in zip(func.params, version.aligned, strict=True):
            if isinstance(param, Buffer):
                extents = [self.values.value(extent) for extent in param.shape]
                self.place(param, pointers[param], extents, memory.alignment_of(param) if aligned else 1)

    def write(self, body: SeqStmt) -> None:
        """Emits the body of a function, and ends it."""
        views = [stmt.buffer for stmt in statements_of(body, View) if is_checked(stmt.byte_offset)]
        self._sizing = sizing(body, (*self.storage.of("heap"), *views))
        if any(len(loop.body.stmts) >= _TILE for loop in statements_of(body, For)):
            self.ahead = ahead.rows_ahead(body, self.module.processor)
        if self.module.processor.masks_stores_slowly:
            self.environment.mixed = memory.mixed_in(body)
        run(self.block(body))
        self.out.finish()

    def block(self, body: SeqStmt) -> Steps[None]:
        held, span = self.out.cleanup, self.module.span
        self._nesting += 1
        if self._nesting > self.module.extent.nested:
            self._count(nested=self._nesting)
        if self.weights.of(body) > LARGEST:
            for part in cut(body, self.weights, self.storage):
                yield self._each(part.declarations)
                yield self._piece(part.stmts) if part.is_piece else self._each(part.stmts)
        else:
            yield self._each(body.stmts)
        self._nesting -= 1
        self.out.release_to(held)
        self.module.span = span

    def _each(self, stmts: tuple[Stmt, ...]) -> Steps[None]:
        if any(isinstance(stmt, Let | Store) and stmt.value.dtype.lanes > 1 for stmt in stmts):
            self.environment.phases.update(gathers.phases_of(stmts))
        for place, stmt in enumerate(stmts):
            self._rest = stmts, place + 1
            if stmt.span is not None:
                self.module.span = stmt.span
            steps = getattr(self, RULES[type(stmt)])(stmt)
            if steps is not None:
                yield steps

    def _piece(self, stmts: tuple[Stmt, ...]) -> Steps[None]:
        """Outlines `stmts` into a function of its own, and calls it."""
        from tirlite.codegen.functions.outline import call, close, compute_again

        around = self.out
        self.enter(KernelFunction(self.module, self.storage.line))
        self.out.as_written = are_only_calls(stmts)
        yield self._each(stmts)
        self._pieces += 1
        self._count(pieces=max(self.module.extent.pieces, self._pieces))
        compute_again(self.out)
        piece = close(self.out, f"{self.name}_piece{self._pieces}")
        self.enter(around)
        call(around, piece)

    def kernel_call(self, stmt: KernelCall) -> None:
        self.calls.write(stmt, self.values, self.out)

    def store(self, stmt: Store) -> None:
        values, place, indices = self.values, self.environment.places[stmt.buffer], stmt.indices
        # Stores at indices cast from floats, as in a histogram, are never vectorized.
        values.is_alone = mask_of(indices) is None and any(map(memory.asks_floats, indices))
        # Check before the value, so that the first fault is the interpreter's; convert floats once for an update.
        if values.is_alone or any(map(has_check, indices)):
            indices = tuple(map(values.computed_index, indices))
        value, note = values.kept(memory.value_at(stmt, indices)), self.environment.notes.get(stmt.buffer, "")
        if mask_of(indices) is not None:
            pointer, on = run(values.masked_pointer(place, indices))
            memory.store_lanes(self.out, place, pointer, on, value, note)
            return
        if indices and memory.is_reversed(place, indices[-1]):
            assert isinstance(indices[-1], Ramp)
            last = run(values.address(place, (*indices[:-1], indices[-1].base)))
            memory.store_reversed(self.out, place, last, value, note)
            return
        first, *others = run(values.pointers(place, indices))
        values.is_alone = False
        if others:
            memory.scatter(self.out, place, [first, *others], value)
        elif stmt in self.streamed:
            from tirlite.codegen.loops.streaming import store

            store(values, place, first, value, note, self.streamed[stmt], self.shifted)
        else:
            memory.store(self.out, place, first, value, note)

    def evaluate(self, stmt: Evaluate) -> None:
        if not (isinstance(stmt.value, Call) and stmt.value.op is Op.PRINT):
            self.values.value(stmt.value)
            return
        if self.module.exported:
            raise Refused("`print` in exported code", "leave it out: there is no Python to print by")
        from tirlite.codegen.printing import emit_print
        from tirlite.ir.printing import PRINTED, text_and_values

        text, shown = text_and_values(stmt)
        polling.poll_now(self.out)
        emit_print(self.out, text, [self.values.good(each, PRINTED) for each in shown])

    def let(self, stmt: Let) -> None:
        variables = self.environment.variables
        if stmt.var in self._sizing:
            (variables[stmt.var],), flags = self._checked((stmt.value,))
            if flags:
                self._wrapped[stmt.var] = any_of(self.out, flags)
        else:
            variables[stmt.var] = self.values.kept(stmt.value)

    def allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        home = self.storage.homes[buffer]
        if home == "heap":
            extents, overflows = self._checked(buffer.shape)
            pointer = self.out.allocate(buffer, extents, overflows, stmt.span)
        else:
            extents = [self.values.value(extent) for extent in buffer.shape]
            if home == "workspace":
                pointer = self.addresses[buffer]
            elif buffer in self.out.slots:
                pointer = self.out.slots[buffer]
            else:
                pointer = self.out.slots[buffer] = self.out.alloca(self.storage.sizes[buffer], self.storage.line)
        self.place(buffer, pointer, extents, self.storage.line)

    def _checked(self, exprs: Sequence[Expr]) -> tuple[list[Value], list[Value]]:
        """The values of expressions, and the overflow flags of their computation, through lets too."""
        from tirlite.codegen.workspace_layout import ExactExpressions

        values = ExactExpressions(self.out, self.environment)
        found = [values.value(expr) for expr in exprs]
        behind = dict.fromkeys(walk(*exprs))
        return found, [*values.overflows, *(self._wrapped[node] for node in behind if node in self._wrapped)]

    def place(self, buffer: Buffer, pointer: Value, extents: list[Value], align: int) -> None:
        """Records where a buffer lies from here on."""
        strides = [integer(1)]
        for extent in reversed(extents[1:]) if not buffer.strides else ():
            strides.append(self.out.product(extent, strides[-1]))
        rows = tuple(map(self.values.value, buffer.strides)) or tuple(reversed(strides[: len(extents)]))
        self.environment.places[buffer] = memory.Place(buffer, pointer, rows, align, tuple(extents))

    def view(self, stmt: View) -> None:
        source = self.environment.places[stmt.source]
        extents = [self.values.value(extent) for extent in stmt.buffer.shape]
        offset = self.values.value(stmt.byte_offset)
        if is_checked(stmt.byte_offset):
            require_exact(self.out, stmt.buffer, self._checked(stmt.buffer.shape)[1], extents)
            require_view(self.out, self.environment, stmt, offset, extents)
        pointer = source.pointer if offset.number == 0 else self.out.move(source.pointer, offset)
        align = gcd(source.align, self.aliases.alignment(stmt) or memory.largest_divisor(stmt.byte_offset))
        self.place(stmt.buffer, pointer, extents, align)

    def assertion(self, stmt: Assert) -> None:
        held, failed = self.out.label("held"), self.out.label("failed")
        condition = self.values.good(stmt.condition, "the condition of an assert")
        told = () if stmt.message == ELSE_IN_THE_OTHER else assertion.shown(stmt).values
        if not told:
            self.out.branch_if(condition, held, self.out.fails(stmt))
        else:
            self.out.branch_if(condition, held, failed)
            self.out.start(failed)
            self.tell(stmt, [self.values.value(each) for each in told])
        self.out.start(held)

    def tell(self, stmt: Assert, values: list[Value]) -> None:
        """Ends the function with a failed assert and its values."""
        from tirlite.codegen.reports import FailedAssert

        self.out.tell(FailedAssert(stmt), [as_bits(self.out, value) for value in values])

    def attribute(self, stmt: AttrStmt) -> Steps[None]:
        return self.block(stmt.body)

    def conditional(self, stmt: IfThenElse) -> Steps[None]:
        out = self.out
        condition = self.values.good(stmt.condition, "the condition of an `if`")
        then, done = out.label("then"), out.label("done")
        otherwise = out.label("else") if stmt.else_body.stmts else done
        weights = weights_of(stmt)
        out.branch_if(condition, then, otherwise, "" if weights is None else f", !prof {out.module.node(*weights)}")
        around = out.fork()
        out.conditions += 1
        out.start(then)
        yield self.block(stmt.then_body)
        out.branch(done)
        if stmt.else_body.stmts:
            out.start(otherwise)
            yield self.block(stmt.else_body)
            out.branch(done)
        out.conditions -= 1
        out.start(done)
        out.join(around)

    def nest(self, stmt: For | While) -> Steps[None]:
        """Emits a loop; alias metadata is chosen once per outermost loop."""
        around, once = self.environment.notes, self.once
        self.once = dict(once)  # entries made from here on are valid inside of this loop only
        if self._depth == 0:
            self.environment.notes = self.aliases.notes(stmt)
        yield self.loop(stmt) if isinstance(stmt, For) else self.while_loop(stmt)
        self.environment.notes, self.once = around, once

    def iteration(self, loop: For | While) -> Steps[None]:
        """Emits the body of a loop."""
        around, outer = self.environment.loops, self.values.innermost
        self.environment.loops, self.values.innermost = (*around, *counted_by(loop)), loop
        self._depth += 1
        self._count(deepest=max(self._depth, self.module.extent.deepest))
        self.out.by_elements = self.out.by_elements or isinstance(loop, While) or goes_by_elements(loop)
        self.out.over_windows |= isinstance(loop, For) and sums_taps(loop)
        yield self.block(loop.body)
        self._depth -= 1
        self.environment.loops, self.values.innermost = around, outer

    def while_loop(self, stmt: While) -> Steps[None]:
        out = self.out
        test, body, done = out.label("test"), out.label("while"), out.label("done")
        along = polling.counters_along(stmt)
        count = polling.counts(self.counting, out) if along else None
        is_left = self.module.exported or polling.ends_soon(stmt) or (along and (count or not self.counting))
        before = polling.how_far(self.values, along if count else [])
        out.follow(test)
        out.branch_if(self.values.good(stmt.condition, "the condition of a `while`"), body, done)
        out.start(body)
        if not is_left:
            polling.begin(self.counting, out, stmt, _BETWEEN)
        yield self.iteration(stmt)
        if not is_left:
            self.counting.pop()
        out.branch(test)
        out.start(done)
        if count:
            polling.pass_on(count, out.op("sub", polling.how_far(self.values, along), before))

    def loop(self, stmt: For) -> Steps[None]:
        stmts, place = self._rest
        start, stop = self.values.value(stmt.start), self.values.value(stmt.stop)
        for bound in (start, stop):
            self.values.demand_good(bound, f"a bound of the loop over `{stmt.var.name}`")
        out, around = self.out, self.out.fork()
        if stmt in self.storage.workers:
            yield self._distributed(stmt, start, stop)
        elif abs(stmt.step) == 1:
            loop, (start, stop) = as_one_row(self.values, stmt, start, stop)
            takes_tiles = self.module.processor.has_tiles and For in loop.body.kinds
            begun = tiles.begin(self.values, loop, start, stop, stmts[place:]) if takes_tiles else None
            yield self._counted(loop, start, stop, "slt" if stmt.step > 0 else "sgt", f"nsw {stmt.step}")
            if begun:
                out.follow(begun.done)
                self._skipped[begun.copy] = begun.behind
        else:
            yield self._strided(stmt, start, stop)
        out.join(around)
        if behind := self._skipped.pop(stmt, ""):
            out.follow(behind)

    def _counted(
        self, stmt: For, start: Value, stop: Value, compare: str, step: str, origin: Value | Shifted | None = None
    ) -> Steps[None]:
        """A loop with step 1; one that may run long runs in stretches, and polls for signals between them."""
        out, has_whiles = self.out, polls_between(stmt, self._depth, whiles=True)
        if self.module.exported or not (has_whiles or is_unbound(stmt)):
            yield self._stretch(stmt, start, stop, compare, step, origin)
            return
        longest = iterations_between(self.out, work_of(self.values, stmt, self.once))
        before, stretch, ask, again, done = out.block, *map(out.label, ("stretch", "ask", "again", "done"))
        out.branch_if(out.compare(f"icmp {compare}", start, stop), stretch, done)
        out.start(stretch)
        end = out.later(i64)
        first = out.phi(i64, (start, before), (end, again))
        left = out.op("sub", first, stop) if compare == "sgt" else out.op("sub", stop, first)
        length = out.intrinsic("umin", left, longest)
        out.define_later(end, f"{'sub' if compare == 'sgt' else 'add'} {first.typed}, {length.text}", first, length)
        self.counting.append(None)
        yield self._stretch(stmt, first, end, compare, step, origin)
        self.counting.pop()
        if has_whiles and self._depth:  # else not here: a loop around may hold vectors in all registers
            polling.count_up(out, length, longest)
        out.branch_if(out.compare(f"icmp {compare}", end, stop), ask, done)
        out.start(ask)
        if not has_whiles or not self._depth:
            polling.poll_now(out)
        out.follow(again)
        out.branch(stretch)
        out.start(done)

    def _stretch(
        self, stmt: For, start: Value, stop: Value, compare: str, step: str, origin: Value | Shifted | None
    ) -> Steps[None]:
        """A loop whose counter runs from `start` to `stop` in steps of one, and so cannot overflow.
        `step`: the overflow flag and the increment of the counter. `origin`: the loop variable is `origin` plus the
        counter times the loop's step; a Shifted computes it itself.
        """
        out, polls = self.out, not self.module.exported and polls_between(stmt, self._depth, whiles=False)
        between = iterations_between(self.out, work_of(self.values, stmt, self.once)) if polls else None
        before, body, latch, done = out.block, out.label("loop"), out.label("latch"), out.label("done")
        out.branch_if(out.compare(f"icmp {compare}", start, stop), body, done)
        out.start(body)
        following = out.later(i64)
        counter = out.phi(i64, (start, before), (following, latch))
        variable = counter
        if isinstance(origin, Value):
            # From an origin of 0 or above, values below `stop` are reached without overflow.
            flags = " nuw nsw" if origin.number is not None and origin.number >= 0 and stmt.step > 0 else ""
            variable = out.op(f"add{flags}", origin, out.op(f"mul{flags}", counter, integer(stmt.step)))
        elif origin is not None:
            variable = origin.variable(counter)
        self.environment.variables[stmt.var] = variable
        if between is not None:
            polling.count_up(out, integer(1), between, in_memory=True)
        self.environment.notes, free = in_any_order(stmt, self.environment.notes, self.module)
        for prefetch in self.ahead.get(stmt, ()):
            ahead.emit(self.values, prefetch)
        yield self.iteration(stmt)
        out.follow(latch)
        flag, amount = step.split()
        out.define_later(following, f"add {flag} {counter.typed}, {amount}", counter)
        hints = (*hints_of(stmt, self.module.processor.vector_bytes), *free)
        note = out.loop_metadata(*hints) if hints else ""
        out.branch_if(out.compare(f"icmp {compare}", following, stop), body, done, note)
        out.start(done)

    def _strided(self, stmt: For, start: Value, stop: Value) -> Steps[None]:
        """A loop with another step: it counts iterations, since the variable itself might overflow after the last."""
        from tirlite.codegen.functions.outline import trip_count

        count = trip_count(self.out, start, stop, stmt.step)
        if any(each in self.streamed for each in stmt.body.stmts):
            from tirlite.codegen.loops.streaming import shifted

            self.shifted = shifted(self.values, stmt, (start, stop), count, self.streamed)
            if self.shifted is not None:
                yield self._counted(stmt, integer(0), self.shifted.count, "ult", "nuw 1", self.shifted)
                self.shifted = None
                return
        yield self._counted(stmt, integer(0), count, "ult", "nuw 1", start)

    def _distributed(self, stmt: For, start: Value, stop: Value) -> Steps[None]:
        """Outlines a loop whose iterations run on workers, and calls the pool."""
        from tirlite.codegen.functions.outline import chunk_count, close, fork_join, trip_count, worker_parameters

        around, workers = self.out, self.storage.workers[stmt]
        count = trip_count(around, start, stop, stmt.step)
        # Half of the unsigned count, as an unsigned conversion would keep the SLP vectorizer from running: see `cast`.
        pairs = around.cast("sitofp", around.op("lshr", count, integer(1)), f64)
        chunks = chunk_count(around, count, around.op("fmul", pairs, work_of(self.values, stmt, self.once)), workers)
        self.enter(KernelFunction(self.module, self.storage.line))
        first, end, worker = worker_parameters(self.out, stmt)
        if stmt in self.parts:
            from tirlite.codegen.workspace_layout import worker_addresses

            self.addresses |= worker_addresses(self.values, self.storage, stmt, self.parts[stmt], worker)
        loop, (first, end, start) = as_one_row(self.values, stmt, first, end, start)
        yield self._counted(loop, first, end, "ult", "nuw 1", start)
        self.module.tasks += 1
        body = close(self.out, f"{self.name}_parallel{self.module.tasks}")
        self.enter(around)
        fork_join(around, body, f"{self.name}_task{self.module.tasks}", count, workers, chunks)


# The method that emits each kind of statement.
RULES: dict[type[Stmt], str] = {
    Store: "store",
    Evaluate: "evaluate",
    Allocate: "allocate",
    View: "view",
    Let: "let",
    Assert: "assertion",
    For: "nest",
    While: "nest",
    IfThenElse: "conditional",
    AttrStmt: "attribute",
    KernelCall: "kernel_call",
}
