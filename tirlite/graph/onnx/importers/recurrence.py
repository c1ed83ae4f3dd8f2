"""Importers of recurrent layers: one product of matrices for all inputs of a layer, then its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tirlite.graph.expr import Constant, Expr
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.importers.recurrent_steps import Cell, activations, stepped
from tirlite.graph.onnx.node import Node, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.sizes import Size

# For one direction: sums over inputs, recurrence and its bias, initial states; outputs and last states.
Step = Callable[[Translation, Node, Expr, Expr, "Expr | None", "list[Expr]", bool], "tuple[Expr, ...]"]


def _layer(states: int, defaults: tuple[str, ...], step: Step) -> Importer:
    def importer(t: Translation, node: Node) -> Sequence[Expr | None]:
        x, weights, recurrence, bias = node.x(0), node.x(1), node.x(2), node.maybe(3)
        if (rank := len(x.shape)) != 3:
            raise Unsupported(f"its input has {rank} axes, and must have 3")
        if node.integer("layout"):
            x = t.b.transpose(x, (1, 0, 2))
        time, batch, _ = x.shape
        lengths = _lengths(node, time)
        hidden = recurrence.shape[2]
        reverses = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
        ways = reverses[node.text("direction", "forward")]
        plain = _is_plain(node, defaults, len(ways)) and lengths is None
        functions = [] if plain else activations(t, node, defaults, len(ways))
        found = []
        for place, reverse in enumerate(ways):
            both = None if bias is None else _part(t, bias, place)
            own, other = (None, None) if both is None else t.b.split(both, 2)
            sums = t.b.matmul(x, t.b.transpose(_part(t, weights, place)))
            sums = sums if own is None else t.b.add(sums, own)
            start = [_state(t, node, number, place, (batch, hidden)) for number in range(5, 5 + states)]
            turned = t.b.transpose(_part(t, recurrence, place))
            if plain:
                found.append(step(t, node, sums, turned, other, start, reverse))
                continue
            sums = sums if other is None or node.op == "GRU" else t.b.add(sums, other)
            mine = functions[place * len(defaults) : (place + 1) * len(defaults)]
            cell = Cell(turned, other, _peepholes(t, node, place), mine)
            found.append(stepped(t, node, cell, sums, start, lengths, reverse))
        return _results(t, node, found)

    return importer


def _results(t: Translation, node: Node, found: Sequence[tuple[Expr, ...]]) -> list[Expr | None]:
    """The outputs `[time, directions, batch, hidden]` and states `[directions, batch, hidden]`, or batch first."""
    outputs, *states = (
        t.b.concat([t.b.unsqueeze(each, axis) for each in parts], axis)
        for axis, parts in zip((1, 0, 0), zip(*found, strict=True), strict=False)
    )
    if node.integer("layout"):
        return [t.b.transpose(outputs, (2, 0, 1, 3)), *(t.b.transpose(each, (1, 0, 2)) for each in states)]
    return [outputs, *states]


def _is_plain(node: Node, defaults: tuple[str, ...], directions: int) -> bool:
    """Whether its steps are of the kind that has a kernel."""
    given = tuple(each.lower() for each in node.texts("activations") or ())
    if (given and given != defaults * directions) or "clip" in node.attributes or node.flag("input_forget"):
        return False
    return not _has_peepholes(node)


def _has_peepholes(node: Node) -> bool:
    if node.op != "LSTM" or not node.has(7):
        return False
    given = node.x(7)
    return not isinstance(given, Constant) or bool(np.any(given.value))


def _peepholes(t: Translation, node: Node, place: int) -> list[Expr] | None:
    """The weights of the cell in the gates that write, read and keep."""
    return list(t.b.split(_part(t, node.x(7), place), 3)) if _has_peepholes(node) else None


def _lengths(node: Node, time: Size) -> Expr | None:
    """The lengths of the sequences of a batch; None where all are as long as the longest."""
    given = node.maybe(4)
    if given is None:
        return None
    known = contents(given)
    return None if known is not None and set(known.reshape(-1).tolist()) == {time} else given


def _part(t: Translation, x: Expr, place: int) -> Expr:
    """What belongs to one direction."""
    if x.shape[0] == 1:
        return t.b.reshape(x, x.shape[1:])
    return t.b.reshape(t.b.slice(x, [place], [place + 1], [0]), x.shape[1:])


def _state(t: Translation, node: Node, number: int, place: int, shape: tuple[Size, Size]) -> Expr:
    given = node.maybe(number)
    if given is None:
        zero = t.b.cast(t.b.constant(np.float32(0)), node.dtype)
        return t.b.broadcast_to(zero, shape)
    if node.integer("layout"):
        given = t.b.transpose(given, (1, 0, 2))
    return _part(t, given, place)


def _lstm(
    t: Translation, node: Node, sums: Expr, recurrence: Expr, bias: Expr | None, start: list[Expr], reverse: bool
) -> tuple[Expr, ...]:
    sums = sums if bias is None else t.b.add(sums, bias)
    return t.b.lstm(sums, recurrence, start[0], start[1], reverse=reverse)


def _gru(
    t: Translation, node: Node, sums: Expr, recurrence: Expr, bias: Expr | None, start: list[Expr], reverse: bool
) -> tuple[Expr, ...]:
    if bias is None:
        zero = t.b.cast(t.b.constant(np.float32(0)), node.dtype)
        bias = t.b.broadcast_to(zero, (recurrence.shape[1],))
    before = node.flag("linear_before_reset")
    return t.b.gru(sums, recurrence, bias, start[0], reverse=reverse, linear_before_reset=before)


def _rnn(
    t: Translation, node: Node, sums: Expr, recurrence: Expr, bias: Expr | None, start: list[Expr], reverse: bool
) -> tuple[Expr, ...]:
    sums = sums if bias is None else t.b.add(sums, bias)
    return t.b.rnn(sums, recurrence, start[0], reverse=reverse)


RECURRENCE: Mapping[str, Importer] = {
    "LSTM": _layer(2, ("sigmoid", "tanh", "tanh"), _lstm),
    "GRU": _layer(1, ("sigmoid", "tanh"), _gru),
    "RNN": _layer(1, ("tanh",), _rnn),
}
