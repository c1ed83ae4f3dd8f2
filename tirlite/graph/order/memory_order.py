"""Puts the operators of a program in the order that takes the least memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from types import MappingProxyType
from typing import NamedTuple

from tirlite.diag import public
from tirlite.diag.error import demand_kind
from tirlite.graph.expr import Call, Expr, If
from tirlite.graph.memory.problem import Value, Values, lenders, values_of
from tirlite.graph.order.decide import Decision, SearchGivenUpError, Task, Tasks, Way, stretches
from tirlite.graph.program import Block, Branches, Program
from tirlite.ir import Steps, in_turn, run
from tirlite.needs import needs_first
from tirlite.plan.order import samples
from tirlite.plan.search.sections import members
from tirlite.record import record, replace
from tirlite.sizes import Dim, Size, dims_of, evaluate

# The width of the beam, and the approximate number of states tried in all.
_BEAM = 64
_BEAM_STATES = 200_000
# Longer chains are cut: the search is quadratic in their length.
_LONGEST = 32


class _State(NamedTuple):
    """Compared by peak, then the number of tasks left, then live bytes, then age."""

    peak: int
    left: int
    live: int
    age: int
    done: int
    way: Way | None


@record
class Found:
    """An order of some tasks, its peak, and whether no order has a smaller one."""

    order: tuple[int, ...]
    peak: int
    proved: bool


def order_of(tasks: Tasks) -> Found:
    """An order of all tasks. `proved` holds where each stretch was searched to the end."""
    order: list[int] = []
    done, live, peak, proved = 0, 0, 0, True
    for stretch in stretches(tasks):
        found = _best_order(tasks, stretch, done, live, peak)
        for number in found.order:
            _, live = tasks.run(number, done, live)
            done |= 1 << number
        order += found.order
        peak, proved = found.peak, proved and found.proved
    return Found(tuple(order), peak, proved)


def _best_order(tasks: Tasks, stretch: Sequence[int], done: int, live: int, known: int) -> Found:
    """The best order of a stretch after the tasks `done`, with `live` bytes alive.

    Peaks below `known`, which is reached elsewhere, count as equal.
    """
    beam = _Beam(tasks, stretch, done, live, known)
    best = beam.best()
    decision = Decision(tasks, segments(tasks, stretch, done), done, live)
    while best.peak > beam.floor:
        try:
            better = decision.within(best.peak - 1)
        except SearchGivenUpError:
            return _found(best, proved=False)
        if better is None:
            break
        best = beam.along(better)
    return _found(best, proved=True)


def _found(state: _State, *, proved: bool) -> Found:
    order, way = [], state.way
    while way is not None:
        order.append(way.last)
        way = way.rest
    return Found(tuple(reversed(order)), state.peak, proved)


class _Beam:
    def __init__(self, tasks: Tasks, stretch: Sequence[int], done: int, live: int, known: int) -> None:
        self.tasks = tasks
        self.stretch = stretch
        self.ages = count()
        self.start = _State(known, len(stretch), live, next(self.ages), done, None)
        # No order of the stretch has a smaller peak than this.
        self.floor = max(known, *(tasks.least(number) for number in stretch))

    def after(self, state: _State, number: int) -> _State:
        """The state when one more task has run."""
        peak, live = self.tasks.run(number, state.done, state.live)
        way = Way(number, state.way)
        return _State(max(state.peak, peak), state.left - 1, live, next(self.ages), state.done | 1 << number, way)

    def following(self, state: _State) -> Iterator[_State]:
        """The next states; a single one if some task is safe to run now."""
        found = []
        for number in self.stretch:
            if not state.done >> number & 1 and not self.tasks.before[number] & ~state.done:
                made = self.after(state, number)
                if made.live <= state.live and made.peak <= max(state.peak, self.floor):
                    yield made
                    return
                found.append(made)
        yield from found

    def along(self, order: Sequence[int]) -> _State:
        """The end of an order."""
        state = self.start
        for number in order:
            state = self.after(state, number)
        return state

    def best(self) -> _State:
        """The end of a good order by beam search: after each task only states with the smallest peaks are followed."""
        width = max(2, min(_BEAM, _BEAM_STATES // (1 + len(self.stretch) ** 2)))
        level = [self.start]
        for _ in self.stretch:
            reached: dict[int, _State] = {}
            for state in level:
                for made in self.following(state):
                    if made.done not in reached or made < reached[made.done]:
                        reached[made.done] = made
            level = sorted(reached.values())[:width]
        return min(level[0], self.along(self.stretch))


def segments(tasks: Tasks, stretch: Sequence[int], done: int) -> list[tuple[int, ...]]:
    """The groups of a stretch that begins when the tasks `done` have run, each in the order in which it runs."""
    return [group for chain in _chains(tasks, stretch) for group in _groups(tasks, chain, done)]


def _chains(tasks: Tasks, stretch: Sequence[int]) -> Iterator[list[int]]:
    inside = sum(1 << number for number in stretch)
    behind = dict.fromkeys(stretch, 0)
    for number in stretch:
        for each in members(tasks.before[number] & inside):
            behind[each] |= 1 << number
    follows: set[int] = set()
    for first in stretch:
        if first in follows:
            continue
        chain = [first]
        while len(chain) < _LONGEST:
            last = chain[-1]
            after = behind[last]
            if not after or after & (after - 1):
                break
            number = after.bit_length() - 1
            alone = tasks.before[number] & inside == 1 << last
            if not alone or not _is_private(tasks, (last, number), inside):
                break
            chain.append(number)
            follows.add(number)
        yield chain


def _is_private(tasks: Tasks, pair: tuple[int, int], inside: int) -> bool:
    """Whether no other task reads the operands of the two, so the bytes they free depend on them alone."""
    others = inside & ~(1 << pair[0] | 1 << pair[1])
    reads = (tensor for each in pair for tensor in tasks.tasks[each].reads)
    return all(not tasks.sizes[tensor] or not tasks.users[tensor] & others for tensor in reads)


def _groups(tasks: Tasks, chain: Sequence[int], done: int) -> Iterator[tuple[int, ...]]:
    """The chain in as few groups as there can be."""
    levels, peaks = [0], []
    for number in chain:
        peak, live = tasks.run(number, done, levels[-1])
        done |= 1 << number
        levels.append(live)
        peaks.append(peak)
    fewest = [0]
    starts = [0]
    for end in range(1, len(chain) + 1):
        found = [start for start in range(end) if _holds(levels[start : end + 1], peaks[start:end])]
        start = min(found, key=lambda each: fewest[each])
        fewest.append(fewest[start] + 1)
        starts.append(start)
    cuts = [len(chain)]
    while cuts[-1]:
        cuts.append(starts[cuts[-1]])
    yield from (tuple(chain[low:high]) for low, high in pairwise(reversed(cuts)))


def _holds(levels: Sequence[int], peaks: Sequence[int]) -> bool:
    hill = max(peaks)
    places = (place for place, peak in enumerate(peaks) if peak == hill)
    return any(
        all(each >= levels[0] for each in levels[1 : place + 1])
        and all(each >= levels[-1] for each in levels[place + 1 :])
        for place in places
    )


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
        """Orders a block; `results` are its result tensors, whose storage is not part of the block's."""
        proved = True
        for step in block.steps:
            if isinstance(step, If):
                inside = frozenset(self.values.of[step])
                parts = yield in_turn(self.block(branch, inside) for branch in self.made.branches[step])
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
        """The steps with operators in this order; all others come right before their first user, or at the end."""
        inside = frozenset(block.steps)
        wanted = (*order, *block.steps)
        return tuple(needs_first(wanted, lambda step: [each for each in self._needed(step) if each in inside]))

    def _needed(self, step: Expr) -> Iterator[Expr]:
        if isinstance(step, If):
            yield from self.needs[step]
        else:
            for operand in step.operands:
                yield operand
                yield self.made.resolved(operand)

    def _needs(self, step: If) -> Iterator[Expr]:
        """The expressions that an If depends on: all that its branches use, and the extents of its result."""
        mentioned = [step.condition, *step.sources]
        for block in self.made.branches[step]:
            mentioned.append(block.result)
            for each in block.steps:
                mentioned += self.needs[each] if isinstance(each, If) else each.operands
        return (each for expr in mentioned for each in (expr, self.made.resolved(expr)))
