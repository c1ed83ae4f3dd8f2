"""Chains for random programs: each buffer from the one before it, element by element or as a copy."""

from __future__ import annotations

from fuzz.calls import new_target
from fuzz.expressions import INSIDE
from fuzz.scope import Scope, Slot
from fuzz.writer import MOST_ITERATIONS, Writer, estimate

from tirlite.ir import Expr, Load


def chain(writer: Writer, scope: Scope) -> None:
    """Temporaries that each die where the next one is born, which so may take over their bytes."""
    sources = [slot for slot in scope.readable() if slot.extents and slot not in scope.owned]
    cost = scope.cost * 4
    sources = [slot for slot in sources if _cost(slot) * cost <= MOST_ITERATIONS]
    if not sources:
        return
    writer.features.add("chain")
    before = writer.random.choice(sources)
    links = []
    for _ in range(writer.random.randint(2, 4)):
        # A wider type cannot go in place, a narrower one may.
        dtype = before.buffer.dtype if writer.random.random() < 0.75 else writer.random.choice(INSIDE)
        inner = scope.child()
        link = new_target(writer, inner, before.extents, dtype)
        links.append(link)
        chain_link(writer, inner, before, link)
        before = link
    scope.slots.append(before)
    scope.full[before] = None
    if writer.random.random() < 0.2:
        scope.slots += links[:-1]
        scope.full |= dict.fromkeys(links[:-1])


def chain_link(writer: Writer, scope: Scope, before: Slot, slot: Slot) -> None:
    """All elements of `slot`, each from that at the same place of `before`."""
    writer.nest(scope, slot, _Link(writer, before))


def _cost(slot: Slot) -> int:
    cost = 1
    for extent in slot.extents:
        cost *= estimate(extent)
    return cost


class _Link:
    """Writes an element from the one at the same place of the buffer before, and little else."""

    def __init__(self, writer: Writer, before: Slot) -> None:
        self.writer = writer
        self.before = before

    def __call__(self, scope: Scope, slot: Slot, indices: tuple[Expr, ...]) -> None:
        dtype = slot.buffer.dtype
        inner = Scope(slots=[self.before], counters=scope.counters, scalars=scope.scalars)
        inner.points.append((self.before, indices))
        value = self.writer.draw.value(inner, dtype, 2)
        element = Load(self.before.buffer, indices).astype(dtype)
        kinds = (element, value, element if dtype.is_bool else element + value)
        self.writer.builder.store(slot.buffer, indices, self.writer.random.choice(kinds))


def copy(writer: Writer, scope: Scope) -> None:
    """A loop that copies one buffer to another of its type; `externs` makes calls of C of such loops."""
    sources = [slot for slot in scope.readable() if len(slot.extents) == 1 and slot not in scope.owned]
    sources = [slot for slot in sources if _cost(slot) * scope.cost <= MOST_ITERATIONS]
    if not sources:
        return
    source = writer.random.choice(sources)
    targets = [slot for slot in scope.writable() if slot.extents == source.extents and slot not in scope.owned]
    targets = [slot for slot in targets if slot.buffer.dtype == source.buffer.dtype]
    targets = [slot for slot in targets if slot.storage is not source.storage and slot.root is None]
    if targets and writer.random.random() < 0.5:
        target = writer.random.choice(targets)
    else:
        target = new_target(writer, scope, source.extents, source.buffer.dtype)
    (extent,) = source.extents
    writer.features.add("copy")
    with writer.builder.for_(writer.name("i"), 0, extent.expr) as var:
        writer.builder.store(target.buffer, var, source.buffer[var])
    writer.nests.append((*(counter.extent for counter in scope.counters), extent))
    scope.full[target] = None
