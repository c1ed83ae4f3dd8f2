"""The data of the storage check: regions of the program, events in them, and which resident occupies which bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import Enum
from typing import Protocol

from tirlite.diag import Span
from tirlite.ir import Allocate, Buffer, For, ForKind, Node, Stmt, View
from tirlite.plan import Rank, StorageScope
from tirlite.record import record, replace
from tirlite.sizes import Size


class Flow(Enum):
    """How a region runs: once, any number of times, or as one of its two branches."""

    ONCE = "once"
    LOOP = "loop"
    CHOICE = "choice"


@record(frozen=False, eq=False)
class ProgramPart:
    """A part of the program, from position `begin` to `end`.

    `attach` is the parallel or thread-bound loop whose iterations have storage of their own here; `attached` is the
    region of that loop. `barriers` are the positions of those that stand here, or in loops over threads here.
    `composite` is the statement that this is the body of, or one of the two: then `is_else` tells them apart.
    """

    flow: Flow
    parent: ProgramPart | None
    depth: int
    begin: int
    attach: For | None = None
    attached: ProgramPart | None = None
    end: int = -1
    barriers: list[int] = field(default_factory=list)
    composite: Stmt | None = None
    is_else: bool = False

    def around(self) -> Iterator[ProgramPart]:
        """The region itself, and those around it."""
        region: ProgramPart | None = self
        while region is not None:
            yield region
            region = region.parent


@record(guarded=False)
class Happening:
    """What happens to a buffer at one place of the program: it is written, or else read.

    `stmt` is the leaf, or the composite whose bound or condition it is in; `node` is the Load, Store, or call in it.
    """

    position: int
    writes: bool
    region: ProgramPart
    stmt: Stmt
    node: Node


@record(frozen=False, eq=False)
class Root:
    """An Allocate of the rewritten program, and the allocations of the original one that live in it.

    `thread` is the innermost loop over threads around it, if any, and `block` that over blocks.
    """

    stmt: Allocate
    region: ProgramPart
    thread: For | None
    block: For | None
    residents: list[Resident] = field(default_factory=list)


@record(eq=False, guarded=False)
class DeclaredBuffer:
    """A buffer as the rewritten program declares it; `source` is that of a view. The caller's arrays are not declared.

    It knows nothing of those that live in it: such a cycle would keep all of them until the next cyclic collection.
    """

    declaration: Allocate | View | None
    source: DeclaredBuffer | None = None

    @property
    def outermost(self) -> DeclaredBuffer:
        """The one that this one lies in."""
        declared = self
        while declared.source is not None:
            declared = declared.source
        return declared


@record(frozen=False, eq=False)
class Resident:
    """One Allocate of the original program, where the rewritten one keeps it, and all that happens to it, in order.

    At `position` it begins anew. `opaque` is where its address is first handed on, and the statement that first touches
    it if it is volatile. `thread` is the innermost loop over threads around the Allocate, `block` that over blocks;
    `is_forked` says that loops over threads inside of that one touch it. If several threads use it, `stretches` are the
    positions at which they may do so.
    """

    stmt: Allocate
    region: ProgramPart
    position: int
    declared: DeclaredBuffer
    happenings: list[Happening] = field(default_factory=list)
    opaque: Stmt | None = None
    thread: For | None = None
    block: For | None = None
    is_forked: bool = False
    stretches: Sequence[tuple[int, int]] = ()

    @property
    def buffer(self) -> Buffer:
        return self.stmt.buffer

    @property
    def is_shared(self) -> bool:
        """Whether it is one for all threads of a block by its scope, wherever it is declared."""
        return StorageScope.parse(self.buffer.scope).rank is Rank.SHARED

    @property
    def is_seen_by_several(self) -> bool:
        """Whether several threads, which run at no fixed pace, may use it."""
        attach = self.region.attach
        if attach is None or attach.kind is not ForKind.THREAD:
            return False
        return self.thread is None or self.is_shared or self.is_forked


class InPlaceClaim(Protocol):
    """A proof that `destination` may take over the bytes of `source` while the statements from `at` to `until` run.

    `accesses` are all those that it spoke of: the buffer of the two, the Load, Store or KernelCall, and whether that
    writes, in program order.
    """

    @property
    def destination(self) -> Buffer: ...

    @property
    def source(self) -> Buffer: ...

    @property
    def at(self) -> Stmt: ...

    @property
    def until(self) -> Stmt: ...

    @property
    def accesses(self) -> Sequence[tuple[Buffer, Node, bool]]: ...


@record
class StorageFault:
    """What is wrong with a rewritten program. `span` is the statement that goes wrong, `related` the one that is to
    blame. `is_doubt` says that no bytes were found at which it goes wrong: only the proof is missing. False.
    """

    text: str
    buffers: tuple[str, ...] = ()
    span: Span | None = None
    related: Span | None = None
    is_doubt: bool = False

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return self.text


class Wrong(Exception):
    """Carries a fault to the way out of the check."""

    def __init__(self, text: str, buffers: Sequence[Buffer] = (), at: Stmt | None = None, by: Stmt | None = None):
        super().__init__(text)
        span, related = (None if stmt is None else stmt.span for stmt in (at, by))
        self.fault = StorageFault(text, tuple(buffer.name for buffer in buffers), span, related)

    def marked(self, *, is_doubt: bool) -> Wrong:
        """The same, with that said of the fault."""
        self.fault = replace(self.fault, is_doubt=is_doubt)
        return self


@record(guarded=False)
class Bytes:
    """The bytes of a resident in its root: from `low`, and before `high`."""

    low: Size
    high: Size
