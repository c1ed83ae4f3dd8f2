"""Importers of operators on rows of features: TfIdfVectorizer, and the linear and scaling operators of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Expr
from tirlite.graph.onnx.importers.trees import transformed
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.ir import f32, i64


def _tf_idf(t: Translation, node: OnnxNode) -> Expr:
    """Counts the n-grams of a pool in each row, with up to `max_skip_count` words skipped between their words."""
    pool, starts = node.integers("pool_int64s"), node.integers("ngram_counts") or ()
    if pool is None:
        raise Unsupported("its words are texts")
    x = node.first if node.rank == 2 else t.b.unsqueeze(node.first, 0)
    words = t.b.cast(x, i64)
    ends = [*starts[1:], len(pool)]
    counts = []
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        grams = np.array(pool[start:end], np.int64).reshape(-1, length)
        if len(grams):
            is_counted = node.integer("min_gram_length") <= length <= node.integer("max_gram_length")
            skips = node.integer("max_skip_count") if length > 1 else 0
            steps = range(1, skips + 2) if is_counted else ()
            counts.append(_grams(t, words, grams, steps, min(pool) - 1))
    found = t.b.concat(counts, 1)
    places = node.integers("ngram_indexes") or ()
    order = np.full(max(places) + 1, len(places), np.int64)
    order[list(places)] = np.arange(len(places))
    made = t.b.gather(t.b.pad(found, (0, 0), (0, 1)), order, 1)
    weights = np.array(node.numbers("weights") or (1.0,) * len(order), np.float32)[: len(order)]
    mode = node.text("mode")
    if mode != "TF":
        often = made if mode == "TFIDF" else t.b.cast(t.b.greater(made, 0.0), f32)
        made = t.b.multiply(often, weights)
    return made if node.rank == 2 else t.b.squeeze(made, (0,))


def _grams(
    t: Translation, words: Expr, grams: np.ndarray[tuple[int, int], np.dtype[np.int64]], steps: Sequence[int], none: int
) -> Expr:
    """Counts each n-gram in each row, with its words `step` apart for each of `steps`; `none` occurs in no n-gram."""
    rows, count = words.shape
    total = t.b.broadcast_to(t.b.constant(np.float32(0)), (rows, len(grams)))
    for step in steps:
        # Pad rows, so that an n-gram that would exceed its row does not match.
        room = step * (grams.shape[1] - 1)
        padded = t.b.pad(words, (0, 0), (0, room), value=none)
        is_there: Expr | None = None
        for place, word in enumerate(grams.T):
            seen = t.b.slice(padded, [step * place], [count + step * place], [1])
            is_word = t.b.equal(t.b.unsqueeze(seen, 2), word)
            is_there = is_word if is_there is None else t.b.logical_and(is_there, is_word)
        assert is_there is not None
        total = t.b.add(total, t.b.reduce_sum(t.b.cast(is_there, f32), 1))
    return total


def _extracted(t: Translation, node: OnnxNode) -> Expr:
    return t.b.gather(node.x(0), t.b.reshape(node.x(1), (-1,)), node.rank - 1)


def _binarizer(t: Translation, node: OnnxNode) -> Expr:
    return t.b.cast(t.b.greater(node.first, node.number("threshold")), node.dtype)


def _scaler(t: Translation, node: OnnxNode) -> Expr:
    x = t.b.cast(node.first, f32)
    offset, scale = (
        np.array(node.numbers(name) or (default,), np.float32) for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    return t.b.multiply(t.b.subtract(x, offset), scale)


def _normalizer(t: Translation, node: OnnxNode) -> Expr:
    """Divides rows by their norm; rows with norm 0 stay unchanged."""
    x, kind = t.b.cast(node.first, f32), node.text("norm", "MAX")
    if kind != "MAX":
        made: Expr = t.standard(node, "LpNormalization", (x,), {"p": 1 if kind == "L1" else 2})[0]
        return made
    norm = t.b.reduce_max(x, -1, keepdims=True)
    return t.b.divide(x, t.b.where(t.b.equal(norm, 0.0), 1.0, norm))


def _imputer(t: Translation, node: OnnxNode) -> Expr:
    """Replaces missing values by the imputed value of their column."""
    x, is_whole = node.first, node.dtype.is_integer
    if is_whole:
        values = np.array(node.integers("imputed_value_int64s"), np.int64)
        return t.b.where(t.b.equal(x, node.integer("replaced_value_int64")), values, x)
    values, missing = np.array(node.numbers("imputed_value_floats"), np.float32), node.number("replaced_value_float")
    is_missing = t.b.isnan(x) if np.isnan(missing) else t.b.equal(x, missing)
    return t.b.where(is_missing, values, x)


def _scores(t: Translation, node: OnnxNode, count: int) -> Expr:
    """The linear scores of rows for `count` targets: products with the coefficients, plus intercepts if any."""
    weights = np.array(node.numbers("coefficients"), np.float32).reshape(count, -1)
    made = t.b.matmul(t.b.cast(node.first, f32), np.ascontiguousarray(weights.T))
    shifts = node.numbers("intercepts")
    return made if shifts is None else t.b.add(made, np.array(shifts, np.float32))


def _regressor(t: Translation, node: OnnxNode) -> Expr:
    return transformed(t, _scores(t, node, node.integer("targets", 1)), node.text("post_transform", "NONE"))


def _classifier(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    labels = node.integers("classlabels_ints")
    if labels is None:
        raise Unsupported("its labels are texts")
    width = node.first.shape[1]
    if not isinstance(width, int) or len(node.numbers("coefficients") or ()) != width * len(labels):
        raise Unsupported("it has not as many rows of coefficients as labels")
    scores = _scores(t, node, len(labels))
    best = t.b.gather(np.array(labels, np.int64), t.b.argmax(scores, 1), 0)
    return best, transformed(t, scores, node.text("post_transform", "NONE"))


VECTORIZER: Mapping[str, Importer] = {"TfIdfVectorizer": _tf_idf}
FEATURES: Mapping[str, Importer] = {
    "ArrayFeatureExtractor": _extracted,
    "Binarizer": _binarizer,
    "Imputer": _imputer,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _normalizer,
    "Scaler": _scaler,
}
