"""Schedules around tirlite's answer, or an author's, compared and timed in turns: the quickest is returned."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.tune.autotune import Tuned as Tuned, autotune as autotune
    from tirlite.tune.contest import Trial as Trial
else:
    __getattr__, __all__ = late_names(__name__)
