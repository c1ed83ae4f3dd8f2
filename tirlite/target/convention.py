"""How native functions of tirlite are called, as those who make code and those who run it agree."""

from __future__ import annotations

# A function with more parameters takes the address of a record instead, in which each has `SLOT_BYTES`: what calls any
# function, see `codegen.llvm.quick_blocks`, has a call for each number of parameters.
MOST_PARAMETERS = 16
SLOT_BYTES = 8

# The pool of workers, see `codegen.llvm.pool`. With a dot, which no name of a kernel keeps.
FORK_JOIN = "tirlite.fork_join"
POOL_RESET = "tirlite.pool_reset"  # to be called in the child of a fork, which has none of the threads
POOL_LIMIT = "tirlite.pool_limit"  # is told how many threads may work on a loop, 0 to ask, and of how many processors

# What code that is exported takes memory by, and gives it back: the last that was taken comes back first.
TAKE = "tirlite.take"
GIVE = "tirlite.give"

# What kernels that run for long ask, see `codegen.llvm.signals`, and the number that they then end with.
POLL = "tirlite.poll"
STOP = "tirlite.stop"
RAISE = "tirlite.raise_kept"
INTERRUPTED = 1 << 48

# A quick call may look for as many versions, and tells a fault times that, plus the number of the version.
VERSIONS = 256

# What kernels print by, see `codegen.llvm.signals`, and what tells it the function of Python that does so.
PRINT = "tirlite.print"
PRINTER = "tirlite.printer"
