"""What the check of a rewrite knows of storage: regions of the program, events in them, and who lives where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from tirlite.diag import Span
from tirlite.ir import Allocate, Buffer, For, Stmt, View
from tirlite.sizes import Size


class Flow(Enum):
    """How a region runs: once, any number of times, or as one of its two branches."""

    ONCE = "once"
    LOOP = "loop"
    CHOICE = "choice"


@dataclass(slots=True, eq=False)
class Region:
    """A part of the program, from position `begin` to `end`.

    `attach` is the parallel or thread-bound loop whose iterations have storage of their own here; `attached` is the
    region of that loop.
    """

    flow: Flow
    parent: Region | None
    depth: int
    begin: int
    attach: For | None = None
    attached: Region | None = None
    end: int = -1


class Event(Enum):
    """What happens to a buffer: it begins anew, is read, or is written."""

    DECLARE = "declare"
    LOAD = "load"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class Happening:
    """An event at one place of the program. `stmt` is the leaf, or the composite whose bound or condition it is in."""

    position: int
    event: Event
    region: Region
    stmt: Stmt


@dataclass(slots=True, eq=False)
class Root:
    """An Allocate of the rewritten program, and the allocations of the original one that live in it."""

    stmt: Allocate
    region: Region
    residents: list[Resident] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A buffer as the rewritten program declares it. The caller's arrays have no `root`."""

    root: Root | None
    declaration: Allocate | View | None
    source: Window | None = None


@dataclass(slots=True, eq=False)
class Resident:
    """One Allocate of the original program, where the rewritten one keeps it, and all that happens to it, in order.

    `opaque` is where its address is first handed on, and the statement that first touches it if it is volatile.
    """

    stmt: Allocate
    region: Region
    position: int
    window: Window
    happenings: list[Happening] = field(default_factory=list)
    opaque: Stmt | None = None

    @property
    def buffer(self) -> Buffer:
        return self.stmt.buffer


class Handover(Protocol):
    """A proof that `destination` may take over the bytes of `source` while the statement `at` runs."""

    @property
    def destination(self) -> Buffer: ...

    @property
    def source(self) -> Buffer: ...

    @property
    def at(self) -> Stmt: ...


@dataclass(frozen=True, slots=True)
class StorageFault:
    """What is wrong with a rewritten program. `span` is the statement that goes wrong, `related` the one that is to
    blame. False.
    """

    text: str
    buffers: tuple[str, ...] = ()
    span: Span | None = None
    related: Span | None = None

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.text


class Wrong(Exception):
    """Carries a fault to the way out of the check."""

    def __init__(self, text: str, buffers: Sequence[Buffer] = (), at: Stmt | None = None, by: Stmt | None = None):
        super().__init__(text)
        spans = (None if stmt is None else stmt.span for stmt in (at, by))
        self.fault = StorageFault(text, tuple(buffer.name for buffer in buffers), *spans)


@dataclass(frozen=True, slots=True)
class Bytes:
    """The bytes of a resident in its root: from `low`, and before `high`."""

    low: Size
    high: Size
