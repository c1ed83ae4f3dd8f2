"""`bench graphs`: rows for networks, with bytes that fit together, as text and as JSON."""

from __future__ import annotations

import json

from tirlite.bench.graphs import PLANNERS, graph_rows, graphs_json, graphs_text
from tirlite.bench.networks import mlp


def test_a_network_is_measured_at_each_of_its_sizes() -> None:
    rows = list(graph_rows([mlp()], runs=1))
    assert [row.sizes for row in rows] == [{"batch": 1}, {"batch": 7}, {"batch": 32}]
    for row in rows:
        assert row.views <= row.raw <= row.naive
        assert row.gap >= 0
        assert tuple(row.planned) == PLANNERS
        assert row.planned["auto"] == row.ordered == row.compiled
        assert row.planned["coalesce"] > row.planned["graph"]
        assert row.met
    listed = json.loads(graphs_json(rows))["graphs"]
    assert [each["gap"] for each in listed] == [0, 0, 0]
    assert "per_shape" in graphs_text(rows)
