"""`tirlite plan MODEL.onnx`: a model in; its plan, files and exit codes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graph.onnx import written

import tirlite as tl
from tirlite.cli.main import main

pytest.importorskip("onnx")

Shown = pytest.CaptureFixture[str]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three tensors between four operators that go row by row, of 12 n bytes each: one storage does for all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    made = written.model(
        "(float[n, 3] x) => (float[n, 3] y) { a = Softmax(x) b = Softmax(a) c = Softmax(b) y = Softmax(c) }"
    )
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def planned(line: str, shown: Shown) -> dict[str, object]:
    assert main(["plan", "net.onnx", "--json", *line.split()]) == 0
    found: dict[str, object] = json.loads(shown.readouterr().out)
    return found


def test_the_plan_is_the_compiler_s(model: Path, capsys: Shown) -> None:
    plan = tl.graph.compile(tl.from_onnx(model)).plan
    found = planned("", capsys)
    assert (found["total"], found["lower_bound"]) == (str(plan.total), str(plan.lower_bound))
    assert found["total"] == "12*n"
    assert found["buffers"] == 3


@pytest.mark.parametrize("option", ["--dim n=5", "--bind n=5", "--dim n=5 --strategy per_shape"])
def test_values_of_dims_make_it_concrete(model: Path, capsys: Shown, option: str) -> None:
    found = planned(option, capsys)
    assert (found["total"], found["lower_bound"], found["gap"], found["proved_optimal"]) == (60, 60, 0, True)


def test_strategies_differ(model: Path, capsys: Shown) -> None:
    assert planned("--dim n=5 --strategy none", capsys)["total"] == 180
    assert planned("--dim n=5 --strategy exact", capsys)["total"] == 60


def test_a_match_range_is_for_free_storage_not_for_places_taken_over(model: Path, capsys: Shown) -> None:
    assert planned("--bind n=5 --strategy share --match-range 0", capsys)["total"] == 60


def test_a_capacity_is_kept_or_has_code_three(model: Path, capsys: Shown) -> None:
    found = planned("--bind n=5 --capacity 60", capsys)
    assert (found["total"], found["capacity"]) == (60, 60)
    assert planned("--dim n=5 --strategy per_shape --capacity 60", capsys)["total"] == 60
    for line in ("--bind n=5 --capacity 59", "--dim n=5 --strategy per_shape --capacity 59", "--capacity 60"):
        assert main(["plan", "net.onnx", *line.split(), "--json"]) == 3
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert (found["error"], found["total"], found["witness"]) == ("over-capacity", None, None)
        assert err.startswith("error[over-capacity]: ")


def test_a_chart_a_picture_and_a_page(model: Path, capsys: Shown) -> None:
    assert main(["plan", "net.onnx", "--dim", "n=5", "--svg", "plan.svg", "--html", "plan.html"]) == 0
    out, err = capsys.readouterr()
    assert "net.onnx: 3 buffers" in out
    assert "60 |" in out
    assert err.splitlines() == ["wrote plan.svg", "wrote plan.html"]
    assert model.with_name("plan.svg").read_text().startswith("<svg")
    assert "<title>Storage plan of net.onnx</title>" in model.with_name("plan.html").read_text()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("net.onnx --dim m=5", "bad-run-option"),
        ("net.onnx --bind m=5", "onnx-bad-model"),
        ("net.onnx --dim n=x", "bad-run-option"),
        ("net.onnx --strategy per_shape", "bad-run-option"),
        ("net.onnx --constant x=one", "bad-run-option"),
        ("net.onnx --constant z=1", "onnx-bad-model"),
        ("net.onnx --strategy shar", "unknown-strategy"),
        ("net.onnx --capacity -1", "bad-plan-option"),
        ("net.onnx --match-range 16", "match-range-strategy"),
        ("net.onnx --strategy share --match-range -1", "bad-plan-option"),
        ("net.onnx --align 16", "bad-plan-option"),
        ("net.onnx --facts n<", "bad-fact"),
        ("net.onnx --facts k<=5", "onnx-bad-model"),
        ("net.onnx --out out.csv", "bad-plan-option"),
        ("nowhere.onnx", "onnx-bad-model"),
        ("empty.onnx", "onnx-bad-model"),
    ],
)
def test_what_does_not_fit_has_code_two(model: Path, capsys: Shown, line: str, code: str) -> None:
    model.with_name("empty.onnx").write_bytes(b"")
    assert main(["plan", *line.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"error[{code}]: ")


def test_an_error_tells_how_its_own_option_is_written(model: Path, capsys: Shown) -> None:
    assert main(["plan", "net.onnx", "--constant", "x=one"]) == 2
    err = capsys.readouterr().err
    assert "--constant NAME=NUMBER or NAME=FILE.npy" in err
    assert "--input" not in err


def test_a_model_in_one_part_that_waits_for_an_extent_is_planned_in_a_call(tmp_path: Path, capsys: Shown) -> None:
    """As many columns as an input says: nothing bounds that before a run."""
    node = "y = OneHot(x, depth, values)"
    made = written.model(f"(int64[n] x, int64 depth) => (y) <float[2] values = {{0, 1}}> {{ {node} }}")
    path = tmp_path / "columns.onnx"
    path.write_bytes(made.SerializeToString())
    assert main(["plan", str(path), "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["total"] == 0
    assert "in 1 part; below is the largest" in shown.err
