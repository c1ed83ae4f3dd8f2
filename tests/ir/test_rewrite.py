"""Rewriting: what does not change stays the same object, and what does keeps its place in the source."""

from __future__ import annotations

from tirlite import ir
from tirlite.diag import Source, Span
from tirlite.ir import i64, rewrite

SOURCE = Source.of("f.py", "one\ntwo\nthree\n")
zero, one = ir.const(0, i64), ir.const(1, i64)
k, m = ir.Var("k"), ir.Var("m")


def span(line: int) -> Span:
    return Span(SOURCE, line, 0, line, 3)


def evaluate(value: ir.Expr, line: int | None = None) -> ir.Evaluate:
    return ir.Evaluate(value, span=span(line) if line else None)


def test_unchanged_subtrees_are_the_same_objects() -> None:
    kept, changed = evaluate(ir.Add(m, one)), evaluate(ir.Add(k, one))
    before = ir.seq(kept, changed)
    after = rewrite(before, {ir.Var: lambda var: m if var is k else var})
    assert isinstance(after, ir.SeqStmt)
    assert after.stmts[0] is kept
    assert after.stmts[1].value.a is m
    assert after.stmts[1].value.b is one


def test_nothing_to_change_gives_back_the_root() -> None:
    root = ir.seq(evaluate(ir.Add(k, one)))
    assert rewrite(root, {ir.Var: lambda var: var, ir.Evaluate: lambda stmt: stmt}) is root


def test_children_are_rewritten_before_their_parents() -> None:
    def folded(node: ir.Add) -> ir.Expr:
        if isinstance(node.a, ir.IntImm) and isinstance(node.b, ir.IntImm):
            return ir.const(node.a.value + node.b.value, i64)
        return node

    result = rewrite(ir.Add(ir.Add(one, one), ir.Add(one, one)), {ir.Add: folded})
    assert isinstance(result, ir.IntImm)
    assert result.value == 4


def test_a_statement_becomes_several_or_none() -> None:
    block = ir.seq(evaluate(k), evaluate(m), evaluate(one))

    def split(stmt: ir.Evaluate) -> ir.Stmt | tuple[ir.Stmt, ...]:
        if stmt.value is k:
            return (stmt, evaluate(zero))
        return () if stmt.value is m else stmt

    after = rewrite(block, {ir.Evaluate: split})
    assert [stmt.value for stmt in after.stmts] == [k, zero, one]


def test_a_body_stays_a_block() -> None:
    loop = ir.While(k < 1, ir.seq(evaluate(k)))
    emptied = rewrite(loop, {ir.SeqStmt: lambda block: ()})
    assert emptied.body.stmts == ()
    replaced = rewrite(loop, {ir.SeqStmt: lambda block: block.stmts[0]})
    assert replaced.body.stmts == loop.body.stmts


def test_a_root_that_becomes_several_is_a_block() -> None:
    after = rewrite(evaluate(k), {ir.Evaluate: lambda stmt: (stmt, stmt)})
    assert isinstance(after, ir.SeqStmt)
    assert len(after.stmts) == 2


def test_a_changed_parent_keeps_its_span() -> None:
    after = rewrite(evaluate(k, 2), {ir.Var: lambda var: m})
    assert after.span == span(2)


def test_new_statements_inherit_the_span_of_what_they_replace() -> None:
    block = ir.seq(evaluate(k, 1), evaluate(k, 2), evaluate(k, 3))

    def renewed(stmt: ir.Evaluate) -> ir.Stmt | tuple[ir.Stmt, ...]:
        if stmt.span == span(1):
            return evaluate(m)
        if stmt.span == span(2):
            return (evaluate(m), evaluate(m, 1))
        return ir.seq(evaluate(m), evaluate(m))

    after = rewrite(block, {ir.Evaluate: renewed})
    assert [stmt.span for stmt in after.stmts] == [span(1), span(2), span(1), span(3), span(3)]


def test_enter_sees_a_node_as_it_was_and_before_what_is_inside() -> None:
    seen: list[str] = []
    loop = ir.For(ir.Var("i"), zero, one, ir.seq(evaluate(k)))

    def renamed(var: ir.Var) -> ir.Var:
        seen.append(f"leave {var.name}")
        return m

    enter = {ir.For: lambda node: seen.append("enter " + node.body.stmts[0].value.name)}
    rewrite(loop, {ir.Var: renamed}, enter=enter)
    assert seen == ["enter k", "leave k"]


def test_depth_is_no_matter() -> None:
    total: ir.Expr = k
    for _ in range(10_000):
        total = ir.Add(total, one)
    nest: ir.Stmt = evaluate(total)
    for _ in range(2_000):
        nest = ir.For(ir.Var("i"), zero, one, ir.seq(nest))
    after = rewrite(nest, {ir.Var: lambda var: m if var is k else var})
    assert m in ir.walk(after)
    assert k not in ir.walk(after)


def test_a_function_is_rewritten_through_its_body() -> None:
    func = ir.PrimFunc("f", (k,), ir.seq(evaluate(k)), span=span(1))
    after = rewrite(func, {ir.Evaluate: lambda stmt: ()})
    assert isinstance(after, ir.PrimFunc)
    assert (after.name, after.params, after.body.stmts, after.span) == ("f", (k,), (), span(1))
