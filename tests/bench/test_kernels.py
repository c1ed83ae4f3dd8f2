"""`tirlite bench kernels`: definitions give what they shall, within bounds that mean something; no time is asserted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tirlite as tl
from tirlite.bench.kernels import Row, kernels_text, limits_of, measured
from tirlite.bench.main import main
from tirlite.bench.workloads import workloads


def test_all_workloads_are_right_in_tirlite_and_numpy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "kernels", "--quick", "--json", "--threads", "1", "--peers", "numpy"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == len(workloads(quick=True))
    assert [(row["workload"], name) for row in rows for name, each in row["least"].items() if each is None] == []
    assert all(row["limit"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("name", "limits"),
    [("sum", ["bytes"]), ("chain", ["bytes", "functions"]), ("attention", ["bytes", "multiply-adds", "functions"])],
)
def test_what_is_measured_beside_a_workload_is_what_it_has_to_do(name: str, limits: list[str]) -> None:
    calls = limits_of(workloads(quick=True)[name](), tl.Target.host(workers=1))
    for call in calls.values():
        call()
    assert [*calls] == limits


def test_what_comes_out_wrong_is_told() -> None:
    workload = workloads(quick=True)["sum"]()
    wrong = replace(workload, exact=workload.exact + 1)
    row = measured(wrong, "sum", 1, ("numpy",), 1)
    assert row.least == {"tirlite": None, "numpy": None}
    assert row.ratio is None
    assert kernels_text([row]).count("WRONG") == 2


def test_bounds_are_no_larger_than_the_values() -> None:
    for make in workloads(quick=True).values():
        workload = make()
        bound = np.broadcast_to(workload.bound, workload.exact.shape)
        assert np.median(bound) <= 0.02 * np.median(abs(workload.exact)), workload.name


def test_the_ratio_is_to_the_best_peer() -> None:
    row = Row("w", 1, {"tirlite": 3.0, "numpy": 4.0, "numba": 2.0, "opencv": None}, {}, 1.0, "bytes")
    assert row.best_peer == "numba"
    assert row.ratio == 1.5


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            ("--peers", "numpy,nmpy"),
            "`nmpy` is no peer: take some of numpy, numba, scipy, opencv, torch, jax, halide, tvm, gcc, clang",
        ),
        (("--only", "matmull"), "no workload has `matmull` in its name: they are matmul 512, "),
    ],
)
def test_what_is_no_peer_and_no_workload_is_told(
    options: tuple[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "kernels", *options]) == 2
    assert told in capsys.readouterr().err
