"""Recurrent layers along a sequence, behind the products of their inputs and weights: LSTM, GRU and the plain cell.

`sums` are `[time, batch, gates * width]`, `recurrence` is `[width, gates * width]`, states are `[batch, width]`; the
gates come in ONNX's order. The rows of `recurrence` are gone through one by one, so that all sums of a step grow
together, in vectors.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import extents


@factory
def lstm(
    G: TensorType,
    R: TensorType,
    H: TensorType,
    C: TensorType,
    Y: TensorType,
    LH: TensorType,
    LC: TensorType,
    *,
    reverse: bool = False,
) -> PrimFunc:
    """All outputs y, the last output h and the last state c of a layer with initial output and state."""
    kind = computed_in(G.dtype)
    time, batches, _ = extents(G)
    width = extents(R)[0]

    @tl.kernel
    def lstm(sums: G, recurrence: R, hidden: H, cell: C, y: tl.out[Y], last_hidden: tl.out[LH], last_cell: tl.out[LC]):
        gates = tl.alloc(kind[4 * width])
        for b in range(batches):
            for j in range(width):
                last_hidden[b, j] = hidden[b, j]
                last_cell[b, j] = cell[b, j]
        for step in range(time):
            t = time - 1 - step if tl.static(reverse) else step
            for b in range(batches):
                for j in range(4 * width):
                    gates[j] = kind(sums[t, b, j])
                for k in range(width):
                    for j in range(4 * width):
                        gates[j] = gates[j] + kind(last_hidden[b, k]) * kind(recurrence[k, j])
                for j in range(width):
                    kept = tl.sigmoid(gates[2 * width + j], fast=True) * kind(last_cell[b, j])
                    state = kept + tl.sigmoid(gates[j], fast=True) * tl.tanh(gates[3 * width + j], fast=True)
                    output = tl.sigmoid(gates[width + j], fast=True) * tl.tanh(state, fast=True)
                    last_cell[b, j] = last_cell.dtype(state)
                    last_hidden[b, j] = last_hidden.dtype(output)
                    y[t, b, j] = y.dtype(output)

    return lstm.ir


@factory
def gru(
    G: TensorType,
    R: TensorType,
    B: TensorType,
    H: TensorType,
    Y: TensorType,
    LH: TensorType,
    *,
    reverse: bool = False,
    linear_before_reset: bool = False,
) -> PrimFunc:
    """All outputs y and the last one h of a layer with an initial output.

    Where `linear_before_reset`, the product of the state is reset, else the state before its product.
    """
    kind = computed_in(G.dtype)
    time, batches, _ = extents(G)
    width = extents(R)[0]

    @tl.kernel
    def gru(sums: G, recurrence: R, bias: B, hidden: H, y: tl.out[Y], last: tl.out[LH]):
        gates = tl.alloc(kind[3 * width])
        state = tl.alloc(kind[width])
        for b in range(batches):
            for j in range(width):
                last[b, j] = hidden[b, j]
        for step in range(time):
            t = time - 1 - step if tl.static(reverse) else step
            for b in range(batches):
                for j in range(3 * width):
                    gates[j] = kind(bias[j])
                for k in range(width):
                    for j in range(2 * width):
                        gates[j] = gates[j] + kind(last[b, k]) * kind(recurrence[k, j])
                for j in range(2 * width):
                    gates[j] = tl.sigmoid(gates[j] + kind(sums[t, b, j]), fast=True)
                for j in range(width):
                    reset = kind(1) if tl.static(linear_before_reset) else gates[width + j]
                    state[j] = reset * kind(last[b, j])
                for k in range(width):
                    for j in range(width):
                        gates[2 * width + j] = gates[2 * width + j] + state[k] * kind(recurrence[k, 2 * width + j])
                for j in range(width):
                    after = gates[width + j] if tl.static(linear_before_reset) else kind(1)
                    candidate = tl.tanh(kind(sums[t, b, 2 * width + j]) + after * gates[2 * width + j], fast=True)
                    output = (1 - gates[j]) * candidate + gates[j] * kind(last[b, j])
                    last[b, j] = last.dtype(output)
                    y[t, b, j] = y.dtype(output)

    return gru.ir


@factory
def rnn(
    G: TensorType, R: TensorType, H: TensorType, Y: TensorType, LH: TensorType, *, reverse: bool = False
) -> PrimFunc:
    """All outputs y and the last one h of a layer with an initial output: the tanh of the sums."""
    kind = computed_in(G.dtype)
    time, batches, _ = extents(G)
    width = extents(R)[0]

    @tl.kernel
    def rnn(sums: G, recurrence: R, hidden: H, y: tl.out[Y], last: tl.out[LH]):
        gates = tl.alloc(kind[width])
        for b in range(batches):
            for j in range(width):
                last[b, j] = hidden[b, j]
        for step in range(time):
            t = time - 1 - step if tl.static(reverse) else step
            for b in range(batches):
                for j in range(width):
                    gates[j] = kind(sums[t, b, j])
                for k in range(width):
                    for j in range(width):
                        gates[j] = gates[j] + kind(last[b, k]) * kind(recurrence[k, j])
                for j in range(width):
                    last[b, j] = last.dtype(tl.tanh(gates[j], fast=True))
                    y[t, b, j] = last[b, j]

    return rnn.ir
