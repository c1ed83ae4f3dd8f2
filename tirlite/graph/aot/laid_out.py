"""Lays constants out once, when a network is compiled, where another function then computes a call in less time.

Its result differs from that of the call in the graph by what its sums are grouped into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tirlite.graph.expr import Call, Constant, Expr, constant
from tirlite.graph.op import Array, Attrs, Op
from tirlite.graph.operators.linear import as_it_lies, transposed
from tirlite.graph.operators.panels import (
    CONVOLUTION,
    PRODUCT,
    conv_by_panels,
    panels,
    panels_of_outputs,
    panels_of_transpose,
    product_by_panels,
)
from tirlite.graph.operators.winograd import WINOGRAD, by_winograd, terms_of
from tirlite.graph.program import Program
from tirlite.record import record


@record(eq=False)
class Layout:
    """An operator, the number of its operand that is laid out, by which function, and its attributes for a call.

    These are None where the call is better computed as it is. Without an operator it is the call's own.
    """

    op: Op | None
    operand: int
    function: Callable[[Array], Array]
    attrs: Callable[[Call], Attrs | None]


LAYOUTS: Mapping[str, Layout] = {
    WINOGRAD.name: Layout(WINOGRAD, 1, terms_of, by_winograd),
    "panels": Layout(PRODUCT, 1, panels, partial(product_by_panels, turned=False)),
    "panels of transpose": Layout(PRODUCT, 1, panels_of_transpose, partial(product_by_panels, turned=True)),
    "panels of outputs": Layout(CONVOLUTION, 1, panels_of_outputs, conv_by_panels),
    "transposed": Layout(None, 1, transposed, as_it_lies),
}


@record(eq=False)
class LaidOut:
    """The calls that are computed instead of others, and of each constant made for them its layout and its source."""

    calls: Mapping[Call, Call]
    constants: Mapping[Constant, tuple[str, Constant]]


def lay_out(made: Program, folded: Mapping[Expr, Constant], *, winograd: bool) -> LaidOut:
    """What pays in a program, and is permitted. The values of what is `folded` are known, as those of constants."""
    calls: dict[Call, Call] = {}
    found: dict[tuple[str, Constant], Constant] = {}
    for step in made.steps():
        if not isinstance(step, Call) or not isinstance(step.op, Op) or step in folded:
            continue
        for name, layout in LAYOUTS.items():
            attrs = layout.attrs(step) if winograd or layout.op is not WINOGRAD else None
            if attrs is None:
                continue
            given = made.resolved(step.args[layout.operand])
            source = given if isinstance(given, Constant) else folded.get(given)
            if source is None:
                continue
            if (name, source) not in found:
                called = f"{source.name}_{name.replace(' ', '_')}" if source.name else ""
                found[name, source] = constant(layout.function(source.value), source.dtype, name=called)
            args = list(step.args)
            args[layout.operand] = found[name, source]
            calls[step] = Call(layout.op or step.op, tuple(args), attrs, name=step.name, span=step.span)
            break
    return LaidOut(calls, {made: key for key, made in found.items()})
