"""Finds plain data by a key in the cache on disk, and keeps it there. All damage is a miss.

Compiled code depends on more than what is compiled: tirlite's own files, LLVM's, and the processor.
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

# Files beyond so many bytes together are deleted, those that were used longest ago first.
MOST_BYTES = 1 << 30
KEY_BYTES = 20
_LARGEST = 1 << 30
_DAY = 86400


@record
class Held:
    """A file of the folder."""

    name: str
    size: int  # bytes
    used: float  # seconds since 1970


class Refused(Exception):
    """Why the folder is not used."""


@record
class Folder:
    """A folder by its path; it is made when something is first written."""

    path: str

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none that can be trusted."""
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
        """Puts a file there, whole or not at all."""
        with suppress(OSError, Refused), self._opened(make=True) as folder:
            # A name of its own, so that no process sees half a file under the other one.
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
        """The files of the cache, those that were used longest ago first; what else lies there is its owner's."""
        held = []
        with suppress(OSError, Refused), self._opened() as folder, os.scandir(folder) as entries:
            for entry in filter(_is_own, entries):
                with suppress(OSError):
                    state = entry.stat(follow_symlinks=False)
                    held.append(Held(entry.name, state.st_size, state.st_mtime))
        return sorted(held, key=lambda each: (each.used, each.name))

    def prune(self, most: int = MOST_BYTES) -> None:
        """Deletes what was used longest ago, until the rest is at most so many bytes, and what was never finished."""
        files = self.files()
        total = sum(each.size for each in files)
        for each in files:
            is_left_over = each.name.endswith(".part") and time() - each.used > _DAY
            if total > most or is_left_over:
                self._delete(each.name)
                total -= each.size

    def clear(self) -> int:
        """Deletes all files, and returns how many there were."""
        return sum(self._delete(each.name) for each in self.files())

    @property
    def refusal(self) -> str:
        """Why the folder is not used; empty where it is, or can be made."""
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
        """A descriptor of the folder. Raises OSError where there is none, Refused where others have a say in it."""
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
    """Whether an entry has the name of a key, or of what is about to have it."""
    key, _, rest = entry.name.partition(".")
    return len(key) == 2 * KEY_BYTES and not key.strip("0123456789abcdef") and (not rest or rest.endswith(".part"))


def _remove(name: str, folder: int) -> None:
    """Takes a file out of the folder, or a directory in the place of one, with all that is in it."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        from shutil import rmtree

        rmtree(name, dir_fd=folder)


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
    key = blake2b(name.encode(), key=compiler_stamp(), digest_size=KEY_BYTES).digest()
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
    root = __file__.rsplit(os.sep, __name__.count("."))[0]
    apart = _OF_GRAPHS if graphs else _OF_LANGUAGE if language else _APART
    digest.update("".join(sorted(_sources(root, apart))).encode())
    return digest.digest()


def _first_above(path: str) -> str:
    """The nearest folder around a path that is there."""
    above = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120
    return above if os.path.exists(above) or above == "/" else _first_above(above)  # noqa: PTH110


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
