"""Caches what translating a kernel found out, in front of the cache of code, so a later process need not translate.

An entry is for the source text of a function. It holds variants: the names that the translation looked up, with tokens
of their values, and the resulting parameters, content and printed kernel. A variant is valid if the same names have the
same tokens.
A token identifies an immutable value: numbers, strings, types, dims, modules by name, functions by where they are
found, inline functions by their source and all that they use. If a value has no token, nothing is cached.
"""

from __future__ import annotations

import sys
from _blake2 import blake2b
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from struct import pack
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.diag import TirliteError
from tirlite.dsl.lookups import ABSENT, Asked, Lookups, layers_of, looked_up
from tirlite.record import parts_of, record
from tirlite.runtime.cache import compiler_stamp, find, folder, keep
from tirlite.runtime.head import Head

if TYPE_CHECKING:
    from tirlite.ir import Permission


# The most variants of a function, which may be defined repeatedly with other constants around it.
_MOST_VARIANTS = 8


@record
class Known:
    """The result of a translation, and the names that it looked up."""

    head: Head
    content: bytes
    text: str
    asked: tuple[str, ...]


def manifest_key(function: FunctionType, granted: Sequence[Permission]) -> bytes | None:
    """The key of a function's entry; None without a cache, or if the function has no source."""
    if folder() is None:
        return None
    try:
        text = repr((source_token(function), [each.value for each in granted]))
    except NotComparable:
        return None
    return blake2b(text.encode("utf-8", "surrogatepass"), key=compiler_stamp(language=True), digest_size=20).digest()


def known(key: bytes, function: FunctionType, frame_locals: Mapping[str, object]) -> Known | None:
    """The cached result that is valid for the current values of names, or None."""
    found = find(key)
    for variant in found if isinstance(found, tuple) else ():
        try:
            tokens, head, content, text = variant
            is_same = _holds(tokens, function, frame_locals)
            plain = Head.of_plain(head) if is_same else None
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError, TirliteError):
            return None
        if plain is not None and isinstance(content, bytes) and isinstance(text, str):
            return Known(plain, content, text, tuple(name for name, _, _ in tokens[2]))
    return None


def keep_known(
    key: bytes, function: FunctionType, frame_locals: Mapping[str, object], lookups: Lookups, made: Callable[[], Known]
) -> None:
    """Caches the result of a translation, unless a later process could not tell whether it is valid."""
    if lookups.is_open:
        return
    try:
        tokens = _tokens(Tokens(asked_by(lookups)), function, frame_locals, _members(lookups))
        result = made()  # after the tokens, as it takes a good part of a translation's time
        plain = result.head.plain()
    except (NotComparable, RecursionError):
        return
    if plain is None:
        return
    found = find(key)
    kept = found if isinstance(found, tuple) else ()
    others = [each for each in kept if isinstance(each, tuple) and each[:1] != (tokens,)]
    keep(key, ((tokens, plain, result.content, result.text), *others[: _MOST_VARIANTS - 1]))


def _members(lookups: Lookups) -> dict[tuple[str, str], object]:
    # Members of tirlite itself are covered by the stamp of its files.
    return {where: value for where, value in sorted(lookups.members.items()) if where[0] != "tirlite"}


def _tokens(
    tokens: Tokens,
    function: FunctionType,
    frame_locals: Mapping[str, object],
    members: Mapping[tuple[str, str], object],
) -> Token:
    annotations = tuple((name, tokens.of(value)) for name, value in function.__annotations__.items())
    names = tuple(tokens.names(function, frame_locals))
    attributes = tuple((*where, tokens.of(value)) for where, value in members.items())
    return annotations, tokens.of(function.__defaults__ or ()), names, attributes


def _holds(kept: Token, function: FunctionType, frame_locals: Mapping[str, object]) -> bool:
    """Whether the names around the function have the cached tokens."""

    _, _, names, attributes = kept
    own = [(name, asked) for name, asked, _ in names]
    inside = dict(_inline_names([token for *_, token in (*names, *attributes)]))
    members = {(module, name): getattr(sys.modules.get(module), name, ABSENT) for module, name, _ in attributes}

    def asked_of(each: FunctionType) -> Sequence[tuple[str, int]]:
        return own if each is function else inside.get(source_token(each), ())

    try:
        return bool(_tokens(Tokens(asked_of), function, frame_locals, members) == kept)
    except NotComparable:
        return False


def _inline_names(tokens: list[Any]) -> Iterator[tuple[Token, Sequence[tuple[str, int]]]]:
    """The names that each inline function in the tokens looks up."""
    while tokens:
        token = tokens.pop()
        if token[0] == "tuple":
            tokens += token[1]
        elif token[0] == "inline":
            yield token[1], [(name, asked) for name, asked, _ in token[3]]
            tokens += [inner for *_, inner in token[3]]


# Numbers, strings, bytes and tuples of these.
Token: TypeAlias = Any


class NotComparable(Exception):
    """A value that cannot be compared with one of another process."""


def source_token(function: FunctionType) -> Token:
    """Identifies a function by its source and its place there."""
    code = function.__code__
    if hasattr(function, "__wrapped__"):
        raise NotComparable
    text = blake2b(_text(code.co_filename, function.__globals__), digest_size=20).digest()
    return text, code.co_firstlineno, function.__name__, code.co_names, code.co_freevars, code.co_code


def _text(name: str, names: dict[str, Any]) -> bytes:
    """The content of a file, or of a notebook's cell and the like. Raises NotComparable."""
    try:
        with open(name, "rb") as file:  # noqa: PTH123
            return file.read()
    except (OSError, ValueError):
        import linecache  # slow to import

        linecache.checkcache(name)
        lines = linecache.getlines(name, names)
    if not lines:
        raise NotComparable
    return "".join(lines).encode("utf-8", "surrogatepass")


class Tokens:
    """Makes tokens. `asked_of` returns the names that an inline function looks up, and what it asks of each."""

    def __init__(self, asked_of: Callable[[FunctionType], Iterable[tuple[str, int]]]) -> None:
        self._asked_of = asked_of
        self._inside: list[FunctionType] = []

    def of(self, value: object) -> Token:
        """The token of a value. Raises NotComparable."""
        if value is ABSENT:
            return ("absent",)
        kind = type(value)
        if value is None or kind in (bool, int, str, bytes):
            return kind.__name__, value
        if kind is float:
            return "float", pack("<d", value)
        if kind is tuple:
            return "tuple", tuple(map(self.of, value))  # type: ignore[call-overload]
        if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is value:
            return "module", value.__name__
        rule = _RULES.get(f"{kind.__module__}.{kind.__qualname__}")
        if rule is not None:
            return rule(self, value)
        if kind.__module__ == "numpy" and isinstance(value, sys.modules["numpy"].generic):
            if value.dtype.kind not in "biuf":
                raise NotComparable
            return "numpy", value.dtype.str, value.tobytes()
        return self._found(value)

    def _found(self, value: Any) -> Token:
        """A type or a function, by its module and name."""
        is_function = isinstance(value, (type, BuiltinFunctionType, FunctionType))
        if not is_function and type(value).__name__ != "ufunc":
            raise NotComparable
        module, name = getattr(value, "__module__", None) or "numpy", value.__name__
        home = sys.modules.get(module)
        # A user's function may change, and has no meaning in a kernel anyway.
        is_ours = module.split(".", 1)[0] in ("builtins", "math", "numpy", "tirlite", "_operator")
        if not is_ours or getattr(home, name, None) is not value:
            raise NotComparable
        return "found", module, name

    def asked(self, value: object, asked: int) -> Token:
        """The token of as much of a value as was asked for."""
        if asked == Asked.PRESENCE:
            return "has", value is not ABSENT
        if asked == Asked.DIM and not _may_be_dim(value):
            return ("no dim",)
        return self.of(value)

    def names(self, function: FunctionType, frame_locals: Any) -> Iterator[Token]:
        """Yields each name that a function looks up, what it asks of it, and the token of that."""
        layers = layers_of(function, frame_locals)
        for name, asked in self._asked_of(function):
            yield name, int(asked), self.asked(looked_up(name, layers), asked)

    def inline(self, value: Any) -> Token:
        """An inline function, with all that it uses."""
        function = value.function
        if function in self._inside:
            return "again", self._inside.index(function)
        self._inside.append(function)
        defaults = self.of(function.__defaults__ or ())
        found = "inline", source_token(function), defaults, tuple(self.names(function, value.frame_locals))
        self._inside.pop()
        return found

    def dtype(self, value: Any) -> Token:
        return "dtype", value.code.value, value.bits, value.lanes

    def fields(self, value: Any) -> Token:
        """A record, by all its fields."""
        return type(value).__name__, tuple(self.of(getattr(value, name)) for name in parts_of(type(value)))

    def dim(self, value: Any) -> Token:
        return "dim", value.name, value.min, value.max, value.multiple_of

    def size(self, value: Any) -> Token:
        """A polynomial of dims."""
        terms = [(tuple(map(self.of, product)), count) for product, count in value.terms.items()]
        return "size", tuple(sorted(terms, key=repr))

    def var(self, value: Any) -> Token:
        """A dim; other variables have no identity in another process."""
        if value.dim is None:
            raise NotComparable
        return "var", value.name, self.of(value.dtype), self.of(value.dim)

    def operation(self, value: Any) -> Token:
        return type(value).__name__, self.of(value.a), self.of(value.b)

    def constant(self, value: Any) -> Token:
        return "constant", self.of(value.dtype), self.of(value.value)

    def kernel(self, value: Any) -> Token:
        return "kernel", value.content


def asked_by(lookups: Lookups) -> Callable[[FunctionType], Iterable[tuple[str, int]]]:
    """What functions looked up while they were translated."""
    return lambda function: [(name, asked) for name, (asked, _) in sorted(lookups.names.get(function, {}).items())]


def _may_be_dim(value: object) -> bool:
    return type(value).__module__.split(".", 1)[0] in ("tirlite", "sympy")


_RULES: dict[str, Callable[[Tokens, Any], Token]] = {
    "tirlite.dsl.inline.Inline": Tokens.inline,
    "tirlite.ir.dtype.DType": Tokens.dtype,
    "tirlite.ir.dtype.TensorType": Tokens.fields,
    "tirlite.dsl.parameters.ParamType": Tokens.fields,
    "tirlite.sizes.dim.Dim": Tokens.dim,
    "tirlite.sizes.poly.Poly": Tokens.size,
    "tirlite.ir.expr.Var": Tokens.var,
    **dict.fromkeys(
        (f"tirlite.ir.expr.{name}" for name in ("Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Min", "Max")),
        Tokens.operation,
    ),
    "tirlite.ir.expr.IntImm": Tokens.constant,
    "tirlite.ir.expr.FloatImm": Tokens.constant,
    "tirlite.driver.kernel.Kernel": Tokens.kernel,
}
