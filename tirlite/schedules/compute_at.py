"""ComputeAt moves the computation of temporaries into a loop: each iteration computes the part that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.analysis.access import Allocation
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.analysis.loops.fusion import can_be_reordered
from tirlite.ir.dtype import i64
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import Buffer, Expr, Load, Max, Min, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.stmt import Allocate, For, ForKind, SeqStmt, Stmt, Store, View, nested
from tirlite.ir.walk import accesses_in, allocated_in, chain_from, is_constant, statements, statements_of
from tirlite.record import record, replace
from tirlite.rewrite.normalize import Normalize
from tirlite.schedules.handle import LoopName, block_of, chain_to, loop_named
from tirlite.schedules.index_ranges import IndexRange, index_range
from tirlite.schedules.order import demand_any_order, demand_steady
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit
from tirlite.sizes.unknown import ends, is_nonnegative

_PLAIN = (ForKind.SERIAL, ForKind.PARALLEL)


@record
class ComputeAt(ScheduleStep):
    """Moves the nest of `loop`, which computes temporaries, into the loop `at`: each iteration computes what it reads.

    The temporaries are allocated there and shrink: along an axis to a window of constant extent that moves with a loop
    around, if there is one. Elements that several iterations read are computed again in each. The loops of the nest
    become `rows.i`, after the first temporary. Values do not change. Refused if anything but `at` reads the
    temporaries, if they have views, if the nest writes anything else or sets an element twice, and if what it reads is
    written before `at` ends.
    """

    loop: LoopName
    at: LoopName

    def rewritten(self, facts: Facts) -> PrimFunc:
        first = loop_named(facts.func, self.loop)
        at = loop_named(facts.func, self.at)
        made = self._filled(facts, first)
        return _Move(facts, first, at, made, self.windows(facts)).apply(facts.func)

    def windows(self, facts: Facts) -> dict[For, IndexRange]:
        """For each loop of the nest, the elements that an iteration of `at` needs. Raises KernelError if refused."""
        first = loop_named(facts.func, self.loop)
        around = chain_to(facts.func, self.at)
        between = self._between(facts.func, first, around)
        for loop in (first, *(each for each in between if isinstance(each, For))):
            demand_any_order(self, loop)
        made = self._filled(facts, first)
        self._demand_readers(made, first, around[-1])
        demand_steady(self, facts, first, between, but=made)
        nest = _nest(first, made)
        for loop in nest:
            demand_plain(self, loop)
            if not all(loop in filled.axes.values() for filled in made.values()):
                raise does_not_fit(self, f"the loop over `{loop.var.name}` sets elements more than once")
        return self._ranges(facts, made, nest, around)

    def _between(self, func: PrimFunc, first: For, around: tuple[For, ...]) -> tuple[Stmt, ...]:
        """The statements from after the nest to the one that contains `at`."""
        stmts = block_of(func, first).stmts
        begin = stmts.index(first) + 1
        end = next((place for place, each in enumerate(stmts) if each in around), -1)
        if end >= begin:
            return stmts[begin : end + 1]
        raise does_not_fit(self, "the first loop does not stand before the other one, in one block")

    def _filled(self, facts: Facts, first: For) -> dict[Buffer, Filled]:
        """The temporaries that the nest writes."""
        if not can_be_reordered(first):
            raise does_not_fit(self, f"the loop over `{first.var.name}` does more than load and store")
        allocated = {each.buffer: each for each in facts.sequence.allocations}
        own = allocated_in(first)
        loops = {loop.var: loop for loop in chain_from(first, *_PLAIN)}
        made: dict[Buffer, Filled] = {}
        for store in statements_of(first, Store):
            buffer = store.buffer
            if buffer in own:
                continue
            if buffer not in allocated:
                raise does_not_fit(self, f"the loop over `{first.var.name}` writes `{buffer.name}`, which others see")
            loops = {loop.var: loop for loop in chain_from(first, *_PLAIN)}
            axes = {
                axis: loops[each] for axis, each in enumerate(store.indices) if isinstance(each, Var) and each in loops
            }
            known = made.setdefault(buffer, Filled(allocated[buffer], store, axes))
            if not all(map(structural_equal, known.store.indices, store.indices)):
                raise does_not_fit(self, f"`{buffer.name}` is written by several indices")
        if not made:
            raise does_not_fit(self, f"the loop over `{first.var.name}` fills no temporary")
        for view in statements_of(facts.func.body, View):
            if view.source in made:
                raise does_not_fit(self, f"`{view.buffer.name}` is a view of `{view.source.name}`")
        return made

    def _demand_readers(self, made: Mapping[Buffer, Filled], first: For, at: For) -> None:
        """Raises KernelError unless the nest sets each temporary before reading it, and only `at` reads it too."""
        inside, reading = {*statements(first)}, {*statements(at)}
        for buffer, filled in made.items():
            for touch in filled.allocation.touches:
                node = touch.node
                if touch.buffer is not buffer or not isinstance(node, Load | Store) or _is_vector(node):
                    raise does_not_fit(self, f"{touch} is no plain access to `{buffer.name}`")
                if touch.stmt in inside:
                    if not all(map(structural_equal, node.indices, filled.store.indices)):
                        raise does_not_fit(self, f"{touch} is another element than the one that is set")
                elif touch.stmt not in reading or writes(touch):
                    raise does_not_fit(self, f"{touch} is not one that the loop over `{at.var.name}` reads alone")
                elif not filled.sets_along_others(node):
                    raise does_not_fit(self, f"{touch} is what the nest set another time")
            if not _is_set_first(_nest(first, made)[-1].body, buffer):
                raise does_not_fit(self, f"`{buffer.name}` is read before it is set")

    def _ranges(
        self, facts: Facts, made: Mapping[Buffer, Filled], nest: list[For], around: tuple[For, ...]
    ) -> dict[For, IndexRange]:
        """For each loop of the nest, the elements that an iteration of `at` needs, if known."""
        found: dict[For, IndexRange] = {}
        for loop in nest:
            needed = [
                facts.addresses.of(touch.node).indices[axis]
                for filled in made.values()
                for axis, each in filled.axes.items()
                if each is loop
                for touch in filled.allocation.touches
                if not writes(touch)
                and touch.stmt not in {*statements(nest[0])}
                and isinstance(touch.node, Load | Store)
            ]
            if (one := index_range(needed, around, facts.space)) is not None:
                found[loop] = one
        if not found:
            raise does_not_fit(self, f"each iteration of the loop over `{around[-1].var.name}` may read all of it")
        return found


@record(eq=False)
class Filled:
    """A temporary, the store that sets its elements, and for some axes the loop whose variable is the index."""

    allocation: Allocation
    store: Store
    axes: dict[int, For]

    def sets_along_others(self, node: Load | Store) -> bool:
        """Whether an access has the store's index along every axis that has no loop of the nest."""
        pairs = enumerate(zip(node.indices, self.store.indices, strict=True))
        return all(axis in self.axes or structural_equal(*pair) for axis, pair in pairs)


def _nest(first: For, made: Mapping[Buffer, Filled]) -> list[For]:
    """The longest chain of loops whose variables are indices of all temporaries; at least the outermost loop."""
    chain = chain_from(first, *_PLAIN)
    while len(chain) > 1 and not all(chain[-1] in filled.axes.values() for filled in made.values()):
        chain.pop()
    return chain


def _is_vector(node: Load | Store) -> bool:
    return node.buffer.dtype.lanes > 1 or any(index.dtype.lanes > 1 for index in node.indices)


def _is_set_first(body: SeqStmt, buffer: Buffer) -> bool:
    """Whether the first statement that uses a buffer is a store that does not read it."""
    for stmt in body.stmts:
        uses = [node for node in accesses_in(stmt) if node.buffer is buffer]
        if uses:
            return isinstance(stmt, Store) and uses == [stmt]
    return False


class _Move:
    """Moves the nest into the loop."""

    def __init__(
        self, facts: Facts, first: For, at: For, made: Mapping[Buffer, Filled], ranges: Mapping[For, IndexRange]
    ) -> None:
        self.space = facts.space
        self.first, self.at = first, at
        self.made = made
        self.nest = _nest(first, made)
        self.ranges = ranges
        self.small = {buffer: self._shrunk(buffer, filled) for buffer, filled in made.items()}

    def _shrunk(self, buffer: Buffer, filled: Filled) -> Buffer:
        shape = [*buffer.shape]
        for axis, loop in filled.axes.items():
            if (found := self.ranges.get(loop)) is not None:
                shape[axis] = const(found.extent, i64)
        if all(is_constant(extent, 1) for extent in shape) and buffer.scope == "global":
            return replace(buffer, shape=(), scope="local")
        return replace(buffer, shape=tuple(shape))

    def apply(self, func: PrimFunc) -> PrimFunc:
        allocated = [Allocate(small, span=self.made[each].store.span) for each, small in self.small.items()]
        body = self._moved(self.at.body)
        assert isinstance(body, SeqStmt)
        whole = self.at.replaced(body=SeqStmt((*allocated, *self._part().stmts, *body.stmts)))

        def placed(loop: For) -> Stmt | tuple[Stmt, ...]:
            return () if loop is self.first else whole if loop is self.at else loop

        def kept(stmt: Allocate) -> Stmt | tuple[Stmt, ...]:
            return () if stmt.buffer in self.small else stmt

        rules: dict[type[Node], Rule] = {For: placed, Allocate: kept}
        result = rewrite(func, rules)
        return Normalize()(result)

    def _moved(self, root: Node) -> Node:
        """Redirects accesses to the shrunk temporaries."""

        def moved(node: Load | Store) -> Node:
            small = self.small.get(node.buffer)
            if small is None:
                return node
            if not small.shape:
                return node.replaced(buffer=small, indices=())
            axes = self.made[node.buffer].axes
            indices = [
                found.place(index) if (found := self._along(axes.get(axis))) is not None else index
                for axis, index in enumerate(node.indices)
            ]
            return node.replaced(buffer=small, indices=tuple(indices))

        rules: dict[type[Node], Rule] = {Load: moved, Store: moved}
        return rewrite(root, rules)

    def _along(self, loop: For | None) -> IndexRange | None:
        return None if loop is None else self.ranges.get(loop)

    def _part(self) -> SeqStmt:
        """The nest, over the elements that one iteration needs."""
        first = next(iter(self.made)).name
        values: dict[Var, Expr] = {}
        loops: list[For] = []
        for loop in self.nest:
            start, stop = substitute(loop.start, values), substitute(loop.stop, values)
            if (found := self.ranges.get(loop)) is not None:
                is_begun, is_within = self._lies_within(found, loop)
                begin, end = found.begin, found.end
                if is_begun and is_within and found.extent == 1:
                    values[loop.var] = begin
                    continue
                start = begin if is_begun else Max(start, begin)
                stop = end if is_within else Min(stop, end)
            var = Var(f"{first}.{loop.var.name}")
            values[loop.var] = var
            loops.append(For(var, start, stop, SeqStmt(()), ForKind.SERIAL, span=loop.span))
        body = self._moved(substitute(self.nest[-1].body, values))
        assert isinstance(body, SeqStmt)
        return nested(loops, body)

    def _lies_within(self, found: IndexRange, loop: For) -> tuple[bool, bool]:
        """Whether a window is proved to begin no earlier than a loop, and to end no later."""
        base = found.factor * self.space.size(found.base)
        room = base + found.low - self.space.size(loop.start), self.space.size(loop.stop) - base - found.high - 1
        lows = [ends(each)[0] if self.space.is_exact(each) else None for each in room]
        begun, within = (low is not None and is_nonnegative(low) for low in lows)
        return begun, within
