"""Stores plain data by key in the cache on disk, and finds it again; damaged entries count as missing.

Keys include all that compiled code depends on: tirlite's own files, LLVM's, and the processor.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from _blake2 import blake2b
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import PathFinder
from time import time
from typing import TYPE_CHECKING

from tirlite.record import record
from tirlite.runtime.artifact.artifact import Artifact
from tirlite.runtime.artifact.image import Damaged, Image
from tirlite.show.environment import cache_folder
from tirlite.target.processor import cpu_text

if TYPE_CHECKING:
    from tirlite.runtime.artifact.artifact import Code

# The most bytes of all files; beyond that the least recently used are deleted.
MOST_BYTES = 1 << 30
KEY_BYTES = 20
_LARGEST = 1 << 30
_DAY = 86400


@record
class Held:
    """A file in the cache folder."""

    name: str
    size: int  # bytes
    used: float  # seconds since 1970


class Refused(Exception):
    """The reason why the folder cannot be used."""


@record
class Folder:
    """A cache folder; it is created at the first write."""

    path: str

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none that can be trusted."""
        with suppress(OSError, Refused), self._opened() as folder:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(file, "rb") as opened:
                state = os.fstat(file)
                if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o022:
                    return None
                if state.st_size > _LARGEST:
                    return None
                if time() - state.st_mtime > _DAY:
                    with suppress(OSError):
                        os.utime(file)
                return opened.read()
        return None

    def write(self, name: str, data: bytes) -> None:
        """Writes a file atomically."""
        with suppress(OSError, Refused), self._opened(make=True) as folder:
            # Write under a temporary name, then rename: no process may see a partial file.
            begun = f"{name}.{os.getpid()}.{os.urandom(6).hex()}.part"
            file = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
            try:
                with os.fdopen(file, "wb") as opened:
                    opened.write(data)
                try:
                    os.replace(begun, name, src_dir_fd=folder, dst_dir_fd=folder)
                except IsADirectoryError:
                    _remove(name, folder)
                    os.replace(begun, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(begun, dir_fd=folder)
                raise

    def files(self) -> list[Held]:
        """The files of the cache, least recently used first; foreign files are skipped."""
        held = []
        with suppress(OSError, Refused), self._opened() as folder, os.scandir(folder) as entries:
            for entry in filter(_is_own, entries):
                with suppress(OSError):
                    state = entry.stat(follow_symlinks=False)
                    held.append(Held(entry.name, state.st_size, state.st_mtime))
        return sorted(held, key=lambda each: (each.used, each.name))

    def prune(self, most: int = MOST_BYTES) -> None:
        """Deletes the least recently used files down to `most` bytes, and old temporary files."""
        files = self.files()
        total = sum(each.size for each in files)
        for each in files:
            is_left_over = each.name.endswith(".part") and time() - each.used > _DAY
            if total > most or is_left_over:
                self._delete(each.name)
                total -= each.size

    def clear(self) -> int:
        """Deletes all files, and returns their number."""
        return sum(self._delete(each.name) for each in self.files())

    @property
    def refusal(self) -> str:
        """The reason why the folder cannot be used; empty if it can."""
        try:
            with self._opened():
                return ""
        except FileNotFoundError:
            above = _first_above(self.path)
            return "" if os.access(above, os.W_OK | os.X_OK) else f"it is not there, and `{above}` cannot be written to"
        except OSError as error:
            return os.strerror(error.errno or 0).lower()
        except Refused as refused:
            return str(refused)

    def _delete(self, name: str) -> bool:
        with suppress(OSError, Refused), self._opened() as folder:
            _remove(name, folder)
            return True
        return False

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder. Raises OSError if there is none, Refused if other users have access."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            folder = os.open(self.path, flags)
        except FileNotFoundError:
            if not make:
                raise
            os.makedirs(os.path.dirname(self.path), 0o700, exist_ok=True)  # noqa: PTH103, PTH120
            with suppress(FileExistsError):
                os.mkdir(self.path, 0o700)  # noqa: PTH102
            folder = os.open(self.path, flags)
        try:
            state = os.fstat(folder)
            if state.st_uid != os.geteuid():
                raise Refused("it belongs to another user")
            if state.st_mode & 0o077:
                raise Refused(f"its mode is {state.st_mode & 0o777:o}, and has to be 700")
            yield folder
        finally:
            os.close(folder)


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is named like a key or a temporary file for one."""
    key, _, rest = entry.name.partition(".")
    return len(key) == 2 * KEY_BYTES and not key.strip("0123456789abcdef") and (not rest or rest.endswith(".part"))


def _remove(name: str, folder: int) -> None:
    """Deletes a file, or a directory that stands in its place."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        from shutil import rmtree

        rmtree(name, dir_fd=folder)


_MAGIC = b"tirlite1"
_SUM = 16
# One write in so many prunes the cache.
_LOOKED_AT = 64


def folder() -> Folder | None:
    """The cache folder; None if it is disabled or the system is not Linux."""
    path = cache_folder()
    return Folder(path) if path and sys.platform == "linux" else None


def find(key: bytes) -> object | None:
    """The data stored under a key, or None."""
    place = folder()
    data = place.read(key.hex()) if place is not None else None
    return None if data is None else opened(key, data)


def keep(key: bytes, plain: object) -> None:
    """Stores bytes, numbers, strings and tuples of them under a key."""
    place = folder()
    if place is not None:
        place.write(key.hex(), sealed(key, plain))
        if not os.urandom(1)[0] % _LOOKED_AT:
            place.prune()


def sealed(key: bytes, plain: object) -> bytes:
    """The content of a cache file: a checksum, then the key and the data."""
    data = marshal.dumps((key, plain))  # type: ignore[arg-type]
    return _MAGIC + _checksum(data) + data


def opened(key: bytes, content: bytes) -> object | None:
    """The data in a cache file's content; None if it is damaged or has another key."""
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
    """The artifact stored under a key, or None."""
    plain = find(key)
    if plain is None:
        return None
    try:
        return Artifact.of_plain(plain)
    except Damaged:
        return None


def keep_artifact(key: bytes, artifact: Artifact) -> None:
    """Stores an artifact, if other processes can use it."""
    plain = artifact.plain()
    if plain is not None:
        keep(key, plain)


def code_called(name: str, make: Callable[[], Code]) -> Code:
    """Code of tirlite's own by its name, from the cache or made anew; the same version always makes the same."""
    if folder() is None:  # then do not compute the stamp, which reads the state of hundreds of files
        return make()
    key = blake2b(name.encode(), key=compiler_stamp(), digest_size=KEY_BYTES).digest()
    try:
        return Image.of_plain(find(key))
    except Damaged:
        made = make()
    if isinstance(made, Image):
        keep(key, made.plain())
    return made


# Packages that do not influence compiled code.
_APART = frozenset({"__pycache__", "bench", "cli", "diag", "dsl", "graph", "interp", "kernels", "show", "solver"})
_OF_GRAPHS = frozenset({"__pycache__", "bench", "cli", "show"})
_OF_LANGUAGE = _APART - {"dsl", "diag"}
_CPU_LINES = (b"vendor_id", b"cpu family", b"model", b"stepping", b"flags", b"Features", b"CPU ")


@cache
def compiler_stamp(*, graphs: bool = False, language: bool = False) -> bytes:
    """16 bytes that differ whenever the same function could be compiled to other code.

    `graphs`: also whenever the same graph could become another function. `language`: whenever the same text could.
    """
    digest = blake2b(digest_size=16)
    digest.update(repr((sys.implementation.cache_tag, sys.platform, os.uname().machine)).encode())
    digest.update(processor())
    llvm = PathFinder.find_spec("llvmlite")
    homes = list(llvm.submodule_search_locations or ()) if llvm else []
    for home in homes:
        for name in ("_version.py", "binding/libllvmlite.so"):
            digest.update(_of_file(os.path.join(home, name)).encode())  # noqa: PTH118
    root = __file__.rsplit(os.sep, __name__.count("."))[0]
    apart = _OF_GRAPHS if graphs else _OF_LANGUAGE if language else _APART
    digest.update("".join(sorted(_sources(root, apart))).encode())
    return digest.digest()


def _first_above(path: str) -> str:
    """The nearest existing folder around a path."""
    above = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    return above if os.path.exists(above) or above == "/" else _first_above(above)  # noqa: PTH110


def processor() -> bytes:
    """The first processor's model and features, as the system reports them."""
    lines = cpu_text().partition(b"\n\n")[0].split(b"\n")
    return b"\n".join(line for line in lines if line.startswith(_CPU_LINES))


def _sources(folder: str, apart: frozenset[str]) -> list[str]:
    """A line per Python file below a folder, with its size and time of modification."""
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
