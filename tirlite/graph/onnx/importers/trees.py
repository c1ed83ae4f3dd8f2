"""Importers of ensembles of decision trees (ai.onnx.ml): a loop descends all trees for all rows, one level per step.

The nodes and leaves of all trees are numbered together. A leaf's successor is itself, so that all paths take as many
steps as the longest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.onnx.node import OnnxNode, Unsupported, wide
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.types import Array
from tirlite.ir import DType, f32, f64, i64
from tirlite.record import record

# In the order of TreeEnsemble's numbers; the older operators use the names.
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_COMPARISONS = ("less_equal", "less", "greater_equal", "greater", "equal", "not_equal")
_MEMBER = 6
_LEAF = -1
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@record(eq=False)
class Forest:
    """The trees, as arrays over all nodes: the comparison, and the successor for each answer; leaves have mode -1."""

    roots: Array
    modes: Array
    features: Array
    splits: Array
    on_true: Array
    on_false: Array
    missing_is_true: Array
    weights: Array  # for each node and target
    counts: Array  # whether the node has a weight for the target

    @property
    def depth(self) -> int:
        """The most steps from a root to a leaf. Raises Unsupported if there is a cycle."""
        front, steps = np.unique(self.roots), 0
        while len(inner := front[self.modes[front] != _LEAF]):
            if steps > len(self.modes):
                raise Unsupported("its trees have circles")
            front, steps = np.unique([self.on_true[inner], self.on_false[inner]]), steps + 1
        return steps


@record(eq=False)
class Scores:
    """The scores of each row and target; `told` is whether some leaf has a weight for it, None if always."""

    values: Expr
    told: Expr | None

    def with_base(self, t: Translation, base: Array, *, everywhere: bool) -> Expr:
        """The scores plus base values; unless `everywhere`, a target for which no leaf has a weight stays 0."""
        if not len(base):
            return self.values
        total = t.b.add(self.values, t.b.constant(base.astype(self.values.dtype.numpy)))
        return total if self.told is None or everywhere else t.b.where(self.told, total, self.values)


def _regressor(t: Translation, node: OnnxNode) -> Expr:
    count = node.integer("n_targets", 1)
    forest = _named_forest(node, "target", count)
    scores = _scores(t, node.first, forest, node.text("aggregate_function", "SUM"))
    total = scores.with_base(t, _numbers(node, "base_values"), everywhere=count == 1)
    return t.b.cast(transformed(t, total, node.text("post_transform", "NONE")), f32)


def _classifier(t: Translation, node: OnnxNode) -> list[Expr]:
    if "classlabels_strings" in node.attributes:
        raise Unsupported("its labels are texts")
    labels = np.array(node.integers("classlabels_int64s") or (), np.int64)
    forest = _named_forest(node, "class", max(len(labels), 1))
    scores = _scores(t, node.first, forest, "SUM")
    base = _numbers(node, "base_values")
    used = np.flatnonzero(forest.counts.any(0))
    if len(labels) == 2 and len(used) == 1:
        if len(base) > 1 - int(used[0]):
            raise Unsupported("of its two classes one has weights, and the other one a base value")
        return _binary(t, node, forest, t.b.gather(scores.values, t.b.constant(used), 1), labels, base)
    if len(labels) == 2 and (len(base) or scores.told is not None):
        raise Unsupported("its two classes have base values, or leaves with weights for one of them")
    total = scores.with_base(t, base, everywhere=True)
    known = total if len(base) or scores.told is None else t.b.where(scores.told, total, -np.inf)
    best = t.b.gather(t.b.constant(labels), t.b.argmax(known, 1), 0)
    return [best, t.b.cast(transformed(t, total, node.text("post_transform", "NONE")), f32)]


def _binary(t: Translation, node: OnnxNode, forest: Forest, score: Expr, labels: Array, base: Array) -> list[Expr]:
    """Two classes with weights for one: shares p and 1 - p, or if a weight is negative, a score and its negative."""
    if len(base):
        score = t.b.add(score, t.b.constant(base.astype(score.dtype.numpy)))
    is_share = bool((forest.weights >= 0).all())
    is_second = t.b.reshape(t.b.greater(score, 0.5 if is_share else 0.0), (score.shape[0],))
    best = t.b.where(is_second, t.b.constant(labels[1]), t.b.constant(labels[0]))
    transform = node.text("post_transform", "NONE")
    if forest.counts[:, 1].any():
        # As in onnxruntime: a class without weights has score 0.
        pair = t.b.concat([t.b.multiply(score, 0.0), score], 1)
        return [best, t.b.cast(transformed(t, pair, transform), f32)]
    parts: list[Expr]
    if transform == "LOGISTIC":
        parts = [t.b.sigmoid(t.b.negative(score)), t.b.sigmoid(score)]
    elif is_share:
        parts = [t.b.subtract(1.0, score), score]
    else:
        parts = [t.b.negative(score), score]
    return [best, t.b.cast(t.b.concat(parts, 1), f32)]


def _ensemble(t: Translation, node: OnnxNode) -> Expr:
    forest = _numbered_forest(node)
    aggregate = _AGGREGATES[node.integer("aggregate_function", 1)]
    scores = _scores(t, node.first, forest, aggregate).values
    return t.b.cast(transformed(t, scores, _TRANSFORMS[node.integer("post_transform", 0)]), node.dtype)


def _scores(t: Translation, x: Expr, forest: Forest, aggregate: str) -> Scores:
    """The scores of each row and target, aggregated over the leaves that the row reaches."""
    if x.tensor.rank == 1:
        x = t.b.reshape(x, (1, x.shape[0]))
    of: DType = f64 if x.dtype == f64 else f32
    x = t.b.cast(x, of)
    start = t.b.broadcast_to(t.b.constant(forest.roots.reshape(1, -1)), (x.shape[0], len(forest.roots)))
    places = _leaves(t, x, forest, start) if forest.depth else start
    t.spent.constant(forest.weights.size * of.bytes, None)
    found = t.b.gather(t.b.constant(forest.weights.astype(of.numpy)), places, 0)
    if forest.counts[forest.modes == _LEAF].all():
        has = told = None
    else:
        has = t.b.gather(t.b.constant(forest.counts), places, 0)
        told = t.b.greater(t.b.reduce_max(t.b.cast(has, i64), 1), 0)
    if aggregate in ("SUM", "AVERAGE"):
        total = t.b.reduce_sum(found, 1)
        return Scores(total if aggregate == "SUM" else t.b.divide(total, float(len(forest.roots))), told)
    if has is not None:
        found = t.b.where(has, found, np.inf if aggregate == "MIN" else -np.inf)
    least = t.b.reduce_min(found, 1) if aggregate == "MIN" else t.b.reduce_max(found, 1)
    return Scores(least if told is None else t.b.where(told, least, 0.0), told)


def _leaves(t: Translation, x: Expr, forest: Forest, start: Expr) -> Expr:
    """The leaf that each row reaches in each tree."""
    features, on_true, on_false = (
        t.b.constant(each.astype(np.int64)) for each in (forest.features, forest.on_true, forest.on_false)
    )
    splits = t.b.constant(forest.splits.astype(x.dtype.numpy))
    kinds = np.unique(forest.modes[forest.modes != _LEAF])
    modes, missing = t.b.constant(forest.modes.astype(np.int64)), t.b.constant(forest.missing_is_true)

    def down(number: Expr, going: Expr, states: list[Expr]) -> tuple[Expr, list[Expr], list[Expr]]:
        (at,) = states
        value = t.b.gather_elements(x, t.b.gather(features, at, 0), 1)
        split = t.b.gather(splits, at, 0)
        answers = [t.b.call(_COMPARISONS[kind], value, split) for kind in kinds]
        answer = answers[0]
        for kind, other in zip(kinds[1:], answers[1:], strict=True):
            answer = t.b.where(t.b.equal(t.b.gather(modes, at, 0), int(kind)), other, answer)
        if forest.missing_is_true.any():
            answer = t.b.logical_or(answer, t.b.logical_and(t.b.isnan(value), t.b.gather(missing, at, 0)))
        step = t.b.where(answer, t.b.gather(on_true, at, 0), t.b.gather(on_false, at, 0))
        return t.b.constant(np.array(True)), [step], []

    _, (places,), _ = t.b.loop(down, t.b.constant(np.int64(forest.depth)), [start])
    return places


def transformed(t: Translation, scores: Expr, transform: str) -> Expr:
    """Applies the attribute `post_transform` to scores."""
    if transform == "NONE" or (scores.shape[1] == 1 and transform != "PROBIT"):
        # As in onnxruntime: a single score is not transformed.
        return scores
    if transform == "LOGISTIC":
        return t.b.sigmoid(scores)
    if transform == "SOFTMAX":
        return t.b.softmax(scores, 1)
    raise Unsupported(f"its results are transformed by {transform}")


def _named_forest(node: OnnxNode, what: str, targets: int) -> Forest:
    """The trees of the older operators, whose nodes, leaves included, are identified by tree and node number."""
    trees, numbers = node.integers("nodes_treeids") or (), node.integers("nodes_nodeids") or ()
    places = {pair: place for place, pair in enumerate(zip(trees, numbers, strict=True))}
    names = node.texts("nodes_modes") or ()
    modes = np.array([_LEAF if name == "LEAF" else _MODES.index(name) for name in names], np.int64)
    count = len(modes)
    ways = []
    for side in ("nodes_truenodeids", "nodes_falsenodeids"):
        given = zip(trees, node.integers(side) or (), modes, strict=True)
        ways.append([at if mode == _LEAF else places[tree, to] for at, (tree, to, mode) in enumerate(given)])
    on_true, on_false = (np.array(way, np.int64) for way in ways)
    inner = modes != _LEAF
    roots = np.setdiff1d(np.arange(count), np.concatenate([on_true[inner], on_false[inner]]))
    weights, counts = np.zeros((count, targets)), np.zeros((count, targets), np.bool_)
    owners = zip(node.integers(f"{what}_treeids") or (), node.integers(f"{what}_nodeids") or (), strict=True)
    ids, values = node.integers(f"{what}_ids") or (), _numbers(node, f"{what}_weights")
    for owner, target, value in zip(owners, ids, values, strict=True):
        if not 0 <= target < targets:
            raise Unsupported(f"a leaf has target {target}, and there are {targets}")
        weights[places[owner], target] += value
        counts[places[owner], target] = True
    missing = np.array(node.integers("nodes_missing_value_tracks_true") or (0,) * count, np.bool_)
    features = np.where(inner, np.array(node.integers("nodes_featureids"), np.int64), 0)
    splits = np.where(inner, _numbers(node, "nodes_values"), 0)
    return Forest(roots, modes, features, splits, on_true, on_false, missing, weights, counts)


def _numbers(node: OnnxNode, name: str) -> Array:
    """An attribute of floats, or of a tensor under the name with `_as_tensor`."""
    found = node.attributes.get(f"{name}_as_tensor")
    if isinstance(found, Constant):
        return wide(found).reshape(-1)
    return np.array(node.numbers(name) or (), np.float32)


def _numbered_forest(node: OnnxNode) -> Forest:
    """The trees of TreeEnsemble, with leaves numbered after all nodes, and set tests expanded to a node per member."""
    modes = _tensor(node, "nodes_modes").astype(np.int64)
    count, targets = len(modes), node.integer("n_targets", 1)
    leaves, values = np.array(node.integers("leaf_targetids") or (), np.int64), _tensor(node, "leaf_weights")
    if ((leaves < 0) | (leaves >= targets)).any():
        raise Unsupported(f"a leaf has another target than the {targets}")
    ways = [
        np.array(node.integers(f"nodes_{side}nodeids"), np.int64)
        + count * np.array(node.integers(f"nodes_{side}leafs"), np.int64)
        for side in ("true", "false")
    ]
    zeros = np.zeros(len(leaves), np.int64)
    own = np.arange(count, count + len(leaves))
    weights, counts = np.zeros((count + len(leaves), targets)), np.zeros((count + len(leaves), targets), np.bool_)
    weights[own, leaves], counts[own, leaves] = values, True
    missing = np.array(node.integers("nodes_missing_value_tracks_true") or (0,) * count, np.bool_)
    made = Forest(
        np.array(node.integers("tree_roots"), np.int64),
        np.append(modes, zeros + _LEAF),
        np.append(np.array(node.integers("nodes_featureids"), np.int64), zeros),
        np.append(_tensor(node, "nodes_splits"), zeros),
        np.append(ways[0], own),
        np.append(ways[1], own),
        np.append(missing, zeros.astype(np.bool_)),
        weights,
        counts,
    )
    return _without_sets(made, _tensor(node, "membership_values") if (modes == _MEMBER).any() else np.zeros(0))


def _tensor(node: OnnxNode, name: str) -> Array:
    found = node.attributes.get(name)
    if not isinstance(found, Constant):
        raise Unsupported(f"attribute `{name}` is not a tensor")
    return wide(found).reshape(-1)


def _without_sets(forest: Forest, members: Array) -> Forest:
    """Replaces each set membership test by a chain of equality tests; in `members`, each set ends with nan."""
    sets: list[list[float]] = [[]]
    for member in members:
        if np.isnan(member):
            sets.append([])
        else:
            sets[-1].append(float(member))
    rows = {
        name: list(getattr(forest, name))
        for name in ("modes", "features", "splits", "on_true", "on_false", "missing_is_true", "weights", "counts")
    }
    for place, wanted in zip(np.flatnonzero(forest.modes == _MEMBER), _known(sets, forest), strict=True):
        first, *rest = wanted
        rows["modes"][place], rows["splits"][place] = _MODES.index("BRANCH_EQ"), first
        before = int(place)
        for member in rest:
            for name, values in rows.items():
                values.append(values[place] if name != "splits" else member)
            rows["on_false"][-1] = forest.on_false[place]
            rows["on_false"][before] = len(rows["modes"]) - 1
            before = len(rows["modes"]) - 1
    return Forest(forest.roots, **{name: np.array(values) for name, values in rows.items()})


def _known(sets: Sequence[list[float]], forest: Forest) -> Sequence[list[float]]:
    wanted = int((forest.modes == _MEMBER).sum())
    found = [each for each in sets if each]
    if len(found) != wanted:
        raise Unsupported(f"there are {len(found)} sets of members for {wanted} nodes")
    return found


TREES: Mapping[str, Importer] = {
    "TreeEnsemble": _ensemble,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
}
