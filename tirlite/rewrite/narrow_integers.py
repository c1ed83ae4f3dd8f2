"""NarrowIntegers computes in 16 bits what loops make of small integers in 32 or 64, where no value needs more."""

from __future__ import annotations

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.work import widens_integers
from tirlite.ir import For, PrimFunc, Stmt
from tirlite.ir.walk import composites
from tirlite.record import record
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.pipeline import FactsPass

# Loops that deep inside of others are left alone.
_DEEPEST = 8


@record
class NarrowIntegers(FactsPass):
    """Loops compute in i16 or u16 what needs no more: vectors hold twice as many values.

    `abs(tl.i32(x[i]) - tl.i32(y[i]))` of bytes is less than 256. Sums are as wide as their number of terms asks for,
    where loops around them have constant counts. A loop is taken if all that it computes of data becomes narrow, since
    its widest type decides its lanes. All values stay as they are, since none leaves its type.
    For functions in normal form (see `Normalize`), before loops go by vectors.
    """

    def rewritten(self, facts: Facts) -> PrimFunc:
        made: dict[For, tuple[Stmt, ...]] = {}
        work = [(facts.func.body, 0)]
        while work:
            body, depth = work.pop()
            for stmt in composites(body):
                if isinstance(stmt, For) and not widens_integers(stmt):
                    continue
                if isinstance(stmt, For) and (narrow := _narrowed(stmt)) is not None:
                    made[stmt] = (narrow,)
                elif depth < _DEEPEST:
                    work += [(inside, depth + isinstance(stmt, For)) for inside in stmt.bodies]
        return exchanged(facts.func, made) if made else facts.func


def _narrowed(loop: For) -> For | None:
    from tirlite.rewrite.narrowed import narrowed

    return narrowed(loop)
