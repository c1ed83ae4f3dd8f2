"""VectorizeLoops vectorizes loops: those that the author marks, and those where it pays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops import work
from tirlite.analysis.loops.records import keeps_a_record
from tirlite.analysis.loops.streams import large_from, results, stores_past
from tirlite.ir import For, ForKind, IfThenElse, Let, PrimFunc, Stmt, Store, While, statements, statements_of
from tirlite.rewrite.forms import Form, Limits
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.target.processor import HOST, Processor, processor_called

if TYPE_CHECKING:
    from tirlite.rewrite.vectors.nests import Short


class VectorizeLoops(FactsPass):
    """Writes loops with Ramp and Broadcast: all iterations at once.

    `tl.vectorized` loops with constant bounds have no order, so each statement may be done for all iterations before
    the next one. Left alone, for LLVM to do what it can, are others, and what has no vector form: an index along an
    axis that is not the last, a conditional expression, a call.

    Serial loops go by vectors of up to 64 lanes where they compute elementary functions or have loops inside, if
    iterations are proved independent, write no temporary that could lie in the place of one that they read, and
    lanes access neighbours in memory. What a loop inside combines is combined in the order that is written, in each
    lane, but for windows without weights: their rows go first, if that changes nothing or `tl.reduce` allows it.
    The last vector of a loop may overlap the one before where that writes the same again. Else, and in loops of fewer
    iterations than lanes, it has lanes that are off; on processors without masks the iterations follow one by one. Four
    iterations of a loop around go together where they share what loops inside load, by as many vectors as the registers
    of `target` hold.

    A nest over whole rows of parameters goes by vectors as one loop over their elements: `one_row.py`.

    Loops over many short rows, along which others reduce, have a row in each lane there: `short_rows.py`.

    Loops that load where they round a float to go by vectors where `target` permutes these. So do those that divide
    integers of up to 32 bits by what is no constant: vectors of floats divide them. So do those that copy one of two
    or three elements of a row, for which LLVM has no vectors.

    A loop that stores where it loads goes by vectors where none of these holds two iterations that meet, as when an
    array is turned over in place; a number that decides that is looked at in front of it.

    So does one that loads what lies in another row beside where it stores, whatever rows the loops around go through.

    Where `target` stores some lanes slowly, what iterations store on a condition, and load anyhow, they always store.

    Four rows whose floats wait for the one before go together, each as many columns behind as it has to be.

    A loop that does no more than add one row after the other to a row of results takes in four at once.

    Other loops that write results which no cache holds go by vectors too, where rows are long: those are stored past
    the caches, see `analysis.streams`. Such loops stand there twice, for smaller arrays as they are written. Where no
    vectors serve any other loop, a function of the `USUAL` form leaves calls with large arrays to the `LARGE` one: so
    what serves small arrays is compiled in half the time.

    With `called`, for functions that others call, no vector overlaps another where an iteration reads the element of a
    parameter at the place at which it writes: so the two parameters may still be one array.

    A `while` that counts the ones of an integer is written without a loop first.

    One that keeps a record, as of the greatest so far, looks at whole vectors for iterations that would change it.

    A `while` that looks for an element is led up to it by whole vectors, and assertions over elements hold for these.

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
        if searches or any(map(_may_serve, statements_of(func.body, For))):
            from tirlite.rewrite.vectors.nests import Rules, by_vectors

            made, short = by_vectors(facts, Rules(self.called, processor))
        ahead = _ahead(func, (*made, *(each.loop for each in short))) if searches else {}
        is_large_apart = self.form is Form.USUAL and not (made or ahead or self.called)
        large = large_from(func, processor) if is_large_apart else 0
        if not (self.called or large or self.form is Form.SMALL):
            made |= _past_caches(func, made, processor)
        for each in short:
            made[each.loop] = each.beside(made)
        if not made and not ahead:
            return Rewritten(func, facts=facts, limits=Limits(large_from=large))
        led = {loop: (before, loop) for loop, before in ahead.items()}
        return Rewritten(exchanged(func, {**made, **led}), limits=Limits(large_from=large))


def _past_caches(func: PrimFunc, made: Iterable[For], processor: Processor) -> dict[For, tuple[Stmt, ...]]:
    """What stands in the place of other loops that write results which may go past the caches: so may vectors alone."""
    past = results(func, processor)
    found = [loop for loop in statements_of(func.body, For) if past and stores_past(loop, past)]
    if not found:
        return {}
    from tirlite.rewrite.vectors.by_vectors import streamed

    gone = {each for loop in made for each in (loop, *statements_of(loop.body, For))}
    vectors = ((loop, streamed(loop, func, processor)) for loop in found if loop not in gone)
    return {loop: stmts for loop, stmts in vectors if stmts is not None}


def _without_counts(func: PrimFunc) -> PrimFunc:
    """The function without loops that count the ones of an integer, which vectors would take as many rounds for."""
    from tirlite.rewrite.vectors.count_bits import counted

    made = {loop: stmts for loop in statements_of(func.body, While) if (stmts := counted(loop)) is not None}
    return exchanged(func, made) if made else func


def _storing_back(func: PrimFunc) -> list[For]:
    """The innermost loops that do no more than store, and that on a condition."""
    loops = (loop for loop in statements_of(func.body, For) if loop.kind in (ForKind.SERIAL, ForKind.PARALLEL))
    found = [loop for loop in loops if any(isinstance(stmt, IfThenElse) for stmt in loop.body.stmts)]
    return [loop for loop in found if all(isinstance(each, Let | Store | IfThenElse) for each in statements(loop.body))]


# What a look at a loop shows where vectors may serve it.
_SIGNS = (
    work.has_much_to_do,
    work.asserts_alone,
    work.reads_neighbours,
    work.resamples,
    work.meets_itself,
    work.meets_other_rows,
    keeps_a_record,
    work.is_written_out,
    work.divides,
    work.skips,
)


def _may_serve(loop: For) -> bool:
    return loop.kind is ForKind.VECTORIZED or any(shows(loop) for shows in _SIGNS)


def _ahead(func: PrimFunc, made: Iterable[For]) -> dict[While, Stmt]:
    """What leads up to loops that search, but for those in loops that others take the place of."""
    from tirlite.rewrite.vectors.search_ahead import search_ahead

    gone = {each for loop in made for each in statements_of(loop.body, While)}
    loops = (loop for loop in statements_of(func.body, While) if loop not in gone)
    return {loop: found for loop in loops if (found := search_ahead(loop)) is not None}
