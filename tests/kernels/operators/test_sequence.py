"""Recurrent layers: sequences of a batch have the outputs together that each has alone, and so have both ways."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from operator_cases.sequence import gru_step, lstm_bytes_step, lstm_step, rnn_step, stepped

import tirlite as tl
from tirlite.graph import Builder, Function, compile  # noqa: A004
from tirlite.graph.operators.laid_out import groups_of_pairs
from tirlite.kernels.operators import sequence

# Values are compared alone: how hard LLVM tries is of no matter.
pytestmark = pytest.mark.usefixtures("without_effort")

TIME, WIDTH = 5, 6
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def shapes(cell: str, batches: int, ways: int) -> dict[str, tuple[int, ...]]:
    width = GATES[cell] * WIDTH
    bias = {"bias": (ways, width)} if cell == "gru" else {}
    states = ("hidden", "cell") if cell == "lstm" else ("hidden",)
    return {
        "sums": (TIME, batches, ways * width),
        "recurrence": (ways, WIDTH, width),
        **bias,
        **dict.fromkeys(states, (ways, batches, WIDTH)),
    }


def layer(cell: str, batches: int, ways: int = 1, **attrs: Any) -> Function:
    g = Builder(cell)
    operands = [g.input(name, tl.f32[shape]) for name, shape in shapes(cell, batches, ways).items()]
    return g.function([*getattr(g, cell)(*operands, **attrs)])


@pytest.fixture(autouse=True)
def rows_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "_FEW_COLUMNS", WIDTH)  # of several gates there are more


@cache
def compiled(cell: str, batches: int, ways: int = 1, **attrs: Any) -> Any:
    return compile(layer(cell, batches, ways, **attrs))


def wanted(cell: str, *operands: np.ndarray, reverse: bool = False, linear_before_reset: bool = False) -> Any:
    step = {"lstm": lstm_step, "gru": gru_step(linear_before_reset), "rnn": rnn_step}[cell]
    return stepped(step, 2 if cell == "lstm" else 1, reverse)(*operands)


def arguments(cell: str, batches: int, ways: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(batches)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes(cell, batches, ways).values()]


@pytest.mark.parametrize("batches", [7, 9])
@pytest.mark.parametrize(
    ("cell", "attrs"),
    [("lstm", {}), ("gru", {}), ("gru", {"linear_before_reset": True}), ("rnn", {}), ("lstm", {"reverse": True})],
)
def test_sequences_have_the_same_outputs_together_as_alone(cell: str, batches: int, attrs: dict[str, Any]) -> None:
    alone = compiled(cell, 1, **attrs)
    sums, *weights = arguments(cell, batches)
    states = weights[2 if cell == "gru" else 1 :]
    weights = weights[: len(weights) - len(states)]
    found = compiled(cell, batches, **attrs)(sums, *weights, *states)
    for each, other in zip(found, wanted(cell, sums, *weights, *states, **attrs), strict=True):
        np.testing.assert_allclose(each, other, 1e-5, 1e-5)
    for b in range(batches):
        own = alone(sums[:, b : b + 1], *weights, *(state[:, b : b + 1] for state in states))
        np.testing.assert_array_equal(found[0][:, :, b : b + 1], own[0])
        np.testing.assert_array_equal(found[1][:, b : b + 1], own[1])


@pytest.mark.parametrize("batches", [1, 9])
@pytest.mark.parametrize("cell", [*GATES])
def test_both_ways_have_the_outputs_that_each_has_alone(cell: str, batches: int) -> None:
    both = layer(cell, batches, ways=2)
    sums, *rest = arguments(cell, batches, ways=2)
    outputs, *states = compile(both)(sums, *rest)
    for each, other in zip((outputs, *states), wanted(cell, sums, *rest), strict=True):
        np.testing.assert_allclose(each, other, 1e-5, 1e-5)
    for way, part in enumerate(np.split(sums, 2, 2)):
        alone = compiled(cell, batches, **({"reverse": True} if way else {}))
        own = alone(np.ascontiguousarray(part), *(each[way : way + 1] for each in rest))
        np.testing.assert_array_equal(outputs[:, way : way + 1], own[0])
        for state, each in zip(states, own[1:], strict=True):
            np.testing.assert_array_equal(state[way : way + 1], each)


def in_steps(
    batches: int, ways: int, width: int, *, reverse: bool, is_ragged: bool = False, of_bytes: bool = False
) -> tuple[Function, tuple[np.ndarray, ...]]:
    """A layer whose integers go by pairs, or those that are bytes by groups, and what it has of these."""
    rng = np.random.default_rng(width)
    least = -128 if of_bytes else -255
    pairs = rng.integers(least, -least, (ways, width, (width + 1) // 2, 4, 2)).astype(np.int16)
    if width % 2:
        pairs[:, :, -1, :, 1] = 0
    totals = pairs.sum((2, 4), dtype=np.int32).reshape(ways, 4 * width)
    recurrence = groups_of_pairs(pairs) if of_bytes else pairs
    g = Builder("steps")
    sums, state = g.input("sums", tl.f32[TIME, batches, ways * 4 * width]), tl.f32[ways, batches, width]
    scale = rng.uniform(0, 1e-3, (ways, 4 * width)).astype(np.float32)
    states = g.input("hidden", state), g.input("cell", state)
    ends = g.input("ends", tl.i32[2, batches]) if is_ragged else None
    weights = recurrence, scale, totals
    return g.function([*g.lstm_bytes(sums, *weights, *states, ends, reverse=reverse)]), weights


@pytest.mark.parametrize("of_bytes", [False, True])
@pytest.mark.parametrize(("batches", "ways", "width"), [(1, 1, 16), (3, 2, 5), (4, 1, 8)])
def test_a_layer_of_integers_quantizes_its_outputs_before_each_step(
    batches: int, ways: int, width: int, of_bytes: bool
) -> None:
    rng = np.random.default_rng(batches)
    shapes = (TIME, batches, ways * 4 * width), (ways, batches, width), (ways, batches, width)
    sums, *states = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    ragged = np.array([[*range(batches - 1), 99], [*range(batches - 1), 2]], np.int32)
    for ends in (None, ragged) if batches > 1 else (None,):
        how = {"is_ragged": ends is not None, "of_bytes": of_bytes}
        function, weights = in_steps(batches, ways, width, reverse=ways == 1, **how)
        found = compile(function)(sums, *states, *([] if ends is None else [ends]))
        reference = stepped(lstm_bytes_step, 2, ways == 1, ends)
        for each, other in zip(found, reference(sums, *weights, *states), strict=True):
            np.testing.assert_allclose(each, other, 1e-5, 1e-5)
