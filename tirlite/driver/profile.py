"""Times the outermost loops of a kernel, and compares them with the bytes they move and the machine's limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.analysis.loops.loop_costs import Costs, costs_of
from tirlite.driver.build import Version
from tirlite.driver.front import Front
from tirlite.driver.timed_calls import TimedCalls
from tirlite.dsl import parse
from tirlite.groups import by_key
from tirlite.ir import For, KernelCall, PrimFunc, Stmt, Store, Var, dtype_of, statements, statements_of, text
from tirlite.record import record
from tirlite.rewrite.loops.time_loops import Timed, outermost
from tirlite.rewrite.options import Options
from tirlite.runtime import Binder
from tirlite.runtime.pool import threads_now
from tirlite.show import table
from tirlite.target import Target

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]
    from tirlite.ir import PrimFunc

    Call: TypeAlias = tuple[PrimFunc, tuple[object, ...]]

_RUNS = 25
_PATIENCE = 1.0  # seconds after which no further run starts, if there were three


@record
class LoopProfile:
    """An outermost loop: its source line, the buffers it stores to, and the seconds it took in a call.
    `runs`: how often it ran in the call. `bytes`: the bytes it moves, each element counted once. `limit`: the least
    seconds that the machine needs for them and for the operations. `limited_by`: which of these takes longest; if data
    decide what is computed, only bytes are counted.
    """

    line: int | None
    loop: str
    stores: tuple[str, ...]
    seconds: float
    runs: int
    bytes: int
    limit: float
    limited_by: str
    kind: str = ""

    @property
    def share(self) -> float:
        """The machine's limit relative to the time, 1 at best."""
        return self.limit / self.seconds if self.seconds else 0.0


class Profile(Sequence[LoopProfile]):
    """The outermost loops of a kernel in the fastest of several calls, in program order. `print` shows a table.

    `seconds`: the time of that call. `plain_seconds`: that of the fastest call without time stamps.
    """

    def __init__(self, kernel: str, workers: int, rows: Sequence[LoopProfile], seconds: float, plain: float) -> None:
        self._rows = tuple(rows)
        self.kernel = kernel
        self.workers = workers
        self.seconds = seconds
        self.plain_seconds = plain

    def __getitem__(self, place: int) -> LoopProfile:  # type: ignore[override]
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def outside(self) -> float:
        """Seconds of the call outside of loops: argument checks, memory for temporaries, single statements."""
        return max(0.0, self.seconds - sum(each.seconds for each in self._rows))

    @property
    def kinds(self) -> Mapping[str, tuple[LoopProfile, ...]]:
        """The calls by the called function, those first that took the most time in total."""
        found = by_key((each.kind, each) for each in self._rows if each.kind)
        by_time = sorted(found.items(), key=lambda item: -sum(each.seconds for each in item[1]))
        return {kind: tuple(rows) for kind, rows in by_time}

    def to_json(self) -> str:
        """The profile as one JSON object."""
        loops = [{**asdict(each), "share": each.share} for each in self._rows]
        head = {"kernel": self.kernel, "workers": self.workers, "seconds": self.seconds}
        return json.dumps({**head, "plain_seconds": self.plain_seconds, "loops": loops}, indent=1)

    def __str__(self) -> str:
        head = ("line", "loop", "stores to", "ms", "of call", "MB", "GB/s", "limit, ms", "by", "share of limit")
        rows = [
            (
                str(each.line or ""),
                each.loop,
                ", ".join(each.stores),
                f"{1e3 * each.seconds:.4g}",
                f"{each.seconds / self.seconds:.0%}",
                f"{each.bytes / 1e6:.4g}",
                f"{each.bytes / each.seconds / 1e9:.3g}" if each.seconds else "",
                f"{1e3 * each.limit:.4g}",
                each.limited_by,
                f"{each.share:.0%}",
            )
            for each in self._rows
        ]
        workers = f"{self.workers} worker{'' if self.workers == 1 else 's'}"
        return "\n".join(
            [
                f"{self.kernel}: {1e3 * self.seconds:.4g} ms a call, at best, with {workers}",
                table(head, rows) if rows else "no loops",
                *self._kind_lines(),
                f"outside of loops {1e3 * self.outside:.4g} ms; "
                f"without time stamps {1e3 * self.plain_seconds:.4g} ms a call",
            ]
        )

    def _kind_lines(self) -> Iterator[str]:
        """A table of the functions that are called, if one is called more than once."""
        if not any(len(rows) > 1 for rows in self.kinds.values()):
            return
        cells = []
        for kind, rows in self.kinds.items():
            seconds, limit = sum(each.seconds for each in rows), sum(each.limit for each in rows)
            share = f"{limit / seconds:.0%}" if seconds else ""
            cells.append((kind, str(len(rows)), f"{1e3 * seconds:.4g}", f"{seconds / self.seconds:.0%}", share))
        yield table(("calls of", "count", "ms", "of call", "share of limit"), cells)

    def __repr__(self) -> str:
        return f"<Profile of {self.kernel}: {len(self)} loops, {1e3 * self.seconds:.4g} ms>"


def profile_of(calls: TimedCalls) -> Profile:
    """The profile of a call; afterwards, the written arrays are as after one call."""
    plain, best, ticks = float("inf"), float("inf"), calls.ticks
    start, runs = perf_counter(), 0
    while runs < 3 or (runs < _RUNS and perf_counter() - start < _PATIENCE):
        plain = min(plain, calls.seconds(timed=False) or 0.0)
        seconds = calls.seconds(timed=True) or 0.0
        if seconds < best:
            best, ticks = seconds, calls.ticks.copy()
        runs += 1
    version = calls.plain
    target = version.options.target
    workers = min(target.workers, threads_now())
    return Profile(version.front.name, workers, [*_rows(calls, ticks, MachineLimits(target))], best, plain)


def _rows(calls: TimedCalls, ticks: Array, limits: MachineLimits) -> Iterator[LoopProfile]:
    """The loops that ran. Loops made from one source loop are one row."""
    func, binding = calls.func, calls.binding
    sizes = dict(zip(func.dims, binding.dims, strict=True))
    given = zip(func.params, binding.arguments, strict=False)
    sizes |= {var: int(value) for var, value in given if isinstance(var, Var) and isinstance(value, int | np.integer)}
    written = _as_written(calls.plain.func)
    ran = (place for place in range(len(calls.loops)) if ticks[2 * place + 1])
    for origin, places in by_key((_origin(calls.loops[place], written), place) for place in ran).items():
        loops = [calls.loops[place] for place in places]
        # Count a call's costs by the callee as written, not as scheduled.
        costs = costs_of([origin] if isinstance(origin, KernelCall) else loops, sizes)
        limit, by = _limit(costs, limits)
        stored = (store.buffer for loop in loops for store in statements_of(loop, Store))
        names = dict.fromkeys(each.name for each in stored if each.scope != "local")
        yield LoopProfile(
            origin.span.line if origin.span is not None else None,
            _label(origin),
            tuple(names),
            sum(int(ticks[2 * place]) for place in places) / 1e9,
            sum(int(ticks[2 * place + 1]) for place in places),
            costs.read + costs.written,
            limit,
            by,
            origin.callee.name if isinstance(origin, KernelCall) else "",
        )


def _as_written(func: PrimFunc) -> dict[object, Timed]:
    """The outermost loop around each source location."""
    found: dict[object, Timed] = {}
    for loop in outermost(func.body):
        for stmt in statements(loop):
            found.setdefault(_place(stmt), loop)
    return found


def _origin(loop: Timed, written: Mapping[object, Timed]) -> Timed:
    """The author's loop that a loop was made from, by the locations of its statements; the first one if several."""
    places = (_place(stmt) for stmt in statements(loop) if stmt.span is not None)
    return next((written[place] for place in places if place in written), loop)


def _place(stmt: Stmt) -> object:
    span = stmt.span
    return None if span is None else (span.source.name, span.line, span.column)


def _limit(costs: Costs, limits: MachineLimits) -> tuple[float, str]:
    """The least seconds that the machine needs for the costs, and which of them takes longest."""
    needs = {"bytes": limits.moving(costs.read, costs.written)}
    if costs.operations is None or costs.functions is None:
        return needs["bytes"], "bytes, at least"
    needs["multiply-adds"] = sum(limits.multiplying(count, kind) for kind, count in costs.operations.items())
    needs["functions"] = sum(limits.computing(count, *named) for named, count in costs.functions.items())
    by, limit = max(needs.items(), key=lambda need: need[1])
    return limit, by


def _label(loop: Timed) -> str:
    """A loop as its author wrote it."""
    if loop.span is not None:
        return (loop.span.source.line(loop.span.line) or "").strip()
    if isinstance(loop, For):  # made by a pass, such as a loop of index checks
        return f"added: for {loop.var.name} in {loop.kind.value}({text(loop.start)}, {text(loop.stop)}):"
    return f"tl.call({loop.callee.name}, ...)" if isinstance(loop, KernelCall) else "while ...:"


_COPIED = """
n = tl.dim("n")

@tl.kernel
def copied(x: tl.u8[n], y: tl.out[tl.u8[n]]):
    for i in LOOP(n):
        y[i] = x[i]
"""
_READ = """
n, m = tl.dims("n m")

@tl.kernel
def read(x: tl.i32[n, m], y: tl.out[tl.i32[n]]):
    for i in LOOP(n):
        y[i] = 0
        for j in tl.reduce(m):
            y[i] += x[i, j]
"""
_MULTIPLY_ADDS = """
n = tl.dim("n")

@tl.kernel
def multiply_adds(times: tl.i64, x: tl.KIND[n, LANES], y: tl.out[tl.KIND[n, LANES]]):
    for i in tl.parallel(n):
        t = tl.alloc(tl.KIND[LANES], scope="local")
        t[tl.ramp(0, 1, LANES)] = x[i, tl.ramp(0, 1, LANES)]
        for _ in range(times):
            t[tl.ramp(0, 1, LANES)] = tl.fma(
                t[tl.ramp(0, 1, LANES)], x[i, tl.ramp(0, 1, LANES)], tl.broadcast(tl.KIND(0.5), LANES)
            )
        y[i, tl.ramp(0, 1, LANES)] = t[tl.ramp(0, 1, LANES)]
"""
_FUNCTION = """
n, m = tl.dims("n m")

@tl.kernel
def computed(times: tl.i64, x: tl.KIND[n, m], y: tl.out[tl.KIND[n, m]]):
    for i in tl.parallel(n):
        for _ in range(times):
            for j in range(m):
                y[i, j] = VALUE
"""
_KINDS = ("f32", "f64")
# Independent vectors, which stay in registers.
_VECTORS = 8
_ROWS = 64
_COLUMNS = 512
# If more than so many times as much is read as written, reading is measured alone.
_READ_ALONE = 8
# For more bytes the time is extrapolated.
_MOST_BYTES = 1 << 28
_OF_TWO = ("/", "pow", "atan2")


def moving(read: int, written: int, loop: str = "tl.parallel") -> Call:
    """A function and arguments that move as many bytes. (Arrays of zeros would share one page of memory.)"""
    if written * _READ_ALONE < read:
        whole: Array = np.ones((max(read // 4096, 1), 1024), np.int32)
        return parse(_READ.replace("LOOP", loop)), (whole, np.zeros(len(whole), np.int32))
    half: Array = np.ones(max((read + written) // 2, 1), np.uint8)
    return parse(_COPIED.replace("LOOP", loop)), (half, half.copy())


def multiplying(count: int, kind: str) -> Call:
    """A function and arguments that do as many multiply-adds of f32 or f64."""
    dtype = _numpy(kind)
    lanes = _VECTORS * Target.host().processor.vector_bytes // dtype.itemsize
    x: Array = np.full((_ROWS, lanes), 0.5, dtype)
    text = _MULTIPLY_ADDS.replace("KIND", kind).replace("LANES", str(lanes))
    return parse(text), (max(count // x.size, 1), x, x.copy())


def computing(count: int, function: str, kind: str) -> Call:
    """A function and arguments that compute a function, division or root as often; `exp!` is the fast form of `exp`."""
    x: Array = np.linspace(0.25, 0.75, _ROWS * _COLUMNS).astype(_numpy(kind)).reshape(_ROWS, _COLUMNS)
    name, fast = function.removesuffix("!"), ", fast=True" if function.endswith("!") else ""
    second = ", x[i, j]" if function in _OF_TWO else ""
    value = "x[i, j] / (x[i, j] + 1)" if function == "/" else f"tl.{name}(x[i, j]{second}{fast})"
    text = _FUNCTION.replace("KIND", kind).replace("VALUE", value)
    return parse(text), (max(count // x.size, 1), x, x.copy())


def _numpy(kind: str) -> np.dtype[Any]:
    dtype = dtype_of(kind)
    assert dtype is not None
    return dtype.numpy


class MachineLimits:
    """The machine's measured limits in seconds, for its current processors and memory; each is measured once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._known: dict[object, float] = {}

    def moving(self, read: int, written: int) -> float:
        """The time to move so many bytes, in caches if they fit."""
        total = read + written
        if not total:
            return 0.0
        share = min(1.0, _MOST_BYTES / total)
        parts = int(read * share), int(written * share)
        loops = ("range", "tl.parallel")
        seconds = [self._seconds((each, *parts), partial(moving, *parts, each)) for each in loops]
        return min(seconds) / share

    def multiplying(self, count: int, kind: str) -> float:
        """The time of so many multiply-adds; those of 16 bits are done in f32."""
        kind = kind if kind in _KINDS else "f32"
        few = 1 << 24
        return count / few * self._seconds(kind, lambda: multiplying(few, kind)) if count else 0.0

    def computing(self, count: int, function: str, kind: str) -> float:
        """The time to compute a function so often."""
        kind = kind if kind in _KINDS else "f32"
        few = 1 << 20
        seconds = self._seconds((function, kind), lambda: computing(few, function, kind))
        return count / few * seconds if count else 0.0

    def _seconds(self, key: object, make: Callable[[], Call]) -> float:
        if key not in self._known:
            func, arguments = make()
            front = Front(func)
            version = Version(front, Options(target=self._target))
            binding = Binder(front.signature, None, front).bind(arguments, {})
            self._known[key] = _loop_seconds(TimedCalls(version, binding))
        return self._known[key]


def _loop_seconds(calls: TimedCalls) -> float:
    """The least time that the loops of a call take, without the call's overhead, of at least three calls."""
    found: list[float] = []
    while len(found) < 3 or (len(found) < 15 and sum(found) < 0.2):
        calls.seconds(timed=True)
        found.append(float(calls.ticks[:-1:2].sum()) / 1e9)
    return min(found)
