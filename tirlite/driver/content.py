"""Makes the key under which what is compiled is kept: a digest of a function, its options and the compiler."""

from __future__ import annotations

from _blake2 import blake2b
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tirlite.ir import Node
from tirlite.ir.equal import content_digest
from tirlite.record import parts_of
from tirlite.runtime.cache.stamp import compiler_stamp

if TYPE_CHECKING:
    from tirlite.ir import PrimFunc
    from tirlite.rewrite.options import Options

# What the compiled code does not depend on.
_WITHOUT_EFFECT = ("cache", "engine")


class _Foreign(Exception):
    """An option is something that has no text which says all."""


def content_key(func: PrimFunc, options: Options) -> bytes | None:
    """The key of a function with these options; None where compiling has to be done each time.

    That is so where others watch it, where a clock ends it, and where an option is a function of the user's.
    """
    if options.observers or options.time_limit is not None:
        return None
    try:
        spelled = _spelled(options)
    except _Foreign:
        return None
    digest = blake2b(compiler_stamp(), digest_size=20)
    digest.update(spelled.encode())
    digest.update(content_digest(func))
    return digest.digest()


def _spelled(value: object) -> str:
    """The value as a text that is the same in each process, and another one for each other value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_spelled, value))})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_spelled(name)}: {_spelled(each)}' for name, each in value.items())}}}"
    kind = type(value)
    if not kind.__module__.startswith("tirlite.") or not hasattr(kind, "__parts__") or isinstance(value, Node):
        raise _Foreign
    fields = [(name, getattr(value, name)) for name in parts_of(kind) if name not in _WITHOUT_EFFECT]
    return f"{kind.__qualname__}({', '.join(f'{name}={_spelled(each)}' for name, each in fields)})"
