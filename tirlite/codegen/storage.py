"""Chooses the home of each buffer that a function allocates: stack, workspace or heap.

The smallest buffers of constant size lie on the stack, as many as fit. Those whose size is known when the function is
entered have a range of the workspace each, which the caller provides; where a parallel loop is handed to workers, each
worker has its own. The rest are allocated where they are declared. So the workspace holds the ranges of the function's
own buffers, and then, for each such loop, one part for each worker with the ranges of the buffers inside the loop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from tirlite.analysis import ShapePlan, shape_plan
from tirlite.analysis.loops.work import distributed_loops
from tirlite.codegen.refused import BufferTooLarge
from tirlite.ir.expr import Buffer, Call, Expr, LetExpr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, callees, calls_in
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import Allocate, For
from tirlite.ir.walk import statements, statements_of, walk
from tirlite.record import record, replace
from tirlite.sizes import round_up

if TYPE_CHECKING:
    from tirlite.codegen.doubtful import OnEntry

# Along any chain of calls. The stack of a Python thread may be small, and much of it taken.
STACK_BYTES = 16 * 1024
LARGEST_BYTES = 1 << 62
LINE = 64  # the least alignment of the workspace, of its ranges, and of what lies on the heap


# Where the bytes of an allocation lie.
Home: TypeAlias = Literal["stack", "workspace", "heap"]


@record
class Storage:
    """The home of each buffer, in program order.

    `sizes` holds the bytes of buffers of constant size, `shapes` the extents of the others in the workspace, over dims
    and parameters; every address outside of the stack is aligned to `line`.
    `workers` are the loops that several workers share, with their number, and `ranges` are the buffers in the workspace
    of each worker of such a loop, and, under None, in that of the function; those of constant size first.
    `plan` is the storage plan that the function receives with each call, if it does.
    """

    homes: dict[Buffer, Home]
    sizes: dict[Buffer, int]
    shapes: dict[Buffer, tuple[Expr, ...]]
    line: int
    workers: dict[For, int]
    ranges: dict[For | None, tuple[Buffer, ...]]
    plan: ShapePlan | None

    def on_heap(self) -> Storage:
        """The same without a workspace, for a function that is called by others: each of its runs allocates."""
        homes: dict[Buffer, Home] = {
            buffer: "heap" if home == "workspace" else home for buffer, home in self.homes.items()
        }
        return replace(self, homes=homes, ranges=dict.fromkeys(self.ranges, ()))

    def of(self, home: Home) -> tuple[Buffer, ...]:
        return tuple(buffer for buffer, place in self.homes.items() if place is home)


@record
class HeapNeed:
    """The bytes that a function and all its callees need from the heap at a time, in one thread, with some to spare.

    `unbounded` are the names of buffers whose size is known only as it runs.
    """

    bytes: int
    unbounded: tuple[str, ...]


def heap_need(func: PrimFunc, storages: Mapping[Function, Storage], *, bounded: bool = False) -> HeapNeed:
    """The need of `func`; `storages` are those of the functions that have been compiled.

    With `bounded`, a buffer whose bytes no call exceeds counts with that bound.
    """
    needs: dict[Function, int] = {}
    unbounded: dict[str, None] = {}
    for each in (*callees(func), func):
        if each not in storages:
            continue
        storage = storages[each]
        own = 0
        heap = storage.of("heap")
        most = _most_bytes(each, heap) if bounded else {}
        for buffer in heap:
            size = storage.sizes.get(buffer, most.get(buffer))
            if size is None or size > LARGEST_BYTES:
                unbounded.setdefault(buffer.name)
            else:
                # Rounded up, with a line more, and a line to begin at a multiple of one.
                own += round_up(size, storage.line) + 2 * storage.line
        needs[each] = own + max((needs.get(call.callee, 0) for call in calls_in(each.body)), default=0)
    return HeapNeed(needs[func], tuple(unbounded))


def _most_bytes(func: Function, buffers: Iterable[Buffer]) -> dict[Buffer, int]:
    """Upper bounds of the bytes of a function's buffers, as far as they are known."""
    from tirlite.analysis.facts import Facts
    from tirlite.analysis.most_bytes import MostBytes
    from tirlite.sizes import upper_bound

    assert isinstance(func, PrimFunc)
    most = MostBytes(Facts(func))
    sizes = {buffer: size for buffer in buffers if (size := most.of(buffer)) is not None}
    return {buffer: found for buffer, size in sizes.items() if (found := upper_bound(size)) is not None}


def stack_shares(func: PrimFunc) -> Mapping[Function, int]:
    """How many bytes on the stack `func` may take, and each function that it calls.

    A share is an equal part of the total for the longest chain of calls through a function. So the functions of any
    chain together take no more than the total.
    """
    below: dict[Function, int] = {}
    above: defaultdict[Function, int] = defaultdict(int)
    order: list[tuple[Function, set[Function]]] = [
        (each, {call.callee for call in calls_in(each.body)}) for each in (*callees(func), func)
    ]
    for each, called in order:
        below[each] = 1 + max((below[callee] for callee in called), default=0)
    for each, called in reversed(order):
        for callee in called:
            above[callee] = max(above[callee], above[each] + 1)
    return {each: STACK_BYTES // (above[each] + length) for each, length in below.items()}


def share_of_leaf() -> int:
    """The share of a function without calls, if its only caller is called by none and calls no others."""
    return STACK_BYTES // 2


def assign_homes(
    func: PrimFunc, workers: int = 1, stack: int = STACK_BYTES, on_entry: OnEntry | None = None
) -> Storage:
    """The homes of all allocations; those on the stack, the smallest ones, take at most this many bytes.

    `on_entry` tells the extents that are computed from lets; without it, buffers with such extents are on the heap.
    Raises KernelError for a buffer of constant size beyond 2^62 bytes.
    """
    known = {*func.dims, *(param for param in func.params if isinstance(param, Var))}
    plan = shape_plan(func)
    homes: dict[Buffer, Home] = {}
    sizes: dict[Buffer, int] = {}
    shapes: dict[Buffer, tuple[Expr, ...]] = {}
    distributed = distributed_loops(func, workers)
    loops = {s.buffer: loop for loop in distributed for s in statements_of(loop, Allocate)}
    for stmt in statements(func.body):
        if not isinstance(stmt, Allocate) or stmt.buffer in homes:
            continue
        buffer = stmt.buffer
        size = constant_bytes(buffer)
        if size is None:
            found = [e if _is_known(e, known, plan) else on_entry.extent(e) if on_entry else None for e in buffer.shape]
            shapes[buffer] = tuple(each for each in found if each is not None)
            homes[buffer] = "workspace" if len(shapes[buffer]) == len(found) else "heap"
            continue
        if size > LARGEST_BYTES:
            raise BufferTooLarge(buffer.name, size, span=stmt.span).error()
        sizes[buffer] = size
        homes[buffer] = "workspace"
    line = max([LINE, *(buffer.alignment for buffer in homes)])
    for buffer, size in sorted(sizes.items(), key=lambda each: each[1]):
        stack -= round_up(size, line)
        homes[buffer] = "stack" if stack >= 0 else "workspace"
    ranges: dict[For | None, list[Buffer]] = {None: [], **{loop: [] for loop in distributed}}
    for buffer, home in sorted(homes.items(), key=lambda each: each[0] not in sizes):
        if home == "workspace":
            ranges[loops.get(buffer)].append(buffer)
    placed = {loop: tuple(found) for loop, found in ranges.items()}
    return Storage(homes, sizes, shapes, line, distributed, placed, plan)


def _is_known(extent: Expr, known: set[Var], plan: ShapePlan | None) -> bool:
    """Whether `extent` has its value when the function is entered."""
    if plan is not None and plan.entry(extent) is not None:
        return True
    bound = {node.var for node in walk(extent) if isinstance(node, LetExpr)}
    for node in walk(extent):
        if isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_math):
            return False
        if isinstance(node, Var) and node not in known and node not in bound:
            return False
    return True


@record
class Workspace:
    """What the caller must provide: `bytes`, and where `buffers` is not empty, as much more as the size function says.

    `buffers` are those of symbolic size, `shapes` their extents, and `copies` says how many workers have one each. The
    size function returns the total, or -(k + 1) where buffer k has a negative extent or makes the total larger than
    2^62 bytes. The buffers that are `doubtful` lie in others, and count on after these: their extents may be negative.
    """

    bytes: int
    buffers: tuple[Buffer, ...]
    shapes: tuple[tuple[Expr, ...], ...]
    copies: tuple[int, ...]
    doubtful: tuple[Buffer, ...] = ()

    @classmethod
    def of(cls, storage: Storage, doubtful: tuple[Buffer, ...] = ()) -> Workspace:
        constant = 0
        symbolic: list[tuple[Buffer, int]] = []
        for loop, copies in parts_of(storage):
            for buffer in storage.ranges[loop]:
                if buffer in storage.sizes:
                    constant += copies * round_up(storage.sizes[buffer], storage.line)
                else:
                    symbolic.append((buffer, copies))
        buffers = tuple(buffer for buffer, _ in symbolic)
        shapes = tuple(storage.shapes[buffer] for buffer in buffers)
        return cls(constant, buffers, shapes, tuple(copies for _, copies in symbolic), doubtful)

    @property
    def is_empty(self) -> bool:
        return not (self.bytes or self.buffers or self.doubtful)

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to compute."""
        return not (self.buffers or self.doubtful)

    def refused(self, size: int) -> Buffer:
        """The buffer because of which the size function returned a negative number."""
        return (*self.buffers, *self.doubtful)[-size - 1]


def parts_of(storage: Storage) -> Iterable[tuple[For | None, int]]:
    """The function itself, and each loop that workers share, with the number of copies of its buffers."""
    return (None, 1), *storage.workers.items()
