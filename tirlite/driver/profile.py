"""Times the outermost loops of a kernel in a call, beside the bytes that they move and the machine's limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tirlite.analysis.loop_costs import Costs, costs_of
from tirlite.driver.limits import Limits
from tirlite.driver.timed_calls import TimedCalls
from tirlite.ir import For, KernelCall, PrimFunc, Stmt, Store, Var, statements, statements_of, text
from tirlite.record import record
from tirlite.rewrite.time_loops import Timed, outermost
from tirlite.runtime.pool import threads_now
from tirlite.show import table

if TYPE_CHECKING:
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[Any]

_RUNS = 25
_PATIENCE = 1.0  # seconds for all runs, but for three


@record
class LoopProfile:
    """An outermost loop: where its author wrote it, what it stores to, and the seconds that it took in a call.

    `bytes` are those that it moves, each element once, `limit` the least seconds that the machine takes for them and
    for what is computed, and `limited_by` which of these takes the longest. Where data decide what is computed, bytes
    are all that is counted. `runs` is how often it ran in the call.
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
        """Of the machine's limit, 1 at best."""
        return self.limit / self.seconds if self.seconds else 0.0


class Profile(Sequence[LoopProfile]):
    """The outermost loops of a kernel in the quickest of some calls, in program order. `print` shows a table.

    `seconds` is what that call took, `plain_seconds` the quickest without time stamps.
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
        """Seconds of the call that no loop took: checks of the arguments, memory for temporaries, what stands alone."""
        return max(0.0, self.seconds - sum(each.seconds for each in self._rows))

    @property
    def kinds(self) -> Mapping[str, tuple[LoopProfile, ...]]:
        """The calls by the function that is called, those first that took the most of the time together."""
        found: dict[str, list[LoopProfile]] = {}
        for each in self._rows:
            if each.kind:
                found.setdefault(each.kind, []).append(each)
        by_time = sorted(found.items(), key=lambda item: -sum(each.seconds for each in item[1]))
        return {kind: tuple(rows) for kind, rows in by_time}

    def to_json(self) -> str:
        """All of it as one object."""
        told = [
            {
                "line": each.line,
                "loop": each.loop,
                "stores": list(each.stores),
                "seconds": each.seconds,
                "runs": each.runs,
                "bytes": each.bytes,
                "limit": each.limit,
                "limited_by": each.limited_by,
                "share": each.share,
                "kind": each.kind,
            }
            for each in self._rows
        ]
        head = {"kernel": self.kernel, "workers": self.workers, "seconds": self.seconds}
        return json.dumps({**head, "plain_seconds": self.plain_seconds, "loops": told}, indent=1)

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
                *self._kinds_told(),
                f"outside of loops {1e3 * self.outside:.4g} ms; "
                f"without time stamps {1e3 * self.plain_seconds:.4g} ms a call",
            ]
        )

    def _kinds_told(self) -> Iterator[str]:
        """A row for each function that is called more than once, if there is one."""
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
    """The profile of a call; what the kernel writes is afterwards as it is after one."""
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
    return Profile(version.front.name, workers, [*_rows(calls, ticks, Limits(target))], best, plain)


def _rows(calls: TimedCalls, ticks: Array, limits: Limits) -> Iterator[LoopProfile]:
    """The loops that ran. Those that were made of one loop are told as one."""
    func, binding = calls.func, calls.binding
    sizes = dict(zip(func.dims, binding.dims, strict=True))
    given = zip(func.params, binding.arguments, strict=False)
    sizes |= {var: int(value) for var, value in given if isinstance(var, Var) and isinstance(value, int | np.integer)}
    written = _as_written(calls.plain.func)
    found: dict[Timed, list[int]] = {}
    for place, loop in enumerate(calls.loops):
        if ticks[2 * place + 1]:
            found.setdefault(_origin(loop, written), []).append(place)
    for origin, places in found.items():
        loops = [calls.loops[place] for place in places]
        # What is called does what its definition says, however it is scheduled.
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
    """The outermost loop that each place in the source stands in."""
    found: dict[object, Timed] = {}
    for loop in outermost(func.body):
        for stmt in statements(loop):
            found.setdefault(_place(stmt), loop)
    return found


def _origin(loop: Timed, written: Mapping[object, Timed]) -> Timed:
    """The loop of the author that a loop was made of, by what stands in it; of several the first."""
    places = (_place(stmt) for stmt in statements(loop) if stmt.span is not None)
    return next((written[place] for place in places if place in written), loop)


def _place(stmt: Stmt) -> object:
    span = stmt.span
    return None if span is None else (span.source.name, span.line, span.column)


def _limit(costs: Costs, limits: Limits) -> tuple[float, str]:
    """The least seconds for what loops have to do, and what takes the longest of it."""
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
    if isinstance(loop, For):  # made by a pass, as what looks at indices first
        return f"added: for {loop.var.name} in {loop.kind.value}({text(loop.start)}, {text(loop.stop)}):"
    return f"tl.call({loop.callee.name}, ...)" if isinstance(loop, KernelCall) else "while ...:"
