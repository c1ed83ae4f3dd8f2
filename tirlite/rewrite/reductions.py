"""The passes on loops over `tl.reduce`, in order: found, refused, cut into blocks, split into partial results.

What rewrites them is loaded for functions that have some: `blocks.py`, and `partials.py` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.work import sums_differences
from tirlite.diag import Message
from tirlite.ir.checked import has_check
from tirlite.ir.expr import GE, Expr, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.stmt import AttrKey, AttrStmt, For, ForKind, IfThenElse, Permission, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import composites, conjuncts, statements, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.forms import Limits
from tirlite.rewrite.normalize import Normalize, exchanged
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.target.processor import HOST, processor_called

if TYPE_CHECKING:
    from tirlite.analysis.loops.reductions import AnyUpdate
    from tirlite.analysis.loops.regrouping import Obstacle


@record
class FindReductions(FactsPass):
    """Writes serial loops as if they were over `tl.reduce`, where results stay the same or `reassociate` is granted.

    That is done for loops whose iterations combine values as those of a reduction may, see `CheckReductions`, and which
    hold no other loops than reductions: of `y[i] += a[i, p] * b[p]` the one over `p`, not those around it. Without the
    permission, and with `integers`, it is done where nothing but integers is combined, which come out the same in any
    order, and no other loop is around: workers can share it. With `shared_from`, functions that go over arrays so,
    by loops that hold no others, stay as they are: calls with so many elements or more are for the version `LARGE`.
    For functions in normal form (see `Normalize`), before reductions are split.
    """

    integers: bool = False
    shared_from: int = 0

    def on(self, facts: Facts) -> Rewritten:
        body = facts.func.body
        granted = [stmt for stmt in statements_of(body, AttrStmt) if may_regroup(stmt)]
        chosen = {loop.var for stmt in granted for loop in _reductions(stmt.body, facts)}
        integers = set(_nests_of_integers(body, facts)) if self.integers else set()
        if self.shared_from and integers and not chosen and (size := _size_of_elements(facts.func, integers)):
            return Rewritten(facts.func, facts=facts, limits=Limits(large_from=self.shared_from * size))
        chosen |= {loop.var for loop in integers}
        if not chosen:
            return Rewritten(facts.func, facts=facts)
        from tirlite.ir import rewrite

        def reduced(loop: For) -> For:
            return loop.replaced(kind=ForKind.REDUCE) if loop.var in chosen else loop

        return Rewritten(rewrite(facts.func, {For: reduced}))


def may_regroup(stmt: AttrStmt) -> bool:
    """Whether `reassociate` is granted inside of a statement."""
    return stmt.key is AttrKey.ALLOW and isinstance(stmt.value, tuple) and Permission.REASSOCIATE in stmt.value


def _reductions(body: SeqStmt, facts: Facts) -> set[For]:
    """The serial loops inside that combine values, and hold no other loops than reductions."""
    from tirlite.analysis.loops.regrouping import updates_in

    found: set[For] = set()
    # Loops inside come behind those around them.
    for loop in reversed([*statements_of(body, For)]):
        inside = statements_of(loop.body, For)
        if loop.kind is not ForKind.SERIAL or not all(each in found or each.kind is ForKind.REDUCE for each in inside):
            continue
        updates = updates_in(loop, facts)
        if isinstance(updates, tuple) and updates:
            found.add(loop)
    return found


def _nests_of_integers(body: SeqStmt, facts: Facts) -> Iterator[For]:
    """The loops of nests that combine nothing but integers, each with those inside."""
    stack = [*composites(body)]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, IfThenElse | AttrStmt):
            stack += (each for inside in stmt.bodies for each in composites(inside))
        elif isinstance(stmt, For) and stmt.kind is ForKind.SERIAL and _stores_integers(stmt):
            found = _reductions(SeqStmt((stmt,)), facts)
            if stmt in found:
                yield from found


def _size_of_elements(func: PrimFunc, found: set[For]) -> int:
    """The bytes of the smallest element that these loops load of parameters, one in each iteration.

    So the bytes of all arrays tell how long a call takes. 0 where that is not so, where loops hold others, or others
    are called: that is too much to compile twice.
    """
    arrays, sizes = {*func.params}, list[int]()
    for loop in statements_of(func.body, For):
        nodes = [*walk(*statements(loop))]
        if any(isinstance(node, For) for node in nodes if node is not loop):
            return 0
        if loop in found:
            loads = (node for node in nodes if isinstance(node, Load) and node.buffer in arrays)
            moving = [load.dtype.bytes for load in loads if any(loop.var in walk(index) for index in load.indices)]
            if not moving:
                return 0
            sizes += moving
    return 0 if calls_in(func.body) else min(sizes)


def _stores_integers(loop: For) -> bool:
    """Whether what the loop writes is integers, and at least one of them an update."""
    stores = [*statements_of(loop.body, Store)]
    if any(each.buffer.dtype.is_float for each in stores):
        return False
    from tirlite.analysis.loops.reductions import update_of

    return any(map(update_of, stores))


class ReductionRead(Message):
    """What a reduction combines into is read by its iterations.

    Example: `total += x[i]`, and then `y[i] = total`, in `for i in tl.reduce(n):`.
    Fix: Read it after the loop; where each iteration needs what came before, write `range`.
    """

    title = "`{buffer}` is combined over `{loop}`, and read by its iterations"
    label = "read here"
    related_label = "combined here"
    help = "iterations of tl.reduce may be regrouped: read `{buffer}` after the loop, or write range"


class ReductionMixture(Message):
    """A reduction combines into one buffer by two operations.

    Example: `t += x[i]`, and then `t = max(t, 0)`, in `for i in tl.reduce(n):`.
    Fix: Combine into two, or make the loop serial with `range`.
    """

    title = "`{buffer}` is combined over `{loop}` by {first}, and {second} here"
    label = "{second} here"
    related_label = "{first} here"
    help = "one operation throughout: combine into two buffers, or write range"


class ReductionCarried(Message):
    """A reduction writes what other iterations may touch too, and does not combine it with what is there.

    Example: `last = x[i]` in `for i in tl.reduce(n):`.
    Fix: Write `last = last + x[i]` or the like, write elements of the iteration's own, as `y[i]`, or make the loop
    serial with `range`.
    """

    title = "`{buffer}` is written by the iterations of `{loop}`, and not combined"
    label = "other iterations may touch the same element"
    help = "update it by one of + - * min max & | ^, or by tl.argmax; index it by `{loop}`, or write range"


class ReductionConverted(Message):
    """A reduction combines in another type than that of the buffer: each iteration converts what is there so far.

    Example: `total += tl.f64(x[i])` in `for i in tl.reduce(n):`, where `total` is f32.
    Fix: Convert the operand, `total += tl.f32(...)`, or combine into a buffer of the other type, which is converted
    after the loop.
    """

    title = "`{buffer}` is {own}, and the iterations of `{loop}` combine it as {other}"
    label = "converted to {own} by each iteration"
    help = "convert the operand to {own}, or let `{buffer}` be {other} and convert it after the loop"


@record
class CheckReductions(FactsPass):
    """Refuses a function in normal form with a `tl.reduce` loop that may not be regrouped, telling the accesses."""

    def rewritten(self, facts: Facts) -> PrimFunc:
        for loop in statements_of(facts.func.body, For):
            if loop.kind is not ForKind.REDUCE:
                continue
            from tirlite.analysis.loops.regrouping import updates_in

            found = updates_in(loop, facts)
            if not isinstance(found, tuple):
                raise message_of(found, loop.var.name).error()
        return facts.func


def message_of(found: Obstacle, loop: str) -> Message:
    from tirlite.analysis.loops.reductions import converted_update
    from tirlite.analysis.loops.regrouping import Mixture, Reading

    if isinstance(found, Reading):
        store = found.update.store
        return ReductionRead(store.buffer.name, loop, span=found.stmt.span, related=store.span)
    if isinstance(found, Mixture):
        first, second = found.first.store, found.second
        told, other = _told(found.first), _told(found.update)
        return ReductionMixture(first.buffer.name, loop, told, other, span=second.span, related=first.span)
    name, span = found.buffer.name, found.stmt.span
    combined = converted_update(found.stmt) if isinstance(found.stmt, Store) else None
    if combined is not None:
        return ReductionConverted(name, str(found.buffer.dtype), loop, str(combined.dtype), span=span)
    return ReductionCarried(name, loop, span=span)


def _told(update: AnyUpdate | None) -> str:
    from tirlite.analysis.loops.reductions import SPELLING, Update

    if update is None:
        return "assigned"
    name = SPELLING[update.operation]
    return f"`{name}`" if isinstance(update, Update) else f"`tl.arg{name}`"


@record
class BlockReductions(FactsPass):
    """Writes `tl.reduce` loops as a parallel loop over blocks, and a loop over what these give.

    That is done for loops of many iterations that no parallel loop is around, nor more than one in order, with updates
    of elements that stay the same throughout, or of elements of a small array (a histogram), of which each block has a
    copy. In a loop one that is a single block stays whole. How the iterations are cut depends on their number alone,
    and so does the last bit of a sum. Of a loop with nothing but an update by `tl.argmax` or `tl.argmin` with the
    iteration as its place, blocks find the value alone; where it stands is looked up in the block that has it. With
    `serial`, blocks follow one another in the calling thread.
    For functions in normal form (see `Normalize`) that `CheckReductions` lets pass; the result is in it too.
    """

    serial: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        candidates = _outermost(facts.func.body)
        if not candidates:
            return facts.func
        from tirlite.rewrite.blocks import in_blocks

        kind = ForKind.SERIAL if self.serial else ForKind.PARALLEL
        made = {
            loop: stmts
            for loop, most, repeats in candidates
            if (stmts := in_blocks(loop, kind, facts, most, repeats=repeats))
        }
        if not made:
            return facts.func
        return exchanged(facts.func, made)


def _outermost(body: SeqStmt) -> list[tuple[For, Mapping[Expr, int], bool]]:
    """The reductions that no parallel loop and no other reduction is around, each with what conditions bound there,
    and whether a loop repeats it.

    What stands in a loop in a loop, or goes from where another one says, is entered often, and short as a rule.
    """
    found: list[tuple[For, Mapping[Expr, int], bool]] = []
    stack: list[tuple[Stmt, Mapping[Expr, int], tuple[For | While, ...]]]
    stack = [(stmt, {}, ()) for stmt in reversed(composites(body))]
    while stack:
        stmt, most, around = stack.pop()
        if isinstance(stmt, For) and stmt.kind is ForKind.REDUCE:
            found += () if has_check(stmt) or _is_entered_often(stmt, around) else ((stmt, most, bool(around)),)
        elif isinstance(stmt, IfThenElse):
            less = {**most, **_most_else(stmt.condition)}
            stack += ((each, less, around) for each in reversed(composites(stmt.else_body)))
            stack += ((each, most, around) for each in reversed(composites(stmt.then_body)))
        elif not isinstance(stmt, For) or stmt.kind is ForKind.SERIAL:
            inside = (*around, stmt) if isinstance(stmt, For | While) else around
            stack += ((each, most, inside) for body in stmt.bodies for each in reversed(composites(body)))
    return found


def _is_entered_often(loop: For, around: tuple[For | While, ...]) -> bool:
    if len(around) != 1:
        return len(around) > 1
    variables = {each.var for each in around if isinstance(each, For)}
    nodes = walk(loop.start, loop.stop)
    return any(isinstance(node, Load) or node in variables for node in nodes)


def _most_else(condition: Expr) -> Mapping[Expr, int]:
    """What a number is at most where it is not as large as a condition asks for, as in front of a schedule for many."""
    least: dict[Expr, int] = {}
    for each in conjuncts(condition):
        if not isinstance(each, GE) or not isinstance(each.a, Var) or not isinstance(each.b, IntImm):
            return {}
        least[each.a] = max(each.b.value, least.get(each.a, each.b.value))
    return {number: value - 1 for number, value in least.items()} if len(least) == 1 else {}


@record
class SplitReductions(FactsPass):
    """Writes `tl.reduce` loops as serial ones: those that combine over neighbours in memory by vectors.

    A loop that combines values into elements that stay the same throughout becomes a loop over vectors of partial
    results, which are combined pairwise at its end; the last few iterations are a vector with lanes that are off,
    or follow in order where they have no such form. A nest of such loops combines them once, at its own end. Of a
    loop with nothing but an update by `tl.argmax` or `tl.argmin` with the iteration as its place, the value is
    found alone, and then where it stands first. What is made of integers of other sizes than words, and combined,
    is left to LLVM: flags, distances, counts of bits. Sums of differences of bytes, serial ones too, are dot
    products of these with ones, or else take whole vectors first. Loops with other statements than stores and lets,
    of other steps than 1, or with what has no vector form go on in order as they are written. For functions in
    normal form (see `Normalize`) that `CheckReductions` lets pass; the result is in it too.
    """

    target: str = HOST

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        if not any(loop.kind is ForKind.REDUCE or sums_differences(loop) for loop in statements_of(func.body, For)):
            return func
        from tirlite.ir import rewrite
        from tirlite.rewrite.vectors.partials import splitting

        result = rewrite(func, {For: splitting(facts, processor_called(self.target))})
        # The statements stand there once for each length of vectors.
        return Normalize()(result)
