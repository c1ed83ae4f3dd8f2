"""Lays constants out once, when a network is compiled, where another function then computes a call in less time.

Its result differs from that of the call in the graph by what its sums are grouped into.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from threading import Thread

import numpy as np

from tirlite.graph.expr import Call, Constant, Expr, constant
from tirlite.graph.op import Array, Attrs, Op
from tirlite.graph.operators.laid_out import (
    BLOCK,
    BYTES,
    CONVOLUTION,
    CONVOLUTION_BYTES,
    DEPTHWISE,
    DOTS,
    HALVES,
    LONG_ROWS,
    LSTM,
    MANY_OUTPUTS,
    NARROW,
    OF_GROUPS,
    OUTPUTS,
    PERMUTES,
    PRODUCT,
    SHORT_ROWS,
    TRANSPOSE,
    WIDE,
    WINOGRAD,
    Sizes,
    are_bytes,
    as_they_are,
    by_registers,
    by_winograd,
    bytes_by_groups,
    conv_by_panels,
    conv_bytes_by_halves,
    conv_bytes_by_pairs,
    conv_bytes_by_panels,
    groups,
    groups_of_pairs,
    halves,
    lstm_by_panels,
    pairs,
    pairs_of_bytes,
    panels,
    panels_of_bytes,
    panels_of_halves,
    panels_of_made,
    panels_of_outputs,
    panels_of_transpose,
    panels_of_ways,
    product_by_panels,
    shape_of_made,
    shape_of_outputs,
    shape_of_terms,
    steps_by_groups,
    terms_of,
    transpose_by_panels,
    windows_by_panels,
)
from tirlite.graph.operators.linear import as_it_lies, transposed
from tirlite.graph.program import Program
from tirlite.ir import DType, i8, i16
from tirlite.record import record


@record(eq=False)
class Layout:
    """An operator, the number of its operand that is laid out, by which function, and its attributes for a call.

    These are None where the call is better computed as it is. Without an operator it is the call's own. With `needs`
    it pays where processors have that: these dot products, permutations of lanes, or tiles with short rows. With
    `shape`, which tells what shape the operand takes, it is laid out while others go on, which takes as long as it does
    to read it. With `dtype` it becomes of that type. With `fits` it is laid out where that holds of it.
    """

    op: Op | None
    operand: int
    function: Callable[[Array], Array]
    attrs: Callable[[Call], Attrs | None]
    needs: str = ""
    shape: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None
    dtype: DType | None = None
    fits: Callable[[Array], bool] | None = None


def _by_panels(sizes: Sizes = WIDE, needs: str = "") -> dict[str, Layout]:
    """The layouts of matrices, and of weights of convolutions, by panels of so many columns."""
    cut, turned = (partial(f, sizes=sizes) for f in (panels, panels_of_transpose))
    return {
        "panels": Layout(PRODUCT, 1, cut, partial(product_by_panels, sizes=sizes, turned=False), needs),
        "panels of transpose": Layout(PRODUCT, 1, turned, partial(product_by_panels, sizes=sizes, turned=True), needs),
        "panels of outputs": _of_outputs(sizes, conv_by_panels, needs),
    }


def _of_outputs(sizes: Sizes, attrs: Callable[..., Attrs | None], needs: str = "") -> Layout:
    """The layout of the weights of a convolution by panels of so many outputs."""
    cut, shape = partial(panels_of_outputs, sizes=sizes), partial(shape_of_outputs, sizes=sizes)
    return Layout(CONVOLUTION, 1, cut, partial(attrs, sizes=sizes), needs, shape)


def _of_made(size: int) -> Layout:
    """The layout of the weights of a transposed convolution by panels of so many outputs."""
    cut, shape = partial(panels_of_made, size=size), partial(shape_of_made, size=size)
    return Layout(TRANSPOSE, 1, cut, partial(transpose_by_panels, size=size), shape=shape)


def _of_terms(block: int = BLOCK) -> Layout:
    """The layout of weights as terms by blocks of so many outputs."""
    made, shape = partial(terms_of, block=block), partial(shape_of_terms, block=block)
    return Layout(WINOGRAD, 1, made, partial(by_winograd, block=block), shape=shape)


LAYOUTS: Mapping[str, Layout] = {
    WINOGRAD.name: _of_terms(),
    "winograd of groups": _of_terms(OF_GROUPS),
    **{f"narrow {name}": each for name, each in _by_panels(NARROW, SHORT_ROWS).items()},
    **_by_panels(),
    "panels of few outputs": _of_outputs(NARROW, windows_by_panels),
    "wide panels of made": _of_made(MANY_OUTPUTS),
    "panels of made": _of_made(OUTPUTS),
    "panels of ways": Layout(LSTM, 1, panels_of_ways, lstm_by_panels, LONG_ROWS),
    "rows in registers": Layout(DEPTHWISE, 1, as_they_are, by_registers, PERMUTES),
    "panels of bytes": Layout(CONVOLUTION_BYTES, 2, panels_of_bytes, conv_bytes_by_panels, DOTS),
    "groups of pairs": Layout(None, 1, groups_of_pairs, steps_by_groups, DOTS, dtype=i8, fits=are_bytes),
    "groups": Layout(BYTES, 1, groups, bytes_by_groups, DOTS),
    "pairs": Layout(BYTES, 1, pairs, pairs_of_bytes, HALVES, dtype=i16),
    "panels of halves": Layout(CONVOLUTION_BYTES, 2, panels_of_halves, conv_bytes_by_pairs, HALVES, dtype=i16),
    "halves": Layout(None, 2, halves, conv_bytes_by_halves, HALVES, dtype=i16),
    "transposed": Layout(None, 1, transposed, as_it_lies),
}


def permitted(*, winograd: bool, has: Collection[str] = ()) -> Mapping[str, Layout]:
    """The layouts for a processor that has this."""
    return {
        name: each
        for name, each in LAYOUTS.items()
        if (winograd or each.op is not WINOGRAD) and (not each.needs or each.needs in has)
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

    def array(self, layout: Layout, source: Array) -> Array:
        """What will hold an array in a layout, and others may not write to; it does now if its shape is not told."""
        if layout.shape is None:
            return layout.function(source)
        made = np.empty(layout.shape(source.shape), source.dtype)
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


def lay_out(made: Program, folded: Mapping[Expr, Constant], layouts: Mapping[str, Layout]) -> LaidOut:
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
                found[name, source] = constant(
                    filling.array(layout, source.value), layout.dtype or source.dtype, name=called
                )
            args = list(step.args)
            args[layout.operand] = found[name, source]
            calls[step] = Call(layout.op or step.op, tuple(args), attrs, name=step.name, span=step.span)
            break
    filling.start()
    return LaidOut(calls, {made: key for key, made in found.items()}, filling)
