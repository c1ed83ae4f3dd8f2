"""Models, and what they give, evaluated and compiled, beside what onnxruntime gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from graph.leaves import leaves

import tirlite as tl

Feed = dict[str, Any]
Values = dict[str, tuple[int, list[Any]]]


def infos(values: Values) -> list[Any]:
    from onnx import helper

    return [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in values.items()]


def model(nodes: list[Any], given: Values, made: list[str], **weights: Any) -> Any:
    from onnx import ValueInfoProto, helper, numpy_helper

    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    outputs = [ValueInfoProto(name=name) for name in made]
    graph = helper.make_graph(nodes, "net", infos(given), outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def session(model: Any, *, plain: bool = True) -> Any:
    """The model in onnxruntime; where it is plain, without onnxruntime's rewriting, on one thread."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    if plain:
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def other_planners(f: tl.graph.Function) -> list[Any]:
    """What runs the function on storage of other planners; nothing where they have none, for run-time extents."""
    try:
        explicit = tl.graph.explicit_allocation(f)
        return [explicit, tl.graph.StorageCoalesce("pack")(explicit), tl.graph.StaticRuntime(f)]
    except tl.GraphError as error:
        if error.code != "extents-of-run":
            raise
        return []


def compare(
    made: Any, feeds: Iterable[Feed], *, compiled: bool = True, rtol: float = 1e-5, atol: float = 1e-6
) -> tl.graph.CompiledGraph | None:
    """The compiled graph, if there is to be one, seen to give what onnxruntime gives, as is what the model means."""
    theirs_of = session(made, plain=False)
    f = tl.from_onnx(made)
    net = tl.graph.compile(f) if compiled else None
    others = other_planners(f)
    for feed in feeds:
        wanted = theirs_of.run(None, feed)
        found = tl.graph.evaluate(f, *(feed[param.name] for param in f.params))
        arrays = [feed[param.name] for param in f.params]
        runs = [found, *(each(*arrays) for each in others)]
        for results in (*runs, net(**feed)) if net is not None else runs:
            for mine, theirs in zip(leaves(results), wanted, strict=True):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
                np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
    return net
