"""Formats the outputs of a model and its plan, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.plan import Plan
from tirlite.record import record
from tirlite.show import table
from tirlite.sizes import evaluate

# For a larger gap, relative to the bound, the text says how to close it.
_WIDE = 0.03
_BY_SHAPE = "          for all values of the dims; `--planner per_shape` plans anew at each"


@record
class Report:
    """The results of a run: outputs by name, planned bytes, dims, and the seconds to compile and of one run.

    For a model in several parts the bytes are those of the largest. An interrupted run has no seconds.
    """

    outputs: Mapping[str, npt.NDArray[Any]]
    total: int
    lower_bound: int
    dims: Mapping[str, int]
    strategy: str
    compile_seconds: float
    run_seconds: float | None
    parts: int = 1

    @staticmethod
    def of(
        outputs: Mapping[str, Any],
        plans: Sequence[Plan],
        dims: Mapping[str, int],
        compile_seconds: float,
        run_seconds: float | None,
    ) -> Report:
        """The report of a run with these plans and dims."""
        plan = max(plans, key=lambda each: evaluate(each.total, {}))
        total, bound = evaluate(plan.total, {}), evaluate(plan.lower_bound, {})
        return Report(dict(outputs), total, bound, dict(dims), plan.strategy, compile_seconds, run_seconds, len(plans))

    @property
    def gap(self) -> float:
        """How much the plan exceeds the bound, relative to the bound."""
        return (self.total - self.lower_bound) / self.lower_bound if self.lower_bound else 0.0


def report_text(report: Report) -> str:
    """A table of the outputs, then lines about memory and time."""
    rows = [
        (name, str(array.dtype), str(array.shape), *_summary(array), _first(array))
        for name, array in report.outputs.items()
    ]
    dims = ", ".join(f"{name}={value}" for name, value in report.dims.items())
    planned = f"{report.total:,} bytes by {report.strategy}, bound {report.lower_bound:,}, gap {report.gap:.1%}"
    if report.parts > 1:
        planned += f", in the largest of {report.parts} parts"
    return "\n".join(
        [
            table(("output", "type", "shape", "least", "mean", "greatest", "first elements"), rows),
            "",
            *([f"dims      {dims}"] if dims else []),
            f"planned   {planned}",
            *([_BY_SHAPE] if dims and report.gap > _WIDE and report.strategy != "per_shape" else []),
            f"compiled  {report.compile_seconds:.2f} s, with the first run",
            "run       interrupted" if report.run_seconds is None else f"run       {report.run_seconds * 1000:.3f} ms",
        ]
    )


def _summary(array: npt.NDArray[Any]) -> tuple[str, str, str]:
    if not array.size:
        return ("", "", "")
    wide = array.astype(np.float64)
    return (f"{wide.min():.6g}", f"{wide.mean():.6g}", f"{wide.max():.6g}")


def _first(array: npt.NDArray[Any]) -> str:
    shown = " ".join(f"{each:.6g}" for each in array.reshape(-1)[:4].astype(np.float64))
    return f"{shown} ..." if array.size > 4 else shown


def report_json(report: Report) -> str:
    """One JSON object with the first elements of each output; nonfinite numbers are strings: `nan`, `inf`, `-inf`."""
    outputs = {
        name: {"dtype": str(each.dtype), "shape": each.shape, "elements": [*map(_element, each.reshape(-1)[:16])]}
        for name, each in report.outputs.items()
    }
    planned = {"total": report.total, "lower_bound": report.lower_bound, "gap": report.gap}
    seconds = {"compile_seconds": report.compile_seconds, "run_seconds": report.run_seconds}
    return json.dumps({"outputs": outputs, **planned, "strategy": report.strategy, "dims": report.dims, **seconds})


def _element(value: np.generic) -> object:
    number = value.item()
    return number if isfinite(number) else str(number)
