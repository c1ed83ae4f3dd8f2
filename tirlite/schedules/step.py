"""What the steps of a schedule have in common: how they are refused, and how a loop is put in another's place."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from numbers import Integral
from typing import TYPE_CHECKING, ClassVar

from tirlite.analysis.dependence import writes
from tirlite.analysis.facts import Facts
from tirlite.diag import KernelError, Message
from tirlite.ir.checked import has_check
from tirlite.ir.dtype import i32, i64
from tirlite.ir.equal import are_equal
from tirlite.ir.expr import (
    GE,
    LT,
    Add,
    And,
    Broadcast,
    Buffer,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Min,
    Mul,
    Ramp,
    Sub,
    Var,
    const,
)
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.printing import prints_in
from tirlite.ir.rewrite import rewrite, substitute
from tirlite.ir.stmt import Allocate, Assert, For, ForKind, IfThenElse, SeqStmt, Stmt, Store
from tirlite.ir.walk import conjuncts, statements_of, walk
from tirlite.rewrite.affine_exprs import folded
from tirlite.rewrite.lanes import iterations
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.schedules.handle import BufferHandle, LoopHandle
from tirlite.sizes import maximum

if TYPE_CHECKING:
    from tirlite.analysis.access import Allocation, Touch
    from tirlite.analysis.dependence import Dependence


class Step(FactsPass):
    """A step of a schedule. It reads as the call of the method of `Schedule` that takes it: its fields are what that is
    given, those in KEYWORDS by name. What is as it is by default is left out.
    """

    __slots__ = ()
    KEYWORDS: ClassVar[frozenset[str]] = frozenset(
        {"along", "at", "axes", "behind", "cast", "masked", "once"}
        | {"out_of", "outside", "padded", "tail", "types", "whole"}
    )

    def __str__(self) -> str:
        given: list[str] = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if value == each.default:
                continue
            if each.name == "axes":
                given.append(f"axes=[{', '.join(map(_spelled, value))}]")
            elif each.name in self.KEYWORDS:
                given.append(f"{each.name}={_spelled(value)}")
            else:
                given += map(_spelled, value if isinstance(value, tuple) else (value,))
        return f"s.{self.name.replace('-', '_')}({', '.join(given)})"

    def on(self, facts: Facts) -> Rewritten:
        """What the step makes of a function. Raises KernelError where it is given anything else than it takes."""
        self.demand_taken()
        return FactsPass.on(self, facts)

    def demand_taken(self) -> None:
        """Raises KernelError where the step is given anything else than it takes."""
        for each in fields(self):  # type: ignore[arg-type]
            kinds = set(_WORD.findall(str(each.type)))
            if kinds <= _TAKEN.keys() and not all(_is_taken(leaf, kinds) for leaf in _leaves(getattr(self, each.name))):
                words = " or ".join(text for kind, (_, text) in _TAKEN.items() if kind in kinds and text)
                raise does_not_fit(self, f"`{each.name}` takes {words}")


_WORD = re.compile(r"\w+")
# What the fields of a step are made of, by the words of their types.
_TAKEN: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((Integral,), "numbers of 64 bits"),
    "str": ((str,), "text"),
    "bool": ((bool,), "True or False"),
    "LoopName": ((str, LoopHandle), "loops"),
    "BufferName": ((str, BufferHandle), "buffers"),
    "None": ((type(None),), "None"),
    "tuple": ((), ""),
}


def _leaves(value: object) -> Iterator[object]:
    """What tuples are made of, at any depth."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, tuple):
            stack += top
        else:
            yield top


def _is_taken(leaf: object, kinds: Iterable[str]) -> bool:
    return any(isinstance(leaf, _TAKEN[each][0]) for each in kinds) and not (
        isinstance(leaf, int) and not i64.min <= leaf <= i64.max
    )


def _spelled(value: object) -> str:
    if isinstance(value, PrimFunc):
        return value.name
    return str(value) if isinstance(value, LoopHandle | BufferHandle) else repr(value)


class StepBreaksOrder(Message):
    """A step of a schedule would run two accesses to one element in another order, or at once.

    Example: `s.parallel("i")` of a loop with `y[i] = y[i - 1] + x[i]`.
    Fix: Leave the loops in their order, or write the kernel so that iterations do not depend on each other; where they
    combine values, say it by `tl.reduce`.
    """

    title = "`{step}` would change results: {later} must come after {earlier}{distance}"
    label = "this one comes later"
    related_label = "this one comes first"


class StepDoesNotFit(Message):
    """A step of a schedule is asked for where the loops do not have the form that it takes.

    Example: `s.reorder("j", "i")`, where the loop over `i` has statements beside the loop over `j`.
    Fix: See what the message asks for; print the schedule's function to see the loops as they are.
    """

    title = "`{step}` does not fit: {reason}"


def does_not_fit(step: object, reason: str) -> KernelError:
    """The error that tells why a step is not possible."""
    error = StepDoesNotFit(str(step), reason).error()
    assert isinstance(error, KernelError)
    return error


def breaks_order(step: object, dependence: Dependence) -> KernelError:
    """The error that names the accesses which forbid a step."""
    steps = ", ".join(map(str, dependence.steps))
    earlier, later = dependence.source, dependence.sink
    error = StepBreaksOrder(
        str(step),
        str(later),
        str(earlier),
        f" ({steps})" if steps else "",
        span=later.stmt.span,
        related=earlier.stmt.span,
    ).error()
    assert isinstance(error, KernelError)
    return error


def with_loop(facts: Facts, loop: For, made: Iterable[Stmt]) -> PrimFunc:
    """The function with these statements in the place of a loop, in normal form."""
    return exchanged(facts.func, {loop: tuple(made)})


def named(loop: For, suffix: str) -> For:
    """The loop over a variable of its own, whose name ends so."""
    var = Var(loop.var.name + suffix)
    return substitute(loop, {loop.var: var}).replaced(var=var)


def demand_temporaries(step: object, facts: Facts, buffers: Iterable[Buffer]) -> list[Allocation]:
    """The allocations of buffers. Raises KernelError for one that is none, or may not be moved and reshaped."""
    from tirlite.analysis.temporaries import temporaries

    known = {each.buffer: each for each in temporaries(facts)}
    for each in (wanted := [*buffers]):
        if each not in known:
            raise does_not_fit(step, f"`{each.name}` is no temporary that is used element by element")
    return [known[each] for each in wanted]


def demand_steady(step: object, facts: Facts, of: Node, stmts: Iterable[Stmt], but: Iterable[Buffer] = ()) -> None:
    """Raises KernelError where statements may write what a node loads, other than from some buffers."""
    from tirlite.analysis.fusion import can_be_reordered

    root = facts.definitions.root
    read = {root(node.buffer) for node in walk(of) if isinstance(node, Load)}.difference(but)
    for stmt in stmts:
        if not isinstance(stmt, Allocate) and not can_be_reordered(stmt):
            raise does_not_fit(step, "what stands in between does more than load and store")
        for store in statements_of(stmt, Store):
            if root(store.buffer) in read:
                raise does_not_fit(step, f"`{store}` writes what is computed from, before all is computed")


def demand_order(
    step: object, facts: Facts, first: For, second: For, behind: int = 0, *, but: Buffer | None = None
) -> None:
    """Raises KernelError where one loop, in which the second runs behind the first, has accesses out of order.

    Those of the first to `but` may be.
    """
    from tirlite.analysis.fusion import against

    for each in against(facts, first, second, behind):
        if each is None:
            raise does_not_fit(step, "how the loops lie to each other is not known, or they access too much")
        if but is None or facts.definitions.root(each.source.buffer) is not but:
            raise breaks_order(step, each)


def carried(facts: Facts, loop: For) -> Iterator[Dependence]:
    """The dependences that a loop carries; none, without a proof, where accesses have its variable along one axis."""
    touched = facts.touched_in(loop).values()
    if not all(_has_own_axis(each, loop) for each in touched if any(map(writes, each))):
        yield from facts.carried_by(loop)


def moved_out(facts: Facts, loop: For, of: Iterable[For]) -> For:
    """The loop as it runs outside of loops that were around it: in order where its iterations are independent in one
    iteration of these, but not across them.
    """
    if loop.kind not in (ForKind.PARALLEL, ForKind.VECTORIZED):
        return loop
    for around in of:
        for each in carried(facts, around):
            if dict(zip(each.loops, each.steps, strict=True))[loop].direction != "=":
                return loop.replaced(kind=ForKind.SERIAL)
    return loop


def demand_independent(step: object, facts: Facts, loop: For) -> None:
    """Raises KernelError, with the accesses, where an iteration of a loop may touch what another one writes."""
    for each in carried(facts, loop):
        raise breaks_order(step, each)


def settled(step: object, made: PrimFunc, around: Sequence[For]) -> PrimFunc:
    """What a step has made, in which reductions that are none any more run in order.

    `around` are the loops around it, whose variables are those of the function that it has made, too. Raises
    KernelError, with the accesses, where workers touch there what others write.
    """
    asked = {loop.var for loop in around if loop.kind in (ForKind.PARALLEL, ForKind.REDUCE)}
    if not asked:
        return made
    from tirlite.analysis.regrouping import updates_in

    facts, in_order = Facts(made), set[Var]()
    for loop in statements_of(made.body, For):
        if loop.var in asked and loop.kind is ForKind.PARALLEL:
            demand_independent(step, facts, loop)
        elif loop.var in asked and not isinstance(updates_in(loop, facts), tuple):
            in_order.add(loop.var)
    return rewrite(made, {For: lambda loop: loop.replaced(kind=ForKind.SERIAL) if loop.var in in_order else loop})


def _has_own_axis(touches: Iterable[Touch], loop: For) -> bool:
    """Whether all accesses have the loop's variable as their index along one axis: that is quickly seen.

    So have those with the variable of a loop inside that goes through blocks of this one's, as `split` makes them, and
    those with the sum of one of these and what is the same in all iterations, and for all accesses.
    """
    own = {loop.var, *(each.var for each in statements_of(loop.body, For) if is_block_of(each, loop))}
    axes: set[tuple[Buffer, int, tuple[object, ...]]] | None = None
    for touch in touches:
        node = touch.node
        if not isinstance(node, Load | Store):
            return False
        behind = ((axis, _behind(index, own, loop)) for axis, index in enumerate(node.indices))
        mine = {(node.buffer, axis, start) for axis, start in behind if start is not None}
        axes = mine if axes is None else axes & mine
    return bool(axes)


def _behind(index: Expr, own: Container[object], loop: For) -> tuple[object, ...] | None:
    """What one of a loop's own variables is added to in an index, equal for what is equal; None for other indices."""
    if index in own:
        return ()
    if not isinstance(index, Add):
        return None
    rest = index.a if index.b in own else index.b if index.a in own else None
    if rest is None:
        return None
    nodes = [*walk(rest)]
    if not all(isinstance(node, Var | IntImm | Add | Sub | Mul | FloorDiv | FloorMod) for node in nodes):
        return None
    if not {loop.var, *defined_in(loop.body)}.isdisjoint(nodes):
        return None
    return tuple(
        [node.value if isinstance(node, IntImm) else node if isinstance(node, Var) else type(node) for node in nodes]
    )


def is_block_of(inner: For, outer: For) -> bool:
    """Whether a loop goes from the variable of another one up to its next value, or to the end of that loop."""
    stop = inner.stop
    return (
        inner.start is outer.var
        and inner.step >= 1
        and isinstance(stop, Min)
        and isinstance(stop.a, Add)
        and stop.a.a is outer.var
        and isinstance(stop.a.b, IntImm)
        and stop.a.b.value == outer.step
        and stop.b is outer.stop
    )


def is_whole(loops: Sequence[For], last: For, lanes: int) -> bool:
    """Whether a loop goes through whole blocks, of multiples of so many iterations, of one of these loops."""
    outer = next((each for each in loops if is_block_of(last, each)), None)
    if outer is None:
        count = iterations(last)
        return isinstance(count, IntImm) and count.value % lanes == 0
    return outer.step % lanes == 0 and is_whole(loops, outer, lanes)


def has_whole_blocks(loops: Sequence[For], last: For, extent: Expr, lanes: int) -> bool:
    """Whether an axis that a loop goes along, by blocks of one of these, has all of the last block, beyond its end."""
    outer = next((each for each in loops if is_block_of(last, each)), None)
    return (
        outer is not None
        and isinstance(outer.start, IntImm)
        and isinstance(extent, IntImm)
        and not any(each % lanes for each in (outer.start.value, outer.step, extent.value))
    )


def mentions(expr: Expr, variables: Iterable[object]) -> bool:
    """Whether an expression depends on one of these variables."""
    wanted = {*variables}
    return any(node in wanted for node in walk(expr))


def defined_in(body: SeqStmt) -> set[object]:
    """The variables and buffers that a body defines."""
    return {getattr(node, name) for node in walk(body) for name in node.DEFINES}


def is_dense(indices: tuple[Expr, ...], var: Var) -> bool:
    """Whether neighbouring values of a variable are neighbouring elements."""
    last, others = indices[-1], indices[:-1]
    while isinstance(last, Add | Sub):
        a, b = (any(node is var for node in walk(each)) for each in (last.a, last.b))
        if a is b or (b and isinstance(last, Sub)):
            return False
        last = last.a if a else last.b
    return last is var and not any(node is var for index in others for node in walk(index))


def is_steady(expr: Expr) -> bool:
    """Whether an expression has one value wherever its variables have theirs: no memory decides."""
    return not any(isinstance(node, Load) for node in walk(expr))


def demand_any_order(step: object, loop: For) -> None:
    """Raises KernelError for a loop that prints, or has an index that is checked where it stands: iterations run in
    order, so that what comes before a fault, or another line, stays before it.
    """
    if next(prints_in(loop), None) is not None:
        raise does_not_fit(step, f"the loop over `{loop.var.name}` prints, so that iterations run in order")
    if has_check(loop):
        reason = (
            f"an index in the loop over `{loop.var.name}` is checked where it stands, so that iterations run in order"
        )
        raise does_not_fit(step, f"{reason}; clamp the index, or promise that it is in bounds by tl.unchecked()")


def demand_plain(step: object, loop: For, *, by_blocks: bool = False) -> None:
    """Raises KernelError for a loop of another step than 1, unless it may go by blocks, or with bounds from memory."""
    if loop.step != 1 and not (by_blocks and loop.step > 1):
        raise does_not_fit(step, f"the loop over `{loop.var.name}` has step {loop.step}")
    if not (is_steady(loop.start) and is_steady(loop.stop)):
        raise does_not_fit(step, f"the bounds of the loop over `{loop.var.name}` are read from memory")


def is_in_bounds(func: PrimFunc, around: Sequence[For], access: Load | Store, where: Expr | None = None) -> bool:
    """Whether all indices of an access are proved to be in bounds inside of these loops, wherever it stands there.

    With `where` it stands only where that holds.
    """
    pairs = [*zip(access.indices, access.buffer.shape, strict=True)]
    known = {loop.var: loop for loop in around}
    given = () if where is None else tuple(conjuncts(where))
    open_pairs = [pair for pair in pairs if not (_is_range_of(*pair, known) or _is_said(*pair, given))]
    if not open_pairs:
        return True
    from tirlite.rewrite.simplify.simplify import Simplify

    conditions = [And(GE(index, const(0, i64)), LT(index, extent)) for index, extent in open_pairs]
    body = SeqStmt(tuple(Assert(condition, "") for condition in conditions))
    if where is not None:
        body = SeqStmt((IfThenElse(where, body),))
    for loop in reversed(around):
        body = SeqStmt((loop.replaced(body=body),))
    return next(statements_of(Simplify()(func.replaced(body=body)).body, Assert), None) is None


def _is_range_of(index: Expr, extent: Expr, known: Mapping[Var, For]) -> bool:
    """Whether an index is the variable of a loop over an axis, or over a block of it: that is quickly seen."""
    loop = known.get(index) if isinstance(index, Var) else None
    if loop is None or loop.step < 1:
        return False
    ends = any(_is_less(each, extent) for each in _least_of(loop.stop))
    start = loop.start
    while isinstance(start, Var) and start in known and known[start].step > 0:
        start = known[start].start
    return ends and isinstance(start, IntImm) and start.value >= 0


def _is_said(index: Expr, extent: Expr, given: Sequence[Expr]) -> bool:
    """Whether it is among what is given that an index is in bounds: a convolution asks that of what it pads."""
    about = [
        each for each in given if is_steady(index) and isinstance(each, GE | LT) and are_equal((each.a,), (index,))
    ]
    starts = any(isinstance(each, GE) and _is_less(const(0, i64), each.b) for each in about)
    return starts and any(isinstance(each, LT) and _is_less(each.b, extent) for each in about)


def _least_of(expr: Expr) -> Iterator[Expr]:
    """What an expression is the least of, at any depth."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Min):
            stack += (node.b, node.a)
        else:
            yield node


def _is_less(one: Expr, other: Expr) -> bool:
    """Whether one is seen to be no more than the other: numbers, or the same."""
    if isinstance(one, IntImm) and isinstance(other, IntImm):
        return one.value <= other.value
    return are_equal((one,), (other,))


def trips(facts: Facts, loop: For) -> Expr | None:
    """The most iterations that a loop has, as an expression that no loop decides; None where it is not known."""
    from tirlite.sizes.poly import varies

    space = facts.space
    start = space.size(loop.start)
    known = [
        count
        for stop in space.operands(loop.stop, Min)
        if not varies(count := space.size(stop) - start) and space.is_exact(count)
    ]
    exact = [count for count in known if isinstance(count, int)]
    if not known:
        return None
    # Of a loop that never runs the bounds may have crossed.
    most = space.extents.expr(maximum(0, min(exact) if exact else known[0]))
    return most if isinstance(most, IntImm) or is_steady(most) else None


def lanes_before(start: Expr, stop: Expr, lanes: int) -> Expr:
    """Which of so many lanes from `start` on lie before `stop`.

    They are compared as numbers of 32 bits, of which as many fit into a vector as of most elements.
    """
    left = Cast(i32, Min(folded(Sub(stop, start)), const(lanes, i64)))
    return LT(Ramp(const(0, i32), const(1, i32), lanes), Broadcast(left, lanes))
