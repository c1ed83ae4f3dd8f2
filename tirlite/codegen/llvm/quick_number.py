"""Writes the LLVM text of the function that makes what a kernel takes of a number that a quick call is given.

`number(given, wanted, bits)` stores the bits. The result is 1 for a float, 0 for an integer, and -1 for what Python is
to look at: numbers of other types or out of range. The words that say what is wanted are as many as an array of rank 1
has, see `codegen.llvm.quick_call`: 0, three types that it may be given as, which are that of NumPy with the same bits,
one of Python, and another one of Python that holds integers; the bits of a float, or 0; 1, 0, the least and the largest
integer that it may be given, and for a float the type of NumPy that holds an f64, which it may be given as too.
"""

from __future__ import annotations


def number_text(type_at: int, number_at: int) -> str:
    """The function, of objects with their type and their number at these bytes."""
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
