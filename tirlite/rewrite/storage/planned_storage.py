"""Merges the allocations of a function in normal form by a plan.

Each pool of the plan becomes one Allocate, at the top of the function or of the parallel or thread-bound loop that it
is attached to. The buffers that live there become views of it, declared in place of their Allocates; loads and stores
stay as they are. Source: TVM's storage_rewrite (2017), with the plan made by `tirlite.plan`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from tirlite.analysis.facts import Facts
from tirlite.diag import CapacityError, InternalError, Message
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Buffer, Expr, IntImm, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.node import Node
from tirlite.ir.rewrite import Rule, rewrite
from tirlite.ir.stmt import Allocate, For, ForKind, Let, SeqStmt, Stmt, Store, View, While
from tirlite.ir.walk import statements_of, variables_in
from tirlite.names import UniqueNames
from tirlite.plan import Plan, StorageScope, solve
from tirlite.plan.solve import Doubt, without_doubt
from tirlite.plan.strategy import Strategy
from tirlite.record import cached_property, replace
from tirlite.rewrite.options import StorageOptions
from tirlite.rewrite.pipeline import Rewritten, after
from tirlite.rewrite.storage.split_webs import SplitWebs
from tirlite.rewrite.storage.storage_problem import (
    StorageProblem,
    attach_loop,
    is_smaller,
    storage_problem,
    weaker_problems,
)
from tirlite.sizes import Size, ceildiv, is_at_most, round_up

if TYPE_CHECKING:
    from tirlite.analysis import StorageFault
    from tirlite.rewrite.storage.shape_rewrite import Declarations

# Strategies with an allocation per slot, which need only natural alignment.
_WHOLE_SLOTS = ("none", "tvm", "share")
# Strategies that give up alignment to cache lines if that saves bytes.
_FREE = ("auto", "pack", "exact")
# Strategies that do not split buffers.
_AS_GIVEN = ("none", "tvm")

# The most frequent statements, which contain no others.
_LEAVES: frozenset[type[Stmt]] = frozenset((Allocate, Store))

_Planned: TypeAlias = tuple[Facts, StorageProblem, Plan]


class UnsafeRewrite(Message):
    """A rewritten function does not read what the function that was given would have read.

    Example: None is known: this is a fault of tirlite.
    Fix: Report it, with the function as it prints; take the strategy `none` meanwhile.
    """

    raises = InternalError
    title = "the storage of `{function}` under strategy `{strategy}` is not safe: {fault}"
    label = "here"
    related_label = "because of this"
    help = "this is a fault of tirlite; please report it with the function, `print(kernel.ir)`"


def rewritten(facts: Facts, chosen: StorageOptions) -> Rewritten:
    """A function in normal form, rewritten as `StorageRewrite` says, with its errors."""
    by_shape = _by_shape(chosen, facts) if chosen.strategy == "per_shape" else None
    if by_shape is not None:
        return by_shape

    def attempt(strategy: str | Strategy) -> Rewritten | Doubt:
        if strategy == chosen.strategy:
            return _merged(facts, chosen)
        return _merged(facts, replace(chosen, strategy=strategy, match_range=None))

    return without_doubt(chosen.strategy, attempt)


def _merged(given: Facts, chosen: StorageOptions) -> Rewritten | Doubt:
    """The function rewritten under one strategy, or the doubt if its safety is not proved."""
    facts, found, plan = _planned(chosen, given)
    func, merge = facts.func, chosen.strategy != "none"
    result = _Merger(func, found, plan).rewrite() if merge else _without(func, found.dead)
    fault = _fault(func, result, found, plan.in_place) if chosen.check and result is not func else None
    if fault is None:
        return Rewritten(result, plan)
    unsafe = _unsafe(fault, func, plan.strategy)
    if fault.is_doubt:
        return Doubt(unsafe)
    raise unsafe.error()


def _by_shape(chosen: StorageOptions, facts: Facts) -> Rewritten | None:
    """The function with a parameter for each call's plan; only memories of constant sizes are planned here.

    None if all sizes are constant.
    """
    found = _found(chosen, facts)
    if not found.problem.dims:
        return None
    if chosen.capacity is not None:
        found = found.with_capacity(chosen.capacity)
    from tirlite.rewrite.storage.shape_rewrite import ByShape, declarations

    engine = chosen.searcher()
    shapes = ByShape.of(found, chosen.budget, engine)
    split = after(SplitWebs(), facts) if chosen.webs else facts
    if split is not facts:
        parts = _found(chosen, split)
        parts = parts if chosen.capacity is None else parts.with_capacity(chosen.capacity)
        others = ByShape.of(parts, chosen.budget, engine)
        if others.plans.typical < shapes.plans.typical:
            facts, found, shapes = split, parts, others
    func, plans = facts.func, shapes.plans
    merger = _Merger(func, found, plans.constant)
    declared = declarations(found, plans, merger.fresh)
    result = declared.wrapped(merger.rewrite(declared), plans)
    if chosen.check:
        taken = (*plans.constant.in_place, *plans.in_place)
        fault = _fault(func, result, found, taken)
        if fault is not None:
            raise _unsafe(fault, func, "per_shape").error()
    return Rewritten(result, shapes)


def _planned(chosen: StorageOptions, facts: Facts) -> _Planned:
    """The function, its problem and its plan: as it is or with its webs split, whichever takes less."""
    split = facts if not chosen.webs or chosen.strategy in _AS_GIVEN else after(SplitWebs(), facts)
    if split is facts:
        return _plan_of(chosen, facts)
    try:
        whole = _plan_of(chosen, facts)
    except CapacityError:
        return _plan_of(chosen, split)
    parts = _plan_of(chosen, split)
    if _is_less(parts, whole) or (chosen.strategy in _FREE and _is_less_in_slots(chosen, facts, split, parts, whole)):
        return parts
    return whole


def _is_less(first: _Planned, second: _Planned) -> bool:
    """Whether one plan takes at most as many bytes as the other for all values of the dims, and not always as many."""
    one, other = first[2].total, second[2].total
    # Not `prove_lt`, which fails if both are 0 for a dim of 0.
    return is_at_most(one, other) and not is_at_most(other, one)


def _is_less_in_slots(chosen: StorageOptions, facts: Facts, split: Facts, parts: _Planned, whole: _Planned) -> bool:
    """Whether offsets do not decide which takes less, but `share` does with split webs: no plan may take more."""
    if is_at_most(whole[2].total, parts[2].total):
        return False
    slots = replace(chosen, strategy="share", capacity=None)
    try:
        return _is_less(_plan_of(slots, split), _plan_of(slots, facts))
    except CapacityError:
        return False


def _plan_of(chosen: StorageOptions, facts: Facts) -> _Planned:
    found = _found(chosen, facts)
    plan = _solved(chosen, found)
    for weaker in weaker_problems(facts.func, found) if chosen.strategy in _FREE else ():
        if plan.proved_optimal:
            break
        other = _solved(chosen, weaker)
        if is_smaller(other, plan):
            found, plan = weaker, other
    return (facts, found, plan) if chosen.capacity is None else _within(chosen, chosen.capacity, facts, found, plan)


def _within(chosen: StorageOptions, capacity: int, facts: Facts, found: StorageProblem, plan: Plan) -> _Planned:
    """The plan if it fits the capacity, or one made to fit, with less alignment if necessary."""
    limited = found.with_capacity(capacity)
    try:
        return facts, limited, solve(limited.problem, lambda problem: replace(plan, problem=problem))
    except CapacityError as error:
        refused = error
    weaker = weaker_problems(facts.func, found, at_any_price=True) if chosen.strategy in _FREE else ()
    for each in (found, *weaker):
        limited = each.with_capacity(capacity)
        try:
            return facts, limited, _solved(chosen, limited)
        except CapacityError as error:
            refused = error
    raise refused


def _solved(chosen: StorageOptions, found: StorageProblem) -> Plan:
    limits = chosen.budget, chosen.time_limit, chosen.searcher()
    return solve(found.problem, chosen.strategy, *limits, cache=chosen.cache, match_range=chosen.match_range)


def _found(chosen: StorageOptions, facts: Facts) -> StorageProblem:
    lines, in_place = chosen.strategy not in _WHOLE_SLOTS, chosen.in_place and chosen.strategy != "none"
    if chosen.strategy == "per_shape" and calls_in(facts.func.body):
        # Cache lines are used for each shape if they cost no bytes; see `weaker_problems` for why only here.
        lines = False
    found = storage_problem(facts, chosen.target, lines=lines, in_place=in_place, exact_dtype=chosen.exact_dtype)
    if chosen.strategy != "tvm" or not found.problem.in_place:
        return found
    from tirlite.analysis.in_place.candidates import taken_by_tvm

    return found.with_pairs(taken_by_tvm(facts.func, found.in_place))


def _fault(
    func: PrimFunc, result: PrimFunc, found: StorageProblem, in_place: Iterable[tuple[str, str]]
) -> StorageFault | None:
    buffers = {name: lifetime.buffer for name, lifetime in found.lifetimes.items()}
    taken = {(buffers[destination], buffers[source]) for destination, source in in_place}
    proofs = [p for p in found.in_place if (p.destination, p.source) in taken and p.allowed]
    from tirlite.analysis import StorageFault, check_storage

    verdict = check_storage(func, result, proofs)
    return verdict if isinstance(verdict, StorageFault) else None


def _unsafe(fault: StorageFault, func: PrimFunc, strategy: str) -> UnsafeRewrite:
    return UnsafeRewrite(func.name, strategy, fault.text, span=fault.span, related=fault.related)


def _without(func: PrimFunc, dead: frozenset[Buffer]) -> PrimFunc:
    """`func` without the declarations of buffers that are never accessed."""
    dropped = set(dead)

    def allocate(node: Allocate) -> Node | tuple[Stmt, ...]:
        return () if node.buffer in dropped else node

    def view(node: View) -> Node | tuple[Stmt, ...]:
        if node.source in dropped:
            dropped.add(node.buffer)
            return ()
        return node

    return rewrite(func, {Allocate: allocate, View: view}) if dropped else func


def _repeated(func: PrimFunc) -> set[Buffer]:
    """The buffers allocated in a loop that repeats the allocation, unlike a parallel one."""
    found: set[Buffer] = set()
    stack: list[tuple[Stmt, bool]] = [(func.body, False)]
    while stack:
        stmt, repeats = stack.pop()
        if isinstance(stmt, Allocate):
            found.add(stmt.buffer)
        if isinstance(stmt, For) and stmt.kind in (ForKind.PARALLEL, ForKind.THREAD):
            repeats = False
        elif isinstance(stmt, (For, While)):
            repeats = True
        stack += [
            (child, repeats)
            for child in stmt.children()
            if (repeats or type(child) not in _LEAVES) and isinstance(child, Stmt)
        ]
    return found


class _Merger:
    """One rewrite: makes the allocation of each pool and the view of each buffer."""

    def __init__(self, func: PrimFunc, found: StorageProblem, plan: Plan) -> None:
        self.func = func
        self.found = found
        self.plan = plan
        self.extents = found.extents
        self.entry_variables = {*func.params, *func.dims}
        self.repeated = _repeated(func)
        self.views: dict[Buffer, View | None] = {}  # what replaces each planned Allocate
        self.offsets: dict[Size, Expr] = {}
        self.attached: dict[Var | None, list[Stmt]] = {}

    @cached_property
    def names(self) -> UniqueNames:
        """The names used in the function, and those given to arenas."""
        body = self.func.body
        loops = [each.var for each in statements_of(body, For)]
        lets = [each.var for each in statements_of(body, Let)]
        views = [each.buffer for each in statements_of(body, View)]
        return UniqueNames(each.name for each in (*self.entry_variables, *self.found.spans, *loops, *lets, *views))

    def fresh(self, wish: str) -> str:
        """An unused name like `wish`."""
        return self.names.unique(wish)

    def rewrite(self, by_shape: Declarations | None = None) -> PrimFunc:
        """The function with the pools of the plan, and with the declarations by shape."""
        if by_shape is not None:
            self.views.update(by_shape.views)
            for loop, arena in by_shape.arenas:
                self.attached.setdefault(loop, []).append(arena)
        for pools in self.arenas():
            self.merge(pools)
        rules: dict[type[Node], Rule] = {Allocate: self.allocate, For: self.loop}
        result = rewrite(_without(self.func, self.found.dead), rules)
        top = self.attached.get(None)
        return result.replaced(body=SeqStmt((*top, result.body), span=result.body.span)) if top else result

    def arenas(self) -> Iterable[tuple[str, ...]]:
        """The pools that share an allocation: all of one tagged memory together, every other by itself."""
        tagged: dict[str, list[str]] = {}
        for name, region in self.plan.pools.items():
            if StorageScope.parse(region.scope).is_special:
                tagged.setdefault(region.memory, []).append(name)
            else:
                yield (name,)
        yield from map(tuple, tagged.values())

    def merge(self, pools: tuple[str, ...]) -> None:
        """Declares an allocation for some pools of the plan, in order, and the views of the buffers in it."""
        members: list[tuple[Buffer, Size]] = []
        lifetimes, placements = self.found.lifetimes, self.plan.placements
        end: Size = 0
        for pool in pools:
            region = self.plan.pools[pool]
            start = round_up(end, region.align)
            end = start + region.size
            for name in self.plan.sharers(pool):
                members.append((lifetimes[name].buffer, start + placements[name].offset))
        storage = self.storage(members, end, max(self.plan.pools[pool].align for pool in pools))
        first = self.plan.sharers(pools[0])[0]
        loop = attach_loop(lifetimes[first].attach)
        self.attached.setdefault(loop, []).append(Allocate(storage, span=self.found.spans[members[0][0]]))
        for buffer, offset in members:
            self.views[buffer] = None if buffer is storage else self.view(buffer, storage, offset)

    def view(self, buffer: Buffer, storage: Buffer, offset: Size) -> View:
        if offset not in self.offsets:
            self.offsets[offset] = self.extents.expr(offset)
        return View(buffer, storage, self.offsets[offset], fresh=True, span=self.found.spans[buffer])

    def storage(self, members: list[tuple[Buffer, Size]], size: Size, align: int) -> Buffer:
        """The buffer of `size` bytes that contains the members at their offsets.

        That is the first member if all are alike and no loop declares it again; else a new one with one axis and the
        widest element type among them.
        """
        first = members[0][0]
        shape = self.extents_of(first)
        alike = None not in shape and all(
            offset == 0 and (buffer is first or (buffer.dtype == first.dtype and self.extents_of(buffer) == shape))
            for buffer, offset in members
        )
        widest, alignment = first.dtype, first.alignment
        for buffer, _ in members:
            if buffer.dtype is not widest:
                widest = self.wider(widest, buffer.dtype)
            if buffer.alignment > alignment:
                alignment = buffer.alignment
        # By default, an allocation is aligned to the largest power of two that divides its element size.
        if align > widest.bytes & -widest.bytes:
            alignment = max(alignment, align)
        if alike and alignment == first.alignment and self.can_move(first) and first not in self.repeated:
            return first
        extents = shape if alike else (ceildiv(size, widest.bytes),)
        exprs = tuple(self.extents.expr(extent) for extent in extents if extent is not None)
        name = self.fresh("arena")
        return replace(first, name=name, dtype=widest, shape=exprs, alignment=alignment, volatile=False)

    def extents_of(self, buffer: Buffer) -> tuple[Size | None, ...]:
        return tuple([self.extents.size(extent) for extent in buffer.shape])

    def wider(self, one: DType, other: DType) -> DType:
        """The type with more lanes; among equals the one with more bytes, or under `tvm` the first."""
        by_lanes = self.plan.strategy == "tvm"
        return max(one, other, key=lambda dtype: (dtype.lanes, 0 if by_lanes else dtype.bytes))

    def can_move(self, buffer: Buffer) -> bool:
        """Whether the buffer's shape can be evaluated at the top of the function."""
        unknown = [extent for extent in buffer.shape if type(extent) is not IntImm]
        return not unknown or all(node in self.entry_variables for node in variables_in(*unknown))

    def allocate(self, node: Allocate) -> Node | tuple[Stmt, ...]:
        if node.buffer not in self.views:
            return node
        view = self.views[node.buffer]
        return () if view is None else view

    def loop(self, node: For) -> Node:
        storage = self.attached.get(node.var)
        return node if storage is None else node.replaced(body=SeqStmt((*storage, node.body), span=node.body.span))
