"""Finds the tensors of a program that need storage: which expression stands for which of them.

A parameter, a constant and a call have tensors of their own. A Let is an alias, a tuple joins the tensors of its
fields, a projection picks among them. An If has tensors of its own too; where the result of a branch is computed in
that branch, it is computed right there, else it is copied when the branch ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeGuard

from tirlite.graph.expr import Call, Constant, Expr, If
from tirlite.graph.op import Op
from tirlite.graph.program import Block, Program
from tirlite.graph.run_dims import most_of
from tirlite.graph.types import NegativeGraphExtent, TensorType, all_nonnegative, tensors
from tirlite.record import record
from tirlite.sizes import Size


@record(eq=False)
class Value:
    """A tensor that needs `size` bytes on a device. A pinned one, a parameter or a constant, keeps them for ever."""

    id: str
    size: Size
    device: int
    pinned: bool = False


@record(frozen=False, eq=False)
class Values:
    """The tensors behind each expression, and in which ones the branches of an If leave their results.

    `copied[block]` holds (from, to) for each tensor that is copied when the block, a branch, ends. `views` are calls
    that stand for the tensors of their operands.
    """

    of: dict[Expr, tuple[Value, ...]] = field(default_factory=dict)
    views: frozenset[Expr] = frozenset()
    copied: dict[Block, tuple[tuple[Value, Value], ...]] = field(default_factory=dict)

    def args(self, call: Call) -> Iterator[Value]:
        """The tensors that a call reads, once for each time that it mentions them."""
        return (value for arg in call.args for value in self.of[arg])

    def is_computed(self, step: Expr) -> TypeGuard[Call]:
        """Whether it is a call that writes tensors of its own."""
        return isinstance(step, Call) and step not in self.views


def values_of(made: Program, *, views: bool = False) -> Values:
    """The tensors of a program; with `views`, calls that only give their operand another shape have none of their own.

    Raises GraphError for a tensor with a negative extent.
    """
    calls = [step for step in made.steps() if isinstance(step, Call)] if views else []
    found = Values(views=frozenset(call for call in calls if call.is_view))
    names = UniqueNames()
    for param in made.function.params:
        found.of[param] = _new(param, param.name, names, pinned=True)
    targets = _targets(made, found.views)
    for step in made.steps():
        if isinstance(step, Call | Constant | If) and step not in found.views:
            found.of[step] = _made(step, found, names, targets)
    for expr in (*made.steps(), *made.bound):
        if expr not in found.of:
            parts = made.parts[expr.operands[0] if expr in found.views else expr]
            found.of[expr] = tuple(found.of[step][number] for step, number in parts)
    for step, branches in made.branches.items():
        for block in branches:
            pairs = zip(found.of[made.resolved(block.result)], found.of[step], strict=True)
            found.copied[block] = tuple((source, target) for source, target in pairs if source is not target)
    return found


def _made(
    step: Call | Constant | If, found: Values, names: UniqueNames, targets: Mapping[Expr, If]
) -> tuple[Value, ...]:
    # An If comes before what its branches compute.
    if step in targets:
        return found.of[targets[step]]
    return _new(step, step.name or _kind(step), names, pinned=isinstance(step, Constant))


def _kind(step: Expr) -> str:
    if isinstance(step, Call):
        return step.op.name if isinstance(step.op, Op) else step.op.name or "call"
    return "constant" if isinstance(step, Constant) else "if"


def _targets(made: Program, views: frozenset[Expr]) -> dict[Expr, If]:
    """The calls and Ifs that compute the result of a branch that they stand in, and whose result that is.

    A result that is a tuple or a projection is copied, as is one that comes from outside or from another device.
    """
    targets: dict[Expr, If] = {}
    for step, branches in made.branches.items():
        for block in branches:
            result = made.resolved(block.result)
            while result in views:
                result = made.resolved(result.operands[0])
            if isinstance(result, Call | If) and result.device == step.device and result in block.steps:
                targets[result] = step
    return targets


def _new(expr: Expr, name: str, names: UniqueNames, *, pinned: bool) -> tuple[Value, ...]:
    parts = tensors(expr.type)
    ids = [names.unique(name)]
    if not isinstance(expr.type, TensorType):
        ids = [names.unique(f"{ids[0]}.{number}") for number in range(len(parts))]
    for each, of in zip(ids, parts, strict=True):
        if not all_nonnegative(of):
            raise NegativeGraphExtent(each, str(of), span=expr.span).error()
    return tuple(Value(each, most_of(of).bytes, expr.device, pinned) for each, of in zip(ids, parts, strict=True))


class UniqueNames:
    """The names that are taken, each with the last number that stands behind it in another."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, from now on taken, with a number behind it where it was taken before."""
        made = name
        while made in self._last:
            self._last[name] += 1
            made = f"{name}_{self._last[name]}"
        self._last[made] = 0
        return made
