"""The builder's method for loops, whose steps it builds by calling a function once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.closing import closed_over
from tirlite.graph.expr import Expr, Var
from tirlite.graph.extents import Extent, size_of
from tirlite.graph.loop import LoopFunction, LoopSteps
from tirlite.graph.operators.arrangement import Broadcast
from tirlite.graph.types import TensorType, same_type
from tirlite.ir import bool_, i64
from tirlite.sizes import Size

# Of the number of a step and the values that are carried: whether to go on, the values behind it, and its results.
Step: TypeAlias = "Callable[[Expr, Expr, list[Expr]], tuple[Expr, Sequence[Expr], Sequence[Expr]]]"


class LoopBuilder(CallBuilder):
    """Loops are run one step after the other, each on what the last one left."""

    def loop(
        self, step: Step, limit: Operand, carried: Sequence[Expr], *, going: Operand = True, most: Extent = 0
    ) -> tuple[Expr, list[Expr], list[Expr]]:
        """How many steps there were, the values that were carried to the end, and the results of all steps.

        `step` is called once, with the number of a step, whether the last one said to go on, and the values that are
        carried; it returns whether to go on, these values behind the step, and results of the step. The steps are those
        from 0 on below `limit`, an i64 without axes, until one says not to go on. Results of steps stand along a new
        first axis with the extent `most`, of which those behind the last step are left as they are.
        """
        span = self._here()
        name = self._name or "loop"
        start, last, go = (self._operand(each, None, span) for each in (np.int64(0), limit, going))
        number, bound, flag = (Var(each, TensorType((), of)) for each, of in _FIRST)
        states = [Var(f"carried{place}", each.type) for place, each in enumerate(carried)]
        goes, after, made = step(number, flag, [*states])
        for before, behind in zip(states, after, strict=True):
            if not same_type(before.type, behind.type):
                raise LoopSteps(name, f"makes {behind.type} of {before.type}", span=span).error()
        room: Size = size_of(most, span)
        inner = closed_over((number, bound, flag, *states), (goes, *after, *made), [room])
        params, outside = inner.params, inner.outside
        if (extents := inner.untold()) and (told := tuple(inner.outer(each) for each in extents)):
            # A tensor of no elements: it tells a step the dims that nothing else tells it.
            params += (Var("told", TensorType((*extents, 0), bool_)),)
            false = self.constant(np.array(False))
            outside += (self.call("broadcast_to", false, attrs=Broadcast((*told, 0))),)
        function = LoopFunction(name, params, inner.body, carried=len(states), most=inner.room[0], span=span)
        call = self.invoke(function, start, last, go, *carried, *outside, name=name)
        items = [self.item(call, place) for place in range(1 + len(after) + len(made))]
        return items[0], [*items[1 : 1 + len(after)]], [*items[1 + len(after) :]]


_FIRST = (("number", i64), ("limit", i64), ("going", bool_))
