"""Writes the statements that replace a launch: a nest of loops over the threads for each phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from math import gcd
from typing import TypeAlias

from tirlite.diag import Message
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, BufferRef, Expr, FloorDiv, IntImm, Load, Mul, Var, const
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, Substitution, rewrite
from tirlite.ir.stmt import (
    Allocate,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    Store,
    ThreadRole,
    View,
    thread_role,
)
from tirlite.ir.trampoline import Steps, in_turn, run
from tirlite.ir.walk import is_constant, statements, variables_in, walk
from tirlite.plan import Rank, StorageScope
from tirlite.record import record, replace
from tirlite.rewrite.threads.phases import Around, Item, Phase, Phases, is_plain, items_in_order

# Values of at most this many nodes, those of their variables included, are recomputed instead of kept.
_CHEAP = 24


class ThreadDependentSize(Message):
    """A buffer that threads share, or keep while others run, as past a barrier, differs in size between them.

    Example: `tl.alloc(tl.f32[t + 1])`, used before and after a barrier, where `t` counts threads.
    """

    title = "an extent of `{buffer}` may differ between threads, as it depends on `{cause}`"
    label = "{why}"
    help = "give it the largest size that any thread needs"


Name: TypeAlias = Var | Buffer
Declaration: TypeAlias = Allocate | View | Let


@record(eq=False)
class Declared:
    """Where a name is declared: the phase, the statement, and its number among all declarations."""

    phase: Phase
    stmt: Declaration
    order: int


@record(eq=False)
class Copies:
    """Storage with a copy for each thread of `axes`; if `is_window`, the buffer becomes a view of its part."""

    storage: Buffer
    axes: tuple[For, ...]
    is_window: bool = False


@record(frozen=False, eq=False)
class Names:
    """How names are declared in the phases.

    `needs`: the declarations from other phases that a phase needs, in order.
    `copies`: the storage of buffers and variables that outlive their phase.
    `shared`: the buffers that a phase declares for all threads together.
    `windows`: buffers that need to become windows; with `prefers_windows` all that can do.
    """

    phases: Phases
    prefers_windows: bool = False
    needs: dict[Phase, list[Declared]] = field(default_factory=dict)
    copies: dict[Name, Copies] = field(default_factory=dict)
    shared: dict[Phase, list[Allocate]] = field(default_factory=dict)
    declared: dict[Name, Declared] = field(default_factory=dict)
    windows: set[Buffer] = field(default_factory=set)
    cheap: dict[Var, int] = field(default_factory=dict)

    def settle(self, items: Iterable[Item]) -> None:
        """Decides the declarations of all names. Raises KernelError for a buffer whose size differs between threads."""
        every = list(items_in_order(items))
        for item in every:
            if isinstance(item, Phase):
                self._declare(item)
        for item in every:
            if isinstance(item, Phase):
                self._settle_phase(item)
            elif isinstance(item.stmt, AttrStmt) and item.stmt.buffer in self.declared:
                self._outlives(self.declared[item.stmt.buffer])

    def _declare(self, phase: Phase) -> None:
        """Records what a phase declares, and which buffers need windows."""
        for stmt in phase.stmts:
            if isinstance(stmt, Allocate | View | Let):
                name = stmt.var if isinstance(stmt, Let) else stmt.buffer
                self.declared[name] = Declared(phase, stmt, len(self.declared))
            if isinstance(stmt, Let) and is_plain(stmt.value):
                nodes = list(walk(stmt.value))
                cost = len(nodes) + sum(self.cheap.get(node, 0) for node in nodes if isinstance(node, Var))
                if cost <= _CHEAP:
                    self.cheap[stmt.var] = cost
            for each in statements(stmt):
                if isinstance(each, View):
                    self.windows.add(each.source)
                elif isinstance(each, Allocate) and not self.phases.uniform.is_private(each.buffer):
                    self._share(phase, each)
            self.windows.update(node.buffer for node in walk(stmt) if isinstance(node, BufferRef))

    def _demand_size(self, stmt: Allocate | View, why: str, *, is_copied: bool) -> None:
        """Raises KernelError unless what `stmt` declares has one size for all threads, known before them.

        With `is_copied`, the size is also evaluated in other phases, so it must not be read from memory.
        """
        shape = stmt.buffer.shape
        cause = self.phases.uniform.cause(*shape)
        if cause is None and is_copied and not all(map(is_plain, shape)):
            cause = "memory"
        if cause is not None:
            raise ThreadDependentSize(stmt.buffer.name, cause, why, span=stmt.span).error()

    def _share(self, phase: Phase, stmt: Allocate) -> None:
        """Moves `stmt`, somewhere in `phase`, before the phase, once for all threads."""
        stands_open = stmt in phase.stmts
        why = "all threads share it"
        self._demand_size(stmt, why, is_copied=not stands_open)
        named = list(variables_in(*stmt.buffer.shape))
        inside = next((var.name for var in named if var in self.phases.closed), None)
        if inside is not None:
            raise ThreadDependentSize(stmt.buffer.name, inside, why, span=stmt.span).error()
        self.shared.setdefault(phase, []).append(stmt)

    def _settle_phase(self, phase: Phase) -> None:
        """Finds all that `phase` needs of other phases, directly or indirectly."""
        needed: dict[Name, Declared] = {}
        todo = [name for stmt in phase.stmts for name in mentioned(stmt)]
        while todo:
            name = todo.pop()
            declared = self.declared.get(name)
            if declared is None or declared.phase is phase or name in needed:
                continue
            needed[name] = declared
            self._outlives(declared)
            if name not in self.copies:
                todo += mentioned(declared.stmt)
        self.needs[phase] = sorted(needed.values(), key=lambda declared: declared.order)

    def _outlives(self, declared: Declared) -> None:
        """Gives what is declared storage for all threads, if it needs that to outlive its phase."""
        stmt, axes = declared.stmt, declared.phase.axes
        if isinstance(stmt, Let):
            if stmt.var not in self.cheap and stmt.var not in self.copies:
                storage = Buffer(stmt.var.name, stmt.var.dtype, extents_of(axes))
                self.copies[stmt.var] = Copies(storage, axes)
        elif isinstance(stmt, Allocate) and stmt.buffer not in self.copies:
            buffer = stmt.buffer
            if self.phases.uniform.is_private(buffer):
                is_window = buffer in self.windows or (self.prefers_windows and all(map(is_plain, buffer.shape)))
                self._demand_size(stmt, "each thread has a copy, which is kept while others run", is_copied=is_window)
                own = _aligned(buffer) if is_window else buffer.shape
                storage = replace(buffer, shape=(*extents_of(axes), *own), scope=self._scope(buffer.scope))
                self.copies[buffer] = Copies(storage, axes, is_window)
        elif isinstance(stmt, View):
            self._demand_size(stmt, "it is used again after other threads have run", is_copied=True)

    def _scope(self, scope: str) -> str:
        """The scope of the copies of all threads: memory, for buffers that a thread keeps in registers.

        Virtual threads are a single thread, whose registers hold all copies.
        """
        parsed = StorageScope.parse(scope)
        in_registers = parsed.rank in (Rank.LOCAL, Rank.WARP) and not parsed.is_special
        return "global" if in_registers and self.phases.role is ThreadRole.THREAD else scope


def extents_of(axes: Iterable[For]) -> tuple[Expr, ...]:
    return tuple(axis.stop for axis in axes)


def _aligned(buffer: Buffer) -> tuple[Expr, ...]:
    """The shape of one of several adjacent copies of `buffer` that keeps each of them aligned."""
    unit = buffer.alignment // gcd(buffer.alignment, buffer.dtype.bytes) if buffer.alignment else 1
    if unit == 1:
        return buffer.shape
    length: Expr = const(1, i64)
    for extent in buffer.shape:
        length = times(length, extent)
    if isinstance(length, IntImm):
        return (const(-(-length.value // unit) * unit, i64),)
    steps = FloorDiv(Add(length, const(unit - 1, i64)), const(unit, i64))
    return (Mul(steps, const(unit, i64)),)


def times(a: Expr, b: Expr) -> Expr:
    """The product of two i64 expressions, with constants folded."""
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return const(a.value * b.value, i64)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, IntImm) and one.value in (0, 1):
            return one if one.value == 0 else other
    return Mul(a, b)


def mentioned(stmt: Stmt) -> Iterator[Name]:
    """The variables and buffers that a statement mentions, including in the shapes that it declares."""
    for node in walk(stmt):
        if isinstance(node, Var):
            yield node
        elif isinstance(node, Load | Store | BufferRef | AttrStmt):
            if node.buffer is not None:
                yield node.buffer
        elif isinstance(node, Allocate | View):
            if isinstance(node, View):
                yield node.source
            for extent in node.buffer.shape:
                yield from variables_in(extent)


def divided(launch: For, *, windows: bool = False) -> SeqStmt:
    """The statements that replace `launch`, the outermost of some loops over threads.

    Threads run from barrier to barrier, virtual threads statement by statement. With `windows`, a buffer with a copy
    per thread keeps its name and axes, as a view of the thread's part.

    Raises KernelError for a barrier that not all threads reach alike, and for a size that differs between threads.
    """
    phases = Phases(launch)
    items = phases.divide()
    names = Names(phases, windows)
    names.settle(items)
    return run(Emission(names).block(items))


class Emission:
    """Writes the phases, one nest of loops over the threads for each."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.taken: set[Var] = set()

    def block(self, items: tuple[Item, ...]) -> Steps[SeqStmt]:
        """The statements of some items, in order."""
        stmts: list[Stmt] = []
        for item in items:
            if isinstance(item, Phase):
                stmts += self._storage(item)
                stmts += self._nest(item)
            elif not item.bodies:
                stmts.append(item.stmt)
            else:
                stmts.append(self._around(item, (yield in_turn(map(self.block, item.bodies)))))
        return SeqStmt(tuple(stmts))

    def _around(self, item: Around, bodies: list[SeqStmt]) -> Stmt:
        spans = [body.span for body in item.stmt.bodies]
        bodies = [body.replaced(span=span) for body, span in zip(bodies, spans, strict=True)]
        if isinstance(item.stmt, IfThenElse):
            return item.stmt.replaced(then_body=bodies[0], else_body=bodies[1])
        if isinstance(item.stmt, AttrStmt) and item.stmt.buffer in self.names.copies:
            return item.stmt.replaced(buffer=self.names.copies[item.stmt.buffer].storage, body=bodies[0])
        return item.stmt.replaced(body=bodies[0])

    def _storage(self, phase: Phase) -> list[Stmt]:
        """The declarations of shared buffers, and of those of `phase` that outlive it."""
        found: list[Stmt] = list(self.names.shared.get(phase, ()))
        for stmt in phase.stmts:
            name = stmt.var if isinstance(stmt, Let) else stmt.buffer if isinstance(stmt, Allocate) else None
            if name in self.names.copies:
                found.append(Allocate(self.names.copies[name].storage, span=stmt.span))
        return found

    def _nest(self, phase: Phase) -> list[Stmt]:
        """The loops over the threads, around what each thread does in the phase."""
        axes = {axis.var: self._fresh(axis.var) for axis in phase.axes}
        rules = _PhaseRules(self.names, axes, self.names.shared.get(phase, []))
        front = [stmt for declared in self.names.needs[phase] for stmt in rules.anew(declared)]
        body = rewrite(SeqStmt(phase.stmts), rules.rules())
        if not body.stmts:
            return []
        stmts: tuple[Stmt, ...] = (*front, *body.stmts)
        for axis in reversed(phase.axes):
            loop = axis.replaced(var=axes[axis.var], kind=ForKind.SERIAL, thread_tag="", body=SeqStmt(stmts))
            stmts = (loop,)
        return list(stmts)

    def _fresh(self, var: Var) -> Var:
        """`var` for the first phase whose threads it counts, else a new variable like it."""
        if var in self.taken:
            return Var(var.name, var.dtype, var.dim)
        self.taken.add(var)
        return var


class _PhaseRules(Substitution):
    """Substitutes the names and storage that a phase uses."""

    def __init__(self, names: Names, axes: dict[Var, Var], shared: list[Allocate]) -> None:
        super().__init__({old: new for old, new in axes.items() if old is not new}, {})
        self.copies = names.copies
        self.axes = axes
        self.shared = {each.buffer for each in shared}
        self.role = names.phases.role

    def rules(self) -> dict[type[Node], Rule]:
        return super().rules() | {Let: self.let, For: self.loop}

    def anew(self, declared: Declared) -> list[Stmt]:
        """The statements that declare a name of another phase in this one."""
        stmt = declared.stmt
        if isinstance(stmt, Let):
            var = Var(stmt.var.name, stmt.var.dtype, stmt.var.dim)
            kept = self.copies.get(stmt.var)
            value = Load(kept.storage, self.indices(kept)) if kept is not None else rewrite(stmt.value, self.rules())
            self.variables[stmt.var] = var
            return [Let(var, value, span=stmt.span)]
        if isinstance(stmt, View):
            self.buffers[stmt.buffer] = replace(self.declare(stmt.buffer))
            return [rewrite(stmt, self.rules())]
        copies = self.copies.get(stmt.buffer)
        return [self.window(stmt, copies)] if copies is not None and copies.is_window else []

    def indices(self, copies: Copies) -> tuple[Expr, ...]:
        """The indices of the thread's copy."""
        return tuple(self.axes[axis.var] for axis in copies.axes)

    def window(self, stmt: Allocate, copies: Copies) -> Stmt:
        """The thread's part of the storage, as the buffer that `stmt` declares."""
        axes = len(copies.axes)
        number: Expr = const(0, i64)
        for index, extent in zip(self.indices(copies), copies.storage.shape[:axes], strict=True):
            number = plus(times(number, extent), index)
        size = const(copies.storage.dtype.bytes, i64)
        for extent in copies.storage.shape[axes:]:
            size = times(extent, size)
        buffer = replace(self.declare(stmt.buffer), scope=copies.storage.scope)
        self.buffers[stmt.buffer] = buffer
        return View(buffer, copies.storage, times(number, size), span=stmt.span)

    def use(self, node: Load | Store | BufferRef | AttrStmt) -> Node:
        copies = None if node.buffer is None else self.copies.get(node.buffer)
        if copies is None or copies.is_window:
            return super().use(node)
        if isinstance(node, Load | Store):
            return node.replaced(buffer=copies.storage, indices=(*self.indices(copies), *node.indices))
        return node.replaced(buffer=copies.storage)

    def allocate(self, node: Allocate) -> Stmt | tuple[Stmt, ...]:  # type: ignore[override]
        if node.buffer in self.shared:
            return ()
        copies = self.copies.get(node.buffer)
        if copies is None:
            return super().allocate(node)
        return self.window(node, copies) if copies.is_window else ()

    def view(self, node: View) -> Stmt:
        source = self.buffers.get(node.source, node.source)
        buffer = self.declare(node.buffer)
        if buffer.scope != source.scope:
            self.buffers[node.buffer] = replace(buffer, scope=source.scope)
        return super().view(node)

    def let(self, node: Let) -> Stmt | tuple[Stmt, ...]:
        kept = self.copies.get(node.var)
        return node if kept is None else (node, Store(kept.storage, self.indices(kept), node.var))

    def loop(self, node: For) -> Stmt:
        return node.replaced(kind=ForKind.SERIAL, thread_tag="") if thread_role(node) is self.role else node


def plus(a: Expr, b: Expr) -> Expr:
    return b if is_constant(a, 0) else Add(a, b)
