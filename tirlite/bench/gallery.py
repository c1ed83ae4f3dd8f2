"""Measures kernels of the gallery in several builds, called in turns: with checks, workers or other schedules."""

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
from tirlite.analysis.in_bounds.guarded import guarded_accesses
from tirlite.analysis.in_bounds.safety import Verdict, safety_of
from tirlite.bench.definitions import forks
from tirlite.bench.figures import Figure
from tirlite.cli.kernel_file import kernels_in
from tirlite.cli.turns import medians
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Add, Buffer, Call, Load, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.size import value_of
from tirlite.ir.stmt import Allocate, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt, Store, View, While
from tirlite.kernels.case import Case
from tirlite.kernels.gallery import CASES
from tirlite.rewrite.normalize import Normalize
from tirlite.target import Target

# The bars for the slowdown of checked code, and for the microseconds of a fork, averaged over `FORKS`.
DEBUG_BAR, FORK_BAR = 10.0, 1.0
FORKS = 2000

# Sizes for calls of some tens of microseconds, mostly within the caches.
SMALL: Mapping[str, tuple[int, ...]] = {
    "smoothstep": (1 << 16,),
    "gated": (1 << 16,),
    "matmul": (128, 128, 128),
    "matmul_tiled": (128, 128, 128),
    "matmul_i8": (128, 128, 128),
    "softmax": (256, 256),
    "layer_norm": (256, 256),
    "attention": (2, 64, 64, 64, 64),
    "argmax": (256, 256),
    "prefix_sum": (1 << 16,),
    "prefix_sum_blocks": (1 << 16,),
    "spmv": (4096, 1000),
    "convolution": (4, 4, 64, 64, 3, 3),
    "blur": (256, 256),
    "blur_u8": (256, 256),
    "jacobi": (128, 128, 5),
    "histogram": (1 << 16,),
    "histogram_split": (1 << 16,),
    "harris": (256, 256),
    "block_matmul": (64, 64, 64),
    "block_sum": (1 << 16,),
    "block_transpose": (256, 256),
}
# Sizes for calls of a millisecond or more.
LARGE: Mapping[str, tuple[int, ...]] = {
    "smoothstep": (1 << 21,),
    "gated": (1 << 21,),
    "matmul": (256, 256, 256),
    "matmul_tiled": (512, 512, 512),
    "matmul_i8": (512, 512, 512),
    "softmax": (1024, 1024),
    "layer_norm": (1024, 1024),
    "attention": (4, 256, 256, 64, 64),
    "argmax": (2048, 1024),
    "prefix_sum_blocks": (1 << 16,),
    "spmv": (100_000, 100_000),
    "convolution": (16, 16, 56, 56, 3, 3),
    "blur": (1024, 1024),
    "blur_u8": (1024, 1024),
    "jacobi": (512, 512, 20),
    "harris": (1024, 1024),
}


def in_turn(
    case: Case, builds: Sequence[driver.Kernel], sizes: Mapping[str, tuple[int, ...]], runs: int, *, quick: bool
) -> tuple[list[float], str]:
    """The median seconds of each build of a kernel, and the size used; `quick` takes the tests' small size."""
    size = case.sizes[-1] if quick else sizes[case.kernel.name]
    arguments = case.inputs(np.random.default_rng(0), *size)
    seconds = medians([partial(build, *arguments) for build in builds], 3 if quick else runs)
    return seconds, " x ".join(map(str, size))


def debug_figures(*, quick: bool = False) -> Iterator[Figure]:
    """The slowdown of each kernel with `debug=True`.

    Both builds run on one worker, as checked code runs parallel loops sequentially.
    """
    target = Target.host(workers=1)
    for case in CASES:
        builds = [driver.compile(case.kernel, target=target, debug=debug) for debug in (False, True)]
        (plain, checked), size = in_turn(case, builds, SMALL, 51, quick=quick)
        note = f"{1e6 * plain:.0f} us, with checks {1e6 * checked:.0f} us; size {size}"
        yield Figure(case.kernel.name, checked / plain, "x", DEBUG_BAR, note)


def parallel_figures(workers: int, *, quick: bool = False) -> Iterator[Figure]:
    """The cost of a fork, and the time of each parallel kernel on `workers` relative to one worker."""
    targets = [Target.host(workers=1), Target.host(workers=workers)]
    yield _fork(targets, quick=quick)
    for case in CASES:
        builds = [driver.compile(case.kernel, target=target) for target in targets]
        if case.kernel.name not in LARGE or "tirlite.fork_join" not in builds[1].llvm:
            continue
        (alone, together), size = in_turn(case, builds, LARGE, 31, quick=quick)
        note = f"{1e3 * alone:.2f} ms alone, {1e3 * together:.2f} ms with {workers} workers; {size}"
        yield Figure(case.kernel.name, together / alone, "x", None, note)


def _fork(targets: Sequence[Target], *, quick: bool) -> Figure:
    """The cost of starting a parallel loop and waiting for its end."""
    builds = [driver.compile(forks, target=target) for target in targets]
    times = 10 if quick else FORKS
    arguments = (np.zeros(1, np.int64), times, np.zeros(16, np.int64))
    alone, together = medians([partial(build, *arguments) for build in builds], 3 if quick else 31)
    workers = targets[1].workers
    return Figure("fork and join", 1e6 * (together - alone) / times, "us", FORK_BAR, f"a loop for {workers} workers")


def compact_figures(*, quick: bool = False) -> Iterator[Figure]:
    """The time of each kernel with `schedule="compact"` relative to the default, and their mean.

    For kernels with temporaries, on one worker.
    """
    target = Target.host(workers=1)
    ratios: list[float] = []
    for case in (case for case in CASES if case.kernel.name in LARGE and case.kernel.plan.problem.requests):
        builds = [driver.compile(case.kernel, target=target, schedule=each) for each in ("auto", "compact")]
        (alone, together), _ = in_turn(case, builds, LARGE, 31, quick=quick)
        ratios.append(together / alone)
        before, after = (f"{each.plan.total}" for each in builds)
        note = f"{before} bytes -> {after}; {1e3 * alone:.2f} ms -> {1e3 * together:.2f} ms"
        yield Figure(case.kernel.name, ratios[-1], "x", None, note)
    yield Figure("all of them", geometric_mean(ratios), "x", None, "mean of these kernels")


# The bars for the slowdown by safety, of one kernel and in the mean.
SAFETY_BAR, SAFETY_BAR_IN_ALL = 1.25, 1.05
# The bars for the share of accesses checked inside loops, and for the growth of code and compile time.
MOST_CHECKED, MOST_CODE = 0.05, 1.1
# The extents of arrays for kernels from files.
_EXTENT = 24
_COMPILED: Mapping[str, Callable[..., driver.Kernel]] = MappingProxyType(
    {"": driver.compile, ", loops as written": partial(driver.compile, schedule=None)}
)


def safety_figures(files: Sequence[Path] = (), *, quick: bool = False) -> Iterator[Figure]:
    """The cost of safety: run time, code size, compile time, and the shares of accesses checked.
    The slowdown of each kernel and in the mean, from calls in turns; the growth of code and compile time where all
    accesses are proved; the accesses in the source and as executed, of the gallery and of kernels in `files`. `quick`
    takes the tests' small sizes.
    """
    given = {file: kernels_in(file).values() for file in files}  # first, so that errors come before measuring
    for loops, compiled in _COMPILED.items():
        ratios: list[float] = []
        for case in CASES:
            kernel = case.kernel
            builds = [compiled(kernel, unchecked=unchecked) for unchecked in (True, False)]
            (bare, safe), _ = in_turn(case, builds, SMALL, 101, quick=quick)
            ratios.append(safe / bare)
            is_same = len({build.asm for build in builds}) == 1
            note = f"{1e6 * bare:.0f} us, safe {1e6 * safe:.0f} us{', the same code' if is_same else ''}"
            yield Figure(kernel.name + loops, safe / bare, "x", None if quick else SAFETY_BAR, note)
        yield Figure("geometric mean" + loops, geometric_mean(ratios), "x", None if quick else SAFETY_BAR_IN_ALL)
    yield from _code(1 if quick else 5)
    yield from _accesses({case.kernel: case.inputs(np.random.default_rng(0), *case.sizes[-1]) for case in CASES}, "")
    for file, kernels in given.items():
        yield from _accesses({each: plain_arguments(each.ir, _EXTENT) for each in kernels}, f", {file.name}")


def _code(runs: int) -> Iterator[Figure]:
    """The growth of code and of compile time for kernels in which all accesses are proved."""
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
    """The share of accesses checked inside loops: of those in the source, and of those executed in a call."""
    in_source, in_calls = Counter[str](), Counter[str]()
    for kernel, arguments in calls.items():
        report = kernel.safety
        in_source.update(each.how if each.where != "at its loop" else "checked" for each in report)
        in_calls.update(executed(kernel, arguments))
    for name, counted in (("accesses checked in loops", in_source), ("executed accesses checked in loops", in_calls)):
        share = counted["checked"] / max(counted.total(), 1)
        note = ", ".join(f"{number} {how}" for how, number in sorted(counted.items()))
        yield Figure(name + where, share, "", MOST_CHECKED, note)


def executed(kernel: driver.Kernel, arguments: Sequence[object]) -> Counter[str]:
    """How many accesses of a call, without its callees, are "proved", "decided" or "checked".

    Accesses of a statement count as often as it runs, even those under its conditions, with the loops as written.
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
    """How often each of the statements runs in a call."""
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
    """Removes barriers, as threads run one after another here and results do not matter."""
    return SeqStmt() if isinstance(node.value, Call) and node.value.op is Op.BARRIER else node


def plain_arguments(func: PrimFunc, extent: int) -> list[object]:
    """Arguments of a function without its outputs, all dims being `extent`; integers rise, and stay below it."""
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
