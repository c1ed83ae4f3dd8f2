"""Writes the LLVM text of the pool of worker threads that run parallel loops, for a machine given by name.

`tirlite.fork_join(task, closure, count, workers, chunks)` splits `count` iterations into `chunks` of almost equal
length, and runs `task(closure, first, end, worker)` on each, in the calling thread, worker 0, and in pool threads. It
returns the first nonzero result by chunk number; other negative results are negated addresses, which are freed. If the
pool is in use by another thread or an enclosing task, the caller runs all iterations as one chunk.
The caller polls for signals while it waits, see `signals`; after an interrupt no further chunk starts.

A job gets at most as many threads as `tirlite.pool_limit` allows, and as the caller's affinity mask has processors if
these are fewer than the machine's. Workers get the caller's mask without the processor that it runs on: the system may
otherwise wake a worker there, if threads of other runtimes spin on the rest, and a job of a millisecond would end
before the worker is migrated.

A job is published by one store to `@ticket`: the job number in the upper 32 bits, below it the end and the begin of the
chunks that are left. Threads take chunks by compare-and-swap, so one that wakes late, or reads a job being replaced,
takes nothing. The caller takes chunks too, and waits only for chunks that others have begun, so a worker that is slow
to wake delays nobody. The caller takes chunks from the front, the first without contention, and the workers from the
back, so in successive loops each finds its data in its caches. Idle threads spin for some microseconds, then sleep on
a futex.
"""

from __future__ import annotations

from tirlite.target.convention import INTERRUPTED
from tirlite.target.target import MOST_WORKERS

# How often a waiting thread spins before it sleeps: some tens of microseconds.
_LOOKS = 2000
# The stack size of a worker, independent of `ulimit`: a kernel takes some tens of KiB, a C function may take more.
_STACK_BYTES = 1 << 20

# For each architecture: the numbers of the system calls futex and sched_getaffinity, and the spin-wait hint.
_MACHINES = {
    "x86_64": (202, 204, "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": (98, 123, "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}

_ALONE = """
define i64 @tirlite.fork_join(ptr %task, ptr %closure, i64 %count, i64 %workers, i64 %chunks) {
  %code = tail call i64 %task(ptr %closure, i64 0, i64 %count, i64 0)
  ret i64 %code
}

define i64 @tirlite.pool_reset() {
  ret i64 0
}

define i64 @tirlite.pool_limit(i64 %most, i64 %processors) {
  ret i64 1
}
"""

_POOL = """
@ticket = internal global i64 0, align 64  ; number of the job, 32 bits; end and begin of the chunks left, 16 bits each
@sleepers = internal global i32 0, align 64
@done = internal global i32 0, align 64
@waiting = internal global i32 0
@busy = internal global i32 0, align 64
@threads = internal global i64 0
@task = internal global ptr null
@closure = internal global ptr null
@count = internal global i64 0
@workers = internal global i64 0
@chunks = internal global i64 0
@codes = internal global ptr null
@patience = internal constant [2 x i64] [i64 0, i64 20000000]  ; seconds and nanoseconds
@most = internal global i64 -1  ; threads that may work on a job
@processors = internal global i64 0  ; that the machine has
@places = internal global <16 x i64> zeroinitializer, align 64  ; the processors that workers run on, a bit each
@handles = internal global [MOST_WORKERS x i64] zeroinitializer  ; the threads, by the numbers of the workers

declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i32 @sched_getcpu()
declare i64 @syscall(i64, ...)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @tirlite.poll()
declare i64 @tirlite.stop(i64)
declare <16 x i64> @llvm.ctpop.v16i64(<16 x i64>)
declare i64 @llvm.vector.reduce.add.v16i64(<16 x i64>)
declare i1 @llvm.vector.reduce.or.v16i1(<16 x i1>)
PAUSE_DECLARATION

; Takes chunks of the job that is current, as long as there are any, and returns the ticket that has none left. Who has
; published it begins with the first one, which no other thread may take.
define internal i64 @take(i64 %worker, i1 %publishes) {
entry:
  br label %next
next:
  %has_first = phi i1 [ %publishes, %entry ], [ false, %swap ], [ false, %finish ], [ false, %tell ], [ false, %wake ]
  %current = load atomic i64, ptr @ticket seq_cst, align 8
  %own = and i64 %current, -65536
  %ticket = select i1 %has_first, i64 %own, i64 %current
  %upper = lshr i64 %ticket, 16
  %end = and i64 %upper, 65535
  %begin = and i64 %ticket, 65535
  %left = icmp ult i64 %begin, %end
  br i1 %left, label %look, label %leave
look:
  %workers = load atomic i64, ptr @workers monotonic, align 8
  %task = load atomic ptr, ptr @task monotonic, align 8
  %closure = load atomic ptr, ptr @closure monotonic, align 8
  %count = load atomic i64, ptr @count monotonic, align 8
  %chunks = load atomic i64, ptr @chunks monotonic, align 8
  %codes = load atomic ptr, ptr @codes monotonic, align 8
  %wanted = icmp ult i64 %worker, %workers
  br i1 %wanted, label %try, label %leave
try:
  %calls = icmp eq i64 %worker, 0
  %before_end = sub i64 %end, 1
  %chunk = select i1 %calls, i64 %begin, i64 %before_end
  br i1 %has_first, label %run, label %swap
swap:
  %step = select i1 %calls, i64 1, i64 -65536
  %following = add i64 %ticket, %step
  %pair = cmpxchg ptr @ticket, i64 %ticket, i64 %following seq_cst seq_cst
  %taken = extractvalue { i64, i1 } %pair, 1
  br i1 %taken, label %run, label %next
run:
  %share = udiv i64 %count, %chunks
  %rest = urem i64 %count, %chunks
  %shares = mul i64 %share, %chunk
  %extra = call i64 @llvm.umin.i64(i64 %chunk, i64 %rest)
  %first = add i64 %shares, %extra
  %longer = icmp ult i64 %chunk, %rest
  %one = zext i1 %longer to i64
  %length = add i64 %share, %one
  %last = add i64 %first, %length
  %stopped = call i64 @tirlite.stop(i64 -1)
  %goes_on = icmp eq i64 %stopped, 0
  br i1 %goes_on, label %call, label %finish
call:
  %result = call i64 %task(ptr %closure, i64 %first, i64 %last, i64 %worker)
  %interrupted = icmp eq i64 %result, INTERRUPTED
  br i1 %interrupted, label %stop, label %finish
stop:
  %t = call i64 @tirlite.stop(i64 1)
  br label %finish
finish:
  %code = phi i64 [ INTERRUPTED, %run ], [ %result, %call ], [ %result, %stop ]
  %place = getelementptr i64, ptr %codes, i64 %chunk
  store i64 %code, ptr %place
  %before = atomicrmw add ptr @done, i32 1 seq_cst
  %after = add i32 %before, 1
  %all = trunc i64 %chunks to i32
  %complete = icmp eq i32 %after, %all
  br i1 %complete, label %tell, label %next
tell:
  %asleep = load atomic i32, ptr @waiting seq_cst, align 4
  %is_asleep = icmp ne i32 %asleep, 0
  br i1 %is_asleep, label %wake, label %next
wake:
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr @done, i32 129, i32 1)
  br label %next
leave:
  ret i64 %ticket
}

define internal ptr @work(ptr %argument) {
entry:
  %worker = ptrtoint ptr %argument to i64
  br label %again
again:
  %ticket = call i64 @take(i64 %worker, i1 false)
  %job64 = lshr i64 %ticket, 32
  %job = trunc i64 %job64 to i32
  br label %spin
spin:
  %looks = phi i32 [ 0, %again ], [ %more, %pause ]
  %now = load atomic i64, ptr @ticket seq_cst, align 8
  %current = lshr i64 %now, 32
  %same = icmp eq i64 %current, %job64
  br i1 %same, label %pause, label %again
pause:
  PAUSE
  %more = add i32 %looks, 1
  %enough = icmp eq i32 %more, LOOKS
  br i1 %enough, label %sleep, label %spin
sleep:
  %s = atomicrmw add ptr @sleepers, i32 1 seq_cst
  ; The kernel looks at the number of the job again before the thread sleeps.
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr getelementptr (i8, ptr @ticket, i64 4), i32 128, i32 %job, ptr null)
  %t = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %again
}

define internal void @start(i64 %wanted) {
entry:
  %handle = alloca i64
  %attributes = alloca [16 x i64]  ; larger than any system's pthread_attr_t
  br label %test
test:
  %threads = load i64, ptr @threads
  %next = add i64 %threads, 1
  %missing = icmp ult i64 %next, %wanted
  br i1 %missing, label %create, label %leave
create:
  %argument = inttoptr i64 %next to ptr
  call i32 @pthread_attr_init(ptr %attributes)
  call i32 @pthread_attr_setstacksize(ptr %attributes, i64 STACK_BYTES)
  %failed = call i32 @pthread_create(ptr %handle, ptr %attributes, ptr @work, ptr %argument)
  call i32 @pthread_attr_destroy(ptr %attributes)
  %created = icmp eq i32 %failed, 0
  br i1 %created, label %keep, label %leave
keep:
  store i64 %next, ptr @threads
  %thread = load i64, ptr %handle
  %kept = getelementptr i64, ptr @handles, i64 %next
  store i64 %thread, ptr %kept
  call i32 @pthread_detach(i64 %thread)
  call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr @places)
  br label %test
leave:
  ret void
}

define internal void @publish(ptr %task, ptr %closure, i64 %count, i64 %workers, i64 %chunks, ptr %codes) {
  store atomic ptr %task, ptr @task monotonic, align 8
  store atomic ptr %closure, ptr @closure monotonic, align 8
  store atomic i64 %count, ptr @count monotonic, align 8
  store atomic i64 %workers, ptr @workers monotonic, align 8
  store atomic i64 %chunks, ptr @chunks monotonic, align 8
  store atomic ptr %codes, ptr @codes monotonic, align 8
  store atomic i32 0, ptr @done monotonic, align 4
  store atomic i32 0, ptr @waiting monotonic, align 4
  %goes_on = call i64 @tirlite.stop(i64 0)
  %old = load atomic i64, ptr @ticket monotonic, align 8
  %job = lshr i64 %old, 32
  %following = add i64 %job, 1
  %upper = shl i64 %following, 32
  %middle = shl i64 %chunks, 16
  %taken = or i64 %middle, 1
  %ticket = or i64 %upper, %taken
  store atomic i64 %ticket, ptr @ticket seq_cst, align 8
  %sleepers = load atomic i32, ptr @sleepers seq_cst, align 4
  %some = icmp ne i32 %sleepers, 0
  br i1 %some, label %wake, label %leave
wake:
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr getelementptr (i8, ptr @ticket, i64 4), i32 129, i32 2147483647)
  br label %leave
leave:
  ret void
}

; Waits until all chunks are done, and asks for signals now and then: 0, or that one interrupts.
define internal i64 @join(i64 %chunks) {
entry:
  %all = trunc i64 %chunks to i32
  br label %spin
spin:
  %looks = phi i32 [ 0, %entry ], [ %more, %pause ]
  %done = load atomic i32, ptr @done seq_cst, align 4
  %finished = icmp eq i32 %done, %all
  br i1 %finished, label %ready, label %pause
ready:
  ret i64 0
pause:
  PAUSE
  %more = add i32 %looks, 1
  %enough = icmp eq i32 %more, LOOKS
  br i1 %enough, label %sleep, label %spin
sleep:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  br label %look
look:
  %found = phi i64 [ 0, %sleep ], [ %code, %stop ], [ %found, %wait ]
  %seen = load atomic i32, ptr @done seq_cst, align 4
  %complete = icmp eq i32 %seen, %all
  br i1 %complete, label %leave, label %wait
wait:
  call i64 (i64, ...) @syscall(i64 FUTEX, ptr @done, i32 128, i32 %seen, ptr @patience)
  %code = call i64 @tirlite.poll()
  %interrupted = icmp ne i64 %code, 0
  br i1 %interrupted, label %stop, label %look
stop:
  %t = call i64 @tirlite.stop(i64 1)
  br label %look
leave:
  ret i64 %found
}

; The first code that is not 0; what later ones lead to is freed.
define internal i64 @lowest(ptr %codes, i64 %chunks) {
entry:
  br label %test
test:
  %chunk = phi i64 [ 0, %entry ], [ %next, %more ]
  %found = phi i64 [ 0, %entry ], [ %kept, %more ]
  %some = icmp ult i64 %chunk, %chunks
  br i1 %some, label %look, label %leave
look:
  %place = getelementptr i64, ptr %codes, i64 %chunk
  %code = load i64, ptr %place
  %is_first = icmp eq i64 %found, 0
  %kept = select i1 %is_first, i64 %code, i64 %found
  %is_record = icmp slt i64 %code, 0
  %not_first = xor i1 %is_first, true
  %dropped = and i1 %is_record, %not_first
  br i1 %dropped, label %drop, label %more
drop:
  %address = sub i64 0, %code
  %record = inttoptr i64 %address to ptr
  call void @free(ptr %record)
  br label %more
more:
  %next = add i64 %chunk, 1
  br label %test
leave:
  ret i64 %found
}

; The processors that the calling thread may run on; none where there are too many to tell.
define internal <16 x i64> @affinity() {
  %mask = alloca <16 x i64>, align 64
  store <16 x i64> zeroinitializer, ptr %mask
  call i64 (i64, ...) @syscall(i64 GET_AFFINITY, i64 0, i64 128, ptr %mask)
  %places = load <16 x i64>, ptr %mask
  ret <16 x i64> %places
}

; The most threads that may work on a job of a caller with these processors.
define internal i64 @limit(<16 x i64> %places) {
  %bits = call <16 x i64> @llvm.ctpop.v16i64(<16 x i64> %places)
  %own = call i64 @llvm.vector.reduce.add.v16i64(<16 x i64> %bits)
  %before = sub i64 %own, 1  ; the largest number where none are told
  %all = load i64, ptr @processors
  %is_bound = icmp ult i64 %own, %all
  %told = icmp ult i64 %before, %all
  %counts = and i1 %is_bound, %told
  %most = load atomic i64, ptr @most monotonic, align 8
  %fewer = call i64 @llvm.umin.i64(i64 %own, i64 %most)
  %limit = select i1 %counts, i64 %fewer, i64 %most
  ret i64 %limit
}

; Where the workers of a caller with these processors run: on all but the one that it runs on now.
define internal <16 x i64> @others(<16 x i64> %places) {
entry:
  %processor = call i32 @sched_getcpu()
  %known = icmp ult i32 %processor, 1024
  br i1 %known, label %leave_out, label %leave
leave_out:
  %index = lshr i32 %processor, 6
  %shift = and i32 %processor, 63
  %wide = zext i32 %shift to i64
  %bit = shl i64 1, %wide
  %kept = xor i64 %bit, -1
  %word = extractelement <16 x i64> %places, i32 %index
  %rest = and i64 %word, %kept
  %others = insertelement <16 x i64> %places, i64 %rest, i32 %index
  br label %leave
leave:
  %all = phi <16 x i64> [ %places, %entry ], [ %others, %leave_out ]
  ret <16 x i64> %all
}

; Has the workers run on `places`. By who has the pool.
define internal void @place(<16 x i64> %places) {
entry:
  %known = load <16 x i64>, ptr @places
  %differ = icmp ne <16 x i64> %known, %places
  %some = call i1 @llvm.vector.reduce.or.v16i1(<16 x i1> %differ)
  br i1 %some, label %move, label %leave
move:
  store <16 x i64> %places, ptr @places
  %threads = load i64, ptr @threads
  br label %test
test:
  %worker = phi i64 [ 1, %move ], [ %next, %tell ]
  %more = icmp ule i64 %worker, %threads
  br i1 %more, label %tell, label %leave
tell:
  %kept = getelementptr i64, ptr @handles, i64 %worker
  %thread = load i64, ptr %kept
  call i32 @pthread_setaffinity_np(i64 %thread, i64 128, ptr @places)
  %next = add i64 %worker, 1
  br label %test
leave:
  ret void
}

define i64 @tirlite.fork_join(ptr %task, ptr %closure, i64 %count, i64 %wanted, i64 %chunks) {
entry:
  %one = icmp ult i64 %chunks, 2
  br i1 %one, label %alone, label %look
look:
  %places = call <16 x i64> @affinity()
  %limit = call i64 @limit(<16 x i64> %places)
  %workers = call i64 @llvm.umin.i64(i64 %wanted, i64 %limit)
  %some = icmp ugt i64 %workers, 1
  br i1 %some, label %claim, label %alone
claim:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %fork, label %alone
alone:
  %only = call i64 %task(ptr %closure, i64 0, i64 %count, i64 0)
  ret i64 %only
fork:
  %others = call <16 x i64> @others(<16 x i64> %places)
  call void @place(<16 x i64> %others)
  call void @start(i64 %workers)
  %codes = alloca i64, i64 %chunks
  call void @publish(ptr %task, ptr %closure, i64 %count, i64 %workers, i64 %chunks, ptr %codes)
  %t = call i64 @take(i64 0, i1 true)
  %waited = call i64 @join(i64 %chunks)
  store atomic i32 0, ptr @busy seq_cst, align 4
  %first = call i64 @lowest(ptr %codes, i64 %chunks)
  %none = icmp eq i64 %first, 0
  %code = select i1 %none, i64 %waited, i64 %first
  ret i64 %code
}

; Sets the limit, unless it is 0. The most threads that may work on a job of the caller.
define i64 @tirlite.pool_limit(i64 %most, i64 %processors) {
  %asks = icmp eq i64 %most, 0
  br i1 %asks, label %tell, label %set
set:
  store atomic i64 %most, ptr @most monotonic, align 8
  store i64 %processors, ptr @processors
  br label %tell
tell:
  %places = call <16 x i64> @affinity()
  %limit = call i64 @limit(<16 x i64> %places)
  ret i64 %limit
}

define i64 @tirlite.pool_reset() {
  store i32 0, ptr @busy
  store i32 0, ptr @sleepers
  store i64 0, ptr @threads
  %old = load i64, ptr @ticket
  %job = and i64 %old, -4294967296
  store i64 %job, ptr @ticket
  ret i64 0
}
"""


def pool_text(machine: str) -> str:
    """The module of the pool for a machine, named as by `platform.machine()` on Linux.

    On an unknown machine the caller runs all iterations itself.
    """
    if machine not in _MACHINES:
        return _ALONE
    futex, get_affinity, pause, declaration = _MACHINES[machine]
    text = _POOL.replace("PAUSE_DECLARATION", declaration).replace("PAUSE", pause)
    text = text.replace("GET_AFFINITY", str(get_affinity)).replace("MOST_WORKERS", str(MOST_WORKERS))
    text = text.replace("INTERRUPTED", str(INTERRUPTED))
    return text.replace("FUTEX", str(futex)).replace("LOOKS", str(_LOOKS)).replace("STACK_BYTES", str(_STACK_BYTES))
