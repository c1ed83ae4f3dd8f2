"""Finds what a `while` counts along an array, so that the array bounds its iterations as it does those of a `for`."""

from __future__ import annotations

from tirlite.ir import (
    GE,
    GT,
    LE,
    LT,
    Add,
    Expr,
    For,
    IntImm,
    KernelCall,
    Let,
    Load,
    Node,
    Ramp,
    Store,
    Sub,
    Var,
    While,
    conjuncts,
    i64,
    statements,
    walk,
)


def counter_along(loop: While) -> tuple[Load, type[Add | Sub]] | None:
    """The scalar that goes up or down to a limit, by which an array is indexed, and what takes it there.

    None where there is none, or there are loops inside.
    """
    stmts = [*statements(loop.body)]
    if any(isinstance(stmt, For | While | KernelCall) for stmt in stmts):
        return None
    written = [stmt.buffer for stmt in stmts if isinstance(stmt, Store)]
    for each in conjuncts(loop.condition):
        if not isinstance(each, LT | LE | GT | GE):
            continue
        counter, limit = each.a, each.b
        if not isinstance(counter, Load) or counter.indices or counter.dtype != i64:
            continue
        moves = Add if isinstance(each, LT | LE) else Sub
        is_fixed = not any(isinstance(node, Load) and node.buffer in written for node in walk(limit))
        if is_fixed and written.count(counter.buffer) == 1 and _goes(loop, counter, moves):
            return counter, moves
    return None


def _goes(loop: While, counter: Load, moves: type[Add | Sub]) -> bool:
    """Whether each iteration adds to a counter, or subtracts from it, and an array is indexed by it."""
    named: set[Var] = set()
    goes = False
    for stmt in loop.body.stmts:
        if isinstance(stmt, Let) and _is_counter(stmt.value, counter):
            named.add(stmt.var)
        elif isinstance(stmt, Store) and stmt.buffer is counter.buffer and isinstance(stmt.value, moves):
            old, by = stmt.value.a, stmt.value.b
            goes = (old in named or _is_counter(old, counter)) and isinstance(by, IntImm) and by.value > 0
    nodes = (node for part in (loop.condition, *loop.body.stmts) for node in walk(part))
    places = (index for node in nodes if isinstance(node, Load | Store) for index in node.indices)
    return goes and any(_follows(index, counter, named) for index in places)


def _follows(index: Expr, counter: Load, named: set[Var]) -> bool:
    """Whether an index is the counter plus or minus something, or a vector from such a place on."""
    todo = [index]
    while todo:
        each = todo.pop()
        if each in named or _is_counter(each, counter):
            return True
        if isinstance(each, Add):
            todo += (each.a, each.b)
        elif isinstance(each, Sub):
            todo.append(each.a)
        elif isinstance(each, Ramp):
            todo.append(each.base)
    return False


def _is_counter(node: Node, counter: Load) -> bool:
    return isinstance(node, Load) and node.buffer is counter.buffer and not node.indices
