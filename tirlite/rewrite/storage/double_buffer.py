"""DoubleBuffer doubles the buffers that are marked for it: one copy is filled for the next iteration, one is read.

A double buffer belongs to the loop that uses its copies in turn. Often it is marked where it is filled, perhaps in a
loop over the threads of a block, and allocated there too: then the mark moves around the loop, and the buffer before
it. Source: TVM marks the fill (inject_double_buffer.cc, 2017).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.access import AccessKind, Allocation, Region
from tirlite.analysis.coverage.filled import is_filled
from tirlite.analysis.coverage.webs import webs_of
from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.definitions import Definitions
from tirlite.analysis.loops.dependence import may_carry
from tirlite.analysis.loops.fusion import can_be_reordered
from tirlite.analysis.regions import is_within, regions_around
from tirlite.diag import Message
from tirlite.ir.demand import pass_call
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GT, LT, Add, Buffer, Expr, FloorDiv, FloorMod, Load, Sub, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.printer import text
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.stmt import Allocate, AttrKey, AttrStmt, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, View
from tirlite.ir.walk import accesses_in, defined_in, is_steady, statements_of, walk
from tirlite.record import record, replace
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.simplify.simplify import simplified


class NotDouble(Message):
    """A buffer is marked as double, and cannot be filled ahead of its use.

    Example: `with tl.attr(t, "double_buffer"):` around a loop whose fill of `t` reads what the rest of it writes.
    Fix: Let each iteration of one serial loop first fill the whole buffer, then only read it; else drop the mark.
    """

    title = "buffer `{buffer}` cannot be filled one iteration ahead: {reason}"
    label = "marked here"
    help = "each iteration of the loop must first fill the buffer, all of it that is read, and then only read it"


@record
class DoubleBuffer:
    """Gives each buffer under `with tl.attr(X, "double_buffer"):` two copies, used in turn by the loop inside.

    The first fill comes before the loop. Iteration k then fills the copy for iteration k + 1 and works on its own one,
    so that a memory which loads by itself does so while the rest runs. The mark may also be in the loop, around the
    fill of X, and X be allocated there; for loops over threads, `SplitThreads` comes first. In the loop's body,
    statements that fill X, or all of it that is read, come first (a last block may be shorter, and a halo cut off at
    borders); the others read X and write nothing that the fill accesses. Several buffers of a loop may be marked. As it
    costs a second copy of X, and processors with caches gain nothing, it is not in the default pipeline. For functions
    in normal form (see `Normalize`); the result is in it too.

    Raises KernelError if a marked buffer cannot be filled ahead.
    """

    name: str = "double-buffer"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        while marked := list(_marked(func)):
            inside = [each for each in marked if _loop_around(func, each) is not None]
            # The last mark has no other inside of it.
            func = _moved_out(func, inside[0]) if inside else Normalize()(_doubled(func, marked[-1]))
        return func


def _marked(func: PrimFunc) -> Iterator[AttrStmt]:
    return (s for s in statements_of(func.body, AttrStmt) if s.key is AttrKey.DOUBLE_BUFFER)


def _moved_out(func: PrimFunc, marked: AttrStmt) -> PrimFunc:
    loop = _loop_around(func, marked)
    assert loop is not None
    assert marked.buffer is not None
    if _is_resized(loop, marked):
        raise NotDouble(marked.buffer.name, "its size changes from iteration to iteration", span=marked.span).error()
    return _marked_around(func, marked, loop)


def _doubled(func: PrimFunc, marked: AttrStmt) -> PrimFunc:
    """The function with two copies of the buffer, filled one iteration ahead."""
    assert marked.buffer is not None
    buffer = marked.buffer
    loop, fill, work = _loop_in(marked, buffer)
    _check_uses(Facts(func), marked, loop, fill, work)
    pair = replace(buffer, shape=(const(2, i64), *buffer.shape))
    following = Add(loop.var, const(loop.step, i64))
    is_before = LT if loop.step > 0 else GT
    mine = FloorMod(_turn(loop), const(2, i64))
    first = _filling(fill, pair, buffer, loop, loop.start, const(0, i64))
    ahead = _filling(fill, pair, buffer, loop, following, FloorMod(Add(_turn(loop), const(1, i64)), const(2, i64)))
    body = (
        *_redirected([stmt for stmt in fill if isinstance(stmt, Let)], pair, buffer, mine),
        IfThenElse(is_before(following, loop.stop), SeqStmt(ahead)),
        *_redirected(work, pair, buffer, mine),
    )
    stmts: list[Stmt] = [IfThenElse(is_before(loop.start, loop.stop), SeqStmt(first))]
    stmts.append(loop.replaced(body=SeqStmt(tuple(body))))
    done = [each for stmt in marked.body.stmts for each in (stmts if stmt is loop else [stmt])]

    def attribute(node: AttrStmt) -> Stmt | tuple[Stmt, ...]:
        return tuple(done) if node is marked else node

    def allocate(node: Allocate) -> Stmt:
        return node.replaced(buffer=pair) if node.buffer is buffer else node

    return rewrite(func, {AttrStmt: attribute, Allocate: allocate})


def _loop_in(marked: AttrStmt, buffer: Buffer) -> tuple[For, list[Stmt], list[Stmt]]:
    """The only loop in the block that accesses the buffer, its statements that fill it, and the others."""
    users = [stmt for stmt in marked.body.stmts if _touches(stmt, buffer)]
    loop = users[0] if len(users) == 1 else None
    if not isinstance(loop, For) or loop.kind is not ForKind.SERIAL:
        raise NotDouble(buffer.name, "its uses are not in one serial loop", span=marked.span).error()
    stores = [number for number, stmt in enumerate(loop.body.stmts) if _writes(stmt, buffer)]
    if not stores:
        raise NotDouble(buffer.name, "nothing in the loop fills it", span=marked.span).error()
    fill: list[Stmt] = []
    work: list[Stmt] = []
    for number, stmt in enumerate(loop.body.stmts):
        is_fill = number <= stores[-1] and (isinstance(stmt, Let | View) or _touches(stmt, buffer))
        (fill if is_fill else work).append(stmt)
    return loop, fill, work


def _check_uses(facts: Facts, marked: AttrStmt, loop: For, fill: Sequence[Stmt], work: Sequence[Stmt]) -> None:
    """Raises KernelError if the next iteration's fill cannot come before this iteration's work."""
    buffer = marked.buffer
    assert buffer is not None
    reason = None
    declared = [stmt.buffer for stmt in work if isinstance(stmt, Allocate)]
    if any(isinstance(stmt, View) or any(_touches(stmt, each) for each in declared) for stmt in fill):
        reason = "something is declared in between"
    elif not all(can_be_reordered(stmt) for stmt in loop.body.stmts):
        reason = "something in the loop cannot be moved: a call, assert, attribute, loaded size or volatile access"
    elif not is_steady(loop.start, loop.stop):
        reason = "the bounds of the loop are loaded"
    elif not _counts_on(facts, loop):
        reason = "the variable of the loop may wrap around behind its end"
    elif (shared := _shared(fill, work, buffer, facts.definitions)) is not None:
        reason = f"`{shared.name}` is touched by the fill and by the rest, and written"
    else:
        reason = _stale(facts, buffer, loop)
    if reason is not None:
        raise NotDouble(buffer.name, reason, span=marked.span).error()


def _counts_on(facts: Facts, loop: For) -> bool:
    """Whether the variable's next value after the last one, and its distance from the start, fit into i64."""
    if abs(loop.step) == 1:
        return True  # that value is the stop, and the parity of a distance also holds modulo 2**64
    space = facts.space
    start, stop = space.size(loop.start), space.size(loop.stop)
    return all(map(space.is_exact, (start, stop, stop + loop.step, stop - start)))


def _shared(fill: Sequence[Stmt], work: Sequence[Stmt], buffer: Buffer, definitions: Definitions) -> Buffer | None:
    """Another buffer that both parts access and one writes, or that the fill writes for the next iteration."""
    filled = {definitions.root(node.buffer) for node in accesses_in(*fill)}
    written = (definitions.root(node.buffer) for node in accesses_in(*fill, *work) if isinstance(node, Store))
    return next((each for each in written if each is not buffer and each in filled), None)


def _stale(facts: Facts, buffer: Buffer, loop: For) -> str | None:
    """Why a read may see what the same iteration has not written; None if all uses are in the loop and it cannot."""
    space = facts.space
    found = [each for each in facts.sequence.allocations if each.buffer is buffer]
    if len(found) != 1 or any(view.source is buffer for view in space.definitions.views.values()):
        return "it is viewed as another buffer"
    (allocation,) = found
    region = _region_of(loop, allocation)
    if region is None or not all(isinstance(touch.node, Load | Store) for touch in allocation.touches):
        return "it is used outside of the loop, or by a call"
    webs = webs_of(allocation, facts, {})
    if len(webs) == 1 and is_within(webs[0].home, region):
        return None
    writes = [touch for touch in allocation.touches if touch.kind is AccessKind.WRITE]
    for read in allocation.touches:
        if read.kind is AccessKind.WRITE or is_filled(read, writes, region, space):
            continue
        if any(may_carry(facts.addresses, write, read, region) for write in writes):
            assert isinstance(read.node, Load)
            return f"nothing in the same iteration is proved to fill `{text(read.node)}` before it is read"
    return None


def _region_of(loop: For, allocation: Allocation) -> Region | None:
    """The body of the loop, if it contains all accesses."""
    found: Region | None = None
    for touch in allocation.touches:
        found = next((each for each in regions_around(touch.region) if each.composite is loop), None)
        if found is None:
            return None
    return found


def _turn(loop: For) -> Expr:
    """The number of iterations already done."""
    distance = Sub(loop.var, loop.start)
    return simplified(distance if loop.step == 1 else FloorDiv(distance, const(loop.step, i64)))


def _filling(
    fill: Sequence[Stmt], pair: Buffer, buffer: Buffer, loop: For, value: Expr, copy: Expr
) -> tuple[Stmt, ...]:
    """The fill for the iteration `value`, of this copy."""
    # Lets that the work uses keep their variables; those of the fill get new ones.
    own = {stmt.var: Var(stmt.var.name, stmt.var.dtype) for stmt in fill if isinstance(stmt, Let)}
    stmts = simplified(substitute(SeqStmt(tuple(fill)), {loop.var: value, **own})).stmts
    copies = [stmt.replaced(var=own[stmt.var]) if isinstance(stmt, Let) else stmt for stmt in stmts]
    return _redirected(copies, pair, buffer, copy)


def _redirected(stmts: Sequence[Stmt], pair: Buffer, buffer: Buffer, copy: Expr) -> tuple[Stmt, ...]:
    def access(node: Load | Store) -> Node:
        return node.replaced(buffer=pair, indices=(copy, *node.indices)) if node.buffer is buffer else node

    rules: dict[type[Node], Rule] = {Load: access, Store: access}
    result = rewrite(SeqStmt(tuple(stmts)), rules)
    return result.stmts


def _touches(stmt: Stmt, buffer: Buffer) -> bool:
    return any(node.buffer is buffer for node in accesses_in(stmt))


def _writes(stmt: Stmt, buffer: Buffer) -> bool:
    return any(isinstance(node, Store) and node.buffer is buffer for node in accesses_in(stmt))


def _loop_around(func: PrimFunc, marked: AttrStmt) -> For | None:
    """The loop with `marked` in its body; None if there is none, or `marked` contains the loop that uses the copies."""
    if _holds_the_loop(func, marked):
        return None
    return next((each for each in statements_of(func.body, For) if marked in each.body.stmts), None)


def _holds_the_loop(func: PrimFunc, marked: AttrStmt) -> bool:
    users = [stmt for stmt in marked.body.stmts if _accesses_in(stmt, marked)]
    if len(users) != 1 or not isinstance(users[0], For) or users[0].kind is not ForKind.SERIAL:
        return False
    return _accesses_in(users[0], marked) == _accesses_in(func.body, marked)


def _accesses_in(node: Node, marked: AttrStmt) -> int:
    return sum(isinstance(each, Load | Store) and each.buffer is marked.buffer for each in walk(node))


def _is_resized(loop: For, marked: AttrStmt) -> bool:
    """Whether the size of the buffer may change between iterations."""
    assert marked.buffer is not None
    inside = defined_in(loop)
    nodes = [*walk(*marked.buffer.shape)]
    return any(isinstance(node, Load) or (isinstance(node, Var) and node in inside) for node in nodes)


def _marked_around(func: PrimFunc, marked: AttrStmt, loop: For) -> PrimFunc:
    """`func` with `marked` moved around `loop`, and before that the Allocate of its buffer, if the loop contains it."""
    allocates = [each for each in loop.body.stmts if isinstance(each, Allocate) and each.buffer is marked.buffer]
    body = loop.replaced(body=SeqStmt(tuple(_unmarked(loop, allocates, marked))))
    around = *allocates, marked.replaced(body=SeqStmt((body,)))

    def moved(node: For) -> Stmt | tuple[Stmt, ...]:
        return around if node is loop else node

    return rewrite(func, {For: moved})


def _unmarked(loop: For, allocates: list[Allocate], marked: AttrStmt) -> Iterator[Stmt]:
    for each in loop.body.stmts:
        if each is marked:
            yield from marked.body.stmts
        elif each not in allocates:
            yield each
