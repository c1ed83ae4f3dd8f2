"""GraphPlanMemory plans the storage of each expression of a function: a tensor takes a storage whole, in order of time.

Source: Relay, graph_mem_alloca.cc; branches and symbolic sizes are ours.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from tirlite.diag import GraphMessage, public
from tirlite.graph.expr import Expr, FunctionNode
from tirlite.graph.extents import is_equal
from tirlite.graph.memory.problem import Values, problem_of, values_of
from tirlite.graph.program import program
from tirlite.plan import Plan, Problem, Request, solve
from tirlite.plan.request import Interval
from tirlite.plan.strategy import is_count
from tirlite.record import record
from tirlite.rewrite.options import OptionType
from tirlite.show import shown
from tirlite.sizes import Size, is_at_most, maximum

# The default for how many times larger or smaller than a request a storage may be.
MATCH_RANGE = 16


@record(frozen=False, eq=False)
class Token:
    """A storage, and its bytes."""

    size: Size


@record(frozen=False)
class FreeList:
    """The free storages of one device.

    A request of n bytes takes one of constant size within [n // match_range, n * match_range]: the smallest of those
    that are large enough, else the largest of the others, which grows. Symbolic sizes have no such window: an equal
    storage is taken first, then one that is proved to be large enough, then one proved to be smaller, and at last the
    one that has been free for longest; it then has the maximum of both sizes, which is never more than the two apart.
    """

    match_range: int = MATCH_RANGE
    constant: list[tuple[int, int, Token]] = field(default_factory=list)
    symbolic: list[Token] = field(default_factory=list)
    clock: int = 0

    def put(self, token: Token) -> None:
        if isinstance(token.size, int):
            self.clock += 1
            insort(self.constant, (token.size, self.clock, token))
        else:
            self.symbolic.append(token)

    def remove(self, token: Token) -> None:
        """Removes a storage that is needed again."""
        self.constant = [each for each in self.constant if each[2] is not token]
        self.symbolic = [each for each in self.symbolic if each is not token]

    def take(self, size: Size, suits: Callable[[Token], bool]) -> Token | None:
        """Removes and returns a storage for a request, enlarged to its size if needed; None if none fits.

        Only storages for which `suits` is true are considered.
        """
        if self.match_range == 0:
            return None
        place = self._constant(size, suits) if isinstance(size, int) else self._symbolic(size, suits)
        if place is None:
            return None
        token = place.pop()
        if token.size != size:
            token.size = maximum(token.size, size)
        return token

    def _constant(self, size: int, suits: Callable[[Token], bool]) -> _FreeEntry | None:
        begin = bisect_left(self.constant, (size // self.match_range,))
        middle = bisect_left(self.constant, (size,))
        end = bisect_right(self.constant, size * self.match_range, key=lambda entry: entry[0])
        for place in (*range(middle, end), *range(middle - 1, begin - 1, -1)):
            if suits(self.constant[place][2]):
                return _FreeEntry(self, place)
        return self._first(lambda token: is_at_most(size, token.size), suits)

    def _symbolic(self, size: Size, suits: Callable[[Token], bool]) -> _FreeEntry | None:
        found = self._first(lambda token: token.size == size, suits)
        found = found or self._first(lambda token: is_equal(token.size, size), suits)
        found = found or self._first(lambda token: is_at_most(size, token.size), suits)
        if found is not None:
            return found
        for place, (room, _, token) in enumerate(self.constant):
            if suits(token) and is_at_most(size, room):
                return _FreeEntry(self, place)
        smaller = self._first(lambda token: is_at_most(token.size, size), suits)
        return smaller or self._first(lambda _: True, suits)

    def _first(self, fits: Callable[[Token], bool], suits: Callable[[Token], bool]) -> _FreeEntry | None:
        """The place of the symbolic storage that has been free for longest among those that fit."""
        for place, token in enumerate(self.symbolic):
            if suits(token) and fits(token):
                return _FreeEntry(self, len(self.constant) + place)
        return None


class _FreeEntry(NamedTuple):
    """An entry of the free list: symbolic storages come after those of constant size."""

    free: FreeList
    number: int

    def pop(self) -> Token:
        before = len(self.free.constant)
        if self.number < before:
            return self.free.constant.pop(self.number)[2]
        return self.free.symbolic.pop(self.number - before)


def by_tokens(problem: Problem, match_range: int = MATCH_RANGE) -> Plan:
    """The plan in which each tensor takes a free storage when it is first written, until its last use.

    A result is placed before its operands are released, so nothing is computed in place. A tensor that only one branch
    of an If needs does not live in the other: there its storage is free for tensors that die before it is needed again.
    """
    events = [(low, 1, number) for number, each in enumerate(problem.requests) for low, _ in each.live]
    events += [(high, 0, number) for number, each in enumerate(problem.requests) for _, high in each.live]
    free: dict[str, FreeList] = defaultdict(partial(FreeList, match_range))
    awaited: dict[Token, list[Interval]] = defaultdict(list)  # the later lifetimes of tensors placed in a storage
    taken: dict[int, Token] = {}
    for _, begins, number in sorted(events):
        request = problem.requests[number]
        those = free[request.memories[0]]
        if not begins:
            those.put(taken[number])
        elif number in taken:
            those.remove(taken[number])
        else:
            taken[number] = those.take(request.size, partial(_suits, awaited, request)) or Token(request.size)
            awaited[taken[number]] += request.live[1:]
    numbers: dict[Token, int] = {}
    for number in range(len(problem.requests)):
        numbers.setdefault(taken[number], len(numbers))
    places = {each.id: (f"storage {numbers[taken[number]]}", 0) for number, each in enumerate(problem.requests)}
    return Plan.of(problem, places, "graph")


def _suits(awaited: Mapping[Token, list[Interval]], request: Request, token: Token) -> bool:
    """Whether no earlier tensor of the storage lives again during the request."""
    return not any(low < end and start < high for low, high in awaited[token] for start, end in request.live)


class PartlyAnnotated(GraphMessage):
    """Some expressions of a graph have a device, and others have none.

    Example: A graph with `with g.on(2):` around some of its operators.
    Fix: Put all inputs, constants and operators on devices, or none.
    """

    title = "{annotated} out of {all} expressions of `{function}` have a device"
    help = "put all inputs, constants and operators on devices, or none; the first without one is `{first}`"


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
        """The planned problem: a request for each tensor, with its lifetime."""
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
    """Raises GraphError if only some tensors have a device; an expression with two tensors counts twice."""
    every = [value for group in values.of.values() for value in group]
    bare = next((value for value in every if not value.device), None)
    annotated = sum(1 for value in every if value.device)
    if annotated and bare is not None:
        raise PartlyAnnotated(annotated, len(every), function.name, bare.id, span=function.span).error()
