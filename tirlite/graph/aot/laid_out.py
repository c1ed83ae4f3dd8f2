"""Packs constant weights when a network is compiled, for calls that another operator then computes faster.

Its sums may be grouped differently from those of the call in the graph, so that results differ by rounding.
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
    """A layout of packed weights, and the operator that reads it.

    op: the operator that replaces a call; None to keep the call's operator.
    operand: the position of the packed operand.
    function: packs the operand's array.
    attrs: returns the attributes of the new call, or None if the layout does not pay for the call.
    needs: the feature that the processor must have: dot products, lane permutations or a size of register tiles.
    shape: returns the packed array's shape for the operand's; if given, a thread packs it during compilation.
    dtype: the element type of the packed array, if another than the operand's.
    fits: tests whether the operand's elements permit the layout.
    widens: f16 operands are converted to f32 before packing.
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
        """The argument of `function` for an operand's array."""
        return array.astype(np.float32) if self.widens and array.dtype == np.float16 else array


def _sized(
    op: Op,
    function: Callable[..., Array],
    attrs: Callable[..., Attrs | None],
    shape: Callable[..., tuple[int, ...]] | None = None,
    needs: str = "",
    **sizes: o.Sizes | int,
) -> OperandLayout:
    """A layout of the second operand in parts of these sizes."""
    made = None if shape is None else partial(shape, **sizes)
    return OperandLayout(op, 1, partial(function, **sizes), partial(attrs, **sizes), needs, made, widens=True)


def _by_panels(sizes: o.Sizes = o.WIDE, needs: str = "") -> dict[str, OperandLayout]:
    """The layouts of matrices and convolution weights in panels whose columns are chosen from `sizes`."""
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
    """A layout in pairs of i16, for processors that lack dot products of groups of bytes."""
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
    """The layouts for a processor with the features in `has`."""
    return {
        name: each
        for name, each in LAYOUTS.items()
        if (winograd or each.op is not o.WINOGRAD) and (not each.needs or each.needs in has)
    }


@record(eq=False)
class LaidOut:
    """The result of `lay_out`.

    calls: the new call for each replaced one.
    constants: the layout and the source of each packed constant.
    filling: the thread that packs; constants have their elements once it is finished.
    """

    calls: Mapping[Call, Call]
    constants: Mapping[Constant, tuple[str, Constant]]
    filling: Filling


class Filling(Thread):
    """A thread that packs arrays one by one; NumPy releases the GIL, so that compilation continues meanwhile."""

    def __init__(self) -> None:
        super().__init__(name="lay out constants")
        self._todo: list[tuple[Array, Callable[[Array], Array], Array]] = []
        self._failures: list[BaseException] = []

    def array(self, layout: OperandLayout, source: Array) -> Array:
        """The read-only array for `source` in a layout: packed now if the layout has no `shape`, else by the thread."""
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
        """Waits for the thread. Raises the error that packing raised, if any."""
        self.join()
        if self._failures:
            raise self._failures[0]


def lay_out(made: Program, folded: Mapping[Expr, Constant], layouts: Mapping[str, OperandLayout]) -> LaidOut:
    """Packs the weights of each call by the first layout that pays; `folded` expressions count as constants."""
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
