"""The builder's methods for operators that bring elements to a common scale."""

from __future__ import annotations

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call
from tirlite.graph.ops import Axis, Epsilon, LayerNorm, Lrn


class NormalizationBuilder(CallBuilder):
    """Means, variances and exponentials over axes; elements are of a float type. Channels are axis 1."""

    def batch_norm(
        self, x: Operand, scale: Operand, bias: Operand, mean: Operand, variance: Operand, epsilon: float = 1e-5
    ) -> Call:
        """`(x - mean) / sqrt(variance + epsilon) * scale + bias`, with one number of each for each channel."""
        return self.call("batch_norm", x, scale, bias, mean, variance, attrs=Epsilon(epsilon))

    def instance_norm(self, x: Operand, scale: Operand, bias: Operand, epsilon: float = 1e-5) -> Call:
        """As batch_norm, with mean and variance of each channel of each item of the batch."""
        return self.call("instance_norm", x, scale, bias, attrs=Epsilon(epsilon))

    def layer_norm(
        self, x: Operand, scale: Operand, bias: Operand | None = None, *, axis: int = -1, epsilon: float = 1e-5
    ) -> Call:
        """As batch_norm, with mean and variance over the axes from `axis` on, to which scale and bias broadcast."""
        return self.call("layer_norm", x, scale, *(() if bias is None else (bias,)), attrs=LayerNorm(axis, epsilon))

    def lrn(self, x: Operand, size: int, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Call:
        """`x / (bias + alpha / size * s) ** beta`, where s sums the squares of `size` neighbouring channels."""
        return self.call("lrn", x, attrs=Lrn(size, alpha, beta, bias))

    def softmax(self, x: Operand, axis: int = -1) -> Call:
        """`exp(x)`, divided by its sum along an axis."""
        return self.call("softmax", x, attrs=Axis(axis))

    def log_softmax(self, x: Operand, axis: int = -1) -> Call:
        """The logarithm of softmax."""
        return self.call("log_softmax", x, attrs=Axis(axis))
