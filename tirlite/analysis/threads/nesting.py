"""Refuses a thread-bound loop that stands where none can."""

from __future__ import annotations

from tirlite.diag import KernelError, Message
from tirlite.ir import For, PrimFunc, SeqStmt, Stmt
from tirlite.ir.thread_tag import ThreadRole, thread_role


class ThreadNesting(Message):
    """A thread-bound loop stands inside another one that it cannot stand in.

    Example: `for b in tl.thread("blockIdx.x", n):` inside `for t in tl.thread("threadIdx.x", 32):`.
    Fix: Put loops over blocks outside those over threads, and give each axis one loop.
    """

    code = "thread-nesting"
    raises = KernelError
    title = "a loop over `{tag}` stands inside a loop over `{outer}`"
    label = "this loop"
    related_label = "is inside this one"
    help = "loops over blocks stand outside those over threads, and each axis has one loop"

    tag: str
    outer: str


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
