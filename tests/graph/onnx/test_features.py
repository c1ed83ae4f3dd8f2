"""Operators on rows of features, and counts of grams in them, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graph.onnx import beside

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper = onnx.helper

# One word each, then pairs.
POOL = {"pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7], "ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6]}
WORDS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8], [5, 6, 5, 6, 5, 6]], np.int64)
ROWS = np.array([[1, -2, 0.5], [0, 0, 0], [3, 4, np.nan], [-1, -7, 2]], np.float32)


def compare(op: str, domain: str, x: Any, outputs: int = 1, **attributes: object) -> None:
    names = [f"y{number}" for number in range(outputs)]
    node = helper.make_node(op, ["x"], names, domain=domain, **attributes)
    given = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), ["n", *x.shape[1:]])
    graph = helper.make_graph([node], "net", [given], [onnx.ValueInfoProto(name=name) for name in names])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    beside.compare(made, [{"x": x}], compiled=False)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("skipped", [0, 1, 9])
def test_grams_are_counted_with_words_between(mode: str, skipped: int) -> None:
    weights = [0.5, 2.0, 1.0, 3.0, 0.25, 4.0, 1.5]
    grams = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": skipped, "mode": mode, "weights": weights}
    compare("TfIdfVectorizer", "", WORDS, **grams, **POOL)


def test_a_row_that_is_shorter_than_a_gram_has_none() -> None:
    compare(
        "TfIdfVectorizer", "", WORDS[:, :1], min_gram_length=2, max_gram_length=2, max_skip_count=2, mode="TF", **POOL
    )


def test_rows_are_scaled_and_told_apart() -> None:
    compare("Scaler", "ai.onnx.ml", ROWS, offset=[1.0, 2.0, 3.0], scale=[0.5, 1.0, 2.0])
    compare("Binarizer", "ai.onnx.ml", ROWS[:2], threshold=0.4)
    compare("Imputer", "ai.onnx.ml", ROWS, imputed_value_floats=[1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    compare("Imputer", "ai.onnx.ml", WORDS, imputed_value_int64s=[9], replaced_value_int64=3)
    for norm in ("MAX", "L1", "L2"):
        compare("Normalizer", "ai.onnx.ml", ROWS[:2], norm=norm)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_classes_have_scores_by_linear_functions(transform: str) -> None:
    weights = {"coefficients": [1.0, 2.0, 3.0, -1.0, 0.5, 0.0, 2.0, -2.0, 1.0], "intercepts": [0.5, 0.0, -1.0]}
    compare(
        "LinearClassifier", "ai.onnx.ml", ROWS[:2], 2, classlabels_ints=[7, 5, 3], post_transform=transform, **weights
    )
    compare("LinearRegressor", "ai.onnx.ml", ROWS[:2], targets=3, **weights)
