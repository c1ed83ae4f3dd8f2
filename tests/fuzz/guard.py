"""Arrays with forbidden pages around them: an access outside ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

_LIBC = ctypes.CDLL(None, use_errno=True)


def guarded(array: np.ndarray, *, at_end: bool) -> np.ndarray:
    """A copy that ends right before a forbidden page, or else begins right behind one."""
    page = mmap.PAGESIZE
    inside = max(-(-array.nbytes // page), 1) * page
    memory = mmap.mmap(-1, inside + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for start in (base, base + page + inside):
        if _LIBC.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(page), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = page + (inside - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, array.dtype, array.size, offset).reshape(array.shape)
    copy[...] = array
    return copy
