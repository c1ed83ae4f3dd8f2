"""The command that exports kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tirlite.cli.main import main

SOURCE = """
import tirlite as tl

n = tl.dim("n")

@tl.kernel
def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]
"""


def test_it_writes_the_files_and_prints_their_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    assert main(["export", f"{tmp_path / 'k.py'}:doubled", "--out", str(tmp_path / "out"), "--name", "twice"]) == 0
    paths = capsys.readouterr().out.split()
    assert [Path(each).name for each in paths] == ["twice.o", "twice.h", "twice.cmake"]
    assert "int32_t twice(" in Path(paths[1]).read_text()


def test_an_unknown_target_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    assert main(["export", str(tmp_path / "k.py"), "--out", str(tmp_path / "out"), "--target", "z80"]) == 2
    assert "the target cannot be 'z80'" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    assert main(["export", str(tmp_path / "k.py"), "--out", str(tmp_path / "k.py")]) == 2
    assert f"cannot write `{tmp_path / 'k.py'}`: File exists" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["doubled.o", "doubled.h", "doubled.cmake"])
def test_a_file_for_which_there_is_no_space_is_named_and_the_old_one_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    (tmp_path / name).write_text("mine")
    before = sorted(tmp_path.iterdir())
    usual = Path.open

    def full(path: Path, mode: str = "r", *others: Any, **named: Any) -> Any:
        if "w" in mode and path.suffix == Path(name).suffix:
            raise OSError(28, "No space left on device")
        return usual(path, mode, *others, **named)

    monkeypatch.setattr(Path, "open", full)
    assert main(["export", str(tmp_path / "k.py"), "--out", str(tmp_path)]) == 2
    assert f"cannot write `{tmp_path / name}`: No space left on device" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == before


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    (tmp_path / "other").write_text("mine")
    (tmp_path / "doubled.h").symlink_to("other")
    assert main(["export", str(tmp_path / "k.py"), "--out", str(tmp_path)]) == 0
    assert (tmp_path / "other").read_text() == "mine"
    assert not (tmp_path / "doubled.h").is_symlink()


@pytest.mark.parametrize("given", ["--bind n=4", "--facts n<=4"])
def test_what_is_for_models_is_refused_with_a_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    assert main(["export", str(tmp_path / "k.py"), "--out", str(tmp_path / "out"), *given.split()]) == 2
    assert f"`{given}`: it is for models, and a kernel is given" in capsys.readouterr().err


def test_facts_bound_what_a_network_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(name, kind, [1, 3, f"h{name}", f"w{name}"]) for name in "xy")
    scales = helper.make_tensor("scales", kind, [4], [1, 1, 2, 2])
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="linear")
    made = helper.make_model(helper.make_graph([node], "doubled", [x], [y], [scales]))
    (tmp_path / "net.onnx").write_bytes(made.SerializeToString())
    call = ["export", str(tmp_path / "net.onnx"), "--out", str(tmp_path / "out")]
    assert main(call) == 2
    assert "give dims a `max`, which bounds it" in capsys.readouterr().err
    assert main([*call, "--facts", "wx<=640"]) == 0
