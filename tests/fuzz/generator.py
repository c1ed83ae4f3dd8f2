"""A seed in, a random valid program out: temporaries of all kinds, loops, branches, views, and no undefined behaviour.

Each temporary is wholly initialised before it is read, or read only at elements that were just written; each index is
in bounds by construction; iterations of a parallel loop write what is outside only at their own first index, or at
their own element.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from random import Random

from fuzz.calls import Callee, call, new_target
from fuzz.chains import chain, chain_link, copy
from fuzz.expressions import INSIDE, TYPES
from fuzz.extents import Counter, Extent, constant
from fuzz.pieces import in_pieces
from fuzz.program import Program
from fuzz.scope import Scope, Slot
from fuzz.threads import launch
from fuzz.writer import MOST_ITERATIONS, Writer, estimate

from tirlite.ir.dtype import DType, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from tirlite.ir.expr import Buffer, Expr, ExprLike, Load, Max, Min, Not, Or, Var, const
from tirlite.ir.stmt import AttrKey, ForKind
from tirlite.sizes import Dim

DEEPEST = 4
MOST_IN_ALL = 5000
SMALLER = {i64: (i32, u16, u8), u64: (u32, i16, i8), i32: (i16, u16, u8), u32: (u16, i8), i16: (u8,), u16: (i8,)}


def generate(seed: int) -> Program:
    """The program of a seed: always the same."""
    random = Random(seed)
    dims = [_dim(name, random) for name in ("n", "m")[: random.choice((0, 1, 2, 2))]]
    return _Generator(f"program_{seed}", dims, random).program(seed)


def _dim(name: str, random: Random) -> Var:
    return Var(name, i64, random.choice((Dim(name, min=0), Dim(name, min=0), Dim(name), Dim(name, min=0, max=8))))


class _Generator(Writer):
    def __init__(self, name: str, dims: list[Var], random: Random) -> None:
        super().__init__(name, dims, random)
        self.callees: list[Callee] = []

    def program(self, seed: int) -> Program:
        scope, shapes = Scope(), {}
        for dim in self.dims:
            shapes |= self._parameter(scope, "x", (Extent(dim, 1, 0),))
        for _ in range(self.random.randint(1, 2)):
            shapes |= self._parameter(scope, "x", self.extents())
        scope.frozen |= scope.full
        for dtype in self.random.sample((i32, f32, f64, u8, i64, f16, bool_), self.random.choice((0, 0, 1, 2))):
            scope.scalars.append(self.builder.param(self.name("s"), dtype))
        outputs: dict[Buffer, tuple[Extent, ...]] = {}
        for _ in range(self.random.randint(1, 2)):
            outputs |= self._parameter(scope, "y", self.extents())
        digest = Slot(self.builder.param("digest", i64[2]), (constant(2),))
        outputs[digest.buffer] = digest.extents
        for _ in range(self.random.randint(5, 12)):
            self.statement(scope)
            if self.random.random() < 0.4:
                self.consume(scope, digest)
        bindings = self._bindings()
        return Program(seed, self.builder.build(), shapes | outputs, bindings, frozenset(self.features))

    def _parameter(self, scope: Scope, stem: str, extents: tuple[Extent, ...]) -> dict[Buffer, tuple[Extent, ...]]:
        slot = self.slot(extents, lambda of: self.builder.param(self.name(stem), of))
        scope.slots.append(slot)
        scope.full[slot] = None
        return {slot.buffer: extents}

    def _bindings(self) -> tuple[dict[Var, int], ...]:
        if not self.dims:
            return ({},)
        self.features.add("symbolic sizes")
        found: list[dict[Var, int]] = []
        for choices in ((0, 1), (1, 2, 3), (2, 3, 5)):
            found.append({dim: max(self.random.choice(choices), Extent(dim, 1, 0).least) for dim in self.dims})
        # Long enough for the bodies of vectorized loops and for what remains after them.
        long = self.random.choice([dim for dim in self.dims if dim.dim is None or dim.dim.high is None] or [None])
        if long is not None:
            sizes = found[1] | {long: self.random.choice((33, 40, 71))}
            if self.iterations(sizes) <= MOST_IN_ALL:
                self.features.add("long loops")
                found.append(sizes)
        # Nothing at all, or ones; a few; many: of two with a few, one is enough.
        del found[self.random.choice((1, 2))]
        return tuple(found)

    def statement(self, scope: Scope) -> None:
        if scope.is_vectorized:
            self.store_somewhere(scope)
            return
        steps: dict[Callable[[Scope], object], int] = {
            self.fill: 6,
            self.accumulate: 4,
            self.produce_and_consume: 3,
            self.repeat: 3,
            self.parallel: 3,
            self.threads: 1,
            self.call: 2,
            self.chain: 2,
            self.copy: 1,
            self.in_pieces: 2,
            self.triangle: 2,
            self.vectorized: 2,
            self.store_vector: 2,
            self.branch: 3,
            self.bounded_while: 2,
            self.let: 2,
            self.view: 3,
            self.check: 1,
            self.attribute: 1,
            self.stride: 1,
            self.store_somewhere: 2,
        }
        if self.seldom.random() < 0.05:
            self.begin_again(scope)
        (step,) = self.random.choices(list(steps), list(steps.values()))
        step(scope)

    def statements(self, scope: Scope, most: int) -> None:
        for _ in range(self.random.randint(1, most)):
            self.statement(scope)

    def fill(self, scope: Scope) -> None:
        """All elements of a buffer anew; most often of a new temporary."""
        slots = [slot for slot in scope.writable() if slot not in scope.owned]
        if slots and self.random.random() < 0.3:
            self.nest(scope, self.random.choice(slots), self.store)
            return
        slot = self.allocate(scope)
        if self.random.random() < 0.2:
            self._view_of(scope, slot)
        self.nest(scope, slot, self.store)

    def accumulate(self, scope: Scope) -> None:
        """A sum into elements of a buffer, over a loop that may be longer than it."""
        slots = [slot for slot in scope.writable() if slot.storage in scope.full and not slot.buffer.dtype.is_bool]
        if not slots:
            return
        slot = self.random.choice(slots)
        extent = self.random.choice((*slot.extents, self.extent()))
        if scope.cost * estimate(extent) > MOST_ITERATIONS:
            return
        with self.loop(scope, extent, self.serial(extent)) as inner:
            indices = self.draw.indices(inner, slot)
            if indices is not None:
                self.features.add("reduction")
                term = self.draw.value(inner, slot.buffer.dtype, 2)
                self.builder.store(slot.buffer, indices, Load(slot.buffer, indices) + term)

    def produce_and_consume(self, scope: Scope) -> None:
        """A temporary that is read only where it has just been written, in the same iteration."""

        def body(inner: Scope, target: Slot, indices: tuple[Expr, ...]) -> None:
            self.store(inner, target, indices)
            inner.points.append((target, indices))
            for _ in range(2):
                self.store_somewhere(inner)

        self.nest(scope, self.allocate(scope), body)

    def consume(self, scope: Scope, digest: Slot) -> None:
        """All elements of one of the last temporaries, mixed into an output so that order and value matter."""
        slots = [slot for slot in scope.readable() if slot.storage not in scope.frozen][-3:]
        if slots:
            slot = self.random.choice(slots)
            index = (self.random.randrange(2),)
            with ExitStack() as loops:
                inner = scope
                for extent in slot.extents:
                    inner = loops.enter_context(self.loop(inner, extent))
                indices = tuple(counter.var for counter in inner.counters)
                mixed = digest.buffer[index] * 3 + Load(slot.buffer, indices).astype(i64)
                self.builder.store(digest.buffer, index, mixed)

    def repeat(self, scope: Scope) -> None:
        """A loop over several statements: what they write is carried from iteration to iteration."""
        extent = self.extent()
        if scope.depth >= DEEPEST or scope.cost * estimate(extent) > MOST_ITERATIONS:
            return
        inset = 1 if extent.least >= 0 and self.random.random() < 0.3 else 0
        kind = ForKind.SERIAL if inset else self.serial(extent)
        with self.loop(scope, extent, kind, inset=inset) as inner:
            if any(slot.storage in scope.full for slot in inner.writable()):
                self.features.add("loop-carried")
            self.statements(inner, 3)

    def stride(self, scope: Scope) -> None:
        """A loop in steps over every other iteration, or every third one."""
        extent = self.extent()
        if scope.depth >= DEEPEST or scope.cost * estimate(extent) > MOST_ITERATIONS:
            return
        self.features.add("loop with a step")
        with self.builder.for_(self.name("i"), 0, extent.expr, self.random.choice((2, 3))) as var:
            inner = scope.child(Counter(var, extent), cost=estimate(extent))
            self.nests.append(tuple(counter.extent for counter in inner.counters))
            self.statements(inner, 2)

    def begin_again(self, scope: Scope) -> None:
        """The first few elements of a buffer anew, by loops that may look as if they were over all."""
        slots = [slot for slot in scope.writable() if slot.storage in scope.full and slot.extents]
        slots = [slot for slot in slots if slot not in scope.owned]
        cost = scope.cost
        if not slots or scope.depth >= DEEPEST:
            return
        slot = self.seldom.choice(slots)
        few = const(self.seldom.randint(1, 3), i64)
        stops = [Min(slot.extents[0].expr, self.around(few, 0.5)), *(extent.expr for extent in slot.extents[1:])]
        for extent in slot.extents:
            cost *= estimate(extent)
        if cost > MOST_ITERATIONS:
            return
        with ExitStack() as loops:
            indices = tuple(loops.enter_context(self.builder.for_(self.name("i"), 0, stop)) for stop in stops)
            outside = tuple(counter.extent for counter in scope.counters)
            self.nests.append((*outside, *slot.extents))
            self.builder.store(slot.buffer, indices, indices[-1].astype(slot.buffer.dtype))

    def attribute(self, scope: Scope) -> None:
        """A block of which something is said that changes nothing."""
        if scope.depth >= DEEPEST:
            return
        self.features.add("attribute")
        said = self.random.choice(
            (
                self.builder.attr(AttrKey.PRAGMA, value="none"),
                self.builder.attr(AttrKey.EXTERN_SCOPE),
                self.builder.attr(AttrKey.DOUBLE_BUFFER, self.random.choice(scope.slots).buffer),
            )
        )
        with said:
            self.statements(scope.child(), 2)

    def triangle(self, scope: Scope) -> None:
        """A temporary that is as long as the loops around it have got, or as memory says, held to a bound."""
        if scope.depth > DEEPEST or scope.in_threads:
            return
        element = self.draw.element(scope, i64) if self.random.random() < 0.4 else None
        size: Expr | None = None
        if element is not None:
            most = self.extent().expr if self.random.random() < 0.3 else const(self.random.randint(1, 6), i64)
            size = Min(Max(element.astype(i64), const(0, i64)), most)
            base = self.builder.let(self.name("k"), size)
            self.features.add("sizes read from memory")
        elif scope.counters:
            base = self.random.choice(scope.counters).var
            self.features.add("sizes of loop variables")
        else:
            return
        extent = Extent(base, 1, self.random.choice((0, 1, 1)))
        dtype = self.random.choice(INSIDE)
        if size is not None and self.seldom.random() < 0.3:
            # Not for others, as what memory says may change.
            self.features.add("shapes read from memory")
            slot = Slot(self.builder.alloc(self.name("t"), dtype[(size + extent.plus,)]), (extent,))
        else:
            slot = new_target(self, scope, (extent,), dtype)
        if self.nest(scope, slot, self.store):
            self.accumulate_from(scope, slot)

    def accumulate_from(self, scope: Scope, source: Slot) -> None:
        """A sum of all elements of a buffer of one axis, into an element of another one."""
        slots = [slot for slot in scope.writable() if slot.storage in scope.full and not slot.buffer.dtype.is_bool]
        slots = [slot for slot in slots if slot is not source]
        if not slots:
            return
        target = self.random.choice(slots)
        indices = self.draw.indices(scope, target)
        if indices is not None:
            with self.loop(scope, source.extents[0]) as inner:
                term = source.buffer[inner.counters[-1].var].astype(target.buffer.dtype)
                self.builder.store(target.buffer, indices, Load(target.buffer, indices) + term)

    def call(self, scope: Scope) -> None:
        call(self, scope, self.callees, self._callee)

    def _callee(self, source: DType, target: DType, scalar: DType, in_threads: bool) -> Callee:
        k = Var("k", i64, Dim("k", min=0))
        inner = _Generator(self.name("callee"), [k], self.random)
        scope = Scope(depth=DEEPEST - 2, cost=8, in_threads=in_threads)
        extents = (Extent(k, 1, 0),)
        given, made = (Slot(inner.builder.param(name, of[k]), extents) for name, of in (("a", source), ("b", target)))
        scope.scalars.append(inner.builder.param("s", scalar))
        scope.slots += (given, made)
        scope.full[given] = scope.frozen[given] = None
        chain_link(inner, scope, given, made)
        inner.statements(scope, 3)
        self.features |= inner.features
        return Callee(inner.builder.build(), in_threads, lambda size: inner.iterations({k: size}))

    def chain(self, scope: Scope) -> None:
        chain(self, scope)

    def copy(self, scope: Scope) -> None:
        copy(self, scope)

    def in_pieces(self, scope: Scope) -> None:
        in_pieces(self, scope)

    def parallel(self, scope: Scope) -> None:
        self._independent(scope, ForKind.PARALLEL)

    def threads(self, scope: Scope) -> None:
        launch(self, scope, self.statements)

    def vectorized(self, scope: Scope) -> None:
        self._independent(scope, ForKind.VECTORIZED)

    def _independent(self, scope: Scope, kind: ForKind) -> None:
        """A loop whose iterations own the buffers that they write by first index, and only read the others."""
        slots = [slot for slot in scope.writable() if slot.root is None and slot.extents and slot not in scope.owned]
        slots = [slot for slot in slots if slot in scope.full]
        if scope.depth >= DEEPEST or not slots:
            return
        extent = self.random.choice(slots).extents[0]
        if scope.cost * estimate(extent) > MOST_ITERATIONS:
            return
        slots = [slot for slot in slots if extent.fits(slot.extents[0])]
        with self.loop(scope, extent, kind) as inner:
            inner.frozen |= dict.fromkeys(slot.storage for slot in scope.slots)
            for slot in self.random.sample(slots, min(len(slots), 2)):
                del inner.frozen[slot]
                inner.owned[slot] = inner.counters[-1].var
            # Elements known from outside may be those of another iteration.
            inner.points = [point for point in inner.points if point[0].storage not in inner.owned]
            self.statements(inner, 3)

    def branch(self, scope: Scope) -> None:
        if scope.depth >= DEEPEST:
            return
        condition = self.draw.value(scope, bool_, 2)
        # A temporary that both branches fill is full after them.
        slot = self.allocate(scope) if self.random.random() < 0.3 else None
        sides = [scope.child(), scope.child()]
        with self.builder.if_(condition):
            self._branch_body(sides[0], slot)
        if slot is not None or self.random.random() < 0.6:
            with self.builder.else_():
                self._branch_body(sides[1], slot)
        if slot is not None and all(slot in side.full for side in sides):
            self.features.add("filled by both branches")
            scope.full[slot] = None

    def _branch_body(self, scope: Scope, slot: Slot | None) -> None:
        if slot is not None:
            self.nest(scope, slot, self.store)
        self.statements(scope, 2)

    def bounded_while(self, scope: Scope) -> None:
        """A loop that ends by a counter at the latest."""
        if scope.depth >= DEEPEST or scope.cost * 3 > MOST_ITERATIONS:
            return
        count = self.builder.alloc(self.name("count"), i32[1], scope="local")
        self.builder.store(count, 0, 0)
        with self.builder.while_(count[0] < self.random.randint(1, 3)):
            self.builder.store(count, 0, count[0] + 1)
            self.statements(scope.child(cost=3), 2)

    def let(self, scope: Scope) -> None:
        value = self.draw.value(scope, self.random.choice(TYPES), 2)
        scope.scalars.append(self.builder.let(self.name("v"), value))

    def check(self, scope: Scope) -> None:
        """An assert that holds, and has to be computed all the same; what it would tell is not computed."""
        condition = self.draw.value(scope, bool_, 1)
        self.builder.assert_(Or(condition, Not(condition)), "not {}", condition)  # noqa: PT009

    def view(self, scope: Scope) -> None:
        sources = [slot for slot in scope.slots if slot.storage not in scope.owned]
        if sources:
            self._view_of(scope, self.random.choice(sources))

    def _view_of(self, scope: Scope, source: Slot) -> None:
        """A part of a buffer, its axes as one, or its bytes as smaller integers."""
        dtype, extents = source.buffer.dtype, source.extents
        offset: ExprLike = 0
        if dtype in SMALLER and extents and self.random.random() < 0.5:
            dtype = self.random.choice(SMALLER[dtype])
            ratio, last = source.buffer.dtype.bytes // dtype.bytes, extents[-1]
            extents = (*extents[:-1], Extent(last.base, last.scale * ratio, last.plus * ratio))
            self.features.add("view of another type")
        elif len(extents) == 1 and extents[0].base is None:
            skipped = self.random.randrange(extents[0].plus)
            offset, extents = skipped * dtype.bytes, (constant(extents[0].plus - skipped),)
        elif len(extents) == 1 and extents[0].scale == 2:
            half = Extent(extents[0].base, 1, 0)
            offset, extents = half.expr * dtype.bytes, (Extent(half.base, 1, extents[0].plus),)
            self.features.add("view at a symbolic offset")
        elif len(extents) == 2 and extents[0].base is None:
            rows = extents[0].plus
            extents = (Extent(extents[1].base, extents[1].scale * rows, extents[1].plus * rows),)
        tensor = dtype[tuple(extent.expr for extent in extents)]
        buffer = self.builder.view(self.name("w"), source.buffer, tensor, offset)
        scope.slots.append(Slot(buffer, extents, source.storage))
