"""Describes a layout: a table of its pools, its decisions, and the reason why two requests share or do not."""

from __future__ import annotations

from itertools import combinations

from tirlite.diag import PlanMessage, did_you_mean
from tirlite.groups import by_key
from tirlite.plan.bound import peaks
from tirlite.plan.layout import Choice, Layout, PlannedPool
from tirlite.plan.request import Request
from tirlite.show import Piece, Role, Styled, table
from tirlite.sizes import Size

_ROWS = 40
# Names that are told where one is unknown.
_NAMES = 8
# Pairs of requests that are told of one by one.
_PAIRS = 66


class UnknownRequest(PlanMessage):
    """A plan is asked about a request that it does not have.

    Example: `plan.explain("rovs")`, where the request is called `rows`.
    Fix: Correct the id.
    """

    title = "the plan has no request `{id}`"
    help = "{hint}"


def summary(layout: Layout, bound: Size, gap: float | None) -> str:
    """One line of figures, and a table of the pools and the requests in them."""
    told = "depends on the dims" if gap is None else f"{gap:.1%}"
    head = f"{layout.strategy}: {layout.total} bytes, lower bound {bound}, gap {told}"
    rows = [
        (name, region.memory, _bytes(layout, region), region.align, " ".join(layout.residents[name]))
        for name, region in layout.pools.items()
    ]
    return head + "\n" + table(("pool", "memory", "bytes", "align", "requests"), rows, _ROWS)


def _bytes(layout: Layout, region: PlannedPool) -> Size | str:
    copies = layout.problem.memories[region.memory].copies
    return region.size if copies == 1 else f"{region.size} x {copies}"


def _times(layout: Layout, region: PlannedPool) -> str:
    copies = layout.problem.memories[region.memory].copies
    return "" if copies == 1 else f" x {copies} copies"


def styled(text: str) -> Styled:
    """The text of `summary` with its parts told apart: figures, the head of the table, its rows."""
    lines = text.split("\n")
    rule = next((number for number, line in enumerate(lines) if line and not line.strip("- ")), len(lines))
    pieces = [Piece(lines[0], Role.STRONG)]
    for number, line in enumerate(lines[1:], start=1):
        role = Role.KEYWORD if number == rule - 1 else Role.FAINT if number == rule else Role.PLAIN
        pieces += [Piece("\n"), Piece(line, role)]
    return tuple(pieces)


def explain_all(layout: Layout, only: str | None = None) -> str:
    """For each pool, or for that of one request, who shares it, and for each request the reason why it lies there."""
    if only is not None and (told := _not_planned(layout, only)) is not None:
        return told
    lines = []
    chosen = None if only is None else layout.placements[_request(layout, only).id].pool
    for name, region in layout.pools.items():
        if chosen not in (None, name):
            continue
        ids = layout.residents[name]
        shared = f"shared by {len(ids)}" if len(ids) > 1 else "not shared"
        lines.append(f"{name}: {region.size} bytes{_times(layout, region)} in {region.memory}, {shared}")
        for request in (layout.problem.by_id[i] for i in ids):
            offset = layout.placements[request.id].offset
            place = "" if offset == 0 else f" at {offset}"
            lines.append(
                f"    {request.id}: {request.size} bytes{place}, live {request.spans}; {_why(layout, request.id)}"
            )
    if only is None:
        lines += [*_pairs(layout), *_peaks(layout), *_outside(layout)]
    return "\n".join(lines)


def _pairs(layout: Layout) -> list[str]:
    """For each pair of requests why they share, or do not; where they are many, how to ask for one."""
    names = list(layout.problem.by_id)
    count = len(names) * (len(names) - 1) // 2
    if count > _PAIRS:
        return [f"{count} pairs: `explain(first, second)` tells why two of them share, or do not"]
    told = [explain_pair(layout, first, second) for first, second in combinations(names, 2)]
    return ["pairs:", *(f"    {line}" for each in told for line in each.split("\n"))] if told else []


def _peaks(layout: Layout) -> list[str]:
    """For each memory, when most is live, and what; symbolic sizes as a formula, at one of the times that decide it."""
    lines = []
    sources = dict(layout.in_place)
    for memory, peak in peaks(layout.problem, layout.in_place).items():
        live = {
            request.id
            for request in layout.problem.requests
            if request.memories == (memory,) and any(low <= peak.time < high for low, high in request.live)
        }
        # What takes over from another at that time has its bytes.
        told = [
            f"{name} in place of {sources[name]}" if sources.get(name) in live else name
            for name in layout.problem.by_id
            if name in live
        ]
        lines.append(f"peak of {memory}: {peak.size} bytes at time {peak.time}: {_listed(told)}")
    return lines


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_ROWS]) + (f" and {len(names) - _ROWS} more" if len(names) > _ROWS else "")


def _outside(layout: Layout) -> list[str]:
    """What is not planned, one line for each reason."""
    names = by_key((reason, name) for name, reason in layout.problem.outside)
    return [f"not planned, as {reason}: {_listed(those)}" for reason, those in names.items()]


def _not_planned(layout: Layout, name: str) -> str | None:
    """The reason why something is not planned, if it is not."""
    reason = None if name in layout.problem.by_id else dict(layout.problem.outside).get(name)
    return None if reason is None else f"`{name}` is not planned, as {reason}"


def explain_pair(layout: Layout, first: str, second: str) -> str:
    """Why two requests share storage, or do not."""
    for name in (first, second):
        if (told := _not_planned(layout, name)) is not None:
            return told
    a, b = _request(layout, first), _request(layout, second)
    pair = f"`{first}` and `{second}`"
    overlap = _common(a, b)
    same_pool = layout.placements[first].pool == layout.placements[second].pool
    if (taken := next((two for two in layout.in_place if set(two) == {first, second}), None)) is not None:
        return _in_place(layout, *taken)
    if overlap is not None:
        how = "at different offsets" if same_pool else "in different pools"
        return f"{pair} are both live at time {overlap}, so they lie {how}{_no_handover(layout, first, second)}"
    if same_pool:
        pool = layout.placements[first].pool
        return f"{pair} share `{pool}`: {first} is live {a.spans}, {second} {b.spans}; {second} {_why(layout, second)}"
    if not set(a.memories) & set(b.memories):
        return f"{pair} live in different memories: {' or '.join(a.memories)}, and {' or '.join(b.memories)}"
    lone = next((r.id for r in (a, b) if _choice(layout, r.id) in (Choice.ALONE, Choice.REGISTER)), None)
    if lone is not None:
        return f"{pair} could share, and do not: {lone} {_why(layout, lone)}"
    if layout.strategy == "tvm" and a.kind != b.kind and not _has_room(*sorted((a, b), key=lambda each: each.live)):
        kinds = f"{a.kind or 'none'} and {b.kind or 'none'}"
        return f"{pair} could share, and do not: `tvm` grows no storage for another kind, {kinds}"
    both = f"{_whereabouts(layout, a)}; {_whereabouts(layout, b)}"
    return f"{pair} could share, and do not, as other choices were preferred: {both}"


def _has_room(first: Request, second: Request) -> bool:
    """Whether TVM would find storage of the size of the one large enough for the other, which comes later."""
    return isinstance(first.size, int) and isinstance(second.size, int) and first.size >= second.size


def _no_handover(layout: Layout, first: str, second: str) -> str:
    """Why neither is in place of the other, if they are a candidate pair."""
    for new, old in ((first, second), (second, first)):
        if (new, old) in layout.problem.in_place:
            return f"\n    `{new}` could overwrite `{old}` in place, but other choices were preferred"
        if (reason := layout.problem.refusals.get((new, old))) is not None:
            return f"\n    `{new}` cannot overwrite `{old}` in place: {reason}"
    return ""


def _in_place(layout: Layout, destination: str, source: str) -> str:
    """What is told of a pair in place."""
    old, new = layout.problem.by_id[source], layout.problem.by_id[destination]
    return f"`{new.id}` overwrites `{old.id}` in place: {old.id} is live {old.spans}, {new.id} {new.spans}"


def _whereabouts(layout: Layout, request: Request) -> str:
    pool = layout.placements[request.id].pool
    others = [name for name in layout.residents[pool] if name != request.id]
    company = f" with {', '.join(others[:5])}{' and others' if len(others) > 5 else ''}" if others else ""
    return f"{request.id} lies in `{pool}`{company} and {_why(layout, request.id)}"


def _known(layout: Layout) -> str:
    """The known names, or some of many."""
    names = [*layout.problem.by_id]
    if not names:
        return "it has none"
    told = ", ".join(f"`{each}`" for each in names[:_NAMES])
    return f"it has {told}" + (f" and {len(names) - _NAMES} more" if len(names) > _NAMES else "")


def _request(layout: Layout, name: str) -> Request:
    if name not in layout.problem.by_id:
        raise UnknownRequest(str(name), did_you_mean(str(name), layout.problem.by_id, _known(layout))).error()
    return layout.problem.by_id[name]


def _common(a: Request, b: Request) -> int | None:
    """The first point in time at which both are live."""
    points = [
        max(low, other_low)
        for low, high in a.live
        for other_low, other_high in b.live
        if max(low, other_low) < min(high, other_high)
    ]
    return min(points, default=None)


def _choice(layout: Layout, name: str) -> Choice | None:
    return layout.decisions[name].choice if name in layout.decisions else None


def _why(layout: Layout, name: str) -> str:
    return str(layout.decisions[name]) if name in layout.decisions else "was placed without a reason given"
