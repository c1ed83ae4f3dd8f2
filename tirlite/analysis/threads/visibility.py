"""Tells which threads see what is allocated inside a launch, the outermost of nested thread-bound loops."""

from __future__ import annotations

from enum import Enum

from tirlite.ir import Allocate, For, SeqStmt, Stmt
from tirlite.ir.thread_tag import ThreadRole, thread_role
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
