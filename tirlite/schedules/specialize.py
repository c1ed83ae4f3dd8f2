"""Specialize makes two versions of a nest, of which each call runs one, by its sizes."""

from __future__ import annotations

from functools import partial, reduce
from numbers import Integral

from tirlite.analysis.facts import Facts
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GE, And, Expr, Mul, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import For, IfThenElse, SeqStmt, Stmt
from tirlite.ir.walk import defined_in, mentions, statements_of
from tirlite.record import record
from tirlite.schedules.handle import LoopName, handle_of, loop_named
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit, named, with_loop


@record
class Specialize(ScheduleStep):
    """Makes two versions of a loop: itself if certain loops run often enough, else a copy with loops named `i.else`.

    `least` maps names of loops and dims, or products of them and of numbers (`4 * p * j`), to the least number that is
    enough, or to another such product. Never changes results: both versions are the same loop, for later steps to
    transform differently.
    """

    loop: LoopName
    least: tuple[tuple[str, int | str], ...]

    def __str__(self) -> str:
        return f"s.specialize({handle_of(self.loop)}, {dict(self.least)})"

    def rewritten(self, facts: Facts) -> PrimFunc:
        loop = loop_named(facts.func, self.loop)
        inside = [*statements_of(loop, For)]
        if not all(isinstance(one, str) and isinstance(other, Integral | str) for one, other in self.least):
            raise does_not_fit(self, "`least` takes numbers by names, or by products of these")
        conditions = [GE(*(self._count(str(each), inside, facts) for each in pair)) for pair in self.least]
        if not conditions:
            raise does_not_fit(self, "it takes at least one condition")
        otherwise = rewrite(loop, {For: partial(named, suffix=".else")})
        assert isinstance(otherwise, Stmt)
        condition: Expr = conditions[0]
        for each in conditions[1:]:
            condition = And(condition, each)
        form = IfThenElse(condition, SeqStmt((loop,)), SeqStmt((otherwise,)), span=loop.span)
        return with_loop(facts, loop, (form,))

    def _count(self, product: str, inside: list[For], facts: Facts) -> Expr:
        """The product of loops' iteration counts, of dims and of numbers."""
        counts: list[Expr] = []
        decided = defined_in(inside[0])
        dims = {dim.name: dim for dim in facts.func.dims}
        for name in (each.strip() for each in product.split("*")):
            if name.isdigit():
                counts.append(const(int(name), i64))
                continue
            found = next((each for each in inside if each.var.name == name), None)
            if found is None and name in dims:
                counts.append(dims[name])
                continue
            if found is None:
                raise does_not_fit(self, f"there is no loop `{name}` in `{inside[0].var.name}`, nor a dim")
            demand_plain(self, found)
            if mentions((found.start, found.stop), decided):
                raise does_not_fit(self, f"how often the loop over `{name}` runs is decided inside")
            counts.append(found.count)
        return reduce(Mul, counts)
