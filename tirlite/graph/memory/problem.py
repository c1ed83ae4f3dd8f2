"""States the planning problem of a function's tensors: their lifetimes, and the operands that results may overwrite.

Time counts the calls in program order; an If takes one point for its decision, and each branch one for the copies at
its end. A tensor lives from where it is written to its last use on each path: what only one branch needs does not live
in the other one, which stands behind it in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TypeGuard

from tirlite.diag import public
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If
from tirlite.graph.extents import is_equal
from tirlite.graph.op import Op
from tirlite.graph.program import Block, Program, program
from tirlite.graph.run_dims import most_of
from tirlite.graph.types import NegativeGraphExtent, TensorType, all_nonnegative, tensors
from tirlite.ir import Steps, run
from tirlite.names import UniqueNames
from tirlite.plan import Pool, Problem, Request
from tirlite.plan.request import Interval
from tirlite.record import record
from tirlite.sizes import Size


@record(eq=False)
class Value:
    """A tensor of `size` bytes on a device. A pinned one, a parameter or a constant, is never freed."""

    id: str
    size: Size
    device: int
    pinned: bool = False


@record(frozen=False, eq=False)
class Values:
    """The tensors of each expression, and the copies that branches of Ifs make of their results.

    `copied[block]` has (from, to) for each tensor that is copied at the end of the block, a branch. `views` are calls
    that share the tensors of their operands.
    """

    of: dict[Expr, tuple[Value, ...]] = field(default_factory=dict)
    views: frozenset[Expr] = frozenset()
    copied: dict[Block, tuple[tuple[Value, Value], ...]] = field(default_factory=dict)

    def args(self, call: Call) -> Iterator[Value]:
        """The tensors that a call reads, once per occurrence among its operands."""
        return (value for arg in call.args for value in self.of[arg])

    def is_computed(self, step: Expr) -> TypeGuard[Call]:
        """Whether it is a call that writes tensors of its own."""
        return isinstance(step, Call) and step not in self.views


def values_of(made: Program, *, views: bool = False) -> Values:
    """The tensors of a program; with `views`, calls that only change the shape share their operand's tensor.

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
    # An If comes before the steps of its branches.
    if step in targets:
        return found.of[targets[step]]
    return _new(step, step.name or _kind(step), names, pinned=isinstance(step, Constant))


def _kind(step: Expr) -> str:
    if isinstance(step, Call):
        return step.op.name if isinstance(step.op, Op) else step.op.name or "call"
    return "constant" if isinstance(step, Constant) else "if"


def _targets(made: Program, views: frozenset[Expr]) -> dict[Expr, If]:
    """The calls and Ifs that compute the result of the branch they are in, with the If of that branch.

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


@public
def memory_problem(
    function: FunctionNode, *, views: bool = False, in_place: bool = False, inner: bool = False
) -> Problem:
    """The planning problem of a function: one request per tensor, without those of functions that it calls.

    Parameters and constants are included, and live for ever. Each device is a separate pool.

    views: operators that only change the shape share their operand's tensor.
    in_place: the result of an elementwise operator or a normalization may overwrite an operand of its shape whose last
        use it is.
    inner: include only tensors between operators, without parameters, constants and results.
    """
    made = program(function)
    return problem_of(made, values_of(made, views=views), in_place=in_place, inner=inner)


def problem_of(made: Program, values: Values, *, in_place: bool = False, inner: bool = False) -> Problem:
    """The problem of a program whose tensors are known."""
    found = lifetimes(made, values)
    order = dict.fromkeys(value for group in values.of.values() for value in group)
    if inner:
        order = {v: None for v in order if not v.pinned and v not in values.of[made.function.body]}
    requests = tuple(Request(v.id, v.size, found.live[v], pools=(_pool(v.device),)) for v in order)
    devices = sorted({value.device for value in order})
    known = {value.id for value in order}
    pairs = tuple(pair for pair in _pairs(made, values, found) if known.issuperset(pair)) if in_place else ()
    return Problem(requests, tuple(Pool(_pool(device)) for device in devices), pairs)


def _pool(device: int) -> str:
    """The name of a device's memory."""
    return f"device {device}" if device else "memory"


def _pairs(made: Program, values: Values, found: Lifetimes) -> Iterator[tuple[str, str]]:
    """(result, operand) for each call that may overwrite an operand, as it is the operand's last use."""
    for step in made.steps():
        if values.is_computed(step):
            for source in lenders(step, values):
                if found.dies(source, step):
                    yield values.of[step][0].id, source.id


def lenders(call: Call, values: Values) -> Iterator[Value]:
    """The operand tensors that the call may overwrite: read only at the index being written, without broadcasting."""
    if isinstance(call.op, Op) and (call.op.is_elementwise or call.op.overwrites):
        candidates = call.args if call.op.is_elementwise else call.args[:1]
        for value in dict.fromkeys(value for arg in candidates for value in values.of[arg]):
            reads = [arg for arg in call.args if value in values.of[arg]]
            if all(arg in candidates and _is_alike(arg, call) for arg in reads):
                yield value


def _is_alike(arg: Expr, call: Call) -> bool:
    a, b = arg.type, call.type
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return False
    alike = a.dtype.bytes == b.dtype.bytes and a.rank == b.rank
    return alike and all(map(is_equal, a.shape, b.shape))


@record(eq=False)
class Lifetimes:
    """The lifetimes of tensors, as half-open intervals, and the times of calls, Ifs and ends of branches.

    Parameters and constants live from 0 to the end.
    """

    live: Mapping[Value, tuple[Interval, ...]]
    at: Mapping[Expr | Block, int]

    def dies(self, value: Value, call: Expr) -> bool:
        """Whether the call is the last use of the tensor on its path."""
        time = self.at[call]
        return any(low <= time and end == time + 1 for low, end in self.live[value])


def lifetimes(made: Program, values: Values) -> Lifetimes:
    """The lifetimes of a program's tensors."""
    times, end = _times(made)
    walk = _Backward(made, values, times)
    for value in values.of[made.function.body]:
        walk.use(value, end)
    run(walk.block(made.body))
    pinned = [value for group in values.of.values() for value in group if value.pinned]
    walk.found.update((value, [(0, end + 1)]) for value in pinned)
    return Lifetimes({value: tuple(reversed(intervals)) for value, intervals in walk.found.items()}, times)


def _times(made: Program) -> tuple[dict[Expr | Block, int], int]:
    """The times of calls, Ifs and ends of branches, and the time at which the function returns."""
    times: dict[Expr | Block, int] = {}
    run(_count(made, made.body, times))
    return times, times[made.body]


def _count(made: Program, block: Block, times: dict[Expr | Block, int]) -> Steps[None]:
    for step in block.steps:
        if isinstance(step, Call | If):
            times[step] = len(times) + 1
        if isinstance(step, If):
            yield _count(made, made.branches[step].then, times)
            yield _count(made, made.branches[step].other, times)
    times[block] = len(times) + 1


class _Backward:
    """A walk from the end: `alive` holds the end of the open interval of each tensor that is needed later."""

    def __init__(self, made: Program, values: Values, times: Mapping[Expr | Block, int]) -> None:
        self.made = made
        self.values = values
        self.times = times
        self.alive: dict[Value, int] = {}
        self.born_alive: list[dict[Value, None]] = [{}]  # for each open block, the tensors that became alive in it
        self.found: dict[Value, list[Interval]] = {}

    def use(self, value: Value, at: int) -> None:
        if not value.pinned and value not in self.alive:
            self.alive[value] = at + 1
            self.born_alive[-1][value] = None

    def write(self, value: Value, at: int) -> None:
        """The tensor is written here; an unused one lives only at this time."""
        end = self.alive.pop(value, at + 1)
        self.born_alive[-1].pop(value, None)
        self.found.setdefault(value, []).append((at, end))

    def block(self, block: Block) -> Steps[None]:
        for step in reversed(block.steps):
            if self.values.is_computed(step):
                at = self.times[step]
                for value in self.values.of[step]:
                    self.write(value, at)
                for value in self.values.args(step):
                    self.use(value, at)
            elif isinstance(step, If):
                yield self.choice(step)

    def choice(self, step: If) -> Steps[None]:
        """The branches, the last one first. In both, the result of the If is alive at the end."""
        then, other = self.made.branches[step]
        result = self.values.of[step]
        ends = {value: self.alive.get(value) for value in result}
        for value in result:
            self.born_alive[-1].pop(value, None)
        needed_in_other = yield self.branch(other, {v: e or self.times[other] + 1 for v, e in ends.items()})
        start_of_other = self.times[then] + 1
        for value in needed_in_other:
            self.found.setdefault(value, []).append((start_of_other, self.alive.pop(value)))
        needed_in_then = yield self.branch(then, dict.fromkeys(result, self.times[then] + 1))
        at = self.times[step]
        for value in needed_in_then:
            self.born_alive[-1][value] = None
        for value in needed_in_other:
            if value not in self.alive:
                self.alive[value] = at + 1
                self.born_alive[-1][value] = None
        for value in self.values.of[step.condition]:
            self.use(value, at)

    def branch(self, block: Block, result: Mapping[Value, int]) -> Steps[Iterable[Value]]:
        """The tensors from outside that the branch uses last."""
        at = self.times[block]
        self.born_alive.append({})
        for value, end in result.items():
            self.alive[value] = end
            self.born_alive[-1][value] = None
        copies = self.values.copied[block]
        for _, target in copies:
            self.write(target, at)
        for source, _ in copies:
            self.use(source, at)
        yield self.block(block)
        return self.born_alive.pop()
