"""Plans the storage of the tensors between an ONNX model's operators: `tirlite plan MODEL.onnx`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tirlite.cli.options import bad_option, refuse_other_dims
from tirlite.diag import TirliteError
from tirlite.record import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph import CompiledGraph
    from tirlite.plan import Plan, Problem
    from tirlite.rewrite.options import Choices
    from tirlite.sizes import Dim, SizeLike


@record
class ModelFacts:
    """Facts about a model.

    `dims`: values and facts known before planning. `sizes`: dims that the plan is shown at. `constants`: known inputs.
    """

    dims: Mapping[str, SizeLike]
    sizes: Mapping[str, int]
    constants: Mapping[str, npt.NDArray[Any]]


def model_problem(path: Path) -> Problem:
    """The storage problem of a model's tensors. Raises TirliteError for a file that cannot be imported as a model."""
    from tirlite.graph import compile, from_onnx  # noqa: A004

    return compile(from_onnx(path), strategy="none").plan.problem


def _largest(graph: CompiledGraph, binding: Mapping[Dim, int]) -> Plan:
    """The plan of the largest part of a graph in parts; a call with random inputs determines some sizes."""
    import numpy as np

    from tirlite.graph.sample_arguments import sample_arguments
    from tirlite.sizes import evaluate

    arguments = sample_arguments(graph.function, binding, np.random.default_rng(0), {})
    plans = graph.plans(*arguments)
    parts = "1 part" if len(plans) == 1 else f"{len(plans)} parts"
    print(f"in {parts}; below is the largest of a call with random inputs", file=sys.stderr)
    return max(plans, key=lambda each: evaluate(each.total, {}))


def model_plan(path: Path, facts: ModelFacts, choices: Choices) -> Plan:
    """The plan that `tl.graph.compile` makes, including the operators' own temporaries; no native code is generated.

    Given sizes, the plan for all dims is shown at these, as by `plan_at`. Raises TirliteError for a file that cannot be
    imported as a model, for unknown names and for dims without a value; CapacityError if the plan does not fit.
    """
    from tirlite.driver.shapes import MissingSize
    from tirlite.graph import compile, from_onnx  # noqa: A004
    from tirlite.graph.sample_arguments import sample_sizes, sizes_by_name
    from tirlite.sizes import dims_of
    from tirlite.solver import LateEngine

    function = from_onnx(path, dims=facts.dims, constants=facts.constants)
    with_engine: Choices = {"engine": LateEngine, **choices}
    binding = sample_sizes(function, facts.sizes)
    refuse_other_dims(function, facts.sizes, binding)
    graph = compile(function, **with_engine)
    if graph.parts != (graph,):
        return _largest(graph, binding)
    by_shape = choices.get("strategy") == "per_shape"
    named = sizes_by_name(function)
    sizes = {dim.name: binding[dim] for name in facts.sizes for dim in dims_of(named[name])}
    try:
        return graph.plan_at(**sizes) if sizes or by_shape else graph.plan
    except TirliteError as error:
        if not isinstance(error.messages[0], MissingSize):
            raise
    names = dict.fromkeys(dim.name for param in function.params for extent in param.shape for dim in dims_of(extent))
    missing = [name for name in names if name not in sizes]
    example = " ".join(f"--dim {name}=4" for name in missing)
    why = f"the plan depends on {' and '.join(f'`{name}`' for name in missing)} too; add {example}"
    raise bad_option("--dim", why)
