"""What is computed once is written once, wherever it is known to have been computed before."""

from __future__ import annotations

import pytest

import tirlite as tl
from tirlite.codegen.llvm.machine import compile_text
from tirlite.codegen.llvm.text import FunctionText, ModuleText
from tirlite.codegen.llvm.values import integer
from tirlite.ir import i32, i64, u32
from tirlite.target import Target


def function() -> FunctionText:
    return FunctionText(ModuleText(Target.host().processor))


def test_an_operation_is_written_once() -> None:
    out = function()
    a, b = out.parameter(i64, "%a"), out.parameter(i64, "%b")
    one, other = out.op("add", a, b), out.op("add", a, b)
    assert one is other
    assert out.lines == [f"  {one.text} = add i64 %a, %b"]
    assert out.op("add nsw", a, b) is not one


def test_a_type_that_llvm_spells_alike_is_another_one() -> None:
    out = function()
    a, b = out.parameter(i32, "%a"), out.parameter(i32, "%b")
    signed, unsigned = out.op("add", a, b), out.op("add", a.of(u32), b.of(u32))
    assert (signed.dtype, unsigned.dtype) == (i32, u32)


def test_what_changes_nothing_is_not_written() -> None:
    out = function()
    a = out.parameter(i64, "%a")
    assert out.op("add", a, integer(0)) is a
    assert out.op("mul nsw", a, integer(1)) is a
    assert out.op("sub", integer(0), a) is not a
    assert out.op("add nuw nsw", integer(0), a) is a
    assert out.op("mul", integer(1), a) is a


def test_what_numbers_come_to_is_not_written() -> None:
    out = function()
    a, least, most = out.parameter(i64, "%a"), -1 << 63, (1 << 63) - 1
    for name, x, y, wanted in (
        ("add", 3, 4, 7),
        ("add", most, 1, least),
        ("sub nsw", 3, 4, -1),
        ("mul", least, -1, least),
        ("mul", 1 << 40, 1 << 40, 0),
        ("udiv", 7, 2, 3),
        ("ashr", 7, 1, 3),
    ):
        assert out.op(name, integer(x), integer(y)).number == wanted
    assert [out.op("mul", a, integer(0)).number, out.op("and", integer(0), a).number, out.op("sub", a, a).number] == [
        0
    ] * 3
    assert [
        out.compare(f"icmp {kind}", integer(-1), integer(1)).text for kind in ("slt", "ult", "ne", "sge", "ugt")
    ] == [
        "true",
        "false",
        "true",
        "false",
        "true",
    ]
    assert out.select(out.compare("icmp eq", integer(2), integer(2)), a, integer(5)) is a
    assert not out.lines
    assert [out.op(name, integer(-7), integer(2)).number for name in ("udiv", "ashr")] == [None] * 2


def test_another_block_computes_for_itself() -> None:
    """What one branch has computed is not there in the other one, and behind both."""
    out = function()
    a, b = out.parameter(i64, "%a"), out.parameter(i64, "%b")
    before = out.op("mul", a, b)
    around = out.fork()
    out.start("then")
    inside = out.op("add", a, b)
    assert out.op("mul", a, b) is before
    out.start("else")
    assert out.op("add", a, b) is not inside
    out.start("done")
    assert out.op("mul", a, b) is before
    assert out.op("sub", a, b) is out.op("sub", a, b)
    out.join(around)
    out.start("elsewhere")
    assert out.op("mul", a, b) is not before


def test_loads_are_all_written() -> None:
    out = function()
    pointer = out.parameter(i64, "%p")
    assert out.load(i64, pointer) is not out.load(i64, pointer)


@pytest.mark.parametrize("text", ["ret i32 0", "%a = freeze i64 %b\n%b = freeze i64 %a\nret i64 %a"])
def test_code_that_is_not_well_formed_is_an_error_and_does_not_end_the_process(text: str) -> None:
    with pytest.raises(tl.InternalError, match="bad-module.*LLVM refuses"):
        compile_text(f"define i64 @f() {{ {text} }}")
