"""A thousand operators in a row: what a large graph of small tensors asks of the compiler."""

from __future__ import annotations

from tirlite.dsl import dim
from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.gallery.network import Network, Weights
from tirlite.ir import f32

WIDTHS = (24, 32, 40, 48, 56, 64)


def thousand(operators: int = 1000) -> Network:
    """Dense layers from each width to each other one, with what people put between them: about 70 distinct kernels."""
    g, weights = Builder("thousand"), Weights(6)
    y: Expr = g.input("x", f32[dim("batch"), WIDTHS[0]])
    between = (g.relu, g.tanh, g.sigmoid, g.gelu)
    for layer in range(operators // 5):
        inputs, outputs = y.shape[1], WIDTHS[layer * layer // 7 % len(WIDTHS)]
        z = between[layer % len(between)](g.dense(y, weights(outputs, inputs), weights.bias(outputs)))
        centred = g.subtract(z, g.reduce_mean(z, 1, keepdims=True))
        y = g.multiply(centred, weights.scale(outputs))
    return Network(g.function({"y": y}), ({"batch": 4},))
