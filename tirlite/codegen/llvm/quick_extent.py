"""Writes extents that are computed from dims as words, and the LLVM text of the function that computes them.

`extent(program, dims)` begins with 0 and follows the steps, whose number is the first word. Each is two words, what is
done and by which number: that is added, multiplied by, divided by and rounded down, or that of a dim is added, taken
away or multiplied by. The result is -1 where a number does not fit into 64 bits.

Arrays may tell such an extent before all its dims are known: `keep_computed` notes the extent of an array and where its
program begins, after the number of those noted, and `are_as_computed` compares them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.ir import Add, Binary, Expr, FloorDiv, IntImm, Mul, Sub, Var

_ADD, _TIMES, _OVER, _ADD_DIM, _LESS_DIM, _TIMES_DIM = range(6)


def program_of(extent: Expr, dims: Sequence[Var]) -> list[int] | None:
    """The words of an extent; None where it is no chain of such steps, of `dims`."""
    steps: list[tuple[int, int]] = []
    while not isinstance(extent, IntImm | Var):
        if not isinstance(extent, Add | Sub | Mul | FloorDiv):
            return None
        rest, last = extent.a, extent.b
        if isinstance(extent, Add | Mul) and isinstance(rest, IntImm | Var):
            rest, last = last, rest
        step = _step(type(extent), last, dims)
        if step is None:
            return None
        steps.append(step)
        extent = rest
    first = _step(Add, extent, dims)
    if first is None:
        return None
    return [1 + len(steps), *(word for step in (first, *reversed(steps)) for word in step)]


def _step(kind: type[Binary], by: Expr, dims: Sequence[Var]) -> tuple[int, int] | None:
    if isinstance(by, IntImm):
        if kind is FloorDiv and by.value <= 0:
            return None
        return {Add: _ADD, Sub: _ADD, Mul: _TIMES, FloorDiv: _OVER}[kind], -by.value if kind is Sub else by.value
    done = {Add: _ADD_DIM, Sub: _LESS_DIM, Mul: _TIMES_DIM}.get(kind)
    return None if done is None or not isinstance(by, Var) or by not in dims else (done, dims.index(by))


EXTENT_TEXT = """
declare {i64, i1} @llvm.sadd.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.ssub.with.overflow.i64(i64, i64)
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)

define internal i64 @extent(ptr %program, ptr %dims) {
entry:
  %steps = load i64, ptr %program
  br label %next

next:
  %k = phi i64 [0, %entry], [%k.next, %done]
  %value = phi i64 [0, %entry], [%result, %done]
  %is.end = icmp eq i64 %k, %steps
  br i1 %is.end, label %end, label %step

step:
  %k.next = add i64 %k, 1
  %by.place = shl i64 %k.next, 1
  %what.place = sub i64 %by.place, 1
  %what = load i64, word %what.place of %program
  %number = load i64, word %by.place of %program
  %is.of.dim = icmp sge i64 %what, 3
  br i1 %is.of.dim, label %of.dim, label %do

of.dim:
  %dim = load i64, word %number of %dims
  br label %do

do:
  %by = phi i64 [%number, %step], [%dim, %of.dim]
  switch i64 %what, label %plus [i64 1, label %times i64 5, label %times i64 2, label %over i64 4, label %less]

plus:
  %sum = call {i64, i1} @llvm.sadd.with.overflow.i64(i64 %value, i64 %by)
  br label %fit

less:
  %difference = call {i64, i1} @llvm.ssub.with.overflow.i64(i64 %value, i64 %by)
  br label %fit

times:
  %product = call {i64, i1} @llvm.smul.with.overflow.i64(i64 %value, i64 %by)
  br label %fit

fit:
  %both = phi {i64, i1} [%sum, %plus], [%difference, %less], [%product, %times]
  %exact = extractvalue {i64, i1} %both, 0
  %is.over = extractvalue {i64, i1} %both, 1
  br i1 %is.over, label %none, label %done

over:
  %rest = srem i64 %value, %by
  %is.below = icmp slt i64 %rest, 0
  %one = sext i1 %is.below to i64
  %cut = sdiv i64 %value, %by
  %quotient = add i64 %cut, %one
  br label %done

done:
  %result = phi i64 [%exact, %fit], [%quotient, %over]
  br label %next

end:
  ret i64 %value

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
