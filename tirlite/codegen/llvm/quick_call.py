"""Writes the LLVM text of the function that checks arrays and calls a kernel, from the offsets in an array object.

`tirlite_quick(self, args, count)` is what Python calls (METH_FASTCALL): `self` is a bytes object that describes the
parameters of one kernel, see `runtime.quick`, and `args` are array objects. It looks at their types, flags and shapes
where NumPy keeps them. What fits is handed to the kernel, with other Python threads let run meanwhile: the result is
None, or the number of a fault as an int. For all else it is NotImplemented, before anything is called: who gets that
looks again, in Python, and says what is wrong.

The words of the description: the number of arrays, that of dims, the addresses of the kernel, of the type ndarray, of
NotImplemented and of None; for each dim its least and its largest value and what divides it; for each array the address
of its dtype object, the flags that it needs, the bits of its address that are 0, the bytes of an element, whether it is
written, its rank, and for each axis its extent, or the number of its dim with all bits turned over.
"""

from __future__ import annotations

from tirlite.record import record

QUICK_CALL = "tirlite_quick"
MOST_OPERANDS = 12  # arrays and dims of a kernel together
API = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLongLong", "Py_IncRef")


@record
class ArrayOffsets:
    """Where parts of objects are, in bytes: the words of a bytes object, an object's type, and parts of an array."""

    words: int
    type: int
    data: int
    rank: int
    shape: int
    dtype: int
    flags: int


def quick_text(at: ArrayOffsets) -> str:
    """The module with that function; the functions of Python's that it calls are those of `API`."""
    return _TEXT.format(
        most=MOST_OPERANDS,
        words=at.words,
        type=at.type,
        data=at.data,
        rank=at.rank,
        shape=at.shape,
        dtype=at.dtype,
        flags=at.flags,
        cases=" ".join(f"i64 {count}, label %call{count}" for count in range(1, MOST_OPERANDS + 1)),
        calls="".join(map(_call, range(1, MOST_OPERANDS + 1))),
        faults=", ".join(f"[%fault{count}, %call{count}]" for count in range(1, MOST_OPERANDS + 1)),
    )


def _call(count: int) -> str:
    """The block that calls a kernel with so many operands."""
    lines = [f"call{count}:"]
    for number in range(count):
        lines.append(f"  %at{count}.{number} = getelementptr i64, ptr %operands, i64 {number}")
        lines.append(f"  %o{count}.{number} = load i64, ptr %at{count}.{number}")
    operands = ", ".join(f"i64 %o{count}.{number}" for number in range(count))
    return "\n".join([*lines, f"  %fault{count} = call i64 %kernel({operands})", "  br label %ran", ""])


_TEXT = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare void @Py_IncRef(ptr)

define ptr @tirlite_quick(ptr %self, ptr %args, i64 %count) {{
entry:
  %operands = alloca [{most} x i64], align 16
  %ends = alloca [{most} x i64], align 16
  %writes = alloca [{most} x i64], align 16
  %spec = getelementptr i8, ptr %self, i64 {words}
  %arrays = load i64, ptr %spec
  %dims.at = getelementptr i64, ptr %spec, i64 1
  %dims = load i64, ptr %dims.at
  %kernel.at = getelementptr i64, ptr %spec, i64 2
  %kernel = load ptr, ptr %kernel.at
  %ndarray.at = getelementptr i64, ptr %spec, i64 3
  %ndarray = load ptr, ptr %ndarray.at
  %facts = getelementptr i64, ptr %spec, i64 6
  %fact.words = mul i64 %dims, 3
  %first = getelementptr i64, ptr %facts, i64 %fact.words
  %values = getelementptr i64, ptr %operands, i64 %arrays
  %counted = icmp eq i64 %count, %arrays
  br i1 %counted, label %clear, label %refuse

clear:
  %c = phi i64 [0, %entry], [%c.next, %clear.one]
  %c.done = icmp eq i64 %c, %dims
  br i1 %c.done, label %array, label %clear.one

clear.one:
  %c.at = getelementptr i64, ptr %values, i64 %c
  store i64 -1, ptr %c.at
  %c.next = add i64 %c, 1
  br label %clear

array:
  %a = phi i64 [0, %clear], [%a.next, %apart]
  %p = phi ptr [%first, %clear], [%p.next, %apart]
  %a.done = icmp eq i64 %a, %arrays
  br i1 %a.done, label %dim, label %look

look:
  %given.at = getelementptr ptr, ptr %args, i64 %a
  %given = load ptr, ptr %given.at
  %type.at = getelementptr i8, ptr %given, i64 {type}
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %parts, label %refuse

parts:
  %wanted.dtype = load ptr, ptr %p
  %dtype.at = getelementptr i8, ptr %given, i64 {dtype}
  %dtype = load ptr, ptr %dtype.at
  %same.dtype = icmp eq ptr %dtype, %wanted.dtype
  %mask.at = getelementptr i64, ptr %p, i64 1
  %mask = load i64, ptr %mask.at
  %flags.at = getelementptr i8, ptr %given, i64 {flags}
  %flags.bits = load i32, ptr %flags.at
  %flags = zext i32 %flags.bits to i64
  %flags.set = and i64 %flags, %mask
  %has.flags = icmp eq i64 %flags.set, %mask
  %zeros.at = getelementptr i64, ptr %p, i64 2
  %zeros = load i64, ptr %zeros.at
  %data.at = getelementptr i8, ptr %given, i64 {data}
  %data = load i64, ptr %data.at
  %low.bits = and i64 %data, %zeros
  %is.aligned = icmp eq i64 %low.bits, 0
  %wanted.rank.at = getelementptr i64, ptr %p, i64 5
  %wanted.rank = load i64, ptr %wanted.rank.at
  %rank.at = getelementptr i8, ptr %given, i64 {rank}
  %rank.bits = load i32, ptr %rank.at
  %rank = zext i32 %rank.bits to i64
  %same.rank = icmp eq i64 %rank, %wanted.rank
  %fits.1 = and i1 %same.dtype, %has.flags
  %fits.2 = and i1 %is.aligned, %same.rank
  %fits = and i1 %fits.1, %fits.2
  %item.at = getelementptr i64, ptr %p, i64 3
  %item = load i64, ptr %item.at
  %axes = getelementptr i64, ptr %p, i64 6
  %shape.at = getelementptr i8, ptr %given, i64 {shape}
  %shape = load ptr, ptr %shape.at
  br i1 %fits, label %axis, label %refuse

axis:
  %x = phi i64 [0, %parts], [%x.next, %axis.fits]
  %bytes = phi i64 [%item, %parts], [%bytes.next, %axis.fits]
  %x.done = icmp eq i64 %x, %wanted.rank
  br i1 %x.done, label %placed, label %axis.look

axis.look:
  %extent.at = getelementptr i64, ptr %shape, i64 %x
  %extent = load i64, ptr %extent.at
  %wanted.at = getelementptr i64, ptr %axes, i64 %x
  %wanted = load i64, ptr %wanted.at
  %is.fixed = icmp sge i64 %wanted, 0
  br i1 %is.fixed, label %fixed, label %bound

fixed:
  %same.extent = icmp eq i64 %extent, %wanted
  br i1 %same.extent, label %axis.fits, label %refuse

bound:
  %slot = xor i64 %wanted, -1
  %value.at = getelementptr i64, ptr %values, i64 %slot
  %known = load i64, ptr %value.at
  store i64 %extent, ptr %value.at
  %is.new = icmp slt i64 %known, 0
  %is.same = icmp eq i64 %known, %extent
  %agrees = or i1 %is.new, %is.same
  br i1 %agrees, label %axis.fits, label %refuse

axis.fits:
  %bytes.next = mul i64 %bytes, %extent
  %x.next = add i64 %x, 1
  br label %axis

placed:
  %end = add i64 %data, %bytes
  %write.at = getelementptr i64, ptr %p, i64 4
  %write = load i64, ptr %write.at
  %my.data = getelementptr i64, ptr %operands, i64 %a
  store i64 %data, ptr %my.data
  %my.end = getelementptr i64, ptr %ends, i64 %a
  store i64 %end, ptr %my.end
  %my.write = getelementptr i64, ptr %writes, i64 %a
  store i64 %write, ptr %my.write
  br label %other

other:
  %b = phi i64 [0, %placed], [%b.next, %other.fits]
  %b.done = icmp eq i64 %b, %a
  br i1 %b.done, label %apart, label %other.look

other.look:
  %its.data.at = getelementptr i64, ptr %operands, i64 %b
  %its.data = load i64, ptr %its.data.at
  %its.end.at = getelementptr i64, ptr %ends, i64 %b
  %its.end = load i64, ptr %its.end.at
  %its.write.at = getelementptr i64, ptr %writes, i64 %b
  %its.write = load i64, ptr %its.write.at
  %begins.in = icmp ult i64 %data, %its.end
  %ends.in = icmp ult i64 %its.data, %end
  %either = or i64 %write, %its.write
  %is.written = icmp ne i64 %either, 0
  %meet = and i1 %begins.in, %ends.in
  %clash = and i1 %meet, %is.written
  br i1 %clash, label %refuse, label %other.fits

other.fits:
  %b.next = add i64 %b, 1
  br label %other

apart:
  %a.next = add i64 %a, 1
  %p.next = getelementptr i64, ptr %axes, i64 %wanted.rank
  br label %array

dim:
  %k = phi i64 [0, %array], [%k.next, %dim.fits]
  %fact = phi ptr [%facts, %array], [%fact.next, %dim.fits]
  %k.done = icmp eq i64 %k, %dims
  br i1 %k.done, label %call, label %dim.look

dim.look:
  %k.at = getelementptr i64, ptr %values, i64 %k
  %value = load i64, ptr %k.at
  %least = load i64, ptr %fact
  %most.at = getelementptr i64, ptr %fact, i64 1
  %most = load i64, ptr %most.at
  %not.low = icmp sge i64 %value, %least
  %not.high = icmp sle i64 %value, %most
  %in.range = and i1 %not.low, %not.high
  %multiple.at = getelementptr i64, ptr %fact, i64 2
  %multiple = load i64, ptr %multiple.at
  %is.any = icmp eq i64 %multiple, 1
  br i1 %in.range, label %dim.multiple, label %refuse

dim.multiple:
  br i1 %is.any, label %dim.fits, label %dim.rest

dim.rest:
  %rest = urem i64 %value, %multiple
  %is.multiple = icmp eq i64 %rest, 0
  br i1 %is.multiple, label %dim.fits, label %refuse

dim.fits:
  %k.next = add i64 %k, 1
  %fact.next = getelementptr i64, ptr %fact, i64 3
  br label %dim

call:
  %total = add i64 %arrays, %dims
  %thread = call ptr @PyEval_SaveThread()
  switch i64 %total, label %impossible [{cases}]

{calls}
ran:
  %fault = phi i64 {faults}
  call void @PyEval_RestoreThread(ptr %thread)
  %is.fine = icmp eq i64 %fault, 0
  br i1 %is.fine, label %fine, label %stopped

stopped:
  %number = call ptr @PyLong_FromLongLong(i64 %fault)
  ret ptr %number

fine:
  %none.at = getelementptr i64, ptr %spec, i64 5
  %none = load ptr, ptr %none.at
  call void @Py_IncRef(ptr %none)
  ret ptr %none

refuse:
  %no.at = getelementptr i64, ptr %spec, i64 4
  %no = load ptr, ptr %no.at
  call void @Py_IncRef(ptr %no)
  ret ptr %no

impossible:
  unreachable
}}
"""
