"""The builder's methods for recurrent cells that go along a sequence."""

from __future__ import annotations

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.expr import TupleGetItem
from tirlite.graph.ops import GruSteps, Steps


class RecurrenceBuilder(CallBuilder):
    """`sums` are `[time, batch, gates * hidden]`, products of inputs and weights with their biases; states
    `[batch, hidden]`; `recurrence` is `[hidden, gates * hidden]`. Gates are in ONNX's order.
    """

    def lstm(
        self, sums: Operand, recurrence: Operand, hidden: Operand, cell: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem, TupleGetItem]:
        """The outputs of all steps `[time, batch, hidden]`, and the last hidden and cell states."""
        call = self.call("lstm", sums, recurrence, hidden, cell, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1), self.item(call, 2)

    def gru(
        self,
        sums: Operand,
        recurrence: Operand,
        bias: Operand,
        hidden: Operand,
        *,
        reverse: bool = False,
        linear_before_reset: bool = False,
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The outputs of all steps, and the last state. `bias` `[3 * hidden]` belongs to the recurrence."""
        attrs = GruSteps(reverse, linear_before_reset)
        call = self.call("gru", sums, recurrence, bias, hidden, attrs=attrs)
        return self.item(call, 0), self.item(call, 1)

    def rnn(
        self, sums: Operand, recurrence: Operand, hidden: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The outputs of all steps, and the last state: `tanh(sums + state @ recurrence)` at each step."""
        call = self.call("rnn", sums, recurrence, hidden, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1)
