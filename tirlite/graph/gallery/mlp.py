"""A perceptron with layers in a row, for any number of samples at a time."""

from __future__ import annotations

from itertools import pairwise

from tirlite.dsl import dim
from tirlite.graph.builder.builder import Builder
from tirlite.graph.gallery.network import Network, Weights
from tirlite.ir import f32

LAYERS = (64, 128, 128, 32, 10)


def mlp() -> Network:
    """Dense layers with bias, `relu` between them, `softmax` behind them."""
    g, weights = Builder("mlp"), Weights(1)
    batch = dim("batch")
    x = g.input("x", f32[batch, LAYERS[0]])
    y = g.dense(x, weights(LAYERS[1], LAYERS[0]), weights.bias(LAYERS[1]))
    for inputs, outputs in pairwise(LAYERS[1:]):
        y = g.dense(g.relu(y), weights(outputs, inputs), weights.bias(outputs))
    return Network(g.function({"scores": g.softmax(y)}), ({"batch": 1}, {"batch": 7}, {"batch": 32}))
