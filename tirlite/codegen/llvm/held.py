"""Writes the LLVM text of the function that tells what this machine's caches hold, on x86-64.

`tirlite.holds(bytes)` returns 1 if results are better stored to the caches where the arrays of a call take so many
bytes in all, and 0 if they are better stored past them. What a processor reports says little: a virtual machine sees
the whole cache that it shares with its neighbours, who may use most of it. So the first call for up to 24, 48 or 96 MiB
tries both with 16, 32 or 64, in 10 to 50 ms. More is never held. LLVM takes 3 ms for this text without optimising it,
so its loops are unrolled.
"""

from __future__ import annotations

from tirlite.target.convention import HOLDS

_TEXT = """
@found = internal global [3 x i64] zeroinitializer  ; for each size: 0 where it was not tried, else the answer plus 1

declare ptr @aligned_alloc(i64, i64)
declare i32 @madvise(ptr, i64, i32)
declare void @free(ptr)
declare i64 @llvm.readcyclecounter()
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.x86.sse.sfence()

define i64 @HOLDS(i64 %bytes) {
  %never = icmp ugt i64 %bytes, 100663296
  br i1 %never, label %no, label %look
look:
  %over16 = icmp ugt i64 %bytes, 25165824
  %over32 = icmp ugt i64 %bytes, 50331648
  %one = zext i1 %over16 to i64
  %two = zext i1 %over32 to i64
  %place = add i64 %one, %two
  %answer = getelementptr i64, ptr @found, i64 %place
  %before = load atomic i64, ptr %answer monotonic, align 8
  %is_new = icmp eq i64 %before, 0
  br i1 %is_new, label %try, label %done
try:
  %size = shl i64 16777216, %place
  %tried = call i64 @held(i64 %size)
  %now = add i64 %tried, 1
  store atomic i64 %now, ptr %answer monotonic, align 8
  br label %done
done:
  %known = phi i64 [ %before, %look ], [ %now, %try ]
  %result = sub i64 %known, 1
  ret i64 %result
no:
  ret i64 0
}

; Whether copying one half of this many bytes to the other is as fast to the caches as past them.
define internal i64 @held(i64 %size) {
entry:
  %memory = call ptr @aligned_alloc(i64 2097152, i64 %size)
  %is_none = icmp eq ptr %memory, null
  br i1 %is_none, label %none, label %have
none:
  ret i64 0
have:
  ; With large pages, if the system has some, the memory is there in half the time.
  %advised = call i32 @madvise(ptr %memory, i64 %size, i32 14)
  call void @llvm.memset.p0.i64(ptr %memory, i8 1, i64 %size, i1 false)
  br label %round
round:
  ; A cache keeps what comes again and again, and the first copy past it has to take out what it kept.
  %done = phi i64 [ 0, %have ], [ %more, %next ]
  %least = phi i64 [ -1, %have ], [ %through, %next ]
  %least_past = phi i64 [ -1, %have ], [ %past, %next ]
  %goes_past = icmp ugt i64 %done, 3
  br i1 %goes_past, label %behind, label %into
into:
  %a = call i64 @copy(ptr %memory, i64 %size)
  br label %next
behind:
  %b = call i64 @copy_past(ptr %memory, i64 %size)
  br label %next
next:
  %taken = phi i64 [ %a, %into ], [ -1, %behind ]
  %taken_past = phi i64 [ -1, %into ], [ %b, %behind ]
  %through = call i64 @llvm.umin.i64(i64 %least, i64 %taken)
  %past = call i64 @llvm.umin.i64(i64 %least_past, i64 %taken_past)
  %more = add i64 %done, 1
  %again = icmp ult i64 %more, 6
  br i1 %again, label %round, label %compare
compare:
  call void @free(ptr %memory)
  %is_held = icmp ule i64 %through, %past
  %result = zext i1 %is_held to i64
  ret i64 %result
}
"""

# Copies the first half of this many bytes to the second one, by rows that are read before, and reads that, as whoever
# uses the result does; returns the cycles it took.
_COPY = """
define internal i64 @NAME(ptr %memory, i64 %size) {
entry:
  %half = lshr i64 %size, 1
  %results = getelementptr i8, ptr %memory, i64 %half
  %start = call i64 @llvm.readcyclecounter()
  br label %row
row:
  %first = phi i64 [ 0, %entry ], [ %following, %next ]
  %following = add i64 %first, 4096
  br label %read
read:
  %at = phi i64 [ %first, %row ], [ %further, %read ]
  %read.0 = phi <8 x i64> [ zeroinitializer, %row ], [ %read.LINES, %read ]
  %source = getelementptr i8, ptr %memory, i64 %atREADS
  %further = add i64 %at, BYTES
  %reads = icmp ult i64 %further, %following
  br i1 %reads, label %read, label %write
write:
  %line = phi i64 [ %first, %read ], [ %behind, %write ]
  %from = getelementptr i8, ptr %memory, i64 %line
  %to = getelementptr i8, ptr %results, i64 %lineWRITES
  %behind = add i64 %line, BYTES
  %writes = icmp ult i64 %behind, %following
  br i1 %writes, label %write, label %next
next:
  %goes_on = icmp ult i64 %following, %half
  br i1 %goes_on, label %row, label %fence
fence:
  call void @llvm.x86.sse.sfence()
  br label %use
use:
  %place = phi i64 [ 0, %fence ], [ %onward, %use ]
  %use.0 = phi <8 x i64> [ zeroinitializer, %fence ], [ %use.LINES, %use ]
  %result = getelementptr i8, ptr %results, i64 %placeUSES
  %onward = add i64 %place, BYTES
  %uses = icmp ult i64 %onward, %half
  br i1 %uses, label %use, label %done
done:
  store volatile <8 x i64> %use.LINES, ptr %memory, align 64
  %stop = call i64 @llvm.readcyclecounter()
  %taken = sub i64 %stop, %start
  ret i64 %taken
}
"""

# The lines of 64 bytes that an iteration reads or writes.
_LINES = 8


def held_text() -> str:
    """The module with this function."""
    return _TEXT.replace("@HOLDS(", f"@{HOLDS}(") + _copy("copy", "") + _copy("copy_past", _PAST) + "\n!0 = !{i32 1}\n"


_PAST = ", !nontemporal !0"


def _copy(name: str, hint: str) -> str:
    """The function that copies, with a hint for stores."""
    text = _COPY.replace("NAME", name).replace("LINES", str(_LINES)).replace("BYTES", str(64 * _LINES))
    text = text.replace("READS", "".join(_read("read", "source", line) for line in range(_LINES)))
    text = text.replace("USES", "".join(_read("use", "result", line) for line in range(_LINES)))
    return text.replace("WRITES", "".join(_written(line, hint) for line in range(_LINES)))


def _read(name: str, base: str, line: int) -> str:
    """Reads a line and adds it to what was read before."""
    return f"""
  %{name}.at.{line} = getelementptr i8, ptr %{base}, i64 {64 * line}
  %{name}.value.{line} = load <8 x i64>, ptr %{name}.at.{line}, align 64
  %{name}.{line + 1} = or <8 x i64> %{name}.{line}, %{name}.value.{line}"""


def _written(line: int, hint: str) -> str:
    """Copies a line."""
    return f"""
  %from.{line} = getelementptr i8, ptr %from, i64 {64 * line}
  %to.{line} = getelementptr i8, ptr %to, i64 {64 * line}
  %copy.{line} = load <8 x i64>, ptr %from.{line}, align 64
  store <8 x i64> %copy.{line}, ptr %to.{line}, align 64{hint}"""
