"""Buffers for random programs that are filled by several statements in a row, each of which writes a part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from fuzz.calls import new_target
from fuzz.chains import chain_link
from fuzz.extents import Counter, Extent
from fuzz.scope import Scope, Slot
from fuzz.writer import MOST_ITERATIONS, Writer, estimate

from tirlite.ir import Expr, Load, Min, const, i64

# Where a loop of one part begins and ends, and the index along the first axis in each iteration.
_Part = tuple[Expr, Expr, Callable[[Expr], Expr]]


def in_pieces(writer: Writer, scope: Scope) -> None:
    """A buffer whose parts along the first axis are made one after the other, from those of another buffer."""
    sources = [slot for slot in scope.readable() if slot.extents and slot not in scope.owned]
    sources = [slot for slot in sources if _cost(slot) * scope.cost * 3 <= MOST_ITERATIONS]
    if not sources:
        return
    before = writer.random.choice(sources)
    inner = scope.child()
    if writer.random.random() < 0.5:
        # One that dies here, so that its place may be taken over.
        before = _copied(writer, inner, before)
    target = _old_target(writer, inner, before) or new_target(writer, inner, before.extents, before.buffer.dtype)
    writer.features.add("filled in pieces")
    for part in _parts(writer, before.extents[0]):
        _piece(writer, inner, target, before, part)
    if target not in scope.slots:
        scope.slots.append(target)
    scope.full[target] = None


def _copied(writer: Writer, scope: Scope, slot: Slot) -> Slot:
    copy = new_target(writer, scope, slot.extents, slot.buffer.dtype)
    chain_link(writer, scope, slot, copy)
    scope.full[copy] = None
    return copy


def _old_target(writer: Writer, scope: Scope, before: Slot) -> Slot | None:
    """A buffer of the same extents that has been filled before, now and then."""
    slots = [slot for slot in scope.writable() if slot.extents == before.extents and slot.root is None]
    slots = [slot for slot in slots if slot.storage is not before.storage and slot not in scope.owned]
    return writer.random.choice(slots) if slots and writer.random.random() < 0.5 else None


def _parts(writer: Writer, extent: Extent) -> Sequence[_Part]:
    """Parts that together are all of an axis, in some order."""
    whole, zero = extent.expr, const(0, i64)
    parts: list[_Part]
    if writer.random.random() < 0.3:
        parts = [(zero, (whole + 1) // 2, lambda var: var * 2), (zero, whole // 2, lambda var: var * 2 + 1)]
    else:
        few = const(writer.random.choice((1, 2, 3)), i64)
        cut = writer.random.choice((whole // 2, Min(whole, few), few if extent.least >= few.value else whole // 2))
        cuts = [zero, cut, whole]
        if writer.random.random() < 0.3 and extent.least >= 4:
            cuts.insert(2, whole - 1)
        parts = [(start, stop, lambda var: var) for start, stop in zip(cuts, cuts[1:], strict=False)]
    if writer.random.random() < 0.3:
        writer.random.shuffle(parts)
    return parts


def _piece(writer: Writer, scope: Scope, target: Slot, before: Slot, part: _Part) -> None:
    """The elements of one part, each from that at the same place of `before`, and from others now and then."""
    start, stop, index = part
    extent, is_parallel = target.extents[0], writer.random.random() < 0.15
    with ExitStack() as loops:
        loop = writer.builder.parallel if is_parallel else writer.builder.for_
        var = loops.enter_context(loop(writer.name("i"), start, stop))
        # What the counter is said to be is what it never exceeds.
        inner = scope.child(Counter(var, extent), cost=estimate(extent))
        writer.nests.append(tuple(counter.extent for counter in inner.counters))
        indices = [index(var)]
        for axis in target.extents[1:]:
            inner = loops.enter_context(writer.loop(inner, axis))
            indices.append(inner.counters[-1].var)
        known = [before, *([target] if target in scope.full and not is_parallel else [])]
        seen = Scope(slots=known, counters=inner.counters, scalars=scope.scalars, points=[(before, tuple(indices))])
        if writer.random.random() < 0.2:
            seen.full = dict.fromkeys(slot.storage for slot in known)
        value = writer.draw.value(seen, target.buffer.dtype, 2)
        element = Load(before.buffer, tuple(indices)).astype(target.buffer.dtype)
        sums = element if target.buffer.dtype.is_bool else element + value
        writer.builder.store(target.buffer, tuple(indices), writer.random.choice((element, value, sums)))


def _cost(slot: Slot) -> int:
    cost = 1
    for extent in slot.extents:
        cost *= estimate(extent)
    return cost
