"""Substitution of variables and buffers."""

from __future__ import annotations

from tirlite import ir
from tirlite.ir import f32, i64, structural_equal, substitute

zero, one = ir.const(0, i64), ir.const(1, i64)
k, m = ir.Var("k"), ir.Var("m")
x, y = ir.Buffer("x", f32, (k,)), ir.Buffer("y", f32, (k,))


def test_a_variable_becomes_an_expression() -> None:
    after = substitute(ir.Add(k, one), {k: ir.Mul(m, m)})
    assert structural_equal(after, ir.Add(ir.Mul(m, m), one))


def test_what_does_not_mention_it_is_the_same_object() -> None:
    root = ir.Add(m, one)
    assert substitute(root, {k: zero}) is root


def test_replacements_are_not_replaced_again() -> None:
    after = substitute(ir.Add(k, m), {k: m, m: k})
    assert (after.a, after.b) == (m, k)


def test_buffers_are_replaced_wherever_they_are_used() -> None:
    window = ir.Buffer("w", f32, (one,))
    block = ir.seq(
        ir.View(window, x, zero),
        ir.Store(x, (zero,), x[1]),
        ir.Evaluate(ir.Call(i64, ir.Op.CALL_EXTERN, (ir.StringImm("f"), ir.BufferRef(x)))),
        ir.AttrStmt(ir.AttrKey.DOUBLE_BUFFER, ir.seq(), x),
    )
    after = substitute(block, {}, {x: y})
    mentioned = {buffer for node in ir.walk(after) for name in node.USES if (buffer := getattr(node, name))}
    assert mentioned == {y}


def test_a_declared_buffer_is_renewed_with_its_shape_and_so_are_its_uses() -> None:
    block = ir.seq(ir.Allocate(x), ir.Store(x, (zero,), x[1]), ir.View(y, x, zero), ir.Store(y, (zero,), x[0]))
    after = substitute(block, {k: ir.const(8, i64)})
    new_x, new_y = after.stmts[0].buffer, after.stmts[2].buffer
    assert [buffer.shape[0].value for buffer in (new_x, new_y)] == [8, 8]
    assert after.stmts[1].buffer is after.stmts[1].value.buffer is after.stmts[2].source is new_x
    assert after.stmts[3].buffer is new_y


def test_extents_that_are_loads_are_of_the_new_buffers() -> None:
    size = ir.Buffer("size", i64, (k,))
    sized = ir.Buffer("sized", f32, (size[0],))
    block = ir.seq(ir.Allocate(size), ir.Allocate(sized), ir.Store(sized, (zero,), ir.const(1, f32)))
    after = substitute(block, {k: one})
    assert after.stmts[1].buffer.shape[0].buffer is after.stmts[0].buffer
    assert after.stmts[2].buffer is after.stmts[1].buffer


def test_a_declared_buffer_of_another_shape_stays() -> None:
    block = ir.seq(ir.Allocate(ir.Buffer("t", f32, (m,))))
    assert substitute(block, {k: zero}) is block
