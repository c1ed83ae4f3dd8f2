"""Makes the key under which what is compiled is kept: a digest of a function, its options and the compiler."""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.ir import Node, PrimFunc
from tirlite.record import parts_of
from tirlite.runtime.cache import compiler_stamp

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.rewrite.options import Options

    Array: TypeAlias = npt.NDArray[Any]

# What the compiled code does not depend on.
_WITHOUT_EFFECT = ("cache", "engine")


class _Foreign(Exception):
    """An option is something that has no text which says all."""


def content_key(content: bytes, options: Options, form: str) -> bytes | None:
    """The key of a version of a function of this content with these options; None where each process compiles it.

    That is so where others watch it, where a clock ends it, and where an option is a function of the user's.
    """
    if options.observers or options.time_limit is not None:
        return None
    told = _told(options)
    if told is None:
        return None
    digest = blake2b(compiler_stamp(), digest_size=20)
    digest.update(told.encode())
    digest.update(_spelled(options.target.processor).encode())
    digest.update(form.encode())
    digest.update(content)
    return digest.digest()


def content_of(content: bytes, options: Options, fixed: Mapping[str, Array] | None) -> str:
    """What a kernel is, in 40 letters: the same for equal ones in every process. `fixed` are its constant arrays.

    `content` is the digest of its function.
    """
    digest = blake2b(content, digest_size=20)
    digest.update((_told(options) or repr(options)).encode())
    for name, array in (fixed or {}).items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def _told(options: Options) -> str | None:
    """The options as a text that is the same in each process; None where one is a function of the user's."""
    try:
        return _spelled(options)
    except _Foreign:
        return None


def _spelled(value: object) -> str:
    """The value as a text that is the same in each process, and another one for each other value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_spelled, value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_spelled(name)}: {_spelled(each)}' for name, each in value.items())}}}"
    if isinstance(value, PrimFunc):
        from tirlite.ir.equal import content_digest

        return content_digest(value).hex()
    kind = type(value)
    if not kind.__module__.startswith("tirlite.") or not hasattr(kind, "__parts__") or isinstance(value, Node):
        raise _Foreign
    fields = [(name, getattr(value, name)) for name in parts_of(kind) if name not in _WITHOUT_EFFECT]
    return f"{kind.__qualname__}({', '.join(f'{name}={_spelled(each)}' for name, each in fields)})"
