"""Tells of a plan: a summary for people, or JSON for machines."""

from __future__ import annotations

import json
import shutil

from tirlite.diag import TirliteError
from tirlite.plan import Plan, Problem, lower_bound
from tirlite.plan.layout import addresses
from tirlite.plan.report.witness import Witness, witness
from tirlite.show import table
from tirlite.sizes import Size

# Narrower terminals get no chart.
_NARROWEST, _WIDEST, _CHART_LINES = 60, 160, 24


def plan_text(plan: Plan, name: str) -> str:
    """The figures, and a chart where the terminal is wide enough."""
    columns = shutil.get_terminal_size().columns
    parts = [table(("", ""), _figures(plan, name)).partition("\n")[2].partition("\n")[2]]
    if columns >= _NARROWEST:
        parts.append(plan.to_text(width=min(columns, _WIDEST) - 8, height=_CHART_LINES))
    return "\n\n".join(parts)


def plan_json(plan: Plan, seconds_to_fit: float | None = None) -> str:
    """One object: figures, the number of buffers, and their offsets by id. Sizes over dims are text.

    `seconds_to_fit` are those to the first plan that fits the capacity, if there is one.
    """
    places = addresses(plan).of
    figures = {
        "total": _number(plan.total),
        "lower_bound": _number(plan.lower_bound),
        "gap": plan.gap,
        "proved_optimal": plan.proved_optimal,
        "seconds": plan.seconds,
        "strategy": plan.strategy,
        "buffers": len(plan.problem.requests),
        "capacity": _capacity(plan.problem),
        "seconds_to_fit": seconds_to_fit,
        "deterministic": plan.deterministic,
        "offsets": {request.id: _number(places[request.id]) for request in plan.problem.requests},
    }
    return json.dumps(figures, indent=1)


def failure_json(strategy: str, capacity: int | None, error: TirliteError, problem: Problem | None = None) -> str:
    """One object: the same figures without a plan, and where there can be none the witness of that.

    What only the problem tells is null where that is not known.
    """
    found = None if problem is None else witness(problem)
    figures = {
        "total": None,
        "lower_bound": None if problem is None else _number(lower_bound(problem)),
        "gap": None,
        "proved_optimal": False,
        "seconds": None,
        "strategy": strategy,
        "buffers": None if problem is None else len(problem.requests),
        "capacity": capacity,
        "seconds_to_fit": None,
        "error": error.code,
        "impossible": None if problem is None else found is not None,
        "witness": found and _told_witness(found),
    }
    return json.dumps(figures, indent=1)


def _told_witness(found: Witness) -> dict[str, object]:
    told: dict[str, object] = {"time": found.time, "bytes": found.bytes, "live": list(found.live)}
    return told | ({"binding": dict(found.binding)} if found.binding else {})


def _figures(plan: Plan, name: str) -> list[tuple[str, str]]:
    gap = "depends on the names in sizes" if plan.gap is None else f"{plan.gap:.2%}"
    proved = ", proved optimal" if plan.proved_optimal else ""
    limit = _capacity(plan.problem)
    rows = [
        ("lifetimes", f"{name}: {len(plan.problem.requests):,} buffers"),
        ("strategy", plan.strategy),
        ("total", f"{_bytes(plan.total)}{proved}"),
        ("lower bound", _bytes(plan.lower_bound)),
        ("gap", gap),
        ("capacity", "no limit" if limit is None else f"{_bytes(limit)}, kept"),
        ("seconds", f"{plan.seconds:.3f}" + ("" if plan.deterministic else ", ended by the clock")),
    ]
    if plan.problem.dims:
        told = ", ".join(_told(dim.name, dim.low, dim.high, dim.multiple_of) for dim in plan.problem.dims)
        rows.insert(1, ("valid for all", told))
    return rows


def _capacity(problem: Problem) -> int | None:
    """That of the only memory, as files tell of one alone."""
    return next((pool.capacity for pool in problem.memories.values()), None)


def _told(name: str, low: int, high: int | None, step: int) -> str:
    top = "" if high is None else f" <= {high}"
    return f"{low} <= {name}{top}" + (f", {name} % {step} == 0" if step > 1 else "")


def _bytes(size: Size) -> str:
    return f"{size:,} bytes" if isinstance(size, int) else f"{size} bytes"


def _number(size: Size) -> int | str:
    return size if isinstance(size, int) else str(size)
