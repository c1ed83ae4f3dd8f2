"""`tirlite run`: a model on given and on random inputs, and `tirlite onnx-coverage`."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph.onnx import written

from tirlite.bench.main import main
from tirlite.cli.model_report import Report, report_text

onnx = pytest.importorskip("onnx")


def saved(folder: Path, text: str, **how: Any) -> Path:
    path = folder / "net.onnx"
    onnx.save(written.model(text, **how), path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path, "(float[n, 3] x) => (y) { a = Exp(x) y = Neg(a) }")


def test_outputs_memory_and_time_are_shown(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(model), "--dim", "n=2"]) == 0
    shown = capsys.readouterr().out
    assert "(2, 3)" in shown
    assert "planned" in shown


def test_operators_are_timed(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(model), "--dim", "n=2", "--threads", "1", "--profile"]) == 0
    shown = capsys.readouterr().out
    assert "planned" in shown
    assert "share of limit" in shown
    assert "with 1 worker" in shown


def test_a_wide_gap_is_shown_with_what_closes_it() -> None:
    """Where sizes change their order with a dim, one plan for all of its values is above the bound at most of them."""
    at = Report({}, 175, 100, {"n": 4}, "auto", 1.0, 0.001)
    assert "`--planner per_shape` plans anew" in report_text(at)
    for other in (replace(at, total=102), replace(at, strategy="per_shape"), replace(at, dims={})):
        assert "per_shape` plans" not in report_text(other)


def test_inputs_come_from_files(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 8
    np.save(model.with_name("x.npy"), x)
    assert main(["run", str(model), "--input", f"x={model.with_name('x.npy')}", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(told["outputs"]["y"]["elements"], -np.exp(x).reshape(-1), 1e-6)
    assert told["dims"] == {"n": 4}
    assert told["total"] >= told["lower_bound"]


def test_dims_are_numbers_before_or_after_the_model_is_compiled(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--dim", "--bind"):
        assert main(["run", str(model), option, "n=2", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["dims"] == {"n": 2}
        assert told["outputs"]["y"]["shape"] == [2, 3]


def test_a_dim_that_differs_from_an_input_s_is_told(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(model.with_name("x.npy"), np.zeros((4, 3), np.float32))
    assert main(["run", str(model), "--input", f"x={model.with_name('x.npy')}", "--dim", "n=2"]) == 2
    assert "`--dim n=2`: the inputs have n = 4\n" in capsys.readouterr().err


def test_an_input_may_be_a_constant(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(model.with_name("x.npy"), np.zeros((2, 3), np.float32))
    assert main(["run", str(model), "--constant", f"x={model.with_name('x.npy')}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["y"]["elements"] == [-1.0] * 6


@pytest.mark.parametrize(
    "option",
    [
        ["--dim", "n=two"],
        ["--dim", "n"],
        ["--bind", "n=two"],
        ["--bind", "n=0", "--dim", "n=2"],
        ["--input", "z=x.npy"],
        ["--input", "x=no.npy"],
        ["--constant", "x=no.npy"],
        ["--constant", "x=one"],
        ["--seed", "-1"],
        ["--planner", "best"],
        ["--threads", "0"],
    ],
)
def test_options_that_do_not_fit_are_refused(model: Path, option: list[str]) -> None:
    assert main(["run", str(model), *option]) == 2


@pytest.mark.parametrize(
    ("size", "told"), [(1 << 46, "error[too-little-memory]"), (1 << 80, "no array has so many elements")]
)
def test_a_dim_that_no_memory_holds_is_told(
    model: Path, capsys: pytest.CaptureFixture[str], size: int, told: str
) -> None:
    assert main(["run", str(model), "--dim", f"n={size}"]) == 2
    assert told in capsys.readouterr().err


def test_a_dim_that_the_model_does_not_have_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--dim", "--bind"):
        assert main(["run", str(model), option, "m=2"]) == 2
        assert "there is no dim `m`; it has n" in capsys.readouterr().err


@pytest.fixture
def lookup(tmp_path: Path) -> Path:
    """Rows of a table by index, of as many places as an even number of them are halved to and doubled."""
    text = """
        (int64["rows-1", "?"] x) => (y) <int64[1] six = {6}, int64[1] end = {1099511627776}, int64[1] two = {2}> {
            g = Gather(table, x)
            t = Transpose<perm = [0, 2, 1]>(g)
            c = Conv<strides = [2]>(t, w)
            d = Concat<axis = 2>(c, c)
            cut = Slice(t, six, end, two)
            y = Add(d, cut)
        }
    """
    return saved(tmp_path, text, opset=17, table=np.ones((3, 4), np.float32), w=np.ones((4, 4, 7), np.float32))


def test_dims_and_indices_are_such_as_the_model_needs(lookup: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(lookup), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dims"] == {"rows_1": 1, "x_1": 8}
    options = ["--dim", "rows-1=5", "--facts", "x_1>=9, x_1<=20"]
    assert main(["run", str(lookup), *options, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dims"] == {"rows_1": 5, "x_1": 10}
    assert main(["plan", str(lookup), "--facts", "x_1<=20", "--bind", "rows-1=2"]) == 0
    assert "<= x_1 <= 20" in capsys.readouterr().out
    assert main(["run", str(lookup), "--facts", "x_1>=9, 3<=rows-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dims"] == {"rows_1": 3, "x_1": 10}


def test_indices_are_in_range_that_are_gathered_themselves(tmp_path: Path) -> None:
    """Ends of edges are rows of one array: both index nodes, of which there is one at least."""
    text = """
        (float[n, 4] nodes, int64[2, e] edges) => (y) <int64 one = {1}, int64[1] last = {-1}> {
            ends = Gather<axis = 0>(edges, one)
            places = Unsqueeze(ends, last)
            y = GatherND(nodes, places)
        }
    """
    path = saved(tmp_path, text, opset=17)
    assert main(["run", str(path), "--dim", "e=20"]) == 0


def test_indices_fit_an_extent_that_another_input_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows are added up by segments, and how many of these there are is an input too."""
    text = """
        (float[n, 2] x, int64[n, 1] ids, int64[1] count) => (y) <int64[1] two = {2}> {
            shape = Concat<axis = 0>(count, two)
            zeros = ConstantOfShape(shape)
            y = ScatterND<reduction = "add">(zeros, ids, x)
        }
    """
    path = saved(tmp_path, text)
    assert main(["run", str(path), "--dim", "n=9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["y"]["shape"] == [4, 2]
    np.save(tmp_path / "count.npy", np.array([6]))
    assert main(["run", str(path), "--input", f"count={tmp_path / 'count.npy'}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"]["y"]["shape"] == [6, 2]
    np.save(tmp_path / "count.npy", np.array([0]))
    assert main(["run", str(path), "--input", f"count={tmp_path / 'count.npy'}"]) == 2
    assert "`--input ids=...`: it is not given" in capsys.readouterr().err


def test_extents_are_such_as_an_operator_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Expanded is to the extent that is there; regions are of the images that there are."""
    text = """
        (float[n, 1, 6, 6] x, int64[1] shape, float[k, 4] regions, int64[k] images) => (bins, same) {
            bins = RoiAlign<output_height = 2, output_width = 2>(x, regions, images)
            means = ReduceMean<axes = [1, 2, 3], keepdims = 0>(x)
            same = Expand(means, shape)
        }
    """
    path = saved(tmp_path, text, opset=16)
    for count in (1, 5):
        assert main(["run", str(path), f"--dim=n={count}", "--dim=k=7", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["outputs"]["same"]["shape"] == [count]


def test_dims_have_the_names_of_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that are no identifiers as well, and those that gave way to others: y's to those of x, t to twice one."""
    text = """
        (float["2n", "for", "n,m"] x, float[k, f, "m 2"] y, float[t] z) => (c) {
            a = Add(x, y)
            b = Concat<axis = 2>(x, a)
            c = Add(b, z)
        }
    """
    path = saved(tmp_path, text)
    told = [*(f"--dim={each}" for each in ("2n=2", "f=3", "t=8")), "--facts=2n<=4, 2<=for, n,m%4==0"]
    assert main(["run", str(path), *told, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dims"] == {"_2n": 2, "_for": 3, "n_m": 4}
    for other, why in (("k=3", "the inputs have"), ("t=9", "the inputs have t = "), ("q=2", "there is no dim `q`")):
        assert main(["run", str(path), "--dim=2n=2", f"--dim={other}"]) == 2
        assert why in capsys.readouterr().err
    assert main(["plan", str(path), "--dim=k=2", "--dim=f=3", "--dim=m 2=4", "--dim=t=8"]) == 0
    assert main(["plan", str(path), "--dim=k=2", "--dim=f=3", "--dim=m 2=4", "--dim=t=9"]) == 2
    assert "the inputs have t = 8" in capsys.readouterr().err


def test_what_is_no_model_is_told_with_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no model")
    for command in (["run"], ["plan"], ["bench", "graphs"]):
        assert main([*command, str(tmp_path / "net.onnx")]) == 2
        assert "it is not an ONNX model" in capsys.readouterr().err


def test_the_package_s_cases_are_counted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # The cases of other operators, most of all pools, take long to be made.
    one = lambda package: import_module(f"{package.__name__}.softmax")  # noqa: E731
    monkeypatch.setattr("onnx.backend.test.loader.import_recursive", one)
    assert main(["onnx-coverage", "--only", "test_softmax_axis"]) == 0
    out = capsys.readouterr().out
    assert "unsupported" in out
    assert "pass all of their cases" in out
