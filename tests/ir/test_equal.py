"""Equality of meaning: what counts, what does not, and how the first difference is named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest
from every import every

from tirlite import ir
from tirlite.diag import Source, Span
from tirlite.ir import f32, f64, i32, i64, structural_equal, structural_hash
from tirlite.sizes import Dim


def scale(
    dim: str = "n",
    *,
    names: str = "xyti",
    factor: float = 2.0,
    scope: str = "local",
    width: int = 4,
    dtype: ir.DType = f32,
    facts: Dim | None = None,
    swap: bool = False,
) -> ir.PrimFunc:
    """`t[0] = x[i] * factor; y[i] = t[0]` with everything that may vary."""
    n = ir.Var(dim, dim=facts)
    b = ir.Builder("scale" + dim)
    x, y = b.param(names[0], dtype[n]), b.param(names[1], dtype[n], out=True)
    t = b.alloc(names[2], dtype[width], scope=scope)
    with b.for_(names[3], 0, n) as i:
        b.store(t, 0, (y if swap else x)[i] * factor)
        b.store(y, i, t[0])
    return b.build()


def test_names_do_not_count() -> None:
    assert structural_equal(scale(), scale("m", names="abcd"))


def test_a_function_equals_itself_and_its_hash_is_that_of_its_equals() -> None:
    assert structural_equal(scale(), scale()).difference == ""
    assert structural_hash(scale()) == structural_hash(scale("m", names="abcd"))


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (scale(factor=3), "body[1].body[0].value.b: FloatImm 2.0 against FloatImm 3.0"),
        (scale(scope="global"), "body[0].buffer.scope: 'local' against 'global'"),
        (scale(width=8), "body[0].buffer.shape[0]: IntImm 4 against IntImm 8"),
        (scale(dtype=f64), "params[0].dtype: f32 against f64"),
        (scale(swap=True), "body[1].body[0].value.a.buffer: Buffer x against Buffer y"),
        (scale(facts=Dim("n", max=8)), "params[0].shape[0].dim: None against (1, 8, 1)"),
    ],
)
def test_names_the_first_difference(other: ir.PrimFunc, difference: str) -> None:
    found = structural_equal(scale(), other)
    assert not found
    assert found.difference == difference
    assert structural_hash(scale()) != structural_hash(other)


def test_facts_of_dims_are_compared_by_value() -> None:
    assert structural_equal(scale(facts=Dim("n", max=8)), scale("m", facts=Dim("m", max=8)))
    assert not structural_equal(scale(facts=Dim("n", max=8)), scale(facts=Dim("n", max=9)))


zero, one = ir.const(0, i64), ir.const(1, i64)
k = ir.Var("k")
x = ir.Buffer("x", f32, (k,))


def constant(value: float, dtype: ir.DType = f64) -> ir.Evaluate:
    return ir.Evaluate(ir.FloatImm(dtype, value))


@every(
    "a, b, difference",
    [
        (ir.Add(k, one), ir.Sub(k, one), "root: Add against Sub"),
        (ir.seq(ir.Evaluate(k)), ir.seq(), "[0]: Evaluate against the end"),
        (constant(0.0), constant(-0.0), "value: FloatImm 0.0 against FloatImm -0.0"),
        (constant(1.0), constant(1.0, f32), "value.dtype: f64 against f32"),
        (ir.const(1, i64), ir.const(1, i32), "dtype: i64 against i32"),
        (ir.Evaluate(k), ir.Evaluate(ir.Var("k")), "value: Var k against another of that name"),
        (x[0], replace(x)[0], "buffer: Buffer x against another of that name"),
        (ir.Assert(k < 1, "a"), ir.Assert(k < 1, "b"), "message: 'a' against 'b'"),
        (
            ir.AttrStmt(ir.AttrKey.PRAGMA, ir.seq(), value="a"),
            ir.AttrStmt(ir.AttrKey.EXTERN_SCOPE, ir.seq(), value="a"),
            "key: PRAGMA against EXTERN_SCOPE",
        ),
        (
            ir.AttrStmt(ir.AttrKey.PRAGMA, ir.seq()),
            ir.AttrStmt(ir.AttrKey.PRAGMA, ir.seq(), x),
            "buffer: None against Buffer x",
        ),
        (
            ir.For(k, zero, one, ir.seq()),
            ir.For(k, zero, one, ir.seq(), ir.ForKind.PARALLEL),
            "kind: SERIAL against PARALLEL",
        ),
        (
            ir.seq(ir.Allocate(x)),
            ir.seq(ir.Allocate(replace(x, alignment=64))),
            "[0].buffer.alignment: 0 against 64",
        ),
        (
            ir.seq(ir.Allocate(x)),
            ir.seq(ir.Allocate(replace(x, shape=(k, k)))),
            "[0].buffer.rank: 1 against 2",
        ),
    ],
)
def test_parts_are_compared(a: ir.Node, b: ir.Node, difference: str) -> None:
    assert structural_equal(a, b).difference == difference
    assert structural_equal(a, a)
    assert structural_equal(b, b)


def test_nan_equals_nan() -> None:
    assert structural_equal(constant(float("nan")), constant(float("nan")))
    assert structural_hash(constant(float("nan"))) == structural_hash(constant(float("nan")))


def test_spans_do_not_count() -> None:
    span = Span(Source.of("a.py", "k"), 1, 0, 1, 1)
    assert structural_equal(ir.Evaluate(k, span=span), ir.Evaluate(k))


def lets(pick: Callable[[ir.Var, ir.Var], ir.Expr]) -> ir.SeqStmt:
    p, q = ir.Var("v"), ir.Var("v")
    return ir.seq(ir.Let(p, zero), ir.Let(q, one), ir.Evaluate(pick(p, q)))


def test_renaming_is_one_to_one() -> None:
    assert structural_equal(lets(lambda p, q: p + q), lets(lambda p, q: p + q))
    assert not structural_equal(lets(lambda p, q: p + p), lets(lambda p, q: p + q))
    assert not structural_equal(lets(lambda p, q: p + q), lets(lambda p, q: p + p))
    assert not structural_equal(lets(lambda p, q: p + q), lets(lambda p, q: q + p))


def test_a_variable_defined_twice_equals_two() -> None:
    v, w = ir.Var("v"), ir.Var("w")
    loops = [ir.For(var, zero, one, ir.seq(ir.Evaluate(var))) for var in (v, v, w)]
    assert structural_equal(ir.seq(*loops[:2]), ir.seq(*loops[1:]))


def test_a_definition_is_not_seen_by_its_own_value() -> None:
    v, w = ir.Var("v"), ir.Var("w")
    assert not structural_equal(ir.Let(v, v), ir.Let(w, w))
    assert structural_equal(ir.LetExpr(v, k, v), ir.LetExpr(w, k, w))


def parameters(*params: ir.Var | ir.Buffer, outputs: tuple[ir.Buffer, ...] = ()) -> ir.PrimFunc:
    return ir.PrimFunc("f", params, ir.seq(), outputs)


def test_a_dim_is_no_parameter() -> None:
    dim, scalar = ir.Var("dim"), ir.Var("scalar")
    a = ir.Buffer("a", f32, (dim,))
    assert not structural_equal(parameters(a, scalar), parameters(a, dim))
    assert not structural_equal(parameters(a, dim), parameters(a, scalar))


def test_dims_are_paired_where_they_are_met() -> None:
    p, q = ir.Var("p"), ir.Var("q")
    square, flat = ir.Buffer("a", f32, (p, p)), ir.Buffer("a", f32, (p, q))
    assert not structural_equal(parameters(square), parameters(flat))
    assert structural_equal(parameters(flat), parameters(ir.Buffer("a", f32, (q, p))))


def test_outputs_are_compared() -> None:
    a, b = ir.Buffer("a", f32, (one,)), ir.Buffer("b", f32, (one,))
    assert structural_equal(parameters(a, outputs=(a,)), parameters(b, outputs=(b,)))
    found = structural_equal(parameters(a, b, outputs=(a,)), parameters(a, b, outputs=(b,)))
    assert found.difference == "outputs[0]: Buffer a against Buffer b"


def test_depth_is_no_matter() -> None:
    def nest(last: int) -> ir.Stmt:
        total: ir.Expr = k
        for _ in range(10_000):
            total = ir.Add(total, one)
        stmt: ir.Stmt = ir.Evaluate(ir.Add(total, ir.const(last, i64)))
        for _ in range(2_000):
            stmt = ir.For(ir.Var("i"), zero, k, ir.seq(stmt))
        return stmt

    assert structural_equal(nest(1), nest(1))
    assert structural_equal(nest(1), nest(2)).difference.endswith("value.b: IntImm 1 against IntImm 2")


def test_the_hash_is_the_same_in_every_process() -> None:
    program = """
from tirlite import ir
from tirlite.ir import f32
n = ir.Var("n")
b = ir.Builder("f")
x = b.param("x", f32[n])
with b.if_(n < 3):
    b.store(x, 0, -0.0)
print(ir.structural_hash(b.build()))
"""
    shown = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(shown) == 1
