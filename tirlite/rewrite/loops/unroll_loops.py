"""Unrolls the loops of a function that are marked for it, iteration by iteration."""

from __future__ import annotations

from tirlite.ir import For, ForKind, PrimFunc, Stmt, const, i64, rewrite, statements, substitute
from tirlite.ir.demand import pass_call
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.normalize import Normalize

# The most statements that a loop is unrolled to.
MOST_STATEMENTS = 1024


@record
class UnrollLoops:
    """Unrolls each `tl.unroll` loop with constant bounds and at most `most` iterations.

    Code generation has LLVM unroll these loops anyhow. As a pass it shows each iteration's storage to the planner, and
    makes indices constant. For functions in normal form (see `Normalize`); the result is in it too.
    """

    most: int = 64
    name: str = "unroll-loops"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        from tirlite.rewrite.simplify.simplify import Simplify

        result = func
        while (after := rewrite(result, {For: self._unrolled})) is not result:
            # The bounds of inner loops may have become constant.
            assert isinstance(after, PrimFunc)
            result = after
        # Copies define the same names, which must be made unique before anything is proved.
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
    """The statements of all iterations of a loop with constant bounds, in order."""
    assert loop.values is not None
    copies = (folded(substitute(loop.body, {loop.var: const(value, i64)})) for value in loop.values)
    return tuple(stmt for copy in copies for stmt in copy.stmts)
