"""Finds the parallel loops of a function whose iterations go to several workers, for a number of workers."""

from __future__ import annotations

from tirlite.ir import Allocate, For, ForKind, PrimFunc, SeqStmt, Stmt, Store

# What most programs are made of, and what is not a loop.
_LEAVES: frozenset[type[Stmt]] = frozenset((Allocate, Store))


def distributed_loops(func: PrimFunc, workers: int) -> dict[For, int]:
    """Each loop that is run by several workers, with how many these are at most; in program order.

    It is the outermost parallel loop of its nest that may have more than one iteration: parallel loops inside it run
    one iteration after the other, in the worker that they are met by.
    """
    found: dict[For, int] = {}
    stack: list[Stmt] = [func.body] if workers > 1 else []
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, SeqStmt):
            stack += [each for each in stmt.stmts[::-1] if type(each) not in _LEAVES]
        elif isinstance(stmt, For) and (most := _most_workers(stmt, workers)) > 1:
            found[stmt] = most
        else:
            stack += stmt.bodies[::-1]
    return found


def _most_workers(loop: For, workers: int) -> int:
    if loop.kind is not ForKind.PARALLEL:
        return 1
    return workers if loop.values is None else min(workers, len(loop.values))
