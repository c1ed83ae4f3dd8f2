"""Turns a function into an executable in which each tensor has a storage and operators write to given tensors."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from tirlite.diag import public
from tirlite.graph.demand import demand_function, demand_known_extents
from tirlite.graph.explicit.executable import Executable
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Branch,
    Instruction,
    InvokeOperator,
    InvokeRoutine,
    LoadConstant,
    Parameter,
    RepeatRoutine,
    ReshapeTensor,
    Result,
    Routine,
)
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Var, callees_first
from tirlite.graph.loop import LoopFunction
from tirlite.graph.memory.problem import Value, values_of
from tirlite.graph.op import Attrs, Op
from tirlite.graph.program import Block, program
from tirlite.graph.types import TensorType, same_type, structured, tensors
from tirlite.ir import Steps, run
from tirlite.names import UniqueNames

_ALIGN = 64
COPY = "identity"


@public
def explicit_allocation(function: FunctionNode) -> Executable:
    """The function with a storage for each tensor, and the functions that it calls, and steps of loops, before it.

    Operators that only change the shape take no storage. The branches of an If write to storages from before it. What
    is returned is never a parameter or a constant itself, nor one tensor twice: such results are copied.
    """
    demand_function(function)
    names = UniqueNames()
    routines: dict[FunctionNode, Routine] = {}
    for each in callees_first(function):
        demand_known_extents(each, "explicit_allocation")
        routines[each] = run(_Allocation(each, routines).routine(names.unique(each.name or "f")))
    return Executable(tuple(routines.values()))


class _Allocation:
    """Translates one function: chooses the storage of each tensor, and names the tensors of each expression."""

    def __init__(self, function: FunctionNode, routines: Mapping[FunctionNode, Routine]) -> None:
        self.made = program(function)
        self.values = values_of(self.made, views=True)
        self.routines = routines
        self.names = UniqueNames()
        self.numbers = count()
        self.storages: dict[Value, str] = {}
        self.homes: dict[Expr, tuple[str, ...]] = {}
        self.targets: dict[Value, tuple[str, TensorType]] = {}  # the tensors of Ifs

    def routine(self, name: str) -> Steps[Routine]:
        function = self.made.function
        params = []
        for param in function.params:
            self.homes[param] = self.leaves(param)
            params.append(Parameter(self.homes[param], param.type, param.device))
        body: list[Instruction] = []
        yield self.block(self.made.body, body)
        result = self.result(function, body)
        return Routine(name, tuple(params), tuple(body), result, function.primitive)

    def block(self, block: Block, body: list[Instruction]) -> Steps[None]:
        for step in block.steps:
            if isinstance(step, Constant):
                name = self.names.unique(step.name or "constant")
                body.append(LoadConstant(name, step.value, step.dtype))
                self.homes[step] = (name,)
            elif isinstance(step, If):
                yield self.choice(step, body)
            elif self.values.is_computed(step):
                self.call(step, body)
            elif step in self.values.views:
                assert isinstance(step, Call)
                name = self.names.unique(step.name or _op_name(step))
                body.append(ReshapeTensor(name, self.home(step.args[0])[0], step.tensor.shape))
                self.homes[step] = (name,)
        for source, (_, target) in zip(self.home(block.result), self.values.copied.get(block, ()), strict=False):
            # Either all tensors of a branch's result are computed in place, or all are copied.
            body.append(InvokeOperator(COPY, Attrs(), (source,), (self.targets[target][0],)))

    def leaves(self, param: Var) -> tuple[str, ...]:
        if isinstance(param.type, TensorType):
            return (self.names.unique(param.name),)
        return tuple(self.names.unique(f"{param.name}.{number}") for number, _ in enumerate(tensors(param.type)))

    def call(self, step: Call, body: list[Instruction]) -> None:
        args = tuple(name for arg in step.args for name in self.home(arg))
        outs = self.allocated(step, step.name or _op_name(step), body)
        if isinstance(step.op, Op):
            body.append(InvokeOperator(step.op.name, step.attrs, args, outs))
        elif isinstance(step.op, LoopFunction):
            body.append(RepeatRoutine(self.routines[step.op].name, args, outs, step.op.carried))
        else:
            body.append(InvokeRoutine(self.routines[step.op].name, args, outs))

    def choice(self, step: If, body: list[Instruction]) -> Steps[None]:
        names = self.allocated(step, step.name or "if", body)
        for value, name, of in zip(self.values.of[step], names, tensors(step.type), strict=True):
            self.targets[value] = (name, of)
        parts = []
        for block in self.made.branches[step]:
            part: list[Instruction] = []
            yield self.block(block, part)
            parts.append(tuple(part))
        body.append(Branch(self.home(step.condition)[0], parts[0], parts[1]))

    def allocated(self, step: Call | If, name: str, body: list[Instruction]) -> tuple[str, ...]:
        """The tensors of a step, on their own storages or on those of the If whose result they are."""
        made = []
        for value, of in zip(self.values.of[step], tensors(step.type), strict=True):
            target = self.targets.get(value)
            if target is not None and same_type(target[1], of):
                made.append(target[0])
            else:
                made.append(self.tensor(value, of, name, body))
        self.homes[step] = tuple(made)
        return tuple(made)

    def tensor(self, value: Value, of: TensorType, name: str, body: list[Instruction]) -> str:
        """A new tensor on the storage of a value, which is allocated here at its first use."""
        if value not in self.storages:
            self.storages[value] = self.names.unique(f"storage_{next(self.numbers)}")
            body.append(AllocStorage(self.storages[value], value.size, _ALIGN, of.dtype, value.device))
        made = self.names.unique(name)
        body.append(AllocTensor(made, self.storages[value], 0, of.shape, of.dtype))
        return made

    def result(self, function: FunctionNode, body: list[Instruction]) -> Result:
        expr = function.body
        seen: set[Value] = set()
        names = []
        for value, name, of in zip(self.values.of[expr], self.home(expr), tensors(expr.type), strict=True):
            if value.pinned or value in seen:
                fresh = Value("", of.bytes, value.device)
                copy = self.tensor(fresh, of, "result", body)
                body.append(InvokeOperator(COPY, Attrs(), (name,), (copy,)))
                names.append(copy)
            else:
                seen.add(value)
                names.append(name)
        made: Result = structured(expr.type, iter(names))
        return made

    def home(self, expr: Expr) -> tuple[str, ...]:
        return tuple(self.homes[step][number] for step, number in self.made.parts[expr])


def _op_name(call: Call) -> str:
    return call.op.name or "call"
