"""VectorLoops turns a loop with independent iterations into loops over vectors, and handles the remainder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from tirlite.analysis.loops.patterns import GROUP, MOST_LANES, divides, widest_computed
from tirlite.analysis.loops.streams import held as held_by_caches
from tirlite.ir.dtype import i64
from tirlite.ir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    Buffer,
    Call,
    Div,
    Expr,
    FloorMod,
    IntImm,
    Min,
    Mul,
    Or,
    Ramp,
    Select,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import ATOMS, is_steady, loads_in, mentions, statements, statements_of, walk
from tirlite.record import cached_property
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.vectors.lanes import Lanes, NotVector, first_lanes, held, last_whole
from tirlite.rewrite.vectors.taps import written_out
from tirlite.target import Processor

# The most bytes of a vector: four registers of 512 bits, or more that are narrower.
_VECTOR_BYTES = 256
# Vectors with fewer lanes do not pay.
FEWEST_LANES = 4
# The remainder uses vectors with a quarter of the lanes; so do masked vectors with at most a quarter of many lanes on.
_PER_VECTOR = 4
_MANY_LANES = 32
# Rows of fewer vectors than this are written through the caches; more are needed if the last vector is partial.
_LONG_ROW = 4
_LONGER_ROW = 16


class VectorLoops:
    """The statements that replace a loop with this body.

    If iterations are repeatable, the last vector overlaps the one before. Otherwise the remainder, like a loop shorter
    than a vector, is one masked vector; without masks for such elements it uses narrower vectors, then scalars.

    - `lanes(first, count)` are the lanes from an iteration on, and `widths` the numbers of lanes: most and few.
    - `jam` rewrites a vectorized body, as for several iterations of an outer loop at once.
    - `pays` is a condition on the number of iterations, without which the loop stays scalar.
    - `is_alone`: the loop stands alone in an outer one, so a remainder of one iteration is worth a scalar branch.
    - `is_rest`: these rows follow one by one after groups of rows, so fewer forms of the remainder are compiled.
    """

    def __init__(
        self,
        loop: For,
        body: SeqStmt,
        lanes: Callable[[Expr, int], Lanes],
        widths: tuple[int, int],
        *,
        is_repeatable: bool,
        jam: Callable[[SeqStmt], SeqStmt] = lambda body: body,
        processor: Processor | None = None,
        pays: Expr | None = None,
        is_alone: bool = False,
        is_rest: bool = False,
    ) -> None:
        self.loop = loop
        self.inside = body
        self.jam = jam
        self.lanes = lanes
        self.is_repeatable = is_repeatable
        self.pays = pays
        self.is_alone = is_alone
        self.is_rest = is_rest
        self.processor = processor
        self.has_narrow = processor is not None
        self.most, self.few = widths

    @cached_property
    def has_masks(self) -> bool:
        """Whether the processor has masks for all elements that the loop loads and stores."""
        return self.processor is not None and self.processor.has_masks(min(_widths(self.loop), default=1))

    def statements(self) -> Iterator[Stmt]:
        """The loops over vectors, and the serial loop over the remainder. Raises NotVector."""
        count = self.loop.count
        if isinstance(count, IntImm) and count.value < self.few:
            raise NotVector
        count = yield from held(count, "count", self.loop)
        if in_parts := self.in_parts(count):
            yield from in_parts
            return
        one_by_one = self.loop.replaced(body=self.jam(self.inside), kind=ForKind.SERIAL)
        if not self.is_repeatable:
            whole = last_whole(self.loop, count, self.few)
            yield from self.vectors(count, whole)
            yield self.part(whole, folded(FloorMod(count, const(self.few, i64)))) or one_by_one.replaced(start=whole)
        elif isinstance(count, IntImm):
            yield from self.vectors(count, self.loop.stop)
        else:
            by_vectors = SeqStmt((*self.vectors(count, folded(Add(self.loop.start, count))),))
            start, few = self.loop.start, const(self.few, i64)
            if self.pays is not None:
                yield IfThenElse(And(GE(count, few), self.pays), by_vectors, SeqStmt((one_by_one,)))
                return
            # The bound shows code generation that few iterations are left: LLVM need not vectorize them.
            stop = Min(folded(Add(start, few)), self.loop.stop)
            part = self.part(start, count) or one_by_one.replaced(stop=stop)
            yield IfThenElse(GE(count, few), by_vectors, SeqStmt((part,)))

    def in_parts(self, count: Expr) -> tuple[Stmt, ...] | None:
        """The widest vectors, and one masked vector for the remainder, in no more registers than it needs.

        None if there is no such form. Inner loops read memory once for each vector.
        """
        left = folded(FloorMod(count, const(self.most, i64)))
        if not self.has_masks or self.most == self.few or not _has_loops(self.loop) or isinstance(count, IntImm):
            return None
        middle, at = last_whole(self.loop, count, self.most), Var(self.loop.var.name)
        rest, fewer, lanes = SeqStmt(), 0, self.few // _PER_VECTOR
        if lanes < FEWEST_LANES or not _takes_long(self.loop):
            lanes = self.few
        while lanes <= self.most:
            masked = self.masked(middle, left, lanes)
            if masked is None:
                return None
            rest = SeqStmt((IfThenElse(GT(left, const(fewer, i64)), masked, rest, span=self.loop.span),))
            # A single row has the latency of its own sums, with two vectors as with four: one form less to compile.
            following = max(2 * lanes, self.most if self.is_rest else 0)
            fewer, lanes = lanes, following if lanes >= self.few else self.few
        whole = For(at, self.loop.start, middle, self.body(at, self.most), self.loop.kind, step=self.most)
        return whole, *rest.stmts

    def part(self, first: Expr, left: Expr) -> Stmt | None:
        """The remainder from `first` on, which is shorter than a vector: masked, or else as `narrower` does it."""
        masked = self.masked(first, left, self.few)
        if masked is None:
            # Inner loops are long code, which would be repeated for each width.
            is_brief = self.has_narrow and not (self.has_masks and _has_loops(self.loop))
            return self.narrower(first, left, self.few // _PER_VECTOR) if is_brief else None
        found = IfThenElse(GE(left, const(1, i64)), masked, span=self.loop.span)
        if self.is_alone and self.few < _MANY_LANES:
            from tirlite.ir.rewrite import substitute

            one = folded(substitute(self.jam(self.inside), {self.loop.var: first}))
            return IfThenElse(EQ(left, const(1, i64)), one, SeqStmt((found,)), span=self.loop.span)
        narrow = self.masked(first, left, self.few // _PER_VECTOR) if self.few >= _MANY_LANES else None
        if narrow is None:
            return found
        is_little = LE(left, const(self.few // _PER_VECTOR, i64))
        little = IfThenElse(GE(left, const(1, i64)), narrow, span=self.loop.span)
        return IfThenElse(is_little, SeqStmt((little,)), masked, span=self.loop.span)

    def narrower(self, first: Expr, left: Expr, lanes: int) -> Stmt | None:
        """The remainder from `first` on by vectors with this many lanes, the last of which overlaps the one before.

        A shorter remainder uses still narrower vectors, or scalars. None if the lanes are too few.
        """
        if not self.is_repeatable or lanes < FEWEST_LANES:
            return None
        end = folded(Add(first, left))
        stop = Min(folded(Add(first, const(lanes, i64))), self.loop.stop)
        one_by_one = self.loop.replaced(stop=stop, body=self.jam(self.inside), kind=ForKind.SERIAL)
        rest = self.narrower(first, left, lanes // 2) or one_by_one
        vectors = SeqStmt((self.overlapping(first, end, end, lanes),))
        return IfThenElse(GE(left, const(lanes, i64)), vectors, SeqStmt((rest,)), span=self.loop.span)

    def masked(self, first: Expr, left: Expr, lanes: int) -> SeqStmt | None:
        """The `left` iterations from `first` on as one masked vector.

        None if the processor has no such masks, or the body has no masked form.
        """
        if not self.has_masks:
            return None
        vectors, on = self.lanes(first, lanes), first_lanes(left, lanes, _widest(self.loop))
        name = vectors.on = vectors.some = Var("on", on.dtype)
        # For lanes beyond the last iteration, only what is the same in all lanes is known to be in bounds.
        inside = vectors.is_inside
        vectors.is_inside = lambda load: not any(map(vectors.differs, load.indices)) and inside(load)
        try:
            body = written_out(self.jam(vectors.block(self.inside)), shared=True)
        except NotVector:
            return None
        return SeqStmt((Let(name, on, span=self.loop.span), *body.stmts))

    def vectors(self, count: Expr, end: Expr) -> Iterator[Stmt]:
        """Loops over vectors up to `end`; the last vector ends there."""
        if self.most == self.few and self.is_repeatable and self.loop.kind is not ForKind.PARALLEL:
            # One loop suffices.
            yield self.overlapping(self.loop.start, end, end, self.few)
            return
        middle = last_whole(self.loop, count, self.most)
        is_whole = isinstance(count, IntImm) and count.value % self.most == 0
        at = Var(self.loop.var.name)
        if self.most == self.few and self.is_repeatable and _has_loops(self.loop) and not is_whole:
            # The body is long code, so it is written once: the last block covers the remainder as well.
            following, block = folded(Add(at, const(self.most, i64))), const(2 * self.most, i64)
            stop = Select(LT(end, Add(at, block)), end, following)
            blocks = SeqStmt((self.overlapping(at, stop, end, self.few),))
            yield For(at, self.loop.start, middle, blocks, self.loop.kind, step=self.most)
            return
        if not isinstance(count, IntImm) or count.value >= self.most:
            yield For(at, self.loop.start, middle, self.body(at, self.most), self.loop.kind, step=self.most)
        if is_whole:
            return
        if self.is_repeatable:
            yield self.overlapping(middle, end, end, self.few)
        elif self.few < self.most:
            at = Var(self.loop.var.name)
            yield For(at, middle, end, self.body(at, self.few), step=self.few)

    def overlapping(self, begin: Expr, stop: Expr, end: Expr, lanes: int) -> Stmt:
        """A loop over vectors that begin before `stop`; the last one is moved back so that it ends at `end`."""
        at, first = Var(self.loop.var.name), Var("first")
        within = Let(first, Min(at, folded(Sub(end, const(lanes, i64)))))
        return For(at, begin, stop, SeqStmt((within, *self.body(first, lanes).stmts)), step=lanes)

    def body(self, first: Expr, lanes: int) -> SeqStmt:
        """The body for `lanes` iterations from `first` on."""
        return written_out(self.jam(self.lanes(first, lanes).block(self.inside)), shared=True)


def streamed(loop: For, func: PrimFunc, processor: Processor) -> tuple[Stmt, ...] | None:
    """A loop of independent iterations, which read nothing that they write, over vectors; None if it has no such form.

    The vectors run if arrays are large and rows long; otherwise LLVM vectorizes the loop as it is written.
    """

    def lanes(first: Expr, count: int) -> Lanes:
        return Lanes(count, {loop.var: Ramp.unit(first, count)}, neighbours=True)

    widths = widths_of(loop, processor)
    count = folded(Sub(loop.stop, loop.start))
    long, longer = _LONG_ROW * widths[0], _LONGER_ROW * widths[0]
    is_short = isinstance(count, IntImm) and count.value < (longer if count.value % widths[0] else long)
    if is_short or not is_steady(loop.start, loop.stop):
        return None
    vectors = VectorLoops(loop, loop.body, lanes, widths, is_repeatable=True)
    try:
        stmts = (*vectors.vectors(count, loop.stop),)
    except NotVector:
        return None
    arrays = [param for param in func.params if isinstance(param, Buffer)]
    sizes = [reduce(Mul, array.shape, const(array.dtype.bytes, i64)) for array in arrays]
    is_large: Expr = GE(folded(reduce(Add, sizes)), const(held_by_caches(processor), i64))
    if not isinstance(count, IntImm):
        is_whole = EQ(folded(FloorMod(count, const(widths[0], i64))), const(0, i64))
        is_large = And(is_large, Or(And(is_whole, GE(count, const(long, i64))), GE(count, const(longer, i64))))
    return (IfThenElse(is_large, SeqStmt(stmts), SeqStmt((loop,))),)


def widths_of(loop: For, processor: Processor, *, holds: bool = False) -> tuple[int, int]:
    """The lanes of the vectors of a loop, and of those over the remainder.

    What inner loops use again and again must stay in registers, four for each vector, and so must what an iteration
    loads if it `holds` all of that before it stores.
    """
    vector = min(_VECTOR_BYTES, 4 * processor.vector_bytes) if holds or _has_loops(loop) else _VECTOR_BYTES
    most = min(MOST_LANES, vector // _widest_inside(loop))
    return most, most // _PER_VECTOR


def _has_loops(loop: For) -> bool:
    return any(isinstance(stmt, For | While) for stmt in statements(loop.body))


def few_widths_of(loop: For, widths: tuple[int, int]) -> tuple[int, int]:
    """The lanes for a small known number of iterations, which two overlapping vectors cover."""
    (most, few), count = widths, loop.count
    while isinstance(count, IntImm) and few > max(count.value, GROUP):
        few //= 2
    return most, few


def row_widths_of(loop: For, processor: Processor) -> tuple[int, int]:
    """The lanes if iterations of an outer loop are jammed: of a row of the register tile, and of one vector.

    Several results of inner loops share a row.
    """
    inside = (stmt for inner in statements_of(loop.body, For) for stmt in statements(inner.body))
    results = {stmt.buffer for stmt in inside if isinstance(stmt, Store)}
    vectors = max(1, processor.tile[1] // max(1, len(results)))
    vector = processor.vector_bytes // _widest_inside(loop)
    return min(MOST_LANES, vectors * vector), min(MOST_LANES, vector)


def window_widths_of(loop: For, processor: Processor) -> tuple[int, int]:
    """The lanes if windows share rows: those of one register, as each loaded row is kept in one.

    Short rows use the part of a register that they fill.
    """
    lanes = min(MOST_LANES, processor.vector_bytes // _widest_inside(loop))
    count = loop.count
    while isinstance(count, IntImm) and lanes // 2 >= FEWEST_LANES and count.value < lanes:
        lanes //= 2
    return lanes, lanes


def stencil_widths_of(loop: For, processor: Processor) -> tuple[int, int]:
    """The lanes if iterations load neighbours: two registers of the widest type, intermediate results included.

    One register if integers of that width are divided, which is slow.
    """
    computed = widest_computed(loop.body.stmts)
    number = 1 if divides(loop) and computed == _widest(loop) else 2
    lanes = min(MOST_LANES, number * processor.vector_bytes // computed)
    return lanes, lanes


def place_widths_of(loop: For, processor: Processor) -> tuple[int, int]:
    """The lanes if iterations load at indices rounded from floats: one register of the widest type."""
    nodes = (node for stmt in statements(loop.body) if isinstance(stmt, Store | Let) for node in walk(stmt.value))
    widest = max((node.dtype.bytes for node in nodes if isinstance(node, Expr) and node.dtype.is_float), default=4)
    lanes = processor.vector_bytes // max(4, widest, _widest(loop))
    return lanes, lanes


def _takes_long(loop: For) -> bool:
    """Whether iterations divide floats or call functions: then time grows with the bytes of a register."""
    return any(isinstance(node, Div | Call) for node in walk(loop.body))


def _widest(loop: For) -> int:
    """The bytes of the widest element that lanes of a loop store or load; 1 if there is none."""
    return max(_widths(loop), default=1)


def _widest_inside(loop: For) -> int:
    """The same for inner loops alone, if there are any: what is done once with their results may take more vectors."""
    inside = [width for stmt in loop.body.stmts if isinstance(stmt, For) for width in _widths(stmt)]
    return max(inside) if inside else _widest(loop)


def _widths(loop: For) -> list[int]:
    """The bytes of the elements that a loop's body stores or loads, except for indices that all lanes share."""
    stmts = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store | Let | IfThenElse)]
    loads = [*loads_in(*(stmt.condition if isinstance(stmt, IfThenElse) else stmt.value for stmt in stmts))]
    places = {*loads_in(*(index for load in loads for index in load.indices if type(index) not in ATOMS))}
    found = [stmt.buffer.dtype.bytes for stmt in stmts if isinstance(stmt, Store)]
    return found + [load.buffer.dtype.bytes for load in loads if load not in places or mentions(load, loop.var)]
