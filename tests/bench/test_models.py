"""`bench graphs MODEL.onnx`: rows for models, beside onnxruntime where it is installed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from graph.onnx import written

from tirlite.bench import onnxruntime_figures
from tirlite.bench.graphs import PLANNERS, GraphRow, Peer, graphs_text
from tirlite.bench.main import main

pytest.importorskip("onnx")

Shown = pytest.CaptureFixture[str]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Three tensors between four operators, of 12 n bytes each: one storage does for all."""
    made = written.model(
        "(float[n, 3] x) => (float[n, 3] y) { a = Softmax(x) b = Softmax(a) c = Softmax(b) y = Softmax(c) }"
    )
    path = tmp_path / "chain.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_a_model_is_measured_in_place_of_the_gallery(model: Path, capsys: Shown) -> None:
    assert main(["bench", "graphs", str(model), "--dim", "n=500", "--quick", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["graphs"]
    assert (row["name"], row["sizes"], row["intermediates"]) == ("chain.onnx", {"n": 500}, 3)
    assert (row["naive"], row["compiled"], row["planned"]["auto"], row["gap"]) == (18000, 6000, 6000, 0)
    assert list(row["threads"]) == ["1", "2"]
    assert (row["peer"] is not None) == (find_spec("onnxruntime") is not None)
    if row["peer"] is not None:
        assert list(row["peer"]["milliseconds"]) == list(row["peer"]["ratios"]) == ["1", "2"]
        assert row["peer"]["ratios"]["1"] == row["threads"]["1"] / row["peer"]["milliseconds"]["1"]
        assert row["peer"]["noise"]["2"] > 0
        assert row["peer"]["block"] > 0


def test_several_values_make_several_rows_and_a_mean(
    model: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime_figures, "is_installed", lambda: False)
    assert main(["bench", "graphs", str(model), "--dim", "n=2,9", "--quick"]) == 0
    shown = capsys.readouterr().out
    assert "n 2" in shown
    assert "n 9" in shown
    assert "per_shape: 1.0000 x the bound in the mean, 1.0000 x at most, of 2 rows" in shown


def test_short_calls_have_a_mean_of_their_own() -> None:
    def row(ours: float, theirs: float) -> GraphRow:
        peer = Peer({1: theirs}, {1: ours / theirs}, {1: 1.0}, None)
        return GraphRow("net", {}, 1, 4, 4, 4, 4, dict.fromkeys(PLANNERS, 4), 4, 0.1, ours, {1: ours}, peer)

    shown = graphs_text([row(4.0, 2.0), row(1.0, 2.0), row(0.03, 0.01)])
    assert "1 thread: 1.00 x onnxruntime's time, 0.50 to 2.00, of 2 rows\n" in shown
    assert "1 thread: 3.00 x onnxruntime's time, 3.00 to 3.00, of 1 rows that take less than 0.05 ms" in shown


def test_constants_are_no_inputs(model: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime_figures, "is_installed", lambda: False)
    np.save(model.with_name("x.npy"), np.ones((2, 3), np.float32))
    given = ["--constant", f"x={model.with_name('x.npy')}"]
    assert main(["bench", "graphs", str(model), *given, "--quick", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["graphs"]
    assert row["naive"] == 0


def test_what_onnxruntime_refuses_is_measured_alone(
    model: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(onnxruntime_figures, "feeds_of", lambda *_: {"x": np.zeros(3, np.float32)})
    assert main(["bench", "graphs", str(model), "--quick", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["graphs"]
    assert row["peer"] is None


def test_a_model_in_parts_is_timed_whole(tmp_path: Path, capsys: Shown) -> None:
    # The steps are known only at run time, and nothing bounds how many results they stack.
    text = """(float[n] x, int64 k) => (float[n] y, float[m, n] all) {
        r = Relu(x)
        y, all = Loop(k, "", r) <body: graph = b (int64 i, bool c, float[n] s) => (bool c2, float[n] t, float[n] o) {
            t = Exp(s)
            o = Neg(t)
            c2 = Identity(c)
        }>
    }"""
    path = tmp_path / "steps.onnx"
    path.write_bytes(written.model(text).SerializeToString())
    assert main(["bench", "graphs", str(path), "--quick", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["graphs"]
    assert (row["parts"], row["intermediates"], row["raw"]) == (2, None, None)
    assert list(row["planned"]) == list(PLANNERS)
    assert row["milliseconds"] > 0
    assert list(row["threads"]) == ["1", "2"]
    assert main(["bench", "graphs", str(path), "--dim", "n=3", "--quick"]) == 0
    assert "n 3, largest of 2 parts" in capsys.readouterr().out


def test_dims_are_one_unless_told(model: Path, capsys: Shown) -> None:
    assert main(["bench", "graphs", str(model), "--quick"]) == 0
    shown = capsys.readouterr().out
    assert "n 1" in shown
    assert ("onnxruntime ms, 2 threads" in shown) == (find_spec("onnxruntime") is not None)


@pytest.mark.parametrize("dim", ["m=2", "n=two"])
def test_a_dim_that_no_model_has_is_refused(model: Path, capsys: Shown, dim: str) -> None:
    assert main(["bench", "graphs", str(model), "--dim", dim, "--quick"]) == 2
    assert "error[bad-run-option]" in capsys.readouterr().err


def test_the_gallery_has_its_own_dims(capsys: Shown) -> None:
    assert main(["bench", "graphs", "--dim", "n=2", "--quick"]) == 2
    assert "the dims are none" in capsys.readouterr().err
