"""The IR as text: legal unique names, few parentheses, and shallow lines, however deep the tree is."""

from __future__ import annotations

import tirlite as tl
from tirlite import ir
from tirlite.ir import f32, f64, i64

zero, one = ir.IntImm(i64, 0), ir.IntImm(i64, 1)


def test_a_function() -> None:
    n, m = tl.dims("n m")
    k = tl.dim("k", min=0, max=64, multiple_of=8)
    b = ir.Builder("smooth")
    x, y = b.param("x", f32[n, k]), b.param("y", f32[n, m], out=True)
    a = b.param("a", f32)
    rows = b.alloc("rows", f32[n, m], scope="local", alignment=64)
    with b.for_("i", 0, n) as i, b.parallel("j", 1, m - 1) as j:
        b.store(rows, (i, j), x[i, j] * a + 1)
    with b.if_(ir.LT(n, m)):
        b.store(y, (0, 0), rows[0, 0])
    with b.else_():
        b.assert_(n > 3, "n is small")  # noqa: PT009
    assert str(b.build()) == (
        """\
n, m = tl.dims("n m")
k = tl.dim("k", min=0, max=64, multiple_of=8)

@tl.kernel
def smooth(x: tl.f32[n, k], y: tl.out[tl.f32[n, m]], a: tl.f32):
    rows = tl.alloc(tl.f32[n, m], scope="local", alignment=64)
    for i in range(n):
        for j in tl.parallel(1, m - 1):
            rows[i, j] = x[i, j] * a + tl.f32(1.0)
    if n < m:
        y[0, 0] = rows[0, 0]
    else:
        assert n > 3, "n is small\""""
    )


def test_names_are_unique_and_legal_in_order_of_appearance() -> None:
    a, b, c = (ir.Buffer(name, f32, (one,)) for name in ("a", "a", "in"))
    odd = [ir.Var(name, f32) for name in ("tl", "min", "7 x.y", "", "a_1")]
    body = ir.SeqStmt((ir.Store(b, (zero,), a[0]), *(ir.Let(var, c[0]) for var in odd)))
    func = ir.PrimFunc("for", (a, b, c), body)
    assert str(func).splitlines()[1:] == [
        "def for_(a: tl.f32[1], a_1: tl.f32[1], in_: tl.f32[1]):",
        "    a_1[0] = a[0]",
        "    tl_ = in_[0]",
        "    min_ = in_[0]",
        "    _7_x_y = in_[0]",
        "    _ = in_[0]",
        "    a_1_1 = in_[0]",
    ]


def test_loops_share_a_name_and_nests_do_not() -> None:
    def loop(*stmts: ir.Stmt) -> ir.For:
        return ir.For(ir.Var("i"), zero, one, ir.SeqStmt(stmts))

    assert ir.text(ir.seq(loop(loop()), loop(), ir.Let(ir.Var("i"), one))) == (
        "for i in range(1):\n    for i_1 in range(1):\n        pass\nfor i in range(1):\n    pass\ni_2 = tl.i64(1)"
    )


def test_parentheses_stand_only_where_python_needs_them() -> None:
    a, b, c = (ir.Var(name, f32) for name in "abc")
    p, q = (ir.Var(name, ir.bool_) for name in "pq")
    assert ir.text((a + b) * c - (a - b)) == "(a + b) * c - (a - b)"
    assert ir.text(a - b - c) == "a - b - c"
    assert ir.text(a - (b - c)) == "a - (b - c)"
    assert ir.text(-(a * b)) == "-(a * b)"
    assert ir.text(-a * b) == "-a * b"
    assert ir.text(ir.Not(ir.And(p, q))) == "not (p and q)"
    assert ir.text(ir.And(ir.Not(p), ir.Or(p, q))) == "not p and (p or q)"
    assert ir.text(ir.EQ(ir.LT(a, b), p)) == "(a < b) == p"
    choice = ir.Call(f32, ir.Op.IF_THEN_ELSE, (p, a, b))
    assert ir.text(choice + choice) == "(a if p else b) + (a if p else b)"


def test_constants_say_their_type_where_a_literal_would_not() -> None:
    v = ir.Var("v")
    assert ir.text(v + 1) == "v + 1"
    assert ir.text(ir.Add(one, one)) == "tl.i64(1) + 1"
    assert ir.text(ir.Cast(f32, one)) == "tl.f32(tl.i64(1))"
    assert ir.text(ir.Neg(one)) == "-tl.i64(1)"
    assert ir.text(ir.IntImm(ir.u8, 255)) == "tl.u8(255)"
    assert ir.text(ir.IntImm(ir.bool_, 1)) == "True"
    assert [ir.text(ir.FloatImm(f32, x)) for x in (0.1, 1 / 3, -0.0, float("nan"), float("-inf"))] == [
        "tl.f32(0.1)",
        "tl.f32(0.33333334)",
        "tl.f32(-0.0)",
        'tl.f32("nan")',
        'tl.f32("-inf")',
    ]
    assert [ir.text(ir.FloatImm(f64, x)) for x in (0.1, -0.0, float("inf"))] == ["0.1", "-0.0", 'tl.f64("inf")']


def deepest_parentheses(line: str) -> int:
    depth = most = 0
    for char in line:
        depth += (char in "([") - (char in ")]")
        most = max(most, depth)
    return most


def test_a_sum_of_2500_terms_is_spilled_into_lets() -> None:
    x = ir.Buffer("x", f32, (one,))
    left, right = x[0], x[0]
    for _ in range(2_500):
        left, right = ir.Add(left, x[0]), ir.Add(x[0], right)
    func = ir.PrimFunc("f", (x,), ir.seq(ir.Store(x, (zero,), left), ir.Store(x, (zero,), right)))
    text = str(func)
    assert max(deepest_parentheses(line) for line in text.splitlines()) < 60
    assert text.count("x[0]") == 2 * 2_501 + 2
    again = tl.parse(text)
    assert str(again) == text
    assert len(again.body.stmts) == len(text.splitlines()) - 2


def test_what_is_computed_under_a_condition_is_not_spilled() -> None:
    x, i = ir.Buffer("x", f32, (one,)), ir.Var("i")
    deep = x[i]
    for _ in range(200):
        deep = ir.Neg(deep)
    guarded = ir.Call(f32, ir.Op.IF_THEN_ELSE, (ir.LT(i, one), deep, x[0]))
    assert ir.text(ir.Store(x, (zero,), guarded)) == f"x[0] = {'-' * 200}x[i] if i < 1 else x[0]"


def test_the_condition_of_an_elif_is_spilled_where_only_it_is_computed() -> None:
    p = ir.Var("p", ir.bool_)
    deep: ir.Expr = p
    for _ in range(60):
        deep = ir.Not(deep)
    chain = ir.IfThenElse(p, ir.seq(), ir.seq(ir.IfThenElse(deep, ir.seq(), ir.seq(ir.Assert(p, "p")))))
    assert ir.text(chain).splitlines() == [
        "if p:",
        "    pass",
        "else:",
        f"    t = {'not ' * 50}p",
        f"    if {'not ' * 10}t:",
        "        pass",
        "    else:",
        '        assert p, "p"',
    ]


def test_a_nest_of_2000_loops_is_printed_as_an_outline() -> None:
    body = ir.seq()
    for _ in range(2000):
        body = ir.seq(ir.For(ir.Var("i"), zero, one, body))
    lines = ir.text(body).splitlines()
    assert lines[0].startswith("# An outline")
    assert lines[1] == "   0| for i in range(1):"
    assert lines[2001] == "2000| pass"


def test_20000_statements_in_a_row() -> None:
    x = ir.Buffer("x", f32, (one,))
    func = ir.PrimFunc("f", (x,), ir.SeqStmt((ir.Store(x, (zero,), x[0] + 1),) * 20_000))
    assert str(func).count("    x[0] = x[0] + tl.f32(1.0)\n") == 19_999


def test_what_is_defined_twice_has_two_names() -> None:
    x, t, u = ir.Buffer("x", f32, (one,)), ir.Var("t", f32), ir.Var("u", f32)
    shared = ir.LetExpr(t, x[0], t * t)
    branch = ir.seq(ir.Let(u, x[0]), ir.Store(x, (zero,), u))
    func = ir.PrimFunc("f", (x,), ir.seq(ir.IfThenElse(shared < shared, branch, branch)))
    assert str(func).splitlines()[2:] == [
        "    if tl.let(t, x[0], t * t) < tl.let(t_1, x[0], t_1 * t_1):",
        "        u = x[0]",
        "        x[0] = u",
        "    else:",
        "        u_1 = x[0]",
        "        x[0] = u_1",
    ]
    assert str(tl.parse(str(func))) == str(func)
