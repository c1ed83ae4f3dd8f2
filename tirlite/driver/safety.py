"""Reports how each access of a kernel is known to stay in its buffer: `kernel.safety`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.guarded import Access, guarded_accesses
from tirlite.analysis.in_bounds.safety import Judged, Safety, Verdict, safety_of
from tirlite.groups import by_key
from tirlite.ir import Expr, Load, PrimFunc, Var, View, callees, rewrite, text
from tirlite.record import record
from tirlite.rewrite.checks.lifted_checks import lifted_safety
from tirlite.rewrite.checks.marks import condition_of
from tirlite.rewrite.fit_callees import fit_callees
from tirlite.rewrite.normalize import Normalize
from tirlite.rewrite.options import Options
from tirlite.rewrite.pipelines import checks_at_gathers
from tirlite.show import table

# An access is reported by its weakest verdict: the first in this order.
_ORDER = (Verdict.UNCHECKED, Verdict.CHECKED, Verdict.DECIDED)
_WHERE = {
    Verdict.PROVED: "always",
    Verdict.DECIDED: "at entry",
    Verdict.CHECKED: "where it stands",
    Verdict.UNCHECKED: "",
}


@record
class Assurance:
    """One access in the source: its line and text, how it stays in its buffer, where that is tested, and by what."""

    function: str
    line: int | None
    access: str
    how: str
    where: str
    condition: str = ""


class SafetyReport(Sequence[Assurance]):
    """The accesses of a kernel and its callees, in program order, each text once per line. `print` shows a table.

    `by_word`: the loops whose iterations are independent only by the author's declaration.
    """

    def __init__(self, rows: Sequence[Assurance], by_word: Sequence[str] = ()) -> None:
        self._rows = tuple(dict.fromkeys(rows))
        self.by_word = tuple(dict.fromkeys(by_word))

    def __getitem__(self, place: int) -> Assurance:  # type: ignore[override]
        return self._rows[place]

    def __len__(self) -> int:
        return len(self._rows)

    def count(self, how: object) -> int:
        """The number of accesses that are "proved", "decided" at entry, "checked" at the access, or "unchecked"."""
        return sum(each.how == how for each in self._rows)

    def __str__(self) -> str:
        functions = dict.fromkeys(each.function for each in self._rows)
        head = ["line", "access", "how", "where", "condition"]
        rows = [[str(e.line or ""), e.access, e.how, e.where, e.condition] for e in self._rows]
        if len(functions) > 1:
            head = ["in", *head]
            rows = [[each.function, *row] for each, row in zip(self._rows, rows, strict=True)]
        counts = ", ".join(f"{n} {v.value}" for v in Verdict if (n := self.count(v.value)))
        return "\n".join((table(head, rows), counts, *self.by_word)) if rows else "no accesses"

    def __repr__(self) -> str:
        return f"SafetyReport({', '.join(f'{v.value}={self.count(v.value)}' for v in Verdict)})"


def safety_report(func: PrimFunc, options: Options) -> SafetyReport:
    """How the accesses of a function and its callees are made safe under these options.

    With `debug`, all accesses that are not proved are checked where they are.
    """
    facts = Facts(fit_callees(Normalize()(func)))
    if options.debug or options.unchecked:
        each_facts = [facts, *(Facts(Normalize()(each)) for each in reversed(callees(facts.func)))]
        judged = [(each, safety_of(each)) for each in each_facts]
    else:
        lifted = lifted_safety(facts, at_loops=True)
        called = reversed([*lifted.callees.items()])
        outermost = lifted.outermost
        if checks_at_gathers(options) and not lifted.callees:
            from tirlite.rewrite.checks.checked_gathers import checked_at_gathers

            outermost = checked_at_gathers(facts, outermost)
        judged = [(facts, outermost), *((lifted.facts[callee], safety) for callee, safety in called)]
    rows = [row for each, safety in judged for row in _rows(each, safety, unchecked=options.unchecked)]
    return SafetyReport(rows, [line for each, _ in judged for line in _by_word(each)])


def _by_word(facts: Facts) -> Iterator[str]:
    for loop in facts.doubtful_loops:
        names = " and ".join(f"`{each.buffer.name}`" for each in facts.shared_in(loop))
        if names:
            at = "" if loop.span is None else f" (line {loop.span.line})"
            yield f"by the author's word, iterations of `{loop.var.name}`{at} share no element of {names} (see `debug`)"


def _rows(facts: Facts, safety: Safety, *, unchecked: bool) -> Iterator[Assurance]:
    judged = by_key((each.access.node, each) for each in safety.judged)
    for access in guarded_accesses(facts.func, facts.space):
        if not access.node.buffer.shape and not isinstance(access.node, View):
            continue  # a scalar, which has no other elements
        found = judged.get(access.node, [])
        verdict = next((kind for kind in _ORDER if any(each.verdict is kind for each in found)), Verdict.PROVED)
        if unchecked and found:
            verdict = Verdict.UNCHECKED
        span = access.stmt.span
        line = None if span is None else span.line
        conditions = _conditions(found, safety) if verdict is Verdict.DECIDED else ""
        is_at_loop = verdict is Verdict.DECIDED and any(each.hoisted is not None for each in found)
        where = "at its loop" if is_at_loop else _WHERE[verdict]
        yield Assurance(facts.func.name, line, _text(access), verdict.value, where, conditions)


def _text(access: Access) -> str:
    node = access.node
    if isinstance(node, View):
        return f"the view {node.buffer.name} of {node.source.name}"
    return text(Load(node.buffer, tuple(map(_written, node.indices))))


def _written(index: Expr) -> Expr:
    """An index as its author wrote it, with local scalars by name."""
    return rewrite(index, {Load: lambda load: load if load.indices else Var(load.buffer.name, load.dtype)})


def _conditions(judged: Sequence[Judged], safety: Safety) -> str:
    demands = dict.fromkeys(each.demand for each in judged if each.demand is not None and each.demand.sizes)
    found = [text(condition_of(each, safety)) for each in demands]
    found += [text(_written(each.hoisted.condition)) for each in judged if each.hoisted is not None]
    return " and ".join(dict.fromkeys(found)) or "numbers below 2**46"
