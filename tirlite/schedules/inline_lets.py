"""InlineLets writes what lets name in the place of the names, for steps that look at indices alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tirlite.analysis.facts import Facts
from tirlite.ir import Expr, Let, PrimFunc, SeqStmt, Stmt, Var, substitute
from tirlite.record import record
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.loop_facts import is_steady
from tirlite.schedules.step import Step, with_loop


@record
class InlineLets(Step):
    """Lets that stand right in the body of a loop, each written in place of its name, but for those that read memory.

    A window's places are often named, as in `u = i + p - 1`; `pack` and `pack_padded` ask which loops an index is of.
    """

    loop: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = chain_to(facts.func, self.loop)[-1]
        made = loop.replaced(body=SeqStmt((*without_lets(loop.body.stmts),)))
        return with_loop(facts, loop, (made,))


def without_lets(stmts: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements of a block with the values of its lets in their uses' place."""
    values: dict[Var, Expr] = {}
    for stmt in stmts:
        own = substitute(stmt, values) if values else stmt
        if isinstance(own, Let) and is_steady(own.value):
            values[own.var] = own.value
        else:
            yield own
