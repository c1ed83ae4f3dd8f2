"""Keeps elements of memory in local scalars, so that they stay in registers and LLVM knows their values.

Those are elements that iterations, or their inner loops, update; elements of small temporaries; and loop-invariant
elements of the array that a loop writes. LLVM does not see that `a[i, p]` is invariant in
`for j in range(p + 1, n): a[i, j] -= a[i, p] * a[p, j]`: it compares addresses at run time, for all enclosing loops at
once, and finds that some overlap.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from math import prod

from tirlite.analysis.access import Allocation, Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.ir.checked import has_check
from tirlite.ir.expr import LT, Buffer, Expr, IntImm, Load, Var
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.shapes import constant_shape
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import accesses_in, allocated_in, buffers_of, defined_in, mentions, statements, statements_of, walk
from tirlite.rewrite.vectors.lanes import MOST_APART, is_at, is_same_element

# At most this many elements are kept in registers; this many for each lane, beside what is computed from them.
_MOST_ELEMENTS = 16
_MOST_TOLD_APART = 8


def with_local_elements(loop: For, touches: Mapping[Allocation, Sequence[Touch]]) -> SeqStmt:
    """The body of a loop of independent iterations, with local scalars for the elements that inner loops write.

    That is done for buffers of which an iteration accesses one element throughout, or a few at constant distances. The
    scalar is loaded before, unless the body begins by storing it, and stored at the end. Iterations must be
    independent.
    """
    stores: dict[Buffer, Sequence[Store]] = {}
    begun: set[Store] = set()
    several: set[Buffer] = set()
    top = {*loop.body.stmts}
    certain = {*_certain(loop.body)}
    for allocation, found in touches.items():
        root = allocation.buffer
        written = [touch for touch in found if writes(touch)]
        if not written or all(touch.stmt in top for touch in written) or root.volatile:
            continue
        first = written[0].node
        if not isinstance(first, Store):
            continue
        if not all(is_same_element(first, touch) for touch in found):
            if all(touch.buffer is root and isinstance(touch.node, Load | Store) for touch in found):
                several.add(root)
            continue
        if not any(touch.stmt in certain for touch in found):
            # The element may not exist: `y[t - 1]` in a loop up to `t`.
            continue
        if mentions(first.indices, defined_in(loop.body)):
            continue
        stores[first.buffer] = (first,)
        if writes(found[0]) and found[0].stmt in top:
            begun.add(first)
    body = in_scalars(loop.body, stores, begun) if stores else loop.body
    return _with_few_elements(body, several) if several else body


def _with_few_elements(body: SeqStmt, buffers: set[Buffer]) -> SeqStmt:
    """The body with a local scalar for each element of these buffers, if they are few at constant distances.

    As in `for c in range(3): a[i, c] = 0` beside updates of `a[i, 0]`, `a[i, 1]` and `a[i, 2]`.
    """
    from tirlite.rewrite.vectors.taps import count_of, written_out

    taps = {loop.var for loop in statements_of(body, For) if count_of(loop) is not None}
    moving = defined_in(body) - taps
    moved = {
        node.buffer
        for node in accesses_in(body)
        if any(mentions(index, moving) and not mentions(index, taps) for index in node.indices)
    }
    # Unrolling takes long, and does not change indices without a tap.
    if buffers <= moved:
        return body

    def opened(loop: For) -> For | tuple[Stmt, ...]:
        own = (node for node in accesses_in(loop.body) if node.buffer in buffers)
        return written_out(SeqStmt((loop,))).stmts if any(mentions(node.indices, loop.var) for node in own) else loop

    made = rewrite(body, {For: opened})
    elements: dict[Buffer, list[Store]] = {}
    for stmt in _certain(made):
        if isinstance(stmt, Store) and stmt.buffer in buffers:
            known = elements.setdefault(stmt.buffer, [])
            if len(known) <= _MOST_TOLD_APART and not any(is_at(stmt, each) for each in known):
                known.append(stmt)
    moving = defined_in(made)
    few = {buffer: found for buffer, found in elements.items() if _are_few(found, moving)}
    for node in walk(made):
        if isinstance(node, Load | Store) and not any(is_at(node, each) for each in few.get(node.buffer, ())):
            few.pop(node.buffer, None)
    begun = {store for found in few.values() for store in found if _is_begun(made, store)}
    return in_scalars(made, few, begun) if few else body


def _is_begun(body: SeqStmt, store: Store) -> bool:
    """Whether the body sets an element unconditionally before loading it."""
    for stmt in body.stmts:
        if any(isinstance(node, Load) and is_at(node, store) for node in walk(stmt)):
            return False
        if isinstance(stmt, Store) and is_at(stmt, store):
            return True
    return False


def _are_few(elements: Sequence[Store], moving: Container[object]) -> bool:
    """Whether elements are few, loop-invariant, and at constant distances along an axis."""
    indices = [index for each in elements for index in each.indices]
    if len(elements) > _MOST_TOLD_APART or any(node in moving or isinstance(node, Load) for node in walk(*indices)):
        return False
    pairs = ((a, b) for place, a in enumerate(elements) for b in elements[:place])
    return all(any(map(_are_apart, a.indices, b.indices)) for a, b in pairs)


def _are_apart(index: Expr, other: Expr) -> bool:
    return isinstance(index, IntImm) and isinstance(other, IntImm) and index.value != other.value


def in_scalars(body: SeqStmt, stores: Mapping[Buffer, Sequence[Store]], begun: Container[Store]) -> SeqStmt:
    """The body with local scalars for these elements of each buffer, which must be in bounds.

    The scalars are loaded before, except for elements that a store in `begun` sets, and stored at the end.
    """
    cells = {
        buffer: [(each, Buffer(buffer.name, buffer.dtype, (), "local")) for each in own]
        for buffer, own in stores.items()
    }
    before: list[Stmt] = []
    after: list[Stmt] = []
    for store, cell in (each for own in cells.values() for each in own):
        before.append(Allocate(cell, span=store.span))
        if store not in begun:
            before.append(Store(cell, (), Load(store.buffer, store.indices), span=store.span))
        after.append(store.replaced(value=Load(cell, ())))

    def moved(node: Load | Store) -> Node:
        own = cells.get(node.buffer, ())
        found = next((cell for store, cell in own if len(own) == 1 or is_at(node, store)), None)
        return node if found is None else node.replaced(buffer=found, indices=())

    rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
    return SeqStmt((*before, *rewrite(body, rules).stmts, *after))


def _certain(body: SeqStmt) -> Iterator[Stmt]:
    """The statements that run whenever a body does: its own, and those of loops with at least one iteration."""
    for stmt in body.stmts:
        yield stmt
        if isinstance(stmt, For) and stmt.step == 1 and isinstance(stmt.start, IntImm):
            stop = stmt.stop
            least = stop.value if isinstance(stop, IntImm) else None
            if isinstance(stop, Var) and stop.dim is not None:
                least = stop.dim.low
            if least is not None and least > stmt.start.value:
                yield from _certain(stmt.body)


def with_scalars(body: SeqStmt) -> SeqStmt | None:
    """The body of a loop with short loops unrolled, and a scalar for each element of the arrays that it allocates.

    None if it allocates no array and loops are not very short, or if loops or arrays would remain.
    """
    if not any(stmt.buffer.shape for stmt in statements_of(body, Allocate)) and not _has_few_apart(body):
        return None
    from tirlite.rewrite.vectors.taps import count_of, written_out

    for stmt in body.stmts:
        # Unrolling short loops removes neither these loops nor these arrays.
        is_left = count_of(stmt) is None if isinstance(stmt, For) else next(_loops_in(stmt), None) is not None
        if is_left or (isinstance(stmt, Allocate) and not _is_small(stmt.buffer)):
            return None
    made = written_out(body)
    allocated = allocated_in(made)
    if next(_loops_in(made), None) is not None:
        return None
    cells: dict[tuple[Buffer, int], Buffer] = {}
    if not all(_is_small(buffer) for buffer in allocated):
        return None
    for stmt in statements(made):
        for buffer, node in ((each, part) for part in walk(stmt) for each in buffers_of(part)):
            if buffer in allocated:
                place = _place(node)
                if place is None:
                    return None
                cells.setdefault((buffer, place), Buffer(buffer.name, buffer.dtype, (), "local"))

    def moved(node: Load | Store) -> Node:
        if node.buffer not in allocated:
            return node
        place = _place(node)
        assert place is not None
        return node.replaced(buffer=cells[node.buffer, place], indices=())

    def declared(stmt: Allocate) -> Stmt | tuple[Stmt, ...]:
        return tuple(stmt.replaced(buffer=cell) for (buffer, _), cell in cells.items() if buffer is stmt.buffer)

    rules: dict[type[Node], Rule] = {Load: moved, Store: moved, Allocate: declared}
    return rewrite(made, rules)


def _loops_in(stmt: Stmt) -> Iterator[For | While]:
    return statements_of(stmt, For, While)


def _has_few_apart(body: SeqStmt) -> bool:
    """Whether loops have no more iterations than the largest stride that is shuffled."""
    from tirlite.rewrite.vectors.taps import count_of

    counts = [count_of(loop) for loop in statements_of(body, For)]
    return bool(counts) and all(count is not None and count <= MOST_APART for count in counts)


def _is_small(buffer: Buffer) -> bool:
    shape = constant_shape(buffer)
    is_plain = buffer.dtype.lanes == 1 and not buffer.volatile and buffer.scope in ("global", "local")
    return is_plain and shape is not None and 0 < prod(shape) <= _MOST_ELEMENTS


def _place(node: Node) -> int | None:
    """The position of the element accessed in its buffer; None if it is not constant, or for other nodes."""
    if not isinstance(node, Load | Store):
        return None
    place = 0
    for index, extent in zip(node.indices, node.buffer.shape, strict=True):
        assert isinstance(extent, IntImm)
        if not isinstance(index, IntImm) or not 0 <= index.value < extent.value:
            return None
        place = place * extent.value + index.value
    return place


def with_steady_loads(loop: For, facts: Facts) -> Stmt | None:
    """An innermost loop with its invariant loads of the array that it writes hoisted; None if there are none.

    Iterations are independent, so none writes what others load.
    """
    *lets, store = loop.body.stmts or (None,)
    if loop.kind is not ForKind.SERIAL or loop.step != 1 or not isinstance(store, Store):
        return None
    if not all(isinstance(let, Let) for let in lets):
        return None
    root = facts.definitions.root(store.buffer)
    moving = defined_in(loop)

    def is_steady(load: Load) -> bool:
        nodes = [*walk(*load.indices)]
        is_same = not any(node in moving or isinstance(node, Load) for node in nodes)
        is_plain = load.dtype.lanes == 1 and not load.buffer.volatile and not has_check(load)
        return is_same and is_plain and bool(load.indices) and facts.definitions.root(load.buffer) is root

    from tirlite.rewrite.vectors.columns import loads_of

    found = [load for load, is_certain in loads_of(loop.body) if is_certain and is_steady(load)]
    if not found or not facts.is_independent(loop):
        return None
    named = {load: Var(load.buffer.name, load.dtype) for load in found}

    def replaced(load: Load) -> Node:
        return named.get(load, load)

    body = rewrite(loop.body, {Load: replaced})
    assert isinstance(body, SeqStmt)
    made = SeqStmt((*(Let(var, load) for load, var in named.items()), loop.replaced(body=body)))
    return IfThenElse(LT(loop.start, loop.stop), made, SeqStmt(), span=loop.span)
