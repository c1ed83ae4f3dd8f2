"""The functions that a function calls, and what equality and printing make of them."""

from __future__ import annotations

from tirlite import ir
from tirlite.ir import BufferRef, KernelCall, PrimFunc, callees, structural_equal, structural_hash

k = ir.Var("k")


def leaf(value: int, name: str = "leaf") -> PrimFunc:
    x = ir.Buffer("x", ir.i64, (k,))
    return PrimFunc(name, (x,), ir.seq(ir.Store(x, (ir.const(0, ir.i64),), ir.const(value, ir.i64))))


def caller(name: str, *called: PrimFunc) -> PrimFunc:
    x = ir.Buffer("x", ir.i64, (k,))
    return PrimFunc(name, (x,), ir.SeqStmt(tuple(KernelCall(each, (BufferRef(x),)) for each in called)))


def test_callees_come_once_and_after_what_they_call() -> None:
    one, two = leaf(1), leaf(2)
    middle = caller("middle", two, one, two)
    assert callees(caller("top", one, middle, middle)) == (one, two, middle)


def test_a_long_chain_of_calls_is_no_deep_recursion() -> None:
    func = leaf(1)
    for number in range(3_000):
        func = caller(f"level_{number}", func)
    assert len(callees(func)) == 3_000
    ir.validate(func)
    assert structural_equal(func, func)


def test_callees_count_by_their_structure() -> None:
    shared = leaf(1)
    one, other = caller("f", shared, shared), caller("g", leaf(1, "a"), leaf(1, "b"))
    assert structural_equal(one, other)
    assert structural_hash(one) == structural_hash(other)
    different = structural_equal(caller("top", one), caller("top", caller("f", shared, leaf(2))))
    assert different.difference == "body[0].callee.body[1].callee.body[0].value: IntImm 1 against IntImm 2"


def test_equal_callees_are_printed_once_and_others_get_names_of_their_own() -> None:
    text = str(caller("leaf", leaf(1), leaf(2), leaf(1)))
    assert [line for line in text.splitlines() if line.startswith("def")] == [
        "def leaf_1(x: tl.i64[k]):",
        "def leaf_2(x: tl.i64[k]):",
        "def leaf(x: tl.i64[k]):",
    ]
    assert [line.strip() for line in text.splitlines() if "tl.call" in line] == [
        "tl.call(leaf_1, x)",
        "tl.call(leaf_2, x)",
        "tl.call(leaf_1, x)",
    ]
