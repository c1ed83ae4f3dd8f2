"""Makes conditional stores unconditional: where the condition fails, the element that is there is stored back.

`if x[i] < 0: x[i] = 0` becomes `x[i] = 0 if x[i] < 0 else x[i]`, on processors with slow masked stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.facts import Facts
from tirlite.ir.checked import has_check
from tirlite.ir.expr import Call, Expr, Load, Select, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.stmt import For, IfThenElse, Let, SeqStmt, Stmt, Store
from tirlite.ir.walk import walk
from tirlite.rewrite.vectors.lanes import is_at, may_fault

# A branch around more nodes than this pays.
_MOST_NODES = 60


def stored_back(facts: Facts, loops: Sequence[For]) -> PrimFunc:
    """The function with unconditional stores in those of the loops that have independent iterations."""
    made: dict[For, tuple[Stmt, ...]] = {}
    for loop in loops:
        if not has_check(loop) and _is_simple(loop, facts) and facts.is_independent(loop):
            made[loop] = (loop.replaced(body=SeqStmt((*_body(loop),))),)
    if not made:
        return facts.func
    from tirlite.rewrite.normalize import exchanged

    return exchanged(facts.func, made)


def _is_simple(loop: For, facts: Facts) -> bool:
    """Whether conditional statements may run unconditionally: iterations load the elements they store anyway."""
    from tirlite.rewrite.vectors.columns import loads_of

    certain = [load for load, is_certain in loads_of(loop.body) if is_certain]
    for branch in loop.body.stmts:
        if not isinstance(branch, IfThenElse):
            continue
        stmts = branch.then_body.stmts
        is_plain = not branch.else_body.stmts and all(isinstance(stmt, Let | Store) for stmt in stmts)
        if not is_plain or sum(1 for _ in walk(branch.then_body)) > _MOST_NODES:
            return False
        for stmt in stmts:
            if isinstance(stmt, Store):
                is_plain = stmt.value.dtype.lanes == 1 and not stmt.buffer.volatile
                if not is_plain or not any(is_at(load, stmt) for load in certain):
                    return False
            for node in walk(stmt):
                if isinstance(node, Load) and node.indices:
                    is_there = any(is_at(load, node) for load in certain) or facts.bounds.is_inside(node)
                    if node.buffer.volatile or not is_there:
                        return False
                elif isinstance(node, Call | KernelCall) or (isinstance(node, Expr) and may_fault(node)):
                    return False
    return True


def _body(loop: For) -> Iterator[Stmt]:
    for stmt in loop.body.stmts:
        if not isinstance(stmt, IfThenElse):
            yield stmt
            continue
        wanted = Var("wanted", stmt.condition.dtype)
        yield Let(wanted, stmt.condition, span=stmt.span)
        for each in stmt.then_body.stmts:
            if isinstance(each, Store):
                there = Load(each.buffer, each.indices)
                each = each.replaced(value=Select(wanted, each.value, there))
            yield each
