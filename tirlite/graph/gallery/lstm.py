"""A recurrent cell, taken through some steps in time."""

from __future__ import annotations

from tirlite.dsl import dim
from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.gallery.network import Network, Weights
from tirlite.ir import f32

STEPS, INPUTS, HIDDEN = 6, 24, 32


def lstm() -> Network:
    """Hidden states after each step, joined along axis 1, and the last state of the cell."""
    g, weights = Builder("lstm"), Weights(3)
    batch = dim("batch")
    x = g.input("x", f32[batch, STEPS, INPUTS])
    hidden: Expr = g.input("hidden", f32[batch, HIDDEN])
    cell: Expr = g.input("cell", f32[batch, HIDDEN])
    weight = g.constant(weights(4 * HIDDEN, INPUTS), name="weight")
    recurrence = g.constant(weights(4 * HIDDEN, HIDDEN), name="recurrence")
    bias = g.constant(weights.bias(4 * HIDDEN), name="bias")
    states = []
    for now in g.split(x, STEPS, axis=1):
        hidden, cell = g.lstm_cell(g.squeeze(now, 1), hidden, cell, weight, recurrence, bias)
        states.append(g.unsqueeze(hidden, 1))
    result = {"states": g.concat(states, axis=1), "last": cell}
    return Network(g.function(result), ({"batch": 1}, {"batch": 5}))
