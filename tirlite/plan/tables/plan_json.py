"""Writes plans as JSON, a layout and its figures, and reads them back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tirlite.plan.layout import Choice, Decision, Layout, Placement, PlannedPool
from tirlite.plan.problem import Problem
from tirlite.plan.request import is_alignment
from tirlite.plan.tables.problem_json import Parts, as_json, from_json, names_of, read_size, reading, size_json
from tirlite.sizes import Size


def layout_to_json(layout: Layout, sizes: Mapping[str, Size], figures: Mapping[str, object]) -> str:
    """The layout as JSON, its problem included, with sizes and figures about it that are derived and not read back."""
    problem = layout.problem
    parts = Parts(problem.requests, problem.pools, problem.in_place, problem.facts, problem.contiguous)
    names = names_of((*problem.dims, *problem.facts.values()))
    pools = {
        name: {"memory": r.memory, "scope": r.scope, "size": size_json(r.size, names), "align": r.align}
        for name, r in layout.pools.items()
    }
    decisions = {
        name: [d.choice.value] if d.before is None else [d.choice.value, size_json(d.before, names)]
        for name, d in layout.decisions.items()
    }
    data = {
        "strategy": layout.strategy,
        **{name: size_json(size, names) for name, size in sizes.items()},
        **figures,
        "seconds": layout.seconds,
        "deterministic": layout.deterministic,
        "buffers": {name: [p.pool, size_json(p.offset, names)] for name, p in layout.placements.items()},
        "pools": pools,
        "decisions": decisions,
        "in_place": layout.in_place,
        "proved": size_json(layout.proved, names),
        "proved_open": size_json(layout.proved_open, names),
        "problem": as_json(parts, names),
    }
    return json.dumps(data, indent=1)


def layout_from_json(text: str) -> Layout:
    """The layout that `layout_to_json` wrote. Raises PlanError for anything else."""
    return reading("plan", lambda: _layout(json.loads(text)))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _align(value: int) -> int:
    if not is_alignment(value):
        raise ValueError(f"{value!r} is not an alignment")
    return value


def _layout(data: Mapping[str, Any]) -> Layout:
    parts, dims = from_json(data["problem"])
    buffers = data["buffers"].items()
    placements = {name: Placement(_text(pool), read_size(offset, dims)) for name, (pool, offset) in buffers}
    pools = {
        name: PlannedPool(_text(r["memory"]), _text(r["scope"]), read_size(r["size"], dims), _align(r["align"]))
        for name, r in data["pools"].items()
    }
    decisions = {
        name: Decision(Choice(choice), *(read_size(size, dims) for size in before))
        for name, (choice, *before) in data["decisions"].items()
    }
    problem = Problem(*parts)
    pairs = tuple((_text(dst), _text(src)) for dst, src in data["in_place"])
    ended, seconds = data["deterministic"], data["seconds"]
    proved, proved_open = (read_size(data[name], dims) for name in ("proved", "proved_open"))
    return Layout(
        problem,
        placements,
        pools,
        data["strategy"],
        decisions,
        ended,
        seconds,
        in_place=pairs,
        proved=proved,
        proved_open=proved_open,
    )
