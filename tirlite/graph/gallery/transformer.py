"""A block of a transformer: attention with several heads, then two dense layers, for any batch and any sequence."""

from __future__ import annotations

from tirlite.dsl import dim
from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.gallery.network import Network, Weights
from tirlite.ir import f32

WIDTH, HEADS = 64, 4


def transformer() -> Network:
    """Normalization before each half, and each half added to what came into it. `mask` is added to the scores."""
    g, weights = Builder("transformer"), Weights(4)
    batch, sequence = dim("batch"), dim("sequence")
    x = g.input("x", f32[batch, sequence, WIDTH])
    mask = g.input("mask", f32[sequence, sequence])

    def linear(value: Expr, outputs: int) -> Expr:
        inputs = value.shape[-1]
        return g.add(g.matmul(value, weights(outputs, inputs).T), weights.bias(outputs))

    def normalized(value: Expr) -> Expr:
        return g.layer_norm(value, weights.scale(WIDTH), weights.bias(WIDTH))

    def heads(value: Expr) -> Expr:
        return g.transpose(g.reshape(value, [batch, sequence, HEADS, WIDTH // HEADS]), [0, 2, 1, 3])

    inner = normalized(x)
    query, key, value = (heads(linear(inner, WIDTH)) for _ in range(3))
    scores = g.matmul(g.multiply(query, (WIDTH // HEADS) ** -0.5), g.transpose(key, [0, 1, 3, 2]))
    mixed = g.matmul(g.softmax(g.add(scores, mask)), value)
    joined = g.reshape(g.transpose(mixed, [0, 2, 1, 3]), [batch, sequence, WIDTH])
    x2 = g.add(x, linear(joined, WIDTH))
    result = g.add(x2, linear(g.gelu(linear(normalized(x2), 4 * WIDTH)), WIDTH))
    sizes = ({"batch": 1, "sequence": 8}, {"batch": 2, "sequence": 5}, {"batch": 3, "sequence": 33})
    return Network(g.function({"y": result}), sizes)
