"""Facts about threads of a block: how their loops nest, who sees which storage, what is the same in all of them.

A launch is the outermost of nested thread-bound loops.
"""

from __future__ import annotations

from enum import Enum

from tirlite.diag import Message
from tirlite.ir.expr import Buffer, Call, Expr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, For, Let, SeqStmt, Stmt, ThreadRole, View, thread_role
from tirlite.ir.walk import statements, walk
from tirlite.plan import Rank, StorageScope


class Visibility(Enum):
    """Who sees an allocation: all threads of a block together, or each its own copy.

    Of NESTED ones there is a copy for each thread too, of several axes or beside threads of other axes, or one for each
    block of a grid of several axes, so that the body of the launch is not the place of a copy.
    """

    BLOCK = "block"
    THREAD = "thread"
    NESTED = "nested"


def visibilities(launch: For) -> dict[Allocate, Visibility]:
    """Who sees each allocation inside `launch`."""
    found: dict[Allocate, Visibility] = {}
    loops = grids = 0
    todo: list[tuple[Stmt, bool]] = [(launch, False)]
    while todo:
        stmt, in_threads = todo.pop()
        if isinstance(stmt, Allocate):
            is_shared = StorageScope.parse(stmt.buffer.scope).rank is Rank.SHARED
            found[stmt] = Visibility.THREAD if in_threads and not is_shared else Visibility.BLOCK
        elif isinstance(stmt, For):
            role = thread_role(stmt)
            loops += role is not None
            grids += role is ThreadRole.BLOCK
            in_threads = in_threads or role not in (None, ThreadRole.BLOCK)
        inside = stmt.stmts if isinstance(stmt, SeqStmt) else stmt.bodies
        todo += ((each, in_threads) for each in reversed(inside))
    if loops > 1:
        nested = (Visibility.THREAD, Visibility.BLOCK) if grids > 1 else (Visibility.THREAD,)
        found = {each: Visibility.NESTED if who in nested else who for each, who in found.items()}
    return found


class ThreadNesting(Message):
    """A thread-bound loop stands inside another one that it cannot stand in.

    Example: `for b in tl.thread("blockIdx.x", n):` inside `for t in tl.thread("threadIdx.x", 32):`.
    """

    title = "a loop over `{tag}` stands inside a loop over `{outer}`"
    label = "this loop"
    related_label = "is inside this one"
    help = "loops over blocks are outside of those over threads, and each axis has one loop"


def check_thread_nesting(func: PrimFunc) -> None:
    """Returns if each thread-bound loop stands where it can.

    No loop over blocks may stand inside a loop over threads, and none inside one of its own tag, but for virtual
    threads.
    """
    todo: list[tuple[Stmt, tuple[For, ...]]] = [(func.body, ())]
    while todo:
        stmt, around = todo.pop()
        if isinstance(stmt, For) and (role := thread_role(stmt)) is not None:
            _check(stmt, role, around)
            around = (*around, stmt)
        inside = stmt.stmts if isinstance(stmt, SeqStmt) else stmt.bodies
        todo += ((each, around) for each in reversed(inside))


def _check(loop: For, role: ThreadRole, around: tuple[For, ...]) -> None:
    for outer in around:
        twice = outer.thread_tag == loop.thread_tag and role is not ThreadRole.VIRTUAL
        if twice or (role is ThreadRole.BLOCK and thread_role(outer) is not ThreadRole.BLOCK):
            raise ThreadNesting(loop.thread_tag, outer.thread_tag, span=loop.span, related=outer.span).error()


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
