"""`tirlite plan`: lifetimes in, a plan, files and exit codes out."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tirlite.cli.main import main
from tirlite.plan import Plan, Problem, check, read_csv, solve

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
SYMBOLIC = "id,lower,upper,size_expr\na,0,2,16*N\nb,1,3,8*N\nc,2,4,16*N\n"

ROOT = Path(__file__).resolve().parents[2]
Shown = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "input.csv").write_text(EXAMPLE)
    (tmp_path / "symbolic.csv").write_text(SYMBOLIC)
    return tmp_path


def run(line: str, shown: Shown) -> tuple[int, str, str]:
    code = main(["plan", *line.split()])
    out, err = shown.readouterr()
    return code, out, err


def test_a_summary_with_a_chart(folder: Path, capsys: Shown) -> None:
    code, out, _ = run("input.csv --capacity 12", capsys)
    assert code == 0
    figures = dict(line.split(maxsplit=1) for line in out.split("\n\n")[0].replace("lower bound", "bound").splitlines())
    assert figures["lifetimes"] == "input.csv: 5 buffers"
    assert figures["total"] == "12 bytes, proved optimal"
    assert figures["bound"] == "12 bytes"
    assert figures["gap"] == "0.00%"
    assert "12 |" in out


def test_no_chart_where_there_is_no_room(folder: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = run("input.csv", capsys)
    assert " |" not in out


def test_json_has_the_fixed_names(folder: Path, capsys: Shown) -> None:
    code, out, _ = run("input.csv --json --strategy share", capsys)
    found = json.loads(out)
    assert code == 0
    assert (found["total"], found["lower_bound"], found["gap"], found["proved_optimal"]) == (12, 12, 0, True)
    assert (found["strategy"], found["buffers"]) == ("share", 5)
    assert found["seconds"] >= 0
    assert list(found["offsets"]) == ["b1", "b2", "b3", "b4", "b5"]


@pytest.mark.parametrize("strategy", ["none", "tvm", "share", "pack", "exact", "auto"])
def test_what_is_written_is_a_safe_plan(folder: Path, capsys: Shown, strategy: str) -> None:
    code, out, err = run(f"input.csv --json --align 16 --out out.csv --strategy {strategy}", capsys)
    assert (code, err) == (0, "wrote out.csv\n")
    lines = (folder / "out.csv").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in lines] == EXAMPLE.splitlines()
    placed = read_csv("out.csv")
    offsets = {request.id: request.fixed for request in placed.requests}
    assert offsets == json.loads(out)["offsets"]
    assert all(offset is not None and offset % 16 == 0 for offset in offsets.values())
    assert check(placed, Plan.of(placed, {name: ("global", offset or 0) for name, offset in offsets.items()}))


def test_a_search_ends_at_its_limits(folder: Path, capsys: Shown) -> None:
    code, out, _ = run("input.csv --json --strategy exact --budget 1000 --time-limit 30 --threads 2", capsys)
    found = json.loads(out)
    assert code == 0
    assert (found["total"], found["proved_optimal"], found["deterministic"]) == (12, True, True)


@pytest.mark.parametrize(("size", "budget"), [(4, 1_000_000), (2**66, None)])
def test_sizes_too_large_for_compiled_code_are_searched_as_long_as_python_should(
    folder: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch, size: int, budget: int | None
) -> None:
    asked = []

    def spy(problem: Problem, strategy: str, *limits: object, **more: object) -> Plan:
        asked.append(limits[0])
        return solve(problem, strategy)

    monkeypatch.setattr("tirlite.plan.solve", spy)
    (folder / "sizes.csv").write_text(f"id,lower,upper,size\na,0,2,{size}\n")
    assert run("sizes.csv --json", capsys)[0] == 0
    assert asked == [budget]


def test_symbolic_plans_hold_for_all_values(folder: Path, capsys: Shown) -> None:
    code, out, _ = run("symbolic.csv --json --facts N<=64,N%8==0 --out out.csv", capsys)
    found = json.loads(out)
    assert code == 0
    assert found["lower_bound"] == "24*N"
    rows = list(csv.DictReader((folder / "out.csv").read_text().splitlines()))
    assert [row["offset_expr"] for row in rows] == list(map(str, found["offsets"].values()))
    _, out, _ = run("symbolic.csv --facts N<=64,N%8==0", capsys)
    assert "1 <= N <= 64, N % 8 == 0" in out or "8 <= N <= 64, N % 8 == 0" in out


def test_bound_names_make_the_plan_concrete(folder: Path, capsys: Shown) -> None:
    code, out, _ = run("symbolic.csv --json --bind N=4 --out out.csv", capsys)
    assert code == 0
    assert json.loads(out)["lower_bound"] == 96
    assert (folder / "out.csv").read_text().startswith("id,lower,upper,size_expr,offset\na,0,2,16*N,")


def test_facts_and_values_may_be_told_one_by_one(folder: Path, capsys: Shown) -> None:
    _, out, _ = run("symbolic.csv --facts N<=64 --facts N%8==0", capsys)
    assert "8 <= N <= 64, N % 8 == 0" in out
    (folder / "two.csv").write_text("id,lower,upper,size_expr\na,0,2,N*M\n")
    _, out, _ = run("two.csv --bind N=4 --bind M=2 --json", capsys)
    assert json.loads(out)["total"] == 8


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_a_time_limit_may_be_infinite(folder: Path, capsys: Shown, strategy: str) -> None:
    code, out, _ = run(f"input.csv --json --strategy {strategy} --time-limit inf", capsys)
    assert code == 0
    assert json.loads(out)["proved_optimal"]


def test_a_plan_needs_no_standard_error(folder: Path, capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    code, out, _ = run("input.csv --json --out out.csv", capsys)
    assert code == 0
    assert json.loads(out)["total"] == 12


def test_pictures_and_a_page(folder: Path, capsys: Shown) -> None:
    code, _, err = run("input.csv --svg plan.svg --html plan.html", capsys)
    assert code == 0
    assert err.splitlines() == ["wrote plan.svg", "wrote plan.html"]
    titles = [each.text for each in ElementTree.parse("plan.svg").getroot().iter("{http://www.w3.org/2000/svg}title")]
    assert [str(title).partition(":")[0] for title in titles] == ["b1", "b2", "b3", "b4", "b5"]
    page = (folder / "plan.html").read_text()
    assert "<title>Storage plan of input.csv</title>" in page
    assert '"id":["b1","b2","b3","b4","b5"]' in page


@pytest.mark.parametrize("options", ["--svg input.csv", "--svg plan --html ./plan", "--out plan.svg --svg plan.svg"])
def test_no_output_takes_the_place_of_the_input_or_of_another(folder: Path, capsys: Shown, options: str) -> None:
    code, _, err = run(f"input.csv {options}", capsys)
    assert code == 2
    assert "error[bad-plan-option]" in err
    assert [each.name for each in sorted(folder.iterdir())] == ["input.csv", "symbolic.csv"]
    assert (folder / "input.csv").read_text() == EXAMPLE


def test_the_table_may_take_its_offsets(folder: Path, capsys: Shown) -> None:
    assert run("input.csv --out input.csv", capsys)[0] == 0
    assert (folder / "input.csv").read_text().startswith("id,lower,upper,size,offset\n")


def test_what_is_impossible_has_a_witness_and_code_three(folder: Path, capsys: Shown) -> None:
    code, out, err = run("input.csv --capacity 11", capsys)
    assert (code, out) == (3, "")
    assert "error[cannot-fit]: no plan fits 11 bytes: at time 0, 12 bytes are live at once" in err
    assert "`b1`, `b3`, `b5`" in err
    code, out, _ = run("input.csv --capacity 11 --json", capsys)
    found = json.loads(out)
    assert code == 3
    assert found["impossible"] is True
    assert found["witness"] == {"time": 0, "bytes": 12, "live": ["b1", "b3", "b5"]}
    assert {"total", "lower_bound", "gap", "proved_optimal", "seconds", "strategy", "buffers"} <= set(found)


def test_what_was_not_found_has_code_three_and_no_witness(folder: Path, capsys: Shown) -> None:
    code, out, err = run("input.csv --capacity 12 --strategy none --json --out out.csv", capsys)
    found = json.loads(out)
    assert code == 3
    assert "error[over-capacity]" in err
    assert (found["impossible"], found["witness"], found["total"]) == (False, None, None)
    assert not (folder / "out.csv").exists()


def test_a_match_range_leaves_storage_of_other_sizes_alone(tmp_path: Path, capsys: Shown) -> None:
    table = tmp_path / "sizes.csv"
    table.write_text("id,lower,upper,size\nlarge,0,1,64\nsmall,1,2,8\n")
    for option, total in (("", 64), ("--match-range 8", 64), ("--match-range 4", 72)):
        assert main(["plan", str(table), "--strategy", "share", "--json", *option.split()]) == 0
        assert json.loads(capsys.readouterr().out)["total"] == total


def test_the_seconds_to_the_first_plan_that_fits_are_told(folder: Path, capsys: Shown) -> None:
    found = json.loads(run("input.csv --capacity 16 --stop-at-fit --json", capsys)[1])
    assert found["total"] <= 16
    assert 0 <= found["seconds_to_fit"] <= found["seconds"]
    assert json.loads(run("input.csv --json", capsys)[1])["seconds_to_fit"] is None


def test_addresses_of_slots_keep_the_capacity_too(folder: Path, capsys: Shown) -> None:
    (folder / "slots.csv").write_text("id,lower,upper,size,alignment,offset\na,0,2,5,1,\nb,0,2,8,8,\nc,0,2,3,1,0\n")
    assert run("slots.csv --strategy none --out out.csv --capacity 24", capsys)[0] == 0
    assert (folder / "out.csv").read_text().splitlines()[1:] == ["a,0,2,5,1,3", "b,0,2,8,8,8", "c,0,2,3,1,0"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("nowhere.csv", "no-lifetimes-file"),
        ("bad.csv", "bad-csv-number"),
        ("input.csv --strategy shar", "unknown-strategy"),
        ("input.csv --align 3", "bad-plan-option"),
        ("input.csv --capacity -1", "bad-plan-option"),
        ("input.csv --stop-at-fit", "bad-plan-option"),
        ("input.csv --match-range -1", "bad-plan-option"),
        ("input.csv --match-range 2", "match-range-strategy"),
        ("input.csv --time-limit -1", "bad-plan-option"),
        ("input.csv --budget -1", "bad-plan-option"),
        ("input.csv --threads 0", "bad-plan-option"),
        ("input.csv --facts N<3", "unknown-dim"),
        ("symbolic.csv --facts N<", "bad-fact"),
        ("symbolic.csv --facts N<3 --bind N=3", "bad-binding"),
        ("symbolic.csv --bind N<=3", "bad-plan-option"),
        ("symbolic.csv --bind N", "bad-plan-option"),
        ("symbolic.csv --bind N=0", "bad-plan-option"),
        ("symbolic.csv --bind N=3 --bind N=4", "bad-plan-option"),
        ("input.csv --out nowhere/out.csv", "cannot-write"),
        ("input.csv --svg a\0b", "cannot-write"),
        ("a\0b", "plan-argument"),
    ],
)
def test_bad_input_has_code_two(folder: Path, capsys: Shown, line: str, code: str) -> None:
    (folder / "bad.csv").write_text(EXAMPLE + "b6,0,x,4\n")
    status, out, err = run(line, capsys)
    assert (status, out) == (2, "")
    assert err.startswith(f"error[{code}]: ")


@pytest.mark.parametrize("arguments", [["plan", ""], ["plan", "a.csv", "--out", ""], ["export", "a.py:f", "--out", ""]])
def test_an_empty_path_is_not_the_current_folder(arguments: list[str], capsys: Shown) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.endswith(": the path is empty\n")


def test_standard_input_may_be_closed(capsys: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    status, out, err = run("-", capsys)
    assert (status, out) == (2, "")
    assert err == "error[no-lifetimes-file]: cannot read `-`: standard input is closed\n"


def test_one_shape_is_planned_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.csv"
    file.write_text("id,lower,upper,size_expr\na,0,2,4*N\nb,1,3,4*M\nc,2,4,4*N\n")
    assert main(["plan", str(file), "--strategy", "per_shape", "--bind", "N=100, M=1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total"], found["lower_bound"], found["strategy"]) == (404, 404, "per_shape")
    assert sorted(found["offsets"]) == ["a", "b", "c"]
    page = tmp_path / "page.html"
    assert main(["plan", str(file), "--strategy", "per_shape", "--bind", "N=100, M=1", "--html", str(page)]) == 0
    assert '"values":[1,' in page.read_text("utf-8")  # sliders go over some shapes
    assert main(["plan", str(file), "--strategy", "per_shape"]) == 2
    assert "or give values with `--bind`" in capsys.readouterr().err


def test_dims_of_models_are_refused_for_tables(folder: Path, capsys: Shown) -> None:
    code, _, err = run("symbolic.csv --dim N=4", capsys)
    assert code == 2
    assert "--bind gives values to the names in a table" in err


def test_a_witness_leaves_out_what_takes_no_bytes(tmp_path: Path, capsys: Shown) -> None:
    table = tmp_path / "empty.csv"
    table.write_text("id,lower,upper,size\nempty,0,3,0\na,0,3,8\nb,1,4,8\n")
    assert main(["plan", str(table), "--capacity", "12", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["witness"]["live"] == ["a", "b"]


def test_what_is_planned_at_once_loads_no_compiler(folder: Path) -> None:
    program = (
        f"import sys; from tirlite.cli.main import main; main(['plan', {str(folder / 'input.csv')!r}, '--json']); "
        "sys.exit(any(name in sys.modules for name in ('tirlite.driver', 'tirlite.ir', 'llvmlite', 'sympy')))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True)
