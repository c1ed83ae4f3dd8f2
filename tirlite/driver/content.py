"""Makes the cache key of compiled code: a digest of a function, its options and the compiler."""

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

# Options that do not change the compiled code.
_WITHOUT_EFFECT = ("cache", "engine")


class _Foreign(Exception):
    """An option has no text that identifies it."""


def content_key(content: bytes, options: Options, form: str) -> bytes | None:
    """The cache key of a version of a function with these options; None if it must not be cached.

    That is so with observers, with a time limit, and if an option is a function of the user's.
    """
    if options.observers or options.time_limit is not None:
        return None
    text = _options_text(options)
    if text is None:
        return None
    digest = blake2b(compiler_stamp(), digest_size=20)
    digest.update(text.encode())
    digest.update(_spelled(options.target.processor).encode())
    digest.update(form.encode())
    digest.update(content)
    return digest.digest()


def content_of(content: bytes, options: Options, fixed: Mapping[str, Array] | None) -> str:
    """A kernel's identity in 40 hexadecimal digits: equal kernels have the same in every process.

    `content`: the digest of its function. `fixed`: its constant arrays.
    """
    digest = blake2b(content, digest_size=20)
    digest.update((_options_text(options) or repr(options)).encode())
    for name, array in (fixed or {}).items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def _options_text(options: Options) -> str | None:
    """The options as text that is the same in each process; None if one is a function of the user's."""
    try:
        return _spelled(options)
    except _Foreign:
        return None


def _spelled(value: object) -> str:
    """The value as text that is the same in each process, and differs for different values."""
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
