"""A class with annotated names in, the class with these as its fields out: `@record`, a dataclass that costs no time.

What `dataclass(frozen=True, slots=True)` gives, and `fields` and `replace` of `dataclasses` take. That one compiles six
methods for each class when its module is imported, half a millisecond a class, and tirlite has hundreds of them. Here
methods are shared, but for `__init__`, which is compiled when the first object is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from inspect import Signature

C = TypeVar("C", bound=type)


class _New:
    """The default of a parameter whose field is made anew for each object."""

    def __repr__(self) -> str:
        return "<new>"


_NEW = _New()


@overload
def record(cls: C, /) -> C: ...


@overload
def record(*, frozen: bool = True, eq: bool = True, repr: bool = True) -> Callable[[C], C]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: C | None = None, /, *, frozen: bool = True, eq: bool = True, repr: bool = True) -> Any:  # noqa: A002
    """The class as a dataclass with slots, frozen unless told otherwise.

    With `eq`, objects are compared and hashed by their fields, else by identity. Methods of the class's own stay.
    """
    if cls is not None:
        return _made(cls, frozen=frozen, eq=eq, shown=repr)
    return lambda decorated: _made(decorated, frozen=frozen, eq=eq, shown=repr)


def _made(cls: Any, *, frozen: bool, eq: bool, shown: bool) -> Any:
    own = dict(vars(cls))
    # `dataclass` looks at the signature of what has no docstring, which takes as long as all the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    compared = tuple(f.name for f in fields(made) if f.compare)
    methods: dict[str, object] = {"__init__": _first_init(made, frozen=frozen), "__signature__": _LazySignature(frozen)}
    if frozen:
        methods |= {"__setattr__": _no_setting, "__delattr__": _no_deleting}
        methods |= {"__getstate__": _state, "__setstate__": _restore}
    if shown:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _equality(compared)
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    if eq and own.get("__hash__") is None:
        setattr(made, "__hash__", _hashing(compared) if frozen else None)  # noqa: B010
    return made


def _first_init(made: Any, *, frozen: bool) -> Callable[..., None]:
    """An `__init__` that puts the compiled one in its place."""

    def __init__(self: object, /, *values: object, **named: object) -> None:  # noqa: N807
        made.__init__ = _compiled_init(made, frozen=frozen)
        made.__init__(self, *values, **named)

    return __init__


def _compiled_init(made: Any, *, frozen: bool) -> Callable[..., None]:
    names: dict[str, object] = {"_new": _NEW, "__name__": made.__module__}
    header, body = _source(fields(made), names)
    put = "_put_{0}(self, {1})" if frozen else "self.{0} = {1}"
    if frozen:  # the slots themselves know nothing of being frozen, and take less time than `object.__setattr__`
        names |= {f"_put_{name}": getattr(made, name).__set__ for name, _ in body}
    lines = [put.format(name, value) for name, value in body]
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(header)}):\n " + "\n ".join(lines or ["pass"]), names)
    init: Any = names["__init__"]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init  # type: ignore[no-any-return]


def _source(each: tuple[Field[Any], ...], names: dict[str, object]) -> tuple[list[str], list[tuple[str, str]]]:
    """Parameters and, for each field with a value, its name and the expression of that; `names` gets the defaults."""
    positional, body = ["self"], []
    keywords: list[str] = []
    for f in each:
        default = parameter = ""
        value = f.name
        if f.default is not MISSING:
            default = f"_default_{f.name}"
            names[default] = f.default
            parameter, value = f"{f.name}={default}", f.name if f.init else default
        elif f.default_factory is not MISSING:
            default = f"_default_{f.name}"
            names[default] = f.default_factory
            parameter = f"{f.name}=_new"
            value = f"{default}() if {f.name} is _new else {f.name}" if f.init else f"{default}()"
        if f.init:
            (keywords if f.kw_only else positional).append(parameter or f.name)
        if f.init or default:
            body.append((f.name, value))
    return [*positional, *(["*"] if keywords else []), *keywords], body


class _LazySignature:
    """What `inspect.signature` and `help` tell of a class whose `__init__` is not compiled yet."""

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen

    def __get__(self, instance: object, owner: Any) -> Signature:
        from inspect import signature

        found = signature(_compiled_init(owner, frozen=self.frozen))
        return found.replace(parameters=list(found.parameters.values())[1:])


def _no_setting(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deleting(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, f.name) for f in fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for f, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
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
