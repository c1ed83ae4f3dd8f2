"""Splits a function at extents that a run finds and that nothing bounds: what has them is planned once they are found.

A value of which the most bytes are known over the dims of a call, and over what earlier segments found, is computed in
native code; else it stands in a later segment, to which the extents are dims like any others. A branch, a loop or a
function that finds such extents inside is a step of its own between segments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from tirlite.graph.closing import closed_part, sizes_of
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, Var
from tirlite.graph.loop import LoopFunction
from tirlite.graph.op import Op
from tirlite.graph.program import Block, Program, program
from tirlite.graph.run_dims import RunDim, greatest, run_dims
from tirlite.graph.types import TensorType, tensors
from tirlite.ir import bool_
from tirlite.record import record
from tirlite.sizes import Dim, Size, substitute


@record(eq=False)
class Piece:
    """A part of a function as a function of its own: it takes values, and gives others as a tuple.

    `told` are extents of one more operand, without elements, where the others do not tell them all.
    """

    function: FunctionNode
    takes: tuple[Expr, ...]
    told: tuple[Size, ...]
    gives: tuple[Expr, ...]


@record(eq=False)
class Choice:
    """An If whose branches are functions of their own."""

    step: If
    then: Piece
    other: Piece


@record(eq=False)
class Nested:
    """A call of a function, or of a loop, that is split itself."""

    call: Call


Item: TypeAlias = "Piece | Choice | Nested"


@record(eq=False)
class Segments:
    """A function in parts, in the order in which they run."""

    made: Program
    items: tuple[Item, ...]
    results: tuple[Expr, ...]
    kept: tuple[Expr, ...]


def segments(made: Program, keep: Collection[Expr] = ()) -> Segments | None:
    """The function of a program in parts; None where all of it is planned before a run.

    What is to be kept is given by one of the parts, as the results are.
    """
    levels = _Levels(made)
    if not levels.hosted and not any(levels.of.values()):
        return None
    results = tuple(_leaves(made, made.function.body))
    items: list[Item] = []
    users = _users(levels, (*results, *keep))
    for level, steps in enumerate(levels.native()):
        inside = [*steps, *(each for step in steps for each in levels.inner(step))]
        gives = tuple(step for step in steps if users.get(step, level) != level)
        if gives:
            items.append(_piece(f"{made.function.name}_{level}", made, gives, inside))
        items += [_hosted(levels, step) for step in levels.hosted if levels.of[step] == level]
    return Segments(made, tuple(items), results, tuple(step for step in levels.steps if step in keep))


def _is_in_segments(step: Call | If) -> bool:
    """Whether a step gives extents that nothing bounds, or runs a function that is split itself."""
    if isinstance(step, If) or isinstance(step.op, Op):
        return bool(step.tells)
    inner = step.op.step if isinstance(step.op, LoopFunction) else step.op
    return bool(step.tells) or segments(program(inner)) is not None


def _leaves(made: Program, expr: Expr) -> Iterator[Expr]:
    """The values of tensors that one value is made of, where it is a tuple of such."""
    value = made.resolved(expr)
    if isinstance(value, Tuple):
        for each in value.fields:
            yield from _leaves(made, each)
    else:
        yield value


def _users(levels: _Levels, results: Iterable[Expr]) -> dict[Expr, int]:
    """For each value that is used outside of its segment another number than that of its level."""
    found: dict[Expr, int] = dict.fromkeys(results, -1)
    for step in levels.steps:
        for operand in levels.operands(step):
            if step in levels.hosted or levels.of.get(operand) != levels.of[step]:
                found[operand] = -1
    return found


class _Levels:
    """The segment of each step: the first in which all that it needs is known. `hosted` ones run behind theirs."""

    def __init__(self, made: Program) -> None:
        self.made = made
        self.of: dict[Expr, int] = {}
        self.hosted: dict[Expr, None] = {}
        self.steps = [step for step in made.body.steps if not isinstance(step, Constant | Let)]
        self._known: dict[RunDim, Size] = {}
        for step in self.steps:
            self._put(step)

    def native(self) -> list[list[Expr]]:
        """The steps of each segment that are native code, in order."""
        found: list[list[Expr]] = [[] for _ in range(1 + max(self.of.values(), default=0))]
        for step in self.steps:
            if step not in self.hosted:
                found[self.of[step]].append(step)
        return found

    def inner(self, step: Expr) -> list[Expr]:
        """What is computed in the branches of a step."""
        found: list[Expr] = []
        waiting = [step]
        while waiting:
            top = waiting.pop()
            if isinstance(top, If):
                inside = [each for block in self.made.branches[top] for each in block.steps]
                found += inside
                waiting += inside
        return found

    def operands(self, step: Expr) -> Iterator[Expr]:
        """What a step, and what is computed in its branches, needs from before."""
        inside = self.inner(step)
        own = {step, *inside}
        for each in (step, *inside):
            for operand in each.operands:
                value = self.made.resolved(operand)
                if value not in own:
                    yield value

    def _put(self, step: Expr) -> None:
        parts = [step, *self.inner(step)]
        level = max((self._after(each) for each in self.operands(step)), default=0)
        if any(isinstance(part, Call | If) and _is_in_segments(part) for part in parts):
            self.hosted[step] = None
        if self._is_open(parts, level):
            sources = [self.made.resolved(dim.source) for part in parts for dim in run_dims(sizes_of(part))]
            level = max([level, *(self._after(each) + 1 for each in sources if self._is_before(each))])
            if self._is_open(parts, level):
                self.hosted[step] = None
        self.of[step] = level

    def _is_before(self, source: Expr) -> bool:
        """Whether a value is there before a step, and not computed in a branch of it."""
        return source in self.of or isinstance(source, Var | Constant)

    def _after(self, value: Expr) -> int:
        """The first segment in which a value can be used."""
        return self.of.get(value, 0) + (value in self.hosted)

    def _is_open(self, parts: Sequence[Expr], level: int) -> bool:
        """Whether the most elements of some value are not known when a segment begins."""
        extents = [extent for part in parts for of in tensors(part.type) for extent in of.shape]
        found = run_dims(extents)
        if not found:
            return False
        known = {}
        for dim in found:
            source = self.made.resolved(dim.source)
            if self._is_before(source) and self._after(source) < level:
                known[dim] = self._known.setdefault(dim, Dim(dim.name, 0, dim.max) + 0)
        return any(greatest(substitute(extent, known)) is None for extent in extents)


def _hosted(levels: _Levels, step: Expr) -> Item:
    if isinstance(step, Call):
        return Nested(step)
    assert isinstance(step, If)
    then, other = (_branch(levels, step, number) for number in range(2))
    return Choice(step, then, other)


def _branch(levels: _Levels, step: If, number: int) -> Piece:
    block: Block = levels.made.branches[step][number]
    inside = [each for own in block.steps for each in (own, *levels.inner(own))]
    return _piece(f"{levels.made.function.name}_branch", levels.made, (block.result,), inside)


def _piece(name: str, made: Program, gives: tuple[Expr, ...], inside: Sequence[Expr]) -> Piece:
    part = closed_part(gives, frozenset(inside), made.bound)
    params, extents = part.params, part.untold()
    told = tuple(map(part.outer, extents))
    if extents:
        params += (Var("told", TensorType((*extents, 0), bool_)),)
    return Piece(FunctionNode(name, params, part.body, span=made.function.span), part.outside, told, gives)
