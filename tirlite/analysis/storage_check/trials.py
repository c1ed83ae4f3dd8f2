"""Tries to refute a proof that one resident may overwrite another in place, by computing accesses at some sizes.

For some sizes that the facts of the dims allow, and some iterations of the loops, it computes which bytes are written
and used, and when: a write of the destination before a use of the source, at the same byte, refutes the proof. Arrays
that are only read are taken to hold one number everywhere. Accesses that depend on other memory are left out, and so
are calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tirlite.analysis.param_uses import Use, uses_of
from tirlite.analysis.storage_check.resident import Flow, Happening, ProgramPart
from tirlite.analysis.trials.points import Array, Cell, Points, access_at, constant, one_point, sizes_from, trial_value
from tirlite.ir.dtype import TypeCode
from tirlite.ir.expr import Buffer, Expr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import For, ForKind, IfThenElse, Let, Stmt, Store, View, While
from tirlite.ir.walk import statements, variables_in
from tirlite.record import cached_property, record

_UNORDERED = (ForKind.PARALLEL, ForKind.THREAD, ForKind.VECTORIZED)
# The sizes that are tried: the first dim is at least so large, each further one larger by one, as far as facts allow.
# Where borders meet, that is in the smallest ones.
_SIZES = (18, 3, 1)
# Numbers of which no more is known are no larger.
_MOST = 100
# What the arrays that are only read hold then.
_ELEMENT = 4
# Of these nothing is computed.
_NOT_IN_NUMPY = (TypeCode.BFLOAT, TypeCode.HANDLE)
# At how many points an access is looked at, and how many iterations of one loop are taken for it at most.
_POINTS = 128
_ITERATIONS = 34
# This many pairs of lanes are compared at once.
_COMPARED = 1 << 16


@record(eq=False)
class _Instances:
    """The instances of one access: for each point and lane the first byte, and the points."""

    happening: Happening
    path: tuple[ProgramPart, ...]
    points: Points
    bytes: Array
    width: int


class Trials:
    """Tries pairs of one function, as many as `left` says."""

    def __init__(self, func: PrimFunc) -> None:
        self.left = 200
        scalars = [p for p in func.params if isinstance(p, Var) and p.dtype.code not in _NOT_IN_NUMPY]
        self._numbers = (*func.dims, *scalars)
        self._lets: dict[Var, Expr] = {}
        self._views: dict[Buffer, View] = {}
        uses = uses_of(func)
        self._read = [b for b, use in uses.items() if use == Use.READ and b.dtype.code not in _NOT_IN_NUMPY]
        for stmt in statements(func.body):
            if isinstance(stmt, Let):
                self._lets[stmt.var] = stmt.value
            elif isinstance(stmt, View):
                self._views[stmt.buffer] = stmt

    def refuted(self, writes: Sequence[Happening], uses: Sequence[Happening], home: ProgramPart) -> Stmt | None:
        """The use that comes after a write to the same byte, in one run of the body `home`; None if none is found."""
        if self.left <= 0:
            return None
        self.left -= 1
        with np.errstate(all="ignore"):
            for start in self._starts:
                written = [made for each in writes if (made := self._instances(each, home, start)) is not None]
                for use in uses:
                    used = self._instances(use, home, start) if written else None
                    if used is not None and any(_comes_before(each, used) for each in written):
                        return use.stmt
        return None

    @cached_property
    def _starts(self) -> tuple[Points, ...]:
        """Where the function begins, at each of the sizes that are tried. There may be very many arrays."""
        cells: dict[Var | Buffer | Cell, Array] = {
            Cell(each): constant(_ELEMENT, each.dtype.numpy.type) for each in self._read
        }
        starts = [one_point(sizes_from(self._numbers, least, _MOST)) for least in _SIZES]
        return tuple(Points(each.count, {**each.values, **cells}, each.context, each.iteration) for each in starts)

    def _instances(self, happening: Happening, home: ProgramPart, start: Points) -> _Instances | None:
        node = happening.node
        if not isinstance(node, Load | Store):
            return None
        path = tuple(reversed([*happening.region.around()]))
        points: Points | None = start.apart()
        loops = sum(region.flow is Flow.LOOP for region in path if region.depth > home.depth)
        most = min(_ITERATIONS, max(2, int(_POINTS ** (1 / max(1, loops)))))
        for region in path:
            points = None if points is None else self._entered(region, points, most if region.depth > home.depth else 1)
        if points is None or not points.count:
            return None
        buffer = node.buffer
        self._learn(points, (*node.indices, *buffer.shape))
        base: Array = constant(0)
        while buffer in self._views:
            view = self._views[buffer]
            self._learn(points, (view.byte_offset,))
            offset = trial_value(view.byte_offset, points.values)
            if offset is None:
                return None
            base, buffer = base + offset, view.source
        points.values[node.buffer] = base
        access = access_at(node, None, points)
        if access is None or not access.points.count:
            return None
        inner = tuple(region for region in path if region.depth > home.depth)
        return _Instances(happening, inner, access.points, access.bytes, node.buffer.dtype.bytes)

    def _entered(self, region: ProgramPart, points: Points, most: int) -> Points | None:
        """The points that run the body of a region; None where they are not known."""
        composite = region.composite
        if isinstance(composite, For):
            self._learn(points, (composite.start, composite.stop))
            return points.iterations(composite, most)
        if isinstance(composite, IfThenElse):
            self._learn(points, (composite.condition,))
            holds = trial_value(composite.condition, points.values)
            return points if holds is None else points.where(~holds if region.is_else else holds)
        return points

    def _learn(self, points: Points, exprs: Sequence[Expr]) -> None:
        """Gives the variables in some expressions their values, where these are known."""
        stack = [var for expr in exprs for var in self._unknown(expr, points)]
        tried: set[Var] = set()
        while stack:
            var = stack[-1]
            needed = [] if var in tried else list(self._unknown(self._lets[var], points))
            tried.add(var)
            if needed:
                stack += (each for each in needed if each not in tried)
                if stack[-1] is not var:
                    continue
            stack.pop()
            if var not in points.values:
                points.declare(var, self._lets[var])

    def _unknown(self, expr: Expr, points: Points) -> Iterator[Var]:
        found = variables_in(expr)
        return (var for var in found if var in self._lets and var not in points.values)


def _comes_before(write: _Instances, use: _Instances) -> bool:
    """Whether some instance of the write may run before one of the use that touches the same byte."""
    mine, other = write.points.spread(write.bytes), use.points.spread(use.bytes)
    # Few instances have bytes between the first and the last one of the other: the lanes of those alone are compared.
    begins = mine.min(axis=1)[:, np.newaxis] < other.max(axis=1) + use.width
    ends = other.min(axis=1) < mine.max(axis=1)[:, np.newaxis] + write.width
    if not (begins & ends).any():
        return False
    pairs = np.argwhere(begins & ends & _earlier(write, use))
    step = max(1, _COMPARED // (mine.shape[1] * other.shape[1]))
    for at in range(0, len(pairs), step):
        first, second = pairs[at : at + step].T
        apart = mine[first][:, :, np.newaxis] - other[second][:, np.newaxis, :]
        if ((apart > -write.width) & (apart < use.width)).any():
            return True
    return False


def _earlier(write: _Instances, use: _Instances) -> Array:
    """For each instance of the write and each of the use, whether the one may run before the other."""
    shape = (write.points.count, use.points.count)
    found, equal = np.zeros(shape, bool), np.ones(shape, bool)
    for one, other in zip(write.path, use.path, strict=False):
        if one is not other:
            # In branches of one `if`, no two instances run in the same iteration.
            return found if one.flow is Flow.ONCE else found | (equal & _is_first(write, use))
        loop = one.composite
        if one.flow is not Flow.LOOP:
            continue
        if not isinstance(loop, For):
            assert isinstance(loop, While)
            return found | equal
        a = write.points.spread(write.points.values[loop.var])[:, :1]
        b = use.points.spread(use.points.values[loop.var])[:, 0][np.newaxis, :]
        if loop.kind in _UNORDERED:
            found = found | (equal & (a != b))
        else:
            found = found | (equal & ((a < b) if loop.step > 0 else (a > b)))
        equal = equal & (a == b)
    return found | (equal & _is_first(write, use))


def _is_first(write: _Instances, use: _Instances) -> bool:
    return write.happening.position < use.happening.position
