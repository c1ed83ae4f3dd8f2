"""Blocks of threads for random programs: phases between barriers, in which each thread writes its own part alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from fuzz.extents import Counter, Extent
from fuzz.scope import Scope, Slot
from fuzz.writer import MOST_ITERATIONS, Writer, estimate

from tirlite.ir import Call, Op, StringImm, Var, bool_, i32

Statements = Callable[[Scope, int], None]
_DEEPEST = 3


def launch(writer: Writer, scope: Scope, statements: Statements) -> None:
    """Threads of one block, or of each of several, that fill shared buffers in phases.

    In a phase a thread touches its own part of the buffers that are written, and all of those that are not. What a
    thread declares is its own. `statements` adds some to a scope.
    """
    extent = writer.extent()
    blocks = writer.extent() if writer.random.random() < 0.4 else None
    cost = scope.cost * 4 * estimate(extent) * (1 if blocks is None else estimate(blocks))
    if scope.depth >= _DEEPEST or scope.in_threads or cost > MOST_ITERATIONS:
        return
    writer.features.add("threads")
    owned = [slot for slot in scope.writable() if slot.root is None and slot.extents and slot not in scope.owned]
    owned = [slot for slot in owned if slot in scope.full and (blocks or extent).fits(slot.extents[0])][:2]
    with ExitStack() as around:
        inner = scope
        if blocks is not None:
            writer.features.add("blocks")
            var = around.enter_context(writer.builder.thread(writer.name("b"), "blockIdx.x", blocks.expr))
            inner = _only_reading(scope.child(Counter(var, blocks), cost=estimate(blocks)))
            _own(inner, owned, var)
            inner.in_threads = True
        _Launch(writer, statements, inner, extent).write([] if blocks else owned)
        if blocks is not None:
            statements(inner, 2)


def _only_reading(scope: Scope) -> Scope:
    scope.frozen |= dict.fromkeys(slot.storage for slot in scope.slots)
    return scope


def _own(scope: Scope, slots: list[Slot], var: Var) -> None:
    for slot in slots:
        scope.frozen.pop(slot, None)
        scope.owned[slot] = var
    # Elements known from outside may be those of another thread.
    scope.points = [point for point in scope.points if point[0].storage not in scope.owned]


class _Launch:
    """The threads of one block, `scope` being what is around them."""

    def __init__(self, writer: Writer, statements: Statements, scope: Scope, extent: Extent) -> None:
        self.writer = writer
        self.statements = statements
        self.outside = scope
        self.extent = extent
        self.shared = [self._shared() for _ in range(writer.random.randint(1, 3))]
        self.uniform = writer.builder.let(writer.name("u"), writer.draw.value(scope, bool_, 2))

    def _shared(self) -> Slot:
        writer = self.writer
        more = tuple(writer.extent() for _ in range(writer.random.choice((0, 0, 1))))
        return writer.slot((self.extent, *more), lambda of: writer.builder.alloc(writer.name("sh"), of, scope="shared"))

    def write(self, owned: list[Slot]) -> None:
        """The loop over the threads. `owned` are buffers from outside of which each thread writes its own part."""
        writer, random = self.writer, self.writer.random
        tag = random.choice(("threadIdx.x", "threadIdx.x", "threadIdx.y", "vthread"))
        if tag == "vthread":
            writer.features.add("virtual threads")
        with writer.builder.thread(writer.name("t"), tag, self.extent.expr) as var:
            scope = _only_reading(self.outside.child(Counter(var, self.extent), cost=estimate(self.extent)))
            scope.in_threads = True
            scope.slots += self.shared
            _own(scope, owned, var)
            scope.frozen |= dict.fromkeys(self.shared)
            for slot in self.shared:
                self._phase(scope, [slot], var)
            for _ in range(random.randint(0, 2)):
                shape = random.choice(("straight", "loop", "branch"))
                if shape == "straight":
                    self._phase(scope, self._some(), var)
                elif shape == "loop":
                    self._loop(scope, var)
                else:
                    writer.features.add("barrier in a branch")
                    with writer.builder.if_(self.uniform):
                        self._phase(scope.child(), self._some(), var)
        self.outside.slots += self.shared
        self.outside.full |= dict.fromkeys(self.shared)

    def _some(self) -> list[Slot]:
        return self.writer.random.sample(self.shared, self.writer.random.randint(0, len(self.shared)))

    def _loop(self, scope: Scope, var: Var) -> None:
        self.writer.features.add("barrier in a loop")
        with self.writer.builder.for_(self.writer.name("k"), 0, self.writer.random.randint(0, 3)) as step:
            inner = scope.child()
            inner.scalars.append(step)
            for _ in range(self.writer.random.randint(1, 2)):
                self._phase(inner, self._some(), var)

    def _phase(self, scope: Scope, written: list[Slot], var: Var) -> None:
        """Statements up to a barrier, of which those in `written` are touched by their thread alone."""
        before = dict(scope.frozen), dict(scope.owned)
        _own(scope, written, var)
        full = {slot: None for slot in written if slot in scope.full}
        for slot in written:
            if slot not in full:
                self._fill(scope, slot, var)
        self.statements(scope, 2)
        for slot in written:
            if slot in full and self.writer.random.random() < 0.5:
                self._fill(scope, slot, var)
        self.writer.builder.evaluate(Call(i32, Op.BARRIER, (StringImm("shared"),)))
        scope.frozen, scope.owned = before
        scope.points = [point for point in scope.points if point[0].storage not in written]

    def _fill(self, scope: Scope, slot: Slot, var: Var) -> None:
        """The thread's part of `slot` anew."""
        with ExitStack() as loops:
            inner, indices = scope, [var]
            for extent in slot.extents[1:]:
                inner = loops.enter_context(self.writer.loop(inner, extent))
                indices.append(inner.counters[-1].var)
            self.writer.store(inner, slot, tuple(indices))
        scope.full[slot] = None
