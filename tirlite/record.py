"""Makes the annotated names of a class its fields: `@record`, and the base `Record` for classes with few objects.

What `dataclass(frozen=True, slots=True)` gives, and `fields` and `replace` of `dataclasses` take. That one compiles six
methods for each class when its module is imported, half a millisecond a class, and tirlite has hundreds of them. Here
methods are shared, but for `__init__`, which is compiled when the first object is made, and the objects that `fields`
tells of are made when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, field, make_dataclass
from functools import wraps
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from dataclasses import replace as replace  # whose arguments the type checker knows
    from inspect import Signature

C = TypeVar("C", bound=type)
# The type of each field, and what stands behind its `=`: a default, a Field, or MISSING.
Parts: TypeAlias = Mapping[str, tuple[object, Any]]


T = TypeVar("T")
S = TypeVar("S")
K = TypeVar("K")
V = TypeVar("V")


class cached_property(Generic[T]):  # noqa: N801
    """As `functools.cached_property`, but without the lock that Python 3.11 has in it: one for all objects of a class.

    In the child of a fork it is never given back, where another thread held it.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def cached_method(compute: Callable[[S, K], V]) -> Callable[[S, K], V]:
    """A method of one argument that computes its result once for each, as long as its object exists."""
    slot = compute.__qualname__  # no attribute has this name

    @wraps(compute)
    def kept(self: S, key: K) -> V:
        known: dict[K, V] = self.__dict__.setdefault(slot, {})
        if key not in known:
            known[key] = compute(self, key)
        return known[key]

    return kept


# So many objects of a class are made before its `__init__` is compiled: as many as take what that takes, 0.1 ms.
_FIRST_OBJECTS = 100


if not TYPE_CHECKING:

    def replace(of: T, /, **changes: object) -> T:
        """Another record like `of` with these fields, as `dataclasses.replace` makes, which makes a dataclass first."""
        kind: Any = type(of)
        for name, (_, part) in kind.__parts__.items():
            if name not in changes and not (isinstance(part, Field) and not part.init):
                changes[name] = getattr(of, name)
        return kind(**changes)


class _New:
    """The default of a parameter whose field is made anew for each object."""

    def __repr__(self) -> str:
        return "<new>"


_NEW = _New()


@overload
def record(cls: C, /) -> C: ...


@overload
def record(
    *, frozen: bool = True, eq: bool = True, repr: bool = True, slots: bool = True, guarded: bool = True
) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    cls: C | None = None,
    /,
    *,
    frozen: bool = True,
    eq: bool = True,
    repr: bool = True,  # noqa: A002
    slots: bool = True,
    guarded: bool = True,
) -> Any:
    """The class as a dataclass with slots, frozen unless told otherwise.

    With `eq`, objects are compared and hashed by their fields, else by identity. Without `slots`, there is room for
    what a `cached_property` keeps. Methods of the class's own stay. Without `guarded`, only the type checker sees to it
    that objects stay as they are: making one takes a third of the time then, for what a pass makes for each statement.
    """
    options = {"frozen": frozen, "eq": eq, "shown": repr, "slots": slots, "guarded": guarded and frozen}
    return _made(cls, **options) if cls is not None else lambda decorated: _made(decorated, **options)


def parts_of(cls: Any) -> Parts:
    """The fields of a record in order, those of its bases first."""
    return getattr(cls, "__parts__", {})


def _made(cls: Any, *, frozen: bool, eq: bool, shown: bool, slots: bool, guarded: bool) -> Any:
    own = {name: member for name, member in vars(cls).items() if name != "__parts__"}
    new = _own_parts(cls)
    parts = {**(parts_of(cls) if cls.__base__ is not object else {}), **new}
    taken = compared = hashed = tuple(parts)
    # Of most records, nothing is told of any field: this runs for each class while tirlite is imported.
    is_plain = not any(isinstance(part, Field) for _, part in parts.values())
    if not is_plain:
        taken = tuple(name for name in parts if _has(parts[name], "init") and not _is_keyword(parts[name]))
        compared = tuple(name for name in parts if _has(parts[name], "compare"))
        hashed = _hashed(parts)
    methods: dict[str, object] = {"__parts__": parts, "__match_args__": taken, **_SHARED[frozen, guarded]}
    if guarded:
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    if shown:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _equality(compared)
        if own.get("__hash__") is None:
            own["__hash__"] = _hashing(hashed) if frozen else None
    made = _rebuilt(cls, methods | own, new) if slots else _extended(cls, methods | own, new)
    if "__init__" not in own:
        made.__init__ = _first_init(made, guarded=guarded, is_plain=is_plain)
    return made


def _own_parts(cls: Any) -> Parts:
    """The fields that the class itself declares."""
    own, kinds = vars(cls), cls.__annotations__.items()
    return {name: (kind, own.get(name, MISSING)) for name, kind in kinds if "ClassVar" not in str(kind)}


def _has(part: tuple[object, Any], what: str) -> bool:
    """Whether a field goes into `__init__`, into comparisons, or into the representation."""
    return not isinstance(part[1], Field) or bool(getattr(part[1], what))


def _hashed(parts: Parts) -> tuple[str, ...]:
    """What goes into the hash: what is compared, unless a field says otherwise."""
    told = {name: part.hash for name, (_, part) in parts.items() if isinstance(part, Field)}
    return tuple(name for name, part in parts.items() if told.get(name) in (None, True) and _has(part, "compare"))


def _is_keyword(part: tuple[object, Any]) -> bool:
    return isinstance(part[1], Field) and part[1].kw_only is True


def _rebuilt(cls: Any, members: dict[str, Any], new: Parts) -> Any:
    """The class made again, since slots cannot be given to one that is there."""
    taken = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
    members["__slots__"] = tuple(name for name in new if name not in taken)
    members["__qualname__"] = cls.__qualname__
    for name in (*new, "__dict__", "__weakref__"):
        members.pop(name, None)
    return type(cls)(cls.__name__, cls.__bases__, members)


def _extended(cls: Any, members: dict[str, Any], new: Parts) -> Any:
    """The class itself with these members; what `field` says of a name is not a value for it."""
    for name in new:
        if isinstance(members.get(name), Field):
            delattr(cls, name)
    for name, member in members.items():
        if name not in new and vars(cls).get(name, MISSING) is not member:
            setattr(cls, name, member)
    return cls


class _LazyDataclass:
    """What the module `dataclasses` keeps in a class, made by that module when it first asks for it."""

    def __init__(self, name: str, *, frozen: bool) -> None:
        self.name = name
        self.frozen = frozen

    def __get__(self, instance: object, owner: Any) -> object:
        listed = [(n, kind) if part is MISSING else (n, kind, part) for n, (kind, part) in parts_of(owner).items()]
        # Only what is compiled for a frozen one takes long, and the signature that stands in for a docstring.
        frozen = self.frozen and self.name == "__dataclass_params__"
        space = {"__doc__": "The fields of a record."}
        twin = make_dataclass(owner.__name__, listed, init=False, repr=False, eq=False, frozen=frozen, namespace=space)
        found: object = getattr(twin, self.name)
        # What a base keeps would be that of its subclasses.
        if self.name in vars(owner):
            setattr(owner, self.name, found)
        return found


def _first_init(made: Any, *, guarded: bool, is_plain: bool) -> Callable[..., None]:
    """An `__init__` for the first objects: slow, but compiling one takes as long as many of them.

    Those are most of what a first kernel makes. Where it `is_plain`, nothing is told of any field.
    """
    left = _FIRST_OBJECTS

    def __init__(self: Any, /, *values: object, **named: object) -> None:  # noqa: N807
        nonlocal left
        left -= 1
        parts = parts_of(made)
        if is_plain and left >= 0 and len(values) == len(parts) and not named:
            filled: Mapping[str, object] | None = dict(zip(parts, values, strict=True))
        else:
            filled = _filled(parts, values, named) if left >= 0 else None
        if filled is None:
            made.__init__ = _compiled_init(made, guarded=guarded)
            made.__init__(self, *values, **named)
            return
        for name, value in filled.items():
            object.__setattr__(self, name, value)
        if hasattr(made, "__post_init__"):
            self.__post_init__()

    return __init__


def _filled(parts: Parts, values: tuple[object, ...], named: dict[str, object]) -> dict[str, object] | None:
    """What goes into each field; None where these are not arguments of `__init__`, which tells then what is wrong."""
    filled: dict[str, object] = {}
    rest = list(reversed(values))
    taken = 0
    for name, (_, part) in parts.items():
        default: object = part
        factory: Any = MISSING
        is_parameter = is_positional = True
        if isinstance(part, Field):
            default, factory = part.default, part.default_factory
            is_parameter, is_positional = part.init, part.kw_only is not True
        if is_parameter and is_positional and rest:
            filled[name] = rest.pop()
        elif is_parameter and name in named:
            filled[name] = named[name]
            taken += 1
        elif factory is not MISSING:
            filled[name] = factory()
        elif default is not MISSING:
            filled[name] = default
        elif is_parameter:
            return None
    return filled if not rest and taken == len(named) else None


def _compiled_init(made: Any, *, guarded: bool) -> Callable[..., None]:
    names: dict[str, object] = {"_new": _NEW, "__name__": made.__module__}
    header, body = _source(parts_of(made), names)
    put = "self.{0} = {1}"
    if guarded and "__slots__" in vars(made):
        # The slots themselves know nothing of being frozen, and take less time than `object.__setattr__`.
        put = "_put_{0}(self, {1})"
        names |= {f"_put_{name}": getattr(made, name).__set__ for name, _ in body}
    elif guarded:
        put = "self.__dict__['{0}'] = {1}"
    lines = [put.format(name, value) for name, value in body]
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(header)}):\n " + "\n ".join(lines or ["pass"]), names)
    init: Any = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init  # type: ignore[no-any-return]


def _source(parts: Parts, names: dict[str, object]) -> tuple[list[str], list[tuple[str, str]]]:
    """Parameters and, for each field with a value, its name and the expression of that; `names` gets the defaults."""
    positional, body = ["self"], []
    keywords: list[str] = []
    for name, (_, part) in parts.items():
        default, is_parameter = f"_default_{name}", _has(parts[name], "init")
        value: object = part
        factory: object = MISSING
        if isinstance(part, Field):
            value, factory = part.default, part.default_factory
        parameter = given = name
        if factory is not MISSING:
            names[default] = factory
            parameter, given = f"{name}=_new", f"{default}() if {name} is _new else {name}"
            if not is_parameter:
                given = f"{default}()"
        elif value is not MISSING:
            names[default] = value
            parameter, given = f"{name}={default}", name if is_parameter else default
        if is_parameter:
            (keywords if _is_keyword(parts[name]) else positional).append(parameter)
        if is_parameter or default in names:
            body.append((name, given))
    return [*positional, *(["*"] if keywords else []), *keywords], body


class _LazySignature:
    """What `inspect.signature` and `help` tell of a class whose `__init__` is not compiled yet."""

    def __init__(self, guarded: bool) -> None:
        self.guarded = guarded

    def __get__(self, instance: object, owner: Any) -> Signature:
        from inspect import signature

        found = signature(_compiled_init(owner, guarded=self.guarded))
        return found.replace(parameters=list(found.parameters.values())[1:])


def _no_setting(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deleting(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _Unproxied(dict[Any, Any]):
    """What a mapping proxy shows, on its way through a pickle, which does not take the proxy itself."""


def _state(self: Any) -> list[object]:
    values = [getattr(self, name) for name in parts_of(self)]
    return [_Unproxied(value) if isinstance(value, MappingProxyType) else value for value in values]


def _restore(self: Any, state: list[object]) -> None:
    for name, value in zip(parts_of(self), state, strict=True):
        put = MappingProxyType(dict(value)) if isinstance(value, _Unproxied) else value
        object.__setattr__(self, name, put)


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name, part in parts_of(self).items() if _has(part, "repr"))
    return f"{type(self).__qualname__}({shown})"


def _equality(names: tuple[str, ...]) -> Callable[[object, object], bool]:
    key = attrgetter(*names) if names else _nothing

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        if self is other:
            return True
        return bool(key(self) == key(other)) if type(self) is type(other) else NotImplemented

    return __eq__


def _hashing(names: tuple[str, ...]) -> Callable[[object], int]:
    key = attrgetter(*names) if names else _nothing
    return lambda self: hash(key(self))


def _nothing(_: object) -> tuple[()]:
    return ()


def _shared(*, frozen: bool, guarded: bool) -> Mapping[str, object]:
    """The members that are the same for all records of a kind."""
    lazy = {name: _LazyDataclass(name, frozen=frozen) for name in ("__dataclass_fields__", "__dataclass_params__")}
    guards = {"__setattr__": _no_setting, "__delattr__": _no_deleting} if guarded else {}
    return {"__replace__": replace, "__signature__": _LazySignature(guarded), **lazy, **guards}


_SHARED = {
    (frozen, guarded): _shared(frozen=frozen, guarded=guarded)
    for frozen, guarded in ((True, True), (True, False), (False, False))
}


def dashed(name: str) -> str:
    """The name of a class as one of a message or a pass: `check-races` of `CheckRaces`."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


class _ListedParts:
    """The fields of a subclass of Record, listed when something first asks for them: most messages are never made."""

    def __get__(self, instance: object, owner: type[Record]) -> Parts:
        inherited = next(parts_of(base) for base in owner.__mro__[1:] if "__parts__" in vars(base))
        owner._annotate(inherited)
        owner.__parts__ = {**inherited, **_own_parts(owner)}
        return owner.__parts__


_LISTED = _ListedParts()


class Record:
    """A base of frozen records: a subclass is one as it stands, and costs nothing until the first object is made.

    For hundreds of classes with few objects, like messages and passes. Fields of bases come first. Objects are
    compared and hashed by their class and fields.
    """

    __parts__: ClassVar[Parts] = {}
    __dataclass_fields__: ClassVar = _LazyDataclass("__dataclass_fields__", frozen=True)

    def __init_subclass__(cls) -> None:
        if "__parts__" not in vars(cls):
            setattr(cls, "__parts__", _LISTED)  # noqa: B010  # the base's are not the subclass's

    @classmethod
    def _annotate(cls, inherited: Parts) -> None:
        """Completes the annotations of a class whose base has these fields, before they are listed."""

    def __init__(self, *values: Any, **named: Any) -> None:
        filled = _filled(self.__parts__, values, named)
        if filled is None:
            _compiled_init(type(self), guarded=True)(self, *values, **named)  # tells what is wrong with these
        else:
            vars(self).update(filled)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return _repr(self)

    def __setattr__(self, name: str, value: object) -> None:
        _no_setting(self, name, value)
