"""Tells which expressions inside a loop over threads have the same value in all threads."""

from __future__ import annotations

from tirlite.ir import Allocate, Buffer, Call, Expr, For, Let, Load, Op, Var, View, statements, walk
from tirlite.ir.thread_tag import ThreadRole, thread_role
from tirlite.plan import Rank, StorageScope


class Uniformity:
    """What differs between the threads of `launch`, the outermost of some loops over threads.

    `private` are the buffers of which each thread has a copy of its own: those allocated inside, but for shared memory,
    views of them, and windows on the memory of all that lie elsewhere in each thread. For virtual threads all that is
    allocated inside is private.
    """

    def __init__(self, launch: For) -> None:
        self.private: set[Buffer] = set()
        self._role = thread_role(launch)
        self._varying: dict[Var, str] = {launch.var: launch.var.name}
        for stmt in statements(launch.body):
            if isinstance(stmt, Allocate | View):
                if self._is_own(stmt):
                    self.private.add(stmt.buffer)
            elif isinstance(stmt, Let):
                self._note(stmt.var, self.cause(stmt.value))
            elif isinstance(stmt, For):
                self._enter(stmt)

    def is_private(self, allocated: Buffer) -> bool:
        """Whether each thread has its own copy of what an Allocate inside declares."""
        is_shared = StorageScope.parse(allocated.scope).rank is Rank.SHARED
        return self._role is ThreadRole.VIRTUAL or not is_shared

    def cause(self, *exprs: Expr) -> str | None:
        """The name of what makes one of these differ between threads; None if all are the same in each.

        What is read from memory that all threads see counts as the same in all: where they all read it, none of them
        may write it before the next barrier.
        """
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, Var) and node in self._varying:
                    return self._varying[node]
                if isinstance(node, Load) and node.buffer in self.private:
                    return node.buffer.name
                if isinstance(node, Call) and node.op is Op.CALL_EXTERN:
                    return "tl.call_extern"
        return None

    def _is_own(self, stmt: Allocate | View) -> bool:
        if isinstance(stmt, Allocate):
            return self.is_private(stmt.buffer)
        return stmt.source in self.private or self.cause(stmt.byte_offset, *stmt.buffer.shape) is not None

    def _note(self, var: Var, cause: str | None) -> None:
        if cause is not None:
            self._varying[var] = cause

    def _enter(self, loop: For) -> None:
        is_thread = thread_role(loop) is (ThreadRole.VIRTUAL if self._role is ThreadRole.VIRTUAL else ThreadRole.THREAD)
        self._note(loop.var, loop.var.name if is_thread else self.cause(loop.start, loop.stop))
