"""Finds what a `while` counts along an array, so that the array bounds its iterations as it does those of a `for`."""

from __future__ import annotations

from tirlite.ir import (
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


def counter_along(loop: While) -> Load | None:
    """The scalar that grows in each iteration up to a limit, and by which an array is indexed.

    None where there is none, or there are loops inside.
    """
    stmts = [*statements(loop.body)]
    if any(isinstance(stmt, For | While | KernelCall) for stmt in stmts):
        return None
    written = [stmt.buffer for stmt in stmts if isinstance(stmt, Store)]
    for each in conjuncts(loop.condition):
        if not isinstance(each, LT | LE) or not isinstance(each.a, Load) or each.a.indices or each.a.dtype != i64:
            continue
        counter, is_fixed = each.a, not any(isinstance(node, Load) and node.buffer in written for node in walk(each.b))
        if is_fixed and written.count(counter.buffer) == 1 and _grows(loop, counter):
            return counter
    return None


def _grows(loop: While, counter: Load) -> bool:
    """Whether each iteration adds to a counter, and an array is indexed by it."""
    named: set[Var] = set()
    grows = False
    for stmt in loop.body.stmts:
        if isinstance(stmt, Let) and _is_counter(stmt.value, counter):
            named.add(stmt.var)
        elif isinstance(stmt, Store) and stmt.buffer is counter.buffer and isinstance(stmt.value, Add):
            old, by = stmt.value.a, stmt.value.b
            grows = (old in named or _is_counter(old, counter)) and isinstance(by, IntImm) and by.value > 0
    nodes = (node for part in (loop.condition, *loop.body.stmts) for node in walk(part))
    places = (index for node in nodes if isinstance(node, Load | Store) for index in node.indices)
    return grows and any(_follows(index, counter, named) for index in places)


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
