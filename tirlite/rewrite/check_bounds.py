"""CheckBounds adds to a function a check of each access that is not proved to lie in its buffer."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.plain_bounds import is_plainly_inside
from tirlite.ir import AttrKey, AttrStmt, PrimFunc, calls_in
from tirlite.record import record
from tirlite.rewrite.pipeline import FactsPass


@record
class CheckBounds(FactsPass):
    """Marks with `tl.checked` what is not proved: indices, and the byte offsets of views, which must lie in their
    sources. Compiled code stops there with the fault that the interpreter would tell.

    What the tests around an access say counts. Nothing is marked under `tl.unchecked`. With `at_entry` no mark is put
    where conditions on dims and scalar parameters decide: an assert at the top says these, and a call that breaks it is
    for a function without `at_entry`; then what the function calls has its checks, too, which it has not otherwise.
    With `at_loops`, an innermost loop whose accesses a condition in front of it decides stands there twice, once
    without marks. `plainly` marks all that takes more than a glance to prove: for a function that is to find the fault
    of a call. For functions in normal form.
    """

    at_entry: bool = False
    at_loops: bool = False
    plainly: bool = False
    name: str = "check-bounds"

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        stmts = func.body.stmts
        if len(stmts) == 1 and isinstance(stmts[0], AttrStmt) and stmts[0].key is AttrKey.UNCHECKED:
            return func.replaced(body=stmts[0].body)
        # What is called is looked at, too.
        if is_plainly_inside(func) and not (self.at_entry and calls_in(func.body)):
            return func
        from tirlite.rewrite.checks import with_checks, with_marks

        if self.plainly:
            return with_marks(facts)
        return with_checks(facts, at_entry=self.at_entry, at_loops=self.at_loops)
