"""The process's pool of worker threads: the function that runs parallel loops, and its thread limit."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from tirlite.diag import CallValueError, Message, public
from tirlite.gate import GATE
from tirlite.record import record
from tirlite.runtime.artifact.artifact import library_of
from tirlite.runtime.cache import code_called
from tirlite.runtime.signals import signal_addresses
from tirlite.show import shown
from tirlite.show.environment import threads
from tirlite.target.convention import FORK_JOIN, POLL, POOL_LIMIT, POOL_RESET, STOP
from tirlite.target.target import MOST_WORKERS

if TYPE_CHECKING:
    from tirlite.runtime.artifact.artifact import Code


class BadThreads(Message):
    """Parallel loops were to be run by a number of threads that there cannot be.

    Example: `tl.set_num_threads(0)`, or TIRLITE_NUM_THREADS=all in the environment.
    Fix: Give 1 to run parallel loops in the calling thread alone, or a larger number.
    """

    raises = CallValueError
    title = "{source} cannot be {count}"
    help = "give a number from 1, for the calling thread alone, to {most}"


@public
def set_num_threads(count: int) -> None:
    """Limits the number of threads, the calling one included, that run a parallel loop in this process.
    The number never exceeds the workers of a kernel's target or the processors that the caller may use; results do not
    depend on it. Until the first call, the environment variable TIRLITE_NUM_THREADS sets the limit. Raises
    CallValueError for less than one.
    """
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= MOST_WORKERS:
        raise BadThreads("the number of threads", shown(count), MOST_WORKERS).error()
    _pool().limit(count, os.cpu_count() or 1)


def threads_now() -> int:
    """How many threads may run a parallel loop started by the calling thread now."""
    return int(_pool().limit(0, 0))


def pool_address() -> int:
    """The address of `tirlite.fork_join`, see `codegen.llvm.pool`.

    Its threads are started by the first loop that needs them, and live as long as the process.
    """
    return _pool().fork_join


@record
class _Pool:
    """The address of the function that runs parallel loops, and the function that sets and returns the limit."""

    fork_join: int
    limit: Callable[[int, int], int]


def _pool() -> _Pool:
    # Threads that arrive at the same time must not create a pool each.
    with GATE.inside(_loaded):
        return _loaded()


@cache
def _loaded() -> _Pool:
    most = _limit_in_environment()
    library = library_of(code_called("pool", _compiled), signal_addresses())
    # Threads run in this code until the process ends, so it must never be unloaded.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    reset = library.function(POOL_RESET, "")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: reset() and None)
    limit = library.function(POOL_LIMIT, "qq")
    limit(most, os.cpu_count() or 1)
    return _Pool(library.address(FORK_JOIN), limit)


def _limit_in_environment() -> int:
    """The limit set in the environment; the largest number if there is none."""
    text = threads()
    if not text:
        return MOST_WORKERS
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MOST_WORKERS):
        raise BadThreads("TIRLITE_NUM_THREADS", shown(text), MOST_WORKERS).error()
    return int(text)


def _compiled() -> Code:
    from tirlite.codegen import Effort, compile_text, pool_text
    from tirlite.runtime.artifact.build import code_of

    machine = platform.machine() if sys.platform == "linux" else ""
    # Optimising would take LLVM 30 ms more, and make starting a loop 0.07 us faster.
    text = compile_text(pool_text(machine), Effort.NONE)
    return code_of([text], (FORK_JOIN, POOL_LIMIT, POOL_RESET), (POLL, STOP))
