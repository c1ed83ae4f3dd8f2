"""Writes the LLVM text of the function that checks arrays and calls a kernel, from the offsets in an array object.

Python calls `tirlite_quick(self, args, count)` (METH_FASTCALL): `self` is a bytes object that describes the parameters
of one version of a kernel, see `runtime.quick`; `args` are array objects and numbers. It checks their types, flags and
shapes in NumPy's own structs. If all fit, it releases the GIL and calls the kernel, and returns None, or as an int the
fault's number times `VERSIONS` plus the version's number. If something does not fit, or the kernel returns the fault
that says the call is for another version, it goes on with that version's description; arguments are not checked again
if that version takes the same. Without one it returns NotImplemented, with nothing done: Python then checks again and
reports the error.

All kernels share one block for the temporaries that the caller provides; a word in its record says whether it is in
use. A call that finds it in use, or needs a larger one, is left to Python.

The words of a description:
- 0: the number of given parameters; 1: of dims; 2: the address of the kernel; 3 to 5: of ndarray, NotImplemented, None
- 6: the number of strides that the kernel takes
- 7: the record of the shared block, or 0; 8: the function that computes the block's size from numbers and dims, or 0;
  9: else the size
- 10, 11: the least and the most bytes of all given arrays together
- 12: the description of the next version, or 0; 13: the fault that selects it, or 0; 14: this version's number
- 15: the number of words of the computed extents; 16: whether the next version takes the same parameters
- 17: the fault that selects the sequential version, which takes the same; 18: its description, or 0
- 19: the number of operands for parameters; 20: how many of these are constants, known beforehand
- from 21: for each dim its least and largest value and its divisor; then the computed extents, see `quick_extent`; then
  for each constant its place among the operands and its address
- for each array: its place among the operands, its dtype object, required flags, the bits of its address that must be
  0, bytes of an element, whether it is written, its rank, how many axes have a stride that the kernel takes; for each
  axis its extent, or inverted (`~`) the number of its dim or `MOST_GIVEN` plus the start of its program; for each axis
  the dim's factor; for each axis the number added. A number has other words behind its place, see `number_text`.

Strides come first among the kernel's operands, in elements. Axes without such a stride must have stride 1, and a kernel
with strides requires that not all arrays are dense: those are for another version. Of a written array no two elements
may overlap; if byte ranges of arrays overlap and one is written, Python decides.
"""

from __future__ import annotations

from tirlite.codegen.llvm.quick_blocks import (
    MOST_GIVEN,
    MOST_OPERANDS,
    MOST_REALS,
    number_text,
    run_text,
    with_addresses,
)
from tirlite.codegen.llvm.quick_extent import EXTENT_TEXT
from tirlite.record import record

QUICK_CALL = "tirlite_quick"
API = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyLong_FromLongLong", "PyLong_AsLongLongAndOverflow", "Py_IncRef")


@record
class ArrayOffsets:
    """Byte offsets in Python's and NumPy's objects: bytes' data, an object's type, a number, an array's fields."""

    words: int
    type: int
    number: int
    data: int
    rank: int
    shape: int
    strides: int
    dtype: int
    flags: int


def quick_text(at: ArrayOffsets) -> str:
    """The module with `tirlite_quick`; it calls the functions of Python's C API in `API`."""
    text = _TEXT.format(
        most=MOST_GIVEN,
        operands=MOST_OPERANDS,
        room=MOST_GIVEN + 1,  # a number is stored in three arrays, also past the end of some
        words=at.words,
        type=at.type,
        reals_loaded="\n".join(f"  %real.{k} = load double, word {k} of %reals" for k in range(MOST_REALS)),
        data=at.data,
        rank=at.rank,
        shape=at.shape,
        strides=at.strides,
        dtype=at.dtype,
        flags=at.flags,
        run_text=run_text(at.words),
    )
    return with_addresses(text + number_text(at.type, at.number) + EXTENT_TEXT)


_TEXT = """
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare void @Py_IncRef(ptr)

define ptr @tirlite_quick(ptr %self, ptr %args, i64 %count) {{
entry:
  %operands = alloca [{operands} x i64], align 16
  %values = alloca [{room} x i64], align 16
  %numbers = alloca [{room} x i64], align 16
  %reals = alloca [{room} x i64], align 16
  %bits.at = alloca i64
  %begins = alloca [{room} x i64], align 16
  %ends = alloca [{room} x i64], align 16
  %writes = alloca [{room} x i64], align 16
  %computed.ones = alloca [{room} x {{i64, i64}}], align 16
  %served = alloca ptr
  br label %version

version:
  %this = phi ptr [%self, %entry], [%next, %pass.on]
  %spec = getelementptr i8, ptr %this, i64 {words}
  %params = load i64, ptr %spec
  %dims = load i64, word 1 of %spec
  %ndarray = load ptr, word 3 of %spec
  %strides = load i64, word 6 of %spec
  %least.bytes = load i64, word 10 of %spec
  %most.bytes = load i64, word 11 of %spec
  %program.words = load i64, word 15 of %spec
  %words.of.params = load i64, word 19 of %spec
  %known.words = load i64, word 20 of %spec
  %facts = getelementptr i64, ptr %spec, i64 21
  %fact.words = mul i64 %dims, 3
  %programs = getelementptr i64, ptr %facts, i64 %fact.words
  %known.ones = getelementptr i64, ptr %programs, i64 %program.words
  %known.pairs = mul i64 %known.words, 2
  %first = getelementptr i64, ptr %known.ones, i64 %known.pairs
  %pointers = getelementptr i64, ptr %operands, i64 %strides
  %counted = icmp eq i64 %count, %params
  store i64 0, ptr %computed.ones
  store ptr %spec, ptr %served
  br i1 %counted, label %clear, label %refuse

clear:
  %c = phi i64 [0, %version], [%c.next, %clear.one]
  %c.done = icmp eq i64 %c, %dims
  br i1 %c.done, label %know, label %clear.one

clear.one:
  %c.at = getelementptr i64, ptr %values, i64 %c
  store i64 -1, ptr %c.at
  %c.next = add i64 %c, 1
  br label %clear

know:
  %j = phi i64 [0, %clear], [%j.next, %know.one]
  %known.one = phi ptr [%known.ones, %clear], [%known.one.next, %know.one]
  %j.done = icmp eq i64 %j, %known.words
  br i1 %j.done, label %array, label %know.one

know.one:
  %known.place = load i64, ptr %known.one
  %known.word = load i64, word 1 of %known.one
  %known.at.place = getelementptr i64, ptr %pointers, i64 %known.place
  store i64 %known.word, ptr %known.at.place
  %j.next = add i64 %j, 1
  %known.one.next = getelementptr i64, ptr %known.one, i64 2
  br label %know

array:
  %a = phi i64 [0, %know], [%a.next, %apart]
  %placed.p = phi ptr [%first, %know], [%p.next, %apart]
  %q = phi ptr [%operands, %know], [%q.next, %apart]
  %dense = phi i64 [1, %know], [%dense.next, %apart]
  %all.bytes = phi i64 [0, %know], [%all.bytes.next, %apart]
  %n = phi i64 [0, %know], [%n.next, %apart]
  %r = phi i64 [0, %know], [%r.next, %apart]
  %a.done = icmp eq i64 %a, %params
  br i1 %a.done, label %bound.all, label %look

bound.all:
  %takes.none = icmp eq i64 %strides, 0
  %has.any = icmp eq i64 %dense, 0
  %is.meant.1 = or i1 %takes.none, %has.any
  %is.large = icmp sge i64 %all.bytes, %least.bytes
  %is.small = icmp sle i64 %all.bytes, %most.bytes
  %is.sized = and i1 %is.large, %is.small
  %is.meant.2 = and i1 %is.meant.1, %is.sized
  %are.right = call i1 @are_as_computed(ptr %computed.ones, ptr %programs, ptr %values)
  %is.meant = and i1 %is.meant.2, %are.right
  br i1 %is.meant, label %dim, label %refuse

look:
  %given = load ptr, pointer %a of %args
  %type = load ptr, byte {type} of %given
  %my.place = load i64, ptr %placed.p
  %p = getelementptr i64, ptr %placed.p, i64 1
  %wanted.dtype = load ptr, ptr %p
  %is.number = icmp eq ptr %wanted.dtype, null
  %is.array = icmp eq ptr %type, %ndarray
  %axes = getelementptr i64, ptr %p, i64 7
  %wanted.rank = load i64, word 5 of %p
  %moved = load i64, word 6 of %p
  %my.operand = getelementptr i64, ptr %pointers, i64 %my.place
  %my.begin = getelementptr i64, ptr %begins, i64 %a
  %my.end = getelementptr i64, ptr %ends, i64 %a
  br i1 %is.number, label %take.number, label %look.array

take.number:
  %is.float.number = call i64 @number(ptr %given, ptr %p, ptr %bits.at)
  %is.taken = icmp sge i64 %is.float.number, 0
  %bits = load i64, ptr %bits.at
  br i1 %is.taken, label %keep, label %refuse

keep:
  %is.word = xor i64 %is.float.number, 1
  store i64 0, ptr %my.begin
  store i64 0, ptr %my.end
  store i64 %bits, ptr %my.operand
  %my.number = getelementptr i64, ptr %numbers, i64 %n
  store i64 %bits, ptr %my.number
  %my.real = getelementptr i64, ptr %reals, i64 %r
  store i64 %bits, ptr %my.real
  br label %apart

look.array:
  br i1 %is.array, label %parts, label %refuse

parts:
  %dtype = load ptr, byte {dtype} of %given
  %same.dtype = icmp eq ptr %dtype, %wanted.dtype
  %mask = load i64, word 1 of %p
  %flags.bits = load i32, byte {flags} of %given
  %flags = zext i32 %flags.bits to i64
  %flags.set = and i64 %flags, %mask
  %has.flags = icmp eq i64 %flags.set, %mask
  %zeros = load i64, word 2 of %p
  %data = load i64, byte {data} of %given
  %low.bits = and i64 %data, %zeros
  %is.aligned = icmp eq i64 %low.bits, 0
  %rank.bits = load i32, byte {rank} of %given
  %rank = zext i32 %rank.bits to i64
  %same.rank = icmp eq i64 %rank, %wanted.rank
  %fits.1 = and i1 %same.dtype, %has.flags
  %fits.2 = and i1 %is.aligned, %same.rank
  %fits = and i1 %fits.1, %fits.2
  %item = load i64, word 3 of %p
  %write = load i64, word 4 of %p
  %is.read = icmp eq i64 %write, 0
  %is.strided = icmp ne i64 %moved, 0
  %shape = load ptr, byte {shape} of %given
  %steps = load ptr, byte {strides} of %given
  br i1 %fits, label %axis, label %refuse

axis:
  %x = phi i64 [%wanted.rank, %parts], [%x.next, %axis.fits]
  %size = phi i64 [%item, %parts], [%size.next, %axis.fits]
  %reach = phi i64 [%item, %parts], [%reach.next, %axis.fits]
  %low = phi i64 [%data, %parts], [%low.next, %axis.fits]
  %high = phi i64 [%data, %parts], [%high.next, %axis.fits]
  %x.done = icmp eq i64 %x, 0
  br i1 %x.done, label %placed, label %axis.look

axis.look:
  %x.next = sub i64 %x, 1
  %extent = load i64, word %x.next of %shape
  %wanted = load i64, word %x.next of %axes
  %is.fixed = icmp sge i64 %wanted, 0
  %slot = xor i64 %wanted, -1
  %is.computed = icmp sge i64 %slot, {most}
  br i1 %is.fixed, label %right, label %named

named:
  br i1 %is.computed, label %computed, label %bound

computed:
  %program.at = sub i64 %slot, {most}
  call void @keep_computed(ptr %computed.ones, i64 %extent, i64 %program.at)
  br label %axis.step

right:
  %is.right = icmp eq i64 %extent, %wanted
  br i1 %is.right, label %axis.step, label %refuse

bound:
  %factor.place = add i64 %wanted.rank, %x.next
  %factor = load i64, word %factor.place of %axes
  %added.place = add i64 %wanted.rank, %factor.place
  %added = load i64, word %added.place of %axes
  %less = sub i64 %extent, %added
  %is.dim = icmp sge i64 %less, 0
  %is.whole.dim = icmp eq i64 %factor, 1
  br i1 %is.dim, label %bound.some, label %refuse

bound.some:
  br i1 %is.whole.dim, label %bound.value, label %bound.part

bound.part:
  %part = udiv i64 %less, %factor
  %parts.together = mul i64 %part, %factor
  %is.exact = icmp eq i64 %parts.together, %less
  br i1 %is.exact, label %bound.value, label %refuse

bound.value:
  %dim.value = phi i64 [%less, %bound.some], [%part, %bound.part]
  %known = load i64, word %slot of %values
  store i64 %dim.value, ptr %known.at
  %is.new = icmp slt i64 %known, 0
  %is.same = icmp eq i64 %known, %dim.value
  %agrees = or i1 %is.new, %is.same
  br i1 %agrees, label %axis.step, label %refuse

axis.step:
  br i1 %is.strided, label %own.step, label %axis.fits

own.step:
  %step.given = load i64, word %x.next of %steps
  %is.single = icmp eq i64 %extent, 1
  %own = select i1 %is.single, i64 0, i64 %step.given
  %elements = sdiv i64 %own, %item
  %whole = mul i64 %elements, %item
  %is.whole = icmp eq i64 %whole, %own
  %is.down = icmp slt i64 %own, 0
  %own.minus = sub i64 0, %own
  %own.size = select i1 %is.down, i64 %own.minus, i64 %own
  %is.outside = icmp sge i64 %own.size, %reach
  %is.apart.1 = or i1 %is.outside, %is.read
  %is.apart = or i1 %is.apart.1, %is.single
  %is.good = and i1 %is.whole, %is.apart
  %is.moved = icmp slt i64 %x.next, %moved
  br i1 %is.good, label %step.good, label %refuse

step.good:
  br i1 %is.moved, label %hand.over, label %unit.step

hand.over:
  %my.stride = getelementptr i64, ptr %q, i64 %x.next
  store i64 %elements, ptr %my.stride
  br label %axis.fits

unit.step:
  %is.unit.1 = icmp eq i64 %elements, 1
  %is.unit = or i1 %is.unit.1, %is.single
  br i1 %is.unit, label %axis.fits, label %refuse

axis.fits:
  %step = phi i64 [%reach, %axis.step], [%own, %hand.over], [%own, %unit.step]
  %size.next = mul i64 %size, %extent
  %is.none = icmp eq i64 %extent, 0
  %but.one = sub i64 %extent, 1
  %others = select i1 %is.none, i64 0, i64 %but.one
  %move = mul i64 %step, %others
  %goes.down = icmp slt i64 %move, 0
  %down = select i1 %goes.down, i64 %move, i64 0
  %up = select i1 %goes.down, i64 0, i64 %move
  %low.next = add i64 %low, %down
  %high.next = add i64 %high, %up
  %reach.up = add i64 %reach, %up
  %reach.next = sub i64 %reach.up, %down
  br label %axis

placed:
  %end = add i64 %high, %item
  store i64 %data, ptr %my.operand
  store i64 %low, ptr %my.begin
  store i64 %end, ptr %my.end
  %my.write = getelementptr i64, ptr %writes, i64 %a
  store i64 %write, ptr %my.write
  br label %other

other:
  %b = phi i64 [0, %placed], [%b.next, %other.fits]
  %b.done = icmp eq i64 %b, %a
  br i1 %b.done, label %apart, label %other.look

other.look:
  %its.begin = load i64, word %b of %begins
  %its.end = load i64, word %b of %ends
  %its.write = load i64, word %b of %writes
  %begins.in = icmp ult i64 %low, %its.end
  %ends.in = icmp ult i64 %its.begin, %end
  %either = or i64 %write, %its.write
  %is.written = icmp ne i64 %either, 0
  %meet = and i1 %begins.in, %ends.in
  %clash = and i1 %meet, %is.written
  br i1 %clash, label %refuse, label %other.fits

other.fits:
  %b.next = add i64 %b, 1
  br label %other

apart:
  %integers = phi i64 [0, %other], [%is.word, %keep]
  %floats = phi i64 [0, %other], [%is.float.number, %keep]
  %my.bytes = phi i64 [%size, %other], [0, %keep]
  %my.flags = phi i64 [%flags, %other], [1, %keep]
  %n.next = add i64 %n, %integers
  %r.next = add i64 %r, %floats
  %a.next = add i64 %a, 1
  %all.bytes.next = add i64 %all.bytes, %my.bytes
  %axis.words = mul i64 %wanted.rank, 3
  %p.next = getelementptr i64, ptr %axes, i64 %axis.words
  %q.next = getelementptr i64, ptr %q, i64 %moved
  %dense.next = and i64 %dense, %my.flags
  br label %array

dim:
  %k = phi i64 [0, %bound.all], [%k.next, %dim.fits]
  %fact = phi ptr [%facts, %bound.all], [%fact.next, %dim.fits]
  %k.done = icmp eq i64 %k, %dims
  br i1 %k.done, label %call, label %dim.look

dim.look:
  %value = load i64, word %k of %values
  %least = load i64, ptr %fact
  %most = load i64, word 1 of %fact
  %not.low = icmp sge i64 %value, %least
  %not.high = icmp sle i64 %value, %most
  %in.range = and i1 %not.low, %not.high
  %multiple = load i64, word 2 of %fact
  %is.any = icmp eq i64 %multiple, 1
  br i1 %in.range, label %dim.multiple, label %refuse

dim.multiple:
  br i1 %is.any, label %dim.fits, label %dim.rest

dim.rest:
  %rest = urem i64 %value, %multiple
  %is.multiple = icmp eq i64 %rest, 0
  br i1 %is.multiple, label %dim.fits, label %refuse

dim.fits:
  %o.place = add i64 %words.of.params, %k
  %o.dim = getelementptr i64, ptr %pointers, i64 %o.place
  store i64 %value, ptr %o.dim
  %n.place = add i64 %n, %k
  %n.dim = getelementptr i64, ptr %numbers, i64 %n.place
  store i64 %value, ptr %n.dim
  %k.next = add i64 %k, 1
  %fact.next = getelementptr i64, ptr %fact, i64 3
  br label %dim

call:
  %given.operands = add i64 %words.of.params, %dims
  %size.operands = add i64 %n, %dims
{reals_loaded}
  %total = add i64 %given.operands, %strides
  %thread = call ptr @PyEval_SaveThread()
  br label %serve

{run_text}
refuse:
  %refused = load ptr, ptr %served
  %next = load ptr, word 12 of %refused
  %is.last = icmp eq ptr %next, null
  br i1 %is.last, label %leave, label %pass.on

pass.on:
  br label %version

leave:
  %no = load ptr, word 4 of %refused
  call void @Py_IncRef(ptr %no)
  ret ptr %no
}}
"""
