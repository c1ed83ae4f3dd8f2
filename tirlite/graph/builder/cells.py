"""The builder's methods for cells of recurrent networks, composed of its other operators."""

from __future__ import annotations

from tirlite.graph.builder.calls import Operand
from tirlite.graph.expr import Call
from tirlite.graph.operators.arrangement import Arrangement
from tirlite.graph.operators.binary import Binary
from tirlite.graph.operators.elementwise import Elementwise
from tirlite.graph.operators.linear import Linear


class CellBuilder(Elementwise, Binary, Linear, Arrangement):
    """One step in time: inputs `[batch, inputs]`, states `[batch, hidden]`."""

    def lstm_cell(
        self, x: Operand, hidden: Operand, cell: Operand, weight: Operand, recurrence: Operand, bias: Operand
    ) -> tuple[Call, Call]:
        """The next hidden state and the next cell state.

        `weight` is `[4 * hidden, inputs]`, `recurrence` `[4 * hidden, hidden]`, `bias` `[4 * hidden]`, each with the
        rows of the input gate, the output gate, the forget gate and the candidate, in this order, as in ONNX.
        """
        sums = self.add(self.dense(x, weight, bias), self.dense(hidden, recurrence))
        write, read, keep, candidate = self.split(sums, 4, axis=1)
        kept = self.multiply(self.sigmoid(keep), cell)
        state = self.add(kept, self.multiply(self.sigmoid(write), self.tanh(candidate)))
        return self.multiply(self.sigmoid(read), self.tanh(state)), state
