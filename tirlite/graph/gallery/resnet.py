"""ResNet-50 with seeded weights: what a network of everyday size asks of the compiler."""

from __future__ import annotations

from tirlite.dsl import dim
from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.gallery.network import Network, Weights
from tirlite.ir import f32

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet50(size: int = 224) -> Network:
    """Scores for 1000 classes of images of `size` x `size` points. Source: He et al., 2016; stride in the 3 x 3."""
    g, weights = Builder("resnet50"), Weights(5)

    def conv(x: Expr, channels: int, window: int, stride: int = 1) -> Expr:
        y = g.conv2d(x, weights(channels, x.shape[1], window, window), stride=stride, pad=window // 2)
        scale, variance = weights.scale(channels), weights.scale(channels)
        return g.batch_norm(y, scale, weights.bias(channels), weights.bias(channels), variance)

    def bottleneck(x: Expr, channels: int, stride: int) -> Expr:
        y = g.relu(conv(x, channels, 1))
        y = g.relu(conv(y, channels, 3, stride))
        same = x if x.shape[1] == 4 * channels and stride == 1 else conv(x, 4 * channels, 1, stride)
        return g.relu(g.add(conv(y, 4 * channels, 1), same))

    image = g.input("image", f32[dim("batch"), 3, size, size])
    y: Expr = g.max_pool(g.relu(conv(image, 64, 7, 2)), 3, stride=2, pad=1)
    for stage, (blocks, channels) in enumerate(STAGES):
        for block in range(blocks):
            y = bottleneck(y, channels, stride=2 if stage and not block else 1)
    pooled = g.flatten(g.global_average_pool(y))
    scores = g.dense(pooled, weights(1000, pooled.shape[1]), weights.bias(1000))
    return Network(g.function({"scores": g.softmax(scores)}), ({"batch": 1}, {"batch": 2}))
