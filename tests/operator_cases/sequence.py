"""Cases of the kernels of `tirlite.kernels.operators.sequence`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.ir import TensorType
from tirlite.kernels.operators.sequence import gru, lstm, rnn


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def stepped(step, states: int, reverse: bool):
    """The function of a layer: `step(sums, *weights, *states)` gives the states behind a step, the output first."""

    def reference(sums, *operands):
        weights, last = operands[:-states], [np.array(each, float) for each in operands[-states:]]
        ways = len(last[0])
        y = np.zeros((len(sums), *last[0].shape))
        for way, parts in enumerate(np.split(sums, ways, 2)):
            for t in range(len(sums) - 1, -1, -1) if reverse or way else range(len(sums)):
                made = step(parts[t], *(each[way] for each in (*weights, *last)))
                for each, value in zip(last, made, strict=True):
                    each[way] = value
                y[t, way] = made[0]
        return tuple(each.astype(np.float32) for each in (y, *last))

    return reference


def lstm_step(sums, recurrence, hidden, cell):
    write, read, keep, candidate = np.split(sums + hidden @ recurrence, 4, 1)
    cell = sigmoid(keep) * cell + sigmoid(write) * np.tanh(candidate)
    return sigmoid(read) * np.tanh(cell), cell


def gru_step(before: bool):
    def step(sums, recurrence, bias, hidden):
        width = len(recurrence)
        both = sigmoid((hidden @ recurrence + bias + sums)[:, : 2 * width])
        update, reset = both[:, :width], both[:, width:]
        last, own, x = recurrence[:, 2 * width :], bias[2 * width :], sums[:, 2 * width :]
        inner = reset * (hidden @ last + own) if before else (reset * hidden) @ last + own
        return ((1 - update) * np.tanh(x + inner) + update * hidden,)

    return step


def rnn_step(sums, recurrence, hidden):
    return (np.tanh(sums + hidden @ recurrence),)


s, n, m = tl.dims("s n m")


def types(gates: int, ways: int) -> tuple[TensorType, ...]:
    return (
        tl.f32[s, n, ways * gates * m],
        tl.f32[ways, m, gates * m],
        tl.f32[ways, n, m],
        tl.f32[s, ways, n, m],
    )


def lstm_case(name: str, reverse: bool, ways: int = 1) -> Case:
    sums, recurrence, state, y = types(4, ways)
    inputs = normal((5, 3, ways * 28), (ways, 7, 28), (ways, 3, 7), (ways, 3, 7))
    made = (sums, recurrence, state, state, y, state, state)
    return Case(name, lambda: lstm(*made, reverse=reverse), inputs, stepped(lstm_step, 2, reverse), 1e-5)


def gru_case(name: str, reverse: bool, before: bool, ways: int = 1) -> Case:
    sums, recurrence, state, y = types(3, ways)
    inputs = normal((5, 3, ways * 21), (ways, 7, 21), (ways, 21), (ways, 3, 7))
    made = (sums, recurrence, tl.f32[ways, 3 * m], state, y, state)
    attrs = {"reverse": reverse, "linear_before_reset": before}
    return Case(name, lambda: gru(*made, **attrs), inputs, stepped(gru_step(before), 1, reverse), 1e-5)


def rnn_case(name: str, ways: int = 1) -> Case:
    sums, recurrence, state, y = types(1, ways)
    inputs = normal((5, 3, ways * 7), (ways, 7, 7), (ways, 3, 7))
    return Case(name, lambda: rnn(sums, recurrence, state, y, state), inputs, stepped(rnn_step, 1, False), 1e-5)


CASES = (
    lstm_case("lstm", False),
    lstm_case("lstm-reverse", True),
    lstm_case("lstm-both", False, 2),
    gru_case("gru", False, False),
    gru_case("gru-before", False, True),
    gru_case("gru-reverse", True, False),
    gru_case("gru-both", False, False, 2),
    rnn_case("rnn"),
    rnn_case("rnn-both", 2),
)
