"""Finds accesses that every call reaches, and that lie out of bounds in each: what no version of a kernel can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import takewhile

from tirlite.analysis.access import AccessKind
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.guarded import Access, guarded_accesses
from tirlite.analysis.param_uses import only_updated, used
from tirlite.ir.expr import Buffer, Expr
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.stmt import Assert, Evaluate, For, ForKind, Stmt, Store, View, While
from tirlite.ir.walk import statements
from tirlite.record import record
from tirlite.sizes import Size, dims_of, evaluate
from tirlite.sizes.poly import varies
from tirlite.sizes.unknown import Unknown, is_nonnegative, is_positive, linear

# What may end a call before an access behind it, or keep it for ever.
_ENDS: tuple[type[Stmt], ...] = (Assert, While, Evaluate, KernelCall)


@record(eq=False)
class Outside:
    """An access, one of its axes, and an index and the extent there at some sizes, by name."""

    access: Access
    axis: int
    index: int
    extent: int
    sizes: tuple[tuple[str, int], ...]


def find_outside(facts: Facts, accesses: Iterable[Access]) -> Outside | None:
    """The first of some accesses that every call reaches out of bounds, if there is one."""
    begun = _begun(facts)
    return next((found for access in accesses for found in _outside(facts, begun, access)), None)


def find_unwritten(facts: Facts) -> tuple[Store, Buffer] | None:
    """A store that every call makes of what is read from an allocation that nothing gives a value, if there is one."""
    params = set(facts.func.params)
    never = {
        allocation.buffer
        for allocation in facts.sequence.allocations
        if allocation.touches and all(touch.kind is AccessKind.READ for touch in allocation.touches)
    } | (only_updated(facts.func) - params)
    begun = _begun(facts)
    for access in guarded_accesses(facts.func, facts.space) if never else ():
        node, stmt = access.node, access.stmt
        if isinstance(node, View) or not isinstance(stmt, Store):
            continue
        buffer = facts.definitions.root(node.buffer)
        is_candidate = stmt.buffer in params and _is_reached(facts, begun, access)
        if buffer in never and is_candidate and any(each is node for each in used(stmt.value)):
            return stmt, buffer
    return None


def _outside(facts: Facts, begun: Set[Stmt], access: Access) -> Iterator[Outside]:
    node = access.node
    if isinstance(node, View) or not _is_reached(facts, begun, access):
        return
    for axis, (index, extent) in enumerate(zip(node.indices, node.buffer.shape, strict=True)):
        size = facts.extents.size(extent)
        for value in _corners(facts, index) if size is not None and index.dtype.lanes == 1 else ():
            assert size is not None
            if is_nonnegative(value - size) or is_nonnegative(-1 - value):
                least = {dim: dim.low for dim in (*dims_of(value), *dims_of(size))}
                sizes = tuple(sorted((dim.name, low) for dim, low in least.items()))
                yield Outside(access, axis, evaluate(value, least), evaluate(size, least), sizes)
                return


def _begun(facts: Facts) -> Set[Stmt]:
    """The statements of the function's body that each call comes to and goes through, unless an access ends it."""
    return frozenset(takewhile(_is_passed, facts.func.body.stmts))


def _is_passed(stmt: Stmt) -> bool:
    return not any(isinstance(each, _ENDS) for each in statements(stmt))


def _is_reached(facts: Facts, begun: Set[Stmt], access: Access) -> bool:
    """Whether each call comes to an access, or is ended by another one before."""
    if not access.around.is_certain or not all(_runs(facts, loop) for loop in access.around.loops):
        return False
    return (access.around.loops[0] if access.around.loops else access.stmt) in begun


def _runs(facts: Facts, loop: For) -> bool:
    bounds = _bounds(facts, loop)
    return bounds is not None and loop.kind is not ForKind.THREAD and is_positive(_distance(loop, *bounds))


def _bounds(facts: Facts, loop: For) -> tuple[Size, Size] | None:
    """Where a loop starts and stops, known on entry and computed without wrapping around; else None."""
    start, stop = facts.space.size(loop.start), facts.space.size(loop.stop)
    are_known = not (varies(start) or varies(stop)) and facts.space.is_exact(start) and facts.space.is_exact(stop)
    return (start, stop) if are_known else None


def _distance(loop: For, start: Size, stop: Size) -> Size:
    return stop - start if loop.step > 0 else start - stop


def _corners(facts: Facts, index: Expr) -> Iterator[Size]:
    """The least and the greatest value of an index that counters of loops move, each by itself; else nothing."""
    value = facts.space.size(index)
    parts = linear(value)
    if parts is None or not facts.space.is_exact(value):
        return
    low = high = parts.constant
    for atom, factor in parts.terms.items():
        loop = atom.owner if isinstance(atom, Unknown) and atom.counts else None
        if not isinstance(loop, For) or not _runs(facts, loop):
            return
        bounds = _bounds(facts, loop)
        assert bounds is not None
        last = (_distance(loop, *bounds) - 1) // abs(loop.step)
        if is_nonnegative(factor):
            high = high + factor * last
        elif is_nonnegative(-factor):
            low = low + factor * last
        else:
            return
    yield from (high, low)
