"""Importers of recurrent layers: one matrix product for the inputs of all steps, then the steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.extents import is_equal
from tirlite.graph.onnx.computed import scalar
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.importers.selection import backwards
from tirlite.graph.onnx.node import OnnxNode, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.record import record
from tirlite.sizes import Proof, Size, prove_eq

Function = Callable[[Expr], Expr]


@record(eq=False)
class CellWeights:
    """One direction of a layer: the recurrent weights and bias, and the product `times(state, time)` with a state."""

    recurrence: Expr
    bias: Expr | None
    times: Callable[[Expr, Expr], Expr]


@record(eq=False)
class RnnCell:
    """One direction of a layer: its weights, its peepholes, and the activations of its gates."""

    weights: CellWeights
    peepholes: Sequence[Expr] | None
    functions: Sequence[Function]


def stepped(
    t: Translation,
    node: OnnxNode,
    cell: RnnCell,
    sums: Expr,
    start: Sequence[Expr],
    lengths: Expr | None,
    reverse: bool,
) -> tuple[Expr, ...]:
    """The outputs of all steps `[time, batch, hidden]`, and the last states. `sums` is `[time, batch, gates]`."""
    count = sums.shape[0]
    last = scalar(t, count - 1)

    def step(number: Expr, going: Expr, states: list[Expr]) -> tuple[Expr, list[Expr], list[Expr]]:
        time = t.b.subtract(last, number) if reverse else number
        states, output = _stepped_once(t, node, cell, sums, states, lengths, time)
        return t.b.constant(np.array(True)), states, [output]

    _, states, (rows,) = t.b.loop(step, scalar(t, count), start, most=count)
    return (backwards(t, rows) if reverse else rows, *states)


def _stepped_once(
    t: Translation, node: OnnxNode, cell: RnnCell, sums: Expr, states: list[Expr], lengths: Expr | None, time: Expr
) -> tuple[list[Expr], Expr]:
    """The states after a step, and its output; sequences that have ended keep their states and output zeros."""
    row = t.b.gather(sums, time, 0)
    if node.op != "GRU":
        row = t.b.add(row, cell.weights.times(states[0], time))
    made = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}[node.op](t, node, cell, row, states)
    if lengths is None:
        return made, made[0]
    inside = t.b.less(t.b.cast(time, lengths.dtype), t.b.reshape(lengths, (-1, 1)))
    kept: list[Expr] = [t.b.where(inside, new, old) for new, old in zip(made, states, strict=True)]
    return kept, t.b.where(inside, made[0], 0.0)


def _lstm_step(t: Translation, node: OnnxNode, cell: RnnCell, sums: Expr, states: Sequence[Expr]) -> list[Expr]:
    inner = states[1]
    f, g, h = cell.functions
    write, read, keep, made = t.b.split(sums, 4, 1)
    holes = cell.peepholes
    write_at = write if holes is None else t.b.add(write, t.b.multiply(holes[0], inner))
    keep_at = keep if holes is None else t.b.add(keep, t.b.multiply(holes[2], inner))
    gate = f(write_at)
    kept = t.b.subtract(1.0, gate) if node.flag("input_forget") else f(keep_at)
    inner = t.b.add(t.b.multiply(kept, inner), t.b.multiply(gate, g(made)))
    read_at = read if holes is None else t.b.add(read, t.b.multiply(holes[1], inner))
    return [t.b.multiply(f(read_at), h(inner)), inner]


def _gru_step(t: Translation, node: OnnxNode, cell: RnnCell, sums: Expr, states: Sequence[Expr]) -> list[Expr]:
    (hidden,) = states
    f, g = cell.functions
    size = hidden.shape[1]
    both, last = t.b.split(cell.weights.recurrence, [2 * size, size], 1)
    gates, made = t.b.split(sums, [2 * size, size], 1)
    bias = None if cell.weights.bias is None else t.b.split(cell.weights.bias, [2 * size, size], 0)
    total = t.b.add(gates, t.b.matmul(hidden, both))
    update, reset = map(f, t.b.split(total if bias is None else t.b.add(total, bias[0]), 2, 1))
    if node.flag("linear_before_reset"):
        product = t.b.matmul(hidden, last)
        inner = t.b.multiply(reset, product if bias is None else t.b.add(product, bias[1]))
    else:
        product = t.b.matmul(t.b.multiply(reset, hidden), last)
        inner = product if bias is None else t.b.add(product, bias[1])
    candidate = g(t.b.add(made, inner))
    return [t.b.add(t.b.multiply(t.b.subtract(1.0, update), candidate), t.b.multiply(update, hidden))]


def _rnn_step(t: Translation, node: OnnxNode, cell: RnnCell, sums: Expr, states: Sequence[Expr]) -> list[Expr]:
    (f,) = cell.functions
    return [f(sums)]


# The default alpha and beta of each activation; None for a parameter that it does not have.
_PARAMETERS: dict[str, tuple[float | None, float | None]] = {
    "affine": (1.0, 0.0),
    "elu": (1.0, None),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, None),
    "relu": (None, None),
    "scaledtanh": (1.0, 1.0),
    "sigmoid": (None, None),
    "softplus": (None, None),
    "softsign": (None, None),
    "tanh": (None, None),
    "thresholdedrelu": (1.0, None),
}


def activations(t: Translation, node: OnnxNode, defaults: Sequence[str], directions: int) -> list[Function]:
    """The activations of all directions. Parameters are assigned in order to the activations that have some."""
    names = [each.lower() for each in node.texts("activations") or tuple(defaults) * directions]
    if len(names) != len(defaults) * directions:
        raise Unsupported(f"it has {len(names)} activations, and takes {len(defaults) * directions}")
    given = [list(node.numbers(name) or ()) for name in ("activation_alpha", "activation_beta")]
    limit = node.number("clip") if "clip" in node.attributes else None
    # As in onnxruntime, `clip` does not apply to the LSTM's cell state, the input of the last of three activations.
    limited = [node.op != "LSTM" or place % 3 < 2 for place in range(len(names))]
    return [
        _activation(t, name, given, limit if is_limited else None)
        for name, is_limited in zip(names, limited, strict=True)
    ]


def _activation(t: Translation, name: str, given: list[list[float]], limit: float | None) -> Function:
    if name not in _PARAMETERS:
        raise Unsupported(f"its activation {name} is unknown")
    usual = _PARAMETERS[name]
    a, b = (
        default if default is None or not values else values.pop(0)
        for default, values in zip(usual, given, strict=True)
    )
    alpha, beta = a or 0.0, b or 0.0

    def function(x: Expr) -> Expr:
        return _apply(t, name, x if limit is None else t.b.clip(x, -limit, limit), alpha, beta)

    return function


def _apply(t: Translation, name: str, x: Expr, alpha: float, beta: float) -> Expr:
    if name in ("relu", "sigmoid", "softplus", "softsign", "tanh"):
        return t.b.call(name, x)
    if name == "affine":
        return t.b.add(t.b.multiply(x, alpha), beta)
    if name == "scaledtanh":
        return t.b.multiply(t.b.tanh(t.b.multiply(x, beta)), alpha)
    if name == "thresholdedrelu":
        return t.b.where(t.b.greater(x, alpha), x, 0.0)
    if name == "hardsigmoid":
        return t.b.hard_sigmoid(x, alpha, beta)
    return t.b.elu(x, alpha) if name == "elu" else t.b.leaky_relu(x, alpha)


# The number of gates, that is of weight columns per element of the state.
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}

# The default activations of an LSTM.
USUAL_LSTM = ("sigmoid", "tanh", "tanh")


def _layer(states: int, defaults: tuple[str, ...]) -> Importer:
    def importer(t: Translation, node: OnnxNode) -> Sequence[Expr | None]:
        x, weights, recurrence, bias = sequences_of(t, node), node.x(1), node.x(2), node.maybe(3)
        ways, size = ways_of(node), node.integer("hidden_size") or recurrence.shape[-1]
        columns = _GATES[node.op] * size
        weights = shaped(t, weights, (len(ways), columns, x.shape[2]), "its weights")
        recurrence = shaped(t, recurrence, (len(ways), columns, size), "its weights of the state")
        bias = None if bias is None else shaped(t, bias, (len(ways), 2 * columns), "its biases")
        time, batch, _ = x.shape
        lengths = lengths_of(node, time)
        lengths = None if lengths is None else shaped(t, lengths, (batch,), "its lengths")
        sums, other = t.b.matmul(x, t.b.transpose(t.b.reshape(weights, (-1, weights.shape[2])))), None
        if bias is not None:
            own, other = t.b.split(bias, 2, 1)
            sums = t.b.add(sums, t.b.reshape(own if node.op == "GRU" else t.b.add(own, other), (-1,)))
        shape = (len(ways), batch, recurrence.shape[2])
        start = [state(t, node, number, shape) for number in range(5, 5 + states)]
        turned = t.b.transpose(recurrence, (0, 2, 1))
        if is_plain(node, defaults, len(ways)) and lengths is None:
            return results(t, node, _by_kernel(t, node, sums, turned, other, start, ways[0]))
        each_way = [
            _plain_weights(t, part_of(t, turned, place), None if other is None else part_of(t, other, place))
            for place in range(len(ways))
        ]
        start = [shaped(t, each, shape, "its states") for each in start]
        return results(t, node, by_steps(t, node, defaults, sums, each_way, start, lengths, ways), lengths)

    return importer


def sequences_of(t: Translation, node: OnnxNode) -> Expr:
    """The input of a layer, [time, batch, inputs]."""
    if node.rank != 3:
        raise Unsupported(f"its input has {node.rank} axes, and must have 3")
    return t.b.transpose(node.first, (1, 0, 2)) if node.integer("layout") else node.first


def _plain_weights(t: Translation, recurrence: Expr, bias: Expr | None) -> CellWeights:
    return CellWeights(recurrence, bias, lambda hidden, _: t.b.matmul(hidden, recurrence))


def by_steps(
    t: Translation,
    node: OnnxNode,
    defaults: Sequence[str],
    sums: Expr,
    each_way: Sequence[CellWeights],
    start: Sequence[Expr],
    lengths: Expr | None,
    ways: Sequence[bool],
) -> tuple[Expr, ...]:
    """The outputs and last states of a layer without a kernel, by a loop for each direction."""
    count, found = len(defaults), []
    functions = activations(t, node, defaults, len(ways))
    for place, (reverse, part) in enumerate(zip(ways, t.b.split(sums, len(ways), 2), strict=True)):
        holes = _peepholes(t, node, place, start[0].shape[2])
        cell = RnnCell(each_way[place], holes, functions[place * count : (place + 1) * count])
        begun = [part_of(t, each, place) for each in start]
        found.append(stepped(t, node, cell, part, begun, lengths, reverse))
    return tuple(
        t.b.concat([t.b.unsqueeze(each, axis) for each in parts], axis)
        for axis, parts in zip((1, 0, 0), zip(*found, strict=True), strict=False)
    )


def shaped(t: Translation, x: Expr, shape: Sequence[Size], what: str) -> Expr:
    """x with this shape, demanded if not proved. Raises Unsupported, which names x as `what`, if it has another one."""
    if len(x.shape) != len(shape) or any(prove_eq(*pair) is Proof.NO for pair in zip(x.shape, shape, strict=True)):
        raise Unsupported(f"{what} are {x.type}, and must be {x.dtype}[{', '.join(map(str, shape))}]")
    for axis, (extent, wanted) in enumerate(zip(x.shape, shape, strict=True)):
        if not is_equal(extent, wanted):
            x = t.b.assume(x, (*x.shape[:axis], wanted, *x.shape[axis + 1 :]))
    return x


def ways_of(node: OnnxNode) -> list[bool]:
    """For each direction, whether it goes backwards."""
    reverses = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    return reverses[node.text("direction", "forward")]


def results(t: Translation, node: OnnxNode, made: tuple[Expr, ...], lengths: Expr | None = None) -> list[Expr | None]:
    """The outputs `[time, directions, batch, hidden]` and states `[directions, batch, hidden]`, or batch first.

    As in onnxruntime, the last states of empty sequences are 0, whatever their initial states are.
    """
    outputs, *states = made
    if lengths is not None:
        has_any = t.b.greater(t.b.reshape(lengths, (1, -1, 1)), 0)
        states = [t.b.where(has_any, each, 0.0) for each in states]
    if not node.integer("layout"):
        return [outputs, *states]
    return [t.b.transpose(outputs, (2, 0, 1, 3)), *(t.b.transpose(each, (1, 0, 2)) for each in states)]


def is_plain(node: OnnxNode, defaults: tuple[str, ...], directions: int) -> bool:
    """Whether there is a kernel for its steps: default activations, no clip, no peepholes, no coupled gates."""
    given = tuple(each.lower() for each in node.texts("activations") or ())
    if (given and given != defaults * directions) or "clip" in node.attributes or node.flag("input_forget"):
        return False
    return not _has_peepholes(node)


def _has_peepholes(node: OnnxNode) -> bool:
    if node.op != "LSTM" or not node.has(7):
        return False
    given = node.x(7)
    return not isinstance(given, Constant) or bool(np.any(given.value))


def _peepholes(t: Translation, node: OnnxNode, place: int, size: Size) -> list[Expr] | None:
    """The peephole weights of the input, output and forget gates."""
    if not _has_peepholes(node):
        return None
    weights = shaped(t, node.x(7), (len(ways_of(node)), 3 * size), "its peepholes")
    return list(t.b.split(part_of(t, weights, place), 3))


def lengths_of(node: OnnxNode, time: Size) -> Expr | None:
    """The lengths of the sequences of a batch; None if all have the full length."""
    given = node.maybe(4)
    if given is None:
        return None
    known = contents(given)
    return None if known is not None and set(known.reshape(-1).tolist()) == {time} else given


def part_of(t: Translation, x: Expr, place: int) -> Expr:
    """The part of x that belongs to one direction."""
    if x.shape[0] == 1:
        return t.b.reshape(x, x.shape[1:])
    return t.b.reshape(t.b.slice(x, [place], [place + 1], [0]), x.shape[1:])


def state(t: Translation, node: OnnxNode, number: int, shape: tuple[Size, ...]) -> Expr:
    given = node.maybe(number)
    if given is None:
        return _zeros(t, node, shape)
    return t.b.transpose(given, (1, 0, 2)) if node.integer("layout") else given


def _zeros(t: Translation, node: OnnxNode, shape: tuple[Size, ...]) -> Expr:
    return t.b.broadcast_to(t.b.cast(t.b.constant(np.float32(0)), node.dtype), shape)


def _by_kernel(
    t: Translation, node: OnnxNode, sums: Expr, recurrence: Expr, bias: Expr | None, start: list[Expr], reverse: bool
) -> tuple[Expr, ...]:
    """The outputs and last states of a layer that has a kernel."""
    if node.op == "LSTM":
        return t.b.lstm(sums, recurrence, start[0], start[1], reverse=reverse)
    if node.op == "RNN":
        return t.b.rnn(sums, recurrence, start[0], reverse=reverse)
    if bias is None:
        bias = _zeros(t, node, (recurrence.shape[0], recurrence.shape[2]))
    before = node.flag("linear_before_reset")
    return t.b.gru(sums, recurrence, bias, start[0], reverse=reverse, linear_before_reset=before)


RECURRENCE: Mapping[str, Importer] = {
    "LSTM": _layer(2, USUAL_LSTM),
    "GRU": _layer(1, ("sigmoid", "tanh")),
    "RNN": _layer(1, ("tanh",)),
}
