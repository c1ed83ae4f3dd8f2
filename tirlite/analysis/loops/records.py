"""Recognizes loops that keep a record: the best value so far, or its place."""

from __future__ import annotations

from tirlite.ir.expr import GE, GT, LE, LT, Expr, Load
from tirlite.ir.stmt import For, IfThenElse, Let, Store
from tirlite.ir.walk import loads_in, walk


def keeps_a_record(loop: For) -> bool:
    """Whether an iteration only replaces the best so far if a comparison says so, which is rare.

    As in `if x[i] > top: top = x[i]`, or `if x[i] > x[best]: best = i`.
    """
    branches = [stmt for stmt in loop.body.stmts if not isinstance(stmt, Let)]
    return bool(branches) and all(isinstance(each, IfThenElse) and _is_record(each) for each in branches)


def _is_record(branch: IfThenElse) -> bool:
    stored = {
        each.buffer: each.value for each in branch.then_body.stmts if isinstance(each, Store) and not each.indices
    }
    if branch.else_body.stmts or not any(load.buffer in stored for load in loads_in(branch.condition)):
        return False
    from tirlite.ir.equal import are_equal
    from tirlite.ir.rewrite import rewrite

    def anew(load: Load) -> Expr:
        return load if load.indices else stored.get(load.buffer, load)

    compared = [node for node in walk(branch.condition) if isinstance(node, LT | LE | GT | GE)]
    sides = [pair for each in compared for pair in ((each.a, each.b), (each.b, each.a))]
    return any(
        (best := rewrite(kept, {Load: anew})) is not kept and are_equal((best,), (other,)) for kept, other in sides
    )
