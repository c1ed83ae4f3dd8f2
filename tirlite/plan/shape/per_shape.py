"""Plans a problem of symbolic sizes for each binding of its dims, as well as one of constant sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from tirlite.diag import CapacityError, InternalError, Message, PlanMessage, public
from tirlite.plan.arguments import demand
from tirlite.plan.draft import Draft
from tirlite.plan.in_place import Handover, chosen, grouped, handovers
from tirlite.plan.order import SizeOrder, samples
from tirlite.plan.plan import Plan
from tirlite.plan.problem import Problem
from tirlite.plan.request import Request
from tirlite.plan.search.engine import Engine
from tirlite.plan.shape.arena import Occupant, ShapeArena
from tirlite.plan.shape.formulas import Conditions, Values, evaluator, rows_of
from tirlite.plan.solve import solve
from tirlite.plan.strategies.auto import auto
from tirlite.plan.strategies.pack import assigned
from tirlite.record import cached_property, record, replace
from tirlite.sizes import Dim, Proof, Size, evaluate, prove_eq

# Sample bindings at which orders are sought.
_SAMPLES = 12
_TYPICAL = 4
# Further ones with odd values: only there an order can show that it leaves no padding.
_ODD = 4
# The plans that are kept, those of the bindings asked for last.
_KEPT = 4096
# Nodes of a search times places: by Python, as in strategy `auto`, and by an engine that is given.
_WORK, _ENGINE_WORK = 250_000, 25_000_000


class UnboundDim(PlanMessage):
    """A plan for one shape is asked for, and a dim has no value.

    Example: `PerShape(problem).plan_at({n: 4})`, where sizes depend on `m` as well.
    Fix: Give each dim a value.
    """

    code = "shape-without-value"
    title = "a plan for one shape needs a value for `{name}`"
    help = "sizes depend on {dims}"


class UnsafeShape(Message):
    """The plan for one shape does not hold.

    Example: None is known: this is a fault of tirlite.
    Fix: Report it, with the problem as `problem.to_json()` writes it; take the strategy `auto` meanwhile.
    """

    raises = InternalError
    title = "the plan at {values} is not safe: {fault}"
    help = "this is a fault of tirlite; please report it with the problem, `problem.to_json()`"


@record
class Kept:
    """How often a plan was there already, how often one was made, and how many are kept."""

    hits: int
    misses: int
    plans: int


class PerShape:
    """Plans of one problem, each for one binding of its dims, made when it is first asked for, and kept.

    Each is a list of numbers, `entries_at`: the bytes of each of `arenas`, then the offsets of `places`; `entry_of`
    gives the number of the entry that is the offset of a request. An arena is a memory with sizes that depend on dims;
    requests in the other memories are planned once, in `constant`. A place holds one request, or several of equal size,
    each in place of the one before. Only such pairs are taken. The numbers are checked before anyone sees them.

    What no order found at sample bindings packs to the lower bound is searched for `budget` nodes on `engine`, by
    default as many as take some tenths of a second of compiled code, or of Python where no engine is given. A plan
    depends on the binding alone, not on what was asked before. Places are aligned to `line` bytes where that costs
    none, for the sake of speed.
    """

    def __init__(
        self, problem: Problem, budget: int | None = None, engine: Engine | None = None, *, line: int = 1
    ) -> None:
        demand("PerShape", "problem", problem, "a Problem", fits=isinstance(problem, Problem))
        self.problem = problem
        self.dims: tuple[Dim, ...] = problem.dims
        homes = assigned(problem)
        moving = {homes[r.id] for r in problem.requests if not isinstance(r.size, int)}
        self.arenas = tuple(name for name in problem.memories if name in moving)
        order = SizeOrder(samples(self.dims, 4))
        # Pairs of one size, so that a place has one size all the time.
        equal = [h for h in handovers(problem) if prove_eq(h.destination.size, h.source.size) is Proof.YES]
        taken = chosen([h for h in equal if homes[h.source.id] in moving], order.value)
        self.in_place = tuple(each.pair for each in taken)
        self.constant = _constant(problem, homes, moving, budget, engine)
        self._set_places([r for r in problem.requests if homes[r.id] in moving], taken, homes)
        self._set_arenas(budget, engine, line)
        self._entries = lru_cache(maxsize=_KEPT)(self._made)

    def _set_places(self, requests: Sequence[Request], taken: Sequence[Handover], homes: Mapping[str, str]) -> None:
        groups = grouped(requests, taken)
        count = len(self.arenas)
        self.places: tuple[tuple[str, ...], ...] = tuple(tuple(r.id for r in group.members) for group in groups)
        self._homes = [self.arenas.index(homes[group.members[0].id]) for group in groups]
        memories = [self.problem.memories[self.arenas[home]] for home in self._homes]
        aligns = [max(memory.align, group.align) for memory, group in zip(memories, groups, strict=True)]
        fixed = [group.members[0].fixed for group in groups]
        self._place_data = [Occupant(g.live, a, f) for g, a, f in zip(groups, aligns, fixed, strict=True)]
        self.entry_of: Mapping[str, int] = {
            name: count + number for number, ids in enumerate(self.places) for name in ids
        }
        rows = [row for home in self.arenas for row in self._rows([r for r in requests if homes[r.id] == home])]
        self.conditions = Conditions((-1,) * count + tuple(self._homes), (1,) * count + tuple(aligns), tuple(rows))
        self.sizes: tuple[Size, ...] = (0,) * count + tuple(group.members[0].size for group in groups)
        self._sizes_at = evaluator(self.sizes, self.dims)

    def _rows(self, requests: Sequence[Request]) -> list[tuple[int, ...]]:
        """The entries of the requests of one memory that are live together; both of a pair in place are one."""
        rows = rows_of([request.live for request in requests])
        return [tuple(sorted({self.entry_of[requests[number].id] for number in row})) for row in rows]

    def _set_arenas(self, budget: int | None, engine: Engine | None, line: int) -> None:
        work = _WORK if engine is None else _ENGINE_WORK
        nodes = work // max(len(self.places), 1) if budget is None else budget
        count = len(self.arenas)
        self._numbers = [[n for n, home in enumerate(self._homes) if home == arena] for arena in range(count)]
        (first, *others), odd = samples(self.dims, _SAMPLES), samples(self.dims, _ODD, 1)
        bindings = [tuple(binding[dim] for dim in self.dims) for binding in (first, *odd, *others)]
        self._shape_arenas = []
        for numbers in self._numbers:
            looks = [partial(self._sizes_of, numbers, values) for values in dict.fromkeys(bindings)]
            places = [self._place_data[number] for number in numbers]
            self._shape_arenas.append(ShapeArena(places, looks, nodes, engine, line))

    def _sizes_of(self, numbers: Sequence[int], values: Values) -> list[int]:
        sizes = self._sizes_at(values)
        return [sizes[len(self.arenas) + number] for number in numbers]

    @property
    def kept(self) -> Kept:
        """What became of the bindings that were asked for."""
        info = self._entries.cache_info()
        return Kept(info.hits, info.misses, info.currsize)

    @cached_property
    def typical(self) -> int:
        """The bytes of some sample plans together, to compare problems over the same dims."""
        copies = [self.problem.memories[name].copies for name in self.arenas]
        total = 0
        for binding in samples(self.dims, _TYPICAL):
            entries = self._entries(tuple(binding[dim] for dim in self.dims))
            arenas = zip(copies, entries[: len(copies)], strict=True)
            total += evaluate(self.constant.total, binding) + sum(evaluate(count, binding) * b for count, b in arenas)
        return total

    def entries_at(self, values: Values) -> Values:
        """The entries for these values of `dims`, in their order: bytes of the arenas, and offsets of the places.

        Raises CapacityError where one of the memories is too small.
        """
        entries = self._entries(values)
        if any(self.problem.memories[name].capacity is not None for name in self.arenas):
            self._checked(dict(zip(self.dims, values, strict=True)), entries)
        return entries

    def _made(self, values: Values) -> Values:
        sizes = self._sizes_at(values)
        count = len(self.arenas)
        entries = [0] * len(sizes)
        for arena, (numbers, packer) in enumerate(zip(self._numbers, self._shape_arenas, strict=True)):
            offsets, entries[arena] = packer.packed([sizes[count + number] for number in numbers])
            for number, offset in zip(numbers, offsets, strict=True):
                entries[count + number] = offset
        fault = self.conditions.fault(entries, sizes)
        if fault:
            told = ", ".join(f"{dim.name} = {value}" for dim, value in zip(self.dims, values, strict=True))
            raise UnsafeShape(told, fault).error()
        return tuple(entries)

    @public
    def plan_at(self, binding: Mapping[Dim, int]) -> Plan:
        """The whole plan at a binding, with its constant problem, checked by `plan.check` as well.

        Raises PlanError for a dim without a value, CapacityError where a memory is too small.
        """
        missing = next((dim for dim in self.dims if dim not in binding), None)
        if missing is not None:
            raise UnboundDim(missing.name, ", ".join(f"`{dim.name}`" for dim in self.dims)).error()
        return self._checked(binding, self._entries(tuple(int(binding[dim]) for dim in self.dims)))

    def to_html(self, title: str = "Storage plan for each shape") -> str:
        """A page for browsers with the plans for some values of the dims; see `Plan.to_html`."""
        from tirlite.plan.report.browser.page import NoPlan, Shown, grid, plan_page

        plans: list[Shown | NoPlan] = []
        for binding in grid(self.dims):
            try:
                plan = self.plan_at(binding)
            except CapacityError as error:
                plans.append(NoPlan(binding, str(error.messages[0])))
            else:
                plans.append(Shown(plan, plan.lower_bound, binding))
        return plan_page(title, self.problem, plans)

    def _checked(self, binding: Mapping[Dim, int], entries: Values) -> Plan:
        return solve(self.problem.at(binding), lambda problem: self._plan(problem, entries))

    def _plan(self, problem: Problem, entries: Values) -> Plan:
        done = self.constant
        pairs = [*done.in_place, *self.in_place]
        draft = Draft(problem, {**done.placements}, {**done.pools}, {**done.decisions}, pairs)
        for number, name in enumerate(self.arenas):
            inside = [request.id for request in problem.requests if self._arena_of(request.id) == number]
            offsets = {each: entries[self.entry_of[each]] for each in inside}
            draft.put_arena(problem.memories[name], entries[number], offsets)
        return draft.plan("per_shape")

    def _arena_of(self, name: str) -> int:
        return self.conditions.arenas[self.entry_of[name]] if name in self.entry_of else -1


def _constant(
    problem: Problem, homes: Mapping[str, str], moving: set[str], budget: int | None, engine: Engine | None
) -> Plan:
    """The plan of what lives in memories whose sizes are all constant."""
    requests = tuple(replace(r, pools=(homes[r.id],)) for r in problem.requests if homes[r.id] not in moving)
    inside = {request.id for request in requests}
    pairs = tuple(pair for pair in problem.in_place if inside.issuperset(pair))
    pools = tuple(pool for pool in problem.memories.values() if pool.name not in moving)
    return solve(Problem(requests, pools, pairs), "auto", budget, engine=engine)


class ManyShapes(PlanMessage):
    """Strategy `per_shape` plans for one shape at a time, and sizes depend on dims without a value.

    Example: `plan.solve(problem, "per_shape")` of a problem with sizes over `n`.
    """

    title = "strategy `per_shape` makes a plan for each value of {dims}, and is given none"
    help = "ask `plan.PerShape(problem).plan_at(...)`, or give values with `--bind`"


def per_shape(problem: Problem) -> Plan:
    """The plan of `auto` for constant sizes. Raises PlanError where sizes depend on dims: see `plan.PerShape`."""
    if problem.dims:
        raise ManyShapes(", ".join(f"`{dim.name}`" for dim in problem.dims)).error()
    return replace(auto(problem), strategy="per_shape")
