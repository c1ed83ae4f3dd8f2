"""Provides memory for the temporaries of calls, and reuses it for later calls."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from threading import Lock

import numpy as np

# The most idle blocks and their bytes: calls that run at the same time need a block each, but seldom more than these.
MOST_BLOCKS = 8
MOST_BYTES = 1 << 28
_NO_BYTES = ctypes.c_char * 0


class Block:
    """Memory of at least `size` bytes, at the address `start`."""

    __slots__ = ("_bytes", "size", "start")

    def __init__(self, size: int) -> None:
        """Raises MemoryError."""
        try:
            self._bytes = np.empty(size, np.uint8)
        except ValueError:  # more than NumPy can count
            raise MemoryError(size) from None
        self.size = size
        self.start = ctypes.addressof(_NO_BYTES.from_buffer(self._bytes.data))

    def aligned(self, alignment: int) -> int:
        """The first address that is a multiple of `alignment`."""
        return self.start + -self.start % alignment


class Workspaces:
    """Blocks of memory that no call uses now: at most `MOST_BLOCKS`, of at most `MOST_BYTES` together."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Starts empty, as in the child of a fork, where the lock may be held by a thread that no longer exists."""
        self._lock = Lock()
        self._idle: list[Block] = []
        self._bytes = 0

    @property
    def idle_bytes(self) -> int:
        """The bytes kept for later calls."""
        return self._bytes

    def take(self, size: int) -> Block:
        """A block of at least `size` bytes with any content. Raises MemoryError."""
        with self._lock:
            fitting = [number for number, block in enumerate(self._idle) if block.size >= size]
            if fitting:
                block = self._idle.pop(min(fitting, key=lambda number: self._idle[number].size))
                self._bytes -= block.size
                return block
            if self._idle:
                # Drop the largest, as the new block also serves its user: kernels and networks that alternate share one
                # arena, that of the largest.
                self._bytes -= self._idle.pop(max(range(len(self._idle)), key=lambda n: self._idle[n].size)).size
        return Block(size)

    def give(self, block: Block) -> None:
        """Takes a block back; drops blocks while there are too many or too large ones."""
        with self._lock:
            self._idle.append(block)
            self._bytes += block.size
            while len(self._idle) > MOST_BLOCKS or self._bytes > MOST_BYTES:
                # Drop the smallest, as larger blocks serve more calls, but first any that exceeds the bound alone.
                self._idle.sort(key=lambda idle: idle.size)
                dropped = self._idle.pop(-1 if self._idle[-1].size > MOST_BYTES else 0)
                self._bytes -= dropped.size


# Enough for the tiles of eight workers in caches of 2 MiB. A call that needs more runs so long that a quick call gains
# nothing. Pages are committed only when used.
QUICK_BYTES = 1 << 24
QUICK_ALIGNMENT = 4096


class QuickBlock:
    """The block for the temporaries of quick calls of all kernels, and the record that says whether it is in use.

    The words of the record, at `address`: 1 while a call uses the block, its start, its bytes. See `quick_call`.
    """

    def __init__(self) -> None:
        self._block = Block(QUICK_BYTES + QUICK_ALIGNMENT)
        self._record = (ctypes.c_int64 * 3)(0, self._block.aligned(QUICK_ALIGNMENT), QUICK_BYTES)
        self.address = ctypes.addressof(self._record)

    def forget(self) -> None:
        """Marks the block as unused, as in the child of a fork, where the thread that used it does not exist."""
        self._record[0] = 0


@cache
def quick_block() -> QuickBlock:
    """The block of this process. Code that may use it is never unloaded, so it is never freed."""
    block = QuickBlock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=block.forget)
    return block


@cache
def process_workspaces() -> Workspaces:
    """The blocks shared by all kernels of this process."""
    blocks = Workspaces()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=blocks.forget)
    return blocks
