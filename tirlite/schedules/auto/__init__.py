"""What tirlite does with loops that nobody has scheduled: the same steps, chosen by rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.pipelines import LOOPS
from tirlite.schedules.auto.schedule_contractions import ScheduleContractions

if TYPE_CHECKING:
    from tirlite.ir import PrimFunc
    from tirlite.schedules.schedule import Schedule

# What becomes of loops where no schedule says it.
AUTO: tuple[Pass, ...] = (ScheduleContractions(), *LOOPS)


def schedule_of(func: PrimFunc, given: object) -> Schedule:
    """The schedule that `tl.compile` follows with this option."""
    from tirlite.schedules.schedule import Schedule

    if callable(given):
        return Schedule.by(given, func)
    if given is None or isinstance(given, tuple):
        return Schedule(func, given or ())
    from tirlite.analysis.facts import Facts
    from tirlite.rewrite.normalize import Normalize
    from tirlite.schedules.auto.contraction import scheduled

    return Schedule(func, (*scheduled(Facts(Normalize()(func)))[1], *LOOPS))


__all__ = ["AUTO", "schedule_of"]
