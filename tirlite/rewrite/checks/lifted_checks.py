"""Lifts the conditions that decide whether accesses of callees are in bounds to the entry of the outermost function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tirlite.analysis.entry_space import ORDINARY
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.safety import AtEntry, Decided, Demand, Judging, Safety, Verdict, is_negative
from tirlite.diag import KernelError
from tirlite.ir import Expr, Function, IfThenElse, KernelCall, PrimFunc, Stmt, Var, While, callees
from tirlite.record import record, replace
from tirlite.rewrite.normalize import Normalize
from tirlite.sizes import Dim, Size, dims_of, substitute
from tirlite.sizes.unknown import is_nonnegative

# The most conditions that are tested at entry for callees.
_MOST_DEMANDS = 32


@record(eq=False)
class Lifted:
    """The safety of a function and of all its callees, with the facts of each in normal form.

    Accesses of `callees` that are decided at entry are decided at the entry of the outermost function.
    """

    outermost: Safety
    callees: Mapping[PrimFunc, Safety]
    facts: Mapping[PrimFunc, Facts]


def lifted_safety(facts: Facts, *, at_loops: bool) -> Lifted:
    """The safety of a function in normal form, whose callees are the versions for their extents (see `fit_callees`)."""
    judging = Judging(facts)
    outermost = judging.at_entry()
    found = {callee: Facts(Normalize()(callee)) for callee in callees(facts.func)}
    judged = {callee: Judging(each) for callee, each in found.items()}
    decided = {callee: each.at_entry(factors=False) for callee, each in judged.items() if each.is_open}
    demands, scalars, entry, refused = _lifted(facts, outermost, found, judged, decided)
    safeties: dict[PrimFunc, Safety] = {}
    for callee, each in judged.items():
        own = decided[callee].safety if callee in decided and callee not in refused else each.safety
        safeties[callee] = each.at_loops(own) if at_loops else own
    safety = judging.at_loops(outermost.safety) if at_loops else outermost.safety
    if demands or scalars:
        assert entry is not None
        safety = replace(
            safety,
            demands=tuple(dict.fromkeys((*safety.demands, *demands))),
            scalars=tuple(dict.fromkeys((*safety.scalars, *scalars))),
            scans=tuple(dict.fromkeys((*safety.scans, *entry.scans(demands)))),
            images={**(safety.images or {}), **entry.extents.images},
        )
    return Lifted(safety, safeties, found)


def _lifted(
    facts: Facts,
    outermost: Decided,
    found: Mapping[PrimFunc, Facts],
    judged: Mapping[PrimFunc, Judging],
    decided: dict[PrimFunc, Decided],
) -> tuple[list[Demand], list[Var], AtEntry | None, set[Function]]:
    """What the outermost function tests for its callees, and the callees that must check their accesses themselves.

    If some caller cannot vouch for a callee's arrays of indices, that one is `decided` again, without scans of them.
    """
    refused: set[Function] = {callee for callee, each in decided.items() if not _decides(each.safety)}
    if refused >= {*decided}:
        return [], [], outermost.entry, refused
    entry = outermost.entry or AtEntry(facts, {})
    without: set[Function] = set()
    while True:
        entries = {callee: each.entry for callee, each in decided.items() if each.entry is not None}
        failed, demands, scalars = _try(facts.func, {**entries, facts.func: entry}, decided, found, refused)
        if failed is None:
            return demands, scalars, entry, refused
        assert isinstance(failed, PrimFunc)
        # A function that only calls others has no decision of its own.
        if failed in decided and failed not in without and decided[failed].safety.scans:
            without.add(failed)
            decided[failed] = judged[failed].at_entry(scans=False, factors=False)
            if _decides(decided[failed].safety):
                continue
        refused.add(failed)


def _decides(safety: Safety) -> bool:
    return any(each.verdict is Verdict.DECIDED for each in safety.judged)


def _try(
    func: PrimFunc,
    entries: dict[PrimFunc, AtEntry],
    decided: Mapping[PrimFunc, Decided],
    found: Mapping[PrimFunc, Facts],
    refused: set[Function],
) -> tuple[Function | None, list[Demand], list[Var]]:
    """The first callee whose demands some caller cannot guarantee, or else what the outermost function tests."""
    demands: dict[Function, list[Demand]] = {}
    scalars: dict[Function, list[Var]] = {}
    for caller in (*found, func):
        is_outermost = caller is func
        decides = caller in decided and caller not in refused and not is_outermost
        own = list(decided[caller].safety.demands) if decides else []
        numbers = list(decided[caller].safety.scalars) if decides else []
        body = func.body if is_outermost else found[caller].func.body
        for call, is_tested in _calls(body):
            callee = call.callee
            if callee in refused or not (demands.get(callee) or scalars.get(callee)):
                continue
            if is_tested or caller in refused:
                return callee, [], []
            assert isinstance(callee, PrimFunc)
            if caller not in entries:
                entries[caller] = AtEntry(found[caller], {})
            site = _Site(call, entries[callee], entries[caller])
            lifted = site.lifted(demands[callee], scalars[callee])
            if lifted is None or len(own) + len(lifted) > _MOST_DEMANDS:
                return callee, [], []
            own += lifted
            numbers += site.scalars
        demands[caller], scalars[caller] = list(dict.fromkeys(own)), list(dict.fromkeys(numbers))
    return None, demands[func], scalars[func]


def _calls(body: Stmt) -> Iterator[tuple[KernelCall, bool]]:
    """The calls in a block, and whether a condition decides about them."""
    stack = [(body, False)]
    while stack:
        stmt, is_tested = stack.pop()
        if isinstance(stmt, KernelCall):
            yield stmt, is_tested
        inside = is_tested or isinstance(stmt, IfThenElse | While)
        stack += [(each, inside) for each in stmt.children() if isinstance(each, Stmt)]


class _Site:
    """A call: translates what its callee knows on entry into terms of the caller."""

    def __init__(self, call: KernelCall, callee: AtEntry, caller: AtEntry) -> None:
        self.caller = caller
        self.scalars: list[Var] = []
        buffers = dict(call.buffers())
        images: dict[Var, Expr] = dict(call.scalars())
        images |= call.callee.dims_at(buffers)
        self._buffers = buffers
        self._callee = callee
        self._given = callee.extents.given
        self._images = {dim: images[var] for var, dim in self._given.items() if var in images}

    def lifted(self, demands: Sequence[Demand], scalars: Sequence[Var]) -> list[Demand] | None:
        """The callee's demands as demands of the caller; None if the caller cannot test them on entry."""
        found: list[Demand] = []
        ordinary = [Demand(_within(self._callee.value_of(var))) for var in scalars]
        for demand in (*demands, *ordinary):
            sizes, reached = self._mapped(demand.sizes), self._mapped(demand.reached)
            if sizes is None or reached is None or any(map(is_negative, sizes)):
                return None
            open_sizes = tuple(size for size in sizes if not is_nonnegative(size))
            if open_sizes:
                found.append(Demand(open_sizes, tuple(size for size in reached if not is_nonnegative(size))))
        return found

    def _mapped(self, sizes: Sequence[Size]) -> tuple[Size, ...] | None:
        """Sizes of the callee in terms of the caller; None if the caller does not know one on entry."""
        found: list[Size] = []
        for size in sizes:
            values: dict[Dim, Size] = {}
            for dim in dims_of(size):
                value = self._mapped_dim(dim)
                if value is None:
                    return None
                values[dim] = value
            try:
                mapped = substitute(size, values)
            except KernelError:
                return None
            if not self.caller.is_known(mapped):
                return None
            self._note(values.values())
            found.append(mapped)
        return tuple(found)

    def _mapped_dim(self, dim: Dim) -> Size | None:
        """The caller's size for a dim of the callee: an extent, a number, or an extreme of an array of indices."""
        if dim in self._images:
            return self.caller.extents.size(self._images[dim])
        end = self._callee.end_of(dim)
        return None if end is None else self.caller.end(self._buffers[end[0]], is_greatest=end[1])

    def _note(self, sizes: Iterable[Size]) -> None:
        """Collects the caller's numbers that must be of ordinary size, as the callee assumes of its own."""
        met = {dim for size in sizes for dim in dims_of(size)}
        self.scalars += [var for var in self.caller.extents.limited if self.caller.extents.given[var] in met]


def _within(size: Size) -> tuple[Size, Size]:
    return ORDINARY - size, size + ORDINARY
