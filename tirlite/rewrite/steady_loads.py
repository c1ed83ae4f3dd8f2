"""Loads before a loop what each iteration loads from one place of the array that it writes.

LLVM cannot know that `a[i, p]` stays in `for j in range(p + 1, n): a[i, j] -= a[i, p] * a[p, j]`. It compares places
when the loop runs, for all loops around at once, and finds that some of them meet.
"""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import LT, For, ForKind, IfThenElse, Let, Load, Node, SeqStmt, Stmt, Store, Var, rewrite, walk
from tirlite.ir.checked import has_check
from tirlite.rewrite.columns import loads_of


def with_steady_loads(loop: For, facts: Facts) -> Stmt | None:
    """What stands in the place of an innermost loop; None where it loads nothing so.

    Iterations are independent, so that none writes what others load.
    """
    *lets, store = loop.body.stmts or (None,)
    if loop.kind is not ForKind.SERIAL or loop.step != 1 or not isinstance(store, Store):
        return None
    if not all(isinstance(let, Let) for let in lets):
        return None
    root = facts.definitions.root(store.buffer)
    moving = {loop.var, *(let.var for let in lets if isinstance(let, Let))}

    def is_steady(load: Load) -> bool:
        nodes = [node for index in load.indices for node in walk(index)]
        is_same = not any(node in moving or isinstance(node, Load) for node in nodes)
        is_plain = load.dtype.lanes == 1 and not load.buffer.volatile and not has_check(load)
        return is_same and is_plain and bool(load.indices) and facts.definitions.root(load.buffer) is root

    found = [load for load, is_certain in loads_of(loop.body) if is_certain and is_steady(load)]
    if not found or not facts.is_independent(loop):
        return None
    named = {load: Var(load.buffer.name, load.dtype) for load in found}

    def replaced(load: Load) -> Node:
        return named.get(load, load)

    body = rewrite(loop.body, {Load: replaced})
    assert isinstance(body, SeqStmt)
    made = SeqStmt((*(Let(var, load) for load, var in named.items()), loop.replaced(body=body)))
    return IfThenElse(LT(loop.start, loop.stop), made, SeqStmt(), span=loop.span)
