"""Walking: program order, at any depth."""

from __future__ import annotations

from tirlite import ir
from tirlite.ir import i64
from tirlite.ir.walk import defined_in, mentions, nodes_of

zero, one = ir.const(0, i64), ir.const(1, i64)
k = ir.Var("k")


def test_each_node_comes_before_its_children_in_program_order() -> None:
    first, second = ir.Evaluate(k), ir.Evaluate(zero)
    loop = ir.For(ir.Var("i"), zero, one, ir.seq(first, second))
    assert list(ir.walk(loop)) == [loop, zero, one, loop.body, first, k, second, zero]


def test_what_stands_twice_is_met_twice() -> None:
    assert list(ir.walk(ir.Add(k, k))).count(k) == 2


def test_statements_are_met_without_their_blocks_and_expressions() -> None:
    inner, other, last = (ir.Evaluate(k) for _ in range(3))
    branch = ir.IfThenElse(k < 1, ir.seq(inner), ir.seq(other))
    loop = ir.While(k < 1, ir.seq(branch))
    assert list(ir.statements(ir.seq(loop, last))) == [loop, branch, inner, other, last]


def test_statements_of_some_kinds_are_met_in_program_order_at_any_level() -> None:
    first, inner, other, last = (ir.Evaluate(k) for _ in range(4))
    let = ir.Let(ir.Var("m"), one)
    branch = ir.IfThenElse(k < 1, ir.seq(inner, let), ir.seq(other))
    body = ir.seq(first, ir.For(ir.Var("i"), zero, one, ir.seq(branch)), last)
    assert list(ir.statements_of(body, ir.Evaluate)) == [first, inner, other, last]
    assert list(ir.statements_of(body, ir.Let, ir.IfThenElse)) == [branch, let]
    assert list(ir.statements_of(last, ir.Evaluate)) == [last]


def test_nodes_of_some_kinds_are_met_as_in_a_walk_of_all() -> None:
    x = ir.Buffer("x", i64, (k,))
    load = ir.Load(x, (ir.Add(k, ir.Load(x, (zero,))),))
    loop = ir.For(ir.Var("i"), zero, k, ir.seq(ir.Store(x, (k,), ir.Add(load, one)), ir.Evaluate(load)))
    for kinds in ((ir.Load,), (ir.Store, ir.Load), (ir.Var,), (ir.IntImm, ir.For)):
        expected = [node for node in ir.walk(loop, load) if type(node) in kinds]
        assert list(nodes_of((loop, load), *kinds)) == expected
    assert mentions(loop, k)
    assert mentions((one, loop), {x, one})
    assert not mentions((one, loop), ir.Var("k"))


def test_all_that_a_function_body_defines_is_found() -> None:
    kinds = [*ir.Stmt.__subclasses__(), *ir.Expr.__subclasses__()]
    assert {kind.__name__ for kind in kinds if kind.DEFINES} == {"Allocate", "View", "Let", "For", "LetExpr"}
    i, m, t = (ir.Var(name) for name in "imt")
    x, part = ir.Buffer("x", i64, (one,)), ir.Buffer("part", i64, (one,))
    value = ir.LetExpr(t, one, ir.Add(t, one))
    body = ir.seq(ir.Allocate(x), ir.View(part, x, zero), ir.Let(m, value), ir.Evaluate(m))
    assert defined_in(ir.For(i, zero, one, body)) == {i, m, t, x, part}


def test_depth_is_no_matter() -> None:
    total: ir.Expr = k
    for _ in range(10_000):
        total = ir.Add(total, one)
    nest: ir.Stmt = ir.Evaluate(total)
    for _ in range(2_000):
        nest = ir.For(ir.Var("i"), zero, one, ir.seq(nest))
    assert sum(isinstance(node, ir.Add) for node in ir.walk(nest)) == 10_000
    assert sum(isinstance(stmt, ir.For) for stmt in ir.statements(nest)) == 2_000
