"""Computes the Harris response of a picture; on the way, all that tirlite does to the kernel is printed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from textwrap import dedent

import numpy as np
import numpy.typing as npt

from tirlite import driver
from tirlite.cli.turns import medians
from tirlite.driver import Kernel
from tirlite.kernels.harris import harris, reference
from tirlite.plan import Plan
from tirlite.show import table
from tirlite.sizes import Dim

Gray = npt.NDArray[np.uint8]
Response = npt.NDArray[np.float32]

# Runs of each side, in turns, and seconds after which no more are begun.
_RUNS, _PATIENCE = 21, 0.5
# Longer bodies of loops are folded.
_MOST_LINES = 3


def tour(image: Gray) -> Response:
    """Prints the kernel, its loop nest, its plan, the chart, the check and the times. Returns the kernel's result."""
    height, width = image.shape
    print(f"tirlite: the corners in a picture of {width} x {height} pixels")
    _part("The kernel: each stage has a temporary of its own", _source(harris))
    as_written = driver.compile(harris, schedule=None)
    _part(
        "The loop nest after the rewrite: few allocations, the other temporaries are views of them", _nest(as_written)
    )
    dims = [var.dim for var in harris.ir.dims]
    binding = {dim: size for dim, size in zip(dims, image.shape, strict=True) if dim is not None}
    _part("The storage plan", _plan(as_written, binding))
    _part("Which bytes hold what, over time", as_written.plan.at(binding).to_text().splitlines()[1:])
    response = harris(image)
    assert isinstance(response, np.ndarray)
    _part("The check against NumPy", [_check(response, reference(image))])
    _part("The time", _times(image))
    _part("The picture", [])
    return response


def _part(title: str, lines: Iterable[str]) -> None:
    print(f"\n{title}\n{'-' * len(title)}")
    for line in lines:
        print(f"  {line}".rstrip())


def _source(kernel: Kernel) -> list[str]:
    """The kernel as its author wrote it."""
    span = kernel.ir.span
    assert span is not None
    return dedent("\n".join(span.source.lines)).splitlines()


def _nest(kernel: Kernel) -> list[str]:
    """The rewritten function. Long bodies of loops are folded: their statements are those of the source."""
    lines: list[str] = []
    for is_body, group in groupby(str(kernel.lowered).splitlines(), lambda line: line.startswith(" " * 12)):
        body = list(group)
        lines += [" " * 12 + "...", body[-1]] if is_body and len(body) > _MOST_LINES else body
    return [*lines, "", "In full:", f"python -m tirlite show {_path(kernel)}:{kernel.name} --after storage-rewrite"]


def _path(kernel: Kernel) -> Path:
    """The file of the kernel, as it is named from the current folder."""
    span = kernel.ir.span
    assert span is not None
    path, here = Path(span.source.name), Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _plan(kernel: Kernel, binding: dict[Dim, int]) -> list[str]:
    before, after = driver.compile(kernel, strategy="none", schedule=None).plan, kernel.plan
    figures = [
        ("before", _figures(before, before.at(binding).total)),
        ("after", _figures(after, after.at(binding).total)),
        ("lower bound", f"{after.lower_bound} bytes: no plan can do with less"),
        ("gap", _gap(after, binding)),
    ]
    rows = [
        (pool, name, str(after.decisions[name]))
        for pool in after.pools
        for name in after.sharers(pool)
        if name in after.decisions
    ]
    sharing = table(("storage", "used by", "why"), _once(rows))
    return [*(f"{name:<12} {figure}" for name, figure in figures), "", *sharing.splitlines()]


def _figures(plan: Plan, total: object) -> str:
    assert isinstance(total, int)
    return f"{plan.total} bytes in {len(plan.pools)} allocations, here {total / 2**20:.2f} MiB"


def _gap(plan: Plan, binding: dict[Dim, int]) -> str:
    if plan.proved_optimal:
        return "0 %, proved for all sizes"
    gap = plan.at(binding).gap
    return f"{gap:.1%} here" if gap is not None else "depends on the sizes"


def _once(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The rows, the first column empty where it is that of the row above."""
    shown, above = [], ""
    for pool, name, why in rows:
        shown.append(("" if pool == above else pool, name, why))
        above = pool
    return shown


def _check(response: Response, expected: Response) -> str:
    if np.array_equal(response, expected):
        return f"all {response.size:,} values are the same, bit for bit"
    largest = np.abs(response - expected).max()
    return f"the largest difference is {largest:.3g}, the largest value {np.abs(expected).max():.3g}"


def _times(image: Gray) -> list[str]:
    ours, theirs = medians([lambda: harris(image), lambda: reference(image)], _RUNS, patience=_PATIENCE)
    compiling = harris.timing.total
    return [
        f"NumPy    {1e3 * theirs:8.2f} ms",
        f"tirlite  {1e3 * ours:8.2f} ms, which is {theirs / ours:.1f} times as fast (medians, the two in turns)",
        f"compiled in {1e3 * compiling:.0f} ms, once for all sizes",
    ]
