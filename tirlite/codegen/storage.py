"""A function in, the home of each buffer that it allocates out: stack, workspace or heap.

Small buffers of constant size lie on the stack. Those whose size is known when the function is entered have a range
of the workspace each, which the caller provides. The rest are allocated where they are declared.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tirlite.codegen.refused import BufferTooLarge
from tirlite.ir import Allocate, Buffer, Call, Expr, IntImm, LetExpr, Load, PrimFunc, Var, statements, walk
from tirlite.plan.scope import Rank, StorageScope

STACK_BYTES = 64 * 1024  # of a whole function
SMALL_BYTES = 1024  # the most for a buffer that is not marked as local
LARGEST_BYTES = 1 << 62
LINE = 64  # the least alignment of the workspace, of its ranges, and of what lies on the heap


class Home(Enum):
    """Where the bytes of an allocation lie."""

    STACK = "stack"
    WORKSPACE = "workspace"
    HEAP = "heap"


@dataclass(frozen=True, slots=True)
class Storage:
    """The home of each buffer, in the order of the program.

    `sizes` holds the bytes of those of constant size, `line` is what every address outside of the stack is aligned to.
    """

    homes: dict[Buffer, Home]
    sizes: dict[Buffer, int]
    line: int

    def of(self, home: Home) -> tuple[Buffer, ...]:
        return tuple(buffer for buffer, place in self.homes.items() if place is home)


def assign_homes(func: PrimFunc) -> Storage:
    """The homes of all allocations. Raises KernelError for a buffer of constant size beyond 2^62 bytes."""
    known = {*func.dims, *(param for param in func.params if isinstance(param, Var))}
    homes: dict[Buffer, Home] = {}
    sizes: dict[Buffer, int] = {}
    stack = 0
    for stmt in statements(func.body):
        if not isinstance(stmt, Allocate) or stmt.buffer in homes:
            continue
        buffer = stmt.buffer
        size = constant_bytes(buffer)
        if size is None:
            homes[buffer] = Home.WORKSPACE if all(_is_known(e, known) for e in buffer.shape) else Home.HEAP
            continue
        if size > LARGEST_BYTES:
            raise BufferTooLarge(buffer.name, size, span=stmt.span).error()
        sizes[buffer] = size
        padded = stack + padded_bytes(size, LINE)
        small = size <= SMALL_BYTES or StorageScope.parse(buffer.scope).rank is Rank.LOCAL
        homes[buffer] = Home.STACK if small and padded <= STACK_BYTES else Home.WORKSPACE
        stack = padded if homes[buffer] is Home.STACK else stack
    return Storage(homes, sizes, max([LINE, *(buffer.alignment for buffer in homes)]))


def constant_bytes(buffer: Buffer) -> int | None:
    """The bytes of a buffer of constant size, else None."""
    size = buffer.dtype.bytes
    for extent in buffer.shape:
        if not isinstance(extent, IntImm):
            return None
        size *= extent.value
    return size


def padded_bytes(size: int, line: int) -> int:
    """`size` rounded up to whole lines."""
    return -(-size // line) * line


def _is_known(extent: Expr, known: set[Var]) -> bool:
    """Whether `extent` has its value when the function is entered."""
    bound = {node.var for node in walk(extent) if isinstance(node, LetExpr)}
    for node in walk(extent):
        if isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_math):
            return False
        if isinstance(node, Var) and node not in known and node not in bound:
            return False
    return True
