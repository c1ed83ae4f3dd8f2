"""The builder's methods for operators of one operand, one element at a time."""

from __future__ import annotations

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call
from tirlite.graph.ops import Alpha, Cast, Clip, Gelu, HardSigmoid, Selu
from tirlite.ir import DType


class ElementwiseBuilder(CallBuilder):
    """Functions of each element. Without another word they take elements of any float type."""

    def bitcast(self, x: Operand, dtype: DType) -> Call:
        """The same bits as elements of another type of that width; not of types that have 16 bits and are floats."""
        return self.call("bitcast", x, attrs=Cast(dtype))

    def exp(self, x: Operand) -> Call:
        """e to the power x."""
        return self.call("exp", x)

    def exp2(self, x: Operand) -> Call:
        """2 to the power x."""
        return self.call("exp2", x)

    def expm1(self, x: Operand) -> Call:
        """exp(x) - 1, exact near 0."""
        return self.call("expm1", x)

    def log(self, x: Operand) -> Call:
        """The natural logarithm."""
        return self.call("log", x)

    def log2(self, x: Operand) -> Call:
        """The logarithm to base 2."""
        return self.call("log2", x)

    def log10(self, x: Operand) -> Call:
        """The logarithm to base 10."""
        return self.call("log10", x)

    def log1p(self, x: Operand) -> Call:
        """log(1 + x), exact near 0."""
        return self.call("log1p", x)

    def sqrt(self, x: Operand) -> Call:
        """The square root."""
        return self.call("sqrt", x)

    def rsqrt(self, x: Operand) -> Call:
        """1 / sqrt(x)."""
        return self.call("rsqrt", x)

    def reciprocal(self, x: Operand) -> Call:
        """1 / x."""
        return self.call("reciprocal", x)

    def sin(self, x: Operand) -> Call:
        """The sine."""
        return self.call("sin", x)

    def cos(self, x: Operand) -> Call:
        """The cosine."""
        return self.call("cos", x)

    def tan(self, x: Operand) -> Call:
        """The tangent."""
        return self.call("tan", x)

    def asin(self, x: Operand) -> Call:
        """The inverse sine."""
        return self.call("asin", x)

    def acos(self, x: Operand) -> Call:
        """The inverse cosine."""
        return self.call("acos", x)

    def atan(self, x: Operand) -> Call:
        """The inverse tangent."""
        return self.call("atan", x)

    def sinh(self, x: Operand) -> Call:
        """The hyperbolic sine."""
        return self.call("sinh", x)

    def cosh(self, x: Operand) -> Call:
        """The hyperbolic cosine."""
        return self.call("cosh", x)

    def tanh(self, x: Operand) -> Call:
        """The hyperbolic tangent."""
        return self.call("tanh", x)

    def asinh(self, x: Operand) -> Call:
        """The inverse hyperbolic sine."""
        return self.call("asinh", x)

    def acosh(self, x: Operand) -> Call:
        """The inverse hyperbolic cosine."""
        return self.call("acosh", x)

    def atanh(self, x: Operand) -> Call:
        """The inverse hyperbolic tangent."""
        return self.call("atanh", x)

    def erf(self, x: Operand) -> Call:
        """The error function."""
        return self.call("erf", x)

    def sigmoid(self, x: Operand) -> Call:
        """1 / (1 + exp(-x))."""
        return self.call("sigmoid", x)

    def silu(self, x: Operand) -> Call:
        """x * sigmoid(x)."""
        return self.call("silu", x)

    def hard_swish(self, x: Operand) -> Call:
        """x * hard_sigmoid(x, 1/6, 1/2)."""
        return self.call("hard_swish", x)

    def softplus(self, x: Operand) -> Call:
        """log(1 + exp(x))."""
        return self.call("softplus", x)

    def softsign(self, x: Operand) -> Call:
        """x / (1 + abs(x))."""
        return self.call("softsign", x)

    def mish(self, x: Operand) -> Call:
        """x * tanh(softplus(x))."""
        return self.call("mish", x)

    def floor(self, x: Operand) -> Call:
        """The next integer below."""
        return self.call("floor", x)

    def ceil(self, x: Operand) -> Call:
        """The next integer above."""
        return self.call("ceil", x)

    def round(self, x: Operand) -> Call:
        """The nearest integer, the even one of two."""
        return self.call("round", x)

    def trunc(self, x: Operand) -> Call:
        """The integer part."""
        return self.call("trunc", x)

    def negative(self, x: Operand) -> Call:
        """-x, of any type of numbers."""
        return self.call("negative", x)

    def abs(self, x: Operand) -> Call:
        """The absolute value, of any type of numbers."""
        return self.call("abs", x)

    def sign(self, x: Operand) -> Call:
        """-1, 0 or 1, of any type of numbers."""
        return self.call("sign", x)

    def relu(self, x: Operand) -> Call:
        """max(x, 0), of any type of numbers."""
        return self.call("relu", x)

    def bitwise_not(self, x: Operand) -> Call:
        """All bits inverted, of integers or bools."""
        return self.call("bitwise_not", x)

    def logical_not(self, x: Operand) -> Call:
        """Whether x is false, of bools."""
        return self.call("logical_not", x)

    def isnan(self, x: Operand) -> Call:
        """Whether x is not a number, as bools."""
        return self.call("isnan", x)

    def isinf(self, x: Operand) -> Call:
        """Whether x is infinite, as bools."""
        return self.call("isinf", x)

    def identity(self, x: Operand) -> Call:
        """x, of any type."""
        return self.call("identity", x)

    def cast(self, x: Operand, dtype: DType) -> Call:
        """The elements in another type. Floats become integers by cutting, saturate, and nan gives 0."""
        return self.call("cast", x, attrs=Cast(dtype))

    def clip(self, x: Operand, low: float | int | None = None, high: float | int | None = None) -> Call:
        """The elements, those below `low` made `low`, those above `high` made `high`; of any type of numbers."""
        return self.call("clip", x, attrs=Clip(low, high))

    def leaky_relu(self, x: Operand, alpha: float = 0.01) -> Call:
        """x, or alpha * x where x is negative."""
        return self.call("leaky_relu", x, attrs=Alpha(alpha))

    def elu(self, x: Operand, alpha: float = 1.0) -> Call:
        """x, or alpha * (exp(x) - 1) where x is negative."""
        return self.call("elu", x, attrs=Alpha(alpha))

    def celu(self, x: Operand, alpha: float = 1.0) -> Call:
        """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
        return self.call("celu", x, attrs=Alpha(alpha))

    def selu(self, x: Operand, alpha: float = Selu().alpha, gamma: float = Selu().gamma) -> Call:
        """gamma * x, or gamma * alpha * (exp(x) - 1) where x is not positive."""
        return self.call("selu", x, attrs=Selu(alpha, gamma))

    def gelu(self, x: Operand, *, approximate: bool = False) -> Call:
        """x * P(X <= x) for X of the standard normal distribution, by erf, or approximately by tanh."""
        return self.call("gelu", x, attrs=Gelu(approximate))

    def hard_sigmoid(self, x: Operand, alpha: float = 0.2, beta: float = 0.5) -> Call:
        """max(0, min(1, alpha * x + beta))."""
        return self.call("hard_sigmoid", x, attrs=HardSigmoid(alpha, beta))

    def dropout(self, x: Operand) -> Call:
        """x: nothing is dropped outside of training."""
        return self.identity(x)
