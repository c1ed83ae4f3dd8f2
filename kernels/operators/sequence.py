"""Recurrent layers along a sequence, behind the products of their inputs and weights: LSTM, GRU and the plain cell.

`sums` are `[time, batch, gates * width]`, `recurrence` is `[width, gates * width]`, states are `[batch, width]`; the
gates come in ONNX's order. The rows of `recurrence` are gone through some at a time, so that all sums of a gate grow
together, in vectors. Sequences of a batch go together by blocks, which take the weights from the cache once, and have a
worker each from the first step to the last. Of a sequence alone gates go to workers, each of which has its part of the
weights in its own cache.
"""

from __future__ import annotations

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory
from tirlite.kernels.operators.shapes import Extent, extents

# Rows that go together: their sums are read and written once.
_ROWS = 4
# Sequences of a batch that go together.
_BLOCK = 4
# From so many products in a step on gates go to workers: some microseconds.
_SHARED = 1 << 17


def _over_gates(width: Extent, gates: int) -> object:
    """The loop over so many gates of a sequence alone: by workers, where there is enough for these to do."""
    return tl.parallel if not isinstance(width, int) or gates * width * width >= _SHARED else range


def _blocks(batches: Extent) -> tuple[int, bool]:
    """How many blocks of sequences go together, and whether there are others; blocks are for known numbers alone."""
    return divmod(batches, _BLOCK) if isinstance(batches, int) else (0, True)


def _adding(width: Extent) -> Inline:
    """`add(gates, g, state, first, rows, recurrence, column)`: sums of a gate, plus states' products with the weights.

    Row `r` of `rows` in `gates` belongs to row `first + r` of `state`.
    """

    @tl.inline
    def add(gates, g, state, first, rows, recurrence, column):
        with tl.allow("contract"):
            for part in range(width // _ROWS):
                for j in range(width):
                    for r in tl.static(range(rows)):
                        total = gates[r, g, j]
                        for row in tl.static(range(_ROWS)):
                            k = part * _ROWS + row
                            total += gates.dtype(state[first + r, k]) * gates.dtype(recurrence[k, column, j])
                        gates[r, g, j] = total
            for k in range(width // _ROWS * _ROWS, width):
                for j in range(width):
                    for r in tl.static(range(rows)):
                        more = gates.dtype(state[first + r, k]) * gates.dtype(recurrence[k, column, j])
                        gates[r, g, j] = gates[r, g, j] + more

    return add


def _lstm_cell(kind: DType, width: Extent, over_gates: object) -> Inline:
    """A step of some rows of a batch, from row `first` on; `over_gates` is the loop that goes through the gates."""
    add = _adding(width)

    @tl.inline
    def step(gates, of_gates, last_cell, last_hidden, weights, y, t, first, rows):
        for g in over_gates(4):
            for r in range(rows):
                for j in range(width):
                    gates[r, g, j] = kind(of_gates[t, first + r, g, j])
            add(gates, g, last_hidden, first, rows, weights, g)
        for r in range(rows):
            for j in range(width):
                kept = tl.sigmoid(gates[r, 2, j], fast=True) * kind(last_cell[first + r, j])
                state = kept + tl.sigmoid(gates[r, 0, j], fast=True) * tl.tanh(gates[r, 3, j], fast=True)
                output = tl.sigmoid(gates[r, 1, j], fast=True) * tl.tanh(state, fast=True)
                last_cell[first + r, j] = last_cell.dtype(state)
                last_hidden[first + r, j] = last_hidden.dtype(output)
                y[t, first + r, j] = y.dtype(output)

    return step


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
    blocks, rest = _blocks(batches)
    together, alone = (_lstm_cell(kind, width, loop) for loop in (range, _over_gates(width, 4)))

    @tl.kernel
    def lstm(sums: G, recurrence: R, hidden: H, cell: C, y: tl.out[Y], last_hidden: tl.out[LH], last_cell: tl.out[LC]):
        of_gates = tl.view(sums, sums.dtype[time, batches, 4, width])
        weights = tl.view(recurrence, recurrence.dtype[width, 4, width])
        for b in range(batches):
            for j in range(width):
                last_hidden[b, j] = hidden[b, j]
                last_cell[b, j] = cell[b, j]
        if tl.static(blocks > 0):
            for block in tl.parallel(blocks):
                several = tl.alloc(kind[_BLOCK, 4, width])
                for step in range(time):
                    t = time - 1 - step if tl.static(reverse) else step
                    together(several, of_gates, last_cell, last_hidden, weights, y, t, block * _BLOCK, _BLOCK)
        if tl.static(rest):
            gates = tl.alloc(kind[1, 4, width])
            for step in range(time):
                t = time - 1 - step if tl.static(reverse) else step
                for b in range(blocks * _BLOCK, batches):
                    alone(gates, of_gates, last_cell, last_hidden, weights, y, t, b, 1)

    return lstm.ir


def _gru_cell(kind: DType, width: Extent, over_gates: object, *, linear_before_reset: bool) -> Inline:
    """A step of some rows of a batch, from row `first` on; `over_gates` is the loop that goes through the first two."""
    add = _adding(width)

    @tl.inline
    def step(gates, state, of_gates, biases, last, weights, y, t, first, rows):
        for g in over_gates(2):
            for r in range(rows):
                for j in range(width):
                    gates[r, g, j] = kind(biases[g, j])
            add(gates, g, last, first, rows, weights, g)
            for r in range(rows):
                for j in range(width):
                    gates[r, g, j] = tl.sigmoid(gates[r, g, j] + kind(of_gates[t, first + r, g, j]), fast=True)
        for r in range(rows):
            for j in range(width):
                reset = kind(1) if tl.static(linear_before_reset) else gates[r, 1, j]
                state[r, j] = reset * kind(last[first + r, j])
                gates[r, 2, j] = kind(biases[2, j])
        add(gates, 2, state, 0, rows, weights, 2)
        for r in range(rows):
            for j in range(width):
                after = gates[r, 1, j] if tl.static(linear_before_reset) else kind(1)
                candidate = tl.tanh(kind(of_gates[t, first + r, 2, j]) + after * gates[r, 2, j], fast=True)
                output = (1 - gates[r, 0, j]) * candidate + gates[r, 0, j] * kind(last[first + r, j])
                last[first + r, j] = last.dtype(output)
                y[t, first + r, j] = y.dtype(output)

    return step


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
    blocks, rest = _blocks(batches)
    loops = range, _over_gates(width, 2)
    together, alone = (_gru_cell(kind, width, loop, linear_before_reset=linear_before_reset) for loop in loops)

    @tl.kernel
    def gru(sums: G, recurrence: R, bias: B, hidden: H, y: tl.out[Y], last: tl.out[LH]):
        of_gates = tl.view(sums, sums.dtype[time, batches, 3, width])
        weights = tl.view(recurrence, recurrence.dtype[width, 3, width])
        biases = tl.view(bias, bias.dtype[3, width])
        for b in range(batches):
            for j in range(width):
                last[b, j] = hidden[b, j]
        if tl.static(blocks > 0):
            for block in tl.parallel(blocks):
                several = tl.alloc(kind[_BLOCK, 3, width])
                states = tl.alloc(kind[_BLOCK, width])
                for step in range(time):
                    t = time - 1 - step if tl.static(reverse) else step
                    together(several, states, of_gates, biases, last, weights, y, t, block * _BLOCK, _BLOCK)
        if tl.static(rest):
            gates = tl.alloc(kind[1, 3, width])
            state = tl.alloc(kind[1, width])
            for step in range(time):
                t = time - 1 - step if tl.static(reverse) else step
                for b in range(blocks * _BLOCK, batches):
                    alone(gates, state, of_gates, biases, last, weights, y, t, b, 1)

    return gru.ir


@factory
def rnn(
    G: TensorType, R: TensorType, H: TensorType, Y: TensorType, LH: TensorType, *, reverse: bool = False
) -> PrimFunc:
    """All outputs y and the last one h of a layer with an initial output: the tanh of the sums."""
    kind = computed_in(G.dtype)
    time, batches, _ = extents(G)
    width = extents(R)[0]
    add, (blocks, rest) = _adding(width), _blocks(batches)

    @tl.inline
    def advance(gates, sums, last, weights, y, t, first, rows):
        for r in range(rows):
            for j in range(width):
                gates[r, 0, j] = kind(sums[t, first + r, j])
        add(gates, 0, last, first, rows, weights, 0)
        for r in range(rows):
            for j in range(width):
                last[first + r, j] = last.dtype(tl.tanh(gates[r, 0, j], fast=True))
                y[t, first + r, j] = last[first + r, j]

    @tl.kernel
    def rnn(sums: G, recurrence: R, hidden: H, y: tl.out[Y], last: tl.out[LH]):
        weights = tl.view(recurrence, recurrence.dtype[width, 1, width])
        for b in range(batches):
            for j in range(width):
                last[b, j] = hidden[b, j]
        if tl.static(blocks > 0):
            for block in tl.parallel(blocks):
                several = tl.alloc(kind[_BLOCK, 1, width])
                for step in range(time):
                    t = time - 1 - step if tl.static(reverse) else step
                    advance(several, sums, last, weights, y, t, block * _BLOCK, _BLOCK)
        if tl.static(rest):
            gates = tl.alloc(kind[1, 1, width])
            for step in range(time):
                t = time - 1 - step if tl.static(reverse) else step
                for b in range(blocks * _BLOCK, batches):
                    advance(gates, sums, last, weights, y, t, b, 1)

    return rnn.ir
