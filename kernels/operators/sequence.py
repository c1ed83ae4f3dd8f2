"""Recurrent layers along a sequence, behind the products of their inputs and weights: LSTM, GRU and the plain cell.

`sums` are `[time, batch, gates * width]`, `recurrence` is `[width, gates * width]`, states are `[batch, width]`; the
gates come in ONNX's order. The rows of `recurrence` are gone through some at a time, so that all sums of a gate grow
together, in vectors. Gates go to workers, each of which has its part of the weights in its own cache.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents

# Rows that go together: their sums are read and written once.
_ROWS = 4
# From so many products in a step on gates go to workers: some microseconds.
_SHARED = 1 << 17


def _is_shared(width: Extent, gates: int) -> bool:
    return not isinstance(width, int) or gates * width * width >= _SHARED


def _adding(width: Extent) -> Inline:
    """`add(gates, g, state, b, recurrence, column)`: sums of a gate, plus a state's product with the weights there."""

    @tl.inline
    def add(gates, g, state, b, recurrence, column):
        with tl.allow("contract"):
            for part in range(width // _ROWS):
                for j in range(width):
                    total = gates[g, j]
                    for row in tl.static(range(_ROWS)):
                        k = part * _ROWS + row
                        total += gates.dtype(state[b, k]) * gates.dtype(recurrence[k, column, j])
                    gates[g, j] = total
            for k in range(width // _ROWS * _ROWS, width):
                for j in range(width):
                    gates[g, j] = gates[g, j] + gates.dtype(state[b, k]) * gates.dtype(recurrence[k, column, j])

    return add


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
    add, is_shared = _adding(width), _is_shared(width, 4)

    @tl.inline
    def fill(gates, of_gates, last, weights, t, b, g):
        for j in range(width):
            gates[g, j] = kind(of_gates[t, b, g, j])
        add(gates, g, last, b, weights, g)

    @tl.kernel
    def lstm(sums: G, recurrence: R, hidden: H, cell: C, y: tl.out[Y], last_hidden: tl.out[LH], last_cell: tl.out[LC]):
        of_gates = tl.view(sums, sums.dtype[time, batches, 4, width])
        weights = tl.view(recurrence, recurrence.dtype[width, 4, width])
        gates = tl.alloc(kind[4, width])
        for b in range(batches):
            for j in range(width):
                last_hidden[b, j] = hidden[b, j]
                last_cell[b, j] = cell[b, j]
        for step in range(time):
            t = time - 1 - step if tl.static(reverse) else step
            for b in range(batches):
                if tl.static(is_shared):
                    for g in tl.parallel(4):
                        fill(gates, of_gates, last_hidden, weights, t, b, g)
                else:
                    for g in range(4):
                        fill(gates, of_gates, last_hidden, weights, t, b, g)
                for j in range(width):
                    kept = tl.sigmoid(gates[2, j], fast=True) * kind(last_cell[b, j])
                    state = kept + tl.sigmoid(gates[0, j], fast=True) * tl.tanh(gates[3, j], fast=True)
                    output = tl.sigmoid(gates[1, j], fast=True) * tl.tanh(state, fast=True)
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
    add, is_shared = _adding(width), _is_shared(width, 2)

    @tl.inline
    def fill(gates, of_gates, biases, last, weights, t, b, g):
        for j in range(width):
            gates[g, j] = kind(biases[g, j])
        add(gates, g, last, b, weights, g)
        for j in range(width):
            gates[g, j] = tl.sigmoid(gates[g, j] + kind(of_gates[t, b, g, j]), fast=True)

    @tl.kernel
    def gru(sums: G, recurrence: R, bias: B, hidden: H, y: tl.out[Y], last: tl.out[LH]):
        of_gates = tl.view(sums, sums.dtype[time, batches, 3, width])
        weights = tl.view(recurrence, recurrence.dtype[width, 3, width])
        biases = tl.view(bias, bias.dtype[3, width])
        gates = tl.alloc(kind[3, width])
        state = tl.alloc(kind[1, width])
        for b in range(batches):
            for j in range(width):
                last[b, j] = hidden[b, j]
        for step in range(time):
            t = time - 1 - step if tl.static(reverse) else step
            for b in range(batches):
                if tl.static(is_shared):
                    for g in tl.parallel(2):
                        fill(gates, of_gates, biases, last, weights, t, b, g)
                else:
                    for g in range(2):
                        fill(gates, of_gates, biases, last, weights, t, b, g)
                for j in range(width):
                    reset = kind(1) if tl.static(linear_before_reset) else gates[1, j]
                    state[0, j] = reset * kind(last[b, j])
                    gates[2, j] = kind(biases[2, j])
                add(gates, 2, state, 0, weights, 2)
                for j in range(width):
                    after = gates[1, j] if tl.static(linear_before_reset) else kind(1)
                    candidate = tl.tanh(kind(of_gates[t, b, 2, j]) + after * gates[2, j], fast=True)
                    output = (1 - gates[0, j]) * candidate + gates[0, j] * kind(last[b, j])
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
    add = _adding(width)

    @tl.kernel
    def rnn(sums: G, recurrence: R, hidden: H, y: tl.out[Y], last: tl.out[LH]):
        weights = tl.view(recurrence, recurrence.dtype[width, 1, width])
        gates = tl.alloc(kind[1, width])
        for b in range(batches):
            for j in range(width):
                last[b, j] = hidden[b, j]
        for step in range(time):
            t = time - 1 - step if tl.static(reverse) else step
            for b in range(batches):
                for j in range(width):
                    gates[0, j] = kind(sums[t, b, j])
                add(gates, 0, last, b, weights, 0)
                for j in range(width):
                    last[b, j] = last.dtype(tl.tanh(gates[0, j], fast=True))
                    y[t, b, j] = last[b, j]

    return rnn.ir
