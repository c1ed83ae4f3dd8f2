"""Operators that step a recurrent cell along a sequence: their types.

`sums` are `[time, batch, gates * hidden]`: the products of inputs and weights, with the biases that are added to both.
`recurrence` is `[hidden, gates * hidden]`. States are `[batch, hidden]`. The order of gates is that of ONNX.
"""

from __future__ import annotations

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.builder.declare import operator
from tirlite.graph.expr import TupleGetItem
from tirlite.graph.extents import Shape
from tirlite.graph.op import Array, Attrs, Site
from tirlite.graph.operators.operands import FLOATS
from tirlite.graph.types import TensorType, TupleType
from tirlite.record import record


@record
class Steps(Attrs):
    """Whether the sequence is gone through from its end."""

    reverse: bool = False


@record
class GruSteps(Attrs):
    """Whether the sequence is gone through from its end; whether the product of the state comes before its reset."""

    reverse: bool = False
    linear_before_reset: bool = False


def _cell(site: Site, gates: int, states: tuple[int, ...], bias: int | None = None) -> tuple[TensorType, TensorType]:
    """The type of the sequence of outputs and of a state, once the operands are found to fit."""
    dtype = FLOATS.shared(site)
    sums, recurrence = site.tensor(0), site.tensor(1)
    if sums.rank != 3 or recurrence.rank != 2:
        raise site.mismatch("operand 0 must have 3 axes and operand 1 must be a matrix")
    time, batch, _ = sums.shape
    hidden = recurrence.shape[0]
    wanted: list[tuple[int, Shape]] = [(0, (time, batch, gates * hidden)), (1, (hidden, gates * hidden))]
    wanted += [(number, (batch, hidden)) for number in states]
    wanted += [] if bias is None else [(bias, (gates * hidden,))]
    for number, shape in wanted:
        given = site.tensor(number)
        if given.rank != len(shape) or not all(map(site.is_equal, given.shape, shape)):
            raise site.mismatch(f"operand {number} must be {TensorType(shape, dtype)}")
    return TensorType((time, batch, hidden), dtype), TensorType((batch, hidden), dtype)


def _lstm_type(site: Site, attrs: Steps) -> TupleType:
    outputs, state = _cell(site, 4, (2, 3))
    return TupleType((outputs, state, state))


def _gru_type(site: Site, attrs: GruSteps) -> TupleType:
    return TupleType(_cell(site, 3, (3,), 2))


def _rnn_type(site: Site, attrs: Steps) -> TupleType:
    return TupleType(_cell(site, 1, (2,)))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _times(count: int, *, reverse: bool) -> range:
    return range(count - 1, -1, -1) if reverse else range(count)


def _lstm(attrs: Steps, sums: Array, recurrence: Array, hidden: Array, cell: Array) -> tuple[Array, ...]:
    outputs = np.zeros((*sums.shape[:2], recurrence.shape[0]), sums.dtype)
    for time in _times(len(sums), reverse=attrs.reverse):
        write, read, keep, candidate = np.split(sums[time] + hidden @ recurrence, 4, 1)
        cell = _sigmoid(keep) * cell + _sigmoid(write) * np.tanh(candidate)
        hidden = outputs[time] = _sigmoid(read) * np.tanh(cell)
    return outputs, hidden, cell


def _gru(attrs: GruSteps, sums: Array, recurrence: Array, bias: Array, hidden: Array) -> tuple[Array, ...]:
    width = recurrence.shape[0]
    outputs = np.zeros((*sums.shape[:2], width), sums.dtype)
    for time in _times(len(sums), reverse=attrs.reverse):
        both = hidden @ recurrence[:, : 2 * width] + bias[: 2 * width] + sums[time][:, : 2 * width]
        update, reset = np.split(_sigmoid(both), 2, 1)
        last, last_bias, x = recurrence[:, 2 * width :], bias[2 * width :], sums[time][:, 2 * width :]
        if attrs.linear_before_reset:
            candidate = np.tanh(x + reset * (hidden @ last + last_bias))
        else:
            candidate = np.tanh(x + (reset * hidden) @ last + last_bias)
        hidden = outputs[time] = (1 - update) * candidate + update * hidden
    return outputs, hidden


def _rnn(attrs: Steps, sums: Array, recurrence: Array, hidden: Array) -> tuple[Array, ...]:
    outputs = np.zeros((*sums.shape[:2], recurrence.shape[0]), sums.dtype)
    for time in _times(len(sums), reverse=attrs.reverse):
        hidden = outputs[time] = np.tanh(sums[time] + hidden @ recurrence)
    return outputs, hidden


class Recurrence(CallBuilder):
    """`sums` are `[time, batch, gates * hidden]`, products of inputs and weights with their biases; states
    `[batch, hidden]`; `recurrence` is `[hidden, gates * hidden]`. Gates are in ONNX's order.
    """

    @operator(_lstm_type, _lstm, "sequence.lstm", least=4, attrs=Steps)
    def lstm(
        self, sums: Operand, recurrence: Operand, hidden: Operand, cell: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem, TupleGetItem]:
        """The outputs of all steps `[time, batch, hidden]`, and the last hidden and cell states."""
        call = self.call("lstm", sums, recurrence, hidden, cell, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1), self.item(call, 2)

    @operator(_gru_type, _gru, "sequence.gru", least=4, attrs=GruSteps)
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

    @operator(_rnn_type, _rnn, "sequence.rnn", least=3, attrs=Steps)
    def rnn(
        self, sums: Operand, recurrence: Operand, hidden: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The outputs of all steps, and the last state: `tanh(sums + state @ recurrence)` at each step."""
        call = self.call("rnn", sums, recurrence, hidden, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1)
