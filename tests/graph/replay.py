"""A run of a graph on numbered bytes: whether each tensor is still there whenever it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import tirlite as tl
from tirlite.graph import Call, Expr, If, Let, Program, Tuple, TupleGetItem
from tirlite.graph.memory.problem import Value, Values, values_of

Place = tuple[str, int, int]


class Memory:
    """What lies where: each place that was written holds a stamp until something is written over it."""

    def __init__(self) -> None:
        self.stamps: dict[Place, object] = {}

    def write(self, place: Place, stamp: object) -> None:
        pool, low, high = place
        self.stamps = {p: s for p, s in self.stamps.items() if p[0] != pool or p[2] <= low or high <= p[1]}
        self.stamps[place] = stamp

    def holds(self, place: Place, stamp: object) -> bool:
        return place[1] == place[2] or self.stamps.get(place) == stamp


def replay(function: tl.graph.Function, plan: tl.plan.Plan, choose: Callable[[], bool], *, views: bool = False) -> None:
    """Runs the function, its tensors placed as `plan` says, and fails where one is read that is gone.

    An operand whose place the result takes needs to be there only until the operator begins.
    """
    made = tl.graph.program(function)
    values = values_of(made, views=views)
    where = {name: (place.pool, place.offset) for name, place in plan.placements.items()}
    sizes = {request.id: request.size for request in plan.problem.requests}
    tensors = (value for group in values.of.values() for value in group)
    places = {v: (where[v.id][0], where[v.id][1], where[v.id][1] + sizes[v.id]) for v in tensors}
    run = _Run(made, values, places, choose, set(plan.in_place))
    for param in function.params:
        run.write(param, param.name)
    run.block(made.body.steps)
    run.read(function.body)


class _Run:
    def __init__(
        self,
        made: Program,
        values: Values,
        places: Mapping[Value, Place],
        choose: Callable[[], bool],
        in_place: set[tuple[str, str]],
    ) -> None:
        self.made, self.values, self.places, self.choose, self.in_place = made, values, places, choose, in_place
        self.memory = Memory()
        self.stamp: dict[Expr, list[object]] = {}
        self.count = 0

    def write(self, expr: Expr, name: str) -> None:
        self.count += 1
        self.stamp[expr] = [(name, self.count, i) for i in range(len(self.values.of[expr]))]
        for value, stamp in zip(self.values.of[expr], self.stamp[expr], strict=True):
            self.memory.write(self.places[value], stamp)

    def leaves(self, expr: Expr) -> Iterator[tuple[Value, object]]:
        expr = self.made.resolved(expr)
        yield from zip(self.values.of[expr], self.stamp[expr], strict=True)

    def read(self, expr: Expr, taken: Iterable[Value] = ()) -> None:
        for value, stamp in self.leaves(expr):
            if value not in taken:
                assert self.memory.holds(self.places[value], stamp), f"{value.id} is gone where it is read"

    def block(self, steps: tuple[Expr, ...]) -> None:
        for step in steps:
            if isinstance(step, Tuple):
                self.stamp[step] = [stamp for each in step.fields for _, stamp in self.leaves(each)]
            elif isinstance(step, TupleGetItem):
                self.stamp[step] = [self.stamp[self.made.resolved(step.value)][step.index]]
            elif isinstance(step, If):
                self.read(step.condition)
                block = self.made.branches[step][0 if self.choose() else 1]
                self.block(block.steps)
                self.read(block.result)
                self.write(step, "if")
            elif step in self.values.views:
                self.stamp[step] = [stamp for _, stamp in self.leaves(step.operands[0])]
            elif not isinstance(step, Let):
                operands = step.operands if isinstance(step, Call) else ()
                for operand in operands:
                    self.read(operand)
                self.write(step, "made")
                pairs = [(r, v) for r in self.values.of[step] for each in operands for v, _ in self.leaves(each)]
                handed = [source for result, source in pairs if (result.id, source.id) in self.in_place]
                for operand in operands:
                    self.read(operand, handed)
