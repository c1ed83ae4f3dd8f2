"""Statements of the IR. Every body is a SeqStmt, and a SeqStmt never directly contains a SeqStmt.

Names declared by a leaf (`Allocate`, `View`, `Let`) are valid to the end of the SeqStmt around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tirlite.diag import Span
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Buffer, Call, Expr, IntImm, Max, Sub, Var, const
from tirlite.ir.node import Node, node
from tirlite.ir.op import Op

if TYPE_CHECKING:
    from tirlite.sizes import Size


@node
class Stmt(Node):
    """A step of the program. `span` is its source location, which passes keep."""

    span: Span | None = field(default=None, kw_only=True)

    @property
    def bodies(self) -> tuple[SeqStmt, ...]:
        """The blocks in it: one in a loop, two in a branch, none in a leaf."""
        return tuple([child for child in self.children() if isinstance(child, SeqStmt)])


@node
class SeqStmt(Stmt):
    """A sequence of statements; a block, to whose end the names declared in it are valid.

    `kinds` are the classes of the statements.
    """

    CHILDREN: ClassVar = ("stmts",)
    stmts: tuple[Stmt, ...] = ()
    kinds: frozenset[type[Stmt]] = field(init=False)

    def __post_init__(self) -> None:
        kinds = frozenset(map(type, self.stmts))
        if SeqStmt in kinds:
            object.__setattr__(self, "stmts", tuple(_spliced(self.stmts)))
            kinds = frozenset(map(type, self.stmts))
        object.__setattr__(self, "kinds", kinds)


def _spliced(stmts: Iterable[Stmt]) -> Iterable[Stmt]:
    for stmt in stmts:
        if isinstance(stmt, SeqStmt):
            yield from stmt.stmts
        else:
            yield stmt


@node
class Store(Stmt):
    """`buffer[indices] = value`; the value has the type of the access."""

    CHILDREN: ClassVar = ("indices", "value")
    USES: ClassVar = ("buffer",)
    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@node
class Evaluate(Stmt):
    """An expression evaluated for its effect."""

    CHILDREN: ClassVar = ("value",)
    value: Expr


@node
class Allocate(Stmt):
    """Fresh, uninitialised storage under a new buffer."""

    DEFINES: ClassVar = ("buffer",)
    buffer: Buffer


@node
class View(Stmt):
    """A new buffer on the bytes of `source` from `byte_offset` on.

    A fresh view stands for an Allocate: it reads only what was written through it or through views of it.
    """

    CHILDREN: ClassVar = ("byte_offset",)
    DEFINES: ClassVar = ("buffer",)
    USES: ClassVar = ("source",)
    buffer: Buffer
    source: Buffer
    byte_offset: Expr
    fresh: bool = False


@node
class Let(Stmt):
    """A new variable, bound once."""

    CHILDREN: ClassVar = ("value",)
    DEFINES: ClassVar = ("var",)
    var: Var
    value: Expr


@node
class Assert(Stmt):
    """Stops the kernel with `message` if the condition does not hold.

    With `values`, the message has a placeholder `{}` for each, computed only on failure; other braces are doubled.
    """

    CHILDREN: ClassVar = ("condition", "values")
    condition: Expr
    message: str
    values: tuple[Expr, ...] = ()


class ForKind(Enum):
    """How the iterations of a loop are meant to run; the value is the loop's DSL spelling."""

    SERIAL = "range"
    PARALLEL = "tl.parallel"
    VECTORIZED = "tl.vectorized"
    UNROLLED = "tl.unroll"
    THREAD = "tl.thread"
    REDUCE = "tl.reduce"


@node
class For(Stmt):
    """`var` from `start` while below `stop` (above, for a negative step), in steps of the constant `step`.
    The bounds are i64 and evaluated once. A thread-bound loop has a tag such as `threadIdx.x`, starts at 0 and has step
    1. The iterations of a reduction may be regrouped: they only combine values into shared memory by one operation.
    """

    CHILDREN: ClassVar = ("start", "stop", "body")
    DEFINES: ClassVar = ("var",)
    var: Var
    start: Expr
    stop: Expr
    body: SeqStmt
    kind: ForKind = ForKind.SERIAL
    step: int = 1
    thread_tag: str = ""

    @property
    def values(self) -> range | None:
        """The values of `var` in all iterations; None if the bounds are not constant."""
        start, stop = self.start, self.stop
        if isinstance(start, IntImm) and isinstance(stop, IntImm):
            return range(start.value, stop.value, self.step)
        return None

    def distance(self, start: Size, stop: Size) -> Size:
        """The distance from `start` to `stop` in the direction of the loop."""
        return stop - start if self.step > 0 else start - stop

    @property
    def count(self) -> Expr:
        """The number of iterations if `step` is 1; never negative, and saturated at the largest i64."""
        start, stop = self.start, self.stop
        if isinstance(start, IntImm) and isinstance(stop, IntImm):
            return const(max(stop.value - start.value, 0), i64)
        if isinstance(start, IntImm) and start.value == 0:
            return stop if isinstance(stop, Var) and stop.dim is not None and stop.dim.low >= 0 else Max(stop, start)
        return Max(Sub(Max(stop, start), start), const(0, i64))


class ThreadRole(Enum):
    """The role of a thread-bound loop's iterations.
    Blocks are independent of each other. The threads of a block share its memory and meet at barriers. Virtual threads
    are threads of the block that one thread runs in turns, statement by statement.
    """

    BLOCK = "block"
    THREAD = "thread"
    VIRTUAL = "virtual thread"


_ROLES = {
    "blockIdx": ThreadRole.BLOCK,
    "threadIdx": ThreadRole.THREAD,
    **dict.fromkeys(("vthread", "cthread", "virtual_thread"), ThreadRole.VIRTUAL),
}
# The tags of thread-bound loops, those of TVM: a name, perhaps with an axis.
THREAD_TAGS = (*(f"{name}.{axis}" for name in _ROLES for axis in "xyz"), *_ROLES)


def thread_role(stmt: Stmt) -> ThreadRole | None:
    """The role of a thread-bound loop by its tag, `blockIdx.x`, `vthread` and so on; None for other statements."""
    if not isinstance(stmt, For) or stmt.kind is not ForKind.THREAD:
        return None
    return _ROLES.get(stmt.thread_tag.partition(".")[0], ThreadRole.THREAD)


@node
class While(Stmt):
    """Repeats the body while the condition holds."""

    CHILDREN: ClassVar = ("condition", "body")
    condition: Expr
    body: SeqStmt


@node
class IfThenElse(Stmt):
    """One of two bodies; without an else the second is empty."""

    CHILDREN: ClassVar = ("condition", "then_body", "else_body")
    condition: Expr
    then_body: SeqStmt
    else_body: SeqStmt = SeqStmt()


class AttrKey(Enum):
    """The kinds of AttrStmt; the value is the key as spelt in the DSL. See `PAYLOADS`."""

    STORAGE_SCOPE = "storage_scope"
    VOLATILE_SCOPE = "volatile_scope"
    DOUBLE_BUFFER = "double_buffer"
    EXTERN_SCOPE = "extern_scope"
    PRAGMA = "pragma"
    DISJOINT = "disjoint"
    ALLOW = "allow"
    UNCHECKED = "unchecked"
    NONTEMPORAL = "nontemporal"


class Permission(Enum):
    """Permissions for passes to change the last bits of floats; the value is the name in `tl.allow`.

    `approximate`: functions in their fast forms, up to 4 ULP. `contract`: a product and a sum as one operation that
    rounds once, `tl.fma`. `reassociate`: loops that only combine values as reductions, see `FindReductions`.
    `rescale`: exp(a + b) as exp(a) * exp(b), which the schedule step `rescale` needs.
    """

    APPROXIMATE = "approximate"
    CONTRACT = "contract"
    REASSOCIATE = "reassociate"
    RESCALE = "rescale"


# Sets of entries of a buffer.
Rows: TypeAlias = tuple[tuple[int, ...], ...]
AttrValue: TypeAlias = str | int | Rows | tuple[Permission, ...] | None

# For each key: whether it is about a buffer, and the type of its value. DISJOINT is about a plan, whose entries are
# byte offsets of views: views at different entries of a row do not overlap while the body runs.
PAYLOADS: dict[AttrKey, tuple[bool, type]] = {
    AttrKey.STORAGE_SCOPE: (True, str),
    AttrKey.VOLATILE_SCOPE: (True, type(None)),
    AttrKey.DOUBLE_BUFFER: (True, type(None)),
    AttrKey.EXTERN_SCOPE: (False, type(None)),
    AttrKey.PRAGMA: (False, str),
    AttrKey.DISJOINT: (True, tuple),
    AttrKey.ALLOW: (False, tuple),
    AttrKey.UNCHECKED: (False, type(None)),
    AttrKey.NONTEMPORAL: (True, type(None)),
}


@node
class AttrStmt(Stmt):
    """A property of a buffer, or of the body as a whole, that holds while the body runs."""

    CHILDREN: ClassVar = ("body",)
    USES: ClassVar = ("buffer",)
    key: AttrKey
    body: SeqStmt
    buffer: Buffer | None = None
    value: AttrValue = None


def seq(*stmts: Stmt) -> SeqStmt:
    """The statements as one block."""
    return SeqStmt(stmts)


def is_barrier(stmt: Stmt) -> bool:
    """Whether a statement is a barrier for the threads of a block."""
    return isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op is Op.BARRIER


def nested(loops: Sequence[For], *stmts: Stmt) -> SeqStmt:
    """The statements inside of these loops, the first one outermost, replacing the loops' bodies."""
    body = SeqStmt(stmts)
    for loop in reversed(loops):
        body = SeqStmt((loop.replaced(body=body),))
    return body


def counting(variables: Iterable[Var], extents: Iterable[Expr]) -> list[For]:
    """For each variable an empty loop from 0 up to an extent."""
    return [For(var, const(0, i64), extent, SeqStmt()) for var, extent in zip(variables, extents, strict=True)]
