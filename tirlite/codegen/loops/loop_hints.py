"""Chooses loop metadata for LLVM: which loops to unroll or vectorize, and which iterations are independent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from tirlite.analysis.loops.patterns import elements_between, sums_differences, widest_computed
from tirlite.ir.expr import GT, Add, Binary, Buffer, Call, Div, Expr, FloorDiv, IntImm, Load, Min, Mul, Sub, Var
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, Stmt, Store
from tirlite.ir.walk import (
    accesses_in,
    is_constant,
    is_steady,
    loads_in,
    mentions,
    reads,
    statements,
    statements_of,
    walk,
)

if TYPE_CHECKING:
    from tirlite.codegen.llvm.text import ModuleText

# The most iterations of a loop that is fully unrolled.
_MOST_COPIES = 64
# At most this many inner loops are examined.
_MOST_INSIDE = 64
# A loop with at most this many iterations gains nothing by vectorization, which costs compile time.
_FEW = 16
# The most iterations of a remainder loop.
_LANES = 64
# The largest stride for which LLVM shuffles lanes instead of gathering.
_SHUFFLED = 8
# In cycles: the extra cost of a gathered or scattered lane over a plain access, and what a lane of a vector saves per
# operation, and per byte of a division or square root.
_GATHERED, _SAVED, _SAVED_OF_SLOW = 1.7, 0.45, 0.8
# The approximate number of operations of an elementary function.
_FUNCTION = 20
_UNROLLED = ('!{!"llvm.loop.unroll.full"}',)
_ONE_BY_ONE = ('!{!"llvm.loop.vectorize.width", i32 1}',)
# A loop that copies vectors, or adds terms to at least `_FEWEST_SUMS` sums, is unrolled up to `_MOST_TERMS` times to
# save loop overhead: less with sums of `_MANY_BYTES`, and not with fewer sums than `_WAITING` vectors, whose latency
# hides the overhead.
_MOST_TERMS = 4
_FEWEST_SUMS = 2
_MANY_BYTES = 1024
_WAITING = 8
# Half of the 32-bit lanes of a 512-bit vector.
_HALF = 8
# The bytes of the accumulator when bytes are summed.
_WORD = 4
# LLVM does not turn a branch into a select if it is taken less often than once in a hundred times.
SELDOM = ('!"branch_weights"', "i32 1", "i32 2000")
OFTEN = ('!"branch_weights"', "i32 2000", "i32 1")
_NOT_UNROLLED = ('!{!"llvm.loop.unroll.disable"}',)
_AS_WRITTEN = ('!{!"llvm.loop.unroll.disable"}', '!{!"llvm.loop.vectorize.width", i32 1}')


def hints_of(stmt: For, vector_bytes: int) -> tuple[str, ...]:
    """The metadata properties of a loop; none if LLVM's defaults are best."""
    if _can_be_unrolled(stmt):
        return _UNROLLED
    if _looks_up(stmt):
        return _ONE_BY_ONE
    if (terms := _terms_at_once(stmt, vector_bytes)) > 1:
        return (f'!{{!"llvm.loop.unroll.count", i32 {terms}}}', '!{!"llvm.loop.vectorize.width", i32 1}')
    if _goes_by_vectors(stmt) or _is_short(stmt):
        return _AS_WRITTEN
    if _gathers_cost_more(stmt) or _skips_in_place(stmt):
        return _ONE_BY_ONE
    if sums_differences(stmt):
        return _of_bytes(stmt, vector_bytes)
    return _NOT_UNROLLED if _fills_vectors(stmt) or _goes_through_row(stmt) else ()


def in_any_order(
    stmt: For, notes: Mapping[Buffer, str], module: ModuleText
) -> tuple[Mapping[Buffer, str], tuple[str, ...]]:
    """Access metadata and loop properties that declare the iterations of a parallel loop independent.
    This holds even if the result overwrites an operand in place, as those proofs do not rely on the order of
    iterations. LLVM by itself would compare the addresses at run time, find them equal, and run the scalar loop. Loops
    with volatile accesses get none: with this metadata on them, LLVM aborts.
    """
    if stmt.kind is not ForKind.PARALLEL or not all(map(_is_plain, stmt.body.stmts)):
        return notes, ()
    touched = dict.fromkeys(node.buffer for node in accesses_in(stmt.body))
    if any(buffer.volatile for buffer in touched):
        return notes, ()
    group = module.group()
    own = {buffer: f"{notes.get(buffer, '')}, !llvm.access.group {group}" for buffer in touched}
    return own, (f'!{{!"llvm.loop.parallel_accesses", {group}}}',)


def _is_plain(stmt: Stmt) -> bool:
    """Whether a statement is a let, or a store whose indices do not depend on memory."""
    if not isinstance(stmt, Store):
        return isinstance(stmt, Let)
    return is_steady(*stmt.indices)


def weights_of(stmt: IfThenElse) -> tuple[str, ...] | None:
    """How often each side of a branch is taken, if that is likely to be known."""
    return SELDOM if _is_seldom(stmt) else OFTEN if _sums_many(stmt) else None


def _is_seldom(stmt: IfThenElse) -> bool:
    """Whether a branch records the position of the best value so far: `if x[j] > x[at]: at = j`.

    It is taken a few times per array. As a select, each iteration would have to reload the best value and wait for it.
    """
    store = stmt.then_body.stmts[0] if len(stmt.then_body.stmts) == 1 and not stmt.else_body.stmts else None
    if not isinstance(store, Store) or store.indices or reads(store.buffer, store.value):
        return False
    read = loads_in(stmt.condition)
    return any(reads(store.buffer, *load.indices) for load in read)


def _sums_many(stmt: IfThenElse) -> bool:
    """Whether a branch sums up many elements by wide vectors, and its `else` few by narrow ones.

    Few take so little time that each jump counts, but many should have none.
    """
    few = stmt.else_body.stmts
    if not isinstance(stmt.condition, GT) or len(few) != 1 or not isinstance(few[0], IfThenElse):
        return False
    begins, loops = isinstance(stmt.then_body.stmts[0], Allocate), {For} & stmt.then_body.kinds
    return begins and bool(loops) and few[0].then_body.kinds.isdisjoint({For})


def _can_be_unrolled(stmt: For) -> bool:
    """Whether to tell LLVM to unroll a loop fully.

    Only if it can: LLVM prints a warning if it fails. It cannot on vectorized loops, so those get no such hint.
    """
    return stmt.kind is ForKind.UNROLLED and stmt.values is not None and len(stmt.values) <= _MOST_COPIES


def _terms_at_once(stmt: For, vector_bytes: int) -> int:
    """The unroll factor of a loop that copies a vector, or adds to several.
    It divides the number of iterations if possible, so that there is no remainder. Sums limited by latency are unrolled
    completely or not at all. A loop of few iterations is unrolled completely in any case, as its exit may be
    mispredicted.
    """
    sums = [each for each in stmt.body.stmts if not isinstance(each, Let)]
    is_tile = len(sums) >= _FEWEST_SUMS and all(map(_is_sum_of_vectors, sums))
    if is_tile and stmt.step == 1 and stmt.values is not None and _FEWEST_SUMS < len(stmt.values) <= _MOST_TERMS:
        return len(stmt.values)
    is_tile = is_tile and len(sums) == len(stmt.body.stmts)
    if stmt.step != 1 or not (is_tile or (len(sums) == 1 and _is_copy(sums[0]))):
        return 1
    held = sum(each.value.dtype.bytes for each in sums if isinstance(each, Store))
    most = min(_MOST_TERMS, -(-_MANY_BYTES // held))
    waits = is_tile and held < _WAITING * vector_bytes
    rest = most if is_tile and not waits else 1
    if stmt.values is None:
        return rest
    count = len(stmt.values)
    parts = (each for each in range(most, 1, -1) if (count == each if waits else count % each == 0))
    return next(parts, min(rest, max(count, 1)))


def _is_copy(stmt: Stmt) -> bool:
    """Whether a statement copies a vector."""
    return isinstance(stmt, Store) and isinstance(stmt.value, Load) and stmt.value.dtype.lanes > 1


def _is_sum_of_vectors(stmt: Stmt) -> bool:
    """Whether a statement updates a vector that it reads."""
    if not isinstance(stmt, Store) or stmt.value.dtype.lanes == 1:
        return False
    return reads(stmt.buffer, stmt.value)


def _goes_by_vectors(stmt: For) -> bool:
    """Whether a loop stores vectors already, so that unrolling it would only cost compile time.

    The same holds for a loop around a long loop that stores vectors.
    """
    if any(isinstance(each, Store) and each.value.dtype.lanes > 1 for each in stmt.body.stmts):
        return True
    inside = (each for each in islice(statements_of(stmt.body, For), _MOST_INSIDE) if not _is_brief(each))
    return any(each.value.dtype.lanes > 1 for loop in inside for each in loop.body.stmts if isinstance(each, Store))


def goes_by_elements(stmt: For) -> bool:
    """Whether a loop is scalar and LLVM cannot vectorize it, so that address arithmetic matters.

    Loops around others are not, unless the inner ones are brief; nor are remainder loops.
    """
    if _is_short(stmt) or any(not _is_brief(each) for each in statements_of(stmt.body, For)):
        return False
    own = {each.buffer for each in stmt.body.stmts if isinstance(each, Allocate) and not each.buffer.shape}
    found = accesses_in(stmt.body)
    accesses = [each for each in found if each.buffer not in own]
    if any(index.dtype.lanes > 1 for each in accesses for index in each.indices[-1:]):
        return False
    if _is_brief(stmt) or not all(isinstance(each, Allocate) or _is_plain(each) for each in stmt.body.stmts):
        return bool(accesses)
    stores = [each for each in accesses if isinstance(each, Store)]
    moved = {stmt.var, *(each.var for each in stmt.body.stmts if isinstance(each, Let))}
    return any(_is_carried(each, stores, stmt.var) or not _stays_in_row(each, stmt.var, moved) for each in accesses)


def sums_taps(stmt: For) -> bool:
    """Whether a brief loop adds terms to several vectors, as over the taps of a window; LLVM unrolls it."""
    sums = [each for each in stmt.body.stmts if not isinstance(each, Let)]
    return _is_brief(stmt) and len(sums) >= _FEWEST_SUMS and all(map(_is_sum_of_vectors, sums))


def lane_of(stmt: For, vector_bytes: int) -> float:
    """The cost of an iteration relative to a scalar one if LLVM vectorizes the loop; 1 if it does not."""
    count = _LANES if stmt.values is None else len(stmt.values)
    if _is_short(stmt) or count < _HALF or not (inside := _straight(stmt)):
        return 1.0
    own = {each.buffer for each in inside if isinstance(each, Allocate) and not each.buffer.shape}
    named = {each.var for each in inside if isinstance(each, Let)}
    accesses = [each for each in accesses_in(stmt.body) if each.buffer not in own]
    stores = [each for each in accesses if isinstance(each, Store)]
    for each in accesses:
        apart = elements_between(each, stmt.var)
        if apart is None or apart > _SHUFFLED or mentions(each.indices, named):
            return 1.0
        if (isinstance(each, Store) and not apart) or _waits(each, stores):
            return 1.0
    return min(1.0, max(1 / count, widest_computed(inside) / vector_bytes))


def _straight(stmt: For) -> list[Stmt]:
    """The statements of a loop if LLVM sees them as straight-line code, unrolling brief inner loops; else none."""
    loops = [*islice(statements_of(stmt.body, For), _MOST_INSIDE)]
    if len(loops) == _MOST_INSIDE or not all(map(_is_brief, loops)):
        return []
    inside = [*statements(stmt.body)]
    return inside if all(isinstance(each, Store | Let | Allocate | IfThenElse | For) for each in inside) else []


def _waits(access: Load | Store, stores: Iterable[Store]) -> bool:
    """Whether a load may read what another iteration stored in the same row."""
    others = [each.indices for each in stores if each.buffer is access.buffer]
    if isinstance(access, Store) or not others:
        return False
    from tirlite.ir.equal import are_equal

    rows = (each for each in others if are_equal(each[:-1], access.indices[:-1]))
    return any(not are_equal(each, access.indices) for each in rows)


def _is_carried(access: Load | Store, stores: Iterable[Store], counter: Var) -> bool:
    """Whether a load may read what another iteration stored."""
    others = [each.indices for each in stores if each.buffer is access.buffer]
    if isinstance(access, Store) or not others:
        return False
    from tirlite.ir import structural_equal

    moves = mentions(access.indices[-1:], counter)
    return not all(moves and all(map(structural_equal, access.indices, each)) for each in others)


def _stays_in_row(access: Load | Store, counter: Var, moved: Collection[Var]) -> bool:
    """Whether successive iterations access the same element or adjacent ones."""
    indices = [[*walk(index)] for index in access.indices]
    last = indices.pop() if indices else []
    steady = [node for index in indices for node in index] + [node for node in last if node is not counter]
    if any(node in moved or isinstance(node, Load) for node in steady):
        return False
    return counter not in last or all(isinstance(node, Var | IntImm | Add | Sub) for node in last)


def _is_brief(stmt: For) -> bool:
    """Whether a loop has few iterations, by constant bounds."""
    return stmt.values is not None and len(stmt.values) <= _FEW


def _looks_up(stmt: For) -> bool:
    """Whether a loop looks up small elements at indices from memory, for which LLVM would extract each lane's index.
    That costs more than vectors save unless there are many float operations; of scalar integer operations a processor
    does several per cycle.
    """
    stmts = [each for each in stmt.body.stmts if isinstance(each, Store | Let)]
    if not any(load.buffer.dtype.bits < 32 for load in loads_in(*(each.value for each in stmts))):
        return False
    read, found, saved = set[Var](), set[str](), 0.0  # `read`: lets whose values depend on loads
    for each in stmts:
        is_read = False
        for node in walk(each.value):
            is_read = is_read or isinstance(node, Load) or node in read
            if isinstance(node, Load) and node.buffer.dtype.bits < 32:
                if any(isinstance(part, Load) or part in read for part in walk(*node.indices)):
                    found.add(str(node))
            elif isinstance(node, Binary | Call) and node.dtype.is_float:
                saved += _SAVED * (_FUNCTION if isinstance(node, Call) and node.op.takes_fast else 1)
        if isinstance(each, Let) and is_read:
            read.add(each.var)
    return len(found) * _GATHERED > saved


def _gathers_cost_more(stmt: For) -> bool:
    """Whether lanes would be too far apart to shuffle, and gathering them costs more than vectors save.

    So it is with the elements of small matrices. Brief inner loops count as straight-line code.
    """
    inside = _straight(stmt) if abs(stmt.step) == 1 else []
    if not inside or any(isinstance(each, IfThenElse) for each in inside):
        return False
    apart, saved = dict[str, int](), 0.0
    todo: list[tuple[Node, int]] = [(each, 1) for each in stmt.body.stmts]
    while todo:
        node, times = todo.pop()
        if isinstance(node, Load | Store):
            if (elements_between(node, stmt.var) or 0) > _SHUFFLED and node.buffer.dtype.lanes == 1:
                apart[str(Load(node.buffer, node.indices))] = times
            todo += ((node.value, times),) if isinstance(node, Store) else ()
            continue
        if isinstance(node, For):
            todo += ((each, times * len(node.values or ())) for each in node.body.stmts)
            continue
        if isinstance(node, Div) or (isinstance(node, Call) and node.op is Op.SQRT):
            saved += times * node.dtype.bytes * _SAVED_OF_SLOW
        elif isinstance(node, Binary | Call):
            saved += times * _SAVED
        todo += ((each, times) for each in node.children())
    return sum(apart.values()) * _GATHERED > saved


def _skips_in_place(stmt: For) -> bool:
    """Whether a strided loop updates elements from others of the same row; LLVM would gather and scatter."""
    stores = [each for each in stmt.body.stmts if isinstance(each, Store)]
    return abs(stmt.step) > 1 and any(_is_carried(load, stores, stmt.var) for load in loads_in(stmt.body))


def _is_short(stmt: For) -> bool:
    """Whether a loop is a remainder: `range(j, min(j + 16, m))`, `range(m // 16 * 16, m)` or `range(min(16, m))`."""
    start = stmt.start.b if isinstance(stmt.start, Add) else stmt.start
    if isinstance(start, Mul) and isinstance(start.a, FloorDiv):
        from tirlite.ir import structural_equal

        if structural_equal(start.a.b, start.b):
            return isinstance(start.b, IntImm) and start.b.value <= _FEW
    stop = stmt.stop.a if isinstance(stmt.stop, Min) else stmt.stop
    if isinstance(stop, IntImm) and isinstance(stmt.start, IntImm):
        return isinstance(stmt.stop, Min) and stop.value - stmt.start.value <= _LANES
    return isinstance(stop, Add) and stop.a is stmt.start and isinstance(stop.b, IntImm) and stop.b.value <= _LANES


def _of_bytes(stmt: For, lanes: int) -> tuple[str, ...]:
    """Hints for a loop that sums bytes over whole vectors, `range(m // 32 * 32)`, and for its remainder loop.

    By default LLVM would use as many lanes as a vector has 32-bit sums, and interleave several vectors.
    """
    if _is_whole(stmt.stop, lanes):
        return (f'!{{!"llvm.loop.vectorize.width", i32 {lanes}}}',)
    if _is_whole(stmt.start, lanes):
        width = f'!{{!"llvm.loop.vectorize.width", i32 {lanes // _WORD}}}'
        return width, '!{!"llvm.loop.interleave.count", i32 1}'
    return ()


def _is_whole(end: Expr, lanes: int) -> bool:
    """Whether a bound is a multiple of `lanes`, apart from an offset."""
    steps = end.b if isinstance(end, Add) else end
    return isinstance(steps, Mul) and isinstance(steps.a, FloorDiv) and is_constant(steps.b, lanes)


def _goes_through_row(stmt: For) -> bool:
    """Whether the bounds of a loop are loaded from memory, as for rows of a sparse matrix.

    The number of iterations is hard to predict, and a vectorized loop with a remainder is mispredicted more often.
    """
    return all(not is_steady(end) for end in (stmt.start, stmt.stop))


def _fills_vectors(stmt: For) -> bool:
    """Whether a loop of few iterations fills half a vector or more along rows that it does not read.

    LLVM would unroll it completely before it vectorizes. That is better only for arrays of constant extents, and for
    elements that outer loops update, which then stay in registers.
    """
    stores = [each for each in stmt.body.stmts if isinstance(each, Store)]
    if not stores or len(stores) < len(stmt.body.stmts) or stmt.values is None or stmt.step != 1:
        return False
    if not _HALF <= len(stmt.values) <= _LANES or not all(each.indices[-1:] == (stmt.var,) for each in stores):
        return False
    loads = [node for each in stores for node in loads_in(each.value) if node.indices]
    written = {each.buffer for each in stores}
    reads = any(load.buffer in written for load in loads)
    touched = (*written, *(load.buffer for load in loads))
    known = any(all(isinstance(extent, IntImm) for extent in buffer.shape) for buffer in touched)
    return bool(loads) and not reads and not known
