"""Operators that step a recurrent cell along a sequence: their types.

`sums` are `[time, batch, ways * gates * hidden]`: the products of inputs and weights, with the biases that are added to
both. `recurrence` is `[ways, hidden, gates * hidden]`. States are `[ways, batch, hidden]`, outputs
`[time, ways, batch, hidden]`. The ways are one or both directions. The order of gates is that of ONNX.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand, operator
from tirlite.graph.expr import TupleGetItem
from tirlite.graph.extents import Shape
from tirlite.graph.op import Array, Attrs, Site
from tirlite.graph.operators.operands import FLOATS, has_shape
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import f32, i8, i16
from tirlite.record import record


@record
class Steps(Attrs):
    """Whether the sequence is gone through from its end. The second of two ways always is."""

    reverse: bool = False


@record
class GruSteps(Attrs):
    """The same; and whether the product of the state comes before its reset."""

    reverse: bool = False
    linear_before_reset: bool = False


def _cell(site: Site, gates: int, states: tuple[int, ...], bias: int | None = None) -> tuple[TensorType, TensorType]:
    """The type of the sequence of outputs and of a state, once the operands are found to fit."""
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


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


# The states behind a step of one way, of its sums, weights, and what else belongs to the way; the first one is put out.
Step = Callable[[Attrs, Array, "tuple[Array, ...]", "tuple[Array, ...]"], "tuple[Array, ...]"]


def _stepped(step: Step, weights: int, count: int) -> Callable[..., tuple[Array, ...]]:
    """What the NumPy function of a layer with so many weights and states does, behind which ends may stand."""

    def meaning(attrs: Steps | GruSteps, sums: Array, *operands: Array) -> tuple[Array, ...]:
        of_weights, states = operands[:weights], [np.array(each) for each in operands[weights : weights + count]]
        ways, batch, width = states[0].shape
        outputs, rows = np.zeros((len(sums), ways, batch, width), sums.dtype), np.arange(batch)
        ends, counted = (operands[weights + count :] or (np.full((2, batch), len(sums)),))[0].clip(max=len(sums))
        for way, parts in enumerate(np.split(sums, ways, 2)):
            own = tuple(each[way] for each in of_weights)
            for number in range(len(sums)):
                going = (number < ends)[:, None]
                times = np.where(going[:, 0], ends - 1 - number, number) if attrs.reverse or way else number
                shown = np.where((number <= counted)[:, None], states[0][way], 0).astype(sums.dtype)
                made = step(attrs, parts[times, rows], own, (shown, *(each[way] for each in states[1:])))
                for state, value in zip(states, made, strict=True):
                    state[way] = np.where(going, value, state[way])
                outputs[times, way, rows] = np.where(going, made[0], 0)
        return (outputs, *states)

    return meaning


def _lstm(attrs: Attrs, sums: Array, weights: tuple[Array, ...], states: tuple[Array, ...]) -> tuple[Array, ...]:
    return _cell_step(sums + states[0] @ weights[0], states[1])


def _lstm_bytes(attrs: Attrs, sums: Array, weights: tuple[Array, ...], states: tuple[Array, ...]) -> tuple[Array, ...]:
    (groups, scale, _), (hidden, cell) = weights, states
    least, most = min(hidden.min(initial=0), np.float32(0)), max(hidden.max(initial=0), np.float32(0))
    size = (most - least) / np.float32(255) if most > least else np.float32(1)
    zero = np.rint(np.clip(-least / size, 0, 255))
    steps = np.clip(np.rint(hidden / size) + zero, 0, 255) - zero
    recurrence = groups.transpose(1, 3, 0, 2).reshape(groups.shape[1] * groups.shape[3], -1)[: hidden.shape[1]]
    total = steps.astype(np.int32) @ recurrence.astype(np.int32)
    return _cell_step(sums + total.astype(np.float32) * (size * scale), cell)


def _cell_step(gates: Array, cell: Array) -> tuple[Array, Array]:
    """The output and the inner state behind a step, of the sums of its gates."""
    write, read, keep, candidate = np.split(gates, 4, 1)
    cell = _sigmoid(keep) * cell + _sigmoid(write) * np.tanh(candidate)
    return _sigmoid(read) * np.tanh(cell), cell


def _gru(attrs: Attrs, sums: Array, weights: tuple[Array, ...], states: tuple[Array, ...]) -> tuple[Array, ...]:
    assert isinstance(attrs, GruSteps)
    (recurrence, bias), (hidden,) = weights, states
    width = len(recurrence)
    both = hidden @ recurrence[:, : 2 * width] + bias[: 2 * width] + sums[:, : 2 * width]
    update, reset = np.split(_sigmoid(both), 2, 1)
    last, last_bias, x = recurrence[:, 2 * width :], bias[2 * width :], sums[:, 2 * width :]
    if attrs.linear_before_reset:
        candidate = np.tanh(x + reset * (hidden @ last + last_bias))
    else:
        candidate = np.tanh(x + (reset * hidden) @ last + last_bias)
    return ((1 - update) * candidate + update * hidden,)


def _rnn(attrs: Attrs, sums: Array, weights: tuple[Array, ...], states: tuple[Array, ...]) -> tuple[Array, ...]:
    return (np.asarray(np.tanh(sums + states[0] @ weights[0])),)


class Recurrence(CallBuilder):
    """`sums` are `[time, batch, gates * hidden]`, products of inputs and weights with their biases; states
    `[batch, hidden]`; `recurrence` is `[hidden, gates * hidden]`. Gates are in ONNX's order.
    """

    @operator(_lstm_type, _stepped(_lstm, 1, 2), "sequence.lstm", least=4, attrs=Steps)
    def lstm(
        self, sums: Operand, recurrence: Operand, hidden: Operand, cell: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem, TupleGetItem]:
        """The outputs of all steps `[time, ways, batch, hidden]`, and the last hidden and cell states."""
        call = self.call("lstm", sums, recurrence, hidden, cell, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1), self.item(call, 2)

    @operator(_lstm_bytes_type, _stepped(_lstm_bytes, 3, 2), "sequence.lstm_bytes", least=6, most=7, attrs=Steps)
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
        """The same, where the output of a batch is quantized before it is multiplied with integers at each step.

        With `ends` `[2, batch]` each sequence keeps its states from a step on, where its outputs are 0, and counts for
        how the states of a batch are quantized up to another step.

        `recurrence` is `[ways, panels of columns, pairs of rows, columns of a panel, 2]`, in units of `scale`
        `[ways, gates * hidden]`; `totals` are the sums of its columns, in i32. In i8 four rows lie together.
        """
        operands = [sums, recurrence, scale, totals, hidden, cell, *([] if ends is None else [ends])]
        call = self.call("lstm_bytes", *operands, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1), self.item(call, 2)

    @operator(_gru_type, _stepped(_gru, 2, 1), "sequence.gru", least=4, attrs=GruSteps)
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
        """The outputs of all steps, and the last state. `bias` `[ways, 3 * hidden]` belongs to the recurrence."""
        attrs = GruSteps(reverse, linear_before_reset)
        call = self.call("gru", sums, recurrence, bias, hidden, attrs=attrs)
        return self.item(call, 0), self.item(call, 1)

    @operator(_rnn_type, _stepped(_rnn, 1, 1), "sequence.rnn", least=3, attrs=Steps)
    def rnn(
        self, sums: Operand, recurrence: Operand, hidden: Operand, *, reverse: bool = False
    ) -> tuple[TupleGetItem, TupleGetItem]:
        """The outputs of all steps, and the last state: `tanh(sums + state @ recurrence)` at each step."""
        call = self.call("rnn", sums, recurrence, hidden, attrs=Steps(reverse))
        return self.item(call, 0), self.item(call, 1)
