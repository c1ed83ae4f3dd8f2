"""TightenLoops lets a loop run over those iterations alone in which its body does something."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.work import only_branch
from tirlite.ir import For, PrimFunc, statements_of
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass


@record
class TightenLoops(FactsPass):
    """Narrows a loop to a condition around all of its body that the counter meets from some place on, or up to one.

    Of `for j in range(n): if j >= w[i]: ...` it makes `for j in range(max(0, w[i]), n): ...`. So the body has no branch
    and goes by vectors, and the other iterations are not run at all. That is done where the condition compares the
    counter, or it and a sum, with what stays as it is in the loop, and integers of 64 bits cannot wrap around. A
    condition on the counters of loops around goes in front of the loop, so that it may narrow those. Where an innermost
    loop does something else in the other iterations, these follow, or come first, in a loop of their own.

    Loads are moved where they are proved to be in bounds, and load from parameters that the function does not write;
    with `called`, for functions that others call, which may be given one array as two parameters, none are.

    For functions in normal form (see `Normalize`), before reductions are found and accesses checked.
    """

    called: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        if not any(map(only_branch, statements_of(facts.func.body, For))):
            return facts.func
        from tirlite.ir import rewrite
        from tirlite.rewrite.loops.tightened import Tightening
        from tirlite.rewrite.normalize import Normalize
        from tirlite.rewrite.simplify.simplify import Simplify

        found = rewrite(facts.func, {For: Tightening(facts, called=self.called).tightened})
        return facts.func if found is facts.func else Simplify()(Normalize()(found))
