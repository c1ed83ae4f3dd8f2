"""Statements in, their instructions out, at any depth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tirlite.codegen import memory
from tirlite.codegen.aliases import Aliases
from tirlite.codegen.environment import Named
from tirlite.codegen.expressions import Expressions, is_unit_ramp
from tirlite.codegen.faults import Faults, as_bits
from tirlite.codegen.kernel_calls import Calls
from tirlite.codegen.memory import Place
from tirlite.codegen.pieces import LARGEST, Weights, cut
from tirlite.codegen.storage import Home, Storage
from tirlite.codegen.text import FunctionText
from tirlite.diag import Message, Span
from tirlite.ir import (
    Allocate,
    Assert,
    AttrStmt,
    Buffer,
    Evaluate,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    KernelCall,
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

if TYPE_CHECKING:
    from tirlite.codegen.told import Told
    from tirlite.codegen.workspace_layout import WorkerPart

# A loop that is to be unrolled is written out up to so many times.
_MOST_COPIES = 64
_UNROLLED = '!{!"llvm.loop.unroll.full"}'


class Extent(NamedTuple):
    """How much there is for LLVM to do."""

    lines: int
    longest: int  # lines of the longest function
    loops: int
    deepest: int  # loops around one another
    nested: int  # blocks inside one another
    pieces: int  # functions that the body was cut into


class Statements:
    """Writes the instructions of statements. `at` is the span of the statement that is being written."""

    def __init__(
        self, values: Expressions, name: str, storage: Storage, weights: Weights, aliases: Aliases, calls: Calls
    ) -> None:
        self.out = values.out
        self.values = values
        self.environment = values.environment
        self.name = name
        self.storage = storage
        self.weights = weights
        self.aliases = aliases
        self.calls = calls
        self.addresses: dict[Buffer, str] = {}  # in the workspace
        self.parts: dict[For, WorkerPart] = {}  # those of the workspace that the workers of a loop have
        self.slots: dict[Buffer, str] = {}  # the address of each buffer on the stack of this function
        self.messages: list[Message] = []
        self.told: dict[int, Told] = {}
        self.faults = Faults(values.out, storage.line, self.messages, self.told)
        self.at: Span | None = None
        self.extent = Extent(0, 0, weights.loops, 0, 0, 0)
        self.tasks = 0  # how many loops are handed to workers
        self._depth = 0
        self._nesting = 0

    def adopt(self, callee: Statements) -> None:
        """Lets a function that this one calls, not yet written, report its faults and extern functions here."""
        callee.messages, callee.told = self.messages, self.told
        callee.faults = Faults(callee.out, callee.storage.line, self.messages, self.told)
        callee.values.externs, callee.values.addresses = self.values.externs, self.values.addresses

    def count(self, callee: Statements) -> None:
        """Adds the extent of a function that has been written."""
        mine, its = self.extent, callee.extent
        self.tasks += callee.tasks
        self.extent = Extent(
            lines=mine.lines + its.lines,
            longest=max(mine.longest, its.longest),
            loops=mine.loops + its.loops,
            deepest=max(mine.deepest, its.deepest),
            nested=max(mine.nested, its.nested),
            pieces=mine.pieces + its.pieces,
        )

    def write(self, body: SeqStmt) -> None:
        """The statements of a function, and its end."""
        run(self.block(body))
        self._finish()

    def _finish(self) -> None:
        self.faults.finish()
        lines, extent = len(self.out.lines), self.extent
        self.extent = extent._replace(lines=extent.lines + lines, longest=max(extent.longest, lines))

    def block(self, body: SeqStmt) -> Steps[None]:
        held = self.faults.cleanup
        self._nesting += 1
        if self._nesting > self.extent.nested:
            self.extent = self.extent._replace(nested=self._nesting)
        if self.weights.of(body) > LARGEST:
            for part in cut(body, self.weights, self.storage):
                yield self._each(part.declarations)
                yield self._piece(part.stmts) if part.is_piece else self._each(part.stmts)
        else:
            yield self._each(body.stmts)
        self._nesting -= 1
        self.faults.release_to(held)

    def _each(self, stmts: tuple[Stmt, ...]) -> Steps[None]:
        for stmt in stmts:
            self.at = stmt.span
            steps = RULES[type(stmt)](self, stmt)
            if steps is not None:
                yield steps

    def _piece(self, stmts: tuple[Stmt, ...]) -> Steps[None]:
        """A function of its own for `stmts`, and its call."""
        around = (self.out, self.faults, self.slots)
        known = len(self.environment.names)
        out = FunctionText(self.out.module)
        self._write_to(out, Faults(out, self.storage.line, self.messages, self.told), {})
        yield self._each(stmts)
        self._finish()
        can_stop = self.faults.can_stop
        self._write_to(*around)
        self.extent = self.extent._replace(pieces=self.extent.pieces + 1)
        name = f"{self.name}_piece{self.extent.pieces}"
        inputs = self._inputs(out, known)
        out.define(f"internal i64 @{name}({_parameters(inputs)}) noinline")
        operands = ", ".join(f"{value.kind} {operand}" for operand, value in inputs.items())
        code = self.out.value(f"call i64 @{name}({operands})")
        if can_stop:
            self.faults.check(code)

    def _inputs(self, out: FunctionText, known: int) -> dict[str, Named]:
        """The values that a function mentions out of the first `known` that have been named."""
        names = self.environment.names
        return {each: names[each] for each in out.mentioned() if each in names and names[each].number < known}

    def _write_to(self, out: FunctionText, faults: Faults, slots: dict[Buffer, str]) -> None:
        self.out = self.values.out = out
        self.faults, self.slots = faults, slots

    def kernel_call(self, stmt: KernelCall) -> None:
        self.calls.write(stmt, self.values, self.faults)

    def store(self, stmt: Store) -> None:
        values, place = self.values, self.environment.places[stmt.buffer]
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
        memory.store(self.out, place, pointer, stmt.value.dtype, value, self.environment.notes.get(stmt.buffer, ""))

    def evaluate(self, stmt: Evaluate) -> None:
        self.values.value(stmt.value)

    def let(self, stmt: Let) -> None:
        self.environment.bind(stmt.var, self.values.value(stmt.value))

    def allocate(self, stmt: Allocate) -> None:
        buffer = stmt.buffer
        home = self.storage.homes[buffer]
        extents, overflows = self.extents(buffer, checked=home is Home.HEAP)
        align = self.storage.line
        if home is Home.HEAP:
            pointer = self.faults.allocate(buffer, extents, overflows, self.at)
        elif home is Home.WORKSPACE:
            pointer = self.addresses[buffer]
        elif buffer in self.slots:
            pointer = self.slots[buffer]
        else:
            pointer = self.slots[buffer] = self.out.alloca(self.storage.sizes[buffer], align)
        self.place(buffer, pointer, extents, align, pointer)

    def extents(self, buffer: Buffer, *, checked: bool) -> tuple[list[str], list[str]]:
        """The extents of a buffer, and if they are checked, the flags of what wraps around on the way to them."""
        before = self.values.checked
        self.values.checked = checked
        self.values.overflows.clear()
        found = [self.values.value(extent) for extent in buffer.shape]
        self.values.checked = before
        return found, list(self.values.overflows)

    def place(self, buffer: Buffer, pointer: str, extents: list[str], align: int, root: str) -> None:
        """Says where a buffer lies from here on: at `pointer`, in the allocation at `root`."""
        strides = ["1"]
        for extent in reversed(extents[1:]):
            strides.append(extent if strides[-1] == "1" else self._product(extent, strides[-1]))
        rows = tuple(reversed(strides[: len(extents)]))
        self.environment.put(Place(buffer, pointer, rows, align, tuple(extents)), root)

    def _product(self, a: str, b: str) -> str:
        if a.isdecimal() and b.isdecimal():
            return str(int(a) * int(b))
        return self.out.value(f"mul i64 {a}, {b}")

    def view(self, stmt: View) -> None:
        source = self.environment.places[stmt.source]
        offset = self.values.value(stmt.byte_offset)
        pointer = source.pointer
        if offset != "0":
            pointer = self.out.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}")
        extents = [self.values.value(extent) for extent in stmt.buffer.shape]
        from tirlite.codegen.multiples import largest_divisor

        align = gcd(source.align, self.aliases.alignment(stmt) or largest_divisor(stmt.byte_offset))
        self.place(stmt.buffer, pointer, extents, align, self.environment.root(stmt.source))

    def assertion(self, stmt: Assert) -> None:
        held, failed = self.out.label("held"), self.out.label("failed")
        condition = self.values.value(stmt.condition)
        from tirlite.ir import shown

        told = shown(stmt)
        if not told.values:
            self.out.branch_if(condition, held, self.faults.assertion(stmt))
        else:
            self.out.branch_if(condition, held, failed)
            self.out.start(failed)
            from tirlite.codegen.told import AssertTold

            values = [as_bits(self.out, self.values.value(each), each.dtype) for each in told.values]
            self.faults.tell(AssertTold(stmt), values)
        self.out.start(held)

    def attribute(self, stmt: AttrStmt) -> Steps[None]:
        return self.block(stmt.body)

    def condition(self, condition: Expr, _use: str) -> str:
        """The value of a condition; checked code calls it by its use, where it cannot be used."""
        return self.values.value(condition)

    def bounds(self, stmt: For) -> tuple[str, str]:
        return self.values.value(stmt.start), self.values.value(stmt.stop)

    def conditional(self, stmt: IfThenElse) -> Steps[None]:
        out = self.out
        condition = self.condition(stmt.condition, "the condition of an `if`")
        then, done = out.label("then"), out.label("done")
        otherwise = out.label("else") if stmt.else_body.stmts else done
        out.branch_if(condition, then, otherwise)
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

    def nest(self, stmt: For | While) -> Steps[None]:
        """A loop. What is known of aliases is noted for a whole nest of loops."""
        is_outermost = self._depth == 0
        if is_outermost:
            self.environment.notes = self.aliases.notes(stmt)
        yield self.loop(stmt) if isinstance(stmt, For) else self.while_loop(stmt)
        if is_outermost:
            self.environment.notes = {}

    def body(self, body: SeqStmt) -> Steps[None]:
        """The block of a loop."""
        self._depth += 1
        if self._depth > self.extent.deepest:
            self.extent = self.extent._replace(deepest=self._depth)
        yield self.block(body)
        self._depth -= 1

    def while_loop(self, stmt: While) -> Steps[None]:
        out = self.out
        test, body, done = out.label("test"), out.label("while"), out.label("done")
        out.branch(test)
        out.start(test)
        out.branch_if(self.condition(stmt.condition, "the condition of a `while`"), body, done)
        out.start(body)
        yield self.body(stmt.body)
        out.branch(test)
        out.start(done)

    def loop(self, stmt: For) -> Steps[None]:
        start, stop = self.bounds(stmt)
        if stmt in self.storage.workers:
            yield self._distributed(stmt, start, stop)
        elif abs(stmt.step) == 1:
            yield self._counted(stmt, start, stop, "slt" if stmt.step > 0 else "sgt", f"nsw {stmt.step}")
        else:
            yield self._strided(stmt, start, stop)

    def _counted(self, stmt: For, start: str, stop: str, compare: str, step: str, origin: str = "") -> Steps[None]:
        """A loop whose counter goes from `start` to `stop` by one, and so never runs past the ends of i64.

        `step` is the flag and the amount of the counter's sum. With an `origin`, the loop variable is that plus the
        counter times the loop's own step.
        """
        out = self.out
        before, body, latch, done = out.block, out.label("loop"), out.label("latch"), out.label("done")
        out.branch_if(out.value(f"icmp {compare} i64 {start}, {stop}"), body, done)
        out.start(body)
        following = out.name()
        counter = out.phi(i64, (start, before), (following, latch))
        variable = counter
        if origin:
            # From 0 or above, what lies before `stop` is reached without a wrap.
            flags = "nuw nsw " if origin.isdecimal() and stmt.step > 0 else ""
            distance = out.value(f"mul {flags}i64 {counter}, {stmt.step}")
            variable = out.value(f"add {flags}i64 {origin}, {distance}")
        self.environment.bind(stmt.var, variable)
        yield self.body(stmt.body)
        out.branch(latch)
        out.start(latch)
        flag, amount = step.split()
        out.effect(f"{following} = add {flag} i64 {counter}, {amount}")
        note = out.loop_metadata(_UNROLLED) if _can_be_unrolled(stmt) else ""
        out.branch_if(out.value(f"icmp {compare} i64 {following}, {stop}"), body, done, note)
        out.start(done)

    def _strided(self, stmt: For, start: str, stop: str) -> Steps[None]:
        """A loop by another step: its iterations are counted, as the variable itself might wrap behind the last."""
        from tirlite.codegen.parallel import trip_count

        yield self._counted(stmt, "0", trip_count(self.out, start, stop, stmt.step), "ult", "nuw 1", start)

    def _distributed(self, stmt: For, start: str, stop: str) -> Steps[None]:
        """A loop whose iterations go to workers: a function of its own, and the call of the pool that runs it."""
        from tirlite.codegen.parallel import BODY_PARAMETERS, chunk_count, fork_join, trip_count, write_task
        from tirlite.codegen.work import work_of

        workers = self.storage.workers[stmt]
        count = trip_count(self.out, start, stop, stmt.step)
        # Half of the count, which has no sign. An unsigned conversion would cost the module a pass: see `machine`.
        pairs = self.out.value(f"sitofp i64 {self.out.value(f'lshr i64 {count}, 1')} to double")
        work = self.out.value(f"fmul double {pairs}, {work_of(self.values, stmt.body)}")
        chunks = chunk_count(self.out, count, work, workers)
        around = (self.out, self.faults, self.slots)
        self.environment.keep(start, "i64")
        known = len(self.environment.names)
        out = FunctionText(self.out.module)
        self._write_to(out, Faults(out, self.storage.line, self.messages, self.told), {})
        if stmt in self.parts:
            from tirlite.codegen.workspace_layout import worker_addresses

            addresses = worker_addresses(self.values, self.storage, stmt, self.parts[stmt])
            for address in addresses.values():
                self.environment.lead(address, address)
            self.addresses.update(addresses)
        yield self._counted(stmt, "%first", "%end", "ult", "nuw 1", start)
        self._finish()
        can_stop = self.faults.can_stop
        self._write_to(*around)
        self.tasks += 1
        body, task = f"{self.name}_parallel{self.tasks}", f"{self.name}_task{self.tasks}"
        inputs = self._inputs(out, known)
        parameters = ", ".join(each for each in (_parameters(inputs), *BODY_PARAMETERS) if each)
        out.define(f"internal i64 @{body}({parameters}) noinline")
        write_task(out.module, task, body, inputs)
        code = fork_join(self.out, task, inputs, count, workers, chunks)
        if can_stop:
            self.faults.check(code)


def _can_be_unrolled(stmt: For) -> bool:
    """Whether LLVM is told to unroll a loop.

    Only where it will: it complains on the terminal about what it cannot do, and so is not told of vectorized loops.
    """
    if stmt.kind is not ForKind.UNROLLED or not (isinstance(stmt.start, IntImm) and isinstance(stmt.stop, IntImm)):
        return False
    return len(range(stmt.start.value, stmt.stop.value, stmt.step)) <= _MOST_COPIES


def _parameters(inputs: dict[str, Named]) -> str:
    """The parameters of a piece. A pointer is noalias where no other leads into the same allocation."""
    roots = Counter(value.root for value in inputs.values() if value.kind == "ptr")
    return ", ".join(
        f"{value.kind}{' noalias' if value.kind == 'ptr' and roots[value.root] == 1 else value.fact} {name}"
        for name, value in inputs.items()
    )


Rule: TypeAlias = Callable[[Statements, Any], "Steps[None] | None"]

RULES: dict[type[Stmt], Rule] = {
    Store: Statements.store,
    Evaluate: Statements.evaluate,
    Allocate: Statements.allocate,
    View: Statements.view,
    Let: Statements.let,
    Assert: Statements.assertion,
    For: Statements.nest,
    While: Statements.nest,
    IfThenElse: Statements.conditional,
    AttrStmt: Statements.attribute,
    KernelCall: Statements.kernel_call,
}
