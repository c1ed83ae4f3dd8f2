"""Makes a page for browsers of one plan, or of one for each of several shapes. It loads nothing from a network.

Everything that it shows stands in it as data, and is written by the page's script as text, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import chain, product
from typing import Any

from tirlite.plan.in_place import grouped, possible
from tirlite.plan.layout import Choice, Layout
from tirlite.plan.order import samples
from tirlite.plan.problem import Problem
from tirlite.record import record
from tirlite.show import escaped
from tirlite.sizes import Dim, Size
from tirlite.sizes.poly import Atom, Composite, Poly

# JavaScript's numbers are exact up to here; a longer one is written as text.
_EXACT = 2**53 - 1
# Of a dim without a limit, the largest value of the slider: this many times the first one.
_REACH = 4
_SCRIPTS = ("layout.js", "drawing.js", "words.js", "hands.js")
# Plans on one page, and values of a dim among which are those that it shows.
_PLANS, _TRIED = 64, 12
# What would end the element that the data stands in.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


@record
class Shown:
    """A plan, its lower bound in bytes, and the values of the dims that it is for; None where it holds for all."""

    layout: Layout
    bound: Size
    binding: Mapping[Dim, int] | None = None


@record
class NoPlan:
    """Why there is no plan for these values of the dims."""

    binding: Mapping[Dim, int]
    fault: str


def grid(dims: Sequence[Dim]) -> list[dict[Dim, int]]:
    """Bindings for a page with a plan for each: some values of each dim that its facts allow, in all combinations."""
    each = 2
    while (each + 1) ** len(dims) <= _PLANS and each < _TRIED:
        each += 1
    # Of very many dims the last ones have one value.
    moving = next(count for count in range(len(dims), -1, -1) if each**count <= _PLANS)
    tried = samples(dims, _TRIED)
    values = [
        sorted({binding[dim] for binding in tried})[: each if place < moving else 1] for place, dim in enumerate(dims)
    ]
    return [dict(zip(dims, row, strict=True)) for row in product(*values)]


def plan_page(title: str, problem: Problem, plans: Sequence[Shown | NoPlan]) -> str:
    """The page of a problem's only plan, with sliders for its dims, or of one plan for each of several bindings."""
    data = _Data(problem)
    told = {
        "title": title,
        "dims": _dims(problem.dims, plans),
        "memories": data.memories,
        "buffers": data.buffers(),
        "plans": [data.plan(each) if isinstance(each, Shown) else data.no_plan(each) for each in plans],
        "handovers": data.handovers(),
        "outside": [list(pair) for pair in problem.outside],
        "reasons": data.reasons,
        "atoms": data.sizes.atoms,
        "formulas": data.sizes.formulas,
    }
    text = json.dumps(told, separators=(",", ":")).translate(_ESCAPES)
    # The data comes last: a name in it may be the mark of another part.
    page = _part("page.html").replace("@TITLE@", escaped(title).replace("@", "&#64;"))
    return page.replace("@SCRIPT@", "".join(map(_part, _SCRIPTS))).replace("@DATA@", text)


def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _dims(dims: Sequence[Dim], plans: Sequence[Shown | NoPlan]) -> list[dict[str, object]]:
    """Each dim with the values that its slider takes: those that there is a plan for, or all from low to high."""
    first = samples(dims, 1)[0]
    told: list[dict[str, object]] = []
    for dim in dims:
        values = sorted({each.binding[dim] for each in plans if each.binding is not None})
        value = first[dim] if not values else values[len(values) // 2]
        high = max(value, value * _REACH // dim.multiple_of * dim.multiple_of) if dim.high is None else dim.high
        facts = {"low": dim.low, "high": high, "most": dim.high, "step": dim.multiple_of}
        told.append({"name": dim.name, "value": value, "values": values or None, **facts})
    return told


class _Data:
    """A problem and its plans, as the script of the page reads them: requests by number, sizes by `_Sizes`."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.sizes = _Sizes(problem.dims)
        self.number = {name: place for place, name in enumerate(problem.by_id)}
        self.reasons: list[str] = []
        self._reason: dict[str, int] = {}
        self.memories = [list(names) for names in dict.fromkeys(r.memories for r in problem.requests)]

    def buffers(self) -> dict[str, list[Any]]:
        """A list for each property, in the order of the requests."""
        requests, spans = self.problem.requests, self.problem.spans
        kinds = {tuple(names): place for place, names in enumerate(self.memories)}
        return {
            "id": [request.id for request in requests],
            "size": self.sizes.all(request.size for request in requests),
            "live": [list(chain.from_iterable(request.live)) for request in requests],
            "memories": [kinds[request.memories] for request in requests],
            "from": ["" if (span := spans.get(request.id)) is None else str(span) for request in requests],
        }

    def plan(self, shown: Shown) -> dict[str, object]:
        layout, problem = shown.layout, self.problem
        order = {name: place for place, name in enumerate(layout.pools)}
        places = [layout.placements[request.id] for request in problem.requests]
        starts, ends = ({}, None) if not problem.contiguous else (layout.row.starts, layout.row.ends)
        told = [layout.decisions.get(request.id) for request in problem.requests]
        lone = [place for place, each in enumerate(told) if each and each.choice in (Choice.ALONE, Choice.REGISTER)]
        return {
            "at": None if shown.binding is None else [shown.binding[dim] for dim in problem.dims],
            "strategy": layout.strategy,
            "total": self.sizes.of(layout.total),
            "bound": self.sizes.of(shown.bound),
            "pools": [
                {
                    "name": name,
                    "memory": region.memory,
                    "size": self.sizes.of(region.size),
                    "start": self.sizes.of(starts.get(name, 0)),
                    "copies": layout.problem.memories[region.memory].copies,
                }
                for name, region in layout.pools.items()
            ],
            "ends": None if ends is None else {name: self.sizes.of(end) for name, end in ends.items()},
            "pool": [order[place.pool] for place in places],
            "offset": self.sizes.all(place.offset for place in places),
            "why": [self._why("was placed without a reason given" if each is None else str(each)) for each in told],
            "alone": lone,
            "pairs": [[self.number[new], self.number[old]] for new, old in layout.in_place],
            "chains": self._chains(layout),
        }

    def no_plan(self, shown: NoPlan) -> dict[str, object]:
        return {"at": [shown.binding[dim] for dim in self.problem.dims], "fault": shown.fault}

    def handovers(self) -> list[tuple[int, int, str | None]]:
        """(destination, source, why it may not take over the place), None where it may."""
        may: list[tuple[int, int, str | None]] = [
            (self.number[new], self.number[old], None) for new, old in self.problem.in_place
        ]
        return may + [
            (self.number[new], self.number[old], str(why))
            for (new, old), why in self.problem.refusals.items()
            if new in self.number and old in self.number
        ]

    def _chains(self, layout: Layout) -> list[list[int]]:
        """The requests that have one place after the other, as numbers; only where there are several."""
        pairs = set(layout.in_place)
        taken = [each for each in possible(self.problem) if each.pair in pairs] if pairs else []
        groups = grouped(self.problem.requests, taken) if taken else []
        return [[self.number[r.id] for r in group.members] for group in groups if len(group.members) > 1]

    def _why(self, text: str) -> int:
        if text not in self._reason:
            self._reason[text] = len(self.reasons)
            self.reasons.append(text)
        return self._reason[text]


class _Sizes:
    """Sizes for the script: a number, a text of digits, or [the number of a formula], in `formulas` over `atoms`."""

    def __init__(self, dims: Iterable[Dim]) -> None:
        self.atoms: list[dict[str, object]] = []
        self.formulas: list[dict[str, object]] = []
        self._formula: dict[Poly, list[int]] = {}
        self._atom: dict[Atom, int] = {}
        for place, dim in enumerate(dims):
            self._atom[dim] = place
            self.atoms.append({"dim": place})

    def all(self, sizes: Iterable[Size]) -> list[object]:
        return [self.of(size) for size in sizes]

    def of(self, size: Size) -> object:
        if isinstance(size, int):
            return size if abs(size) <= _EXACT else str(size)
        if size not in self._formula:
            # A product is its factor and its atoms. The sum is numbered after what it is made of.
            terms = [[str(factor), *map(self._number, product)] for product, factor in size.terms.items()]
            self._formula[size] = [len(self.formulas)]
            self.formulas.append({"text": str(size), "terms": terms})
        return self._formula[size]

    def _number(self, atom: Atom) -> int:
        if atom not in self._atom:
            assert isinstance(atom, Composite), atom
            told: dict[str, object] = {"name": type(atom).__name__.lower(), "of": self.all(atom.operands)}
            self._atom[atom] = len(self.atoms)
            self.atoms.append(told)
        return self._atom[atom]
