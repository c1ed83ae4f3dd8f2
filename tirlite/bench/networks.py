"""Networks built by hand, for docs, tests and benchmarks, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.dsl import dim
from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import Expr
from tirlite.graph.function import Function
from tirlite.graph.sample_arguments import sample_arguments
from tirlite.ir import f32
from tirlite.record import record
from tirlite.sizes import Dim, dims_of


@record
class Network:
    """A function, and several sets of values for its dims; one empty set if it has none."""

    function: Function
    bindings: tuple[Mapping[str, int], ...] = ({},)

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def dims(self) -> dict[str, Dim]:
        """The dims of the parameters, by name."""
        return {dim.name: dim for extent in self.function.extents for dim in dims_of(extent)}

    def arguments(self, sizes: Mapping[str, int], seed: int = 0) -> tuple[npt.NDArray[Any], ...]:
        """Arrays for the parameters: normal floats, integers in range if they are indices, otherwise 0 or 1."""
        binding = {dim: sizes[name] for name, dim in self.dims.items()}
        return tuple(sample_arguments(self.function, binding, np.random.default_rng(seed), {}))


class Weights:
    """Seeded weights, scaled so that activations neither vanish nor explode."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def __call__(self, *shape: int) -> npt.NDArray[np.float32]:
        """Weights for a layer with `shape[0]` outputs, with variance 1 / inputs."""
        inputs = int(np.prod(shape[1:])) or 1
        return np.asarray(self._rng.standard_normal(shape, np.float32) / np.sqrt(inputs), np.float32)

    def bias(self, count: int) -> npt.NDArray[np.float32]:
        """Small numbers around 0."""
        return np.asarray(self._rng.standard_normal(count, np.float32) / 10, np.float32)

    def scale(self, count: int) -> npt.NDArray[np.float32]:
        """Positive numbers around 1."""
        return self._rng.uniform(0.5, 1.5, count).astype(np.float32)


class _Blocks:
    """The building blocks of the network. `channels` are those of axis 1."""

    def __init__(self) -> None:
        self.g = Builder("cnn")
        self.weights = Weights(2)

    def conv(self, x: Expr, channels: int, window: int = 3, stride: int = 1) -> Expr:
        """A convolution that keeps the extents, or divides them by the stride, then a batch normalization."""
        weight = self.weights(channels, x.shape[1], window, window)
        y = self.g.conv2d(x, weight, stride=stride, pad=window // 2)
        scale, variance = self.weights.scale(channels), self.weights.scale(channels)
        return self.g.batch_norm(y, scale, self.weights.bias(channels), self.weights.bias(channels), variance)

    def residual(self, x: Expr) -> Expr:
        """Two convolutions with a projection shortcut, at half the extents and twice the channels."""
        channels = 2 * x.shape[1]
        y = self.g.relu(self.conv(x, channels, stride=2))
        return self.g.relu(self.g.add(self.conv(y, channels), self.conv(x, channels, window=1, stride=2)))

    def dense(self, x: Expr, layers: int, growth: int) -> Expr:
        """A dense block: each layer's input is the concatenation of all outputs before."""
        for _ in range(layers):
            x = self.g.concat([x, self.g.relu(self.conv(x, growth))], axis=1)
        return x


def cnn() -> Network:
    """Scores of 24 x 24 images in three colours."""
    parts = _Blocks()
    g, weights = parts.g, parts.weights
    batch = dim("batch")
    first = g.relu(parts.conv(g.input("image", f32[batch, 3, 24, 24]), 8))
    blocks = parts.dense(parts.residual(g.max_pool(first, 2)), layers=3, growth=8)
    last = g.average_pool(g.relu(parts.conv(blocks, 16, window=1)), 2)
    scores = g.dense(g.flatten(last), weights(10, 16 * 9), weights.bias(10))
    return Network(g.function({"scores": g.softmax(scores)}), ({"batch": 1}, {"batch": 3}))


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


LAYERS = (64, 128, 128, 32, 10)


def mlp() -> Network:
    """Dense layers with bias, `relu` between them, `softmax` after them."""
    g, weights = Builder("mlp"), Weights(1)
    batch = dim("batch")
    x = g.input("x", f32[batch, LAYERS[0]])
    y = g.dense(x, weights(LAYERS[1], LAYERS[0]), weights.bias(LAYERS[1]))
    for inputs, outputs in pairwise(LAYERS[1:]):
        y = g.dense(g.relu(y), weights(outputs, inputs), weights.bias(outputs))
    return Network(g.function({"scores": g.softmax(y)}), ({"batch": 1}, {"batch": 7}, {"batch": 32}))


STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet50(size: int = 224) -> Network:
    """Scores for 1000 classes of `size` x `size` images. Source: He et al., 2016; stride in the 3 x 3."""
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


WIDTHS = (24, 32, 40, 48, 56, 64)


def thousand(operators: int = 1000) -> Network:
    """Dense layers between all pairs of widths, with common operators in between: about 70 distinct kernels."""
    g, weights = Builder("thousand"), Weights(6)
    y: Expr = g.input("x", f32[dim("batch"), WIDTHS[0]])
    between = (g.relu, g.tanh, g.sigmoid, g.gelu)
    for layer in range(operators // 5):
        inputs, outputs = y.shape[1], WIDTHS[layer * layer // 7 % len(WIDTHS)]
        z = between[layer % len(between)](g.dense(y, weights(outputs, inputs), weights.bias(outputs)))
        centred = g.subtract(z, g.reduce_mean(z, 1, keepdims=True))
        y = g.multiply(centred, weights.scale(outputs))
    return Network(g.function({"y": y}), ({"batch": 4},))


WIDTH, HEADS = 64, 4


def transformer() -> Network:
    """A block with normalization before, and a shortcut around, each half. `mask` is added to the scores."""
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


# Networks that run in no time, and networks of realistic size.
SMALL: Mapping[str, Callable[[], Network]] = MappingProxyType(
    {"mlp": mlp, "cnn": cnn, "lstm": lstm, "transformer": transformer}
)
LARGE: Mapping[str, Callable[[], Network]] = MappingProxyType({"resnet50": resnet50, "thousand": thousand})
