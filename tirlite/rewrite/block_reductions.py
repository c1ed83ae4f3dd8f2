"""BlockReductions cuts long reductions into blocks of iterations, each with results of its own, that workers share."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import AttrStmt, For, ForKind, IfThenElse, PrimFunc, SeqStmt, Stmt, While
from tirlite.ir.checked import has_check
from tirlite.record import record
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.pipeline import FactsPass

_COMPOSITES: frozenset[type[Stmt]] = frozenset((For, While, IfThenElse, AttrStmt))


@record
class BlockReductions(FactsPass):
    """Writes `tl.reduce` loops as a parallel loop over blocks, and a loop over what these give.

    That is done for loops of many iterations that no parallel loop is around, with updates of elements that stay the
    same throughout, or of elements of a small array (a histogram), of which each block has a copy. How the iterations
    are cut depends on their number alone, and so does the last bit of a sum. Of a loop with nothing but an update by
    `tl.argmax` or `tl.argmin` with the iteration as its place, blocks find the value alone; where it stands is looked
    up in the block that has it. With `serial`, blocks follow one another in the calling thread.
    For functions in normal form (see `Normalize`) that `CheckReductions` lets pass; the result is in it too.
    """

    serial: bool = False
    name: str = "block-reductions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        candidates = _outermost(facts.func.body)
        if not candidates:
            return facts.func
        from tirlite.rewrite.blocks import in_blocks

        kind = ForKind.SERIAL if self.serial else ForKind.PARALLEL
        made = {loop: stmts for loop in candidates if (stmts := in_blocks(loop, kind, facts))}
        if not made:
            return facts.func
        return exchanged(facts.func, made)


def _outermost(body: SeqStmt) -> list[For]:
    """The reductions that no parallel loop and no other reduction is around."""
    found: list[For] = []
    stack: list[Stmt] = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, SeqStmt):
            if not _COMPOSITES.isdisjoint(stmt.kinds):
                stack += [each for each in stmt.stmts[::-1] if type(each) in _COMPOSITES]
        elif isinstance(stmt, For) and stmt.kind is ForKind.REDUCE:
            found += () if has_check(stmt) else (stmt,)
        elif not isinstance(stmt, For) or stmt.kind is ForKind.SERIAL:
            stack += stmt.bodies[::-1]
    return found
