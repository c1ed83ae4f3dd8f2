"""FindReductions makes reductions of loops under `tl.allow("reassociate")` that only combine values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.ir import AttrKey, AttrStmt, For, ForKind, Permission, PrimFunc, statements_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass

if TYPE_CHECKING:
    from tirlite.analysis.facts import Facts


@record
class FindReductions(FactsPass):
    """Writes serial loops as if they were over `tl.reduce`, where `reassociate` is granted and nothing stands against.

    That is done for loops whose iterations combine values as those of a reduction may, see `CheckReductions`, and which
    hold no other loops than reductions: of `y[i] += a[i, p] * b[p]` the one over `p`, not those around it.
    For functions in normal form (see `Normalize`), before reductions are split.
    """

    name: str = "find-reductions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        granted = [stmt for stmt in statements_of(facts.func.body, AttrStmt) if _is_granted(stmt)]
        chosen = {loop for stmt in granted for loop in _reductions(stmt, facts)}
        if not chosen:
            return facts.func
        from tirlite.ir import rewrite

        def reduced(loop: For) -> For:
            return loop.replaced(kind=ForKind.REDUCE) if loop.var in variables else loop

        variables = {loop.var for loop in chosen}
        return rewrite(facts.func, {For: reduced})


def _is_granted(stmt: AttrStmt) -> bool:
    return stmt.key is AttrKey.ALLOW and isinstance(stmt.value, tuple) and Permission.REASSOCIATE in stmt.value


def _reductions(around: AttrStmt, facts: Facts) -> set[For]:
    """The serial loops inside that combine values, and hold no other loops than reductions."""
    from tirlite.analysis.regrouping import updates_in

    found: set[For] = set()
    # Loops inside come behind those around them.
    for loop in reversed([*statements_of(around.body, For)]):
        inside = statements_of(loop.body, For)
        if loop.kind is not ForKind.SERIAL or not all(each in found or each.kind is ForKind.REDUCE for each in inside):
            continue
        updates = updates_in(loop, facts)
        if isinstance(updates, tuple) and updates:
            found.add(loop)
    return found
