"""Chosen: what became of a function by the rules for one kind of loops, and the figures that decided it."""

from __future__ import annotations

from tirlite.ir import PrimFunc
from tirlite.record import record
from tirlite.rewrite.pipeline import Pass


@record(eq=False)
class Chosen:
    """A function after the steps that made it. `figures` are sentences for its author, in the order of the steps."""

    func: PrimFunc
    steps: tuple[Pass, ...] = ()
    figures: tuple[str, ...] = ()
