"""Makes the declarations of a function that receives a plan of its storage with each call.

The function gets a last parameter `plan: i64[k]`. Each arena is an Allocate of `plan[a]` bytes, each buffer in it a
view at `plan[i]`; the attribute `disjoint` around the body lists what lies apart, for check and code generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tirlite.analysis import Lifetime
from tirlite.ir import Allocate, AttrKey, AttrStmt, Buffer, Load, PrimFunc, SeqStmt, Var, View, const, i64, u8
from tirlite.plan import PerShape
from tirlite.plan.search.engine import Engine
from tirlite.record import record
from tirlite.rewrite.storage.storage_problem import LINE_BYTES, StorageProblem, attach_loop


@record
class ByShape:
    """Makes plans at each call with a new shape. `variables` are the variables of `plans.dims`."""

    plans: PerShape
    variables: tuple[Var, ...]

    @classmethod
    def of(cls, found: StorageProblem, budget: int | None, engine: Engine | None = None) -> ByShape:
        """The plans for a function's problem, aligned to cache lines where that costs no bytes."""
        plans = PerShape(found.problem, budget, engine, line=LINE_BYTES)
        return cls(plans, tuple(found.extents.variables[dim] for dim in plans.dims))


@record
class Declarations:
    """The parameter, each arena with the loop that it is attached to, and the view that replaces each Allocate."""

    plan: Buffer
    arenas: tuple[tuple[Var | None, Allocate], ...]
    views: Mapping[Buffer, View]

    def wrapped(self, func: PrimFunc, plans: PerShape) -> PrimFunc:
        """`func`, which contains these declarations, as a function that takes a plan."""
        body = AttrStmt(AttrKey.DISJOINT, func.body, self.plan, plans.conditions.rows, span=func.body.span)
        return func.replaced(params=(*func.params, self.plan), defaults=(), body=SeqStmt((body,), span=func.body.span))


def declarations(found: StorageProblem, plans: PerShape, fresh: Callable[[str], str]) -> Declarations:
    """The declarations for the entries of the plans; `fresh` makes an unused name."""
    entries = len(plans.sizes)
    plan = Buffer(fresh("plan"), i64, (const(entries, i64),))
    members: list[list[tuple[str, Lifetime]]] = [[] for _ in plans.arenas]
    for name, entry in plans.entry_of.items():
        members[plans.conditions.arenas[entry]].append((name, found.lifetimes[name]))
    arenas: list[tuple[Var | None, Allocate]] = []
    views: dict[Buffer, View] = {}
    for number, inside in enumerate(members):
        first = inside[0][1]
        align = max(plans.conditions.aligns[plans.entry_of[name]] for name, _ in inside)
        arena = Buffer(fresh("arena"), u8, (_entry(plan, number),), first.buffer.scope, align)
        arenas.append((attach_loop(first.attach), Allocate(arena, span=found.spans[first.buffer])))
        for name, lifetime in inside:
            offset = _entry(plan, plans.entry_of[name])
            views[lifetime.buffer] = View(lifetime.buffer, arena, offset, fresh=True, span=found.spans[lifetime.buffer])
    return Declarations(plan, tuple(arenas), views)


def _entry(plan: Buffer, number: int) -> Load:
    return Load(plan, (const(number, i64),))
