"""Join makes one loop of several consecutive ones, in which the later ones run some iterations late."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.integers.array_bounds import stays_exact
from tirlite.analysis.integers.index_space import IndexSpace
from tirlite.analysis.loops.fusion import can_be_reordered
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import LE, LT, And, Call, Expr, Load, Max, Min, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import substitute
from tirlite.ir.shapes import is_sized_by_load
from tirlite.ir.stmt import Allocate, For, ForKind, IfThenElse, Let, SeqStmt, Stmt
from tirlite.ir.walk import is_steady, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import shifted
from tirlite.rewrite.normalize import exchanged
from tirlite.rewrite.simplify.simplify import simplified
from tirlite.schedules.handle import LoopName, block_of, loop_named
from tirlite.schedules.order import demand_any_order, demand_order
from tirlite.schedules.step import ScheduleStep, demand_plain, does_not_fit
from tirlite.sizes import Size
from tirlite.sizes.unknown import ends as ends_of, is_nonnegative


@record
class Join(ScheduleStep):
    """Joins consecutive loops into one: each iteration runs the first, then the others, delayed by `behind` iterations.

    The loops are in one block, with only allocations and lets between them, and have step 1. Where their ranges differ,
    conditions guard the parts. A branch that contains only one of them moves inside of its loop. `behind` is one delay
    for all others, or one for each. Refused if that reverses a dependence.
    """

    loops: tuple[LoopName, ...]
    behind: int | tuple[int, ...] = 0

    def rewritten(self, facts: Facts) -> PrimFunc:
        facts = _with_conditions_inside(facts, [loop_named(facts.func, each) for each in self.loops])
        loops = [loop_named(facts.func, each) for each in self.loops]
        others = loops[1:]
        behind = self.behind if isinstance(self.behind, tuple) else (self.behind,) * len(others)
        if not others or len(behind) != len(others):
            raise does_not_fit(self, "there are two loops or more, with a distance for each behind the first")
        self._demand_neighbours(facts.func, loops)
        joined = Joined.of(loops[0])
        for each, by in zip(others, behind, strict=True):
            joined = joined.with_loop(self, facts, each, by)
        return joined.placed(facts.func)

    def _demand_neighbours(self, func: PrimFunc, loops: Sequence[For]) -> None:
        stmts = block_of(func, loops[0]).stmts
        end = stmts.index(loops[-1]) + 1 if loops[-1] in stmts else 0
        if [each for each in stmts[stmts.index(loops[0]) : end] if not can_be_passed(each)] != loops:
            raise does_not_fit(self, "the loops do not follow each other, with allocations and lets alone between them")


def _with_conditions_inside(facts: Facts, loops: Sequence[For]) -> Facts:
    """Facts of the function after moving each branch that contains only one of the loops into that loop."""
    moved: dict[Stmt, tuple[Stmt, ...]] = {}
    for branch in statements_of(facts.func.body, IfThenElse):
        only = branch.then_body.stmts[0] if len(branch.then_body.stmts) == 1 else None
        if isinstance(only, For) and only in loops and not branch.else_body.stmts and is_steady(branch.condition):
            moved[branch] = (only.replaced(body=SeqStmt((branch.replaced(then_body=only.body),))),)
    return Facts(exchanged(facts.func, moved)) if moved else facts


def can_be_passed(stmt: Stmt) -> bool:
    """Whether a statement between two loops may be moved before both."""
    if isinstance(stmt, Allocate):
        return not is_sized_by_load(stmt.buffer)
    return isinstance(stmt, Let) and is_steady(stmt.value)


@record(eq=False)
class Joined:
    """A joined loop, and its original loops with their delays."""

    loop: For
    parts: tuple[tuple[For, int], ...]
    is_guarded: bool = False  # whether the last part, or what comes before it, runs under a condition

    @classmethod
    def of(cls, first: For) -> Joined:
        return cls(first, ((first, 0),))

    def placed(self, func: PrimFunc) -> PrimFunc:
        """The function with the joined loop in place of the original ones."""
        loops = [loop for loop, _ in self.parts]
        return exchanged(func, {**dict.fromkeys(loops, ()), loops[-1]: (self.loop,)})

    def with_loop(self, step: object, facts: Facts, second: For, behind: int) -> Joined:
        """The joined loop after adding `second`, `behind` iterations late. Raises KernelError if refused."""
        for loop in (self.parts[0][0], second):
            demand_plain(step, loop)
            demand_any_order(step, loop)
            if not can_be_reordered(loop):
                raise does_not_fit(step, f"the loop over `{loop.var.name}` does more than load and store")
        if self.loop.kind is not second.kind or second.kind is ForKind.REDUCE:
            raise does_not_fit(step, "both loops are a `range`, or both are parallel, and none is a reduction")
        if behind < 0 or (behind and second.kind is not ForKind.SERIAL):
            raise does_not_fit(step, "the second loop runs no iterations ahead, nor behind in parallel")
        for part, already in self.parts:
            demand_order(step, facts, part, second, behind - already)
        made = _one_loop(self.loop, second, behind, facts.space)
        if made is None:
            raise does_not_fit(step, "the bounds of the loops are read from memory, or may wrap around")
        return Joined(made[0], (*self.parts, (second, behind)), made[1])


def _one_loop(first: For, second: For, shift: int, space: IndexSpace) -> tuple[For, bool] | None:
    """A loop in which each iteration of `second` runs `shift` iterations after the same one of `first`.

    The flag says whether a part runs under a condition, since the range covers both loops. None if a bound may change
    or overflow when shifted.
    """
    ends = ((first.start, 0), (first.stop, 0), (second.start, shift), (second.stop, shift))
    if any(isinstance(node, Load | Call) for end, _ in ends for node in walk(end)):
        return None
    bounds: list[tuple[Expr, Size]] = []
    for bound, by in ends:
        size = space.size(bound) + by
        if not (isinstance(bound, Var) and by == 0) and not stays_exact(*ends_of(size)):
            return None
        bounds.append((shifted(bound, by), size))
    (start, low), (stop, high), (later, behind), (end, after) = bounds
    from_first, from_second = _is_least(low, behind), _is_least(behind, low)
    to_first, to_second = _is_least(after, high), _is_least(high, after)
    least = start if from_first else later if from_second else Min(start, later)
    most = stop if to_first else end if to_second else Max(stop, end)
    # If the range grows, a new variable: facts about the first loop's one no longer hold.
    var = first.var if least is first.start and most is first.stop else Var(first.var.name, first.var.dtype)
    mine = first.body if var is first.var else substitute(first.body, {first.var: var})
    others = substitute(second.body, {second.var: shifted(var, -shift)})
    when = _condition(var, None if from_first else start, None if to_first else stop)
    then = _condition(var, None if from_second else later, None if to_second else end)
    body = _one_body(_guarded(mine, when), _guarded(simplified(others) if shift else others, then))
    return first.replaced(var=var, start=least, stop=most, body=body), not (when is then is None)


def _is_least(a: Size, b: Size) -> bool:
    """Whether `a` is proved to be at most `b`."""
    low = ends_of(b - a)[0]
    return low is not None and is_nonnegative(low)


def _condition(var: Expr, start: Expr | None, stop: Expr | None) -> Expr | None:
    above = None if start is None else LE(start, var)
    below = None if stop is None else LT(var, stop)
    if above is None:
        return below
    return above if below is None else And(above, below)


def _guarded(body: SeqStmt, condition: Expr | None) -> SeqStmt:
    if condition is None:
        return body
    only = body.stmts[0] if len(body.stmts) == 1 else None
    if isinstance(only, IfThenElse) and not only.else_body.stmts:
        return SeqStmt((only.replaced(condition=And(condition, only.condition)),))
    return SeqStmt((IfThenElse(condition, body),))


def _one_body(mine: SeqStmt, others: SeqStmt) -> SeqStmt:
    """The statements of both, merging two adjacent branches that have the same condition, unless it reads memory."""
    last, following = (*mine.stmts[-1:], None)[0], (*others.stmts[:1], None)[0]
    both = SeqStmt((mine, others))
    if not (isinstance(last, IfThenElse) and isinstance(following, IfThenElse)):
        return both
    is_fixed = not any(isinstance(node, Load | Call) for node in walk(last.condition))
    if not is_fixed or last.else_body.stmts or following.else_body.stmts:
        return both
    if not structural_equal(last.condition, following.condition):
        return both
    joined = last.replaced(then_body=SeqStmt((last.then_body, following.then_body)))
    return SeqStmt((*mine.stmts[:-1], joined, *others.stmts[1:]))
