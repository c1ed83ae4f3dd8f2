"""Picks points that run what loops and conditions hold: some iterations, each with its variables' values.

An integer expression is evaluated at many points at once. Arrays have an axis for the points and one for the lanes;
either has length 1 where there is no difference along it. Of accesses at points, two are looked for that touch one
byte of an allocation in two iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tirlite.diag import Span
from tirlite.ir import And, Broadcast, Buffer, Cast, Expr, For, IntImm, Load, Or, Ramp, Select, Steps, Store, Var, run
from tirlite.ir.arithmetic import FUNCTIONS, Function
from tirlite.ir.checked import bare, is_checked
from tirlite.record import record
from tirlite.sizes import Dim

Array: TypeAlias = npt.NDArray[Any]

_FUNCTIONS: Mapping[type[Expr], Function] = {**FUNCTIONS, And: np.logical_and, Or: np.logical_or, Select: np.where}


@record
class Cell:
    """What is in a buffer of one element."""

    buffer: Buffer


# Variables and cells by their values, and views by the bytes where they begin in their allocations.
Values: TypeAlias = "dict[Var | Buffer | Cell, Array]"


def constant(value: int, kind: type[np.generic] = np.int64) -> Array:
    """One value for all points and lanes."""
    return np.full((1, 1), value, kind)


def trial_value(expr: Expr, values: Values) -> Array | None:
    """None where the value depends on memory, on calls, or on a variable that has no value."""
    return run(_value(expr, values))


def _value(expr: Expr, values: Values) -> Steps[Array | None]:
    if isinstance(expr, Var):
        return values.get(expr)
    if isinstance(expr, Load):
        return values.get(Cell(expr.buffer))
    if not expr.dtype.is_bits:
        return None
    if isinstance(expr, IntImm):
        return constant(expr.value, expr.dtype.numpy.type)
    if is_checked(expr):
        found: Array | None = yield _value(bare(expr), values)
        return found
    function = _FUNCTIONS.get(type(expr))
    if function is None and not isinstance(expr, Cast | Ramp | Broadcast):
        return None
    operands = []
    for child in expr.children():
        operand = yield _value(child, values)
        if operand is None:
            return None
        operands.append(operand)
    if function is not None:
        result: Array = function(*operands)
        return result
    if isinstance(expr, Ramp):
        steps: Array = operands[0] + operands[1] * np.arange(expr.lanes, dtype=operands[0].dtype)
        return steps
    converted: Array = operands[0].astype(expr.dtype.numpy)
    return converted


@record(frozen=False, eq=False)
class Points:
    """`count` points. Each belongs to a `context`, one iteration of all loops around the one that is looked at, and has
    the variable of that loop in `iteration`.

    `values` grows as variables and views are declared in the block that the points run.
    """

    count: int
    values: Values
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

    def apart(self) -> Points:
        """The same points, with declarations of their own from here on."""
        return Points(self.count, dict(self.values), self.context, self.iteration)

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
    known: Values = {var: constant(value, var.dtype.numpy.type) for var, value in values.items()}
    nothing = np.zeros(1, np.int64)
    return Points(1, known, nothing, nothing)


def sizes_from(variables: Sequence[Var], least: int, most: int | None = None) -> dict[Var, int]:
    """Values that the facts of dims allow: the first at least so large, each further one larger by one.

    Those without facts are no larger than `most`.
    """
    values = {}
    for number, var in enumerate(variables):
        dim = var.dim or Dim(var.name, min=0, max=most)
        values[var] = dim.nth(max(0, -(-(least + number - dim.low) // dim.multiple_of)))
    return values


@record(eq=False)
class TrialAccess:
    """What an access touches: for each point that runs it, and each lane, the first byte in the allocation."""

    node: Load | Store
    span: Span | None
    points: Points
    bytes: Array


def access_at(node: Load | Store, span: Span | None, points: Points) -> TrialAccess | None:
    """The access at those of the points at which its indices are in bounds; None where an index is not known."""
    buffer = node.buffer
    flat, inside = constant(0), np.full((1, 1), True)
    for index, extent in zip(node.indices, buffer.shape, strict=True):
        place, length = trial_value(index, points.values), trial_value(extent, points.values)
        if place is None or length is None:
            return None
        inside = inside & (place >= 0) & (place < length)
        flat = flat * length + place
    valid = points.where(inside)
    kept = flat if valid is points or len(flat) == 1 else flat[np.broadcast_to(inside.all(axis=1), points.count)]
    start = valid.values.get(buffer, constant(0))
    return TrialAccess(node, span, valid, valid.spread(start + kept * buffer.dtype.bytes))


def meeting(accesses: Sequence[TrialAccess]) -> tuple[tuple[TrialAccess, int], tuple[TrialAccess, int]] | None:
    """Two accesses of one byte in one context and different iterations, the first a write, each with its point."""
    unit = gcd(*(access.node.buffer.dtype.bytes for access in accesses))
    if any((access.bytes % unit).any() for access in accesses):
        unit = 1
    keys, owners, places = _units(accesses, unit)
    iterations = np.concatenate([each.points.iteration for each in accesses])[places]
    writes = np.array([isinstance(each.node, Store) for each in accesses])[owners]
    order = np.argsort(keys, kind="stable")
    keys, owners, places = keys[order], owners[order], places[order]
    iterations, writes = iterations[order], writes[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    least, most = np.minimum.reduceat(iterations, starts), np.maximum.reduceat(iterations, starts)
    bad = np.flatnonzero((least != most) & np.logical_or.reduceat(writes, starts))
    if not len(bad):
        return None
    group = bad[np.argmin(least[bad])]
    end = starts[group + 1] if group + 1 < len(starts) else len(keys)
    members = np.arange(starts[group], end)
    writers = members[writes[members]]
    first = writers[np.argmin(iterations[writers])]
    others = members[iterations[members] != iterations[first]]
    second = others[np.argmin(iterations[others])]
    begins = np.cumsum([0, *(each.points.count for each in accesses)])
    one, other = int(owners[first]), int(owners[second])
    return (accesses[one], int(places[first] - begins[one])), (accesses[other], int(places[second] - begins[other]))


def _units(accesses: Sequence[TrialAccess], unit: int) -> tuple[Array, Array, Array]:
    """For each unit of memory that is touched: its number and context as one key, the access, and the point.

    Points are counted through all accesses.
    """
    keys, owners, places = [], [], []
    contexts = 1 + max(int(each.points.context.max()) for each in accesses)
    begin = 0
    for number, access in enumerate(accesses):
        parts = access.node.buffer.dtype.bytes // unit
        units = access.bytes[:, :, np.newaxis] // unit + np.arange(parts)
        key = (units * contexts + access.points.context[:, np.newaxis, np.newaxis]).reshape(-1)
        keys.append(key)
        owners.append(np.full(len(key), number))
        places.append(begin + np.repeat(np.arange(access.points.count), len(key) // access.points.count))
        begin += access.points.count
    return np.concatenate(keys), np.concatenate(owners), np.concatenate(places)
