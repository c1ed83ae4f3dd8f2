"""Recurrent operators, which apply a cell to each step of a sequence: their type rules.

`sums` is `[time, batch, ways * gates * hidden]`: the products of inputs and weights plus the biases. `recurrence` is
`[ways, hidden, gates * hidden]`. States are `[ways, batch, hidden]`, outputs `[time, ways, batch, hidden]`. The ways
are one or both directions. Gates are in ONNX's order.
"""

from __future__ import annotations

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import TupleGetItem
from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Site
from tirlite.graph.operators.operands import FLOATS, has_shape
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import f32, i8, i16
from tirlite.record import record


@record
class Steps(Attrs):
    """Whether the sequence is processed from its end; the second of two directions always is."""

    reverse: bool = False


@record
class GruSteps(Attrs):
    """The same, and whether the state is multiplied before it is reset."""

    reverse: bool = False
    linear_before_reset: bool = False


def _cell(site: Site, gates: int, states: tuple[int, ...], bias: int | None = None) -> tuple[TensorType, TensorType]:
    """The types of the outputs and of a state, after a check of the operands."""
    dtype = FLOATS.shared(site)
    sums, recurrence = site.tensor(0), site.tensor(1)
    if sums.rank != 3 or recurrence.rank != 3 or recurrence.shape[0] not in (1, 2):
        raise site.mismatch("operands 0 and 1 must have 3 axes, and operand 1 must have one way or two")
    time, batch, _ = sums.shape
    ways, hidden, _ = recurrence.shape
    state = (ways, batch, hidden)
    wanted: list[tuple[int, Shape]] = [(0, (time, batch, ways * gates * hidden)), (1, (ways, hidden, gates * hidden))]
    wanted += [(number, state) for number in states]
    wanted += [] if bias is None else [(bias, (ways, gates * hidden))]
    for number, shape in wanted:
        if not has_shape(site, site.tensor(number), shape):
            raise site.mismatch(f"operand {number} must be {TensorType(shape, dtype)}")
    return TensorType((time, *state), dtype), TensorType(state, dtype)


def _lstm_type(site: Site, attrs: Steps) -> TupleType:
    outputs, state = _cell(site, 4, (2, 3))
    return TupleType((outputs, state, state))


def _lstm_bytes_type(site: Site, attrs: Steps) -> TupleType:
    sums, weights, hidden = (site.tensor(number) for number in (0, 1, 4))
    if sums.rank != 3 or hidden.rank != 3 or sums.dtype != f32 or weights.dtype not in (i16, i8):
        raise site.mismatch("operands 0 and 4 must have 3 axes, of f32, and operand 1 i16 or i8")
    time, batch, _ = sums.shape
    (ways, _, width), size = hidden.shape, weights.shape[3] if weights.rank == 5 else 1
    if not isinstance(width, int) or not isinstance(size, int) or 4 * width % size:
        raise site.mismatch("the width of operand 4 must be known, and whole panels")
    together, gates = 2 if weights.dtype == i16 else 4, (ways, 4 * width)
    state, panels = (ways, batch, width), (ways, 4 * width // size, -(-width // together), size, together)
    wanted = (time, batch, ways * 4 * width), panels, gates, gates, state, state, (2, batch)
    for number, (given, shape) in enumerate(zip(site.tensors(), wanted, strict=False)):
        if not has_shape(site, given, shape):
            raise site.mismatch(f"operand {number} must be {TensorType(shape, given.dtype)}")
    made = TensorType(state, f32)
    return TupleType((TensorType((time, *state), f32), made, made))


def _gru_type(site: Site, attrs: GruSteps) -> TupleType:
    return TupleType(_cell(site, 3, (3,), 2))


def _rnn_type(site: Site, attrs: Steps) -> TupleType:
    return TupleType(_cell(site, 1, (2,)))


class Recurrence(CallBuilder):
    """Recurrent layers. `sums` is `[time, batch, ways * gates * hidden]`, the products of inputs and weights plus
    biases; states are `[ways, batch, hidden]`; `recurrence` is `[ways, hidden, gates * hidden]`. Gates are in ONNX's
    order.
    """

    @operator(_lstm_type, lowering="sequence.lstm", least=4, attrs=Steps)
    def lstm(
        self, sums: Operand, recurrence: Operand, hidden: Operand, cell: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem, TupleGetItem]:
        """The outputs of all steps `[time, ways, batch, hidden]`, and the last hidden and cell states."""
        call = self.call("lstm", sums, recurrence, hidden, cell, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1), self.item(call, 2)

    @operator(_lstm_bytes_type, lowering="sequence.lstm_bytes", least=6, most=7, attrs=Steps)
    def lstm_bytes(
        self,
        sums: Operand,
        recurrence: Operand,
        scale: Operand,
        totals: Operand,
        hidden: Operand,
        cell: Operand,
        ends: Operand | None = None,
        *,
        reverse: bool = False,
    ) -> tuple[TupleGetItem, TupleGetItem, TupleGetItem]:
        """As `lstm`, but the hidden state is quantized at each step and multiplied with integer weights.

        recurrence: `[ways, panels, pairs of rows, columns of a panel, 2]` of i16; i8 weights are packed by 4 rows.
        scale: `[ways, gates * hidden]`, the quantization scale of each column; `totals`: the columns' sums, in i32.
        ends: `[2, batch]`. From the first step on, a sequence keeps its states and outputs 0; up to the second, it is
            included in the range that the batch's states are quantized by.
        """
        operands = [sums, recurrence, scale, totals, hidden, cell, *([] if ends is None else [ends])]
        call = self.call("lstm_bytes", *operands, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1), self.item(call, 2)

    @operator(_gru_type, lowering="sequence.gru", least=4, attrs=GruSteps)
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
        """The outputs of all steps, and the last state. `bias` `[ways, 3 * hidden]` is the recurrent product's."""
        attrs = GruSteps(reverse, linear_before_reset)
        call = self.call("gru", sums, recurrence, bias, hidden, attrs=attrs)
        return self.item(call, 0), self.item(call, 1)

    @operator(_rnn_type, lowering="sequence.rnn", least=3, attrs=Steps)
    def rnn(
        self, sums: Operand, recurrence: Operand, hidden: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The outputs of all steps, and the last state: `tanh(sums + state @ recurrence)` at each step."""
        call = self.call("rnn", sums, recurrence, hidden, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1)
