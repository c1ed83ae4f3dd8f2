"""Reads and writes files of a folder that belongs to the caller alone; whatever stands in the way is a miss.

Who can write to the folder decides what code runs. So it has to be owned by the caller and closed to all others, no
links are followed, neither to it nor in it, and there is no other place to fall back to.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import time

from tirlite.record import record

# Files beyond so many bytes together are deleted, those that were used longest ago first.
MOST_BYTES = 1 << 30
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
            # A name of its own, so that nobody sees half a file under the other one.
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
        """All files, those that were used longest ago first."""
        held = []
        with suppress(OSError, Refused), self._opened() as folder, os.scandir(folder) as entries:
            for entry in entries:
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
            return ""
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


def _remove(name: str, folder: int) -> None:
    """Takes a file out of the folder, or a directory in the place of one, with all that is in it."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        from shutil import rmtree

        rmtree(name, dir_fd=folder)
