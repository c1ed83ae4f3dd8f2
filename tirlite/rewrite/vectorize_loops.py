"""VectorizeLoops writes loops as statements on vectors: those that the author marks, and those where that pays."""

from __future__ import annotations

from collections.abc import Mapping

from tirlite.analysis.facts import Facts
from tirlite.analysis.streams import results, stores_past
from tirlite.analysis.work import asserts_alone, has_much_to_do, reads_neighbours
from tirlite.ir import FloorDiv, For, ForKind, PrimFunc, Stmt, While, statements_of, walk
from tirlite.ir.checked import has_check
from tirlite.record import record
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.pipeline import FactsPass
from tirlite.target.processor import HOST, Processor, processor_called


@record
class VectorizeLoops(FactsPass):
    """Writes loops with Ramp and Broadcast: all iterations at once.

    `tl.vectorized` loops with constant bounds have no order, so each statement may be done for all iterations before
    the next one. Left alone, for LLVM to do what it can, are such loops with symbolic bounds or more than 64
    iterations, with other statements than stores and lets, and with what has no vector form: an index along an axis
    that is not the last, a conditional expression, a call.

    Serial loops go by vectors of up to 64 lanes where they compute elementary functions or have loops inside, if
    iterations are proved independent, write parameters alone, and lanes access neighbours in memory. What a loop inside
    combines is combined in the order that is written, in each lane, but for windows without weights: their rows go
    first, if that changes nothing or `tl.reduce` allows it. The last vector of a loop may overlap the one before where
    that writes the same again; else the last iterations follow one by one. Four iterations of a loop around go together
    where they share what loops inside load, by as many vectors as the registers of `target` hold.

    A loop that does no more than add one row after the other to a row of results takes in four at once.

    With `called`, for functions that others call, no vector overlaps another where an iteration reads the element of a
    parameter at the place at which it writes: so the two parameters may still be one array.

    A `while` that counts the ones of an integer is written without a loop first.

    A `while` that looks for an element is led up to it by whole vectors, and assertions over elements hold for these.

    For functions in normal form (see `Normalize`); the result is in it too.
    """

    called: bool = False
    target: str = HOST
    name: str = "vectorize-loops"

    def rewritten(self, facts: Facts) -> PrimFunc:
        body = facts.func.body
        loops = statements_of(body, For)
        searches = any(True for _ in statements_of(body, While))
        serves = any(map(_may_serve, loops))
        if searches and (func := _without_counts(facts.func)) is not facts.func:
            return self.rewritten(Facts(func))
        made: dict[For, tuple[Stmt, ...]] = {}
        processor = processor_called(self.target)
        if searches or serves:
            from tirlite.rewrite.nests import Rules, by_vectors

            made = by_vectors(facts, Rules(self.called, processor))
        ahead = _ahead(facts.func, made) if searches else {}
        past = {} if self.called else _past_caches(facts.func, made, processor)
        if not made and not ahead and not past:
            return facts.func
        return exchanged(facts.func, {**made, **past, **{loop: (before, loop) for loop, before in ahead.items()}})


def _past_caches(func: PrimFunc, made: Mapping[For, object], processor: Processor) -> dict[For, tuple[Stmt, ...]]:
    """What stands in the place of other loops that write results which may go past the caches: so may vectors alone."""
    past = results(func, processor)
    found = [loop for loop in statements_of(func.body, For) if past and _is_plain(loop) and stores_past(loop, past)]
    if not found:
        return {}
    from tirlite.rewrite.by_vectors import streamed

    gone = {each for loop in made for each in (loop, *statements_of(loop.body, For))}
    vectors = ((loop, streamed(loop, func, processor)) for loop in found if loop not in gone)
    return {loop: stmts for loop, stmts in vectors if stmts is not None}


def _is_plain(loop: For) -> bool:
    """Whether a loop is as an author writes it, not what is left behind whole vectors."""
    is_left = any(isinstance(node, FloorDiv) for node in walk(loop.start))
    return loop.kind in (ForKind.SERIAL, ForKind.PARALLEL) and loop.step == 1 and not is_left and not has_check(loop)


def _without_counts(func: PrimFunc) -> PrimFunc:
    """The function without loops that count the ones of an integer, which vectors would take as many rounds for."""
    from tirlite.rewrite.count_bits import counted

    made = {loop: stmts for loop in statements_of(func.body, While) if (stmts := counted(loop)) is not None}
    return exchanged(func, made) if made else func


def _may_serve(loop: For) -> bool:
    """Whether vectors may serve a loop."""
    serves = has_much_to_do(loop) or asserts_alone(loop) or reads_neighbours(loop)
    return loop.kind is ForKind.VECTORIZED or serves


def _ahead(func: PrimFunc, made: Mapping[For, object]) -> dict[While, Stmt]:
    """What leads up to loops that search, but for those in loops that others take the place of."""
    from tirlite.rewrite.search_ahead import search_ahead

    gone = {each for loop in made for each in statements_of(loop.body, While)}
    loops = (loop for loop in statements_of(func.body, While) if loop not in gone)
    return {loop: found for loop in loops if (found := search_ahead(loop)) is not None}
