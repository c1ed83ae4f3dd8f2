"""The passes on reductions, in order: find them, refuse wrong ones, cut them into blocks, split off partial results.

Functions of which serial loops alone may be reductions load neither `blocks.py` nor `partials.py`, which rewrite them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.patterns import sums_differences
from tirlite.diag import Message
from tirlite.ir.checked import has_check
from tirlite.ir.expr import GE, Expr, IntImm, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import AttrKey, AttrStmt, For, ForKind, IfThenElse, Permission, SeqStmt, Stmt, Store, While
from tirlite.ir.walk import composites, conjuncts, defined_in, is_steady, mentions, statements, statements_of, walk
from tirlite.rewrite.forms import FormLimits
from tirlite.rewrite.normalize import Normalize, exchanged
from tirlite.rewrite.pipeline import Rewritten
from tirlite.target.processor import processor_called

if TYPE_CHECKING:
    from tirlite.analysis.loops.reductions import AnyUpdate, Update
    from tirlite.analysis.loops.regrouping import Obstacle


def found(facts: Facts, *, integers: bool, shared_from: int) -> Rewritten:
    """The function with serial loops marked as reductions, see `FindReductions`."""
    body = facts.func.body
    granted = [stmt for stmt in statements_of(body, AttrStmt) if may_regroup(stmt)]
    branches = _branches(body)
    updates = {each.then_body.stmts[0]: update for each, (_, update) in branches.items()}
    chosen = {loop.var for stmt in granted for loop in _reductions(stmt.body, facts, updates)}
    nests = set(_nests_of_integers(body, facts, updates)) if integers else set()
    if shared_from and nests and not chosen and (size := _size_of_elements(facts.func, nests)):
        return Rewritten(facts.func, facts=facts, limits=FormLimits(large_from=shared_from * size))
    chosen |= {loop.var for loop in nests}
    if not chosen:
        return Rewritten(facts.func, facts=facts)
    loops = (loop for loop in statements_of(body, For) if loop.var in chosen)
    inside = {branch for loop in loops for branch in statements_of(loop.body, IfThenElse)}
    stores = {branch: store for branch, (store, _) in branches.items() if branch in inside}

    def reduced(loop: For) -> For:
        return loop.replaced(kind=ForKind.REDUCE) if loop.var in chosen else loop

    def plain(branch: IfThenElse) -> Stmt:
        return stores.get(branch, branch)

    return Rewritten(rewrite(facts.func, {For: reduced, IfThenElse: plain} if stores else {For: reduced}))


def _branches(body: SeqStmt) -> dict[IfThenElse, tuple[Store, Update]]:
    """The branches that keep an extreme value so far, with the equivalent store without a branch, and its update.

    Only if the element is the same in all iterations of the innermost loop; scattered elements stay conditional.
    """
    found: dict[IfThenElse, tuple[Store, Update]] = {}
    seen: set[IfThenElse] = set()
    if next(statements_of(body, IfThenElse), None) is None:
        return found
    from tirlite.analysis.loops.reductions import compared_update_of, update_of, without_branch

    for loop in reversed([*statements_of(body, For)]):
        branches = {*statements_of(loop.body, IfThenElse)} - seen
        for branch in branches:
            store = without_branch(branch)
            update = None if store is None else update_of(store) or compared_update_of(store)
            if store is None or update is None or not is_steady(*store.indices):
                continue
            if not mentions(store.indices, defined_in(loop)):
                found[branch] = store, update
        seen |= branches
    return found


def may_regroup(stmt: AttrStmt) -> bool:
    """Whether `reassociate` is granted inside of a statement."""
    return stmt.key is AttrKey.ALLOW and isinstance(stmt.value, tuple) and Permission.REASSOCIATE in stmt.value


def _reductions(body: SeqStmt, facts: Facts, branches: Mapping[Stmt, Update]) -> set[For]:
    """The serial loops of a body that combine values and contain no loops but reductions."""
    from tirlite.analysis.loops.regrouping import updates_in

    found: set[For] = set()
    # Reversed: inner loops before those around them.
    for loop in reversed([*statements_of(body, For)]):
        inside = statements_of(loop.body, For)
        if loop.kind is not ForKind.SERIAL or not all(each in found or each.kind is ForKind.REDUCE for each in inside):
            continue
        updates = updates_in(loop, facts, branches)
        if isinstance(updates, tuple) and updates:
            found.add(loop)
    return found


def _nests_of_integers(body: SeqStmt, facts: Facts, branches: Mapping[Stmt, Update]) -> Iterator[For]:
    """The loops of nests that only combine integers."""
    stack = [*composites(body)]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, IfThenElse | AttrStmt):
            stack += (each for inside in stmt.bodies for each in composites(inside))
        elif isinstance(stmt, For) and stmt.kind is ForKind.SERIAL and _stores_integers(stmt, branches):
            found = _reductions(SeqStmt((stmt,)), facts, branches)
            if stmt in found:
                yield from found


def _size_of_elements(func: PrimFunc, found: set[For]) -> int:
    """The bytes of the smallest parameter element that these loops load per iteration: bytes then measure work.

    0 if there is none, and if there are nested loops or calls, which are too much to compile twice.
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


def _stores_integers(loop: For, branches: Mapping[Stmt, Update]) -> bool:
    """Whether a loop only writes integers, and updates at least one of them."""
    stores = [*statements_of(loop.body, Store)]
    if any(each.buffer.dtype.is_float for each in stores):
        return False
    from tirlite.analysis.loops.reductions import update_of

    return any(store in branches or update_of(store) for store in stores)


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


def checked(facts: Facts) -> PrimFunc:
    """The function itself, if its reductions may be regrouped, see `CheckReductions`."""
    for loop in statements_of(facts.func.body, For):
        if loop.kind is not ForKind.REDUCE:
            continue
        from tirlite.analysis.loops.regrouping import updates_in

        updates = updates_in(loop, facts)
        if not isinstance(updates, tuple):
            raise message_of(updates, loop.var.name).error()
    return facts.func


def message_of(found: Obstacle, loop: str) -> Message:
    """The message that says why a reduction may not be regrouped."""
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


def in_order_of_blocks(facts: Facts, *, serial: bool, sparing: bool) -> PrimFunc:
    """The function with long reductions as loops over blocks, see `BlockReductions`."""
    candidates = _outermost(facts.func.body)
    if not candidates:
        return facts.func
    from tirlite.rewrite.blocks import in_blocks

    kind = ForKind.SERIAL if serial else ForKind.PARALLEL
    made = {
        loop: stmts
        for loop, most, repeats in candidates
        if (stmts := in_blocks(loop, kind, facts, most, repeats=repeats, sparing=sparing))
    }
    return exchanged(facts.func, made) if made else facts.func


def _outermost(body: SeqStmt) -> list[tuple[For, Mapping[Expr, int], bool]]:
    """The reductions in no parallel loop and no other reduction, with upper bounds and whether they repeat.

    Left out are those in two nested loops, or with a bound that depends on the outer loop: many short runs, as a rule.
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
    """The upper bound of a number where a condition `>=` on it fails, as before a schedule for large sizes."""
    least: dict[Expr, int] = {}
    for each in conjuncts(condition):
        if not isinstance(each, GE) or not isinstance(each.a, Var) or not isinstance(each.b, IntImm):
            return {}
        least[each.a] = max(each.b.value, least.get(each.a, each.b.value))
    return {number: value - 1 for number, value in least.items()} if len(least) == 1 else {}


def split(facts: Facts, target: str) -> PrimFunc:
    """The function with partial results for its reductions, see `SplitReductions`."""
    func = facts.func
    if not any(loop.kind is ForKind.REDUCE or sums_differences(loop) for loop in statements_of(func.body, For)):
        return func
    from tirlite.rewrite.vectors.partials import splitting

    # The statements occur once for each vector length, so names must be made unique.
    return Normalize()(rewrite(func, {For: splitting(facts, processor_called(target))}))
