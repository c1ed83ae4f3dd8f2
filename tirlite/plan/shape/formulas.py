"""Writes sizes over dims as straight-line arithmetic, as text and as a function; common parts are computed once.

The text is Python and kernel language alike: one assignment a line, made of integers, names, `+ - * // %`, max and min.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tirlite.plan.arguments import demand
from tirlite.plan.plan import Plan
from tirlite.plan.request import Interval
from tirlite.record import record
from tirlite.sizes import Dim, Size, evaluate
from tirlite.sizes.poly import Atom, inside_out, terms_of
from tirlite.sizes.terms import spell

Values = tuple[int, ...]


@record
class Formulas:
    """`lines` compute over the names `params`, one for each dim in order; `results` are names or integers, as text."""

    params: tuple[str, ...]
    lines: tuple[str, ...]
    results: tuple[str, ...]


def formulas(sizes: Sequence[Size], dims: Sequence[Dim]) -> Formulas:
    """The formulas of `sizes`. The names are ours, so that none of a dim can clash."""
    params = tuple(f"d{number}" for number in range(len(dims)))
    names: dict[Atom, str] = dict(zip(dims, params, strict=True))
    loose: dict[Atom, bool] = dict.fromkeys(dims, False)
    lines: list[str] = []
    results: dict[Size, str] = {}

    def named(text: str) -> str:
        if text.isidentifier() or text.removeprefix("-").isdecimal():
            return text
        lines.append(f"v{len(lines)} = {text}")
        return f"v{len(lines) - 1}"

    for size in dict.fromkeys(sizes):
        for atom in inside_out(size):
            if atom not in names:
                names[atom] = named(atom.spell([named(spell(terms_of(each), names, loose)) for each in atom.operands]))
                loose[atom] = False
        results[size] = named(spell(terms_of(size), names, loose))
    return Formulas(params, tuple(lines), tuple(results[size] for size in sizes))


def evaluator(sizes: Sequence[Size], dims: Sequence[Dim]) -> Callable[[Values], Values]:
    """A function from the values of the dims to those of the sizes, exact: about 50 ns for each size.

    It raises KernelError for a division by zero.
    """
    made = formulas(sizes, dims)
    receive = f"    {', '.join(made.params)}, = values\n" if made.params else ""
    body = "".join(f"    {line}\n" for line in made.lines)
    results = ", ".join(made.results)
    scope: dict[str, Callable[[Values], Values]] = {}
    exec(f"def compute(values):\n{receive}{body}    return ({results}{',' if made.results else ''})\n", scope)
    compute = scope["compute"]

    def values_of(values: Values) -> Values:
        try:
            return compute(values)
        except ZeroDivisionError:
            binding = dict(zip(dims, values, strict=True))
            return tuple(evaluate(size, binding) for size in sizes)

    return values_of


def offset_evaluator(plan: Plan) -> Callable[[Values], Values]:
    """A function from the values of `plan.problem.dims`, in their order, to the offsets of the requests, in theirs.

    It is for plans that are used at many bindings, as `plan.at` makes a whole plan each time. Exact; some nanoseconds
    for each offset, and common parts are computed once.
    """
    demand("offset_evaluator", "plan", plan, "a Plan", fits=isinstance(plan, Plan))
    offsets = [plan.placements[request.id].offset for request in plan.problem.requests]
    return evaluator(offsets, plan.problem.dims)


@record
class Conditions:
    """The conditions that the entries of a plan must meet. An entry is the size of an arena, or an offset in one.

    `arenas` gives for each entry the entry that is the size of its arena, and -1 for these themselves; `aligns` what
    must divide it; `rows` are sets of entries whose places may share no byte, each row pairwise.
    """

    arenas: tuple[int, ...]
    aligns: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]

    def fault(self, entries: Sequence[int], sizes: Sequence[int]) -> str:
        """The first condition that fails, as text, or "". `sizes` are those of places by entry; arenas have none."""
        if len(entries) != len(self.arenas):
            return f"there are {len(entries)} entries, and should be {len(self.arenas)}"
        ends = list(map(int.__add__, entries, sizes))
        for number, (arena, align, entry) in enumerate(zip(self.arenas, self.aligns, entries, strict=True)):
            if entry < 0 or entry % align:
                return f"entry {number} is {entry}, and is to be a multiple of {align}"
            if arena >= 0 and ends[number] > entries[arena]:
                return f"place {number} ends at {ends[number]}, and its arena has {entries[arena]} bytes"
        for row in self.rows:
            last, above = -1, 0
            for start, number in sorted([(entries[number], number) for number in row if sizes[number]]):
                if start < above:
                    return f"places {last} and {number} may be live together and share bytes: {start} < {above}"
                last, above = number, ends[number]
        return ""


def rows_of(lives: Sequence[Sequence[Interval]]) -> list[tuple[int, ...]]:
    """The maximal sets of lives that have a time in common, in order of time."""
    events = sorted(
        (time, is_birth, number)
        for number, live in enumerate(lives)
        for low, high in live
        for time, is_birth in ((low, True), (high, False))
    )
    live: dict[int, None] = {}
    rows: dict[tuple[int, ...], None] = {}
    grown = False
    for _, is_birth, number in events:
        if is_birth:
            live[number] = None
        else:
            if grown:
                rows[tuple(sorted(live))] = None
            live.pop(number, None)
        grown = is_birth
    return list(rows)
