"""Cases of the kernels of `tirlite.kernels.operators.sequence`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case, normal

import tirlite as tl
from tirlite.ir import TensorType
from tirlite.kernels.operators.sequence import gru, lstm, rnn


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def stepped(step, states: int, reverse: bool, ends: np.ndarray | None = None):
    """The function of a layer: `step(sums, *weights, *states)` gives the states behind a step, the output first.

    With `ends` each sequence has its own number of steps, and counts for the others up to another one.
    """

    def reference(sums, *operands):
        weights, last = operands[:-states], [np.array(each) for each in operands[-states:]]
        ways, batch, width = last[0].shape
        y, rows = np.zeros((len(sums), ways, batch, width), np.float32), np.arange(batch)
        own, counted = np.full((2, batch), len(sums)) if ends is None else ends.clip(max=len(sums))
        for way, parts in enumerate(np.split(sums, ways, 2)):
            for t in range(len(sums)):
                going = (t < own)[:, None]
                times = np.where(going[:, 0], own - 1 - t, t) if reverse or way else t
                shown = np.where((t <= counted)[:, None], last[0][way], np.float32(0))
                made = step(parts[times, rows], *(each[way] for each in weights), shown, *(c[way] for c in last[1:]))
                for each, value in zip(last, made, strict=True):
                    each[way] = np.where(going, value, each[way])
                y[times, way, rows] = np.where(going, made[0], 0)
        return (y, *last)

    return reference


def lstm_step(sums, recurrence, hidden, cell):
    return cell_step(sums + hidden @ recurrence, cell)


def lstm_bytes_step(sums, groups, scale, totals, hidden, cell):
    """The output of the batch in 256 steps, times integers of which those of several rows of a column lie together."""
    least, most = (pick(hidden.ravel(), initial=np.float32(0)) for pick in (np.min, np.max))
    size = (most - least) / np.float32(255) if most > least else np.float32(1)
    zero = np.rint(np.clip(-least / size, 0, 255))
    steps = np.clip(np.rint(hidden / size) + zero, 0, 255) - zero
    recurrence = groups.transpose(1, 3, 0, 2).reshape(groups.shape[1] * groups.shape[3], -1)[: hidden.shape[1]]
    total = steps.astype(np.int32) @ recurrence.astype(np.int32)
    return cell_step(sums + total.astype(np.float32) * (size * scale), cell)


def cell_step(gates, cell):
    write, read, keep, candidate = np.split(gates, 4, 1)
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
