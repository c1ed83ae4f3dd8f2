"""What `tirlite run` tells of outputs, for machines."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tirlite.cli.model_report import Report, report_json


def test_what_json_has_no_number_for_is_text() -> None:
    outputs = {"y": np.array([1.5, np.nan, np.inf, -np.inf], np.float32), "is_big": np.array([True, False])}

    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    found = json.loads(report_json(Report(outputs, 8, 8, {}, "auto", 0.5, 0.1)), parse_constant=refuse)
    assert found["outputs"]["y"]["elements"] == [1.5, "nan", "inf", "-inf"]
    assert found["outputs"]["is_big"]["elements"] == [True, False]
