"""Recurrent layers: sequences of a batch that go together have the outputs that each has alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph import Builder, Function, compile, evaluate  # noqa: A004

TIME, WIDTH = 5, 6
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def layer(cell: str, batches: int, **attrs: Any) -> Function:
    g = Builder(cell)
    width = GATES[cell] * WIDTH
    sums, recurrence = g.input("sums", tl.f32[TIME, batches, width]), g.input("recurrence", tl.f32[WIDTH, width])
    bias = [g.input("bias", tl.f32[width])] if cell == "gru" else []
    states = [g.input("hidden", tl.f32[batches, WIDTH])]
    if cell == "lstm":
        states.append(g.input("cell", tl.f32[batches, WIDTH]))
    return g.function([*getattr(g, cell)(sums, recurrence, *bias, *states, **attrs)])


def arguments(cell: str, batches: int) -> list[np.ndarray]:
    rng = np.random.default_rng(batches)
    width = GATES[cell] * WIDTH
    shapes: list[tuple[int, ...]] = [(TIME, batches, width), (WIDTH, width)]
    shapes += [(width,)] if cell == "gru" else []
    shapes += [(batches, WIDTH)] * (1 + (cell == "lstm"))
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("batches", [4, 9])
@pytest.mark.parametrize(
    ("cell", "attrs"),
    [("lstm", {}), ("gru", {}), ("gru", {"linear_before_reset": True}), ("rnn", {}), ("lstm", {"reverse": True})],
)
def test_sequences_have_the_same_outputs_together_as_alone(cell: str, batches: int, attrs: dict[str, Any]) -> None:
    together, alone = layer(cell, batches, **attrs), compile(layer(cell, 1, **attrs))
    sums, *weights = arguments(cell, batches)
    states = weights[2 if cell == "gru" else 1 :]
    weights = weights[: len(weights) - len(states)]
    found = compile(together)(sums, *weights, *states)
    for each, wanted in zip(found, evaluate(together, sums, *weights, *states), strict=True):
        np.testing.assert_allclose(each, wanted, 1e-5, 1e-5)
    for b in range(batches):
        own = alone(sums[:, b : b + 1], *weights, *(state[b : b + 1] for state in states))
        np.testing.assert_array_equal(found[0][:, b : b + 1], own[0])
        np.testing.assert_array_equal(found[1][b : b + 1], own[1])
