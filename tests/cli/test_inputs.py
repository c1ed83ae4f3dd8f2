"""What the command line takes: numbers with units, standard input, folders, tables with other separators."""

from __future__ import annotations

import io
import json
from argparse import ArgumentTypeError
from pathlib import Path

import pytest

import tirlite as tl
from tirlite.cli.main import main
from tirlite.cli.options import byte_count, decimal, integer, seconds, whole
from tirlite.plan import read_csv, write_csv

TABLE = "id,lower,upper,size\na,0,3,64\nb,2,5,128\n"
KERNEL = """
import tirlite as tl

n = tl.dim("n")


@tl.kernel
def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    t = tl.alloc(tl.f32[n])
    for i in range(n):
        t[i] = 2 * x[i]
    for i in range(n):
        y[i] = t[i]
"""


@pytest.mark.parametrize(
    ("text", "value"), [("65536", 65536), ("64KiB", 65536), ("1MB", 1_000_000), ("2 GiB", 2 << 30), ("1kB", 1000)]
)
def test_bytes_have_units(text: str, value: int) -> None:
    assert byte_count(text) == value


@pytest.mark.parametrize("text", ["64K", "1.5MB", "٣٣", "", "kB", "1 mib"])
def test_what_is_no_number_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not a number of bytes, as in 65536, 64KiB or 1MB"):
        byte_count(text)


@pytest.mark.parametrize("kind", [integer, whole(0), decimal, seconds])
def test_digits_of_other_scripts_are_refused(kind) -> None:
    assert kind("12") == 12
    with pytest.raises(ArgumentTypeError):
        kind("١٢")


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tirlite {tl.__version__}\n"


def test_a_table_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(TABLE))
    assert main(["plan", "-", "--json", "--capacity", "1KiB"]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == 192


@pytest.mark.parametrize("separator", [";", "\t"])
def test_cells_stand_between_other_signs_too(separator: str, tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text((TABLE + '"c,d",4,6,"64"\n').replace(",", separator).replace(f"c{separator}d", "c,d"), "utf-8")
    problem = read_csv(file)
    assert [request.id for request in problem.requests] == ["a", "b", "c,d"]
    written = write_csv(problem, tl.plan.solve(problem))
    assert written.splitlines()[0] == separator.join(["id", "lower", "upper", "size", "offset"])
    assert [each.size for each in read_csv(io.StringIO(written)).requests] == [64, 128, 64]


def test_all_wrong_lines_of_a_table_are_told_at_once() -> None:
    with pytest.raises(tl.PlanError) as caught:
        read_csv(io.StringIO("id,lower,upper,size\na,0,3.5,64\nb,2,5,128\nc,x,1,64\nb,2,5,1\n"))
    assert [message.code for message in caught.value.messages] == [
        "bad-csv-number",
        "bad-csv-number",
        "duplicate-id",
    ]


def test_each_table_of_a_folder_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.csv").write_text(TABLE, "utf-8")
    (tmp_path / "two.csv").write_text(TABLE.replace("128", "x"), "utf-8")
    assert main(["plan", str(tmp_path)]) == 2
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [["one.csv", "192", "192", "share"], ["two.csv", "bad-csv-number"]]
    assert main(["plan", str(tmp_path), "--json"]) == 2
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["table"] for each in told] == ["one.csv", "two.csv"]
    assert main(["plan", str(tmp_path), "--html", str(tmp_path / "plan.html")]) == 2
    assert "one-plan-only" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["plan", str(tmp_path / "empty")]) == 2
    assert "no-tables" in capsys.readouterr().err


def test_a_kernel_is_shown_as_json_and_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "twice.py", tmp_path / "twice.html"
    file.write_text(KERNEL + '\n\nprint("the file has run")\n', "utf-8")
    assert main(["show", f"{file}:twice", "--json", "--html", str(page)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "twice"
    assert tl.structural_equal(tl.parse(told["written"]), tl.parse(KERNEL))
    assert "storage-rewrite" in told["passes"]
    assert "<title>Kernel twice</title>" in page.read_text("utf-8")
