"""Arrays with forbidden pages around them: an access outside ends the process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

_LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(array: np.ndarray, *, at_end: bool) -> np.ndarray:
    """A copy that ends right before a forbidden page, or else begins right behind one."""
    memory, _, inside = _between_pages(array.nbytes)
    offset = mmap.PAGESIZE + (inside - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy


@contextmanager
def forbidden_around(size: int) -> Iterator[tuple[np.ndarray, int]]:
    """Whole pages of at least `size` bytes between forbidden ones, and their address."""
    memory, base, inside = _between_pages(size)
    yield np.frombuffer(memory, np.uint8, inside, mmap.PAGESIZE), base + mmap.PAGESIZE


def _between_pages(size: int) -> tuple[mmap.mmap, int, int]:
    """Memory with a forbidden page at its start and at its end, its address, and the bytes between these pages."""
    page = mmap.PAGESIZE
    inside = max(-(-size // page), 1) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for start in (base, base + page + inside):
        if _LIBC.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(page), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return memory, base, inside
