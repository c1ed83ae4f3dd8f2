"""Measures the price of safety: the time of each kernel of the gallery beside the same one with `unchecked=True`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from time import process_time
from types import MappingProxyType

import numpy as np

from tirlite import driver
from tirlite.analysis.facts import Facts
from tirlite.analysis.guarded import guarded_accesses
from tirlite.analysis.safety import Verdict, safety_of
from tirlite.bench.figures import Figure
from tirlite.bench.gallery import SMALL, in_turn
from tirlite.cli.kernel_file import kernels_in
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, Call, Load, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.size import value_of
from tirlite.ir.stmt import Allocate, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, View, While
from tirlite.kernels.gallery import CASES
from tirlite.rewrite.normalize import Normalize

# The most that one kernel, and that all of them together, may take for it.
BAR, BAR_IN_ALL = 1.25, 1.05
# Accesses that are neither proved nor decided outside of all loops, and what code and compile time may grow.
MOST_CHECKED, MOST_CODE = 0.05, 1.1
# The extents of arrays for kernels of which no more is known.
_EXTENT = 24
_COMPILED: Mapping[str, Callable[..., driver.Kernel]] = MappingProxyType(
    {"": driver.compile, ", loops as written": partial(driver.compile, schedule=None)}
)


def safety_figures(files: Sequence[Path] = (), *, quick: bool = False) -> Iterator[Figure]:
    """Ratios of medians of calls in turn, one a kernel and their mean; the growth of code and of the time to compile it
    where all is proved; accesses in the source, and as executed, of the gallery and of other files with kernels.

    `quick` takes the tests' small sizes.
    """
    for loops, compiled in _COMPILED.items():
        ratios: list[float] = []
        for case in CASES:
            kernel = case.kernel
            builds = [compiled(kernel, unchecked=unchecked) for unchecked in (True, False)]
            (bare, safe), _ = in_turn(case, builds, SMALL, 101, quick=quick)
            ratios.append(safe / bare)
            is_same = len({build.asm for build in builds}) == 1
            note = f"{1e6 * bare:.0f} us, safe {1e6 * safe:.0f} us{', the same code' if is_same else ''}"
            yield Figure(kernel.name + loops, safe / bare, "x", None if quick else BAR, note)
        yield Figure("geometric mean" + loops, geometric_mean(ratios), "x", None if quick else BAR_IN_ALL)
    yield from _code(1 if quick else 5)
    yield from _accesses({case.kernel: case.inputs(np.random.default_rng(0), *case.sizes[-1]) for case in CASES}, "")
    for file in files:
        kernels = kernels_in(file).values()
        yield from _accesses({each: plain_arguments(each.ir, _EXTENT) for each in kernels}, f", {file.name}")


def _code(runs: int) -> Iterator[Figure]:
    """How much longer code is, and takes to make, for kernels in which all accesses are proved."""
    clean = [case.kernel for case in CASES if case.kernel.safety.count("proved") == len(case.kernel.safety)]
    code, ratios = Counter[bool](), []
    for kernel in clean:
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for run in range(runs):
            for unchecked in (True, False):
                start = process_time()
                text = driver.compile(kernel, unchecked=unchecked).asm
                seconds[unchecked].append(process_time() - start)
                code[unchecked] += len(text) if run == 0 else 0
        ratios.append(min(seconds[False]) / min(seconds[True]))
    note = f"{len(clean)} kernels in which all is proved"
    yield Figure("assembly beside unchecked", code[False] / code[True], "x", MOST_CODE, note)
    bar = None if runs == 1 else MOST_CODE
    yield Figure("time to compile beside unchecked", geometric_mean(ratios), "x", bar, note)


def _accesses(calls: dict[driver.Kernel, Sequence[object]], where: str) -> Iterator[Figure]:
    """What share of accesses is checked inside of loops: by those in the source, and by those that a call makes."""
    in_source, in_calls = Counter[str](), Counter[str]()
    for kernel, arguments in calls.items():
        report = kernel.safety
        in_source.update(each.how if each.where != "at its loop" else "checked" for each in report)
        in_calls.update(executed(kernel, arguments))
    for name, counted in (("accesses checked in loops", in_source), ("executed accesses checked in loops", in_calls)):
        share = counted["checked"] / max(counted.total(), 1)
        told = ", ".join(f"{number} {how}" for how, number in sorted(counted.items()))
        yield Figure(name + where, share, "", MOST_CHECKED, told)


def executed(kernel: driver.Kernel, arguments: Sequence[object]) -> Counter[str]:
    """How many accesses of a call, without those of what it calls, are "proved", "decided" or "checked".

    Those of a statement count as often as it runs, whatever its conditions leave out, on loops as they are written.
    """
    facts = Facts(Normalize()(kernel.ir))
    verdicts: dict[Node, Verdict] = {}
    for each in safety_of(facts, at_entry=True).judged:
        is_worse = verdicts.get(each.access.node) is not Verdict.CHECKED
        verdicts[each.access.node] = each.verdict if is_worse else Verdict.CHECKED
    of_stmt: dict[Stmt, Counter[str]] = {}
    for access in guarded_accesses(facts.func, facts.space):
        if access.node.buffer.shape and not isinstance(access.node, View):
            found = verdicts.get(access.node, Verdict.PROVED)
            of_stmt.setdefault(access.stmt, Counter())[found.value] += 1
    runs = _runs(facts.func, list(of_stmt), arguments)
    total: Counter[str] = Counter()
    for times, counted in zip(runs, of_stmt.values(), strict=True):
        total.update({how: int(times) * number for how, number in counted.items()})
    return total


def _runs(func: PrimFunc, stmts: Sequence[Stmt], arguments: Sequence[object]) -> np.ndarray:
    """How often each of some statements runs in a call."""
    counts = Buffer("times_run", i64, (const(max(len(stmts), 1), i64),))
    places = {stmt: place for place, stmt in enumerate(stmts)}
    met: list[Stmt] = []

    def counted(node: Stmt) -> Stmt | tuple[Stmt, ...]:
        place = places.get(met.pop())
        serial = node.replaced(kind=ForKind.SERIAL, thread_tag="") if isinstance(node, For) else node
        if place is None:
            return serial
        index = (const(place, i64),)
        count = Store(counts, index, Add(Load(counts, index), const(1, i64)))
        if isinstance(serial, While):
            return serial.replaced(body=SeqStmt((count, *serial.body.stmts)))
        return count, serial

    kinds = {*map(type, stmts), For, While, IfThenElse} - {Allocate}
    rules: dict[type[Node], Rule] = {Evaluate: _without_barrier, **dict.fromkeys(kinds, counted)}
    body = rewrite(func.body, rules, enter=dict.fromkeys(kinds, met.append))
    assert isinstance(body, SeqStmt)
    made = func.replaced(params=(*func.params, counts), body=body, defaults=())
    found = np.zeros(max(len(stmts), 1), np.int64)
    driver.compile(made, unchecked=True, schedule=None)(*arguments, times_run=found)
    return found[: len(stmts)]


def _without_barrier(node: Evaluate) -> Stmt:
    """Threads run one after another here: what they compute is not looked at."""
    return SeqStmt() if isinstance(node.value, Call) and node.value.op is Op.BARRIER else node


def plain_arguments(func: PrimFunc, extent: int) -> list[object]:
    """Arguments of a function without its outputs, whose dims are all `extent`: integers rise, and stay below it."""
    values = dict.fromkeys(func.dims, extent)
    found: list[object] = []
    for param in func.params:
        if isinstance(param, Var):
            found.append(2)
        elif param not in func.outputs:
            shape = [value_of(each, values) or 0 for each in param.shape]
            rising = np.linspace(0, min(extent, 255) - 1, int(np.prod(shape)))
            found.append(rising.reshape(shape).astype(param.dtype.numpy))
    return found
