"""Checks whether a step may change the order of accesses, and reports which loops run in order and why."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tirlite.analysis.access import Touch
from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.diag import Message, TirliteError
from tirlite.ir.checked import has_check
from tirlite.ir.expr import Add, Buffer, Expr, FloorDiv, FloorMod, IntImm, Load, Mul, Sub, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.printing import prints_in
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, For, ForKind, Stmt, Store
from tirlite.ir.walk import defined_in, loads_in, mentions, statements_of, walk
from tirlite.schedules.handle import loops_around
from tirlite.schedules.loop_facts import is_block_of
from tirlite.schedules.step import does_not_fit

if TYPE_CHECKING:
    from tirlite.analysis.access import Allocation
    from tirlite.analysis.loops.dependence import Dependence


class StepBreaksOrder(Message):
    """A step of a schedule would run two accesses to one element in another order, or at once.

    Example: `s.parallel("i")` of a loop with `y[i] = y[i - 1] + x[i]`.
    Fix: Leave the loops in their order, or write the kernel so that iterations do not depend on each other; where they
    combine values, say it by `tl.reduce`.
    """

    title = "`{step}` would change results: {later} must come after {earlier}{distance}"
    label = "this one comes later"
    related_label = "this one comes first"


def breaks_order(step: object, dependence: Dependence) -> TirliteError:
    """The error that names the two accesses whose dependence forbids a step."""
    steps = ", ".join(map(str, dependence.steps))
    earlier, later = dependence.source, dependence.sink
    return StepBreaksOrder(
        str(step),
        str(later),
        str(earlier),
        f" ({steps})" if steps else "",
        span=later.stmt.span,
        related=earlier.stmt.span,
    ).error()


def demand_temporaries(step: object, facts: Facts, buffers: Iterable[Buffer]) -> list[Allocation]:
    """The allocations of `buffers`. Raises KernelError unless each is a temporary that may be moved and reshaped."""
    from tirlite.analysis.allocations import temporaries

    known = {each.buffer: each for each in temporaries(facts)}
    for each in (wanted := [*buffers]):
        if each not in known:
            raise does_not_fit(step, f"`{each.name}` is no temporary that is used element by element")
    return [known[each] for each in wanted]


def own_touches(step: object, facts: Facts, buffer: Buffer, at: For, *, written: bool = False) -> list[Touch]:
    """A loop's accesses to a buffer; KernelError for accesses through a view, and for writes unless `written`."""
    root = facts.definitions.root(buffer)
    found = [touch for of, each in facts.touched_in(at).items() if of.buffer is root for touch in each]
    for touch in found:
        if touch.buffer is not buffer or (not written and writes(touch)):
            raise does_not_fit(step, f"{touch} may write `{buffer.name}`, or touches it by another name")
    return found


def elements_touched(step: object, facts: Facts, buffer: Buffer, at: For, *, written: bool) -> list[Load | Store]:
    """The scalar loads and stores by which a loop uses a buffer.

    Raises KernelError for any other access, for a buffer declared inside of the loop, and if there is none of the kind.
    """
    if buffer in defined_in(at.body):
        raise does_not_fit(step, f"`{buffer.name}` is each iteration's own")
    touches = own_touches(step, facts, buffer, at, written=written)
    if not any(writes(each) or not written for each in touches) or buffer.volatile or buffer.dtype.lanes > 1:
        word = "write" if written else "read"
        raise does_not_fit(step, f"the loop over `{at.var.name}` does not {word} `{buffer.name}`, element by element")
    nodes: list[Load | Store] = []
    for touch in touches:
        node = touch.node
        if not isinstance(node, Load | Store) or any(index.dtype.lanes > 1 for index in node.indices):
            raise does_not_fit(step, f"{touch} touches `{buffer.name}` by vectors")
        nodes.append(node)
    return nodes


def demand_steady(step: object, facts: Facts, of: Node, stmts: Iterable[Stmt], but: Iterable[Buffer] = ()) -> None:
    """Raises KernelError if statements may write what `of` loads, except for loads from the buffers `but`."""
    from tirlite.analysis.loops.fusion import can_be_reordered

    root = facts.definitions.root
    read = {root(node.buffer) for node in loads_in(of)}.difference(but)
    for stmt in stmts:
        if not isinstance(stmt, Allocate) and not can_be_reordered(stmt):
            raise does_not_fit(step, "what stands in between does more than load and store")
        for store in statements_of(stmt, Store):
            if root(store.buffer) in read:
                raise does_not_fit(step, f"`{store}` writes what is computed from, before all is computed")


def demand_order(
    step: object, facts: Facts, first: For, second: For, behind: int = 0, *, but: Buffer | None = None
) -> None:
    """Raises KernelError if joining two loops, the second `behind` iterations late, would reverse a dependence.

    Dependences whose source accesses the buffer `but` are ignored.
    """
    from tirlite.analysis.loops.fusion import against

    for each in against(facts, first, second, behind):
        if each is None:
            raise does_not_fit(step, "how the loops lie to each other is not known, or they access too much")
        if but is None or facts.definitions.root(each.source.buffer) is not but:
            raise breaks_order(step, each)


def carried(facts: Facts, loop: For, *, by_statement: bool = False) -> Iterator[Dependence]:
    """The dependences that a loop carries; quickly none if all accesses use its variable along one axis."""
    touched = facts.touched_in(loop).values()
    if not all(_has_own_axis(each, loop) for each in touched if any(map(writes, each))):
        yield from facts.carried_by(loop, by_statement=by_statement)


def moved_out(facts: Facts, loop: For, of: Iterable[For]) -> For:
    """The loop as it may run after moving out of the loops `of`.

    A parallel or vectorized one becomes serial if a dependence carried by one of these connects its iterations.
    """
    if loop.kind not in (ForKind.PARALLEL, ForKind.VECTORIZED):
        return loop
    for around in of:
        for each in carried(facts, around):
            if dict(zip(each.loops, each.steps, strict=True))[loop].direction != "=":
                return loop.replaced(kind=ForKind.SERIAL)
    return loop


def demand_independent(step: object, facts: Facts, loop: For) -> None:
    """Raises KernelError, naming the accesses, if a loop carries a dependence."""
    for each in carried(facts, loop):
        raise breaks_order(step, each)


def settled(step: object, made: PrimFunc, around: Sequence[For]) -> PrimFunc:
    """The function that a step has made, with loops that no longer are reductions made serial.

    `around` are the loops around the step's place, found again by their variables. Raises KernelError, naming the
    accesses, if one of these is parallel and now carries a dependence.
    """
    asked = {loop.var for loop in around if loop.kind in (ForKind.PARALLEL, ForKind.REDUCE)}
    if not asked:
        return made
    from tirlite.analysis.loops.regrouping import updates_in

    facts, in_order = Facts(made), set[Var]()
    for loop in statements_of(made.body, For):
        if loop.var in asked and loop.kind is ForKind.PARALLEL:
            demand_independent(step, facts, loop)
        elif loop.var in asked and not isinstance(updates_in(loop, facts), tuple):
            in_order.add(loop.var)
    return rewrite(made, {For: lambda loop: loop.replaced(kind=ForKind.SERIAL) if loop.var in in_order else loop})


def _has_own_axis(touches: Iterable[Touch], loop: For) -> bool:
    """Whether all accesses index one axis by the loop's variable, so that iterations are seen to be independent.

    The variable of an inner loop over a block of this one counts too, as does either plus a term that is the same in
    all iterations and accesses. So do two axes, with quotient and remainder of the variable by the same divisor.
    """
    own = {loop.var, *(each.var for each in statements_of(loop.body, For) if is_block_of(each, loop))}
    axes: set[tuple[Buffer, object, tuple[object, ...]]] | None = None
    for touch in touches:
        node = touch.node
        if not isinstance(node, Load | Store):
            return False
        behind = ((axis, _offset_key(index, own, loop)) for axis, index in enumerate(node.indices))
        mine: set[tuple[Buffer, object, tuple[object, ...]]] = {
            *((node.buffer, axis, start) for axis, start in behind if start is not None),
            *((node.buffer, pair, divisor) for pair, divisor in _quotients(node.indices, own, loop)),
        }
        axes = mine if axes is None else axes & mine
    return bool(axes)


def _quotients(
    indices: tuple[Expr, ...], own: Container[object], loop: For
) -> Iterator[tuple[tuple[int, int], tuple[object, ...]]]:
    """The axes of the quotient and of the remainder of a variable in `own` by one divisor, and a key of the latter."""
    for one, index in enumerate(indices):
        if isinstance(index, FloorDiv) and index.a in own and (divisor := _fixed_key(index.b, loop)) is not None:
            for other, rest in enumerate(indices):
                if isinstance(rest, FloorMod) and rest.a is index.a and _fixed_key(rest.b, loop) == divisor:
                    yield (one, other), divisor


def _offset_key(index: Expr, own: Container[object], loop: For) -> tuple[object, ...] | None:
    """A key of the term added to one of the variables `own` in an index; None for an index of another form."""
    if index in own:
        return ()
    if not isinstance(index, Add):
        return None
    rest = index.a if index.b in own else index.b if index.a in own else None
    return None if rest is None else _fixed_key(rest, loop)


def _fixed_key(expr: Expr, loop: For) -> tuple[object, ...] | None:
    """A key of an integer term that is the same in all iterations of a loop; None for others."""
    nodes = [*walk(expr)]
    if not all(isinstance(node, Var | IntImm | Add | Sub | Mul | FloorDiv | FloorMod) for node in nodes):
        return None
    if not defined_in(loop).isdisjoint(nodes):
        return None
    return tuple(
        [node.value if isinstance(node, IntImm) else node if isinstance(node, Var) else type(node) for node in nodes]
    )


def demand_any_order(step: object, loop: For) -> None:
    """Raises KernelError for a loop that prints or checks an index: iterations must then run in order."""
    if next(prints_in(loop), None) is not None:
        raise does_not_fit(step, f"the loop over `{loop.var.name}` prints, so that iterations run in order")
    if has_check(loop):
        reason = (
            f"an index in the loop over `{loop.var.name}` is checked where it stands, so that iterations run in order"
        )
        raise does_not_fit(step, f"{reason}; clamp the index, or promise that it is in bounds by tl.unchecked()")


def orders(func: PrimFunc) -> Iterator[str]:
    """For each serial loop that cannot be parallel or vectorized, a note with the first reason."""
    facts = Facts(func)
    for loop, _ in loops_around(func):
        if loop.kind is ForKind.SERIAL and not _has_vectors(loop) and (reason := _reason(facts, loop)):
            yield f"in order: the loop over `{loop.var.name}`, as {reason}"


def _reason(facts: Facts, loop: For) -> str:
    """The first reason why a loop cannot be parallel or vectorized; empty if there is none."""
    from tirlite.analysis.loops.regrouping import updates_in

    if next(prints_in(loop), None) is not None:
        return "it prints"
    if has_check(loop):
        return "an index is checked where it stands"
    first = next(carried(facts, loop), None)
    if first is None:
        return ""
    sink, source = str(first.sink), str(first.source)
    updates = updates_in(loop, facts)
    if isinstance(updates, tuple) and updates:
        if _moves_inside(loop, first.sink):
            return ""
        return f"it combines values into {sink} as written: `tl.reduce` says that they may be regrouped"
    return f"its iterations may meet in {sink}" if sink == source else f"{sink} must come after {source}"


def _moves_inside(loop: For, touch: Touch) -> bool:
    """Whether an access moves with an inner loop: each element is reduced in order, but many elements at once."""
    inside = {each.var for each in statements_of(loop.body, For)}
    indices = touch.node.indices if isinstance(touch.node, Load | Store) else ()
    return mentions(indices, inside)


def _has_vectors(loop: For) -> bool:
    return any(getattr(node, "dtype", loop.var.dtype).lanes > 1 for node in walk(loop))
