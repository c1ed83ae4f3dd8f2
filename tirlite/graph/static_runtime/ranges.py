"""Tells what is known of the memory of a node list's values: who owns them, and how long they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tirlite.graph.expr import TupleGetItem
from tirlite.graph.static_runtime.nodes import Graph, Kind, Node, NodeList, Register
from tirlite.ir import Steps, run

# Which values may have the bytes of which others: for each register those whose bytes its value may have.
Roots = Mapping[Register, frozenset[Register]]
_WRITES = (Kind.OUT, Kind.COPY)


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """The values that a node list makes, by who cares for their memory, each in the order of nodes.

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
    """The aliases of all registers, those in branches too."""
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
    """What is known of the values of one list. With `manage_outputs`, results that a node writes are outputs."""
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


def _live(nodes: Iterable[Node], roots: Roots, managed: Iterable[Register]) -> dict[Register, tuple[int, int]]:
    """From the node that makes a value to the last one that uses it or an alias, as half-open intervals."""
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
