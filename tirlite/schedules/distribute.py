"""Distribute makes two nests of one: first what stands before a loop, for all iterations, then the rest."""

from __future__ import annotations

from itertools import pairwise

from tirlite.analysis.facts import Facts
from tirlite.ir import Allocate, For, Let, PrimFunc, SeqStmt, Stmt, View, statements
from tirlite.record import record
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.order import breaks_order, carried, demand_any_order
from tirlite.schedules.step import Step, demand_plain, does_not_fit, named, with_loop


@record
class Distribute(Step):
    """What stands before `loop`, in the innermost of the loops around it up to `out_of`, in a nest of its own.

    With `behind` it is what stands up to the loop, and that too.

    The first nest has the loops `i.before`; those of the second one keep their names. Refused where what comes to run
    later must run before, and where what stands before the loop declares what it uses.
    """

    loop: LoopName
    out_of: LoopName
    behind: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        chain = chain_to(facts.func, self.loop)
        outermost = chain_to(facts.func, self.out_of)
        loop, nest = chain[-1], [*chain[len(outermost) - 1 : -1]]
        if not nest or chain[: len(outermost)] != outermost:
            raise does_not_fit(self, "the first loop does not stand inside of the other one")
        for outer, inner in pairwise(nest):
            if outer.body.stmts != (inner,):
                raise does_not_fit(self, f"the loop over `{outer.var.name}` has more in it than `{inner.var.name}`")
        stmts = nest[-1].body.stmts
        if loop not in stmts:
            raise does_not_fit(self, f"`{loop.var.name}` stands in a branch")
        cut = stmts.index(loop) + self.behind
        before, after = stmts[:cut], stmts[cut:]
        if not (before and after):
            return facts.func
        for each in nest:
            demand_plain(self, each)
        demand_any_order(self, nest[0])
        if any(isinstance(stmt, Allocate | Let | View) for stmt in before):
            raise does_not_fit(self, "what stands before the loop declares names")
        first = {each for stmt in before for each in statements(stmt)}
        then = {each for stmt in after for each in statements(stmt)}
        for found in (dependence for around in nest for dependence in carried(facts, around)):
            if found.source.stmt in then and found.sink.stmt in first:
                raise breaks_order(self, found)
        return with_loop(facts, nest[0], (*_nest(nest, before, ".before"), *_nest(nest, after, "")))


def _nest(loops: list[For], stmts: tuple[Stmt, ...], suffix: str) -> tuple[Stmt, ...]:
    """The statements inside of these loops, whose variables are new, by other names."""
    body = SeqStmt(stmts)
    for loop in reversed(loops):
        made = loop.replaced(body=body)
        body = SeqStmt((named(made, suffix) if suffix else made,))
    return body.stmts
