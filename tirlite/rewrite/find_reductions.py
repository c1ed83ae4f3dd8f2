"""FindReductions makes reductions of serial loops that only combine values, where the result allows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tirlite.ir.expr import Load
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.stmt import AttrKey, AttrStmt, For, ForKind, IfThenElse, Permission, SeqStmt, Store
from tirlite.ir.walk import composites, statements, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.forms import Limits
from tirlite.rewrite.pipeline import FactsPass, Rewritten

if TYPE_CHECKING:
    from tirlite.analysis.facts import Facts


@record
class FindReductions(FactsPass):
    """Writes serial loops as if they were over `tl.reduce`, where results stay the same or `reassociate` is granted.

    That is done for loops whose iterations combine values as those of a reduction may, see `CheckReductions`, and which
    hold no other loops than reductions: of `y[i] += a[i, p] * b[p]` the one over `p`, not those around it. Without the
    permission, and with `integers`, it is done where nothing but integers is combined, which come out the same in any
    order, and no other loop is around: workers can share it. With `shared_from`, functions that go over arrays so,
    by loops that hold no others, stay as they are: calls with so many elements or more are for the version `LARGE`.
    For functions in normal form (see `Normalize`), before reductions are split.
    """

    integers: bool = False
    shared_from: int = 0

    def on(self, facts: Facts) -> Rewritten:
        body = facts.func.body
        granted = [stmt for stmt in statements_of(body, AttrStmt) if may_regroup(stmt)]
        chosen = {loop.var for stmt in granted for loop in _reductions(stmt.body, facts)}
        integers = set(_nests_of_integers(body, facts)) if self.integers else set()
        if self.shared_from and integers and not chosen and (size := _size_of_elements(facts.func, integers)):
            return Rewritten(facts.func, facts=facts, limits=Limits(large_from=self.shared_from * size))
        chosen |= {loop.var for loop in integers}
        if not chosen:
            return Rewritten(facts.func, facts=facts)
        from tirlite.ir import rewrite

        def reduced(loop: For) -> For:
            return loop.replaced(kind=ForKind.REDUCE) if loop.var in chosen else loop

        return Rewritten(rewrite(facts.func, {For: reduced}))


def may_regroup(stmt: AttrStmt) -> bool:
    """Whether `reassociate` is granted inside of a statement."""
    return stmt.key is AttrKey.ALLOW and isinstance(stmt.value, tuple) and Permission.REASSOCIATE in stmt.value


def _reductions(body: SeqStmt, facts: Facts) -> set[For]:
    """The serial loops inside that combine values, and hold no other loops than reductions."""
    from tirlite.analysis.regrouping import updates_in

    found: set[For] = set()
    # Loops inside come behind those around them.
    for loop in reversed([*statements_of(body, For)]):
        inside = statements_of(loop.body, For)
        if loop.kind is not ForKind.SERIAL or not all(each in found or each.kind is ForKind.REDUCE for each in inside):
            continue
        updates = updates_in(loop, facts)
        if isinstance(updates, tuple) and updates:
            found.add(loop)
    return found


def _nests_of_integers(body: SeqStmt, facts: Facts) -> Iterator[For]:
    """The loops of nests that combine nothing but integers, each with those inside."""
    stack = [*composites(body)]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, IfThenElse | AttrStmt):
            stack += (each for inside in stmt.bodies for each in composites(inside))
        elif isinstance(stmt, For) and stmt.kind is ForKind.SERIAL and _stores_integers(stmt):
            found = _reductions(SeqStmt((stmt,)), facts)
            if stmt in found:
                yield from found


def _size_of_elements(func: PrimFunc, found: set[For]) -> int:
    """The bytes of the smallest element that these loops load of parameters, one in each iteration.

    So the bytes of all arrays tell how long a call takes. 0 where that is not so, where loops hold others, or others
    are called: that is too much to compile twice.
    """
    arrays, sizes = {*func.params}, list[int]()
    for loop in statements_of(func.body, For):
        nodes = [node for stmt in statements(loop) for node in walk(stmt)]
        if any(isinstance(node, For) for node in nodes if node is not loop):
            return 0
        if loop in found:
            loads = (node for node in nodes if isinstance(node, Load) and node.buffer in arrays)
            moving = [load.dtype.bytes for load in loads if any(loop.var in walk(index) for index in load.indices)]
            if not moving:
                return 0
            sizes += moving
    return 0 if calls_in(func.body) else min(sizes)


def _stores_integers(loop: For) -> bool:
    """Whether what the loop writes is integers, and at least one of them an update."""
    stores = [*statements_of(loop.body, Store)]
    if any(each.buffer.dtype.is_float for each in stores):
        return False
    from tirlite.analysis.reductions import update_of

    return any(map(update_of, stores))
