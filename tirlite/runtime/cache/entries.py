"""Finds plain data by a key in the cache on disk, and keeps it there. All damage is a miss.

Compiled code depends on more than what is compiled: tirlite's own files, LLVM's, and the processor.
"""

from __future__ import annotations

import marshal
import os
import sys
from _blake2 import blake2b
from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from tirlite.runtime.artifact.artifact import Artifact
from tirlite.runtime.artifact.image import Damaged, Image
from tirlite.runtime.cache.folder import Folder
from tirlite.show.environment import cache_folder
from tirlite.target.processor import cpu_text

if TYPE_CHECKING:
    from tirlite.runtime.artifact.artifact import Code


_MAGIC = b"tirlite1"
_SUM = 16
# Of so many files that are written, one looks whether there are too many.
_LOOKED_AT = 64


def folder() -> Folder | None:
    """The folder of the cache; None where there is to be none, and where the system has no such folders."""
    path = cache_folder()
    return Folder(path) if path and sys.platform == "linux" else None


def find(key: bytes) -> object | None:
    """What was kept under a key, or None."""
    place = folder()
    data = place.read(key.hex()) if place is not None else None
    return None if data is None else opened(key, data)


def keep(key: bytes, plain: object) -> None:
    """Keeps bytes, numbers, texts and tuples of them under a key."""
    place = folder()
    if place is not None:
        place.write(key.hex(), sealed(key, plain))
        if not os.urandom(1)[0] % _LOOKED_AT:
            place.prune()


def sealed(key: bytes, plain: object) -> bytes:
    """A file's content: a checksum, the key and the data."""
    data = marshal.dumps((key, plain))  # type: ignore[arg-type]
    return _MAGIC + _checksum(data) + data


def opened(key: bytes, content: bytes) -> object | None:
    """The data of a file's content, unless it is damaged or another key's."""
    start = len(_MAGIC) + _SUM
    data = content[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _checksum(data):
        return None
    try:
        its_key, plain = marshal.loads(data)
    except (EOFError, ValueError, TypeError, MemoryError):
        return None
    return plain if its_key == key else None


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_SUM).digest()


def find_artifact(key: bytes) -> Artifact | None:
    """The artifact under a key, or None."""
    plain = find(key)
    if plain is None:
        return None
    try:
        return Artifact.of_plain(plain)
    except Damaged:
        return None


def keep_artifact(key: bytes, artifact: Artifact) -> None:
    """Keeps an artifact, if it makes sense in other processes."""
    plain = artifact.plain()
    if plain is not None:
        keep(key, plain)


def code_called(name: str, make: Callable[[], Code]) -> Code:
    """Code of tirlite's own by its name, which the same tirlite makes alike each time."""
    if folder() is None:  # the stamp looks at hundreds of files
        return make()
    key = blake2b(name.encode(), key=compiler_stamp(), digest_size=20).digest()
    try:
        return Image.of_plain(find(key))
    except Damaged:
        made = make()
    if isinstance(made, Image):
        keep(key, made.plain())
    return made


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
