"""An ONNX model in, the storage plan of the tensors between its operators out: what `tirlite plan MODEL.onnx` shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tirlite.plan import Plan


def model_plan(
    path: Path,
    strategy: str,
    bound: Mapping[str, int],
    sizes: Mapping[str, int],
    budget: int | None,
    time_limit: float | None,
) -> Plan:
    """The plan that `tl.graph.compile` makes, with what the operators need for themselves; no native code is made.

    Dims in `bound` are numbers before the model is planned. Where there are `sizes`, the plan for all values of the
    others is shown at these, as `plan_at` does. Raises TirliteError for what is no model, or cannot be imported, and
    for names that it does not have.
    """
    from tirlite.graph import compile, from_onnx  # noqa: A004
    from tirlite.solver import LateEngine

    function = from_onnx(path, dims=bound)
    graph = compile(function, strategy=strategy, budget=budget, time_limit=time_limit, engine=LateEngine)
    return graph.plan_at(**sizes) if sizes else graph.plan
