"""Precompute stores the elementary function that a loop computes, for later loops that compute the same."""

from __future__ import annotations

from collections.abc import Iterator

from tirlite.analysis.facts import Facts
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import And, Buffer, Call, LetExpr, Load, Or, Sub, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, For, ForKind, SeqStmt, Stmt, Store
from tirlite.ir.walk import defined_in, mentions, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.normalize import Normalize
from tirlite.schedules.handle import LoopName, block_of, loop_named
from tirlite.schedules.loop_facts import trips
from tirlite.schedules.order import demand_any_order, demand_steady
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit

_KINDS = (ForKind.SERIAL, ForKind.REDUCE)


@record
class Precompute(ScheduleStep):
    """Moves the first elementary function that each iteration of a loop computes into a loop of its own before it.

    The values are stored in a temporary named after the function, by a loop `exp.j`. Later loops in the same block,
    nested or not, with the same bounds read it where they compute the same. Refused if an operand may be written before
    the last of these, and if some iterations do not compute the function.
    """

    loop: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        demand_plain(self, loop)
        demand_any_order(self, loop)
        if loop.kind not in _KINDS:
            raise does_not_fit(self, f"the loop over `{loop.var.name}` is no `range`")
        value = next(_functions(loop.body), None)
        count = trips(facts, loop)
        if value is None or count is None:
            raise does_not_fit(self, "no iteration computes an elementary function, or how many there are is not known")
        block = block_of(facts.func, loop)
        behind = block.stmts[block.stmts.index(loop) :]
        inside = defined_in(loop.body)
        if mentions(value, inside):
            raise does_not_fit(self, f"`{value.op.name.lower()}` is of what the iteration defines")
        same = [each for stmt in behind for each in _loops(stmt) if _has_bounds(each, loop)]
        users = [each for each in same if any(True for _ in _equals(each, loop, value))]
        last = max(place for place, stmt in enumerate(behind) if any(each in {*_loops(stmt)} for each in users))
        demand_steady(self, facts, value, behind[: last + 1])
        kept = Buffer(value.op.name.lower(), value.dtype, (count,))
        made = [self._using(stmt, loop, value, kept, users) for stmt in behind[: last + 1]]
        var = Var(f"{kept.name}.{loop.var.name}")
        store = Store(kept, (folded(Sub(var, loop.start)),), substitute(value, {loop.var: var}), span=loop.span)
        first = For(var, loop.start, loop.stop, SeqStmt((store,)), span=loop.span)
        place = block.stmts.index(loop)
        whole = SeqStmt((*block.stmts[:place], Allocate(kept, span=loop.span), first, *made, *behind[last + 1 :]))
        result = rewrite(facts.func, {SeqStmt: lambda each: whole if each is block else each})
        return Normalize()(result)

    def _using(self, stmt: Stmt, loop: For, value: Call, kept: Buffer, users: list[For]) -> Stmt:
        """A statement that reads the stored values instead of computing them."""
        places: dict[Node, Load] = {}
        for each in users:
            if each in {*_loops(stmt)}:
                for found in _equals(each, loop, value):
                    places[found] = Load(kept, (folded(Sub(each.var, each.start)),))
        if not places:
            return stmt

        def read(node: Call) -> Node:
            return places.get(node, node)

        made = rewrite(stmt, {Call: read})
        assert isinstance(made, Stmt)
        return made


def _functions(body: SeqStmt) -> Iterator[Call]:
    """The elementary functions that every iteration computes, outermost first."""
    for stmt in body.stmts:
        if not isinstance(stmt, Store):
            continue
        stack: list[Node] = [stmt.value]
        while stack:
            node = stack.pop()
            if isinstance(node, Call) and node.op.takes_fast and node.dtype.lanes == 1:
                yield node
            # These may not evaluate all operands.
            elif not isinstance(node, And | Or | LetExpr) and not (
                isinstance(node, Call) and node.op is Op.IF_THEN_ELSE
            ):
                stack += reversed(node.children())


def _loops(stmt: Stmt) -> Iterator[For]:
    """The loops in a statement, itself included."""
    return (each for each in statements_of(stmt, For))


def _has_bounds(one: For, other: For) -> bool:
    is_alike = structural_equal(one.start, other.start) and structural_equal(one.stop, other.stop)
    return one.step == 1 and bool(is_alike)


def _equals(user: For, loop: For, value: Call) -> Iterator[Call]:
    """The calls in `user` that compute, of its variable, what `value` is of `loop`'s."""
    wanted = substitute(value, {loop.var: user.var})
    for node in walk(user.body):
        if isinstance(node, Call) and node.op is value.op and structural_equal(node, wanted):
            yield node
