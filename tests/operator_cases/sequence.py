"""Cases of the kernels of `tirlite.kernels.operators.sequence`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.ir import TensorType
from tirlite.kernels.operators.sequence import gru, lstm, rnn


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def times(count: int, reverse: bool) -> range:
    return range(count - 1, -1, -1) if reverse else range(count)


def lstm_reference(reverse: bool):
    def reference(sums, recurrence, hidden, cell):
        y = np.zeros((*sums.shape[:2], len(recurrence)))
        for t in times(len(sums), reverse):
            write, read, keep, candidate = np.split(sums[t] + hidden @ recurrence, 4, 1)
            cell = sigmoid(keep) * cell + sigmoid(write) * np.tanh(candidate)
            hidden = y[t] = sigmoid(read) * np.tanh(cell)
        return tuple(each.astype(np.float32) for each in (y, hidden, cell))

    return reference


def gru_reference(reverse: bool, before: bool):
    def reference(sums, recurrence, bias, hidden):
        width = len(recurrence)
        y = np.zeros((*sums.shape[:2], width))
        for t in times(len(sums), reverse):
            both = sigmoid((hidden @ recurrence + bias + sums[t])[:, : 2 * width])
            update, reset = both[:, :width], both[:, width:]
            last, own, x = recurrence[:, 2 * width :], bias[2 * width :], sums[t][:, 2 * width :]
            inner = reset * (hidden @ last + own) if before else (reset * hidden) @ last + own
            hidden = y[t] = (1 - update) * np.tanh(x + inner) + update * hidden
        return y.astype(np.float32), hidden.astype(np.float32)

    return reference


def rnn_reference(sums, recurrence, hidden):
    y = np.zeros((*sums.shape[:2], len(recurrence)))
    for t in range(len(sums)):
        hidden = y[t] = np.tanh(sums[t] + hidden @ recurrence)
    return y.astype(np.float32), hidden.astype(np.float32)


s, n, m = tl.dims("s n m")


def types(gates: int) -> tuple[TensorType, ...]:
    return tl.f32[s, n, gates * m], tl.f32[m, gates * m], tl.f32[n, m], tl.f32[s, n, m]


def lstm_case(name: str, reverse: bool) -> Case:
    sums, recurrence, state, y = types(4)
    inputs = normal((5, 3, 28), (7, 28), (3, 7), (3, 7))
    made = (sums, recurrence, state, state, y, state, state)
    return Case(name, lambda: lstm(*made, reverse=reverse), inputs, lstm_reference(reverse), 1e-5)


def gru_case(name: str, reverse: bool, before: bool) -> Case:
    sums, recurrence, state, y = types(3)
    inputs = normal((5, 3, 21), (7, 21), (21,), (3, 7))
    made = (sums, recurrence, tl.f32[3 * m], state, y, state)
    attrs = {"reverse": reverse, "linear_before_reset": before}
    return Case(name, lambda: gru(*made, **attrs), inputs, gru_reference(reverse, before), 1e-5)


def rnn_case() -> Case:
    sums, recurrence, state, y = types(1)
    made = (sums, recurrence, state, y, state)
    return Case("rnn", lambda: rnn(*made), normal((5, 3, 7), (7, 7), (3, 7)), rnn_reference, 1e-5)


CASES = (
    lstm_case("lstm", False),
    lstm_case("lstm-reverse", True),
    gru_case("gru", False, False),
    gru_case("gru-before", False, True),
    gru_case("gru-reverse", True, False),
    rnn_case(),
)
