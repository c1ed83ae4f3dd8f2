"""Writes the LLVM text of the functions by which kernels call Python: to poll for signals, and to print.

`tirlite.poll()` runs the handlers of pending signals if the calling thread is Python's main thread. It returns 0, or
`INTERRUPTED` if a handler raised an exception, which is kept until `tirlite.raise_kept()` raises it. In threads unknown
to Python, the workers of the pool, it returns `INTERRUPTED` if `tirlite.stop` has stopped their job.
`tirlite.stop(flag)` sets the stop flag to 0 or 1, or with -1 leaves it, and returns its value.
`tirlite.print(text, length, values)` calls the Python function that `tirlite.printer` registered, whose result says
whether printing failed; it returns as `tirlite.poll` does.
"""

from __future__ import annotations

from tirlite.target.convention import INTERRUPTED, POLL, PRINT, PRINTER, RAISE, STOP

_TEXT = """
@stopped = internal global i64 0
@type = internal global ptr null
@value = internal global ptr null
@trace = internal global ptr null
@printer = internal global ptr null
@numbers = internal constant [4 x i8] [i8 75, i8 75, i8 75, i8 0]

declare ptr @PyGILState_GetThisThreadState()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare i32 @PyObject_IsTrue(ptr)
declare void @Py_DecRef(ptr)

define i64 @POLL() {
  %own = call ptr @PyGILState_GetThisThreadState()
  %is_worker = icmp eq ptr %own, null
  br i1 %is_worker, label %worker, label %ask
worker:
  %stopped = load atomic i64, ptr @stopped seq_cst, align 8
  %stops = mul i64 %stopped, INTERRUPTED
  ret i64 %stops
ask:
  %lock = call i32 @PyGILState_Ensure()
  %failed = call i32 @PyErr_CheckSignals()
  %raised = icmp ne i32 %failed, 0
  br i1 %raised, label %keep, label %leave
keep:
  call void @PyErr_Fetch(ptr @type, ptr @value, ptr @trace)
  br label %leave
leave:
  call void @PyGILState_Release(i32 %lock)
  %code = select i1 %raised, i64 INTERRUPTED, i64 0
  ret i64 %code
}

define i64 @PRINTER(ptr %printer) {
  store ptr %printer, ptr @printer
  ret i64 0
}

define i64 @PRINT(ptr %text, i64 %length, ptr %values) {
  %lock = call i32 @PyGILState_Ensure()
  %printer = load ptr, ptr @printer
  %at = ptrtoint ptr %text to i64
  %from = ptrtoint ptr %values to i64
  %result = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %printer, ptr @numbers, i64 %at, i64 %length, i64 %from)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %keep, label %look
keep:
  call void @PyErr_Fetch(ptr @type, ptr @value, ptr @trace)
  br label %leave
look:
  %says = call i32 @PyObject_IsTrue(ptr %result)
  call void @Py_DecRef(ptr %result)
  %failed = icmp ne i32 %says, 0
  br label %leave
leave:
  %stops = phi i1 [ true, %keep ], [ %failed, %look ]
  call void @PyGILState_Release(i32 %lock)
  %code = select i1 %stops, i64 INTERRUPTED, i64 0
  ret i64 %code
}

define i64 @RAISE() {
  %type = load ptr, ptr @type
  %value = load ptr, ptr @value
  %trace = load ptr, ptr @trace
  store ptr null, ptr @type
  store ptr null, ptr @value
  store ptr null, ptr @trace
  call void @PyErr_Restore(ptr %type, ptr %value, ptr %trace)
  ret i64 0
}

define i64 @STOP(i64 %flag) {
  %sets = icmp sge i64 %flag, 0
  br i1 %sets, label %set, label %leave
set:
  store atomic i64 %flag, ptr @stopped seq_cst, align 8
  br label %leave
leave:
  %stopped = load atomic i64, ptr @stopped seq_cst, align 8
  ret i64 %stopped
}
"""


def signals_text() -> str:
    """The module with these functions."""
    text = _TEXT.replace("INTERRUPTED", str(INTERRUPTED))
    for word, name in (("POLL", POLL), ("RAISE", RAISE), ("STOP", STOP), ("PRINTER", PRINTER), ("PRINT", PRINT)):
        text = text.replace(f"@{word}(", f"@{name}(")
    return text
