"""Blocks: a SeqStmt never directly holds a SeqStmt."""

from __future__ import annotations

import tirlite as tl
from tirlite import ir

a, b, c, d = (ir.Evaluate(ir.Var(name)) for name in "abcd")


def test_a_block_in_a_block_is_spliced() -> None:
    assert ir.seq(a, ir.seq(b, c), d).stmts == (a, b, c, d)


def test_empty_blocks_vanish() -> None:
    assert ir.seq(ir.seq(), ir.seq(ir.seq())).stmts == ()


def test_blocks_of_blocks_are_flat_at_any_depth() -> None:
    block = ir.seq(a)
    for _ in range(3_000):
        block = ir.seq(block)
    assert block.stmts == (a,)


def test_an_if_without_an_else_has_an_empty_one() -> None:
    branch = ir.IfThenElse(ir.Var("k") < 1, ir.seq(a))
    assert branch.else_body.stmts == ()
    assert len(branch.children()) == 3


def test_children_come_in_the_order_of_execution() -> None:
    loop = ir.For(ir.Var("i"), a.value, b.value, ir.seq(c))
    assert list(loop.children()) == [a.value, b.value, loop.body]


def test_replacing_a_field_keeps_the_others() -> None:
    loop = ir.For(ir.Var("i"), a.value, b.value, ir.seq(c), ir.ForKind.PARALLEL, 2)
    changed = loop.replaced(stop=c.value)
    assert changed.stop is c.value
    assert (changed.var, changed.start, changed.kind, changed.step) == (loop.var, loop.start, loop.kind, 2)


def test_the_text_of_a_node_is_dsl_source() -> None:
    n = tl.dim("n", max=8)
    x = ir.Buffer("x", ir.f32, (n,))
    assert (repr(n), str(n), str(n * 2 + 1), str(x[n - 1])) == ("n", "n", "n * 2 + 1", "x[n - 1]")
    assert str(ir.Store(x, (ir.const(0, ir.i64),), x[n - 1])) == "x[0] = x[n - 1]"


def test_a_node_is_shown_without_what_is_below_it() -> None:
    deep: ir.Expr = ir.Var("k")
    for _ in range(10_000):
        deep = deep + 1
    assert repr(deep) == "Add()"
    assert repr(ir.const(1, ir.i64)) == f"IntImm(dtype={ir.i64!r}, value=1)"
