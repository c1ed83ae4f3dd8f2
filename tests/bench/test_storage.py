"""`bench storage`: bytes of tables and models beside those of peers. No test asserts a time."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tirlite.bench import storage
from tirlite.bench.main import main
from tirlite.bench.storage import Failure, Row, storage_text

Shown = pytest.CaptureFixture[str]

HEADING = "id,lower,upper,size\n"


def test_a_folder_of_tables_is_planned_and_checked(tmp_path: Path, capsys: Shown) -> None:
    (tmp_path / "a.csv").write_text(HEADING + "x,0,2,64\ny,1,3,64\nz,2,4,128\n")
    (tmp_path / "n.csv").write_text("id,lower,upper,size_expr\nx,0,2,64*N\n")
    assert main(["bench", "storage", str(tmp_path), "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (row,) = told["rows"]
    assert (row["name"], row["buffers"], row["bound"], row["total"]) == ("a", 3, 192, 192)
    assert list(row["peers"]) == (["TVM"] if find_spec("tvm") else [])
    (failure,) = told["failures"]
    assert failure["name"] == "n"
    assert "64*N bytes" in failure["error"]


def test_a_peer_that_is_not_installed_has_no_column_and_one_that_fails_says_so(
    tmp_path: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text(HEADING + "x,0,2,64\n")
    monkeypatch.setattr(storage, "find_spec", lambda name: None)
    assert main(["bench", "storage", str(tmp_path / "a.csv"), "--quick"]) == 0
    assert "TVM" not in capsys.readouterr().out
    text = storage_text([Row("a", 1, 64, 64, 0.5, {"TVM": None}), Failure("b", "what went wrong")])
    assert next(line.split() for line in text.splitlines() if line.startswith("a "))[-1] == "failed"
    assert "b: what went wrong" in text


def test_a_table_that_cannot_be_read_is_told_beside_the_others(tmp_path: Path, capsys: Shown) -> None:
    (tmp_path / "a.csv").write_text(HEADING + "x,0,2,64\n")
    assert main(["bench", "storage", str(tmp_path / "none.csv"), str(tmp_path / "a.csv"), "--quick", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert ([row["name"] for row in told["rows"]], "No such file" in told["failures"][0]["error"]) == (["a"], True)


def test_ratios_are_those_of_bytes() -> None:
    rows = [Row("a", 1, 64, 64, 0.5, {"TVM": 128}), Row("b", 1, 50, 60, 0.5, {"TVM": 30, "ONNX Runtime": 60})]
    text = storage_text(rows)
    assert "TVM takes 1.000 times the bytes of tirlite in the geometric mean of 2, from 0.500 to 2.000" in text
    assert "ONNX Runtime takes 1.000 times the bytes of tirlite in the geometric mean of 1" in text
    b = next(line.split() for line in text.splitlines() if line.startswith("b "))
    assert b == ["b", "1", "50", "60", "20.00%", "0.50", "30", "0.500", "60", "1.000"]


def test_a_model_without_tensors_between_operators_takes_no_bytes(tmp_path: Path, capsys: Shown) -> None:
    onnx = pytest.importorskip("onnx")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy")
    graph = onnx.helper.make_graph([onnx.helper.make_node("Tanh", ["x"], ["y"])], "net", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    (tmp_path / "tanh.onnx").write_bytes(model.SerializeToString())
    assert main(["bench", "storage", str(tmp_path), "--quick", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["name"], row["bound"], row["total"]) == ("tanh", 0, 0)


def test_tvm_takes_as_many_bytes_as_our_strategy_of_that_name(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    from tirlite.plan import read_csv, solve

    table = tmp_path / "a.csv"
    table.write_text(HEADING + "w,0,2,1024\nx,1,3,512\ny,2,4,256\nz,2,4,256\n")
    assert storage._by_tvm(table) == {"TVM": solve(read_csv(table), "tvm").total}
