"""Lists the expressions of a function in the order in which they are computed.

The order is that of a visit depth first, operands from left to right, each expression once. An expression that only
one branch of an `If` needs is computed in that branch; one that is needed in both, or outside as well, before the `If`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tirlite.diag import GraphMessage
from tirlite.graph.demand import demand_function
from tirlite.graph.expr import Constant, Expr, FunctionNode, If, Let, Tuple, TupleGetItem, Var, operands_first
from tirlite.graph.run_dims import RunDim, run_dims, with_limits
from tirlite.graph.types import tensors
from tirlite.record import record, replace


class UnboundGraphVar(GraphMessage):
    """A graph uses a variable where it has no value.

    Example: A function whose body uses a Var that is not a parameter of it.
    """

    title = "`{name}` has no value in `{function}`"
    label = "used here"
    help = "make it a parameter, or bind it by a Let around its uses"


class BoundTwice(GraphMessage):
    """A variable of a graph gets two values: it stands twice among the parameters, or in two Lets.

    Example: `FunctionNode("f", (x, x), x)`.
    """

    code = "graph-var-bound-twice"
    title = "`{name}` is bound twice in `{function}`"
    help = "make a Var of its own for each parameter and each Let"


@record(eq=False)
class Block:
    """Expressions in the order of computation, each after its operands, without variables."""

    steps: tuple[Expr, ...]
    result: Expr


class Branches(NamedTuple):
    """The blocks of an If."""

    then: Block
    other: Block


class Part(NamedTuple):
    """A tensor of a step - a parameter, a constant, a call or an If - by its number, from left to right."""

    step: Expr
    number: int


@record(eq=False)
class Program:
    """A function as a sequence. `branches` holds the blocks of each If, `bound` the value of each variable of a Let.

    `parts` are the tensors in the value of each expression: Lets, tuples and projections are seen through.
    """

    function: FunctionNode
    body: Block
    branches: Mapping[If, Branches]
    bound: Mapping[Var, Expr]
    parts: Mapping[Expr, tuple[Part, ...]]

    def resolved(self, expr: Expr) -> Expr:
        """The expression whose value this one is: variables of Lets, and Lets, seen through."""
        while True:
            if isinstance(expr, Let):
                expr = expr.body
            elif isinstance(expr, Var) and expr in self.bound:
                expr = self.bound[expr]
            else:
                return expr

    def mapped(self, function: Callable[[Block], Block]) -> Program:
        """The program with other blocks, of the body and of branches."""
        branches = {step: Branches(*map(function, pair)) for step, pair in self.branches.items()}
        return replace(self, body=function(self.body), branches=MappingProxyType(branches))

    def steps(self) -> Iterator[Expr]:
        """All expressions in program order: those of branches where their If stands, the then-branch first."""
        return self.within(self.body)

    def within(self, block: Block) -> Iterator[Expr]:
        """Those of a block, in the same order."""
        stack = [iter(block.steps)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            if isinstance(step, If):
                stack.append(iter((*self.branches[step].then.steps, *self.branches[step].other.steps)))
                yield step
            else:
                yield step


def extents_found(made: Program) -> dict[Expr | Block, tuple[RunDim, ...]]:
    """The run-time extents, by the step after which they and their limits are known.

    That may be a constant or a parameter too, or the block of a branch that alone uses the extents.
    """
    above, places = _places(made)
    users: dict[RunDim, Block] = {}
    for step, (block, _) in places.items():
        for dim in run_dims(with_limits(step.sizes)):
            users[dim] = _common(above, users.get(dim, block), block)
    last: dict[RunDim, Expr | Block] = {}
    found: dict[Expr | Block, list[RunDim]] = {}
    for dim, block in users.items():
        known = [made.resolved(dim.source), *(last[each] for each in run_dims(dim.limits))]
        steps = [each for each in known if isinstance(each, Expr) and each in places]
        source = max(steps, key=lambda each: places[each][1], default=known[0])
        home = places[source][0] if isinstance(source, Expr) and source in places else made.body
        last[dim] = source if home is block else block
        found.setdefault(last[dim], []).append(dim)
    return {place: tuple(dims) for place, dims in found.items()}


def _places(made: Program) -> tuple[dict[Block, Block], dict[Expr, tuple[Block, int]]]:
    """The block around each block, and for each step its block and its number in program order."""
    above: dict[Block, Block] = {}
    places: dict[Expr, tuple[Block, int]] = {}
    stack = [(made.body, iter(made.body.steps))]
    while stack:
        block, steps = stack[-1]
        step = next(steps, None)
        if step is None:
            stack.pop()
            continue
        places[step] = block, len(places)
        if isinstance(step, If):
            for each in reversed(made.branches[step]):
                above[each] = block
                stack.append((each, iter(each.steps)))
    return above, places


def _common(above: Mapping[Block, Block], a: Block, b: Block) -> Block:
    """The innermost block around both."""
    around = {a}
    while a in above:
        around.add(a := above[a])
    while b not in around:
        b = above[b]
    return b


def program(function: FunctionNode) -> Program:
    """The program of a function, without looking into functions that it calls.

    Raises GraphError for a variable without a value, and for one with two.
    """
    demand_function(function)
    order = operands_first(function.body)
    bound = _bound(function, order)
    regions = _Regions(function, order)
    _check_uses(function, order, bound, regions)
    blocks: list[list[Expr]] = [[] for _ in regions.parents]
    for expr in order:
        if not isinstance(expr, Var):
            blocks[regions.of[expr]].append(expr)
    branches = {
        expr: Branches(Block(tuple(blocks[first]), expr.then), Block(tuple(blocks[first + 1]), expr.other))
        for expr, first in regions.branches.items()
    }
    body = Block(tuple(blocks[0]), function.body)
    parts = MappingProxyType(_parts(function, order, bound))
    return Program(function, body, MappingProxyType(branches), MappingProxyType(bound), parts)


def _bound(function: FunctionNode, order: list[Expr]) -> dict[Var, Expr]:
    bound: dict[Var, Expr] = {}
    params: set[Var] = set()
    for param in function.params:
        if param in params:
            raise BoundTwice(param.name, function.name, span=param.span).error()
        params.add(param)
    for expr in order:
        if isinstance(expr, Let):
            if expr.var in bound or expr.var in params:
                raise BoundTwice(expr.var.name, function.name, span=expr.span).error()
            bound[expr.var] = expr.value
    return bound


def _parts(function: FunctionNode, order: list[Expr], bound: Mapping[Var, Expr]) -> dict[Expr, tuple[Part, ...]]:
    found: dict[Expr, tuple[Part, ...]] = {}
    for expr in (*function.params, *order):
        if expr in found:
            continue
        if isinstance(expr, Tuple):
            found[expr] = tuple(part for each in expr.fields for part in found[each])
        elif isinstance(expr, TupleGetItem):
            found[expr] = found[expr.value][expr.tensor_slice]
        elif isinstance(expr, Let):
            found[expr] = found[expr.body]
        elif isinstance(expr, Var) and expr in bound:
            found[expr] = found[bound[expr]]
        else:
            found[expr] = tuple(Part(expr, number) for number, _ in enumerate(tensors(expr.type)))
    return found | {var: found[value] for var, value in bound.items()}


def _check_uses(function: FunctionNode, order: list[Expr], bound: Mapping[Var, Expr], regions: _Regions) -> None:
    """Raises GraphError for a use of a variable that has no value there, or has none yet."""
    params = frozenset(function.params)
    computed: set[Expr] = set()
    for user in order:
        for var in user.operands if user is not function.body else (*user.operands, user):
            if not isinstance(var, Var) or var in params:
                continue
            home = regions.lets.get(var)
            if bound.get(var) not in computed or home is None or regions.common(home, regions.of[user]) != home:
                raise UnboundGraphVar(var.name, function.name, span=user.span).error()
        computed.add(user)


class _Regions:
    """The region of each expression: 0 is the body of the function, each If opens two more."""

    def __init__(self, function: FunctionNode, order: list[Expr]) -> None:
        self.parents = [0]
        self.depths = [0]
        self.of: dict[Expr, int] = {function.body: 0}
        self.branches: dict[If, int] = {}
        self.lets: dict[Var, int] = {}
        for expr in reversed(order):
            if isinstance(expr, Var):
                continue
            region = self.of[expr]
            if isinstance(expr, Let):
                self.lets[expr.var] = region
            if isinstance(expr, If):
                first = self.branches[expr] = len(self.parents)
                self.parents += [region, region]
                self.depths += [self.depths[region] + 1] * 2
                self._use(expr.condition, region)
                for source in expr.sources:
                    self._use(source, region)
                self._use(expr.then, first)
                self._use(expr.other, first + 1)
            elif isinstance(expr, Constant):
                self.of[expr] = 0
            else:
                for operand in expr.operands:
                    self._use(operand, region)

    def _use(self, expr: Expr, region: int) -> None:
        if isinstance(expr, Var):
            return
        known = self.of.get(expr)
        self.of[expr] = region if known is None else self.common(known, region)

    def common(self, a: int, b: int) -> int:
        """The innermost region that holds both."""
        while a != b:
            if self.depths[a] >= self.depths[b]:
                a = self.parents[a]
            else:
                b = self.parents[b]
        return a
