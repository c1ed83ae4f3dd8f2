"""Lays constants out once, when a network is compiled, where another function then computes a call in less time.

Its result differs from that of the call in the graph by what its sums are grouped into.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from threading import Thread
from typing import Any

import numpy as np

from tirlite.graph.expr import Call, Constant, Expr, constant
from tirlite.graph.op import Array, Attrs, Op
from tirlite.graph.operators import laid_out as o
from tirlite.graph.operators.linear import as_it_lies, transposed
from tirlite.graph.program import Program
from tirlite.ir import DType, f16, f32, i8, i16
from tirlite.record import record


@record(eq=False)
class OperandLayout:
    """An operator, the number of its operand that is laid out, by which function, and its attributes for a call.

    These are None where the call is better computed as it is. Without an operator it is the call's own. With `needs`
    it pays where processors have that: these dot products, permutations of lanes, or tiles with short rows. With
    `shape`, which tells what shape the operand takes, it is laid out while others go on, which takes as long as it does
    to read it. With `dtype` it becomes of that type, and f32 of halves where it `widens` them. With `fits` it is laid
    out where that holds of it.
    """

    op: Op | None
    operand: int
    function: Callable[[Array], Array]
    attrs: Callable[[Call], Attrs | None]
    needs: str = ""
    shape: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None
    dtype: DType | None = None
    fits: Callable[[Array], bool] | None = None
    widens: bool = False

    def given(self, array: Array) -> Array:
        """What `function` takes for an array."""
        return array.astype(np.float32) if self.widens and array.dtype == np.float16 else array


def _sized(
    op: Op,
    function: Callable[..., Array],
    attrs: Callable[..., Attrs | None],
    shape: Callable[..., tuple[int, ...]] | None = None,
    needs: str = "",
    **sizes: o.Sizes | int,
) -> OperandLayout:
    """The layout of the second operand in parts of these sizes."""
    made = None if shape is None else partial(shape, **sizes)
    return OperandLayout(op, 1, partial(function, **sizes), partial(attrs, **sizes), needs, made, widens=True)


def _by_panels(sizes: o.Sizes = o.WIDE, needs: str = "") -> dict[str, OperandLayout]:
    """The layouts of matrices, and of weights of convolutions, by panels of so many columns."""
    plain, turned = (partial(o.product_by_panels, turned=is_turned) for is_turned in (False, True))
    outputs = o.panels_of_outputs, o.conv_by_panels, o.shape_of_outputs
    return {
        "panels": _sized(o.PRODUCT, o.panels, plain, needs=needs, sizes=sizes),
        "panels of transpose": _sized(
            o.PRODUCT, lambda weights, sizes: o.panels(weights.T, sizes), turned, needs=needs, sizes=sizes
        ),
        "panels of outputs": _sized(o.CONVOLUTION, *outputs, needs=needs, sizes=sizes),
    }


def _paired(op: Op, operand: int, function: Callable[..., Array], attrs: Callable[..., Attrs | None]) -> OperandLayout:
    """A layout of pairs of halves in the place of groups of bytes."""
    sizes: Mapping[str, Any] = {"group": o.PAIR, "sizes": o.NARROW}
    made, found = (lambda weights: function(o.halves(weights), **sizes)), partial(attrs, **sizes)
    return OperandLayout(op, operand, made, found, o.HALVES, dtype=i16)


_TERMS = o.WINOGRAD, o.terms_of, o.by_winograd, o.shape_of_terms
_MADE = o.TRANSPOSE, o.panels_of_made, o.transpose_by_panels, o.shape_of_made

LAYOUTS: Mapping[str, OperandLayout] = {
    o.WINOGRAD.name: _sized(*_TERMS, block=o.BLOCK),
    "winograd of groups": _sized(*_TERMS, block=o.OF_GROUPS),
    **{f"narrow {name}": each for name, each in _by_panels(o.NARROW, o.SHORT_ROWS).items()},
    **_by_panels(),
    "panels of few outputs": _sized(
        o.CONVOLUTION, o.panels_of_outputs, o.windows_by_panels, o.shape_of_outputs, sizes=o.NARROW
    ),
    "wide panels of made": _sized(*_MADE, size=o.MANY_OUTPUTS),
    "panels of made": _sized(*_MADE, size=o.OUTPUTS),
    "panels of ways": OperandLayout(o.LSTM, 1, o.panels_of_ways, o.lstm_by_panels, o.LONG_ROWS),
    "rows in registers": OperandLayout(o.DEPTHWISE, 1, lambda weights: weights, o.by_registers, o.PERMUTES),
    "panels of bytes": OperandLayout(o.CONVOLUTION_BYTES, 2, o.panels_of_bytes, o.conv_bytes_by_panels, o.DOTS),
    "groups of pairs": OperandLayout(None, 1, o.groups_of_pairs, o.steps_by_groups, o.DOTS, dtype=i8, fits=o.are_bytes),
    "groups": OperandLayout(o.BYTES, 1, o.groups, o.bytes_by_groups, o.DOTS),
    "pairs": _paired(o.BYTES, 1, o.groups, o.bytes_by_groups),
    "panels of halves": _paired(o.CONVOLUTION_BYTES, 2, o.panels_of_bytes, o.conv_bytes_by_panels),
    "halves": OperandLayout(None, 2, o.halves, o.conv_bytes_by_halves, o.HALVES, dtype=i16),
    "transposed": OperandLayout(None, 1, transposed, as_it_lies),
}


def permitted(*, winograd: bool, has: Collection[str] = ()) -> Mapping[str, OperandLayout]:
    """The layouts for a processor that has this."""
    return {
        name: each
        for name, each in LAYOUTS.items()
        if (winograd or each.op is not o.WINOGRAD) and (not each.needs or each.needs in has)
    }


@record(eq=False)
class LaidOut:
    """The calls that are computed instead of others, and of each constant made for them its layout and its source.

    The constants have their elements once `filling` is done.
    """

    calls: Mapping[Call, Call]
    constants: Mapping[Constant, tuple[str, Constant]]
    filling: Filling


class Filling(Thread):
    """A thread that fills arrays one by one with what functions make of others: NumPy lets Python go on meanwhile."""

    def __init__(self) -> None:
        super().__init__(name="lay out constants")
        self._todo: list[tuple[Array, Callable[[Array], Array], Array]] = []
        self._failures: list[BaseException] = []

    def array(self, layout: OperandLayout, source: Array) -> Array:
        """What will hold an array in a layout, and others may not write to; it does now if its shape is not told."""
        source = layout.given(source)
        if layout.shape is None:
            return layout.function(source)
        made = o.room_for(layout.shape(source.shape), source.dtype)
        self._todo.append((made, layout.function, source))
        shown = made.view()
        shown.flags.writeable = False
        return shown

    def run(self) -> None:
        try:
            for made, function, source in self._todo:
                np.copyto(made, function(source))
        except BaseException as failure:
            self._failures.append(failure)

    def finish(self) -> None:
        """Waits for it. Raises what went wrong."""
        self.join()
        if self._failures:
            raise self._failures[0]


def lay_out(made: Program, folded: Mapping[Expr, Constant], layouts: Mapping[str, OperandLayout]) -> LaidOut:
    """What pays in a program, of these layouts. The values of what is `folded` are known, as those of constants."""
    calls: dict[Call, Call] = {}
    found: dict[tuple[str, Constant], Constant] = {}
    filling = Filling()
    for step in made.steps():
        if not isinstance(step, Call) or not isinstance(step.op, Op) or step in folded:
            continue
        for name, layout in layouts.items():
            attrs = layout.attrs(step)
            if attrs is None:
                continue
            given = made.resolved(step.args[layout.operand])
            source = given if isinstance(given, Constant) else folded.get(given)
            if source is None or (layout.fits is not None and not layout.fits(source.value)):
                continue
            if (name, source) not in found:
                called = f"{source.name}_{name.replace(' ', '_')}" if source.name else ""
                dtype = f32 if layout.widens and source.dtype == f16 else layout.dtype or source.dtype
                found[name, source] = constant(filling.array(layout, source.value), dtype, name=called)
            args = list(step.args)
            args[layout.operand] = found[name, source]
            calls[step] = Call(layout.op or step.op, tuple(args), attrs, name=step.name, span=step.span)
            break
    filling.start()
    return LaidOut(calls, {made: key for key, made in found.items()}, filling)
