"""Recognizes patterns of loops: much work in an iteration, whole rows, loops for several workers, and others.

These are quick questions, asked before the modules that transform such loops are imported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tirlite.ir.checked import has_check
from tirlite.ir.dtype import DType, i32, i64, u8
from tirlite.ir.expr import Add, Buffer, Call, Cast, Expr, FloorDiv, FloorMod, IntImm, Load, Max, Min, Mul, Sub, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.stmt import Allocate, Assert, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import chain_from, is_constant, loads_in, mentions, statements, walk, without_number

# Of so many loads at most it is asked which are neighbours.
_MOST_LOADS = 32
_WORD = 4
_FEW = 16
# Of fewer neighbours LLVM parts vectors faster than tiles are turned over: colours of an image, or coordinates.
GROUP = 8
# Of so many it does not load one alone by vectors.
_PAIR = 2
_SKIPPED = (_PAIR, 3)
# Loops of more iterations stay loops.
_WRITTEN_OUT = 64
# The most lanes of a vector.
MOST_LANES = 64
# Loops that may run over some of their iterations alone.
_COUNTED = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.REDUCE)

# What a nest over whole rows is made of.
_IN_ORDER = (ForKind.SERIAL, ForKind.PARALLEL)
_IN_A_ROW = (Store, Let, IfThenElse, Allocate, SeqStmt)

# What most programs are made of, and what is not a loop.
_LEAVES: frozenset[type[Stmt]] = frozenset((Allocate, Store))


def has_much_to_do(loop: For) -> bool:
    """Whether an iteration has loops inside, or computes elementary functions.

    In a loop of few iterations, which LLVM unrolls, rounding floats to integers counts as well.
    """
    is_few = loop.values is not None and len(loop.values) <= _FEW
    todo = [*loop.body.stmts]
    while todo:
        stmt = todo.pop()
        if isinstance(stmt, For | While):
            return True
        if isinstance(stmt, IfThenElse):
            todo += (each for body in stmt.bodies for each in body.stmts)
        elif isinstance(stmt, Store | Let) and any(
            (isinstance(node, Call) and node.op.takes_fast) or (is_few and _rounds(node)) for node in walk(stmt.value)
        ):
            return True
    return False


def is_done_at_once(loop: For) -> bool:
    """Whether all iterations of a loop that the author marked may be one vector."""
    is_short = 2 <= len(loop.values or ()) <= MOST_LANES
    return is_short and loop.body.kinds <= {Store, Let, IfThenElse}


def is_written_out(loop: For) -> bool:
    """Whether LLVM unrolls a loop, as it has few iterations, before it looks for vectors."""
    return loop.values is not None and GROUP <= len(loop.values) <= _WRITTEN_OUT


def reads_neighbours(loop: For) -> bool:
    """Whether an iteration, without loops inside, loads a small element that a later iteration loads again.

    LLVM keeps such elements from one iteration to the next, and then has to shuffle its vectors. That costs little for
    words.
    """
    if not loop.body.kinds <= {Store, Let, Allocate}:
        return False
    met: list[tuple[Load, Expr, int]] = []
    for stmt in loop.body.stmts:
        for node in walk(stmt):
            if (
                isinstance(node, Load)
                and node.buffer.dtype.bytes < _WORD
                and node.indices
                and mentions(node.indices[-1], loop.var)
            ):
                base, offset = parted(node.indices[-1])
                if any(offset != far and _are_in_a_row(node, base, other, of) for other, of, far in met):
                    return True
                met.append((node, base, offset))
                if len(met) > _MOST_LOADS:
                    return False
    return False


def follows_whole(loop: For) -> bool:
    """Whether a loop runs the remainder of whole groups of iterations, as `range(n // 8 * 8, n)`."""
    start = loop.start.b if isinstance(loop.start, Add) else loop.start
    return isinstance(start, Mul) and isinstance(start.a, FloorDiv)


def skips(loop: For) -> bool:
    """Whether iterations copy strided elements of a row, or the least or greatest of a few of them.

    LLVM deinterleaves groups of neighbours if most of each group is loaded, and gathers lanes that are computed with.
    Other such loops have no vectors.
    """
    if not loop.body.kinds <= {Store}:
        return False
    found: dict[tuple[Buffer, int], set[int]] = {}
    todo: list[Node] = [stmt.value for stmt in loop.body.stmts if isinstance(stmt, Store)]
    while todo:
        node = todo.pop()
        if isinstance(node, Min | Max):
            todo += node.children()
            continue
        apart = elements_between(node, loop.var) if isinstance(node, Load) and node.indices else None
        if not isinstance(node, Load) or apart not in _SKIPPED:
            return False
        found.setdefault((node.buffer, apart), set()).add(_passed(node))
    return any(len(offsets) == 1 or (apart == _PAIR and len(offsets) > apart) for (_, apart), offsets in found.items())


def elements_between(access: Load | Store, counter: Var) -> int | None:
    """The distance in elements between the accesses of an iteration and the next one; None where it is unknown."""
    total, row = 0, 1
    for index, extent in zip(reversed(access.indices), reversed(access.buffer.shape), strict=True):
        if access.buffer.strides or (moves := moved_by(index, counter)) is None:
            return None
        if moves and not row:
            return None
        total += moves * row
        row = row * extent.value if isinstance(extent, IntImm) else 0
    return abs(total)


def _passed(access: Load) -> int:
    """The constant offset of an access in elements, along axes of known extents."""
    total, row = 0, 1
    for index, extent in zip(reversed(access.indices), reversed(access.buffer.shape), strict=True):
        total += row * (index.value if isinstance(index, IntImm) else parted(index)[1])
        row = row * extent.value if isinstance(extent, IntImm) else 0
    return total


def divides(loop: For) -> bool:
    """Whether an iteration, without loops inside, divides integers of up to 32 bits by a value that is not constant.

    Vectors of floats can do that, while LLVM divides lane by lane.
    """
    is_met = False
    for node in walk(loop.body):
        if isinstance(node, For | While):
            return False
        is_met = is_met or (isinstance(node, FloorDiv | FloorMod) and _is_by_floats(node))
    return is_met


def _is_by_floats(node: FloorDiv | FloorMod) -> bool:
    return node.dtype.is_integer and node.dtype.bits <= 32 and node.dtype.lanes == 1 and not isinstance(node.b, IntImm)


def resamples(loop: For) -> bool:
    """Whether an iteration, without loops inside, loads at an index along a row that is a rounded float.

    Such indices are near each other where an image is enlarged, or not much reduced. With branches, LLVM has vectors
    if there are instructions for masked loads: not for elements of fewer than four bytes.
    """
    if not loop.body.kinds <= {Store, Let, Allocate, IfThenElse}:
        return False
    moving, places = {loop.var}, set[Var]()
    has_branch = IfThenElse in loop.body.kinds

    def is_place(index: Expr) -> bool:
        nodes = [*walk(index)]
        rounded = any(_rounds(each) and mentions(each, moving) for each in nodes)
        return (rounded or any(each in places for each in nodes)) and not any(isinstance(each, Load) for each in nodes)

    for stmt in statements(loop.body):
        if isinstance(stmt, Let) and mentions(stmt.value, moving):
            moving.add(stmt.var)
            if stmt.value.dtype.is_integer and is_place(stmt.value):
                places.add(stmt.var)
    loads = (node for node in loads_in(*loop.body.stmts) if node.indices)
    found = [load for load in loads if is_place(load.indices[-1])]
    return any(load.dtype.bytes < _WORD or not has_branch for load in found)


def meets_itself(loop: For) -> bool:
    """Whether an iteration of stores and lets accesses a buffer that it stores to in a way that LLVM does not check.

    That is in the opposite direction, or by a load at a distance that is not constant.
    """
    if not loop.body.kinds <= {Store, Let}:
        return False
    stores = [stmt for stmt in loop.body.stmts if isinstance(stmt, Store) and stmt.indices]
    stores = [store for store in stores if not store.buffer.volatile]
    written = {store.buffer: store.indices[-1] for store in stores}
    named = _named_integers(loop) if written else {}
    for node in walk(loop.body) if written else ():
        if not isinstance(node, Load | Store) or node.buffer not in written:
            continue
        one, other = written[node.buffer], node.indices[-1]
        if one is other:
            continue
        one, other = named.get(one, one), named.get(other, other)
        moves = moved_by(one, loop.var), moved_by(other, loop.var)
        if moves in ((1, -1), (-1, 1)):
            return True
        if moves == (1, 1) and isinstance(node, Load):
            from tirlite.ir.equal import are_equal

            between = (parted(one)[0], parted(other)[0]) if abs(loop.step) == 1 else (one, other)
            if not are_equal(between[:1], between[1:]):
                return True
    return False


def meets_other_rows(loop: For) -> bool:
    """Whether an iteration of stores and lets loads from another row of the buffer that it stores to.

    LLVM can tell the rows apart only if outer loops go through all of them.
    """
    if loop.step != 1 or not loop.body.kinds <= {Store, Let}:
        return False
    stores = [stmt for stmt in loop.body.stmts if isinstance(stmt, Store)]
    rows = {store.buffer: store.indices[:-1] for store in stores if store.indices and store.indices[-1] is loop.var}
    if not rows or any(store.buffer.volatile for store in stores):
        return False
    loads = [node for node in loads_in(loop.body) if node.buffer in rows]
    if not loads:
        return False
    from tirlite.ir.equal import are_equal

    return any(load.indices[-1] is loop.var and not are_equal(load.indices[:-1], rows[load.buffer]) for load in loads)


def _named_integers(loop: For) -> Mapping[Expr, Expr]:
    """The values of integer lets of an iteration, over the loop's variable."""
    lets = [stmt for stmt in loop.body.stmts if isinstance(stmt, Let) and stmt.var.dtype.is_integer]
    if not lets:
        return {}
    from tirlite.ir.rewrite import values_of

    return dict(values_of(lets).items())


def moved_by(index: Expr, var: Var) -> int | None:
    """By how much an index changes from one iteration to the next; None where it is not linear in the variable."""
    if index is var:
        return 1
    if isinstance(index, Add | Sub):
        a, b = moved_by(index.a, var), moved_by(index.b, var)
        return None if a is None or b is None else a + b if isinstance(index, Add) else a - b
    if isinstance(index, Mul) and (isinstance(index.a, IntImm) or isinstance(index.b, IntImm)):
        number, other = (index.a, index.b) if isinstance(index.a, IntImm) else (index.b, index.a)
        moves = moved_by(other, var)
        return None if moves is None or not isinstance(number, IntImm) else number.value * moves
    return None if mentions(index, var) else 0


def widest_computed(stmts: Iterable[Stmt]) -> int:
    """The bytes of the widest element that an iteration loads, or computes on the way, but for indices."""
    todo: list[Node] = [stmt.value for stmt in stmts if isinstance(stmt, Store | Let)]
    widest = 1
    while todo:
        node = todo.pop()
        if isinstance(node, Expr):
            widest = max(widest, node.dtype.bytes)
        todo += () if isinstance(node, Load) else node.children()
    return widest


def parted(index: Expr) -> tuple[Expr, int]:
    """An index as a base and a constant offset; also of `4 * i + (p + 1)`."""
    base, offset = without_number(index)
    if isinstance(base, Add):
        inner, more = without_number(base.b)
        return (Add(base.a, inner), offset + more) if more else (base, offset)
    return base, offset


def _are_in_a_row(one: Load, base: Expr, other: Load, of: Expr) -> bool:
    """Whether two loads differ only in their constant offsets along a row."""
    from tirlite.ir.equal import are_equal

    return one.buffer is other.buffer and are_equal((base, *one.indices[:-1]), (of, *other.indices[:-1]))


def has_elements_apart(loop: For, alone: Collection[object]) -> bool:
    """Whether it is plain that no iteration of stores and lets touches what another one writes.

    Each buffer that is written is one of `alone`, without aliases, and all accesses to it have the loop's variable as
    their index along one axis.
    """
    if not loop.body.kinds <= {Store, Let}:
        return False
    axes = {stmt.buffer: {*range(len(stmt.indices))} for stmt in loop.body.stmts if isinstance(stmt, Store)}
    if any(buffer not in alone for buffer in axes):
        return False
    for node in walk(loop.body):
        if isinstance(node, Load | Store):
            if node.buffer in axes:
                axes[node.buffer] &= {axis for axis, index in enumerate(node.indices) if index is loop.var}
        elif isinstance(node, Call) and not node.op.is_math:
            return False
    return all(axes.values())


def asserts_alone(loop: For) -> bool:
    """Whether a loop has an assertion in its body, and nothing else."""
    return len(loop.body.stmts) == 1 and isinstance(loop.body.stmts[0], Assert)


def _rounds(node: Node) -> bool:
    return isinstance(node, Cast) and node.value.dtype.is_float and node.dtype.is_integer


def is_local_scalar(access: Load | Store) -> bool:
    """Whether it is of a local scalar that is not volatile."""
    return not access.indices and access.buffer.scope == "local" and not access.buffer.volatile


def only_branch(loop: For) -> IfThenElse | None:
    """The branch that is all of a loop's body, except for integer lets before it.

    It has no else if there are loops inside, as their rows may belong together.
    """
    *names, last = loop.body.stmts or (loop,)
    if loop.kind not in _COUNTED or not isinstance(last, IfThenElse):
        return None
    if last.else_body.stmts and any(isinstance(each, For | While) for each in statements(last)):
        return None
    return last if all(isinstance(each, Let) and each.var.dtype == i64 for each in names) else None


def may_be_window(loop: For) -> bool:
    """Whether the bounds of a loop may depend on the counter of an outer one."""
    is_in_order = loop.kind in (ForKind.SERIAL, ForKind.REDUCE)
    return is_in_order and not isinstance(loop.start, IntImm) and not isinstance(loop.stop, IntImm)


def sums_differences(loop: For) -> bool:
    """Whether a loop only sums absolute differences of bytes: there is a vector instruction for that."""
    store = loop.body.stmts[0] if len(loop.body.stmts) == 1 else None
    if not isinstance(store, Store) or not isinstance(store.value, Add) or store.value.dtype.lanes > 1:
        return False
    total, term = store.value.a, store.value.b
    if not isinstance(total, Load) or total.buffer is not store.buffer or mentions(total, loop.var):
        return False
    apart = term.args[0] if isinstance(term, Call) and term.op is Op.ABS else None
    return isinstance(apart, Sub) and all(isinstance(e, Cast) and e.value.dtype == u8 for e in (apart.a, apart.b))


def distributed_loops(func: PrimFunc, workers: int) -> dict[For, int]:
    """The loops that are run by several workers, with the most workers of each, in program order.

    That is the outermost parallel loop of a nest that may have more than one iteration: parallel loops inside it run
    serially in each worker.
    """
    found: dict[For, int] = {}
    stack: list[Stmt] = [func.body] if workers > 1 else []
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, SeqStmt):
            stack += [each for each in stmt.stmts[::-1] if type(each) not in _LEAVES]
        elif isinstance(stmt, For) and (most := _most_workers(stmt, workers)) > 1:
            found[stmt] = most
        else:
            stack += stmt.bodies[::-1]
    return found


def _most_workers(loop: For, workers: int) -> int:
    if loop.kind is not ForKind.PARALLEL:
        return 1
    return workers if loop.values is None else min(workers, len(loop.values))


def is_wide(dtype: DType) -> bool:
    """Whether it is an integer of more than 16 bits, and no vector."""
    return dtype.is_integer and dtype.bits > 16 and dtype.lanes == 1


def is_small(dtype: DType) -> bool:
    """Whether it is an integer of up to 16 bits or a bool, and no vector."""
    return dtype.is_bits and dtype.bits <= 16 and dtype.lanes == 1


def widens_integers(body: SeqStmt) -> bool:
    """Whether small integers become wide ones in a block, of more than 16 bits."""
    return any(isinstance(e, Cast) and is_wide(e.dtype) and is_small(e.value.dtype) for e in walk(body))


def takes_extremes(body: SeqStmt) -> bool:
    """Whether a minimum or maximum of integers of 64 bits becomes one of 32 bits in a block."""
    casts = (e for e in walk(body) if isinstance(e, Cast) and isinstance(e.value, Min | Max))
    return any(cast.dtype == i32 and cast.value.dtype == i64 for cast in casts)


def factor_of(product: Mul, var: Var) -> int:
    """The constant factor of a variable in a product of the two, else 1."""
    a, b = product.a, product.b
    if isinstance(a, IntImm):
        a, b = b, a
    return b.value if a is var and isinstance(b, IntImm) else 1


def whole_rows(loop: For, *, of_loops: bool = False) -> list[For]:
    """The loops of a perfect nest over whole rows, the innermost last; the loop alone where rows are not whole.

    Rows are whole if the nest goes over all their elements, which are contiguous. Loops with checked accesses do not
    count, since a fault tells its row and column. With `of_loops` the innermost body may have loops inside.
    """
    nest = chain_from(loop)
    inside = nest[1:]
    kinds = (*_IN_A_ROW, For) if of_loops else _IN_A_ROW
    if loop.step != 1 or not inside or not all(isinstance(stmt, kinds) for stmt in statements(nest[-1].body)):
        return [loop]
    is_plain = all(each.kind in _IN_ORDER and each.step == 1 and is_constant(each.start, 0) for each in inside)
    return nest if is_plain and _goes_through(nest) and not has_check(nest[-1].body) else [loop]


def _goes_through(nest: list[For]) -> bool:
    """Whether a nest uses its variables only to go through whole rows of arrays, and does so."""
    counted = {loop.var for loop in nest}
    goes = False
    todo: list[Node] = [*nest[-1].body.stmts]
    while todo:
        node = todo.pop()
        if isinstance(node, Load | Store) and mentions(node.indices, counted):
            if not _is_whole(node, nest, counted):
                return False
            goes = True
            todo += (node.value,) if isinstance(node, Store) else ()
        elif node in counted:
            return False
        else:
            todo += node.children()
    return goes


def _is_whole(node: Load | Store, nest: list[For], counted: set[Var]) -> bool:
    """Whether the last axes of an access are those of a nest, of which all but the first go from end to end."""
    from tirlite.ir.equal import are_equal

    buffer, first = node.buffer, len(node.indices) - len(nest)
    if first < 0 or buffer.dtype.lanes > 1 or buffer.strides or buffer.volatile:
        return False
    outermost, *inner = node.indices[first:]
    if not all(index is loop.var for index, loop in zip(inner, nest[1:], strict=True)):
        return False
    others = counted - {nest[0].var}
    moves = moved_by(outermost, nest[0].var) == 1 and not mentions(outermost, others)
    is_steady = not mentions(node.indices[:first], counted)
    extents = tuple(buffer.shape[first + 1 :])
    return moves and is_steady and are_equal(extents, tuple(loop.stop for loop in nest[1:]))
