"""The Builder: what each call adds, and where it says that it was called."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import pytest
from every import every

from tirlite import ir
from tirlite.diag import KernelError
from tirlite.ir import bool_, f32, i32, i64, structural_equal, u8

n = ir.Var("n")
zero, one, two = (ir.const(value, i64) for value in (0, 1, 2))


def started() -> tuple[ir.Builder, ir.Buffer, ir.Buffer]:
    b = ir.Builder("f")
    return b, b.param("x", f32[n]), b.param("y", f32[n], out=True)


def test_a_small_function_takes_five_lines() -> None:
    b = ir.Builder("scale")
    x, y = b.param("x", f32[n]), b.param("y", f32[n], out=True)
    with b.for_("i", 0, n) as i:
        b.store(y, i, x[i] * 2)
    func = b.build()

    loop = ir.For(i, zero, n, ir.seq(ir.Store(y, (i,), ir.Mul(x[i], ir.const(2.0, f32)))))
    assert structural_equal(func, ir.PrimFunc("scale", (x, y), ir.seq(loop), (y,)))
    assert func.name == "scale"


def test_parameters() -> None:
    b = ir.Builder("f")
    x = b.param("x", f32[n, 4], scope="shared", alignment=64)
    a = b.param("a", i32)
    out = b.param("out", f32[()], out=True)
    func = b.build()
    assert func.params == (x, a, out)
    assert func.outputs == (out,)
    assert func.dims == (n,)
    assert (x.shape[0], x.scope, x.alignment) == (n, "shared", 64)
    assert (a.name, a.dtype) == ("a", i32)


def only(b: ir.Builder) -> ir.Stmt:
    (stmt,) = b.build().body.stmts
    return stmt


def test_alloc_and_view_define_buffers() -> None:
    b, x, _ = started()
    t = b.alloc("t", f32[n, 2], scope="local", alignment=32, volatile=True)
    window = b.view("w", t, u8[4], byte_offset=8)
    allocate, view = b.build().body.stmts
    assert structural_equal(allocate, ir.Allocate(t))
    assert structural_equal(view, ir.View(window, t, ir.const(8, i64)))
    assert (window.scope, window.volatile) == ("local", True)


def test_let_takes_the_type_of_its_value() -> None:
    b, x, _ = started()
    v = b.let("v", x[0])
    w = b.let("w", 1)
    assert (v.dtype, w.dtype) == (f32, i64)
    assert [stmt.var for stmt in b.build().body.stmts] == [v, w]


@pytest.mark.parametrize("value", [1, 1.0, True, one, ir.const(1.0, f32)])
def test_store_casts_to_the_type_of_the_element(value: ir.ExprLike) -> None:
    b, _, y = started()
    b.store(y, 0, value)
    stored = only(b).value
    assert stored.dtype == f32
    assert isinstance(stored, ir.Cast) == (value is one)


def test_store_spreads_a_scalar_over_a_vector_index() -> None:
    b, _, y = started()
    b.store(y, ir.Ramp(zero, one, 4), 1)
    assert only(b).value.dtype == f32.with_lanes(4)


def test_several_indices_and_none() -> None:
    b = ir.Builder("f")
    y, s = b.param("y", f32[2, 3]), b.param("s", f32[()])
    b.store(y, (1, 2), s[()])
    b.store(s, (), y[0, 1])
    first, second = b.build().body.stmts
    assert [index.value for index in first.indices] == [1, 2]
    assert second.indices == ()


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("for_", ir.ForKind.SERIAL),
        ("parallel", ir.ForKind.PARALLEL),
        ("vectorized", ir.ForKind.VECTORIZED),
        ("unroll", ir.ForKind.UNROLLED),
    ],
)
def test_loops(method: str, kind: ir.ForKind) -> None:
    b, _, y = started()
    with getattr(b, method)("i", 1, n, 2) as i:
        b.store(y, i, 0)
    loop = only(b)
    assert (loop.var, loop.start.value, loop.stop, loop.step, loop.kind) == (i, 1, n, 2, kind)
    assert len(loop.body.stmts) == 1


def test_a_thread_loop() -> None:
    b, _, y = started()
    with b.thread("t", "threadIdx.x", 32) as t:
        b.store(y, t, 0)
    loop = only(b)
    assert (loop.kind, loop.thread_tag, loop.start.value, loop.stop.value) == (ir.ForKind.THREAD, "threadIdx.x", 0, 32)


def test_bounds_and_extents_become_i64() -> None:
    b = ir.Builder("f")
    a = b.param("a", i32)
    b.alloc("t", f32[a])
    with b.for_("i", a, n + a):
        pass
    b.param("x", f32[n])
    allocate, loop = b.build().body.stmts
    assert allocate.buffer.shape[0].dtype == loop.start.dtype == loop.stop.dtype == i64


def test_branches() -> None:
    b, x, y = started()
    with b.if_(x[0] < 0):
        b.store(y, 0, 1)
    with b.else_():
        with b.if_(x[0] > 0):
            b.store(y, 0, 2)
        with b.else_():
            b.store(y, 0, 3)
    branch = only(b)
    assert branch.then_body.stmts[0].value.value == 1
    inner = branch.else_body.stmts[0]
    assert [body.stmts[0].value.value for body in (inner.then_body, inner.else_body)] == [2, 3]


def test_an_else_needs_an_if_just_before() -> None:
    b, _, y = started()
    with b.if_(True):
        pass
    b.store(y, 0, 1)
    with pytest.raises(KernelError) as caught:
        b.else_()
    assert caught.value.code == "else-without-if"


def test_an_if_has_one_else() -> None:
    b, _, y = started()
    with b.if_(True):
        pass
    with b.else_():
        b.store(y, 0, 1)
    with pytest.raises(KernelError) as caught:
        b.else_()
    assert caught.value.code == "else-without-if"


def test_while_attr_assert_and_evaluate() -> None:
    b, x, y = started()
    with b.while_(y[0] < 1):
        b.store(y, 0, y[0] + 1)
    with b.attr(ir.AttrKey.PRAGMA, value="keep"):
        b.evaluate(x[0])
    with b.attr(ir.AttrKey.DOUBLE_BUFFER, x):
        b.assert_(x[0] < 1, "too big")  # noqa: PT009
    loop, pragma, double = b.build().body.stmts
    assert isinstance(loop, ir.While)
    assert (pragma.key, pragma.value, type(pragma.body.stmts[0])) == (ir.AttrKey.PRAGMA, "keep", ir.Evaluate)
    assert (double.buffer, double.body.stmts[0].message) == (x, "too big")
    assert double.body.stmts[0].condition.dtype == bool_


def test_a_statement_carries_the_line_of_its_call() -> None:
    b, _, y = started()
    with b.for_("i", 0, n) as i:
        b.store(y, i, 1)
    loop = only(b)
    assert loop.body.stmts[0].span.line == loop.span.line + 1
    source = loop.span.source
    assert source.line(loop.span.line) == '    with b.for_("i", 0, n) as i:'
    assert source.name.endswith("test_builder.py")
    assert (loop.span.column, loop.span.end_column) == (4, 32)


def test_code_without_source_has_lines_all_the_same() -> None:
    b, _, y = started()
    exec(compile("\n\nb.store(y, 0, 1)", "<nowhere>", "exec"), {"b": b, "y": y})
    assert str(only(b).span) == "<nowhere>:3:1"


def test_build_validates() -> None:
    b, x, y = started()
    b.store(y, (0, 1), 1)
    with pytest.raises(KernelError) as caught:
        b.build()
    assert caught.value.code == "index-count"
    assert "b.store(y, (0, 1), 1)" in str(caught.value)


def test_build_inside_a_block_is_refused() -> None:
    b, _, _ = started()
    with b.if_(True), pytest.raises(KernelError) as caught:
        b.build()
    assert caught.value.code == "open-block"


def test_a_block_that_was_left_by_an_exception_adds_nothing() -> None:
    b, _, y = started()
    with pytest.raises(TypeError, match="Add of"), b.if_(True):
        b.store(y, 0, ir.Var("h", ir.handle) + 1.5)
    assert b.build().body.stmts == ()


@pytest.mark.parametrize("extent", [1.5, "n", True, None, ir.const(1.0, f32)])
def test_an_extent_is_an_integer(extent: object) -> None:
    with pytest.raises(KernelError) as caught:
        ir.Builder("f").param("x", ir.TensorType(f32, (3, extent)))
    assert caught.value.code == "type-extent"
    assert "extent 1 of an array of tl.f32" in str(caught.value)


def test_a_statement_made_by_hand_is_added_as_it_is() -> None:
    b, x, _ = started()
    stmt = ir.Evaluate(x[0])
    b.add(stmt)
    assert only(b) is stmt


def test_depth_is_no_matter() -> None:
    b, _, y = started()
    with ExitStack() as nest:
        for _ in range(2_000):
            nest.enter_context(b.for_("i", 0, 1))
        total: ir.Expr = y[0]
        for _ in range(10_000):
            total = total + 1
        b.store(y, 0, total)
    assert len([stmt for stmt in ir.statements(b.build().body) if isinstance(stmt, ir.For)]) == 2_000


@every(
    "call, told",
    [
        (lambda b, x: b.store("x", 0, 1), "`buffer` of store() takes a Buffer, and is given 'x'"),
        (lambda b, x: b.store(x, "i", 1), "`indices` of store() takes expressions or numbers, and is given 'i'"),
        (lambda b, x: b.store(x, (None,), 1), "`indices` of store() takes expressions or numbers, and is given None"),
        (lambda b, x: b.store(x, 0, "a"), "`value` of store() takes an expression or a number, and is given 'a'"),
        (lambda b, x: b.store(x, 0, x), "`value` of store() takes an expression or a number, and is given Buffer"),
        (lambda b, x: b.alloc("t", 8), "`tensor` of alloc() takes a type such as f32[n], and is given 8"),
        (lambda b, x: b.alloc("t", f32), "`tensor` of alloc() takes a type such as f32[n]"),
        (lambda b, x: b.alloc(8, f32[8]), "`name` of alloc() takes a name, and is given 8"),
        (lambda b, x: b.view("v", "x", f32[8]), "`source` of view() takes a Buffer"),
        (lambda b, x: b.view("v", x, 8), "`tensor` of view() takes a type such as f32[n]"),
        (lambda b, x: b.view("v", x, f32[8], "0"), "`byte_offset` of view() takes an expression or a number"),
        (lambda b, x: b.param("p", "f32"), "`of` of param() takes a type such as f32 or f32[n]"),
        (lambda b, x: b.param(x, f32), "`name` of param() takes a name"),
        (lambda b, x: b.let("v", "w"), "`value` of let() takes an expression or a number"),
        (lambda b, x: b.add(x[0]), "`stmt` of add() takes a statement"),
        (lambda b, x: b.evaluate(x), "`value` of evaluate() takes an expression or a number"),
        (lambda b, x: b.assert_("x"), "`condition` of assert_() takes an expression or a number"),  # noqa: PT009
        (lambda b, x: b.for_("i", 0, "n"), "`stop` of for_() takes an expression or a number"),
        (lambda b, x: b.parallel(x, 0, 4), "`name` of parallel() takes a name"),
        (lambda b, x: b.thread("t", "threadIdx.x", "n"), "`extent` of thread() takes an expression or a number"),
        (lambda b, x: b.while_(None), "`condition` of while_() takes an expression or a number"),
        (lambda b, x: b.if_("x"), "`condition` of if_() takes an expression or a number"),
        (lambda b, x: b.attr("double_buffer", x), "`key` of attr() takes an AttrKey, and is given 'double_buffer'"),
        (lambda b, x: b.attr(ir.AttrKey.DOUBLE_BUFFER, "x"), "`buffer` of attr() takes a Buffer"),
    ],
)
def test_what_is_no_argument_is_told_with_the_line(call: Callable[[ir.Builder, ir.Buffer], object], told: str) -> None:
    b = ir.Builder("f")
    x = b.param("x", f32[8])
    with pytest.raises(KernelError) as caught:
        call(b, x)
    assert caught.value.code == "builder-argument"
    assert told in str(caught.value)
    assert "test_builder.py" in str(caught.value)


def test_numbers_of_numpy_are_numbers() -> None:
    b, x, y = started()
    b.store(y, np.int64(1), np.float32(0.5))
    assert structural_equal(only(b), ir.Store(y, (one,), ir.const(0.5, f32)))
