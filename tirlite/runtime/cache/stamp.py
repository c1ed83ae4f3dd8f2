"""Tells what compiled code depends on besides what is compiled: tirlite's own files, LLVM's, and the processor."""

from __future__ import annotations

import os
import sys
from _blake2 import blake2b  # the module hashlib takes ten times as long to load
from functools import cache
from importlib.machinery import PathFinder

from tirlite.target.processor import cpu_text

# What neither makes code nor what code is made of.
_APART = frozenset({"__pycache__", "bench", "cli", "diag", "dsl", "graph", "interp", "kernels", "show", "solver"})
_OF_GRAPHS = frozenset({"__pycache__", "bench", "cli", "show"})
_OF_LANGUAGE = _APART - {"dsl", "diag"}
_CPU_LINES = (b"vendor_id", b"cpu family", b"model", b"stepping", b"flags", b"Features", b"CPU ")


@cache
def compiler_stamp(*, graphs: bool = False, language: bool = False) -> bytes:
    """16 bytes that differ wherever the same function could be compiled to other code.

    With `graphs` also where the same graph could become another function, with `language` where the same text could.
    """
    digest = blake2b(digest_size=16)
    digest.update(repr((sys.implementation.cache_tag, sys.platform, os.uname().machine)).encode())
    digest.update(processor())
    llvm = PathFinder.find_spec("llvmlite")
    homes = list(llvm.submodule_search_locations or ()) if llvm else []
    for home in homes:
        for name in ("_version.py", "binding/libllvmlite.so"):
            digest.update(_of_file(os.path.join(home, name)).encode())  # noqa: PTH118
    root = __file__.rsplit(os.sep, 3)[0]
    apart = _OF_GRAPHS if graphs else _OF_LANGUAGE if language else _APART
    digest.update("".join(sorted(_sources(root, apart))).encode())
    return digest.digest()


def processor() -> bytes:
    """What the system says of the first processor: its model and its features."""
    lines = cpu_text().partition(b"\n\n")[0].split(b"\n")
    return b"\n".join(line for line in lines if line.startswith(_CPU_LINES))


def _sources(folder: str, apart: frozenset[str]) -> list[str]:
    """A line for each file of Python below a folder: what the system says of it."""
    lines = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in apart:
                continue
            if entry.is_dir():
                lines += _sources(entry.path, apart)
            elif entry.name.endswith(".py"):
                state = entry.stat()
                lines.append(f"{entry.path} {state.st_size} {state.st_mtime_ns}\n")
    return lines


def _of_file(path: str) -> str:
    try:
        state = os.stat(path)  # noqa: PTH116
    except OSError:
        return f"no {path}\n"
    return f"{path} {state.st_size} {state.st_mtime_ns}\n"
