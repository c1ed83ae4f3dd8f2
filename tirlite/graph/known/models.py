"""Caches the functions imported from ONNX files, so that a later process needs neither the import nor the package onnx.

The key covers the file's contents, the options of `from_onnx` and the importer. An entry lists the model's external
data files, each with its digest.

Files are read into memory and not mapped: a mapped file could change after it was digested, and if it is truncated,
reading it kills the process.
"""

from __future__ import annotations

import os
import pickle
import stat
from _blake2 import blake2b
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from importlib.machinery import PathFinder
from mmap import mmap
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from tirlite.diag import TirliteError
from tirlite.graph.function import Function
from tirlite.graph.known.array_locations import ArrayLocation, Finder, Unkept, arrays_at
from tirlite.graph.known.import_options import FileUsed, ImportOptions, state_of
from tirlite.graph.known.pickled import read, written
from tirlite.record import parts_of, record
from tirlite.runtime.cache import compiler_stamp, find, folder, keep
from tirlite.target.processor import cpu_text

# The bytes read and digested at a time; larger files are read by several threads.
_PIECE = 1 << 23
_MOST_THREADS = 4
_HUGE_PAGE = 1 << 21
# Larger files are not cached: they would need too much memory besides the network's own.
_LARGEST = 1 << 32


@record(eq=False, repr=False)
class ReadFunction(Function):
    """A function as it was imported: `content` is a digest of its files and of the import options.

    Copies made by `replaced` have no digest.
    """

    content: bytes = field(init=False, default=b"")


class KnownModel:
    """The cache entry of one model, for the current contents of its file."""

    def __init__(self, path: Path, main: Whole, options: bytes) -> None:
        self._path = path
        self._main: mmap | None = main.data
        self._digest = main.digest
        digest = blake2b(compiler_stamp(graphs=True), digest_size=20)
        digest.update(repr((str(path), np.__version__, _versions_of_onnx(), len(options))).encode())
        digest.update(options + self._digest)
        self._key = digest.digest()

    def found(self) -> Function | None:
        """The cached function; None if there is none, or if an external data file has changed."""
        main, self._main = self._main, None
        plain: Any = find(self._key)
        if plain is None or main is None:
            return None
        try:
            listed, data, spelled = plain
            used = [self._as_listed(name, digest) for name, digest in listed]
            arrays = arrays_at([ArrayLocation(*each) for each in spelled], [main, *used])
            return self._with_content(read(data, arrays), [digest for _, digest in listed])
        except (TypeError, ValueError, AttributeError, OverflowError, OSError, TirliteError):
            return None

    def _as_listed(self, name: str, digest: bytes) -> mmap:
        # As the importer does, reject paths and links that lead out of the model's folder.
        home = self._path.parent.resolve()
        path = (home / name).resolve()
        found = whole(path) if path.is_relative_to(home) else None
        if found is None or found.digest != digest:
            raise ValueError
        return found.data

    def kept(self, function: Function, used: Sequence[FileUsed]) -> Function:
        """Caches the function, unless it cannot be or a file has changed since it was read, and returns it."""
        try:
            data, arrays = written(function)
            finder, listed = Finder(arrays), []
            home = self._path.parent.resolve()
            for number, path in enumerate([self._path, *(each.path for each in used)]):
                now = whole(path)
                if now is None or (not number and now.digest != self._digest):
                    return function
                if number:
                    listed.append((str(path.relative_to(home)), now.digest))
                finder.look_in(now.data)
            if any(state_of(each.path) != each.state for each in used):
                return function
            keep(self._key, (tuple(listed), data, tuple(each.plain() for each in finder.places())))
            return self._with_content(function, [digest for _, digest in listed])
        except (Unkept, OSError, ValueError):
            return function

    def _with_content(self, function: Any, digests: Sequence[bytes]) -> Function:
        if not isinstance(function, Function):
            raise ValueError
        parts = {name: getattr(function, name) for name in parts_of(Function)}
        made = ReadFunction(parts.pop("name"), parts.pop("params"), parts.pop("body"), **parts)
        object.__setattr__(made, "content", blake2b(b"".join([self._key, *digests]), digest_size=20).digest())
        return made


def known_model(source: str | os.PathLike[str], options: ImportOptions) -> KnownModel | None:
    """The cache entry of a model; None without a cache or file, or if the options cannot be pickled."""
    if folder() is None:
        return None
    try:
        spelled = options.spelled
        path = Path(source)
        main = whole(path)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError):
        return None
    return None if main is None else KnownModel(path, main, spelled)


def _versions_of_onnx() -> str:
    """A text that identifies the installed version of the package onnx."""
    spec = PathFinder.find_spec("onnx")
    homes = list(spec.submodule_search_locations or ()) if spec is not None else []
    states = [(home, state_of(Path(home) / "__init__.py")) for home in homes if (Path(home) / "__init__.py").is_file()]
    return repr(states)


@record(eq=False)
class Whole:
    """A file's bytes, copied to memory, and a digest of them and their number, or b"" if none was requested."""

    data: mmap
    digest: bytes


def whole(path: str | os.PathLike[str], *, digested: bool = True) -> Whole | None:
    """Reads a regular file; None if it is empty, larger than 4 GiB, or changes size meanwhile."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            state = os.fstat(file)
            if stat.S_ISREG(state.st_mode) and 0 < state.st_size <= _LARGEST:
                return _read(file, state.st_size, digested=digested)
        finally:
            os.close(file)
    return None


def _read(file: int, size: int, *, digested: bool) -> Whole | None:
    data = _memory(size)
    view, hashed = memoryview(data), _hash()
    starts = range(0, size, _PIECE)
    digests = [b""] * len(starts)

    def read(first: int, step: int) -> None:
        for number in range(first, len(starts), step):
            start = starts[number]
            piece = view[start : start + _PIECE]
            if _fill(file, piece, start):
                digests[number] = hashed(piece).digest() if digested else b"read"

    threads = min(len(starts), _MOST_THREADS, len(os.sched_getaffinity(0)))
    others = [Thread(target=read, args=(number, threads)) for number in range(1, threads)]
    for each in others:
        each.start()
    read(0, threads)
    for each in others:
        each.join()
    if not all(digests) or os.fstat(file).st_size != size:
        return None
    return Whole(data, hashed(b"".join([size.to_bytes(8, "little"), *digests])).digest() if digested else b"")


def _fill(file: int, piece: memoryview, start: int) -> bool:
    """Fills `piece` with the file's bytes from `start` on; False if the file ends before."""
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
        # Allocating pages of 4 KiB would take about as long as reading the file.
        with suppress(OSError, AttributeError):
            from mmap import MADV_HUGEPAGE

            data.madvise(MADV_HUGEPAGE)
    return data


def _hash() -> Callable[..., Any]:
    """The fastest collision-resistant digest here: SHA-256 takes half the time if the processor has instructions."""
    import hashlib

    return hashlib.sha256 if b" sha_ni" in cpu_text() else hashlib.blake2b
