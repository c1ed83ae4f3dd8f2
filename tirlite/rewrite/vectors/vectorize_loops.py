"""VectorizeLoops vectorizes loops: those that the author marks, and those where it pays."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops import patterns
from tirlite.analysis.loops.records import keeps_a_record
from tirlite.analysis.loops.streams import large_from, results, stores_past
from tirlite.ir import AttrStmt, For, ForKind, IfThenElse, Let, PrimFunc, Stmt, Store, While, statements, statements_of
from tirlite.ir.walk import chain_from
from tirlite.rewrite.forms import Form, FormLimits
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.target.processor import HOST, Processor, processor_called

if TYPE_CHECKING:
    from tirlite.rewrite.vectors.nests import Short


class VectorizeLoops(FactsPass):
    """Vectorizes loops: statements on vectors, with Ramp and Broadcast, replace several iterations.

    `tl.vectorized` loops with constant bounds have no order, so each statement may run for all iterations before the
    next one. Other such loops, and those without a vector form, are left to LLVM: an index along an axis that is not
    the last, a conditional expression, a call.

    Serial loops use vectors of up to 64 lanes if they compute elementary functions or have loops inside, iterations are
    proved independent and write no temporary that could be placed where one that they read is, and lanes access
    adjacent elements. In each lane an inner loop combines values in the order that is written, except for windows
    without weights: their rows are combined first, if that changes nothing or `tl.reduce` allows it.
    The last vector of a loop may overlap the one before if that writes the same again. Otherwise, and in loops of fewer
    iterations than lanes, it is masked; on processors without masks these iterations run one by one. Four iterations of
    an outer loop go together if they share what inner loops load, by as many vectors as the registers of `target` hold.

    Other forms, each in a file of its own:

    - `one_row.py`: a nest over whole rows of parameters is one loop over their elements.
    - `short_rows.py`: in loops over many short rows, which inner loops reduce, each lane has a row of its own.
    - `resampling.py`: loops that load from computed places, if `target` permutes lanes.
    - `approximate_quotients.py`: loops under `approximate` that divide f32 most of their time, unless results go past
      the caches.
    - `vector_loops.py`: loops that divide integers of up to 32 bits by variables, by vectors of floats, and loops that
      copy one of two or three elements of a row: LLVM vectorizes neither.
    - `at_distance.py`: loops that store where they load use vectors in which no two iterations meet, as those that
      reverse an array in place; a distance known at run time is tested before. So do loops that load from another row
      than the one that they store to, whatever rows the outer loops go through.
    - `stored_back.py`: if `target` stores some lanes slowly, conditional stores become unconditional ones.
    - `staggered.py`: four rows whose floats wait for the row before go together, each as far behind as necessary.
    - `jam.py`: loops that only add one row after the other to a row of results add four at once.
    - `count_bits.py`: a `while` that counts the bits of an integer is straight-line code.
    - `search_ahead.py`: loops that keep a record, as of the greatest so far, test whole vectors for a new one; a
      `while` that looks for an element skips whole vectors, and assertions over elements test whole vectors.

    Other loops that write results too large for the caches are vectorized, too, if rows are long: these vectors bypass
    the caches, see `analysis.streams`. Such loops occur twice, and run as they are written for smaller arrays. If no
    other loop is vectorized, a function of the `USUAL` form leaves calls with large arrays to the `LARGE` one: so the
    code for small arrays compiles in half the time.

    With `called`, for functions that others call, no vector overlaps another if an iteration reads the element of a
    parameter at the place at which it writes: so the two parameters may still be one array.

    For functions in normal form (see `Normalize`); the result is in it too.
    """

    called: bool = False
    target: str = HOST
    form: Form = Form.ALONE

    def on(self, facts: Facts) -> Rewritten:
        searches = next(statements_of(facts.func.body, While), None) is not None
        if searches and (counted := _without_counts(facts.func)) is not facts.func:
            facts = Facts(counted)
        processor = processor_called(self.target)
        if processor.masks_stores_slowly and not self.called and (loops := _storing_back(facts.func)):
            from tirlite.rewrite.vectors.stored_back import stored_back

            back = stored_back(facts, loops)
            facts = facts if back is facts.func else Facts(back)
        func = facts.func
        made: dict[For, tuple[Stmt, ...]] = {}
        short: list[Short] = []
        dividing = () if self.called or self.form not in (Form.USUAL, Form.SMALL) else _dividing(func, processor)
        if searches or dividing or any(map(_may_serve, statements_of(func.body, For))):
            from tirlite.rewrite.vectors.nests import Rules, vectorized_loops

            made, short = vectorized_loops(facts, Rules(self.called, processor, dividing))
        ahead = _ahead(func, (*made, *(each.loop for each in short))) if searches else {}
        # Where results go past the caches, memory takes longer than dividing.
        others = {loop for loop in made if not dividing or chain_from(loop)[-1] not in dividing}
        is_large_apart = self.form is Form.USUAL and not (others or ahead or self.called)
        large = large_from(func, processor) if is_large_apart else 0
        if not (self.called or large or self.form is Form.SMALL):
            made |= _past_caches(func, others, processor)
        for each in short:
            made[each.loop] = each.beside(made)
        if not made and not ahead:
            return Rewritten(func, facts=facts, limits=FormLimits(large_from=large))
        led = {loop: (before, loop) for loop, before in ahead.items()}
        return Rewritten(exchanged(func, {**made, **led}), limits=FormLimits(large_from=large))


def _past_caches(func: PrimFunc, made: Iterable[For], processor: Processor) -> dict[For, tuple[Stmt, ...]]:
    """What replaces the other loops whose results may bypass the caches, which only vector stores can."""
    past = results(func, processor)
    found = [loop for loop in statements_of(func.body, For) if past and stores_past(loop, past)]
    if not found:
        return {}
    from tirlite.rewrite.vectors.vector_loops import streamed

    gone = {each for loop in made for each in (loop, *statements_of(loop.body, For))}
    vectors = ((loop, streamed(loop, func, processor)) for loop in found if loop not in gone)
    return {loop: stmts for loop, stmts in vectors if stmts is not None}


def _without_counts(func: PrimFunc) -> PrimFunc:
    """The function without loops that count bits, which would take as many rounds by vectors."""
    from tirlite.rewrite.vectors.count_bits import counted

    made = {loop: stmts for loop in statements_of(func.body, While) if (stmts := counted(loop)) is not None}
    return exchanged(func, made) if made else func


def _storing_back(func: PrimFunc) -> list[For]:
    """The loops that only store, some of it conditionally."""
    loops = (loop for loop in statements_of(func.body, For) if loop.kind in (ForKind.SERIAL, ForKind.PARALLEL))
    found = [loop for loop in loops if any(isinstance(stmt, IfThenElse) for stmt in loop.body.stmts)]
    return [loop for loop in found if all(isinstance(each, Let | Store | IfThenElse) for each in statements(loop.body))]


# Quick tests for loops that vectors may speed up.
_SIGNS = (
    patterns.has_much_to_do,
    patterns.asserts_alone,
    patterns.reads_neighbours,
    patterns.resamples,
    patterns.meets_itself,
    patterns.meets_other_rows,
    keeps_a_record,
    patterns.is_written_out,
    patterns.divides,
    patterns.skips,
)


def _dividing(func: PrimFunc, processor: Processor) -> Collection[For]:
    """The loops that approximate reciprocals make faster, and that may have them."""
    if not processor.divides_slowly or not (allowed := [*statements_of(func.body, AttrStmt)]):
        return ()
    from tirlite.rewrite.approximate_quotients import dividing_loops

    return dividing_loops(allowed)


def _may_serve(loop: For) -> bool:
    return loop.kind is ForKind.VECTORIZED or any(shows(loop) for shows in _SIGNS)


def _ahead(func: PrimFunc, made: Iterable[For]) -> dict[While, Stmt]:
    """The vector loops to put before loops that search, except in loops that are replaced."""
    from tirlite.rewrite.vectors.search_ahead import search_ahead

    gone = {each for loop in made for each in statements_of(loop.body, While)}
    loops = (loop for loop in statements_of(func.body, While) if loop not in gone)
    return {loop: found for loop in loops if (found := search_ahead(loop)) is not None}
