"""Networks in; what their storage takes under each planner, and how long compiling and running them takes, out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from statistics import median
from time import perf_counter

from tirlite.cli.figures import machine, machine_text
from tirlite.graph import CompiledGraph, compile, memory_problem  # noqa: A004
from tirlite.graph.gallery.network import Network
from tirlite.plan import Plan
from tirlite.plan.bound import open_bound
from tirlite.plan.problem import Problem
from tirlite.record import record
from tirlite.show import table
from tirlite.sizes import Size, evaluate

# One for each of five ways to plan storage: slots of a loop nest, tokens of a graph, a region of an explicit program,
# groups of a runtime, offsets of a whole program; and the last of them anew at each shape.
PLANNERS = ("share", "graph", "coalesce", "group", "auto", "per_shape")
COMPILE_BAR = 30.0


@record
class GraphRow:
    """One network at one set of sizes. Bytes are those between operators: parameters and results lie elsewhere.

    `raw`, `views` and `in_place` are lower bounds: the most that is live at one time, where a change of shape makes a
    tensor of its own, where it costs nothing, and where results may also take the place of what dies. `planned` are
    the bytes of main's storage under each planner, with what kernels need for themselves; `ordered` those of `auto`
    with the operators in the order that takes the least memory. `onnxruntime` are its milliseconds by the number of its
    threads, where it was measured.
    """

    name: str
    sizes: Mapping[str, int]
    intermediates: int
    naive: int
    raw: int
    views: int
    in_place: int
    planned: Mapping[str, int]
    ordered: int
    compile_seconds: float
    milliseconds: float
    onnxruntime: Mapping[int, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """How much more than the lower bound in place the best plan takes, as a part of it."""
        best = min(self.planned["auto"], self.planned["per_shape"])
        return best / self.in_place - 1 if self.in_place else 0.0

    @property
    def met(self) -> bool:
        return self.gap <= 0 and self.compile_seconds <= COMPILE_BAR


def graph_rows(networks: Iterable[Network], runs: int) -> Iterator[GraphRow]:
    """A row for each network and each of its sets of sizes; a call is timed `runs` times."""
    for network in networks:
        yield from _rows(network, runs)


def _rows(network: Network, runs: int) -> Iterator[GraphRow]:
    function = network.function
    start = perf_counter()
    compiled = compile(function)
    compiled(*network.arguments(network.bindings[0]))
    seconds = perf_counter() - start
    graphs = {name: compiled if name == "auto" else compile(function, strategy=name) for name in PLANNERS}
    ordered = compile(function, order="memory")
    plain = memory_problem(function, inner=True)
    raw = open_bound(plain)
    views = open_bound(memory_problem(function, views=True, inner=True))
    in_place = open_bound(memory_problem(function, views=True, in_place=True, inner=True))
    for sizes in network.bindings:

        def at(size: Size, sizes: Mapping[str, int] = sizes) -> int:
            return evaluate(size, {dim: sizes[name] for name, dim in network.dims.items()})

        yield GraphRow(
            network.name,
            sizes,
            len(plain.requests),
            at(_sum(plain)),
            at(raw),
            at(views),
            at(in_place),
            {name: _planned(each, sizes) for name, each in graphs.items()},
            _planned(ordered, sizes),
            seconds,
            _call_time(compiled, network, sizes, runs),
        )


def _sum(problem: Problem) -> Size:
    total: Size = 0
    for request in problem.requests:
        total = total + request.size
    return total


def _planned(compiled: CompiledGraph, sizes: Mapping[str, int]) -> int:
    plan: Plan = compiled.plan_at(**sizes)
    assert isinstance(plan.total, int)
    return plan.total


def _call_time(compiled: CompiledGraph, network: Network, sizes: Mapping[str, int], runs: int) -> float:
    arguments = network.arguments(sizes)
    return milliseconds(lambda: compiled(*arguments), runs)


def milliseconds(call: Callable[[], object], runs: int) -> float:
    """The median of `runs` calls, after one that is not timed."""
    call()
    seconds = []
    for _ in range(runs):
        start = perf_counter()
        call()
        seconds.append(perf_counter() - start)
    return 1e3 * median(seconds)


def graphs_json(rows: Sequence[GraphRow]) -> str:
    """One object: the machine, and the list of networks."""
    listed = [{**asdict(row), "gap": row.gap, "met": row.met} for row in rows]
    return json.dumps({"machine": machine(), "graphs": listed}, indent=1)


def graphs_text(rows: Sequence[GraphRow]) -> str:
    """The machine, and a table of all rows; with columns of onnxruntime where some row has them."""
    heading = ("network", "sizes", "tensors", "naive", "bound: raw", "views", "in place", *PLANNERS, "ordered", "gap")
    threads = list(dict.fromkeys(count for row in rows for count in row.onnxruntime))
    others = [f"onnxruntime ms, {count} thread{'s' if count > 1 else ''}" for count in threads]
    cells = [_cells(row, threads) for row in rows]
    return "\n\n".join([machine_text(), table((*heading, "compile s", "ms", *others), cells)])


def _cells(row: GraphRow, threads: Sequence[int]) -> tuple[str, ...]:
    sizes = ", ".join(f"{name} {value}" for name, value in row.sizes.items())
    numbers = (row.intermediates, row.naive, row.raw, row.views, row.in_place, *row.planned.values(), row.ordered)
    return (
        *(row.name, sizes, *map(str, numbers)),
        *(f"{row.gap:.2%}", f"{row.compile_seconds:.2f}", f"{row.milliseconds:.2f}"),
        *(f"{row.onnxruntime[count]:.2f}" if count in row.onnxruntime else "" for count in threads),
    )
