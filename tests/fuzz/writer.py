"""The parts of random programs: buffers of random types and shapes, loops, and loops over all elements of a buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from random import Random
from typing import TypedDict

from fuzz.expressions import INSIDE, TYPES, Expressions
from fuzz.extents import USUAL_SIZE, Counter, Extent, constant
from fuzz.scope import Scope, Slot

from tirlite.ir import Buffer, Builder, DType, Expr, ExprLike, ForKind, Ramp, TensorType, Var, const, i64

# An estimate of how many iterations of the innermost loop a statement may have.
MOST_ITERATIONS = 400
# The tagged memory that all programs may use.
TAGGED = "local.UB"

# Writes what happens at one element: the scope in the loops, the buffer, the indices.
Body = Callable[[Scope, Slot, tuple[Expr, ...]], None]


class Promises(TypedDict, total=False):
    """What is said of a buffer."""

    scope: str
    alignment: int
    volatile: bool


class Writer:
    """Adds to one function, and remembers what the program shows off in `features`."""

    def __init__(self, name: str, dims: list[Var], random: Random) -> None:
        self.random = random
        # What stands in few programs is drawn apart: all others stay as they were.
        self.seldom = Random(f"seldom {name}")
        self.dims = dims
        self.builder = Builder(name)
        self.draw = Expressions(random)
        self.features: set[str] = set()
        self.nests: list[tuple[Extent, ...]] = []  # for each loop its extent and those of the loops around it
        # For each call its size, the extents of the loops around it, and how many iterations the callee has at a size.
        self.calls: list[tuple[Extent, tuple[Extent, ...], Callable[[int], int]]] = []
        self._names: dict[str, int] = {}

    def name(self, stem: str) -> str:
        self._names[stem] = self._names.get(stem, -1) + 1
        return f"{stem}{self._names[stem]}"

    def extent(self) -> Extent:
        if self.dims and self.random.random() < 0.6:
            scale, plus = self.random.choice((1, 1, 1, 2)), self.random.choice((0, 0, 1))
            return Extent(self.random.choice(self.dims), scale, plus)
        return constant(self.random.choice((1, 2, 3, 4, 4, 8)))

    def extents(self) -> tuple[Extent, ...]:
        return tuple(self.extent() for _ in range(self.random.choice((0, 1, 1, 1, 2, 2, 3))))

    def slot(
        self, extents: tuple[Extent, ...], make: Callable[[TensorType], Buffer], types: Sequence[DType] = TYPES
    ) -> Slot:
        """A new buffer of a random type."""
        shape = tuple(extent.expr for extent in extents)
        return Slot(make(self.random.choice(types)[shape]), extents)

    def allocate(self, scope: Scope) -> Slot:
        """A new temporary, not yet initialised."""
        places = ("global", "global", "global", "local", "shared")
        # What threads declare as shared is one for all of them.
        place = self.random.choice(places[:-1] if scope.in_threads else places)
        extents = self.extents()
        # Where each thread has its own, how much that is may depend on dims.
        is_bounded = all(extent.base is None for extent in extents) and not scope.in_threads
        if is_bounded and self.random.random() < 0.3:
            place = TAGGED
            self.features.add("tagged memory")
        promises: Promises = {"scope": place}
        if self.random.random() < 0.1:
            self.features.add("alignment")
            promises["alignment"] = self.random.choice((16, 64, 128))
        if self.random.random() < 0.03:
            self.features.add("volatile")
            promises["volatile"] = True
        slot = self.slot(extents, lambda of: self.builder.alloc(self.name("t"), of, **promises), INSIDE)
        scope.slots.append(slot)
        if scope.depth:
            self.features.add("allocation in a block")
        return slot

    @contextmanager
    def loop(self, scope: Scope, extent: Extent, kind: ForKind = ForKind.SERIAL, *, inset: int = 0) -> Iterator[Scope]:
        """A loop from `inset` to that much below `extent`, and the scope of its body."""
        stop = extent.expr if not inset else extent.expr - inset
        makers = {
            ForKind.SERIAL: self.builder.for_,
            ForKind.PARALLEL: self.builder.parallel,
            ForKind.VECTORIZED: self.builder.vectorized,
            ForKind.UNROLLED: self.builder.unroll,
        }
        if kind in (ForKind.SERIAL, ForKind.PARALLEL):
            stop = self.around(stop)
        bounds: tuple[ExprLike, ExprLike, int] = (inset, stop, 1)
        if kind is ForKind.SERIAL and self.random.random() < 0.15:
            bounds = (stop - 1, inset - 1, -1)
            self.features.add("descending loop")
        with makers[kind](self.name("i"), *bounds) as var:
            inner = scope.child(Counter(var, extent, inset, inset), cost=estimate(extent))
            inner.is_vectorized = scope.is_vectorized or kind is ForKind.VECTORIZED
            self.nests.append(tuple(counter.extent for counter in inner.counters))
            yield inner

    def around(self, size: Expr, share: float = 0.008) -> Expr:
        """The same number, now and then by way of sums that wrap around."""
        if not self.dims or self.seldom.random() > share:
            return size
        self.features.add("sums that wrap around")
        return size + self.seldom.choice(self.dims) * const(1 << 62, i64) * 4

    def iterations(self, sizes: dict[Var, int]) -> int:
        """About how many iterations all loops have together for one binding."""
        called = sum(
            prod(each.value(sizes) for each in nest) * iterations(extent.value(sizes))
            for extent, nest, iterations in self.calls
        )
        return called + sum(prod(extent.value(sizes) for extent in nest) for nest in self.nests)

    def serial(self, extent: Extent) -> ForKind:
        """A kind of loop that runs in order."""
        is_short = extent.base is None and self.random.random() < 0.2
        return ForKind.UNROLLED if is_short else ForKind.SERIAL

    def nest(self, scope: Scope, slot: Slot, body: Body) -> bool:
        """Loops over all elements of a buffer around `body`, after which it is full; False if they cost too much."""
        cost = scope.cost
        for extent in slot.extents:
            cost *= estimate(extent)
        if cost > MOST_ITERATIONS or slot in scope.owned or scope.is_vectorized:
            return False
        inner = scope.child()
        kinds = [self.serial(extent) for extent in slot.extents]
        if kinds and self.random.random() < 0.35:
            self.isolate(inner, slot)
            if self.random.random() < 0.5:
                kinds[0] = ForKind.PARALLEL
            else:
                kinds[-1] = ForKind.VECTORIZED
        self._axes(inner, slot, kinds, (), body)
        if slot.root is None:
            scope.full[slot] = None
        return True

    def _axes(self, scope: Scope, slot: Slot, kinds: list[ForKind], indices: tuple[Expr, ...], body: Body) -> None:
        axis = len(indices)
        if axis == len(slot.extents):
            body(scope, slot, indices)
            return
        with self.loop(scope, slot.extents[axis], kinds[axis]) as inner:
            self._axes(inner, slot, kinds, (*indices, inner.counters[-1].var), body)

    def isolate(self, scope: Scope, slot: Slot) -> None:
        """Make `scope` fit for iterations that each write their own element of `slot` and only read all else."""
        scope.frozen |= dict.fromkeys(each.storage for each in scope.slots)
        scope.full.pop(slot.storage, None)
        scope.points = [point for point in scope.points if point[0].storage is not slot.storage]

    def store(self, scope: Scope, slot: Slot, indices: tuple[Expr, ...]) -> None:
        self.builder.store(slot.buffer, indices, self.draw.value(scope, slot.buffer.dtype, 3))

    def store_somewhere(self, scope: Scope) -> None:
        """One element of something that is initialised already."""
        slots = [slot for slot in scope.writable() if slot.storage in scope.full]
        if slots:
            slot = self.random.choice(slots)
            indices = self.draw.indices(scope, slot)
            if indices is not None:
                self.store(scope, slot, indices)

    def store_vector(self, scope: Scope) -> None:
        """Several elements at once, by a Ramp as the last index."""
        slots = [slot for slot in scope.writable() if slot.storage in scope.full and slot.extents]
        slots = [slot for slot in slots if slot.extents[-1].least >= 2]
        slots = [slot for slot in slots if slot not in scope.owned or len(slot.extents) > 1]
        if not slots:
            return
        slot = self.random.choice(slots)
        lanes = self.random.choice([lanes for lanes in (2, 4, 8) if lanes <= slot.extents[-1].least])
        indices = self.draw.indices(scope, slot)
        if indices is None:
            return
        self.features.add("vectors")
        start = self.random.randint(0, slot.extents[-1].least - lanes)
        ramp = Ramp(const(start, i64), const(1, i64), lanes)
        if self.random.random() < 0.3:
            ramp = Ramp(const(start + lanes - 1, i64), const(-1, i64), lanes)
        value = self.draw.vector(scope, slot.buffer.dtype, lanes, 2)
        self.builder.store(slot.buffer, (*indices[:-1], ramp), value)


def estimate(extent: Extent) -> int:
    return extent.plus if extent.base is None else extent.scale * USUAL_SIZE + extent.plus
