"""A small convolutional network with a residual block, as in ResNet, and a dense block, as in DenseNet."""

from __future__ import annotations

from tirlite.dsl import dim
from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.gallery.network import Network, Weights
from tirlite.ir import f32


class _Blocks:
    """The parts of the network. `channels` of each value are those of its axis 1."""

    def __init__(self) -> None:
        self.g = Builder("cnn")
        self.weights = Weights(2)

    def conv(self, x: Expr, channels: int, window: int = 3, stride: int = 1) -> Expr:
        """A convolution that keeps the extents, or divides them by the stride, and a normalization of its channels."""
        weight = self.weights(channels, x.shape[1], window, window)
        y = self.g.conv2d(x, weight, stride=stride, pad=window // 2)
        scale, variance = self.weights.scale(channels), self.weights.scale(channels)
        return self.g.batch_norm(y, scale, self.weights.bias(channels), self.weights.bias(channels), variance)

    def residual(self, x: Expr) -> Expr:
        """Two convolutions, and around them the operand itself, at half the extents and twice the channels."""
        channels = 2 * x.shape[1]
        y = self.g.relu(self.conv(x, channels, stride=2))
        return self.g.relu(self.g.add(self.conv(y, channels), self.conv(x, channels, window=1, stride=2)))

    def dense(self, x: Expr, layers: int, growth: int) -> Expr:
        """Each layer sees what all before it gave."""
        for _ in range(layers):
            x = self.g.concat([x, self.g.relu(self.conv(x, growth))], axis=1)
        return x


def cnn() -> Network:
    """Scores of images of 24 x 24 points in three colours."""
    parts = _Blocks()
    g, weights = parts.g, parts.weights
    batch = dim("batch")
    first = g.relu(parts.conv(g.input("image", f32[batch, 3, 24, 24]), 8))
    blocks = parts.dense(parts.residual(g.max_pool(first, 2)), layers=3, growth=8)
    last = g.average_pool(g.relu(parts.conv(blocks, 16, window=1)), 2)
    scores = g.dense(g.flatten(last), weights(10, 16 * 9), weights.bias(10))
    return Network(g.function({"scores": g.softmax(scores)}), ({"batch": 1}, {"batch": 3}))
