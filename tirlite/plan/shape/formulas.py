"""Writes sizes over dims as straight-line arithmetic, as text and as a function; what they share is computed once.

The text is Python and kernel language alike: one assignment a line, made of integers, names, `+ - * // %`, max and min.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tirlite.plan.arguments import demand
from tirlite.plan.plan import Plan
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

    For who uses one plan at many bindings: `plan.at` makes a whole plan each time. Exact; some nanoseconds for each
    offset, and what offsets share is computed once.
    """
    demand("offset_evaluator", "plan", plan, "a Plan", fits=isinstance(plan, Plan))
    offsets = [plan.placements[request.id].offset for request in plan.problem.requests]
    return evaluator(offsets, plan.problem.dims)
