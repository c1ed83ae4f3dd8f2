"""Chooses the home of each buffer that a function allocates: stack, workspace or heap.

The smallest buffers of constant size are on the stack, as many as fit. Buffers whose size is known on entry get a range
of the workspace, which the caller provides; inside a parallel loop that is run by workers, each worker has its own. The
others are allocated on the heap where they are declared. The workspace holds the ranges of the function's own buffers
first, and then for each such loop one part per worker with the ranges of the loop's buffers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from tirlite.analysis import ShapePlan, shape_plan
from tirlite.analysis.loops.patterns import distributed_loops
from tirlite.codegen.refused import BufferTooLarge
from tirlite.ir.expr import Buffer, Call, Expr, LetExpr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, callees, calls_in
from tirlite.ir.shapes import constant_bytes
from tirlite.ir.stmt import Allocate, For, Let, SeqStmt
from tirlite.ir.walk import statements, statements_of, variables_in, walk
from tirlite.record import record, replace
from tirlite.sizes import round_up

if TYPE_CHECKING:
    from tirlite.codegen.doubtful import OnEntry

# The stack bytes of a whole chain of calls. The stack of a Python thread may be small and largely used.
STACK_BYTES = 16 * 1024
LARGEST_BYTES = 1 << 62
LINE = 64  # the least alignment of the workspace, of its ranges, and of heap allocations


# The memory that an allocation is in.
Home: TypeAlias = Literal["stack", "workspace", "heap"]


@record
class Storage:
    """The home of each buffer of a function, in program order.
    `sizes`: the bytes of buffers of constant size. `shapes`: the extents of the other buffers in the workspace, over
    dims and parameters. `line`: the alignment of all addresses that are not on the stack. `workers`: the parallel loops
    that run on workers, and how many. `ranges`: for each such loop, and for the function itself (None), the buffers in
    its workspace; those of constant size first. `plan`: the storage plan that the function receives with each call, if
    any.
    """

    homes: dict[Buffer, Home]
    sizes: dict[Buffer, int]
    shapes: dict[Buffer, tuple[Expr, ...]]
    line: int
    workers: dict[For, int]
    ranges: dict[For | None, tuple[Buffer, ...]]
    plan: ShapePlan | None

    def on_heap(self) -> Storage:
        """The same with heap instead of workspace, for a callee: it may run several times at once."""
        homes: dict[Buffer, Home] = {
            buffer: "heap" if home == "workspace" else home for buffer, home in self.homes.items()
        }
        return replace(self, homes=homes, ranges=dict.fromkeys(self.ranges, ()))

    def of(self, home: Home) -> tuple[Buffer, ...]:
        return tuple(buffer for buffer, place in self.homes.items() if place is home)


@record
class HeapNeed:
    """An upper bound of the heap bytes that a function and its callees hold at a time in one thread.

    `unbounded`: the names of buffers whose size is known only at run time.
    """

    bytes: int
    unbounded: tuple[str, ...]


def heap_need(func: PrimFunc, storages: Mapping[Function, Storage], *, bounded: bool = False) -> HeapNeed:
    """The heap need of `func`; `storages` has the storage of each compiled function.

    `bounded`: a buffer with a proved upper bound counts with that bound.
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
                # Rounded up, plus the extra line of `padded`, plus one to align the start.
                own += round_up(size, storage.line) + 2 * storage.line
        needs[each] = own + max((needs.get(call.callee, 0) for call in calls_in(each.body)), default=0)
    return HeapNeed(needs[func], tuple(unbounded))


def _most_bytes(func: Function, buffers: Iterable[Buffer]) -> dict[Buffer, int]:
    """Upper bounds of the sizes of a function's buffers, where known."""
    from tirlite.analysis.facts import Facts
    from tirlite.analysis.most_bytes import MostBytes
    from tirlite.sizes import upper_bound

    assert isinstance(func, PrimFunc)
    most = MostBytes(Facts(func))
    sizes = {buffer: size for buffer in buffers if (size := most.of(buffer)) is not None}
    return {buffer: found for buffer, size in sizes.items() if (found := upper_bound(size)) is not None}


def stack_shares(func: PrimFunc) -> Mapping[Function, int]:
    """The stack bytes that `func` and each function that it calls may use.

    A share is the total divided by the longest chain of calls through the function, so no chain exceeds the total.
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
    """The share of a function without calls whose only caller is the entry function and calls nothing deeper."""
    return STACK_BYTES // 2


def assign_homes(
    func: PrimFunc, workers: int = 1, stack: int = STACK_BYTES, on_entry: OnEntry | None = None
) -> Storage:
    """Chooses the homes of all allocations; at most `stack` bytes, of the smallest buffers, are on the stack.

    `on_entry` resolves extents that are computed from lets; without it such buffers are on the heap.
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
    """Whether the value of `extent` is known on entry."""
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
    """The memory that the caller provides: `bytes`, plus what the size function returns if there is one.
    `buffers`: those of symbolic size, with their extents in `shapes` and the number of `copies`, one per worker.
    `doubtful`: buffers in other storage whose extents may be invalid; they are numbered after `buffers`. The size
    function returns the total, or -(k + 1) if buffer k has a negative extent or makes the total exceed 2^62 bytes.
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
        """Whether no size function is needed."""
        return not (self.buffers or self.doubtful)

    def refused(self, size: int) -> Buffer:
        """The buffer that a negative result of the size function refers to."""
        return (*self.buffers, *self.doubtful)[-size - 1]


def parts_of(storage: Storage) -> Iterable[tuple[For | None, int]]:
    """The function itself (None) and each loop run by workers, with the number of copies of its buffers."""
    return (None, 1), *storage.workers.items()


def sizing(body: SeqStmt, buffers: Iterable[Buffer]) -> set[Var]:
    """The variables that the extents of buffers depend on, through lets."""
    found = {node for each in buffers for node in variables_in(*each.shape)}
    if found:
        for let in reversed(tuple(statements_of(body, Let))):
            if let.var in found:
                found.update(variables_in(let.value))
    return found
