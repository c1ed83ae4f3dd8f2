"""Grouped vectorizes iterations that access groups of a few elements: complex numbers, or the colours of pixels.

The elements `z[p, j, 1]` for neighbouring j are as far apart as the last axis of `z` is long. So they are loaded from a
view with the last two axes joined: `z_flat[p, tl.ramp(2 * j + 1, 2, 16)]`. If the last axis has a single element, a
view without it makes columns contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import GROUP, divides, has_much_to_do, reads_neighbours
from tirlite.ir.dtype import i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import EQ, Add, Buffer, Call, Expr, IntImm, Load, Ramp, Var, const
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import For, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import accesses_in, is_constant, loads_in, mentions, statements_of
from tirlite.record import replace
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.flat_views import flat_place, flat_views
from tirlite.rewrite.vectors.lanes import Lanes
from tirlite.rewrite.vectors.local_elements import with_scalars
from tirlite.target import Processor

# The bytes of AVX vectors.
_LONG = 32


def group_views(loop: For, buffers: Iterable[Buffer]) -> dict[Buffer, Buffer]:
    """Flat views of the buffers in which a loop accesses neighbouring groups.

    Empty if inner loops disappear as groups become scalars: LLVM vectorizes such groups itself.
    """
    views = flat_views(loop, buffers)
    return views if views and with_scalars(loop.body) is None else {}


def is_parted(loop: For, facts: Facts, processor: Processor) -> bool:
    """Whether LLVM vectorizes accesses to neighbouring groups by itself, by splitting vectors into groups."""
    if not (inner := [*statements_of(loop.body, For)]):
        takes_long = has_much_to_do(loop) or divides(loop)
        parts = takes_long and processor.vector_bytes >= _LONG
        return _accesses_groups(loop) if parts else reads_neighbours(loop) and not takes_long
    count = inner[0].count if len(inner) == 1 and facts.is_independent(inner[0]) else None
    return isinstance(count, IntImm) and count.value < GROUP


def _accesses_groups(loop: For) -> bool:
    """Whether iterations access neighbours or neighbouring groups alone, without a while."""
    nodes = [node for node in accesses_in(loop) if mentions(node.indices, loop.var)]
    is_straight = next(statements_of(loop.body, While), None) is None
    return is_straight and all(mentions(node.indices[-1], loop.var) or _is_of_group(node, loop.var) for node in nodes)


def _is_of_group(node: Load | Store, var: Var) -> bool:
    apart = node.buffer.shape[-1]
    is_few = isinstance(apart, IntImm) and apart.value < GROUP and not node.buffer.strides
    return is_few and not mentions(node.indices[:-2], var)


def of_one_element(loop: For, buffers: Iterable[Buffer]) -> tuple[Expr, dict[Buffer, Buffer], tuple[Stmt, ...]] | None:
    """The condition that a loop runs once, as the last axis of its arrays has one element, and its body then.

    Buffers are accessed through views without that axis, in which terms of a sum are neighbours. None if there are no
    such buffers.
    """
    count = loop.stop
    if not isinstance(count, Var) or count.dim is None or not is_constant(loop.start, 0):
        return None
    views = {
        each: replace(each, name=f"{each.name}.flat", shape=each.shape[:-1])
        for each in buffers
        if len(each.shape) > 1 and each.shape[-1] is count and not (each.strides or each.volatile)
    }

    def moved(node: Load | Store) -> Node:
        if node.buffer not in views or not is_constant(node.indices[-1], 0):
            return node
        return node.replaced(buffer=views[node.buffer], indices=node.indices[:-1])

    if not views:
        return None
    body = rewrite(substitute(loop.body, {loop.var: const(0, i64)}), {Load: moved, Store: moved})
    assert isinstance(body, SeqStmt)
    return EQ(count, const(1, i64)), views, body.stmts


class Grouped(Lanes):
    """Lanes that access `flat` views with a stride, unmasked."""

    def __init__(
        self,
        loop: For,
        flat: dict[Buffer, Buffer],
        inside: Callable[[Load], bool],
        uniform: Container[Buffer],
        first: Expr,
        lanes: int,
    ) -> None:
        places = {loop.var: Ramp.unit(first, lanes)}
        super().__init__(lanes, places, neighbours=True, is_inside=inside, uniform=uniform)
        self.flat = flat

    def block(self, body: SeqStmt) -> SeqStmt:
        """The statements for all iterations; consecutive stores of a whole group become contiguous stores."""
        made: list[Stmt] = []
        stmts = body.stmts
        while stmts:
            group = self._group_of(stmts)
            if group:
                made += self._stored(group)
            else:
                made.append(self.statement(stmts[0]))
            stmts = stmts[max(1, len(group)) :]
        return SeqStmt((*made,))

    def _group_of(self, stmts: tuple[Stmt, ...]) -> list[Store]:
        """The first statements, if they store the elements of a group in order, and load none of them."""
        first = stmts[0]
        place = self._place(first) if isinstance(first, Store) else None
        if place is None:
            return []
        assert isinstance(first, Store)
        apart = first.buffer.shape[-1]
        assert isinstance(apart, IntImm)
        stores = [stmt for stmt in stmts[: apart.value] if isinstance(stmt, Store)]
        wanted = [(*first.indices[:-1], const(number, i64)) for number in range(apart.value)]
        is_whole = [store.buffer for store in stores] == [first.buffer] * apart.value and all(
            are_equal(store.indices, indices) for store, indices in zip(stores, wanted, strict=True)
        )
        loads = {node.buffer for store in stores for node in loads_in(store.value)}
        return stores if is_whole and first.buffer not in loads and apart.value != 3 else []

    def _stored(self, stores: list[Store]) -> Iterator[Stmt]:
        """Interleaves the vectors of strided stores, and stores them contiguously."""
        lets = [
            Let(Var("part", each.buffer.dtype.with_lanes(self.lanes)), self.spread(self.of(each.value)))
            for each in stores
        ]
        yield from lets
        place = self._place(stores[0])
        assert place is not None
        *rows, begin = place
        assert isinstance(begin, Ramp)
        for number, value in enumerate(_interleaved([let.var for let in lets])):
            at = folded(Add(begin.base, const(number * self.lanes, i64)))
            whole = Ramp.unit(at, self.lanes)
            yield Store(self.flat[stores[0].buffer], (*rows, whole), value, span=stores[0].span)

    def moved(self, load: Load) -> Expr | None:
        place = self._place(load)
        return None if place is None else Load(self.flat[load.buffer], place)

    def _place(self, node: Load | Store) -> tuple[Expr, ...] | None:
        """The indices in the flat view, if lanes access elements of groups."""
        return None if node.buffer not in self.flat or self.on is not None else flat_place(self, node)


def _interleaved(values: list[Expr]) -> list[Expr]:
    """Interleaves the lanes of vectors, whose number is a power of two."""
    if len(values) == 1:
        return values
    pairs = zip(_interleaved(values[::2]), _interleaved(values[1::2]), strict=True)
    ways = (Op.INTERLEAVE_LOW, Op.INTERLEAVE_HIGH)
    return [Call(even.dtype, way, (even, odd)) for even, odd in pairs for way in ways]
