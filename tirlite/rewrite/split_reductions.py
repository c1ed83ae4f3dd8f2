"""SplitReductions rewrites reductions into explicit partial results, so that the grouping stands in the IR."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir import For, ForKind, PrimFunc, statements_of
from tirlite.record import record
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.pipeline import FactsPass


@record
class SplitReductions(FactsPass):
    """Writes `tl.reduce` loops as serial ones: those that combine over neighbours in memory by vectors.

    A loop that combines values into elements that stay the same throughout becomes a loop over vectors of partial
    results, which are combined pairwise at its end; the last few iterations are a vector with lanes that are off, or
    follow in order where they have no such form. Of a loop with nothing but an update by `tl.argmax` or `tl.argmin`
    with the iteration as its place, the value is found alone, and then where it stands first. Loops with other
    statements than stores and lets, of other steps than 1, or with what has no vector form go on in order as they are
    written. For functions in normal form (see `Normalize`) that `CheckReductions` lets pass; the result is in it too.
    """

    name: str = "split-reductions"

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        if not any(loop.kind is ForKind.REDUCE for loop in statements_of(func.body, For)):
            return func
        from tirlite.ir import rewrite
        from tirlite.rewrite.partials import split

        result = rewrite(func, {For: lambda loop: split(loop, facts)})
        # The statements stand there once for each length of vectors.
        return Normalize()(result)
