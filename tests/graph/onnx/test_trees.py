"""Ensembles of decision trees, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph.onnx import beside

import tirlite as tl

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, TYPES = onnx.helper, onnx.TensorProto
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def grown(rng: np.random.Generator, trees: int, features: int, modes: tuple[str, ...]) -> tuple[Any, list[Any]]:
    """The attributes of random trees of a depth below 4, and their leaves by tree and number."""
    rows: list[list[Any]] = []
    leaves = []
    for tree in range(trees):
        waiting, count = [(0, int(rng.integers(0, 4)))], 1
        while waiting:
            number, depth = waiting.pop()
            if not depth:
                leaves.append((tree, number))
                rows.append([tree, number, 0, 0.0, "LEAF", 0, 0, 0])
                continue
            split = float(rng.integers(-3, 4) / 2)
            ways = [count, count + 1]
            chosen = [int(rng.integers(features)), split, str(rng.choice(modes)), *ways, int(rng.integers(2))]
            rows.append([tree, number, *chosen])
            waiting += [(way, depth - 1 if rng.random() < 0.8 else 0) for way in ways]
            count += 2
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    columns = dict(zip((*names, "missing_value_tracks_true"), zip(*rows, strict=True), strict=True))
    return {f"nodes_{name}": list(values) for name, values in columns.items()}, leaves


def compare(node: Any, x: Any, *kinds: int) -> None:
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in zip(node.output, kinds, strict=True)]
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), ["n", x.shape[1]])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(helper.make_graph([node], "net", [given], outputs), opset_imports=opsets, ir_version=8)
    beside.compare(made, [{"x": x}], compiled=False, rtol=1e-4, atol=1e-5)


def rows(rng: np.random.Generator, features: int, kind: type = np.float32) -> Any:
    x = (rng.integers(-4, 5, (9, features)) / 2).astype(kind)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_what_leaves_say_is_added_for_each_target(aggregate: str) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        trees, leaves = grown(rng, 4, 3, MODES if seed % 2 else MODES[:1])
        targets = 1 + seed % 3
        pairs = [(*leaf, target) for leaf in leaves for target in range(targets) if not target or rng.random() < 0.7]
        owners, numbers, ids = (list(each) for each in zip(*pairs, strict=True))
        weights = rng.standard_normal(len(ids)).astype(np.float32).tolist()
        said = {"target_treeids": owners, "target_nodeids": numbers, "target_ids": ids, "target_weights": weights}
        base = {"base_values": rng.standard_normal(targets).astype(np.float32).tolist()} if seed > 2 else {}
        how = {"n_targets": targets, "aggregate_function": aggregate, "post_transform": ("NONE", "LOGISTIC")[seed % 2]}
        node = helper.make_node(
            "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **how, **trees, **said, **base
        )
        compare(node, rows(rng, 3, np.float64 if seed == 4 else np.float32), TYPES.FLOAT)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_labels_and_scores_of_classes(transform: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        trees, leaves = grown(rng, 3, 2, MODES[:1])
        classes = 2 + seed % 2
        used = [seed // 2 % 2] if classes == 2 else [0, 1, 2]
        pairs = [(*leaf, number) for leaf in leaves for number in used]
        owners, numbers, ids = (list(each) for each in zip(*pairs, strict=True))
        weights = (rng.standard_normal(len(ids)) if seed % 4 < 2 else rng.random(len(ids)) / 4).astype(np.float32)
        said = {"class_treeids": owners, "class_nodeids": numbers, "class_ids": ids, "class_weights": weights.tolist()}
        base = {"base_values": [0.25]} if used == [0] and seed > 3 else {}
        labels = {"classlabels_int64s": [7, 3, 9][:classes], "post_transform": transform}
        node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "y"], domain="ai.onnx.ml")
        for name, value in {**labels, **trees, **said, **base}.items():
            node.attribute.append(helper.make_attribute(name, value))
        compare(node, rows(rng, 2), TYPES.INT64, TYPES.FLOAT)


def test_code_goes_down_the_trees_as_the_reference_does() -> None:
    trees, leaves = grown(np.random.default_rng(1), 5, 3, MODES)
    owners, numbers = (list(each) for each in zip(*leaves, strict=True))
    said = {"target_treeids": owners, "target_nodeids": numbers, "target_ids": [0] * len(leaves)}
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **trees, **said, n_targets=1)
    node.attribute.append(helper.make_attribute("target_weights", [float(each) for each in range(len(leaves))]))
    given = helper.make_tensor_value_info("x", TYPES.FLOAT, ["n", 3])
    graph = helper.make_graph([node], "net", [given], [helper.make_tensor_value_info("y", TYPES.FLOAT, None)])
    f = tl.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=8))
    net = tl.graph.compile(f)
    for count in (9, 1, 0):
        x = np.random.default_rng(count).standard_normal((count, 3)).astype(np.float32)
        np.testing.assert_array_equal(net(x), tl.graph.evaluate(f, x))
