"""Plans the memory of a node list: one buffer for each run, from the sizes that its values had.

Who owns a value, and how long it is needed, is known beforehand. Source: memory planner of PyTorch's static runtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tirlite.graph.expr import TupleGetItem
from tirlite.graph.out_variants import aligned
from tirlite.graph.static_runtime.nodes import (
    ALIGN,
    Graph,
    Kind,
    NodeList,
    Register,
    RunNode,
    Storage,
    Tensor,
    span,
)
from tirlite.graph.types import Array, TensorType
from tirlite.groups import by_key
from tirlite.ir import Steps, run
from tirlite.plan import Plan, Problem, Request, solve
from tirlite.plan.strategies.slots import groups
from tirlite.sizes import round_up


class MemoryPlanner:
    """Allocates the managed values of a node list.

    In the first run every one has ordinary memory. At the end of each run the sizes take the maximum seen so far; from
    the second run on there is one buffer, in which group k begins where the aligned sizes of those before end.
    """

    def __init__(self, ranges: Ranges, *, reuse: bool = True) -> None:
        """Without `reuse` each value has a group of its own."""
        self.ranges = ranges
        self.tensors = {register: _fresh(register) for register in ranges.managed}
        self.outputs = {register: _fresh(register) for register in ranges.outputs}
        self.repaired = 0
        self.plan: Plan | None = None
        self._reuse = reuse
        self._sizes: dict[Register, int] = dict.fromkeys((*ranges.managed, *ranges.outputs), 0)
        # Values that an operator made share a storage are planned as one, under the name of the first.
        self._leaders = {register: register for register in ranges.managed}
        self._groups = self._grouped()
        # The storage that each tensor has to have.
        self._storages = {register: tensor.storage for register, tensor in self.tensors.items()}
        self._buffer: Array | None = None
        self._output_buffer: Array | None = None

    @property
    def managed(self) -> int:
        """How many values lie in the buffer, results apart."""
        return len(self.tensors)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The names of the values that share a storage, group by group."""
        return tuple(tuple(register.name for register in group) for group in self._groups)

    @property
    def reused(self) -> int:
        """How many values take a storage that another one has opened."""
        return self.managed - len(self._groups)

    @property
    def managed_bytes(self) -> int:
        """Bytes of the buffer of a run; 0 before the first plan."""
        if self.plan is None:
            return 0
        assert isinstance(self.plan.total, int)
        return self.plan.total

    @property
    def output_buffer_bytes(self) -> int:
        """Bytes of the buffer of managed results that is not released yet."""
        return 0 if self._output_buffer is None else self._output_buffer.size

    def storage_of(self, register: Register) -> Storage | None:
        """The storage that a managed value has to have."""
        return self._storages.get(register)

    def is_managed_output(self, array: Array) -> bool:
        """Whether an array lies in the buffer of managed results."""
        return self._output_buffer is not None and _is_inside(span(array)[0], self._output_buffer)

    def is_in_buffer(self, address: int) -> bool:
        """Whether an address lies in the buffer of the current run."""
        return self._buffer is not None and _is_inside(address, self._buffer)

    def allocate(self) -> None:
        """Begins a run: gives the storages their parts of a new buffer, once sizes are known."""
        if self.plan is not None:
            self._buffer = aligned(self.managed_bytes, ALIGN)
            for group in self._groups:
                offset = self._offset(self.plan, group)
                size = round_up(max(self._sizes[register] for register in group), ALIGN)
                self._storages[group[0]].memory = self._buffer[offset : offset + size]
        sizes = [round_up(self._sizes[register], ALIGN) for register in self.outputs]
        if any(sizes):
            self._output_buffer = aligned(sum(sizes), ALIGN)
            for tensor, size, end in zip(self.outputs.values(), sizes, accumulate(sizes), strict=True):
                tensor.storage = Storage(self._output_buffer[end - size : end])
        else:
            for tensor in self.outputs.values():
                tensor.storage = Storage()

    def note_shared(self, register: Register, owner: Register) -> None:
        """Records that an operator made two values share a storage: from the next plan on they are managed as one."""
        old, new = self._leaders[register], self._leaders[owner]
        self._leaders = {each: new if leader is old else leader for each, leader in self._leaders.items()}

    def deallocate(self) -> None:
        """Ends a run: repairs storages that were changed, learns sizes, frees the buffer, and plans the next run."""
        has_grown = self.plan is None
        for register, tensor in (*self.tensors.items(), *self.outputs.items()):
            has_grown |= tensor.bytes > self._sizes[register]
            self._sizes[register] = max(self._sizes[register], tensor.bytes)
        changed = [each for each, tensor in self.tensors.items() if tensor.storage is not self._storages[each]]
        self.repaired += len(changed)
        for storage in self._storages.values():
            storage.memory = None
        self._buffer = None
        if has_grown or changed:
            self._replan()
        for register, tensor in self.tensors.items():
            tensor.reset(self._storages[register])
        for tensor in self.outputs.values():
            tensor.reset(Storage())

    def release_outputs(self) -> None:
        """Frees the buffer of managed results."""
        self._output_buffer = None

    def _replan(self) -> None:
        problem = Problem(tuple(self._requests()))
        self.plan = solve(problem, "group" if self._reuse else "coalesce")
        self._groups = self._grouped()
        storages = [Storage() for _ in self._groups]
        self._storages = {
            register: storage for group, storage in zip(self._groups, storages, strict=True) for register in group
        }

    def _offset(self, plan: Plan, group: Sequence[Register]) -> int:
        offset = plan.placements[self._leaders[group[0]].name].offset
        assert isinstance(offset, int)
        return offset

    def _grouped(self) -> list[list[Register]]:
        """The values that share a storage. Sizes have no say in it, so that it is known before the first run."""
        members = by_key((leader.name, register) for register, leader in self._leaders.items())
        if not self._reuse:
            return list(members.values())
        return [[each for r in slot.members for each in members[r.id]] for slot in groups(list(self._requests()))]

    def _requests(self) -> Iterator[Request]:
        """One for each value, or for values that an operator made share a storage."""
        for leader, group in by_key((leader, register) for register, leader in self._leaders.items()).items():
            lives = [self.ranges.live[each] for each in group]
            live = (min(low for low, _ in lives), max(high for _, high in lives))
            yield Request(leader.name, max(self._sizes[each] for each in group), (live,), align=ALIGN)


def _fresh(register: Register) -> Tensor:
    assert isinstance(register.type, TensorType)
    return Tensor.empty(register.type.dtype)


def _is_inside(address: int, buffer: Array) -> bool:
    low, high = span(buffer)
    return low <= address < high


# Which values may have the bytes of which others: for each register those whose bytes its value may have.
Roots = Mapping[Register, frozenset[Register]]
_WRITES = (Kind.OUT, Kind.COPY)


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """The values of a node list by who manages their memory, in the order of nodes.

    `managed` are given memory by the planner; `outputs` too, where outputs are managed. `scalars` and `unmanaged` have
    memory of their own, `borrowed` ones belong to another value; results are in none of these. `live` says for each
    managed value at which nodes it is needed, its aliases included. `owned` are the results that are borrowed.
    """

    managed: tuple[Register, ...]
    outputs: tuple[Register, ...]
    unmanaged: tuple[Register, ...]
    borrowed: tuple[Register, ...]
    scalars: tuple[Register, ...]
    owned: tuple[Register, ...]
    live: Mapping[Register, tuple[int, int]]


def roots_of(graph: Graph) -> Roots:
    """The aliases of all registers, including those in branches."""
    roots: dict[Register, frozenset[Register]] = {}
    for register in (*graph.params, *(register for register, _ in graph.constants)):
        roots[register] = frozenset((register,))
    run(_roots(graph.body, roots, {}))
    return roots


def _roots(
    block: NodeList, roots: dict[Register, frozenset[Register]], fields: dict[Register, tuple[Register, ...]]
) -> Steps[None]:
    for node in block.nodes:
        for inner in node.blocks:
            yield _roots(inner, roots, fields)
        of_inputs = _union(roots, node.inputs)
        for output in node.outputs:
            itself = frozenset((output,))
            if node.kind in _WRITES:
                roots[output] = itself
            elif node.kind is Kind.PLAIN:
                # It may give back what it was given, as a slice of all of it does.
                roots[output] = itself | of_inputs
            elif node.kind is Kind.IF:
                roots[output] = itself | _union(roots, (each for inner in node.blocks for each in inner.results))
            elif isinstance(node.step, TupleGetItem) and node.inputs[0] in fields:
                roots[output] = roots[fields[node.inputs[0]][node.step.index]]
            else:
                roots[output] = of_inputs
        if node.kind is Kind.TUPLE:
            fields[node.outputs[0]] = node.inputs


def _union(roots: Roots, registers: Iterable[Register]) -> frozenset[Register]:
    return frozenset().union(*(roots[each] for each in registers))


def ranges_of(block: NodeList, roots: Roots, *, manage_outputs: bool) -> Ranges:
    """The ranges of one node list. With `manage_outputs`, results that a node writes are outputs."""
    results = frozenset(block.results)
    escaping = _union(roots, block.results)
    managed: list[Register] = []
    outputs: list[Register] = []
    unmanaged: list[Register] = []
    borrowed: list[Register] = []
    scalars: list[Register] = []
    for node in block.nodes:
        for register in node.outputs:
            is_written = node.kind in _WRITES and not register.is_scalar
            if is_written and register not in escaping:
                managed.append(register)
            elif is_written and register in results and manage_outputs:
                outputs.append(register)
            elif register in results:
                continue
            elif node.kind is Kind.ITEM:
                borrowed.append(register)
            else:
                (scalars if register.is_scalar else unmanaged).append(register)
    items = (node.outputs[0] for node in block.nodes if node.kind is Kind.ITEM)
    owned = tuple(each for each in items if each in results)
    live = _live(block.nodes, roots, managed)
    return Ranges(tuple(managed), tuple(outputs), tuple(unmanaged), tuple(borrowed), tuple(scalars), owned, live)


def _live(nodes: Iterable[RunNode], roots: Roots, managed: Iterable[Register]) -> dict[Register, tuple[int, int]]:
    """The half-open interval of each value from the node that defines it to the last use of it or an alias."""
    wanted = frozenset(managed)
    born: dict[Register, int] = {}
    last: dict[Register, int] = {}
    for time, node in enumerate(nodes):
        for register in node.outputs:
            if register in wanted:
                born[register] = last[register] = time
        for register in node.inputs:
            # The order of a set has no say here: all of them get the same time.
            for root in roots[register]:
                if root in born:
                    last[root] = time
    return {register: (born[register], last[register] + 1) for register in managed}
