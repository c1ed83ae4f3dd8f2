"""Formats measured plans as tables or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from math import log
from statistics import fmean, linear_regression
from typing import TypeVar

from tirlite.bench.figures import VERDICT, Figure, as_json, machine_text
from tirlite.bench.plans import MOMENTS, SEARCHES, Failure, Result, Row, SymbolicRow
from tirlite.show import table

R = TypeVar("R")
# The bars for the mean gap of a group at each of MOMENTS, and for the mean peak of symbolic plans over the bound.
_GAP_BARS = (0.15, 0.05, 0.01)
_MEAN_BAR = 1.2
# Groups of networks, and an unnoticeable number of seconds; numbers of buffers over which time should grow linearly.
_NETWORKS, _BLINK = ("network", "onnx"), 0.02
_GROWING, _GROWTH_BAR = (1_000, 4_000, 16_000), 1.2


def plans_text(results: Sequence[Result]) -> str:
    """The machine, one table for constant and one for symbolic sizes, failures, and figures over all."""
    rows = [result for result in results if isinstance(result, Row)]
    symbolic = [result for result in results if isinstance(result, SymbolicRow)]
    failures = [result for result in results if isinstance(result, Failure)]
    parts = [machine_text()]
    if rows:
        parts.append(_table(_COLUMNS, rows))
    if symbolic:
        parts.append("peak over the lower bound, at 1,000 bindings")
        parts.append(_table(_SYMBOLIC, symbolic))
    parts += [f"{failure.name}: {failure.error}" for failure in failures]
    summary = [(each.name, _number(each.value), _number(each.bar), VERDICT[each.met]) for each in overall(results)]
    parts.append(table(("over all", "measured", "bar", "met"), summary))
    return "\n\n".join(parts)


def plans_json(results: Sequence[Result]) -> str:
    """One JSON object: the machine, the instances, the symbolic ones, failures, and overall figures."""
    rows = [{**asdict(r), "gap": r.gap, "met": r.met} for r in results if isinstance(r, Row)]
    for row in rows:
        row["gaps"] = {f"{moment:g}": gap for moment, gap in zip(MOMENTS, row["gaps"], strict=True)}
    symbolic = [asdict(r) | {"met": r.ours.mean <= _MEAN_BAR} for r in results if isinstance(r, SymbolicRow)]
    failures = [asdict(r) for r in results if isinstance(r, Failure)]
    figures = [asdict(figure) | {"met": figure.met} for figure in overall(results)]
    return as_json(instances=rows, symbolic=symbolic, failures=failures, figures=figures)


def overall(results: Iterable[Result]) -> Iterator[Figure]:
    """Figures over all instances."""
    known = list(results)
    rows = [result for result in known if isinstance(result, Row)]
    if rows:
        yield Figure("instances that miss their bar", sum(not row.met for row in rows), "", 0)
        yield from _mean_gaps(rows)
        yield from _fits(rows)
        yield from _speeds(rows)
    symbolic = [result for result in known if isinstance(result, SymbolicRow)]
    if symbolic:
        yield Figure("symbolic: mean peak over the bound", fmean(row.ours.mean for row in symbolic), "", _MEAN_BAR)
        yield Figure("symbolic: worst peak over the bound", max(row.ours.worst for row in symbolic), "")
        yield Figure("per shape: worst over the bound", max(row.shapes.quality.worst for row in symbolic), "", 1)
        yield Figure("per shape: plan for a new binding, median", max(r.shapes.milliseconds for r in symbolic), "ms")
        yield Figure(
            "all offsets at a binding, by native code, most", max(r.offsets.native for r in symbolic), "ns", 1000
        )
        yield Figure("reuse of equal expressions: mean", fmean(row.equal.mean for row in symbolic), "")
        yield Figure("reuse of equal expressions: worst", max(row.equal.worst for row in symbolic), "")


def _mean_gaps(rows: Sequence[Row]) -> Iterator[Figure]:
    """The mean gaps of each group that is not solved at the first moment. No plan yet counts as a gap of 1.

    The bars are for tables with a capacity.
    """
    for group in dict.fromkeys(row.group for row in rows if row.strategy in SEARCHES and row.gaps[0] != 0):
        own = [row for row in rows if row.group == group]
        gaps = [[1.0 if gap is None else gap for gap in row.gaps] for row in own]
        has_bars = any(row.fresh is not None for row in own)
        for moment, bar, at in zip(MOMENTS, _GAP_BARS, zip(*gaps, strict=True), strict=True):
            yield Figure(f"{group}: mean gap of {len(gaps)} at {moment:g} s", fmean(at), "", bar if has_bars else None)


def _fits(rows: Sequence[Row]) -> Iterator[Figure]:
    """The total seconds to plans that fit, beside another planner's published ones; and the gaps of new processes."""
    known = [(row.fit, row.elsewhere) for row in rows if row.elsewhere is not None]
    ours = [ours for ours, _ in known if ours is not None]
    if known and len(ours) == len(known):
        theirs = sum(seconds for _, seconds in known if seconds is not None)
        yield Figure(
            f"seconds to a plan that fits, {len(known)} in all; bar: MiniMalloc as published", sum(ours), "s", theirs
        )
    for group in dict.fromkeys(row.group for row in rows if row.fresh is not None):
        fresh = [row.fresh for row in rows if row.group == group and row.fresh is not None]
        name = f"{group}: mean gap of {len(fresh)} in new processes, which have {MOMENTS[0]:g} s"
        yield Figure(name, fmean(each.gap for each in fresh), "", _GAP_BARS[0])
        yield Figure(f"{group}: most seconds of these", max(each.seconds for each in fresh), "s")


def _speeds(rows: Sequence[Row]) -> Iterator[Figure]:
    """How many networks take longer than a blink, and the growth of time with the buffers of traces."""
    for group in dict.fromkeys(row.group for row in rows if row.group in _NETWORKS):
        times = [row.seconds for row in rows if row.group == group]
        slow = sum(seconds > _BLINK for seconds in times)
        yield Figure(f"{group}: of {len(times)}, planned in more than {_BLINK * 1e3:g} ms", slow, "")
    traces = [(row.buffers, row.seconds) for row in rows if row.group == "trace" and row.buffers in _GROWING]
    if len(traces) == len(_GROWING):
        slope, _ = linear_regression(*zip(*((log(count), log(seconds)) for count, seconds in traces), strict=True))
        yield Figure("trace: seconds grow with buffers to the power of, from 1,000 to 16,000", slope, "", _GROWTH_BAR)


def _gap_at(place: int, row: Row) -> str:
    gap = row.gaps[place]
    return "-" if gap is None else f"{gap:.2%}"


def _or_nothing(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


# The headings of the columns, and their cells.
_COLUMNS: Sequence[tuple[str, Callable[[Row], object]]] = (
    ("instance", lambda row: row.name),
    ("strategy", lambda row: row.strategy),
    ("buffers", lambda row: row.buffers),
    ("lower bound", lambda row: row.lower_bound),
    ("total", lambda row: row.total),
    ("bar", lambda row: row.total_bar),
    ("gap", lambda row: f"{row.gap:.2%}"),
    ("proved", lambda row: "yes" if row.proved else ""),
    ("seconds", lambda row: f"{row.seconds:.3f}"),
    ("bar", lambda row: f"{row.seconds_bar:g}"),
    ("met", lambda row: VERDICT[row.met]),
    ("CPU", lambda row: _or_nothing(row.cpu, ".3f")),
    ("MB", lambda row: _or_nothing(row.megabytes, ".0f")),
    *((f"gap {moment:g} s", partial(_gap_at, place)) for place, moment in enumerate(MOMENTS)),
    ("new process", lambda row: "" if row.fresh is None else f"{row.fresh.gap:.2%} in {row.fresh.seconds:.2f} s"),
    ("fit s", lambda row: _or_nothing(row.fit, ".3f")),
    ("elsewhere s", lambda row: _or_nothing(row.elsewhere, ".2f")),
)
_SYMBOLIC: Sequence[tuple[str, Callable[[SymbolicRow], object]]] = (
    ("instance", lambda row: row.name),
    ("strategy", lambda row: row.strategy),
    ("buffers", lambda row: row.buffers),
    ("names", lambda row: " ".join(row.names)),
    ("seconds", lambda row: f"{row.seconds:.3f}"),
    ("MB", lambda row: _or_nothing(row.megabytes, ".0f")),
    ("mean", lambda row: f"{row.ours.mean:.3f}"),
    ("bar", lambda _: f"{_MEAN_BAR:g}"),
    ("met", lambda row: VERDICT[row.ours.mean <= _MEAN_BAR]),
    ("worst", lambda row: f"{row.ours.worst:.3f}"),
    ("equal: mean", lambda row: f"{row.equal.mean:.3f}"),
    ("worst", lambda row: f"{row.equal.worst:.3f}"),
    ("per shape: mean", lambda row: f"{row.shapes.quality.mean:.3f}"),
    ("worst", lambda row: f"{row.shapes.quality.worst:.3f}"),
    ("ms", lambda row: f"{row.shapes.milliseconds:.2f}"),
    ("most", lambda row: f"{row.shapes.most:.1f}"),
    ("offsets: ns", lambda row: round(row.offsets.python)),
    ("native", lambda row: round(row.offsets.native)),
)


def _table(columns: Sequence[tuple[str, Callable[[R], object]]], rows: Sequence[R]) -> str:
    return table(tuple(head for head, _ in columns), [tuple(cell(row) for _, cell in columns) for row in rows])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
