"""Puts the operators of a program in the order that takes the least memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tirlite.diag import public
from tirlite.diag.message import demand_kind
from tirlite.graph.expr import Call, Expr, If
from tirlite.graph.memory.problem import Value, Values, lenders, values_of
from tirlite.graph.order.decide import Task, Tasks
from tirlite.graph.order.search import order_of
from tirlite.graph.program import Block, Branches, Program
from tirlite.ir import Steps, run
from tirlite.plan.order import samples
from tirlite.record import record
from tirlite.sizes import Dim, Size, dims_of, evaluate


@record
class Ordered:
    """A program in a new order. Peaks are the bytes between operators that live at one time, at the sizes `at`.

    Views and operators in place cost nothing; parameters, constants and results are not counted, nor is what a kernel
    needs for itself. `proved` says that no order has a smaller peak, where an If is taken as one operator.
    """

    program: Program
    peak: int
    program_peak: int
    proved: bool
    at: Mapping[Dim, int]

    def __str__(self) -> str:
        sizes = ", ".join(f"{dim.name} = {value}" for dim, value in self.at.items())
        rest = f" at {sizes}" if sizes else ""
        best = ", which no order beats" if self.proved else ""
        return f"{self.peak} bytes between operators{best}; {self.program_peak} in program order{rest}"


@public
def memory_order(made: Program) -> Ordered:
    """The program with the operators of each block in the order with the smallest peak.

    That is proved for stretches of up to some 30 operators, and more where they are not too wide; else the order is a
    good one, and never worse than the given one. Symbolic sizes are compared at one sample of the dims.
    """
    demand_kind("memory_order", made, Program)
    values = values_of(made, views=True)
    dims = dict.fromkeys(dim for group in values.of.values() for value in group for dim in dims_of(value.size))
    (binding,) = samples(dims, 1)
    ordering = _Ordering(made, values, binding)
    body = run(ordering.block(made.body, frozenset(values.of[made.function.body])))
    program = replace(made, body=body.block, branches=MappingProxyType(ordering.branches))
    return Ordered(program, body.peak, body.program_peak, body.proved, binding)


@record
class _OrderedBlock:
    block: Block
    peak: int
    program_peak: int
    proved: bool


class _Ordering:
    """The blocks of one program, branches before the block that they stand in."""

    def __init__(self, made: Program, values: Values, binding: Mapping[Dim, int]) -> None:
        self.made = made
        self.values = values
        self.binding = binding
        self.branches: dict[If, Branches] = {}
        self.inside: dict[If, tuple[int, int]] = {}
        self.outside: dict[If, tuple[Value, ...]] = {}
        self.needs: dict[If, Mapping[Expr, None]] = {}

    def block(self, block: Block, results: frozenset[Value]) -> Steps[_OrderedBlock]:
        """`results` are those of the block; they lie elsewhere."""
        proved = True
        for step in block.steps:
            if isinstance(step, If):
                then, other = self.made.branches[step]
                parts = []
                for branch in (then, other):
                    parts.append((yield self.block(branch, frozenset(self.values.of[step]))))
                self.branches[step] = Branches(*(part.block for part in parts))
                self.inside[step] = (max(part.peak for part in parts), max(part.program_peak for part in parts))
                self.needs[step] = dict.fromkeys(self._needs(step))
                self.outside[step] = tuple(self._outside(step))
                proved = proved and all(part.proved for part in parts)
        operators = [step for step in block.steps if self._is_task(step)]
        tasks, before = self._tasks(operators, results, 0), self._tasks(operators, results, 1)
        best = order_of(tasks)
        steps = self._steps(block, [operators[number] for number in best.order])
        program_peak = before.peak(range(len(operators)))
        return _OrderedBlock(replace(block, steps=steps), best.peak, program_peak, proved and best.proved)

    def _is_task(self, step: Expr) -> bool:
        return isinstance(step, If) or self.values.is_computed(step)

    def _tasks(self, operators: Sequence[Expr], results: frozenset[Value], which: int) -> Tasks:
        """`which` says whose peaks the branches have: those of the new order or those of the program's."""
        numbers: dict[Value, int] = {}
        for step in operators:
            for value in (*self._reads(step), *self.values.of[step]):
                numbers.setdefault(value, len(numbers))
        found = []
        written: set[Value] = set()
        for step in operators:
            reads = tuple(numbers[value] for value in dict.fromkeys(self._reads(step)))
            writes = tuple(numbers[value] for value in self.values.of[step])
            lent = lenders(step, self.values) if isinstance(step, Call) else ()
            inside = self.inside[step][which] if isinstance(step, If) else 0
            found.append(Task(reads, writes, tuple(numbers[value] for value in lent), inside))
            written.update(self.values.of[step])
        sizes = [self._bytes(v.size) if v in written and v not in results else 0 for v in numbers]
        return Tasks(tuple(found), tuple(sizes))

    def _reads(self, step: Expr) -> Iterable[Value]:
        if isinstance(step, Call):
            measured = (value for each in step.sources for value in self.values.of[self.made.resolved(each)])
            return (*self.values.args(step), *measured)
        assert isinstance(step, If)
        return (*self.values.of[step.condition], *self.outside[step])

    def _outside(self, step: If) -> Iterator[Value]:
        """The tensors from outside that the branches of an If read, or hand on as its result."""
        blocks, made, used = [*self.made.branches[step]], set(self.values.of[step]), []
        for block in blocks:
            used += [source for source, _ in self.values.copied[block]]
            for each in block.steps:
                made.update(self.values.of[each] if self._is_task(each) else ())
                used += self._reads(each) if self._is_task(each) else ()
        return (value for value in dict.fromkeys(used) if value not in made)

    def _bytes(self, size: Size) -> int:
        return evaluate(size, self.binding)

    def _steps(self, block: Block, order: Sequence[Expr]) -> tuple[Expr, ...]:
        """The steps with the operators in this order; all others stand right before who needs them, or at the end."""
        inside = frozenset(block.steps)
        found: dict[Expr, None] = {}
        for wanted in (*order, *block.steps):
            stack = [wanted]
            while stack:
                step = stack[-1]
                missing = [each for each in self._needed(step) if each in inside and each not in found]
                if missing:
                    stack += reversed(missing)
                else:
                    found.setdefault(stack.pop())
        return tuple(found)

    def _needed(self, step: Expr) -> Iterator[Expr]:
        if isinstance(step, If):
            yield from self.needs[step]
        else:
            for operand in step.operands:
                yield operand
                yield self.made.resolved(operand)

    def _needs(self, step: If) -> Iterator[Expr]:
        """What must be there before an If: whatever its branches mention, and the extents of what it gives."""
        mentioned = [step.condition, *step.sources]
        for block in self.made.branches[step]:
            mentioned.append(block.result)
            for each in block.steps:
                mentioned += self.needs[each] if isinstance(each, If) else each.operands
        return (each for expr in mentioned for each in (expr, self.made.resolved(expr)))
