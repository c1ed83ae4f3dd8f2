"""Lists schedules around one: another number in its steps, a step less, loops as written, nests by tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tirlite.ir import For, ForKind, PrimFunc
from tirlite.record import record
from tirlite.rewrite.parallelize_loops import ParallelizeLoops
from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.pipelines import LOOPS
from tirlite.schedules.annotate import Parallel
from tirlite.schedules.handle import LoopHandle, LoopName, handle_of, loops_around
from tirlite.schedules.pack import Pack
from tirlite.schedules.pack_padded import PackPadded
from tirlite.schedules.reorder import Reorder
from tirlite.schedules.split import Split
from tirlite.schedules.unroll_jam import UnrollJam
from tirlite.schedules.vectorize import Vectorize

Steps = tuple[Pass, ...]

# Tiles of a nest that no step has split: so many iterations of each of its two inner loops.
_TILES = (16, 32, 64)


@record
class Candidate:
    """The steps of a schedule, and what is different about it in a few words."""

    change: str
    steps: Steps


def beside(func: PrimFunc, answer: Steps) -> Iterator[Candidate]:
    """Schedules that owe nothing to the answer's numbers: by vectors and workers alone, by tiles, loops as written."""
    if answer != LOOPS:
        yield Candidate("vectors and workers alone", LOOPS)
    for outer, inner in _pairs(func):
        for by in _TILES:
            steps: Steps = (Split(outer, by), Split(inner, by), Reorder(_order(outer, inner)), *LOOPS)
            yield Candidate(f"tiles of {by} x {by} over {handle_of(outer)} and {handle_of(inner)}", steps)
    yield Candidate("loops as written", ())


def around(answer: Steps) -> Iterator[Candidate]:
    """Schedules that differ from the answer in one number, or lack one of its steps, or all that goes to workers."""
    widths = {lanes for step in answer if isinstance(step, Vectorize) for lanes in step.lanes}
    for width in sorted(widths, reverse=True):
        for other in _others(width, (1, 2), (2, 1)):
            steps = tuple(_with_width(step, width, other) for step in answer)
            yield Candidate(f"{other} lanes in place of {width}", steps)
    for place, step in enumerate(answer):
        if isinstance(step, Split | UnrollJam) and step.by not in widths:
            parts = ((1, 4), (1, 2), (2, 1), (4, 1)) if isinstance(step, Split) else ((1, 2), (2, 3), (4, 3), (2, 1))
            for other in _others(step.by, *parts):
                made = replace(step, by=other)
                yield Candidate(f"{_told(made)} in place of {step.by}", (*answer[:place], made, *answer[place + 1 :]))
    for place, step in enumerate(answer):
        yield Candidate(f"without {_told(step)}", (*answer[:place], *answer[place + 1 :]))
    serial = tuple(step for step in answer if not isinstance(step, Parallel | ParallelizeLoops))
    if len(answer) - len(serial) > 1:
        yield Candidate("without workers", serial)


def _others(number: int, *parts: tuple[int, int]) -> Iterator[int]:
    """These parts of a number that are whole, and more than 1."""
    for over, under in parts:
        if number * over % under == 0 and number * over // under > 1:
            yield number * over // under


def _with_width(step: Pass, width: int, other: int) -> Pass:
    """The step with another number of lanes: of vectors, and of blocks and panels that are as wide."""
    if isinstance(step, Vectorize):
        lanes = tuple(dict.fromkeys(other if each == width else each for each in step.lanes))
        return replace(step, lanes=tuple(sorted(lanes, reverse=True)))
    if isinstance(step, Split) and step.by == width:
        return replace(step, by=other)
    if isinstance(step, Pack | PackPadded) and step.whole == width:
        return replace(step, whole=other)
    return step


def _told(step: Pass) -> str:
    text = str(step)
    return text.removeprefix("s.") if text.startswith("s.") else type(step).__name__


def _pairs(func: PrimFunc) -> Iterator[tuple[LoopName, LoopName]]:
    """The two inner loops of each nest that holds nothing else but its body, by what steps call them."""
    every = [loop for loop, _ in loops_around(func)]
    for loop, around_it in loops_around(func):
        outer = around_it[-1] if around_it else None
        if outer is None or len(outer.body.stmts) > 1 or any(isinstance(each, For) for each in loop.body.stmts):
            continue
        if all(each.kind in (ForKind.SERIAL, ForKind.PARALLEL) and each.step == 1 for each in (outer, loop)):
            yield _name(outer, every), _name(loop, every)


def _name(loop: For, every: list[For]) -> LoopName:
    alike = [each for each in every if each.var.name == loop.var.name]
    return loop.var.name if len(alike) == 1 else LoopHandle(loop.var.name, alike.index(loop))


def _order(outer: LoopName, inner: LoopName) -> tuple[LoopName, ...]:
    # A loop that is split leaves those of its name one fewer, and its halves have names of their own.
    paths = [handle_of(each).path for each in (outer, inner)]
    return (*(f"{each}.outer" for each in paths), *(f"{each}.inner" for each in paths))
