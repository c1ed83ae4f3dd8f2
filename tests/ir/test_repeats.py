"""Nodes that stand in many places: gone through where they are few, refused where no walk would end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tirlite import ir
from tirlite.diag import KernelError
from tirlite.ir import Builder, f32, i64

x, y = ir.Buffer("x", f32, (ir.const(4, i64),)), ir.Buffer("y", f32, (ir.const(4, i64),))
ZERO = ir.const(0, i64)


def doubled(expr: ir.Expr, levels: int) -> ir.Expr:
    for _ in range(levels):
        expr = expr + expr
    return expr


def storing(value: ir.Expr) -> ir.PrimFunc:
    return ir.PrimFunc("f", (x, y), ir.seq(ir.Store(y, (ZERO,), value)))


def repeated(levels: int) -> ir.PrimFunc:
    """A statement that stands twice in a loop, which stands twice in a loop, and so on."""
    stmt: ir.Stmt = ir.Store(y, (ZERO,), ir.Load(x, (ZERO,)))
    for _ in range(levels):
        stmt = ir.For(ir.Var("i"), ZERO, ir.const(1, i64), ir.seq(stmt, stmt))
    return ir.PrimFunc("f", (x, y), ir.seq(stmt))


def allocating(levels: int) -> ir.PrimFunc:
    n = ir.Var("n")
    buffer = ir.Buffer("t", f32, (doubled(n, levels),))
    return ir.PrimFunc("f", (n, y), ir.seq(ir.Allocate(buffer)))


def shaped(levels: int) -> ir.PrimFunc:
    n = ir.Var("n")
    params = (ir.Buffer("a", f32, (n,)), ir.Buffer("b", f32, (doubled(n, levels),)))
    return ir.PrimFunc("f", params, ir.seq())


HUGE: dict[str, Callable[[], ir.PrimFunc]] = {
    "value": lambda: storing(doubled(ir.Load(x, (ZERO,)), 60)),
    "statement": lambda: repeated(60),
    "extent": lambda: allocating(60),
    "parameter": lambda: shaped(60),
}


@pytest.mark.parametrize("made", HUGE)
def test_what_would_not_end_is_refused(made: str) -> None:
    with pytest.raises(KernelError) as caught:
        ir.validate(HUGE[made]())
    assert caught.value.code == "repeated-parts"


@pytest.mark.parametrize("walk", [str, ir.structural_hash, lambda func: ir.structural_equal(func, HUGE["value"]())])
def test_before_it_is_printed_or_compared_too(walk: Callable[[ir.PrimFunc], object]) -> None:
    with pytest.raises(KernelError) as caught:
        walk(HUGE["value"]())
    assert caught.value.code == "repeated-parts"


def test_the_error_tells_the_line_and_what_to_do() -> None:
    b = Builder("f")
    given, out = b.param("x", f32[4]), b.param("y", f32[4])
    b.store(out, 0, doubled(given[0], 60))
    with pytest.raises(KernelError) as caught:
        b.build()
    message = caught.value.messages[0]
    assert "b.store(out, 0, doubled(given[0], 60))" in str(caught.value)
    assert "b.let" in message.help


def test_a_let_for_each_level_makes_it_small() -> None:
    b = Builder("f")
    given, out = b.param("x", f32[4]), b.param("y", f32[4])
    value: ir.Expr = given[0]
    for level in range(60):
        value = b.let(f"v{level}", value + value)
    b.store(out, 0, value)
    assert "v59 = " in str(b.build())


def test_what_is_shared_now_and_then_is_fine() -> None:
    func = storing(doubled(ir.Load(x, (ZERO,)), 12))
    ir.validate(func)
    assert ir.structural_equal(func, storing(doubled(ir.Load(x, (ZERO,)), 12)))


def test_a_large_function_of_different_parts_is_fine() -> None:
    total: ir.Expr = ir.Load(x, (ZERO,))
    for _ in range(20_000):
        total = total + ir.Load(x, (ZERO,))
    ir.validate(storing(total))
