"""`tirlite bench plans`: what it plans, and what it says of it. No test asserts a time."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tirlite.bench import plans as bench_plans
from tirlite.bench.main import main
from tirlite.bench.plan_figures import overall, plans_json, plans_text
from tirlite.bench.plan_instances import Instance, cut, generated, instances_in, network, trace, transformer
from tirlite.bench.plans import (
    Failure,
    Fresh,
    How,
    OffsetSpeed,
    Quality,
    Replanned,
    Row,
    SymbolicRow,
    bindings,
    measured,
    quality,
    replanned,
)
from tirlite.plan import Plan, Problem, Request, lower_bound
from tirlite.plan.search.engine import PythonEngine
from tirlite.sizes import Dim

Shown = pytest.CaptureFixture[str]


def row(name: str, total: int, bar: int, gaps: tuple[float | None, ...] = (0.0, 0.0, 0.0), seconds: float = 1) -> Row:
    return Row(name, name.rpartition("/")[0], "exact", 5, 100, total, bar, total == 100, seconds, 60, 50.0, gaps)


def test_quick_figures_as_json(capsys: Shown) -> None:
    assert main(["bench", "plans", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"machine", "instances", "symbolic", "failures", "figures"}
    assert [each["name"] for each in found["instances"]] == ["cut 16", "network 4", "trace 200"]
    assert [each["name"] for each in found["symbolic"]] == ["transformer 2"]
    assert found["failures"] == []
    for each in found["instances"]:
        assert each["total"] >= each["lower_bound"] > 0
        assert set(each["gaps"]) == {"0.1", "1", "10"}
        assert {"buffers", "gap", "proved", "seconds", "megabytes", "total_bar", "met"} <= set(each)


def test_a_folder_of_instances(tmp_path: Path, capsys: Shown) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.cap12.csv").write_text("id,lower,upper,size\nx,0,2,4\ny,1,3,4\nz,2,4,4\n")
    (tmp_path / "b.csv").write_text("id,lower,upper,size\nx,0,2,4\n")
    (tmp_path / "c.csv").write_text("id,lower,upper,size_expr\nx,0,2,4*N\ny,1,3,8*N + 4\nz,2,4,4*N\n")
    (tmp_path / "wrong.csv").write_text("id,lower,upper\n")
    assert main(["bench", "plans", "--instances", str(tmp_path), "--strategy", "share"]) == 0
    text = capsys.readouterr().out
    assert "deep/a.cap12  share" in text
    assert "c         share" in text
    assert "wrong: error[missing-column]" in text


def test_files_tell_their_capacity_and_come_by_size(tmp_path: Path) -> None:
    (tmp_path / "x.1048576.csv").write_text("id,lower,upper,size\na,0,1,1\n")
    (tmp_path / "y.cap44.csv").write_text("id,lower,upper,size\n")
    (tmp_path / "net@4.view.csv").write_text("id,lower,upper,size\na,0,1,1\nb,0,1,1\n")
    found = instances_in(tmp_path)
    assert [(each.name, each.capacity) for each in found] == [
        ("y.cap44", 44),
        ("x.1048576", 1 << 20),
        ("net@4.view", None),
    ]


def test_a_table_with_a_capacity_tells_when_a_plan_fits_and_what_a_new_process_does(
    tmp_path: Path, capsys: Shown
) -> None:
    (tmp_path / "a.cap8.csv").write_text("id,lower,upper,size\nx,0,2,4\ny,1,3,4\nz,2,4,4\n")
    assert main(["bench", "plans", "--instances", str(tmp_path), "--threads", "2", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["instances"]
    assert 0 < found["fit"] <= found["seconds"]
    assert found["cpu"] > 0
    assert found["fresh"]["gap"] == 0.0
    assert found["fresh"]["seconds"] > 0
    assert found["elsewhere"] is None


def test_models_stand_beside_tables(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no model")
    (tmp_path / "A.1048576.csv").write_text("id,lower,upper,size\na,0,1,1\n")
    model, table = instances_in(tmp_path)
    assert (model.name, model.file) == ("net", None)
    assert (table.file, table.elsewhere) == (tmp_path / "A.1048576.csv", 4.5)
    (failure,) = measured([model], How(PythonEngine()))
    assert isinstance(failure, Failure)


def test_growth_is_told_as_a_power() -> None:
    counts = (1_000, 4_000, 16_000)
    rows = [Row("t", "trace", "auto", n, 9, 9, 9, True, n / 1e4, 60, None, (0.0, 0.0, 0.0)) for n in counts]
    told = {figure.name: figure.value for figure in overall(rows)}
    assert told["trace: seconds grow with buffers to the power of, from 1,000 to 16,000"] == pytest.approx(1.0)


def test_networks_that_take_more_than_a_blink_are_counted() -> None:
    rows = [row("onnx/a", 100, 100, seconds=0.01), row("onnx/b", 100, 100, seconds=0.03)]
    told = {figure.name: figure.value for figure in overall(rows)}
    assert told["onnx: of 2, planned in more than 20 ms"] == 1


def test_an_empty_folder_is_refused(tmp_path: Path, capsys: Shown) -> None:
    assert main(["bench", "plans", "--instances", str(tmp_path)]) == 2
    assert "error[no-instances]" in capsys.readouterr().err


def test_what_is_cut_from_an_arena_fits_it_and_no_smaller_one() -> None:
    problem = cut(64)
    assert len(problem.requests) == 64
    assert lower_bound(problem) == 1 << 20
    area = sum(int(r.size) * (r.live[0][1] - r.live[0][0]) for r in problem.requests if isinstance(r.size, int))
    assert area == 1024 << 20


def test_generated_problems_are_always_the_same() -> None:
    assert [each.name for each in generated()] == [each.name for each in generated()]
    for make in (lambda: cut(32), lambda: network(4), lambda: trace(100)):
        assert make() == make()
    assert len(trace(500).requests) == 500
    assert [dim.name for dim in transformer(2).dims] == ["B", "S"]


def test_very_many_buffers_have_a_bar_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_plans, "_MANY", 3)
    rows = [
        each
        for each in measured([Instance("t", "trace", partial(trace, 40))], How(PythonEngine()), "share")
        if isinstance(each, Row)
    ]
    assert [each.total_bar for each in rows] == [int(rows[0].lower_bound * 1.01)]
    assert rows[0].gaps == (rows[0].gap,) * 3


def test_bindings_obey_the_facts() -> None:
    n, m, k = Dim("n", max=64, multiple_of=8), Dim("m", min=5), Dim("k", max=1)
    samples = bindings((n, m, k), 300)
    assert samples == bindings((n, m, k), 300)
    assert {sample[n] for sample in samples} == {8, 16, 24, 32, 40, 48, 56, 64}
    assert min(sample[m] for sample in samples) == 5
    assert max(sample[m] for sample in samples) > 1000
    assert {sample[k] for sample in samples} == {1}


def test_quality_compares_with_the_bound_at_the_same_binding() -> None:
    n = Dim("n")
    requests = (Request("a", 4 * n, ((0, 2),)), Request("b", 8 * n, ((2, 4),)), Request("c", 4 * n, ((4, 6),)))
    problem = Problem(requests)
    plan = Plan.of(problem, {"a": ("x", 0), "b": ("x", 0), "c": ("x", 0)})
    ours, equal = quality(plan, bindings(problem.dims, 10))
    assert (ours, equal) == (Quality(1.0, 1.0), Quality(1.5, 1.5))


def test_plans_for_one_shape_each_are_at_the_bound() -> None:
    problem = transformer(2)
    assert replanned(problem, bindings(problem.dims, 20)).quality == Quality(1.0, 1.0)


def test_figures_over_all_tell_of_groups_that_are_not_solved_at_once() -> None:
    hard = [row("hard/a", 100, 100), row("hard/b", 110, 100, (None, 0.2, 0.1)), row("hard/c", 100, 100, seconds=99)]
    results = [*hard, row("easy/1", 100, 100), row("easy/2", 100, 100)]
    assert [(figure.name, figure.value, figure.met) for figure in overall(results)] == [
        ("instances that miss their bar", 2, False),
        ("hard: mean gap of 3 at 0.1 s", pytest.approx(1 / 3), None),
        ("hard: mean gap of 3 at 1 s", pytest.approx(0.2 / 3), None),
        ("hard: mean gap of 3 at 10 s", pytest.approx(0.1 / 3), None),
    ]


def test_mean_gaps_have_bars_where_tables_tell_a_capacity() -> None:
    tight = replace(row("tight/a", 110, 120, (0.2, 0.04, 0.02)), fresh=Fresh(0.1, 0.2))
    assert [(figure.name, figure.met) for figure in overall([tight])] == [
        ("instances that miss their bar", True),
        ("tight: mean gap of 1 at 0.1 s", False),
        ("tight: mean gap of 1 at 1 s", True),
        ("tight: mean gap of 1 at 10 s", False),
        ("tight: mean gap of 1 in new processes, which have 0.1 s", True),
        ("tight: most seconds of these", None),
    ]


def test_tables_have_each_bar_beside_its_figure() -> None:
    shapes = Replanned(Quality(1.0, 1.0), 0.25, 4.0)
    symbolic = SymbolicRow(
        "s", "pack", 7, ("N", "M"), 0.5, None, Quality(1.1, 1.25), Quality(2.0, 3.0), shapes, OffsetSpeed(2500, 400)
    )
    text = plans_text([row("a", 110, 105, (None, 0.2, 0.1)), symbolic, Failure("f", "what went wrong")])
    a = next(line.split() for line in text.splitlines() if line.startswith("a "))
    assert a == ["a", "exact", "5", "100", "110", "105", "10.00%", "1.000", "60", "NO", "50", "-", "20.00%", "10.00%"]
    s = next(line.split() for line in text.splitlines() if line.startswith("s "))
    assert s[:12] == ["s", "pack", "7", "N", "M", "0.500", "1.100", "1.2", "yes", "1.250", "2.000", "3.000"]
    assert s[12:] == ["1.000", "1.000", "0.25", "4.0", "2500", "400"]
    assert "f: what went wrong" in text
    assert json.loads(plans_json([symbolic]))["symbolic"][0]["ours"] == {"mean": 1.1, "worst": 1.25}
