"""Writes the statements that take the place of a launch: one nest of loops over the threads for each phase."""

from __future__ import annotations

from dataclasses import replace

from tirlite.ir import (
    Add,
    Allocate,
    AttrStmt,
    BufferRef,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Let,
    Load,
    Node,
    Rule,
    SeqStmt,
    Steps,
    Stmt,
    Store,
    Substitution,
    Var,
    View,
    const,
    i64,
    rewrite,
    run,
)
from tirlite.ir.thread_tag import thread_role
from tirlite.rewrite.threads.names import Copies, Declared, Names, times
from tirlite.rewrite.threads.phases import Around, Item, Phase, Phases


def divided(launch: For, *, windows: bool = False) -> SeqStmt:
    """The statements that take the place of `launch`, the outermost of some loops over threads.

    Threads run from barrier to barrier, virtual threads statement by statement. With `windows`, what each thread has
    a copy of keeps its name and axes, as a view of the thread's part.
    Raises KernelError for a barrier that not all threads come to alike, and for what has no size in common.
    """
    phases = Phases(launch)
    items = phases.divide()
    names = Names(phases, windows)
    names.settle(items)
    return run(Emission(names).block(items))


class Emission:
    """Writes the phases down, one nest of loops over the threads for each."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.taken: set[Var] = set()

    def block(self, items: tuple[Item, ...]) -> Steps[SeqStmt]:
        """The items, one after the other."""
        stmts: list[Stmt] = []
        for item in items:
            if isinstance(item, Phase):
                stmts += self._storage(item)
                stmts += self._nest(item)
            elif not item.bodies:
                stmts.append(item.stmt)
            else:
                bodies = []
                for body in item.bodies:
                    bodies.append((yield self.block(body)))
                stmts.append(self._around(item, bodies))
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
        """The declarations of what `phase` declares and others use too."""
        found: list[Stmt] = list(self.names.shared.get(phase, ()))
        for stmt in phase.stmts:
            name = stmt.var if isinstance(stmt, Let) else stmt.buffer if isinstance(stmt, Allocate) else None
            if name in self.names.copies:
                found.append(Allocate(self.names.copies[name].storage, span=stmt.span))
        return found

    def _nest(self, phase: Phase) -> list[Stmt]:
        """The loops over the threads, and in them what each thread does."""
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
        """`var` where it counts the threads of a phase for the first time, else another one like it."""
        if var in self.taken:
            return Var(var.name, var.dtype, var.dim)
        self.taken.add(var)
        return var


class _PhaseRules(Substitution):
    """What is written in a phase, for the names and the storage that it has there."""

    def __init__(self, names: Names, axes: dict[Var, Var], shared: list[Allocate]) -> None:
        super().__init__({old: new for old, new in axes.items() if old is not new}, {})
        self.copies = names.copies
        self.axes = axes
        self.shared = {each.buffer for each in shared}
        self.role = names.phases.role

    def rules(self) -> dict[type[Node], Rule]:
        return super().rules() | {Let: self.let, For: self.loop}

    def anew(self, declared: Declared) -> list[Stmt]:
        """What declares a name of another phase in this one."""
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
        """Which of the copies is that of the thread."""
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
    return b if isinstance(a, IntImm) and a.value == 0 else Add(a, b)
