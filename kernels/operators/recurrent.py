"""One step of a recurrent cell, behind the products of matrices: the gates of an LSTM, and of a GRU."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.case import Case, normal
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import extents


@factory
def lstm_gates(G: TensorType, C: TensorType, H: TensorType, D: TensorType) -> PrimFunc:
    """The new output h and the new state d of a cell with state c, for sums `gates` of inputs and outputs.

    The four parts of a row of gates are input, output, forget and cell, as in ONNX: d = forget * c + input * cell and
    h = output * tanh(d), where input, output and forget go through the sigmoid, and cell through tanh.
    """
    kind = computed_in(G.dtype)
    batches, width = extents(C)

    @tl.kernel
    def lstm_gates(gates: G, c: C, h: tl.out[H], d: tl.out[D]):
        for i in tl.parallel(batches):
            for j in range(width):
                taken = tl.sigmoid(kind(gates[i, j]))
                shown = tl.sigmoid(kind(gates[i, width + j]))
                kept = tl.sigmoid(kind(gates[i, 2 * width + j]))
                state = kept * kind(c[i, j]) + taken * tl.tanh(kind(gates[i, 3 * width + j]))
                d[i, j] = d.dtype(state)
                h[i, j] = h.dtype(shown * tl.tanh(state))

    return lstm_gates.ir


@factory
def gru_gates(X: TensorType, R: TensorType, P: TensorType, H: TensorType) -> PrimFunc:
    """The new output h of a cell with output p, for sums x over its inputs and r over its outputs, with their biases.

    The three parts of a row are update, reset and hidden: h = (1 - update) * tanh(x + reset * r) + update * p, where
    update and reset go through the sigmoid. It is what ONNX has with linear_before_reset.
    """
    kind = computed_in(X.dtype)
    batches, width = extents(P)

    @tl.kernel
    def gru_gates(x: X, r: R, p: P, h: tl.out[H]):
        for i in tl.parallel(batches):
            for j in range(width):
                update = tl.sigmoid(kind(x[i, j]) + kind(r[i, j]))
                reset = tl.sigmoid(kind(x[i, width + j]) + kind(r[i, width + j]))
                hidden = tl.tanh(kind(x[i, 2 * width + j]) + reset * kind(r[i, 2 * width + j]))
                h[i, j] = h.dtype((1 - update) * hidden + update * kind(p[i, j]))

    return gru_gates.ir


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_reference(gates: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    taken, shown, kept, cell = np.split(gates.astype(np.float64), 4, axis=1)
    state = sigmoid(kept) * c + sigmoid(taken) * np.tanh(cell)
    return (sigmoid(shown) * np.tanh(state)).astype(c.dtype), state.astype(c.dtype)


def gru_reference(x: np.ndarray, r: np.ndarray, p: np.ndarray) -> np.ndarray:
    (u, s, h), (a, b, c) = (np.split(each.astype(np.float64), 3, axis=1) for each in (x, r))
    update = sigmoid(u + a)
    return ((1 - update) * np.tanh(h + sigmoid(s + b) * c) + update * p).astype(p.dtype)


n, m = tl.dims("n m")
GATES, SUMS, STATE = (n, 4 * m), (n, 3 * m), (n, m)

CASES = (
    Case(
        "lstm_gates",
        lambda: lstm_gates(tl.f32[GATES], tl.f32[STATE], tl.f32[STATE], tl.f32[STATE]),
        normal((3, 36), (3, 9), scale=2.0),
        lstm_reference,
        1e-6,
    ),
    Case(
        "gru_gates",
        lambda: gru_gates(tl.f32[SUMS], tl.f32[SUMS], tl.f32[STATE], tl.f32[STATE]),
        normal((3, 27), (3, 27), (3, 9), scale=2.0),
        gru_reference,
        1e-6,
    ),
)
