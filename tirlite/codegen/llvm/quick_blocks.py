"""Writes the blocks of a quick call's LLVM text that call kernels, one per number of operands, and that read numbers.

By the C calling convention integers and pointers are passed in other registers than floats, or in order on the stack.
So one call serves all kernels with as many words, whatever their order: words first, then floats in all float
registers. A kernel with more than `MOST_PARAMETERS` operands takes the address of a record of them.
"""

from __future__ import annotations

import re

from tirlite.target.convention import MOST_PARAMETERS, VERSIONS

MOST_GIVEN = 64  # strides, arrays, numbers and dims that a call checks
MOST_OPERANDS = 1024  # the same and the constants of a kernel
MOST_REALS = 8  # floats of a kernel that takes its operands in registers
# Shorthand in the text for a load at an offset from a pointer: `load i64, word 2 of %p`.
_LOAD_OF = re.compile(r"  (\S+) = load (\S+), (word|byte|pointer) (\S+) of (\S+)")
_UNITS = {"word": "i64", "byte": "i8", "pointer": "ptr"}


def with_addresses(text: str) -> str:
    """The text with the shorthand for loads expanded."""
    return _LOAD_OF.sub(_load_of, text)


def _load_of(short: re.Match[str]) -> str:
    """Expands `%x = load i64, word 2 of %p` into an address computation and a load."""
    name, dtype, unit, number, start = short.groups()
    address = f"  {name}.at = getelementptr {_UNITS[unit]}, ptr {start}, i64 {number}"
    return f"{address}\n  {name} = load {dtype}, ptr {name}.at"


def run_text(words: int) -> str:
    """The blocks that run the version in `%served` on checked operands, and other versions if it declines.

    `words`: the offset of the data in a bytes object.
    """
    return _RUN.format(
        words=words,
        versions=VERSIONS,
        call_cases=_cases("call"),
        calls=_calls("call", "%kernel", "%operands", "ran"),
        faults=_results("call"),
        size_cases=_cases("size"),
        size_calls=_calls("size", "%size.function", "%numbers", "measured"),
        sizes=_results("size"),
    )


def _cases(name: str) -> str:
    """The targets of a `switch` over the number of operands."""
    return " ".join(f"i64 {count}, label %{name}{count}" for count in range(1, MOST_PARAMETERS + 1))


def _results(name: str) -> str:
    """The incoming values of the `phi` after the calls."""
    return ", ".join(f"[%{name}{count}.result, %{name}{count}]" for count in range(1, MOST_PARAMETERS + 1))


def _calls(name: str, function: str, operands: str, then: str) -> str:
    """The blocks that load the operands and call the function, one for each number of operands."""
    return "".join(_call(f"{name}{count}", count, function, operands, then) for count in range(1, MOST_PARAMETERS + 1))


def _call(name: str, count: int, function: str, operands: str, then: str) -> str:
    lines = [f"{name}:"]
    for number in range(count):
        lines.append(f"  %{name}.at{number} = getelementptr i64, ptr {operands}, i64 {number}")
        lines.append(f"  %{name}.{number} = load i64, ptr %{name}.at{number}")
    given = ", ".join(
        [f"i64 %{name}.{number}" for number in range(count)] + [f"double %real.{k}" for k in range(MOST_REALS)]
    )
    return "\n".join([*lines, f"  %{name}.result = call i64 {function}({given})", f"  br label %{then}", ""])


_RUN = """\
serve:
  %running = load ptr, ptr %served
  %kernel = load ptr, word 2 of %running
  %record = load ptr, word 7 of %running
  %size.function = load ptr, word 8 of %running
  %needs.block = icmp ne ptr %record, null
  br i1 %needs.block, label %measure, label %run

measure:
  %is.known = icmp eq ptr %size.function, null
  br i1 %is.known, label %known.size, label %ask.size

known.size:
  %bytes = load i64, word 9 of %running
  br label %measured

ask.size:
  switch i64 %size.operands, label %give.up [{size_cases}]

{size_calls}
measured:
  %wanted.bytes = phi i64 [%bytes, %known.size], {sizes}
  %room = load i64, word 2 of %record
  %has.room = icmp ule i64 %wanted.bytes, %room
  br i1 %has.room, label %take, label %give.up

take:
  %taking = cmpxchg ptr %record, i64 0, i64 1 acquire monotonic
  %is.mine = extractvalue {{i64, i1}} %taking, 1
  br i1 %is.mine, label %taken, label %give.up

taken:
  %block = load i64, word 1 of %record
  %last.at = getelementptr i64, ptr %operands, i64 %total
  store i64 %block, ptr %last.at
  %total.more = add i64 %total, 1
  br label %run

run:
  %all = phi i64 [%total, %serve], [%total.more, %taken]
  switch i64 %all, label %by.record [{call_cases}]

by.record:
  %record.fault = call i64 %kernel(ptr %operands)
  br label %ran

{calls}
ran:
  %fault = phi i64 [%record.fault, %by.record], {faults}
  br i1 %needs.block, label %give.back, label %back

give.back:
  store atomic i64 0, ptr %record release, align 8
  br label %back

back:
  %is.fine = icmp eq i64 %fault, 0
  br i1 %is.fine, label %done, label %stopped

stopped:
  %elsewhere = load i64, word 13 of %running
  %is.elsewhere = icmp eq i64 %fault, %elsewhere
  br i1 %is.elsewhere, label %for.another, label %unmet

unmet:
  %unmet.fault = load i64, word 17 of %running
  %in.order.object = load ptr, word 18 of %running
  %is.unmet = icmp eq i64 %fault, %unmet.fault
  %has.in.order = icmp ne ptr %in.order.object, null
  %is.for.order = and i1 %is.unmet, %has.in.order
  br i1 %is.for.order, label %another, label %tell

for.another:
  %takes.same = load i64, word 16 of %running
  %is.checked = icmp ne i64 %takes.same, 0
  %next.object = load ptr, word 12 of %running
  br i1 %is.checked, label %another, label %give.up

another:
  %other.object = phi ptr [%next.object, %for.another], [%in.order.object, %unmet]
  %other.spec = getelementptr i8, ptr %other.object, i64 {words}
  store ptr %other.spec, ptr %served
  br label %serve

give.up:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %refuse

tell:
  call void @PyEval_RestoreThread(ptr %thread)
  %number = load i64, word 14 of %running
  %faults = mul i64 %fault, {versions}
  %told.number = add i64 %faults, %number
  %told = call ptr @PyLong_FromLongLong(i64 %told.number)
  ret ptr %told

done:
  call void @PyEval_RestoreThread(ptr %thread)
  %none = load ptr, word 5 of %running
  call void @Py_IncRef(ptr %none)
  ret ptr %none
"""


def number_text(type_at: int, number_at: int) -> str:
    """The function that converts a number, an object with its type and value at these byte offsets, for a kernel.
    `number(given, wanted, bits)` stores the bits. It returns 1 for a float, 0 for an integer, and -1 for objects that
    Python must handle: numbers of other types or out of range. The words of `wanted`, as many as of an array of rank 1,
    see `codegen.llvm.quick_call`: 0; three accepted types, which are NumPy's with the same bits, one of Python, and
    another of Python that holds integers; the bits of a float, or 0; 1; 0; the least and the largest integer accepted;
    and for a float NumPy's type of an f64, which is accepted too.
    """
    return _TEXT.format(type=type_at, number=number_at)


_TEXT = """
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)

define internal i64 @number(ptr %given, ptr %wanted, ptr %bits.at) {{
entry:
  %overflow = alloca i32
  %type = load ptr, byte {type} of %given
  %own.type = load ptr, word 1 of %wanted
  %python.type = load ptr, word 2 of %wanted
  %other.type = load ptr, word 3 of %wanted
  %float.bits = load i64, word 4 of %wanted
  %least = load i64, word 7 of %wanted
  %most = load i64, word 8 of %wanted
  %double.type = load ptr, word 9 of %wanted
  %is.own = icmp eq ptr %type, %own.type
  %is.python = icmp eq ptr %type, %python.type
  %is.other = icmp eq ptr %type, %other.type
  %is.float = icmp ne i64 %float.bits, 0
  %is.pythons = and i1 %is.python, %is.float
  %is.numpys = icmp eq ptr %type, %double.type
  %is.real = or i1 %is.pythons, %is.numpys
  %is.integer = or i1 %is.python, %is.other
  br i1 %is.own, label %own, label %python

own:
  %own.bits = load i64, byte {number} of %given
  br label %fits

python:
  br i1 %is.real, label %read.real, label %not.real

read.real:
  %given.real = load double, byte {number} of %given
  br label %real

not.real:
  br i1 %is.integer, label %read.integer, label %refuse

read.integer:
  %integer = call i64 @PyLong_AsLongLongAndOverflow(ptr %given, ptr %overflow)
  %over = load i32, ptr %overflow
  %holds = icmp eq i32 %over, 0
  %not.low = icmp sge i64 %integer, %least
  %not.high = icmp sle i64 %integer, %most
  %in.range = and i1 %not.low, %not.high
  %is.known = and i1 %holds, %in.range
  br i1 %is.known, label %known, label %refuse

known:
  %as.real = sitofp i64 %integer to double
  br i1 %is.float, label %real, label %fits

real:
  %double = phi double [%given.real, %read.real], [%as.real, %known]
  %double.bits = bitcast double %double to i64
  %single = fptrunc double %double to float
  %single.word = bitcast float %single to i32
  %single.bits = zext i32 %single.word to i64
  %is.double = icmp eq i64 %float.bits, 64
  %real.bits = select i1 %is.double, i64 %double.bits, i64 %single.bits
  ; Without its sign: at most the largest of f32, or infinite, or no number.
  %size = and i64 %double.bits, u0x7FFFFFFFFFFFFFFF
  %is.small = icmp ule i64 %size, u0x47EFFFFFE0000000
  %is.infinite = icmp uge i64 %size, u0x7FF0000000000000
  %is.single = or i1 %is.small, %is.infinite
  %real.fits = or i1 %is.double, %is.single
  br i1 %real.fits, label %fits, label %refuse

fits:
  %bits = phi i64 [%own.bits, %own], [%integer, %known], [%real.bits, %real]
  store i64 %bits, ptr %bits.at
  %result = zext i1 %is.float to i64
  ret i64 %result

refuse:
  ret i64 -1
}}
"""
