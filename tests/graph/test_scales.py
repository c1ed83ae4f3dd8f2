"""Reductions, normalizations and the LSTM cell, next to formulas written another way."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph import Builder, evaluate

X = np.random.default_rng(5).standard_normal((2, 3, 4))

REDUCED = {
    "sum": X.sum,
    "mean": X.mean,
    "max": X.max,
    "min": X.min,
    "prod": X.prod,
    "l1": abs(X).sum,
    "l2": lambda *a, **k: (X**2).sum(*a, **k) ** 0.5,
    "sum_square": (X**2).sum,
    "log_sum_exp": lambda *a, **k: np.log(np.exp(X).sum(*a, **k)),
}


def run(build, *arrays: np.ndarray) -> np.ndarray:
    g = Builder("one")
    kinds = {np.dtype(np.float64): tl.f64, np.dtype(np.int8): tl.i8, np.dtype(np.bool_): tl.bool_}
    result = build(g, *(g.input(f"x{i}", kinds[array.dtype][array.shape]) for i, array in enumerate(arrays)))
    value = evaluate(g.function(result), *arrays)
    assert value.shape == result.shape
    return value


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", [(0,), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name: str, axes: tuple[int, ...], keepdims: bool) -> None:
    result = run(lambda g, x: getattr(g, f"reduce_{name}")(x, axes, keepdims=keepdims), X)
    np.testing.assert_allclose(result, REDUCED[name](axis=axes, keepdims=keepdims))


def test_sums_of_integers_wrap_and_bools_reduce() -> None:
    assert run(lambda g, x: g.reduce_sum(x), np.full(3, 100, np.int8)) == 300 - 256
    bools = np.array([[True, False], [True, True]])
    assert run(lambda g, x: g.reduce_all(x, 1), bools).tolist() == [False, True]
    assert run(lambda g, x: g.reduce_any(x, 1), bools).tolist() == [True, True]


def test_arguments_of_extremes_and_running_sums() -> None:
    x = np.array([[3.0, 1.0, 3.0]])
    assert run(lambda g, v: g.argmax(v), x) == [0]
    assert run(lambda g, v: g.argmax(v, last=True, keepdims=True), x).tolist() == [[2]]
    assert run(lambda g, v: g.argmin(v, 0), x).tolist() == [0, 0, 0]
    assert run(lambda g, v: g.cumsum(v), x).tolist() == [[3, 4, 7]]
    assert run(lambda g, v: g.cumsum(v, exclusive=True, reverse=True), x).tolist() == [[4, 3, 0]]


def test_normalizations() -> None:
    x = np.random.default_rng(6).standard_normal((2, 3, 4, 5))
    scale, bias, mean, variance = (np.array(v) for v in ([1.0, 2, 3], [0.0, 1, 2], [0.5, 0, -1], [1.0, 4, 9]))
    batch = run(lambda g, v: g.batch_norm(v, scale, bias, mean, variance, 0.0), x)
    np.testing.assert_allclose(batch[:, 2], (x[:, 2] + 1) / 3 * 3 + 2)
    item = run(lambda g, v: g.instance_norm(v, scale, bias, 0.0), x)
    np.testing.assert_allclose(item[1, 1], (x[1, 1] - x[1, 1].mean()) / x[1, 1].std() * 2 + 1)
    layer = run(lambda g, v: g.layer_norm(v, np.ones(5), np.ones(5), epsilon=0.0), x)
    np.testing.assert_allclose(layer[0, 0, 0], (x[0, 0, 0] - x[0, 0, 0].mean()) / x[0, 0, 0].std() + 1)
    near = run(lambda g, v: g.lrn(v, 3, alpha=0.3, beta=1.0, bias=2.0), x)
    np.testing.assert_allclose(near[:, 0], x[:, 0] / (2 + 0.1 * (x[:, 0] ** 2 + x[:, 1] ** 2)))
    np.testing.assert_allclose(np.exp(run(lambda g, v: g.log_softmax(v, 1), x)), run(lambda g, v: g.softmax(v, 1), x))
    assert np.isfinite(run(lambda g, v: g.softmax(v), 1e4 * x)).all()


def test_gelu_by_erf_and_by_tanh() -> None:
    exact = run(lambda g, v: g.gelu(v), X).ravel()
    np.testing.assert_allclose(exact, [v * (1 + erf(v / 2**0.5)) / 2 for v in X.ravel()])
    np.testing.assert_allclose(run(lambda g, v: g.gelu(v, approximate=True), X).ravel(), exact, atol=1e-3)


def test_floats_become_integers_by_cutting_and_saturate() -> None:
    x = np.array([1.9, -1.9, 300, -300, np.nan, np.inf])
    assert run(lambda g, v: g.cast(v, tl.i8), x).tolist() == [1, -1, 127, -128, 0, 127]
    assert run(lambda g, v: g.cast(v, tl.u64), x).tolist() == [1, 0, 300, 0, 0, 2**64 - 1]
    assert run(lambda g, v: g.cast(v, tl.bool_), x).tolist() == [True] * 6


def test_an_lstm_cell_is_its_formulas() -> None:
    rng = np.random.default_rng(7)
    x, h, c = rng.standard_normal((2, 3)), rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    w, r, b = rng.standard_normal((16, 3)), rng.standard_normal((16, 4)), rng.standard_normal(16)
    g = Builder("cell")
    arguments = [g.input(name, tl.f64[array.shape]) for name, array in (("x", x), ("h", h), ("c", c))]
    hidden, cell = evaluate(g.function([*g.lstm_cell(*arguments, w, r, b)]), x, h, c)
    i, o, f, a = np.split(x @ w.T + h @ r.T + b, 4, 1)
    wanted = c / (1 + np.exp(-f)) + np.tanh(a) / (1 + np.exp(-i))
    np.testing.assert_allclose(cell, wanted)
    np.testing.assert_allclose(hidden, np.tanh(wanted) / (1 + np.exp(-o)))
