"""The meanings of operators that step a recurrent cell along a sequence."""

from __future__ import annotations

import numpy as np

from tirlite.graph.ops.recurrence import GruSteps, Steps
from tirlite.graph.reference.meaning import Array, Meaning


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


RECURRENCE: dict[str, Meaning] = {"gru": _gru, "lstm": _lstm, "rnn": _rnn}
