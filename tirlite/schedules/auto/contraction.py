"""Schedules contractions: `y[i, j] += a[i, p] * b[p, j]` and the like, with any order of operands, batches and axes.

A tile of some rows of some vectors is combined in registers: of six times four, where a processor has 32 of them. What
its columns read is packed together, for all terms; rows go past it. A vector of the panel serves each row of the tile,
so it may come from the second cache, or the third: blocks of terms were slower up to 16384 of them. Source of the tile:
Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tirlite.analysis.facts import Facts
from tirlite.analysis.reductions import update_of
from tirlite.diag import KernelError
from tirlite.ir import Allocate, For, ForKind, IntImm, Load, PrimFunc, Stmt, Store, Var, structural_equal, walk
from tirlite.record import record
from tirlite.rewrite.pipeline import Pass, after
from tirlite.schedules.cache_write import CacheWrite
from tirlite.schedules.handle import LoopHandle, LoopName, loops_around
from tirlite.schedules.pack import Pack
from tirlite.schedules.parallel import Parallel
from tirlite.schedules.reorder import Reorder
from tirlite.schedules.specialize import Specialize
from tirlite.schedules.split import Split
from tirlite.schedules.unroll_jam import UnrollJam
from tirlite.schedules.vectorize import Vectorize
from tirlite.target import Processor

# A panel pays for so many tiles of rows that read it, and beyond this part of the second cache: of what fits into it
# rows are read as fast where they lie.
_LEAST_TILES = 4
_PART_OF_CACHE = 8


@record
class Tiling:
    """The numbers of a schedule: the rows of a tile of registers, and the bytes of one of its rows, and of one vector.

    Packed is an operand of `least_bytes` or more, where so many rows read it.
    """

    rows: int
    row_bytes: int
    vector_bytes: int
    least_rows: int
    least_bytes: int

    @classmethod
    def of(cls, processor: Processor) -> Tiling:
        """What suits a processor's registers and caches."""
        rows, vectors = processor.tile
        width = processor.vector_bytes
        return cls(rows, vectors * width, width, _LEAST_TILES * rows, processor.caches[1] // _PART_OF_CACHE)


@record(eq=False)
class Contraction:
    """A nest of loops around a reduction: the outer ones, those over rows and columns of a tile, and the reduction's.

    `spatial` are all loops around, in their order. `packed` is what varies with columns, and not with rows. `store` is
    the update, or where an iteration sums up into a scalar of its own (`is_local`), what becomes of that.
    """

    spatial: tuple[For, ...]
    rows: For
    columns: For
    terms: tuple[For, ...]
    store: Store
    packed: Load
    is_local: bool

    @property
    def batches(self) -> tuple[For, ...]:
        return tuple(each for each in self.spatial if each not in (self.rows, self.columns))


def scheduled(facts: Facts, tiling: Tiling) -> tuple[PrimFunc, tuple[Pass, ...]]:
    """The function with its contractions scheduled, and the steps that did it: the last nest first."""
    taken: list[Pass] = []
    for found in reversed([*contractions(facts)]):
        made, attempt = facts, list[Pass]()
        try:
            for step in steps(found, facts, tiling):
                made = after(step, made)
                attempt.append(step)
        except KernelError:  # a step does not fit: the nest stays as it is
            continue
        facts = made
        taken += attempt
    return facts.func, tuple(taken)


def contractions(facts: Facts) -> Iterator[Contraction]:
    """The contractions of a function, in program order."""
    for loop, around in loops_around(facts.func):
        if around and (isinstance(around[-1].body.stmts, tuple) and around[-1].body.stmts == (loop,)):
            continue  # looked at from the outermost loop of its chain
        if (found := _contraction(loop)) is not None:
            yield found


def _contraction(loop: For) -> Contraction | None:
    spatial = [loop]
    while len(spatial[-1].body.stmts) == 1 and _is_plain(inner := spatial[-1].body.stmts[0]):
        assert isinstance(inner, For)
        spatial.append(inner)
    stmts = spatial[-1].body.stmts
    at = next((place for place, stmt in enumerate(stmts) if isinstance(stmt, For)), len(stmts))
    before, rest = stmts[:at], stmts[at + 1 :]
    terms = [*_reduction(stmts[at])] if at < len(stmts) else []
    if not all(map(_is_plain, spatial)) or not terms or len(spatial) < 2:
        return None
    body = terms[-1].body.stmts
    update = update_of(body[0]) if len(body) == 1 and isinstance(body[0], Store) else None
    if update is None:
        return None
    store = update.store
    is_local = bool(before) and isinstance(before[0], Allocate) and before[0].buffer is store.buffer
    if is_local and len(rest) == 1 and isinstance(rest[0], Store):
        before, store = before[1:], rest[0]
    elif is_local or rest:
        return None
    if not all(_is_start(stmt, update.store) for stmt in before):
        return None
    columns = next((each for each in spatial if store.indices and store.indices[-1] is each.var), None)
    loads = [node for node in walk(update.operand) if isinstance(node, Load)]
    if columns is None or any(node.buffer is store.buffer for node in loads):
        return None
    across = [load for load in loads if _names(load, columns.var)]
    if not across or any(not structural_equal(load, across[0]) for load in across):
        return None
    written = [node for index in store.indices for node in walk(index)]
    rows = [each for each in spatial if each.var in written and not _names(across[0], each.var)]
    if not rows or not all(any(each.var is node for node in written) for each in spatial):
        return None
    return Contraction(tuple(spatial), rows[-1], columns, tuple(terms), store, across[0], is_local)


def _is_plain(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.PARALLEL) and stmt.step == 1


def _reduction(stmt: Stmt | None) -> Iterator[For]:
    """The loops of a reduction, one inside of the other."""
    while isinstance(stmt, For) and stmt.kind is ForKind.REDUCE and stmt.step == 1:
        yield stmt
        stmt = stmt.body.stmts[0] if len(stmt.body.stmts) == 1 else None


def _is_start(stmt: Stmt, update: Store) -> bool:
    """Whether a statement sets the element that is updated then, to what no memory decides."""
    return (
        isinstance(stmt, Store)
        and stmt.buffer is update.buffer
        and all(structural_equal(a, b) for a, b in zip(stmt.indices, update.indices, strict=True))
        and not any(isinstance(node, Load) for node in walk(stmt.value))
    )


def _names(load: Load, var: Var) -> bool:
    return any(node is var for index in load.indices for node in walk(index))


def steps(nest: Contraction, facts: Facts, tiling: Tiling) -> Iterator[Pass]:
    """What is done with a contraction, step by step. Handles name its loops, whatever others are called."""
    named = _Names(nest, facts)
    element = max(nest.store.buffer.dtype.bytes, nest.packed.buffer.dtype.bytes)
    lanes, narrow = tiling.row_bytes // element, tiling.vector_bytes // element
    least = _least(nest, lanes, tiling)
    if least is None:
        return
    if least:
        yield Specialize(named(nest.spatial[0].var.name), least)
    rows, columns = named(nest.rows.var.name), nest.columns.var.name
    yield Split(named(columns), lanes)
    outer, within = named(f"{columns}.outer"), named(f"{columns}.inner")
    around = (*(named(each.var.name) for each in nest.batches), outer)
    yield Reorder((*around, rows, within))
    yield Parallel(around[0])
    terms = (named(each.var.name) for each in nest.terms)
    yield Pack(nest.packed.buffer.name, outer, (*terms, within), narrow)
    if not nest.is_local:
        yield CacheWrite(nest.store.buffer.name, within)
    yield Vectorize(within, (lanes, narrow), padded=True)
    yield UnrollJam(rows, tiling.rows)


def _least(nest: Contraction, lanes: int, tiling: Tiling) -> tuple[tuple[str, int], ...] | None:
    """What must run how often for packing to pay, where constants do not tell; None where they say that it does not."""
    found: list[tuple[str, int]] = []
    wide, elements = (*nest.terms, nest.columns), tiling.least_bytes // nest.packed.buffer.dtype.bytes
    for loops, least in (((nest.rows,), tiling.least_rows), ((nest.columns,), lanes), (wide, elements)):
        if not all(map(_is_known, loops)):
            found.append((" * ".join(each.var.name for each in loops), least))
        elif prod(map(_count, loops)) < least:
            return None
    return tuple(found)


def _is_known(loop: For) -> bool:
    return isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm)


def _count(loop: For) -> int:
    """How often a loop runs, where constants tell it; else once, for want of better."""
    if isinstance(loop.start, IntImm) and isinstance(loop.stop, IntImm):
        return max(0, loop.stop.value - loop.start.value)
    return 1


class _Names:
    """Handles of the loops of a nest, in which each name stands once, in a function where others may have it too."""

    def __init__(self, nest: Contraction, facts: Facts) -> None:
        every = [loop for loop, _ in loops_around(facts.func)]
        self._before = [loop.var.name for loop in every[: every.index(nest.spatial[0])]]
        own = [each.var.name for each in (*nest.spatial, *nest.terms)]
        self._others = {each.var.name for each in every} if len({*own}) == len(own) else None
        self._after = [loop.var.name for loop in every[every.index(nest.spatial[0]) + len(own) :]]

    def __call__(self, name: str) -> LoopName:
        place = self._before.count(name)
        return LoopHandle(name, place) if place or name in self._after else name
