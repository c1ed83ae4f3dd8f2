"""GraphPlanMemory plans the storage of each expression of a function."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from tirlite.diag import GraphError, Message, public
from tirlite.graph.expr import Expr, FunctionNode
from tirlite.graph.memory.problem import problem_of
from tirlite.graph.memory.tokens import MATCH_RANGE, by_tokens
from tirlite.graph.memory.values import Values, values_of
from tirlite.graph.program import program
from tirlite.plan import Plan, Problem, solve
from tirlite.plan.strategy import is_count
from tirlite.record import record
from tirlite.rewrite.options import OptionType
from tirlite.show import shown
from tirlite.sizes import Size


class PartlyAnnotated(Message):
    """Some expressions of a graph have a device, and others have none.

    Example: A graph with `with g.on(2):` around some of its operators.
    Fix: Put all inputs, constants and operators on devices, or none.
    """

    code = "partly-annotated"
    raises = GraphError
    title = "{annotated} out of {all} expressions of `{function}` have a device"
    help = "put all inputs, constants and operators on devices, or none; the first without one is `{first}`"

    function: str
    annotated: int
    all: int
    first: str


@record(eq=False)
class MemoryPlan:
    """The numbers of the storages of each expression, and their devices, one for each tensor in it.

    `sizes` are the bytes of the storages by number. `plan` says the same as a plan of `problem`, which has passed
    `tl.plan.check`: it has the lower bound, the chart and the reasons, and `tl.plan.solve` makes other plans for the
    same problem.
    """

    function: FunctionNode
    storage_ids: Mapping[Expr, tuple[int, ...]]
    device_types: Mapping[Expr, tuple[int, ...]]
    sizes: tuple[Size, ...]
    plan: Plan

    @property
    def total(self) -> Size:
        """Bytes: the sum of the sizes."""
        return self.plan.total

    @property
    def problem(self) -> Problem:
        """What was planned: a request for each tensor, with the time over which it is needed."""
        return self.plan.problem

    def __str__(self) -> str:
        return str(self.plan)


@public
def plan_memory(function: FunctionNode, match_range: int = MATCH_RANGE) -> MemoryPlan:
    """Storages for all tensors of a function, shared where one is no longer needed; functions it calls are left alone.

    A tensor of n bytes takes a free storage of n / match_range to n * match_range bytes, a larger one before a smaller
    one, on its own device; at 0 nothing is shared. Parameters and constants keep storages of their own, and results are
    never overwritten. Raises GraphError for devices on some expressions only, and for negative extents, CallTypeError
    for a match range below zero.
    """
    if match_range is None or not is_count(match_range):
        raise OptionType("match_range", "a whole number, zero or more", shown(match_range)[:60]).error()
    made = program(function)
    values = values_of(made)
    _check_devices(function, values)
    plan = solve(problem_of(made, values), partial(by_tokens, match_range=match_range))
    numbers = {name: number for number, name in enumerate(plan.pools)}
    ids = {expr: tuple(numbers[plan.placements[value.id].pool] for value in group) for expr, group in values.of.items()}
    devices = {expr: tuple(value.device for value in group) for expr, group in values.of.items()}
    sizes = tuple(region.size for region in plan.pools.values())
    return MemoryPlan(function, MappingProxyType(ids), MappingProxyType(devices), sizes, plan)


def _check_devices(function: FunctionNode, values: Values) -> None:
    """Counts the tensors behind each expression, so that one with two counts twice."""
    every = [value for group in values.of.values() for value in group]
    bare = next((value for value in every if not value.device), None)
    annotated = sum(1 for value in every if value.device)
    if annotated and bare is not None:
        raise PartlyAnnotated(function.name, annotated, len(every), bare.id, span=function.span).error()
