"""Finds plain data by a key in the cache on disk, and keeps it there. All damage is a miss."""

from __future__ import annotations

import marshal
import os
import sys
from _blake2 import blake2b
from collections.abc import Callable
from typing import TYPE_CHECKING

from tirlite.runtime.artifact.artifact import Artifact
from tirlite.runtime.artifact.image import Damaged, Image
from tirlite.runtime.cache.folder import Folder
from tirlite.runtime.cache.stamp import compiler_stamp
from tirlite.show.environment import cache_folder

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
