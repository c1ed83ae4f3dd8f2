"""The steps of recurrent layers, given the products of inputs and weights: LSTM, GRU and the plain cell.

`sums` is `[time, batch, ways * gates * width]`, `recurrence` `[ways, width, gates * width]`, states are
`[ways, batch, width]`; gates are in ONNX's order. The second of two ways starts at the end of the sequence. Some rows
of `recurrence` are added to all sums of a gate at a time, in vectors. The sequences of a batch are processed in blocks,
which load the weights from the cache once. Each block, and each way of the sequences outside of blocks, has one worker
for all steps. For a single sequence with one way, workers share the gates, each with its part of the weights in its
own cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import tirlite as tl
from tirlite.dsl import Inline
from tirlite.ir import DType, PrimFunc, TensorType
from tirlite.kernels.operators.elementwise import computed_in
from tirlite.kernels.operators.factory import factory, with_given
from tirlite.kernels.operators.shapes import Extent, extents

# Rows that are added together, so that sums are read and written once.
_ROWS = 4
# Sequences of a block, and those of which the sums fill registers besides such rows.
_BLOCK, _PAIR = 4, 2
_FEW_COLUMNS = 128  # LLVM unrolls loops over at most this many columns, and fills registers by itself
# Workers share gates from this many products per step on, which take some microseconds.
_SHARED = 1 << 17


@tl.inline
def begin(last, given):
    """Copies the initial states."""
    for w in range(last.shape[0]):
        for b in range(last.shape[1]):
            for j in range(last.shape[2]):
                last[w, b, j] = given[w, b, j]


def _loops(ways: Extent, width: Extent, gates: int) -> tuple[object, object]:
    """The loops over ways and gates of a single sequence: the one that pays is parallel, if any."""
    if ways != 1:
        return tl.parallel, range
    return range, tl.parallel if not isinstance(width, int) or gates * width * width >= _SHARED else range


def _place(*, reverse: bool) -> Inline:
    """`place(step, way, time)`: the position of a step of a direction in a sequence of this length."""

    @tl.inline
    def place(step, way, time):
        if tl.static(reverse):
            return time - 1 - step
        else:
            return time - 1 - step if way > 0 else step

    return place


def _blocks(batches: Extent) -> tuple[int, int]:
    """The number of blocks of sequences, and of the others; for an unknown number each sequence is processed alone."""
    return divmod(batches, _BLOCK) if isinstance(batches, int) else (0, 1)


def _running(
    G: TensorType, R: TensorType, H: TensorType, gates: int, step_by: Callable[[object], Inline], *, reverse: bool
) -> Inline:
    """`run(sums, recurrence, hidden, more, y, last_hidden)`: all steps of a layer with this many gates.

    `step_by(over_gates)` makes `step(own, sums, more, last, weights, y, t, way, at, rows)`, which computes one step of
    `rows` rows of a batch from row `at` on, with buffers for their gates in `own`. `more` is passed on unchanged.
    """
    kind, (time, batches, _), (ways, _, width) = computed_in(G.dtype), extents(G), extents(H)
    (blocks, rest), place = _blocks(batches), _place(reverse=reverse)
    # The last of three gates waits for the others, and a single one is not shared.
    over_ways, over_gates = _loops(ways, width, gates // 2 * 2)
    together, alone = step_by(range), step_by(over_gates)
    of_weights = R if len(extents(R)) > 3 else R.dtype[ways, width, gates, width]

    @tl.inline
    def run(sums, recurrence, hidden, more, y, last_hidden):
        of_gates = tl.view(sums, sums.dtype[time, batches, ways, gates, width])
        weights = tl.view(recurrence, of_weights)
        outputs = tl.view(y, y.dtype[time, ways * batches, width])
        last = tl.view(last_hidden, last_hidden.dtype[ways * batches, width])
        begin(last_hidden, hidden)
        if tl.static(blocks > 0):
            for piece in tl.parallel(ways * blocks):
                several = tl.alloc(kind[_BLOCK, gates, width])
                for step in range(time):
                    t, at = place(step, piece // blocks, time), piece % blocks * _BLOCK
                    together(several, of_gates, more, last, weights, outputs, t, piece // blocks, at, _BLOCK)
        if tl.static(rest > 0):
            for way in over_ways(ways):
                own = tl.alloc(kind[rest, gates, width])
                for step in range(time):
                    for b in range(blocks * _BLOCK, batches, rest):
                        alone(own, of_gates, more, last, weights, outputs, place(step, way, time), way, b, rest)

    return run


def _adding(width: Extent, columns: Extent) -> Inline:
    """`add(gates, g, state, first, rows, weights, way)` adds the products of state and weights to the sums of gate g.

    Row `r` of `rows` in `gates` belongs to row `first + r` of `state`; it has `columns` columns.
    """
    together = _BLOCK if isinstance(columns, int) and columns <= _FEW_COLUMNS else _PAIR

    @tl.inline
    def add(gates, g, state, first, rows, weights, way):
        with tl.allow("contract"):
            for part in range(width // _ROWS):
                for start in tl.static(range(0, rows, together)):
                    for j in range(columns):
                        for r in tl.static(range(start, min(start + together, rows))):
                            total = gates[r, g, j]
                            for row in tl.static(range(_ROWS)):
                                k = part * _ROWS + row
                                total += gates.dtype(state[first + r, k]) * gates.dtype(weights[way, k, g, j])
                            gates[r, g, j] = total
            for k in range(width // _ROWS * _ROWS, width):
                for j in range(columns):
                    for r in tl.static(range(rows)):
                        more = gates.dtype(state[first + r, k]) * gates.dtype(weights[way, k, g, j])
                        gates[r, g, j] = gates[r, g, j] + more

    return add


def _finishing(kind: DType, width: Extent) -> Inline:
    """`finish(gates, last_cell, last_hidden, y, t, r, row)` computes a row's states and output from its gates."""

    @tl.inline
    def finish(gates, last_cell, last_hidden, y, t, r, row):
        for j in range(width):
            kept = tl.sigmoid(gates[r, 2, j], fast=True) * kind(last_cell[row, j])
            state = kept + tl.sigmoid(gates[r, 0, j], fast=True) * tl.tanh(gates[r, 3, j], fast=True)
            output = tl.sigmoid(gates[r, 1, j], fast=True) * tl.tanh(state, fast=True)
            last_cell[row, j] = last_cell.dtype(state)
            last_hidden[row, j] = last_hidden.dtype(output)
            y[t, row, j] = y.dtype(output)

    return finish


def _lstm_cell(kind: DType, batches: Extent, width: Extent, over_gates: object) -> Inline:
    """A step of some rows of a batch, from row `at` on.

    `over_gates` is the loop that goes through the gates; where these have no workers, all are columns of a single one.
    """
    parts, size = (1, 4 * width) if over_gates is range else (4, width)
    add, finish = _adding(width, size), _finishing(kind, width)

    @tl.inline
    def step(gates, of_gates, last_cell, last_hidden, weights, y, t, way, at, rows):
        first = way * batches + at
        mine = tl.view(gates, kind[rows, parts, size])
        theirs = tl.view(of_gates, of_gates.dtype[of_gates.shape[0], batches, of_gates.shape[2], parts, size])
        factors = tl.view(weights, weights.dtype[weights.shape[0], width, parts, size])
        for g in over_gates(parts):
            for r in range(rows):
                for j in range(size):
                    mine[r, g, j] = kind(theirs[t, at + r, way, g, j])
            add(mine, g, last_hidden, first, rows, factors, way)
        for r in range(rows):
            finish(gates, last_cell, last_hidden, y, t, r, first + r)

    return step


def _lstm_cell_by_panels(kind: DType, batches: Extent, weights: tuple[Extent, ...], over_panels: object) -> Inline:
    """The same by panels of weights, which workers may share."""
    _, panels, width, size = weights
    finish = _finishing(kind, width)

    @tl.inline
    def step(gates, of_gates, last_cell, last_hidden, weights, y, t, way, at, rows):
        columns = tl.view(gates, kind[rows, panels, size])
        theirs = tl.view(of_gates, of_gates.dtype[of_gates.shape[0], batches, of_gates.shape[2], panels, size])
        first = way * batches + at
        with tl.allow("contract"):
            for u in over_panels(panels):
                for r in range(rows):
                    for j in range(size):
                        total = kind(theirs[t, at + r, way, u, j])
                        for k in tl.reduce(width):
                            total += kind(last_hidden[first + r, k]) * kind(weights[way, u, k, j])
                        columns[r, u, j] = total
        for r in range(rows):
            finish(gates, last_cell, last_hidden, y, t, r, first + r)

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
    """All outputs y, the last output h and the last state c of a layer with initial output and state.

    Weights are `[ways, width, 4 * width]`, or by panels of columns `[ways, panels, width, columns of one]`.
    """
    kind, batches, (ways, _, width) = computed_in(G.dtype), extents(G)[1], extents(H)
    has_panels = len(extents(R)) > 3
    cell_of, of_weights = (_lstm_cell_by_panels, extents(R)) if has_panels else (_lstm_cell, width)
    run = _running(G, R, H, 4, partial(cell_of, kind, batches, of_weights), reverse=reverse)

    @tl.kernel
    def lstm(sums: G, recurrence: R, hidden: H, cell: C, y: tl.out[Y], last_hidden: tl.out[LH], last_cell: tl.out[LC]):
        inner = tl.view(last_cell, last_cell.dtype[ways * batches, width])
        begin(last_cell, cell)
        run(sums, recurrence, hidden, inner, y, last_hidden)

    return lstm.ir


@factory
def lstm_bytes(
    G: TensorType,
    R: TensorType,
    S: TensorType,
    T: TensorType,
    H: TensorType,
    C: TensorType,
    E: TensorType | None,
    Y: TensorType,
    LH: TensorType,
    LC: TensorType,
    *,
    reverse: bool = False,
) -> PrimFunc:
    """As `lstm`, but the hidden states of a batch are quantized before each step, and weights are integers.

    The weights, with the quantization scales `scale`, are packed into panels of columns, in groups of two or four rows
    for dot products; `totals` are the sums of columns. A sequence has `ends[0]` steps, and outputs 0 after them; its
    state is included in the range that the batch is quantized by up to step `ends[1]`.
    """
    run = _quantized_steps(extents(G), extents(R), extents(H)[2], G.dtype, is_ragged=E is not None, reverse=reverse)

    given = E or G

    @tl.kernel
    def lstm_bytes(
        sums: G,
        weights: R,
        scale: S,
        totals: T,
        hidden: H,
        cell: C,
        ends: given,
        y: tl.out[Y],
        last: tl.out[LH],
        inner: tl.out[LC],
    ):
        begin(last, hidden)
        begin(inner, cell)
        run(sums, weights, scale, totals, sums if tl.static(E is None) else ends, y, last, inner)

    return with_given(lstm_bytes, ends=E)


def _quantized_steps(
    sums: tuple[Extent, ...], weights: tuple[Extent, ...], width: Extent, kind: DType, *, is_ragged: bool, reverse: bool
) -> Inline:
    """`run(sums, weights, scale, of_columns, ends, y, last_hidden, last_cell)`: all steps, from the states given."""
    (time, batches, _), (ways, panels, groups, size, each) = sums, weights
    of_steps = tl.i16 if each == 2 else tl.u8
    place, finish, quantize = _place(reverse=reverse), _finishing(kind, width), _quantizing(width, is_ragged=is_ragged)
    over_ways, over_panels = _loops(ways, width, 4)

    @tl.inline
    def run(sums, weights, scale, of_columns, ends, y, last_hidden, last_cell):
        of_gates = tl.view(sums, kind[time, batches, ways, 4 * width])
        outputs = tl.view(y, y.dtype[time, ways * batches, width])
        last = tl.view(last_hidden, last_hidden.dtype[ways * batches, width])
        inner = tl.view(last_cell, last_cell.dtype[ways * batches, width])
        for way in over_ways(ways):
            gates = tl.alloc(kind[batches, 4, width])
            columns = tl.view(gates, kind[batches, panels * size])
            totals = tl.alloc(tl.i32[batches, panels * size])
            steps = tl.alloc(of_steps[batches, groups * each])
            for b in range(batches):
                for k in range(width, groups * each):
                    steps[b, k] = of_steps(0)
            for step in range(time):
                by, zero = quantize(steps, last, way * batches, batches, step, ends)
                for u in over_panels(panels):
                    for b in range(batches):
                        for j in range(size):
                            total = tl.i32(0)
                            for p in tl.reduce(groups):
                                for r in tl.reduce(each):
                                    total += tl.i32(steps[b, each * p + r]) * tl.i32(weights[way, u, p, j, r])
                            totals[b, u * size + j] = total
                for b in range(batches):
                    count = min(tl.i64(ends[0, b]), time) if tl.static(is_ragged) else time
                    if step < count:
                        t = place(step, way, count)
                        for j in range(panels * size):
                            total = totals[b, j] - zero * of_columns[way, j]
                            columns[b, j] = of_gates[t, b, way, j] + kind(total) * (by * scale[way, j])
                        finish(gates, inner, last, outputs, t, b, way * batches + b)
                    else:
                        for j in range(width):
                            outputs[step, way * batches + b, j] = y.dtype(0)

    return run


def _quantizing(width: Extent, *, is_ragged: bool) -> Inline:
    """`quantize(steps, state, first, rows, step, ends)` quantizes rows of a state to 8 bits.

    It returns the scale, from the range of the rows that count at this step, and the zero point.
    """

    @tl.inline
    def quantize(steps, state, first, rows, step, ends):
        least = state.dtype(0)
        most = state.dtype(0)
        for b in range(rows):
            count = width if tl.static(not is_ragged) else (width if step <= tl.i64(ends[1, b]) else 0)
            for k in tl.reduce(count):
                least = min(least, state[first + b, k])
            for k in tl.reduce(count):
                most = max(most, state[first + b, k])
        size = (most - least) / 255 if most > least else state.dtype(1)
        zero = tl.round(max(min((0 - least) / size, 255), 0))
        for b in range(rows):
            for k in range(width):
                steps[b, k] = steps.dtype(max(min(tl.round(state[first + b, k] / size) + zero, 255), 0))
        return size, tl.i32(zero)

    return quantize


def _gru_cell(kind: DType, batches: Extent, width: Extent, over_gates: object, *, linear_before_reset: bool) -> Inline:
    """A step of some rows of a batch, from row `at` on; `over_gates` as for LSTM, of the first two."""
    parts, size, columns = (1, 3 * width, 2 * width) if over_gates is range else (3, width, width)
    add, add_last = _adding(width, columns), _adding(width, width)

    @tl.inline
    def step(gates, of_gates, biases, last, weights, y, t, way, at, rows):
        first = way * batches + at
        mine = tl.view(gates, kind[rows, parts, size])
        theirs = tl.view(of_gates, of_gates.dtype[of_gates.shape[0], batches, of_gates.shape[2], parts, size])
        constants = tl.view(biases, biases.dtype[biases.shape[0], parts, size])
        factors = tl.view(weights, weights.dtype[weights.shape[0], width, parts, size])
        for g in over_gates(min(2, parts)):
            for r in range(rows):
                for j in range(columns):
                    mine[r, g, j] = kind(constants[way, g, j])
            add(mine, g, last, first, rows, factors, way)
            for r in range(rows):
                for j in range(columns):
                    mine[r, g, j] = tl.sigmoid(mine[r, g, j] + kind(theirs[t, at + r, way, g, j]), fast=True)
        state = tl.alloc(kind[rows, width])
        for r in range(rows):
            for j in range(width):
                reset = kind(1) if tl.static(linear_before_reset) else gates[r, 1, j]
                state[r, j] = reset * kind(last[first + r, j])
                gates[r, 2, j] = kind(biases[way, 2, j])
        add_last(gates, 2, state, 0, rows, weights, way)
        for r in range(rows):
            for j in range(width):
                after = gates[r, 1, j] if tl.static(linear_before_reset) else kind(1)
                candidate = tl.tanh(kind(of_gates[t, at + r, way, 2, j]) + after * gates[r, 2, j], fast=True)
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
    kind, batches, (ways, width, _) = computed_in(G.dtype), extents(G)[1], extents(R)
    step_by = partial(_gru_cell, kind, batches, width, linear_before_reset=linear_before_reset)
    run = _running(G, R, H, 3, step_by, reverse=reverse)

    @tl.kernel
    def gru(sums: G, recurrence: R, bias: B, hidden: H, y: tl.out[Y], last_hidden: tl.out[LH]):
        biases = tl.view(bias, bias.dtype[ways, 3, width])
        run(sums, recurrence, hidden, biases, y, last_hidden)

    return gru.ir


@factory
def rnn(
    G: TensorType, R: TensorType, H: TensorType, Y: TensorType, LH: TensorType, *, reverse: bool = False
) -> PrimFunc:
    """All outputs y and the last one h of a layer with an initial output: the tanh of the sums."""
    kind, batches, width = computed_in(G.dtype), extents(G)[1], extents(R)[1]
    add = _adding(width, width)

    @tl.inline
    def step(gates, sums, more, last, weights, y, t, way, at, rows):
        first = way * batches + at
        for r in range(rows):
            for j in range(width):
                gates[r, 0, j] = kind(sums[t, at + r, way, 0, j])
        add(gates, 0, last, first, rows, weights, way)
        for r in range(rows):
            for j in range(width):
                last[first + r, j] = last.dtype(tl.tanh(gates[r, 0, j], fast=True))
                y[t, first + r, j] = last[first + r, j]

    run = _running(G, R, H, 1, lambda over_gates: step, reverse=reverse)

    @tl.kernel
    def rnn(sums: G, recurrence: R, hidden: H, y: tl.out[Y], last_hidden: tl.out[LH]):
        run(sums, recurrence, hidden, sums, y, last_hidden)

    return rnn.ir
