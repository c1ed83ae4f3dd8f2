"""Reads a file whole, with a digest of what was read: what is made of the bytes is made of what the digest stands for.

A file that is mapped instead may be another one a moment later, and ends the process once it is cut off.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from threading import Thread
from typing import Any

from tirlite.record import record
from tirlite.target.processor import cpu_text

# So many bytes are read and digested at a time, and by threads where there are more.
_PIECE = 1 << 23
_MOST_THREADS = 4
_HUGE_PAGE = 1 << 21
# Larger files would take too much memory beside what is made of them.
_LARGEST = 1 << 32


@record(eq=False)
class Whole:
    """The bytes of a file, in memory of their own, and a digest of them and of their number."""

    data: mmap
    digest: bytes


def whole(path: str | os.PathLike[str]) -> Whole | None:
    """What an ordinary file holds; None where it is empty, larger than 4 GiB, or changes meanwhile."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            state = os.fstat(file)
            if stat.S_ISREG(state.st_mode) and 0 < state.st_size <= _LARGEST:
                return _read(file, state.st_size)
        finally:
            os.close(file)
    return None


def _read(file: int, size: int) -> Whole | None:
    data = _memory(size)
    view, hashed = memoryview(data), _hash()
    starts = range(0, size, _PIECE)
    digests = [b""] * len(starts)

    def read(first: int, step: int) -> None:
        for number in range(first, len(starts), step):
            start = starts[number]
            piece = view[start : start + _PIECE]
            if _fill(file, piece, start):
                digests[number] = hashed(piece).digest()

    threads = min(len(starts), _MOST_THREADS, len(os.sched_getaffinity(0)))
    others = [Thread(target=read, args=(number, threads)) for number in range(1, threads)]
    for each in others:
        each.start()
    read(0, threads)
    for each in others:
        each.join()
    if not all(digests) or os.fstat(file).st_size != size:
        return None
    return Whole(data, hashed(b"".join([size.to_bytes(8, "little"), *digests])).digest())


def _fill(file: int, piece: memoryview, start: int) -> bool:
    """Whether the file still had so many bytes from there."""
    done = 0
    with suppress(OSError):
        while done < len(piece):
            count = os.preadv(file, [piece[done:]], start + done)
            if not count:
                return False
            done += count
        return True
    return False


def _memory(size: int) -> mmap:
    data = mmap(-1, size)
    if size >= _HUGE_PAGE and hasattr(data, "madvise"):
        # The system hands out a page of 4 KiB in about the time that reading it takes.
        with suppress(OSError, AttributeError):
            from mmap import MADV_HUGEPAGE

            data.madvise(MADV_HUGEPAGE)
    return data


def _hash() -> Callable[..., Any]:
    """The safe digest that is the quickest here: processors with instructions for it take SHA-256 in half the time."""
    import hashlib

    return hashlib.sha256 if b" sha_ni" in cpu_text() else hashlib.blake2b
