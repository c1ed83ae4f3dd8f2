"""Formats measured figures as a table or as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

from tirlite.record import record
from tirlite.show import table


@record
class Figure:
    """One measured value, smaller is better; `bar` is the value that is good enough. `value` is None if it failed."""

    name: str
    value: float | None
    unit: str
    bar: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bar was reached; None if there is none."""
        if self.value is None:
            return False
        return None if self.bar is None else self.value <= self.bar


VERDICT = {True: "yes", False: "NO", None: ""}


def figures_text(figures: Sequence[Figure]) -> str:
    """The machine, and a table."""
    rows = [
        (
            figure.name,
            "failed" if figure.value is None else f"{_number(figure.value)} {figure.unit}".rstrip(),
            "" if figure.bar is None else f"{_number(figure.bar)} {figure.unit}".rstrip(),
            VERDICT[figure.met],
            figure.note,
        )
        for figure in figures
    ]
    return machine_text() + "\n\n" + table(("what", "measured", "bar", "met", ""), rows)


def figures_json(figures: Sequence[Figure]) -> str:
    """One JSON object: the machine, and the list of figures."""
    listed = [{**asdict(figure), "met": figure.met} for figure in figures]
    return as_json(figures=listed)


def as_json(**parts: object) -> str:
    """One JSON object: the machine, and the measured parts."""
    return json.dumps({"machine": machine(), **parts}, indent=1)


def machine_text() -> str:
    return ", ".join(f"{name} {value}" for name, value in machine().items())


def machine() -> dict[str, str]:
    """The machine that the figures are for. If its load is high, the figures are too high."""
    return {
        "Python": platform.python_version(),
        "numpy": version("numpy"),
        "llvmlite": version("llvmlite"),
        "machine": platform.machine(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
    }


def _number(value: float) -> str:
    """A number with three significant digits, thousands separated."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
