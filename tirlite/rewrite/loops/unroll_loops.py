"""Unrolls the loops of a function that are marked for it, iteration by iteration."""

from __future__ import annotations

from tirlite.ir import For, ForKind, PrimFunc, Stmt, const, i64, rewrite, statements, substitute
from tirlite.ir.demand import pass_call
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.normalize import Normalize

# No loop becomes more statements than this.
MOST_STATEMENTS = 1024


@record
class UnrollLoops:
    """Writes out each `tl.unroll` loop with constant bounds and at most `most` iterations; others stay as they are.

    Code generation tells LLVM to unroll these loops anyhow. As a pass this shows each iteration's storage to the
    planner, and makes indices constant. For functions in normal form (see `Normalize`), which the result is in too.
    """

    most: int = 64
    name: str = "unroll-loops"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        from tirlite.rewrite.simplify.simplify import Simplify

        result = func
        while (after := rewrite(result, {For: self._unrolled})) is not result:
            # Bounds of loops inside may be constant now.
            assert isinstance(after, PrimFunc)
            result = after
        # What is defined in an iteration is defined once in each copy: before these are told apart, nothing is proved.
        return func if result is func else Simplify()(Normalize()(result))

    def _unrolled(self, loop: For) -> Stmt | tuple[Stmt, ...]:
        values = loop.values
        if loop.kind is not ForKind.UNROLLED or values is None:
            return loop
        size = sum(1 for _ in statements(loop.body))
        if len(values) > self.most or len(values) * size > MOST_STATEMENTS:
            return loop
        return unrolled(loop)


def unrolled(loop: For) -> tuple[Stmt, ...]:
    """What the iterations of a loop do, of which constants tell the number, one after the other."""
    assert loop.values is not None
    copies = (folded(substitute(loop.body, {loop.var: const(value, i64)})) for value in loop.values)
    return tuple(stmt for copy in copies for stmt in copy.stmts)
