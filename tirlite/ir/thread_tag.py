"""Tells what the tag of a thread-bound loop makes of its iterations: blocks, threads of a block, or virtual threads."""

from __future__ import annotations

from enum import Enum

from tirlite.ir.expr import Call
from tirlite.ir.op import Op
from tirlite.ir.stmt import Evaluate, For, ForKind, Stmt


class ThreadRole(Enum):
    """What the iterations of a thread-bound loop are.

    Blocks know nothing of one another. The threads of a block share its memory and meet at barriers. Virtual threads
    are threads of the block that one thread runs in turn, statement by statement.
    """

    BLOCK = "block"
    THREAD = "thread"
    VIRTUAL = "virtual thread"


def thread_role(stmt: Stmt) -> ThreadRole | None:
    """The role of a thread-bound loop by its tag (`blockIdx.x`, `vthread`, anything else); None for another statement.

    Tags are those of TVM.
    """
    if not isinstance(stmt, For) or stmt.kind is not ForKind.THREAD:
        return None
    name = stmt.thread_tag.partition(".")[0]
    if name == "blockIdx":
        return ThreadRole.BLOCK
    return ThreadRole.VIRTUAL if name in ("vthread", "cthread", "virtual_thread") else ThreadRole.THREAD


def is_barrier(stmt: Stmt) -> bool:
    """Whether the threads of a block wait for one another here."""
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op is Op.BARRIER
