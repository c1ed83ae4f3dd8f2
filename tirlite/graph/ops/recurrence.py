"""Operators that step a recurrent cell along a sequence: their types.

`sums` are `[time, batch, gates * hidden]`: the products of inputs and weights, with the biases that are added to both.
`recurrence` is `[hidden, gates * hidden]`. States are `[batch, hidden]`. The order of gates is that of ONNX.
"""

from __future__ import annotations

from tirlite.graph.extents import Shape
from tirlite.graph.op import Attrs, Op, Site, table
from tirlite.graph.types import TensorType, TupleType
from tirlite.record import record


@record
class Steps(Attrs):
    """Whether the sequence is gone through from its end."""

    reverse: bool = False


@record
class GruSteps(Attrs):
    """Whether the sequence is gone through from its end; whether the product of the state comes before its reset."""

    reverse: bool = False
    linear_before_reset: bool = False


def _cell(site: Site, gates: int, states: tuple[int, ...], bias: int | None = None) -> tuple[TensorType, TensorType]:
    """The type of the sequence of outputs and of a state, once the operands are found to fit."""
    dtype = site.same_dtype()
    if not dtype.is_float:
        raise site.wrong_type(f"the elements must be of a float type, and are {dtype}")
    sums, recurrence = site.tensor(0), site.tensor(1)
    if sums.rank != 3 or recurrence.rank != 2:
        raise site.mismatch("operand 0 must have 3 axes and operand 1 must be a matrix")
    time, batch, _ = sums.shape
    hidden = recurrence.shape[0]
    wanted: list[tuple[int, Shape]] = [(0, (time, batch, gates * hidden)), (1, (hidden, gates * hidden))]
    wanted += [(number, (batch, hidden)) for number in states]
    wanted += [] if bias is None else [(bias, (gates * hidden,))]
    for number, shape in wanted:
        given = site.tensor(number)
        if given.rank != len(shape) or not all(map(site.is_equal, given.shape, shape)):
            raise site.mismatch(f"operand {number} must be {TensorType(shape, dtype)}")
    return TensorType((time, batch, hidden), dtype), TensorType((batch, hidden), dtype)


def _lstm(site: Site, attrs: Steps) -> TupleType:
    outputs, state = _cell(site, 4, (2, 3))
    return TupleType((outputs, state, state))


def _gru(site: Site, attrs: GruSteps) -> TupleType:
    return TupleType(_cell(site, 3, (3,), 2))


def _rnn(site: Site, attrs: Steps) -> TupleType:
    return TupleType(_cell(site, 1, (2,)))


RECURRENCE = table(
    Op("lstm", _lstm, 4, 4, attrs=Steps),
    Op("gru", _gru, 4, 4, attrs=GruSteps),
    Op("rnn", _rnn, 3, 3, attrs=Steps),
)
