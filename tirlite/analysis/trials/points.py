"""Picks points that run what loops and conditions hold: some iterations, each with its variables' values."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tirlite.analysis.trials.values import Array, Cell, constant, trial_value
from tirlite.ir import Buffer, Expr, For, Var
from tirlite.record import record

_Values: TypeAlias = "dict[Var | Buffer | Cell, Array]"


@record(frozen=False, eq=False)
class Points:
    """So many points. Each belongs to a `context`, one iteration of all loops outside of the one that is looked at, and
    has the variable of that loop in `iteration`.

    `values` grows as variables and views are declared in the block that the points run.
    """

    count: int
    values: _Values
    context: Array
    iteration: Array

    def where(self, holds: Array) -> Points:
        """Those points at which a condition holds."""
        mask = np.broadcast_to(holds.all(axis=1), self.count)
        return self if mask.all() else self._chosen(np.flatnonzero(mask))

    def iterations(self, loop: For, most: int) -> Points | None:
        """The iterations of `loop`, for each point `most` at most: the first ones, and the last one.

        None where they are not known.
        """
        start, stop = trial_value(loop.start, self.values), trial_value(loop.stop, self.values)
        if start is None or stop is None:
            return None
        first, last = np.broadcast_to(start, (self.count, 1)), np.broadcast_to(stop, (self.count, 1))
        trips = np.maximum(0, -((first - last) // loop.step)).reshape(-1)
        taken = np.minimum(trips, most)
        ones = bool((taken == 1).all())
        inner = self if ones else self._chosen(np.repeat(np.arange(self.count), taken))
        number = np.arange(inner.count) - np.repeat(np.cumsum(taken) - taken, taken)
        if most > 1:
            number = np.where((number == most - 1), np.repeat(trips, taken) - 1, number)
        begun = first if ones else np.repeat(first, taken, axis=0)
        inner.values[loop.var] = begun + loop.step * number[:, np.newaxis]
        return inner

    def as_iteration(self, var: Var) -> Points:
        """The same points, those before `var` was counted being their contexts."""
        return Points(self.count, self.values, self.context, self.spread(self.values[var])[:, 0])

    def as_contexts(self) -> Points:
        """The same points, each a context of its own."""
        return Points(self.count, dict(self.values), np.arange(self.count), self.iteration)

    def spread(self, value: Array) -> Array:
        """A value with an entry for each point."""
        return np.broadcast_to(value, (self.count, value.shape[1]))

    def declare(self, name: Var | Buffer | Cell, value: Expr) -> None:
        """Gives a variable or a cell its value, or a view the byte where it begins; none where that is not known."""
        known = trial_value(value, self.values)
        if known is None:
            self.values.pop(name, None)
        else:
            self.values[name] = known

    def _chosen(self, places: Array) -> Points:
        values = {name: value if len(value) == 1 else value[places] for name, value in self.values.items()}
        return Points(len(places), values, self.context[places], self.iteration[places])


def one_point(values: dict[Var, int]) -> Points:
    """The point at which the parameters of a function have these values."""
    known: _Values = {var: constant(value, var.dtype.numpy.type) for var, value in values.items()}
    nothing = np.zeros(1, np.int64)
    return Points(1, known, nothing, nothing)
