"""Tensorize replaces a nest of loops by a kernel that computes the same in another way, say by vector instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.analysis.facts import Facts
from tirlite.analysis.loops.dependence import writes
from tirlite.diag import KernelRunError
from tirlite.ir.equal import structural_equal
from tirlite.ir.expr import Add, Buffer, Expr, Load, Ramp, Sub, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite, substitute
from tirlite.ir.shapes import constant_shape
from tirlite.ir.stmt import Allocate, For, ForKind, SeqStmt, Store
from tirlite.ir.walk import accesses_in, buffers_of, defined_in, mentions, statements_of, walk
from tirlite.record import record
from tirlite.rewrite.affine_exprs import folded, index_expr
from tirlite.rewrite.normalize import Normalize
from tirlite.schedules.handle import LoopName, chain_to
from tirlite.schedules.loop_facts import is_in_bounds
from tirlite.schedules.order import demand_any_order, settled
from tirlite.schedules.step import ScheduleStep, does_not_fit, with_loop
from tirlite.sizes import Size

_Array = npt.NDArray[Any]
# The implementation is tested on this many random inputs, and on all-minimum and all-maximum ones.
_TRIALS = 6
# Sums of integers this small are exact in every float type, in any grouping.
_SMALL = 5


@record
class Tensorize(ScheduleStep):
    """Replaces a loop that computes what the kernel `definition` computes by the kernel `implementation`.

    Both kernels take the same arrays, of constant shapes, and the definition is a single loop. The schedule's loop must
    equal it, on parts of its own arrays that are proved in bounds: each kernel array stands for the last axes of one,
    from some element on. An instruction is so described once: `tl.dot` in the implementation is one where the target
    has it.

    The interpreter tests that both kernels give the same bits, on random, least and greatest numbers; on small integers
    if a `tl.reduce` combines floats, since these sum exactly in any grouping. Refused if a result differs, if the loops
    differ, and if two kernel arrays would be one array that is written, since kernels' arrays do not overlap.
    """

    loop: LoopName
    definition: PrimFunc
    implementation: PrimFunc

    def rewritten(self, facts: Facts) -> PrimFunc:
        around = chain_to(facts.func, self.loop)
        loop = around[-1]
        demand_any_order(self, loop)
        definition, implementation = (Normalize()(each) for each in (self.definition, self.implementation))
        self._demand_same_arrays(definition, implementation)
        parts = _Match(self, facts, around, definition).parts()
        self._demand_apart(facts, loop, parts)
        if wrong := _difference(definition, implementation):
            raise does_not_fit(self, f"`{implementation.name}` does not do what `{definition.name}` says: {wrong}")
        own = dict(zip(implementation.params, definition.params, strict=True))

        def placed(node: Load | Store) -> Node:
            part = parts.get(own.get(node.buffer))  # type: ignore[arg-type]
            return node if part is None else node.replaced(buffer=part.buffer, indices=part.places(self, node.indices))

        rules: dict[type[Node], Rule] = {Load: placed, Store: placed}
        return settled(self, with_loop(facts, loop, rewrite(implementation.body, rules).stmts), around[:-1])

    def _demand_same_arrays(self, *funcs: PrimFunc) -> None:
        """Raises KernelError unless the kernels take the same arrays and only load and store elements."""
        taken: list[list[object]] = []
        for func in funcs:
            params = func.arrays
            taken.append([(each.dtype, constant_shape(each)) for each in params])
            if len(params) < len(func.params) or None in map(constant_shape, params):
                raise does_not_fit(self, f"`{func.name}` takes more than arrays of constant shapes")
            own = {*params, *(stmt.buffer for stmt in statements_of(func.body, Allocate))}
            for node in walk(func.body):
                used = [*buffers_of(node)]
                if used and (not isinstance(node, Load | Store) or used[0] not in own):
                    raise does_not_fit(self, f"`{func.name}` does more with its arrays than load and store elements")
        if taken[0] != taken[1]:
            raise does_not_fit(self, f"`{funcs[0].name}` and `{funcs[1].name}` take different arrays")

    def _demand_apart(self, facts: Facts, loop: For, parts: Mapping[Buffer, _ArrayOrigin]) -> None:
        """Raises KernelError if two arrays of the kernels would be one array that is written."""
        root = facts.definitions.root
        touched = facts.touches_in.get(loop, {})
        written = {each.buffer for each, touches in touched.items() if any(map(writes, touches))}
        seen: dict[Buffer, Buffer] = {}
        for param, part in parts.items():
            base = root(part.buffer)
            other = seen.setdefault(base, param)
            if other is not param and base in written:
                raise does_not_fit(
                    self, f"`{other.name}` and `{param.name}` would both be `{base.name}`, which is written"
                )


@record(eq=False)
class _ArrayOrigin:
    """The part of a buffer that a kernel's array stands for: from the element `first` on."""

    buffer: Buffer
    first: tuple[Expr, ...]

    def places(self, step: Tensorize, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The indices in the buffer for indices in the array, scalars or ramps."""
        outer = len(self.first) - len(indices)
        moved = (_moved(step, first, index) for first, index in zip(self.first[outer:], indices, strict=True))
        return (*self.first[:outer], *moved)


def _moved(step: Tensorize, first: Expr, index: Expr) -> Expr:
    if index.dtype.lanes == 1:
        return folded(Add(first, index))
    if not isinstance(index, Ramp):
        raise does_not_fit(step, "vectors of the implementation lie side by side, as `tl.ramp` says")
    return Ramp(folded(Add(first, index.base)), index.stride, index.lanes)


class _Match:
    """Matches a loop with the loop of a definition."""

    def __init__(self, step: Tensorize, facts: Facts, around: tuple[For, ...], definition: PrimFunc) -> None:
        self.step, self.facts, self.around, self.loop = step, facts, around, around[-1]
        self.params = definition.arrays
        stmts = definition.body.stmts
        if len(stmts) != 1 or not isinstance(stmts[0], For):
            raise does_not_fit(step, f"`{definition.name}` is not one loop")
        self.wanted = stmts[0]
        self.inside = defined_in(self.loop)

    def parts(self) -> dict[Buffer, _ArrayOrigin]:
        """The part that each array of the definition stands for. Raises KernelError if the loops differ."""
        self._demand_same_loops()
        pairs = [*zip(accesses_in(self.wanted), accesses_in(self.loop), strict=False)]
        found: dict[Buffer, _ArrayOrigin] = {}
        kept: dict[Node, Load | Store] = {}
        for wanted, mine in pairs:
            if wanted.buffer in self.params and type(wanted) is type(mine):
                first = self._first(wanted, mine)
                known = found.setdefault(wanted.buffer, _ArrayOrigin(mine.buffer, first))
                if known.buffer is not mine.buffer or not all(map(structural_equal, known.first, first)):
                    raise does_not_fit(self.step, f"`{wanted.buffer.name}` would be several parts of arrays")
                kept[mine] = wanted
        self._demand_equal(kept)
        for param in self.params:
            if param not in found:
                raise does_not_fit(self.step, f"the definition does not use `{param.name}`")
            self._demand_bounds(param, found[param])
        return found

    def _demand_same_loops(self) -> None:
        """Pairs the loops' variables. Raises KernelError unless paired loops have equal, constant counts."""
        space, self.values = self.facts.space, dict[Var, Expr]()
        ones, others = ([root, *statements_of(root.body, For)] for root in (self.wanted, self.loop))
        for wanted, mine in zip(ones, others, strict=False):
            count, values = space.size(mine.stop) - space.size(mine.start), wanted.values
            if wanted.kind is not mine.kind or wanted.step != mine.step:
                raise does_not_fit(self.step, f"the loop over `{mine.var.name}` is of another kind than that defined")
            if values is None or not isinstance(count, int) or -(-count // mine.step) != len(values):
                raise does_not_fit(
                    self.step, f"the loop over `{mine.var.name}` has not always as many iterations as that defined"
                )
            self.values[wanted.var] = folded(Add(folded(Sub(mine.var, mine.start)), wanted.start))
        self.loops: dict[Node, For] = dict(zip(others, ones, strict=False))

    def _first(self, wanted: Load | Store, mine: Load | Store) -> tuple[Expr, ...]:
        """Where the definition's array begins in the buffer: the difference of the two accesses' indices."""
        space, outer = self.facts.space, len(mine.indices) - len(wanted.indices)
        if outer < 0 or wanted.buffer.dtype != mine.buffer.dtype or any(i.dtype.lanes > 1 for i in mine.indices):
            raise does_not_fit(self.step, f"`{mine}` does not fit to `{wanted}`")
        first: list[Expr] = []
        for axis, index in enumerate(mine.indices):
            size: Size = space.size(index)
            if axis >= outer:
                size = size - space.size(substitute(wanted.indices[axis - outer], self.values))
            place = index_expr(size, space)
            if place is None or mentions(place, self.inside):
                raise does_not_fit(self.step, f"`{mine}` is not where `{wanted}` is in a part of `{mine.buffer.name}`")
            first.append(place)
        return tuple(first)

    def _demand_equal(self, kept: Mapping[Node, Load | Store]) -> None:
        """Raises KernelError if the loops differ in more than the position of their arrays."""
        entered: list[Node] = []

        def replaced(node: Load | Store) -> Node:
            other = kept.get(entered.pop())
            return node if other is None else node.replaced(buffer=other.buffer, indices=other.indices)

        def ranged(loop: For) -> Node:
            wanted = self.loops.get(entered.pop())
            if wanted is None:
                return loop
            value = folded(Add(folded(Sub(wanted.var, wanted.start)), loop.start))
            body = substitute(loop.body, {loop.var: value})
            return loop.replaced(var=wanted.var, start=wanted.start, stop=wanted.stop, body=body)

        rules: dict[type[Node], Rule] = {Load: replaced, Store: replaced, For: ranged}
        mine = rewrite(SeqStmt((self.loop,)), rules, enter=dict.fromkeys(rules, entered.append))
        difference = structural_equal(SeqStmt((self.wanted,)), mine)
        if not difference:
            raise does_not_fit(self.step, f"the loop is another one than that defined: {difference.difference}")

    def _demand_bounds(self, param: Buffer, part: _ArrayOrigin) -> None:
        """Raises KernelError unless the first and the last element of a part are proved in bounds."""
        shape = constant_shape(param)
        assert shape is not None
        ends = (*(0 for _ in range(len(part.first) - len(shape))), *(extent - 1 for extent in shape))
        for far in (tuple(0 for _ in ends), ends):
            corner = Load(part.buffer, tuple(folded(first + step) for first, step in zip(part.first, far, strict=True)))
            if not is_in_bounds(self.facts.func, self.around[:-1], corner):
                raise does_not_fit(self.step, f"the part of `{part.buffer.name}` is not proved to lie in bounds")


def _difference(definition: PrimFunc, implementation: PrimFunc) -> str:
    """The first difference seen between the two kernels' results, or a failure; empty if there is none."""
    from tirlite.interp import interpreter

    runs = [interpreter(each) for each in (definition, implementation)]
    is_regrouped = any(loop.kind is ForKind.REDUCE for loop in statements_of(definition.body, For))
    for given in _arrays(definition, is_regrouped):
        results: list[list[_Array]] = []
        for func, interpret in zip((definition, implementation), runs, strict=True):
            results.append([each.copy() for each in given])
            try:
                interpret(dict(zip(func.params, results[-1], strict=True)))
            except KernelRunError as error:
                return f"`{func.name}` fails: {str(error).splitlines()[0]}"
        for param, one, other in zip(definition.params, *results, strict=True):
            bits = [each.ravel().view(np.uint8).reshape(each.size, -1) for each in (one, other)]
            places = np.argwhere((bits[0] != bits[1]).any(axis=1))
            if len(places):
                at = np.unravel_index(int(places[0][0]), one.shape)
                return f"`{param.name}[{', '.join(map(str, at))}]` is {other[at]}, not {one[at]}"
    return ""


def _arrays(definition: PrimFunc, is_regrouped: bool) -> Iterator[list[_Array]]:
    """Inputs to test: least, greatest and random numbers."""
    from tirlite.interp.bfloat import is_bfloat, to_bfloat

    draw = np.random.default_rng(0)
    for number in range(_TRIALS + 2):
        made: list[_Array] = []
        for param in definition.arrays:
            kind, shape = param.dtype, constant_shape(param)
            assert shape is not None
            if kind.is_float:
                drawn = draw.integers(-_SMALL, _SMALL + 1, shape) if is_regrouped else draw.normal(size=shape) * 9
            elif number < 2:
                drawn = np.full(shape, (kind.min, kind.max)[number], kind.numpy)
            else:
                drawn = draw.integers(kind.min, kind.max, shape, kind.numpy, endpoint=True)
            made.append(to_bfloat(drawn) if is_bfloat(kind) else np.asarray(drawn).astype(kind.numpy))
        yield made
