"""Makes the storage problem of a function, with a request for each allocation that a plan may move.

This is the finder of the loop-nest level. Allocations that stay are listed beside the problem, with the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tirlite.analysis import Extents, Lifetime, Region, in_place_candidates
from tirlite.analysis.facts import Facts, of_facts
from tirlite.analysis.loops.patterns import distributed_loops
from tirlite.analysis.most_bytes import MostBytes
from tirlite.analysis.regions import regions_around
from tirlite.analysis.threads import Visibility
from tirlite.diag import KernelError, PlanMessage, Span
from tirlite.ir import Buffer, DType, For, PrimFunc, Var, calls_in
from tirlite.ir.shapes import least_alignment
from tirlite.names import UniqueNames
from tirlite.plan import Plan, Pool, Problem, Rank, Request, StorageScope
from tirlite.plan.order import drawn, samples
from tirlite.record import record, replace
from tirlite.sizes import Proof, Size, evaluate, is_at_most, prove_divides, round_up, upper_bound
from tirlite.target import MemoryInfo, Target

if TYPE_CHECKING:
    from tirlite.analysis import InPlaceProof

# A constant-size buffer up to this size is left to registers.
REGISTER_BYTES = 4


# A cache line: if offsets are chosen, buffers of at least this size are aligned to it.
LINE_BYTES = 64


class UnboundedInTaggedMemory(PlanMessage):
    """A buffer in tagged memory has no constant bound.

    Example: `tl.alloc(tl.f32[n], scope="local.UB")`, where `n` has no maximum.
    Fix: Declare one, `n = tl.dim("n", max=4096)`, or give the buffer a constant shape.
    """

    title = "buffer `{buffer}` in `{scope}` needs {size} bytes, which no constant is proved to bound"
    label = "allocated here"
    help = "give its dims a maximum, as in tl.dim({dim!r}, max=4096), or a constant shape"

    dim: str = "n"


@record
class StorageProblem:
    """The problem, the lifetime of each request by its id, and the allocations left out, with reasons in `kept`.

    `dead` are allocations that are never accessed, `in_place` the proofs for all pairs that might be in place, refused
    ones included, `extents` those of the function, `spans` the source places of its allocations.
    """

    problem: Problem
    lifetimes: dict[str, Lifetime]
    kept: dict[Buffer, str]
    dead: frozenset[Buffer]
    in_place: tuple[InPlaceProof, ...]
    extents: Extents
    spans: Mapping[Buffer, Span | None]

    def with_pairs(self, proofs: Iterable[InPlaceProof]) -> StorageProblem:
        """The problem with only the in-place candidates among `proofs`."""
        named = {name: lifetime.buffer for name, lifetime in self.lifetimes.items()}
        taken = {(proof.destination, proof.source) for proof in proofs}
        pairs = tuple(pair for pair in self.problem.in_place if (named[pair[0]], named[pair[1]]) in taken)
        return replace(self, problem=replace(self.problem, in_place=pairs))

    def with_capacity(self, capacity: int) -> StorageProblem:
        """The problem with this many bytes in each ordinary memory."""
        pools = (p if p.capacity is not None else replace(p, capacity=capacity) for p in self.problem.pools)
        return replace(self, problem=replace(self.problem, pools=tuple(pools)))


@of_facts
def storage_problem(
    facts: Facts,
    target: Target,
    *,
    lines: bool = False,
    in_place: bool = True,
    exact_dtype: bool = False,
) -> StorageProblem:
    """The storage problem of a function in normal form (see `Normalize`).

    A memory is a pair of a scope and the loop that allocations are attached to; buffers in different memories never
    share. If that loop is distributed over workers, or is in one that is, there are as many copies. `lines` aligns
    buffers of 64 bytes or more to 64 bytes, for strategies that choose offsets. `in_place` adds the pairs that are
    proved safe in place as candidates. `exact_dtype` gives each element type, lanes included, a memory of its own,
    except in tagged memory.

    Raises PlanError for tagged memory that `target` does not describe, and for a size there without a constant bound.
    """
    func, most = facts.func, MostBytes(facts)
    requests: list[Request] = []
    entries = facts.sequence.entries
    spans = {each.buffer: entries[each.position].stmt.span for each in facts.sequence.allocations}
    memories = _Memories(spans, target, distributed_loops(func, target.workers), exact_dtype)
    lifetimes: dict[str, Lifetime] = {}
    kept: dict[Buffer, str] = {}
    dead: list[Buffer] = []
    unique = UniqueNames().unique
    for allocation, lifetime in zip(facts.sequence.allocations, facts.lifetimes, strict=True):
        buffer = lifetime.buffer
        size = _most_bytes(most, buffer, spans[buffer])
        if not lifetime.live:
            dead.append(buffer)
        elif allocation.visibility is Visibility.NESTED:
            kept[buffer] = "each thread or block has a copy of its own"
        elif reason := left_alone(buffer, size):
            kept[buffer] = reason
        else:
            name = unique(buffer.name)
            lifetimes[name] = lifetime
            requests.append(_request(name, lifetime, size, memories, lines=lines))
    proofs = in_place_candidates(facts) if in_place else ()
    named = {lifetime.buffer: name for name, lifetime in lifetimes.items()}
    pairs, refusals = _pairs(proofs, named, exact_dtype=exact_dtype)
    problem = Problem(
        tuple(requests),
        memories.pools(),
        pairs,
        refusals=refusals,
        outside=tuple((buffer.name, reason) for buffer, reason in kept.items()),
        spans={name: spans[lifetime.buffer] for name, lifetime in lifetimes.items()},
    )
    return StorageProblem(problem, lifetimes, kept, frozenset(dead), proofs, facts.extents, spans)


def _most_bytes(most: MostBytes, buffer: Buffer, span: Span | None) -> Size | None:
    """The upper bound of a buffer's size, if known. Raises KernelError, with the buffer's place, if it is too long."""
    try:
        return most.of(buffer)
    except KernelError as error:
        raise error.at(span) from None


def _pairs(
    proofs: Iterable[InPlaceProof], names: Mapping[Buffer, str], *, exact_dtype: bool
) -> tuple[tuple[tuple[str, str], ...], dict[tuple[str, str], object]]:
    """The pairs that may be in place, and the obstacles of the others, by names of requests."""
    pairs: list[tuple[str, str]] = []
    refusals: dict[tuple[str, str], object] = {}
    for proof in proofs:
        destination, source = names.get(proof.destination), names.get(proof.source)
        if destination is None or source is None:
            continue
        if not proof.allowed:
            refusals[destination, source] = proof.obstacle
        elif not exact_dtype or proof.destination.dtype == proof.source.dtype:
            pairs.append((destination, source))
    return tuple(pairs), refusals


def _request(name: str, lifetime: Lifetime, size: Size | None, memories: _Memories, *, lines: bool) -> Request:
    buffer = lifetime.buffer
    align, pools, kind = memories.terms(lifetime)
    info = memories.info(buffer)
    if info is not None:
        bound = None if size is None else upper_bound(size)
        if bound is None:
            told = "a number of" if size is None else str(size)
            raise UnboundedInTaggedMemory(buffer.name, buffer.scope, told, span=memories.spans[buffer]).error()
        size, align = round_up(bound, info.align), max(align, info.align)
    assert size is not None
    if info is None and lines and is_at_most(LINE_BYTES, size):
        align = max(align, LINE_BYTES)
    return Request(name, size, lifetime.live, buffer.scope, align, None, pools, kind)


def left_alone(buffer: Buffer, size: Size | None) -> str | None:
    """Why the planner leaves an allocation alone, or None if it does not."""
    scope = StorageScope.parse(buffer.scope)
    if scope.is_special:
        return None
    if scope.rank is Rank.LOCAL or scope.rank is Rank.WARP:
        return "local memory is left to the registers"
    if buffer.dtype.is_handle:
        return "it holds handles"
    if size is None:
        return "its size is not known on entry to the function, nor a bound on it"
    if isinstance(size, int) and size <= REGISTER_BYTES:
        return "it fits into a register"
    return None


class _Memories:
    """The memories found so far: a scope at the top of the function, or inside of a parallel or thread-bound loop."""

    def __init__(
        self,
        spans: Mapping[Buffer, Span | None],
        target: Target,
        distributed: Mapping[For, int],
        exact_dtype: bool,
    ) -> None:
        self.spans = spans
        self.target = target
        self.distributed = distributed
        self.exact_dtype = exact_dtype
        self.met: dict[tuple[str, Var | None, DType | None], Pool] = {}
        self.special: dict[str, bool] = {}
        # By scope, type, alignment and loop; most buffers share one of few keys.
        self.known: dict[tuple[str, str, int, Region | None], tuple[int, tuple[str], str]] = {}

    def info(self, buffer: Buffer) -> MemoryInfo | None:
        """The target's description of the buffer's memory; None for ordinary memory."""
        scope = buffer.scope
        if scope not in self.special:
            self.special[scope] = StorageScope.parse(scope).is_special
        return self.target.memory(buffer.name, scope, self.spans[buffer]) if self.special[scope] else None

    def terms(self, lifetime: Lifetime) -> tuple[int, tuple[str], str]:
        """The alignment of a buffer, the names of the memories that it may be in, and the name of its element type."""
        buffer = lifetime.buffer
        key = buffer.scope, buffer.dtype.name, buffer.alignment, lifetime.attach
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = least_alignment(buffer), (self.of(lifetime),), buffer.dtype.scalar.name
        return found

    def of(self, lifetime: Lifetime) -> str:
        """The name of the memory that a buffer is in."""
        buffer, loop = lifetime.buffer, attach_loop(lifetime.attach)
        scope = buffer.scope
        dtype = buffer.dtype if self.exact_dtype and not StorageScope.parse(scope).is_special else None
        key = (scope, loop, dtype)
        pool = self.met.get(key)
        if pool is None:
            name = scope if dtype is None else f"{scope} of {dtype}"
            name = name if loop is None else f"{name} in {loop.name}"
            same = sum(pool.name == name or pool.name.startswith(f"{name} (") for pool in self.met.values())
            name = f"{name} ({same + 1})" if same else name
            info = self.info(buffer)
            capacity, align = (info.capacity, info.align) if info is not None else (None, 1)
            pool = self.met[key] = Pool(name, scope, capacity, align, self.copies(lifetime.attach))
        return pool.name

    def copies(self, attach: Region | None) -> int:
        """The number of workers that have a copy of what is attached here."""
        loops = (region.composite for region in regions_around(attach) if isinstance(region.composite, For))
        return next((self.distributed[loop] for loop in loops if loop in self.distributed), 1)

    def pools(self) -> tuple[Pool, ...]:
        return tuple(self.met.values())


def attach_loop(region: Region | None) -> Var | None:
    """The variable of the loop whose body storage is attached to; None for the function's."""
    if region is None:
        return None
    assert isinstance(region.composite, For)
    return region.composite.var


def weaker_problems(func: PrimFunc, found: StorageProblem, *, at_any_price: bool = False) -> Iterator[StorageProblem]:
    """The problem with weaker alignments: the largest below a line that divides all sizes, then that of elements.

    Nothing if no buffer is aligned to a line needlessly, or `func` calls no kernels; `at_any_price`, loops of its own
    give up lines too.
    """
    if not (at_any_price or calls_in(func.body)):
        return
    lined = {each.id: each for each in found.problem.requests if _is_lined(found, each)}
    step = LINE_BYTES
    while step > 1 and any(prove_divides(step, each.size) is not Proof.YES for each in lined.values()):
        step //= 2
    for align in dict.fromkeys((step, 1)):
        if lined and align < LINE_BYTES:
            yield _with_alignment(found, lined, align)


# The number of random values of the dims at which plans are compared, beside the samples.
_DRAWN = 40


def is_smaller(plan: Plan, other: Plan) -> bool:
    """Whether `plan` takes fewer bytes than `other` at some of many values of the dims, and more at none."""
    dims = plan.problem.dims
    bindings = (*samples(dims, 2), *samples(dims, 2, 1), *drawn(dims, _DRAWN))
    pairs = [(evaluate(plan.total, each), evaluate(other.total, each)) for each in bindings]
    return all(one <= two for one, two in pairs) and any(one < two for one, two in pairs)


def _is_lined(found: StorageProblem, request: Request) -> bool:
    is_plain = not StorageScope.parse(request.scope).is_special
    return is_plain and request.align == LINE_BYTES > least_alignment(found.lifetimes[request.id].buffer)


def _with_alignment(found: StorageProblem, lined: dict[str, Request], align: int) -> StorageProblem:
    problem = found.problem
    requests = tuple(
        replace(each, align=max(align, least_alignment(found.lifetimes[each.id].buffer))) if each.id in lined else each
        for each in problem.requests
    )
    return replace(found, problem=replace(problem, requests=requests))
