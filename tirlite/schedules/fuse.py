"""Fuse makes one loop of two, one inside of the other, so that workers share the iterations of both."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Expr, FloorDiv, FloorMod, IntImm, Mul, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import For, ForKind, Let, SeqStmt
from tirlite.ir.walk import statements_of
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.loop_facts import is_block_of, is_steady, mentions
from tirlite.schedules.step import Step, demand_plain, does_not_fit, with_loop

# No loop of such steps comes to an end where a number of iterations and one of them together wrap around.
_SHORT = 1 << 16


@record
class Fuse(Step):
    """`i.j`, with an iteration for each one of `j` in each one of `i`, in their order.

    `j` is all there is in `i`, its bounds do not depend on `i`, both ascend, and both are parallel or neither is. Their
    variables keep their values, as lets. It never changes results.
    """

    outer: LoopName
    inner: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        inner_chain = chain_to(facts.func, self.inner)
        outer, inner = chain_to(facts.func, self.outer)[-1], inner_chain[-1]
        if len(inner_chain) < 2 or inner_chain[-2] is not outer or outer.body.stmts != (inner,):
            raise does_not_fit(self, f"`{inner.var.name}` is not all there is in `{outer.var.name}`")
        if outer.kind is not inner.kind or outer.kind not in (ForKind.SERIAL, ForKind.PARALLEL):
            raise does_not_fit(self, "both loops are a `range`, or both are parallel")
        bounds = (outer.start, outer.stop, inner.start, inner.stop)
        if not all(map(is_steady, bounds)) or any(mentions(bound, (outer.var,)) for bound in bounds):
            raise does_not_fit(self, f"the bounds of the loop over `{inner.var.name}` are decided inside")
        for loop in (outer, inner):
            demand_plain(self, loop, by_blocks=True)
        rounds, turns = _rounds(facts, outer), _rounds(facts, inner)
        number = Var(f"{outer.var.name}.{inner.var.name}")
        is_once = isinstance(turns, IntImm) and turns.value == 1
        places = (number, const(0, i64)) if is_once else (FloorDiv(number, turns), FloorMod(number, turns))
        lets = [
            Let(each.var, _value(each, at), span=each.span) for each, at in zip((outer, inner), places, strict=True)
        ]
        body = SeqStmt((*lets, *inner.body.stmts))
        stop = folded(Mul(rounds, turns))
        return with_loop(facts, outer, (For(number, const(0, i64), stop, body, outer.kind, span=outer.span),))


def _rounds(facts: Facts, loop: For) -> Expr:
    """How often a loop runs."""
    if any(is_block_of(loop, each) and loop.step >= each.step for each in statements_of(facts.func.body, For)):
        return const(1, i64)
    count = loop.count
    if loop.step == 1:
        return count
    if isinstance(count, IntImm):
        return const(-(-count.value // loop.step), i64)
    whole = const(loop.step, i64)
    if loop.step <= _SHORT:
        return FloorDiv(Add(count, const(loop.step - 1, i64)), whole)
    rest = FloorDiv(Add(FloorMod(count, whole), const(loop.step - 1, i64)), whole)
    return Add(FloorDiv(count, whole), rest)


def _value(loop: For, number: Expr) -> Expr:
    """The variable of a loop in an iteration."""
    return folded(Add(loop.start, folded(Mul(number, const(loop.step, i64)))))
