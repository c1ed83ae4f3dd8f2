"""Finds the parallel loops of a function whose iterations go to several workers, for a number of workers."""

from __future__ import annotations

from tirlite.ir import Allocate, AttrStmt, For, ForKind, IfThenElse, IntImm, PrimFunc, SeqStmt, Stmt, Store, While

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
        elif isinstance(stmt, IfThenElse):
            stack += (stmt.else_body, stmt.then_body)
        elif isinstance(stmt, For) and (most := _most_workers(stmt, workers)) > 1:
            found[stmt] = most
        elif isinstance(stmt, For | While | AttrStmt):
            stack.append(stmt.body)
    return found


def _most_workers(loop: For, workers: int) -> int:
    if loop.kind is not ForKind.PARALLEL:
        return 1
    if isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm):
        return min(workers, len(range(loop.start.value, loop.stop.value, loop.step)))
    return workers
