"""VectorizeLoops writes loops as statements on vectors: those that the author marks, and those where that pays."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tirlite.analysis.definitions import Definitions
from tirlite.analysis.loop_accesses import Access, LoopAccesses
from tirlite.ir import (
    GE,
    Add,
    Buffer,
    Call,
    Expr,
    For,
    ForKind,
    IfThenElse,
    IntImm,
    Let,
    Load,
    Min,
    PrimFunc,
    Ramp,
    SeqStmt,
    Stmt,
    Store,
    Sub,
    Var,
    const,
    i64,
    rewrite,
    statements,
    statements_of,
    structural_equal,
    walk,
)
from tirlite.ir.demand import pass_call
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.lanes import Lanes, NotVector, iterations, last_whole
from tirlite.rewrite.normalize import Normalize

# The most lanes of a vector, and the bytes of one: four registers of 512 bits, or more that are narrower.
_MOST_LANES = 64
_VECTOR_BYTES = 256
# What is left goes by vectors of a quarter of that.
_PER_VECTOR = 4


@record
class VectorizeLoops:
    """Writes loops with Ramp and Broadcast: all iterations at once.

    `tl.vectorized` loops with constant bounds have no order, so each statement may be done for all iterations before
    the next one. Left alone, for LLVM to do what it can, are such loops with symbolic bounds or more than 64
    iterations, with other statements than stores and lets, and with what has no vector form: an index along an axis
    that is not the last, a conditional expression, a call.

    Serial loops go by vectors of up to 64 lanes where they compute elementary functions or have loops inside, if each
    iteration is seen to have elements of parameters of its own, and lanes access neighbours in memory. What a loop
    inside combines is combined in the order that is written, in each lane. The last vector of a loop may overlap the
    one before where that writes the same again; else the last iterations follow one by one.

    For functions in normal form (see `Normalize`); the result is in it too.
    """

    name: str = "vectorize-loops"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        definitions = Definitions(func) if any(map(_may_pay, statements_of(func.body, For))) else None

        def vectorized(loop: For) -> Stmt | tuple[Stmt, ...]:
            if loop.kind is ForKind.VECTORIZED:
                return _as_vectors(loop)
            return _by_vectors(loop, func, definitions) if definitions is not None and _may_pay(loop) else loop

        result = rewrite(func, {For: vectorized})
        assert isinstance(result, PrimFunc)
        return func if result is func else Normalize()(result)


def _as_vectors(loop: For) -> Stmt | tuple[Stmt, ...]:
    """All iterations of a loop that the author marked."""
    if not (isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm)):
        return loop
    lanes = len(range(loop.start.value, loop.stop.value, loop.step))
    if not 2 <= lanes <= _MOST_LANES or not all(isinstance(stmt, Store | Let) for stmt in loop.body.stmts):
        return loop
    vectors = Lanes(lanes, {loop.var: Ramp(loop.start, const(loop.step, i64), lanes)})
    try:
        return vectors.block(loop.body).stmts
    except NotVector:
        return loop


def _may_pay(loop: For) -> bool:
    """Whether vectors may serve a loop more than LLVM does by itself: it does not look around loops."""
    if loop.kind is not ForKind.SERIAL or loop.step != 1:
        return False
    if any(isinstance(stmt, For) for stmt in loop.body.stmts):
        return True
    stores = (stmt for stmt in loop.body.stmts if isinstance(stmt, Store | Let))
    return any(isinstance(node, Call) and node.op.takes_fast for stmt in stores for node in walk(stmt.value))


def _by_vectors(loop: For, func: PrimFunc, definitions: Definitions) -> Stmt | tuple[Stmt, ...]:
    """The loop over vectors, and what is left; the loop itself where that cannot be."""
    accesses = LoopAccesses(loop, definitions)
    written = [access for access in accesses.found if access.is_write]
    roots = {definitions.root(access.buffer) for access in written}
    if not roots or not roots <= {*func.params} or not all(accesses.are_apart(access.buffer) for access in written):
        return loop
    try:
        return (*_ByVectors(loop, is_repeatable=_is_repeatable(loop, accesses, roots)).statements(),)
    except NotVector:
        return loop


def _is_repeatable(loop: For, accesses: LoopAccesses, written: set[Buffer]) -> bool:
    """Whether an iteration that runs again writes the same: it reads what it writes only once that is set anew."""
    always = {*loop.body.stmts}
    fresh: list[Store] = []
    for stmt, group in groupby(accesses.found, lambda access: access.stmt):
        for access in group:
            is_own = not access.is_write and accesses.definitions.root(access.buffer) in written
            if is_own and not any(_is_same_element(store, access) for store in fresh):
                return False
        if isinstance(stmt, Store) and stmt in always:
            fresh.append(stmt)
    return True


def _is_same_element(store: Store, access: Access) -> bool:
    if store.buffer is not access.buffer or access.indices is None:
        return False
    pairs = [*zip(store.indices, access.indices, strict=True)]
    is_plain = not any(isinstance(node, Load) for index in store.indices for node in walk(index))
    return is_plain and all(a is b or bool(structural_equal(a, b)) for a, b in pairs)


class _ByVectors:
    """What becomes of a loop whose iterations are independent."""

    def __init__(self, loop: For, *, is_repeatable: bool) -> None:
        self.loop = loop
        self.is_repeatable = is_repeatable
        self.most = min(_MOST_LANES, _VECTOR_BYTES // _widest(loop))
        self.few = self.most // _PER_VECTOR

    def statements(self) -> Iterator[Stmt]:
        """The loops over vectors, and the serial one over the rest. Raises NotVector."""
        count = iterations(self.loop)
        if isinstance(count, IntImm) and count.value < self.few:
            raise NotVector
        if not isinstance(count, IntImm | Var):
            var = Var("count")
            yield Let(var, count, span=self.loop.span)
            count = var
        if not self.is_repeatable:
            whole = last_whole(self.loop, count, self.few)
            yield from self.vectors(count, whole)
            yield self.loop.replaced(start=whole)
        elif isinstance(count, IntImm):
            yield from self.vectors(count, self.loop.stop)
        else:
            by_vectors = SeqStmt((*self.vectors(count, folded(Add(self.loop.start, count))),))
            yield IfThenElse(GE(count, const(self.few, i64)), by_vectors, SeqStmt((self.loop,)))

    def vectors(self, count: Expr, end: Expr) -> Iterator[Stmt]:
        """Loops over vectors up to `end`; the last vector lies within, wherever `end` is."""
        middle = last_whole(self.loop, count, self.most)
        if not isinstance(count, IntImm) or count.value >= self.most:
            at = Var(self.loop.var.name)
            yield For(at, self.loop.start, middle, self.body(at, self.most), step=self.most)
        if isinstance(count, IntImm) and count.value % self.most == 0:
            return
        at = Var(self.loop.var.name)
        if not self.is_repeatable:
            yield For(at, middle, end, self.body(at, self.few), step=self.few)
            return
        first = Var("first")
        within = Let(first, Min(at, folded(Sub(end, const(self.few, i64)))))
        yield For(at, middle, end, SeqStmt((within, *self.body(first, self.few).stmts)), step=self.few)

    def body(self, first: Expr, lanes: int) -> SeqStmt:
        """The body for so many iterations at once, from `first` on."""
        return Lanes(lanes, {self.loop.var: Ramp(first, const(1, i64), lanes)}, neighbours=True).block(self.loop.body)


def _widest(loop: For) -> int:
    """The bytes of the widest element that a loop's body stores or loads."""
    found = [1]
    for stmt in statements(loop.body):
        if isinstance(stmt, Store):
            found.append(stmt.buffer.dtype.bytes)
        if isinstance(stmt, Store | Let):
            found += (node.buffer.dtype.bytes for node in walk(stmt.value) if isinstance(node, Load))
    return max(found)
