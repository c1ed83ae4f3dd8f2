"""Defines a Problem, requests for storage and the memories there are: its values are checked, and it prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, SupportsIndex, TypeVar

from tirlite.diag import PlanError, PlanMessage, Span, hint, nearest, public
from tirlite.groups import by_key
from tirlite.plan.arguments import bound, demand, dim_of
from tirlite.plan.request import BadFixed, NegativeSize, Pool, Request
from tirlite.plan.scope import StorageScope
from tirlite.record import cached_property, record, replace
from tirlite.show import shown
from tirlite.sizes import Dim, Proof, Size, dims_of, evaluate, maximum, prove_le
from tirlite.sizes.dim import contradiction
from tirlite.sizes.poly import inside_out, is_of_sympy, terms_of

if TYPE_CHECKING:
    from tirlite.plan.tables.csv_table import CsvTable


Part = TypeVar("Part", Request, Pool)
K = TypeVar("K")

# The most bits of numbers: of bytes, of what dims are multiplied by, of points in time. So areas are finite as floats,
# at all values of dims that are tried too. What is below the last number is below all of them.
_BITS, _FACTOR_BITS, _COUNT_BITS = 900, 256, 100
_USUAL = 1 << 64


class DuplicateId(PlanMessage):
    """Two requests of a problem have one id, or two pools one name.

    Example: `Problem((Request("a", 4, (0, 2)), Request("a", 8, (1, 3))))`.
    """

    title = "two {what} are called `{id}`"
    help = "give each a name of its own"


class UnknownPool(PlanMessage):
    """A request accepts a pool that the problem does not have.

    Example: `Request("a", 4, (0, 2), pools=("srm",))`.
    Fix: Correct the name, or add the pool to the problem.
    """

    title = "request `{id}` wants to live in `{pool}`, and there is no such pool"
    help = "the pools are {known}"


class UnknownInPlace(PlanMessage):
    """An in-place pair names requests that the problem does not have.

    Example: `Problem(requests, in_place=(("b", "x"),))` without a request `x`.
    Fix: Correct the ids: a pair is (destination, source).
    """

    title = "the in-place pair (`{dst}`, `{src}`) names no two requests of the problem"
    help = "a pair is (destination id, source id){hint}"

    hint: str = ""


class NumberTooLarge(PlanMessage):
    """A number in a problem is larger than planning can compare.

    Areas are compared as floats, which end at 10**308: sizes have 900 bits at most, what dims are multiplied by has
    256, points in time have 100.

    Example: `Request("a", 10**400, (0, 2))`.
    Fix: Correct the number.
    """

    title = "a number in the {what} of {of} has {bits} bits, and may have {most}"

    id: str = ""


class ProblemPart(PlanMessage):
    """A problem is made of something other than requests and pools.

    Example: `Problem(Request("a", 4, (0, 2)))`.
    Fix: Give a sequence of them, also where there is but one: `Problem((Request("a", 4, (0, 2)),))`.
    """

    title = "the {what} of a problem are {given}"
    help = "give a sequence of `{wanted}`, also where there is but one"


@record(slots=False)
class Problem:
    """Requests, the pools they may live in, candidate pairs (destination id, source id) for one place, and dims.

    Without pools there is one unlimited pool for each scope met. `facts` gives the dims that symbols of sympy sizes
    stand for; other symbols become dims, positive unless they are declared nonnegative. A size that may be negative
    counts as zero where it is. Where it is `contiguous`, each pool is one arena, as it is for offsets in a table: the
    total of a plan then counts the padding between what lies there; it does not tell two problems apart. `table` is the
    one that the problem was read from, if any. For explanations alone, and not part of the JSON form: `refusals` tell
    for some pairs, by their `str`, why the first may not take over the place of the second, `outside` names what is not
    to be planned, each with the reason, and `spans` are where requests come from. Raises PlanError where a part is
    ill-formed.
    """

    requests: tuple[Request, ...]
    pools: tuple[Pool, ...] = ()
    in_place: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Dim] = field(default_factory=dict, hash=False)
    contiguous: bool = field(default=False, compare=False, repr=False)
    table: CsvTable | None = field(default=None, init=False, compare=False, repr=False)
    refusals: Mapping[tuple[str, str], object] = field(default_factory=dict, kw_only=True, compare=False, repr=False)
    outside: tuple[tuple[str, str], ...] = field(default=(), kw_only=True, compare=False, repr=False)
    spans: Mapping[str, Span | None] = field(default_factory=dict, kw_only=True, compare=False, repr=False)

    if TYPE_CHECKING:
        # What is accepted is more than what the fields hold afterwards.
        def __init__(
            self,
            requests: Iterable[Request],
            pools: Iterable[Pool] = (),
            in_place: Iterable[Sequence[str]] = (),
            facts: Mapping[str, object] = ...,
            contiguous: bool = False,
            *,
            refusals: Mapping[tuple[str, str], object] = ...,
            outside: tuple[tuple[str, str], ...] = (),
            spans: Mapping[str, Span | None] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        facts = {name: dim_of(dim) for name, dim in self.facts.items()} if isinstance(self.facts, Mapping) else None
        fits = facts is not None and None not in facts.values()
        demand("Problem", "facts", self.facts, "a dict from names to dims", fits=fits)
        put(self, "facts", MappingProxyType(facts))
        put(self, "requests", _with_sizes(_parts("requests", self.requests, Request), self.facts))
        put(self, "pools", _parts("pools", self.pools, Pool))
        put(self, "in_place", pairs_in_place(self.in_place))
        _check_dims(self.dims)
        _check_pools(self.pools)
        _check_numbers(self.requests, self.pools)
        _check_requests(self.requests, self.memories)
        _check_pairs(self.in_place, self.by_id)

    @cached_property
    def by_id(self) -> Mapping[str, Request]:
        """The requests by their ids."""
        return MappingProxyType({request.id: request for request in self.requests})

    @cached_property
    def by_memory(self) -> Mapping[str, Sequence[Request]]:
        """The requests of each memory, the first one that they name."""
        return MappingProxyType(by_key((request.memories[0], request) for request in self.requests))

    @cached_property
    def memories(self) -> Mapping[str, Pool]:
        """The pools by name, with those that stand for scopes where none was given."""
        pools = self.pools or tuple(Pool(scope, scope) for scope in dict.fromkeys(r.scope for r in self.requests))
        return MappingProxyType({pool.name: pool for pool in pools})

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """The dims that sizes depend on, in the order in which they appear."""
        sizes = dict.fromkeys(r.size for r in self.requests if not isinstance(r.size, int))
        copies = [p.copies for p in self.pools if not isinstance(p.copies, int)]
        return tuple(dict.fromkeys(dim for size in (*sizes, *copies) for dim in dims_of(size)))

    @public
    def at(self, binding: Mapping[K, SupportsIndex] | None = None, /, **named: SupportsIndex) -> Problem:
        """The problem with constant sizes that this one becomes when its dims have these values, as in `Plan.at`."""
        values = bound("Problem.at", self.dims, binding, named)
        requests = tuple(replace(r, size=evaluate(r.size, values)) for r in self.requests)
        pools = tuple(replace(p, copies=evaluate(p.copies, values)) for p in self.pools)
        return Problem(requests, pools, self.in_place, contiguous=self.contiguous)

    def with_table(self, table: CsvTable) -> Problem:
        """The same problem, read from `table`: one row for each request."""
        problem = replace(self)
        object.__setattr__(problem, "table", table)
        return problem

    def to_json(self) -> str:
        """The problem as JSON: sizes are numbers, or text over the dims, which are listed with their facts."""
        from tirlite.plan.tables.problem_json import Parts, text_of

        return text_of(Parts(self.requests, self.pools, self.in_place, self.facts, self.contiguous), self.dims)

    @classmethod
    @public
    def from_json(cls, text: str) -> Problem:
        """The problem that `to_json` wrote, over dims of the same names and facts."""
        from tirlite.plan.tables.problem_json import from_text

        return cls(*from_text(text))

    def __str__(self) -> str:
        return "\n".join(f"{r.id}: {r.size} bytes, live {r.spans}, in {' or '.join(r.memories)}" for r in self.requests)


def _parts(what: str, given: Iterable[Part], kind: type[Part]) -> tuple[Part, ...]:
    parts = tuple(given) if isinstance(given, Iterable) else None
    if parts is None or not all(isinstance(part, kind) for part in parts):
        raise ProblemPart(what, shown(given)[:60], kind.__name__).error()
    return parts


def pairs_in_place(given: object) -> tuple[tuple[str, str], ...]:
    """Pairs (destination id, source id). Raises PlanError for anything else."""
    pairs = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (None,)
    if [pair for pair in pairs if type(pair) is not tuple or len(pair) != 2]:
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ProblemPart("pairs in place", shown(given)[:60], "(destination id, source id)").error()
        return tuple((dst, src) for dst, src in pairs)
    return pairs  # in normal form already, as most are


def _with_sizes(requests: tuple[Request, ...], facts: Mapping[str, Dim]) -> tuple[Request, ...]:
    """The requests with every sympy expression made a Size, and each Size made non-negative."""
    settled: dict[Size, Size] = {}
    done = []
    for request in requests:
        size = request.size
        if not isinstance(size, int):
            if size not in settled:
                settled[size] = _settled(request.id, size, facts)
            if is_of_sympy(size) or settled[size] != size:
                request = replace(request, size=settled[size])
        done.append(request)
    return tuple(done)


def _settled(name: str, size: Size, facts: Mapping[str, Dim]) -> Size:
    if is_of_sympy(size):
        from tirlite.sizes import from_sympy

        size = from_sympy(size, facts)
    proof = prove_le(0, size)
    if proof is Proof.NO:
        raise NegativeSize(name, str(size)).error()
    return size if proof is Proof.YES else maximum(0, size)


def _check_dims(dims: tuple[Dim, ...]) -> None:
    message = contradiction(dims)
    if message is not None:
        raise PlanError(message)


def _check_pools(pools: tuple[Pool, ...]) -> None:
    names: set[str] = set()
    for pool in pools:
        StorageScope.parse(pool.scope)
        if pool.name in names:
            raise DuplicateId("pools", pool.name).error()
        names.add(pool.name)


def _check_numbers(requests: tuple[Request, ...], pools: tuple[Pool, ...]) -> None:
    largest = {size: _largest(size) for size in {each.size for each in requests} if not isinstance(size, int)}
    for each in requests:
        size, time = each.size, max(-each.live[0][0], each.live[-1][1])
        # The usual case, at once: there may be very many.
        if type(size) is int and time < _USUAL and max(size, each.align, each.fixed or 0) < _USUAL:
            continue
        of = f"request `{each.id}`"
        if isinstance(size, int):
            _demand_bits("size", of, size, _BITS, each.id)
        else:
            _demand_bits("size", of, largest[size], _FACTOR_BITS, each.id)
        _demand_bits("lifetime", of, time, _COUNT_BITS, each.id)
        _demand_bits("alignment", of, each.align, _BITS, each.id)
        _demand_bits("offset", of, each.fixed or 0, _BITS, each.id)
    for pool in pools:
        of = f"pool `{pool.name}`"
        _demand_bits("capacity", of, pool.capacity or 0, _BITS)
        _demand_bits("alignment", of, pool.align, _BITS)
        _demand_bits("number of copies", of, _largest(pool.copies), _COUNT_BITS)


def _largest(size: Size) -> int:
    """The largest number in a size, and in the facts of its dims."""
    if isinstance(size, int):
        return abs(size)
    sums = [size, *(operand for atom in inside_out(size) for operand in atom.operands)]
    facts = [number for dim in dims_of(size) for number in (dim.low, dim.high or 0, dim.multiple_of)]
    return max(abs(number) for number in (*facts, *(each for one in sums for each in terms_of(one).values())))


def _demand_bits(what: str, of: str, number: int, most: int, request: str = "") -> None:
    if number.bit_length() > most:
        raise NumberTooLarge(what, of, number.bit_length(), most, request).error()


def _check_requests(requests: tuple[Request, ...], memories: Mapping[str, Pool]) -> None:
    ids: set[str] = set()
    scopes: set[str] = set()
    for request in requests:
        if request.id in ids:
            raise DuplicateId("requests", request.id).error()
        ids.add(request.id)
        if request.scope not in scopes:
            StorageScope.parse(request.scope)
            scopes.add(request.scope)
        for name in request.memories:
            if name not in memories:
                known = nearest(name, memories) or ", ".join(f"`{pool}`" for pool in memories)
                raise UnknownPool(request.id, name, known).error()
            if request.fixed is not None and request.fixed % memories[name].align:
                raise BadFixed(request.id, str(request.fixed), memories[name].align).error()


def _check_pairs(pairs: tuple[tuple[str, str], ...], by_id: Mapping[str, Request]) -> None:
    for dst, src in pairs:
        if type(dst) is type(src) is str and dst in by_id and src in by_id and dst != src:  # the usual case, at once
            continue
        missing = [name for name in (dst, src) if not isinstance(name, str) or name not in by_id]
        if missing or dst == src:
            raise UnknownInPlace(dst, src, hint(str(missing[0]), by_id) if missing else "").error()
