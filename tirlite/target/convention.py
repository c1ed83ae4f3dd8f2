"""The conventions by which tirlite's native functions are called, shared by code generation and runtime."""

from __future__ import annotations

# A function with more parameters takes the address of a record instead, with `SLOT_BYTES` for each: quick calls, see
# `codegen.llvm.quick_blocks`, have a call instruction for each number of parameters.
MOST_PARAMETERS = 16
SLOT_BYTES = 8

# The pool of workers, see `codegen.llvm.pool`. The dots keep these names apart from those of kernels.
FORK_JOIN = "tirlite.fork_join"
POOL_RESET = "tirlite.pool_reset"  # for the child of a fork, where the threads do not exist
POOL_LIMIT = "tirlite.pool_limit"  # sets the thread limit (0 only asks) and the number of processors; returns the limit

# Memory allocation of exported code, in last-in, first-out order.
TAKE = "tirlite.take"
GIVE = "tirlite.give"

# Polling for signals, see `codegen.llvm.signals`, and the fault of a kernel that was interrupted.
POLL = "tirlite.poll"
STOP = "tirlite.stop"
RAISE = "tirlite.raise_kept"
INTERRUPTED = 1 << 48

# The most versions of a quick call, whose result is the fault times this, plus the version's number.
VERSIONS = 256

# Printing, see `codegen.llvm.signals`, and the function that registers the Python function for it.
PRINT = "tirlite.print"
PRINTER = "tirlite.printer"

# Asking what the caches hold, see `codegen.llvm.held`.
HOLDS = "tirlite.holds"
