"""Encodes extents that are computed from dims as programs of words, and writes the LLVM function that evaluates them.

A program for a stack machine is the number of its steps, then two words per step: push a number or the dim of that
number, or (the second word unused) replace the top two values by their result. `extent(program, dims)` returns the top
of the stack at the end, or -1 on overflow.
An array's extent may be seen before all dims are known: `keep_computed` appends the extent and the start of its program
to a list, whose first word is its length, and `are_as_computed` compares them all later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tirlite.ir import Add, Binary, Expr, FloorDiv, FloorMod, IntImm, Max, Min, Mul, Sub, Var

_NUMBER, _DIM = 0, 1
_STEPS: Mapping[type[Expr], int] = {Add: 2, Sub: 3, Mul: 4, FloorDiv: 5, FloorMod: 6, Min: 7, Max: 8}
_MOST_STEPS = 64


def program_of(extent: Expr, dims: Sequence[Var]) -> list[int] | None:
    """The program of an extent; None if it has other operations or leaves than `dims` and numbers, or is too long."""
    words: list[int] = []
    todo: list[Expr | int] = [extent]
    while todo:
        node = todo.pop()
        if isinstance(node, int):
            words += node, 0
        elif isinstance(node, IntImm):
            words += _NUMBER, node.value
        elif isinstance(node, Var) and node in dims:
            words += _DIM, dims.index(node)
        elif isinstance(node, Binary) and type(node) in _STEPS and _is_defined(node):
            todo += _STEPS[type(node)], node.b, node.a
        else:
            return None
    return [len(words) // 2, *words] if len(words) <= 2 * _MOST_STEPS else None


def _is_defined(expr: Binary) -> bool:
    """Whether it is not a division by what may be 0 or less."""
    return not isinstance(expr, FloorDiv | FloorMod) or (isinstance(expr.b, IntImm) and expr.b.value > 0)


EXTENT_TEXT = """
declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)

define internal i64 @extent(ptr %program, ptr %dims) {
entry:
  %stack = alloca [64 x i64], align 16
  %steps = load i64, ptr %program
  br label %next

next:
  %k = phi i64 [0, %entry], [%k.next, %put]
  %top = phi ptr [%stack, %entry], [%top.next, %put]
  %is.end = icmp eq i64 %k, %steps
  br i1 %is.end, label %end, label %step

step:
  %k.next = add i64 %k, 1
  %by.place = shl i64 %k.next, 1
  %what.place = sub i64 %by.place, 1
  %what = load i64, word %what.place of %program
  %number = load i64, word %by.place of %program
  %is.of.two = icmp sge i64 %what, 2
  br i1 %is.of.two, label %two, label %one

one:
  %is.dim = icmp eq i64 %what, 1
  br i1 %is.dim, label %dim, label %put

dim:
  %dim.value = load i64, word %number of %dims
  br label %put

two:
  %under = getelementptr i64, ptr %top, i64 -2
  %a = load i64, ptr %under
  %b = load i64, word 1 of %under
  %is.less = icmp slt i64 %a, %b
  switch i64 %what, label %plus [
    i64 3, label %less i64 4, label %times i64 5, label %over i64 6, label %over i64 7, label %least i64 8, label %most
  ]

plus:
  %sum = call {i64, i1} @llvm.sadd.with.overflow.i64(i64 %a, i64 %b)
  br label %fit

less:
  %difference = call {i64, i1} @llvm.ssub.with.overflow.i64(i64 %a, i64 %b)
  br label %fit

times:
  %product = call {i64, i1} @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  br label %fit

fit:
  %both = phi {i64, i1} [%sum, %plus], [%difference, %less], [%product, %times]
  %exact = extractvalue {i64, i1} %both, 0
  %is.over = extractvalue {i64, i1} %both, 1
  br i1 %is.over, label %none, label %put

over:
  %rest = srem i64 %a, %b
  %is.below = icmp slt i64 %rest, 0
  %one.less = sext i1 %is.below to i64
  %cut = sdiv i64 %a, %b
  %quotient = add i64 %cut, %one.less
  %added = select i1 %is.below, i64 %b, i64 0
  %modulo = add i64 %rest, %added
  %is.quotient = icmp eq i64 %what, 5
  %floored = select i1 %is.quotient, i64 %quotient, i64 %modulo
  br label %put

least:
  %lower = select i1 %is.less, i64 %a, i64 %b
  br label %put

most:
  %higher = select i1 %is.less, i64 %b, i64 %a
  br label %put

put:
  %value = phi i64 [%number, %one], [%dim.value, %dim], [%exact, %fit], [%floored, %over], [%lower, %least],
    [%higher, %most]
  %at = phi ptr [%top, %one], [%top, %dim], [%under, %fit], [%under, %over], [%under, %least], [%under, %most]
  store i64 %value, ptr %at
  %top.next = getelementptr i64, ptr %at, i64 1
  br label %next

end:
  %result = load i64, ptr %stack
  ret i64 %result

none:
  ret i64 -1
}

define internal void @keep_computed(ptr %noted, i64 %extent, i64 %program) {
  %k = load i64, ptr %noted
  %k.next = add i64 %k, 1
  store i64 %k.next, ptr %noted
  %place = shl i64 %k.next, 1
  %before = sub i64 %place, 1
  %extent.at = getelementptr i64, ptr %noted, i64 %before
  %program.at = getelementptr i64, ptr %noted, i64 %place
  store i64 %extent, ptr %extent.at
  store i64 %program, ptr %program.at
  ret void
}

define internal i1 @are_as_computed(ptr %noted, ptr %programs, ptr %dims) {
entry:
  %number = load i64, ptr %noted
  br label %next

next:
  %k = phi i64 [0, %entry], [%k.next, %look]
  %is.end = icmp eq i64 %k, %number
  br i1 %is.end, label %end, label %look

look:
  %k.next = add i64 %k, 1
  %place = shl i64 %k.next, 1
  %before = sub i64 %place, 1
  %extent = load i64, word %before of %noted
  %begin = load i64, word %place of %noted
  %program = getelementptr i64, ptr %programs, i64 %begin
  %computed = call i64 @extent(ptr %program, ptr %dims)
  %is.right = icmp eq i64 %extent, %computed
  br i1 %is.right, label %next, label %end

end:
  %are.right = phi i1 [true, %next], [false, %look]
  ret i1 %are.right
}
"""
