"""`tirlite bench math`: each function and type with its worst error, and the time of an element."""

import json

import pytest

from tirlite.bench import math
from tirlite.bench.main import main
from tirlite.ir import Op


def test_functions_are_measured_in_both_types_and_are_within_their_bars(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = (Op.EXP, Op.SIN, Op.TANH, Op.POW)
    assert {*some} < {*math.FUNCTIONS}
    monkeypatch.setattr(math, "FUNCTIONS", some)
    assert main(["bench", "math", "--quick", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    names = [each["name"] for each in figures if not each["name"].endswith("fast")]
    assert names == [f"{op.label} {kind}" for op in some for kind in ("f32", "f64")]
    assert all(each["unit"] == "ULP" and 0 < each["value"] <= each["bar"] for each in figures)
    assert all("ns an element" in each["note"] for each in figures)
    fast = [each for each in figures if each["name"].endswith("fast")]
    assert {each["bar"] for each in fast} == {4}
    assert {"sin f32 fast", "tanh f64 fast", "exp f32 fast"} <= {each["name"] for each in fast}
    assert all("exact" in each["note"] for each in fast)
