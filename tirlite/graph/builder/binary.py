"""The builder's methods for operators that broadcast their operands against each other."""

from __future__ import annotations

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import Call


class BinaryBuilder(CallBuilder):
    """Functions of the elements of two operands, which have one element type and broadcast as in NumPy.

    Comparisons give bools.
    """

    def add(self, x: Operand, y: Operand) -> Call:
        """x + y."""
        return self.call("add", x, y)

    def subtract(self, x: Operand, y: Operand) -> Call:
        """x - y."""
        return self.call("subtract", x, y)

    def multiply(self, x: Operand, y: Operand) -> Call:
        """x * y."""
        return self.call("multiply", x, y)

    def divide(self, x: Operand, y: Operand) -> Call:
        """x / y, of floats."""
        return self.call("divide", x, y)

    def floor_divide(self, x: Operand, y: Operand) -> Call:
        """x / y, floored."""
        return self.call("floor_divide", x, y)

    def floor_mod(self, x: Operand, y: Operand) -> Call:
        """The remainder of floor_divide, with the sign of y."""
        return self.call("floor_mod", x, y)

    def trunc_divide(self, x: Operand, y: Operand) -> Call:
        """x / y, cut towards zero."""
        return self.call("trunc_divide", x, y)

    def trunc_mod(self, x: Operand, y: Operand) -> Call:
        """The remainder of trunc_divide, with the sign of x."""
        return self.call("trunc_mod", x, y)

    def power(self, x: Operand, y: Operand) -> Call:
        """x to the power y."""
        return self.call("power", x, y)

    def maximum(self, x: Operand, y: Operand) -> Call:
        """The greater one; nan where one is nan."""
        return self.call("maximum", x, y)

    def minimum(self, x: Operand, y: Operand) -> Call:
        """The lesser one; nan where one is nan."""
        return self.call("minimum", x, y)

    def prelu(self, x: Operand, slope: Operand) -> Call:
        """x, or slope * x where x is negative."""
        return self.call("prelu", x, slope)

    def less(self, x: Operand, y: Operand) -> Call:
        """Whether x < y."""
        return self.call("less", x, y)

    def less_equal(self, x: Operand, y: Operand) -> Call:
        """Whether x <= y."""
        return self.call("less_equal", x, y)

    def greater(self, x: Operand, y: Operand) -> Call:
        """Whether x > y."""
        return self.call("greater", x, y)

    def greater_equal(self, x: Operand, y: Operand) -> Call:
        """Whether x >= y."""
        return self.call("greater_equal", x, y)

    def equal(self, x: Operand, y: Operand) -> Call:
        """Whether x == y."""
        return self.call("equal", x, y)

    def not_equal(self, x: Operand, y: Operand) -> Call:
        """Whether x != y."""
        return self.call("not_equal", x, y)

    def logical_and(self, x: Operand, y: Operand) -> Call:
        """Whether both hold."""
        return self.call("logical_and", x, y)

    def logical_or(self, x: Operand, y: Operand) -> Call:
        """Whether one holds."""
        return self.call("logical_or", x, y)

    def logical_xor(self, x: Operand, y: Operand) -> Call:
        """Whether exactly one holds."""
        return self.call("logical_xor", x, y)

    def bitwise_and(self, x: Operand, y: Operand) -> Call:
        """The bits that both have."""
        return self.call("bitwise_and", x, y)

    def bitwise_or(self, x: Operand, y: Operand) -> Call:
        """The bits that one has."""
        return self.call("bitwise_or", x, y)

    def bitwise_xor(self, x: Operand, y: Operand) -> Call:
        """The bits that exactly one has."""
        return self.call("bitwise_xor", x, y)

    def shift_left(self, x: Operand, y: Operand) -> Call:
        """x * 2**y; 0 where y is the width or more."""
        return self.call("shift_left", x, y)

    def shift_right(self, x: Operand, y: Operand) -> Call:
        """x // 2**y, for any y."""
        return self.call("shift_right", x, y)

    def where(self, condition: Operand, x: Operand, y: Operand) -> Call:
        """The elements of x where the condition holds, of y elsewhere. A number takes the other one's element type."""
        span = self._here()
        x, y = self._operands((x, y), span)
        return self.call("where", condition, x, y)
