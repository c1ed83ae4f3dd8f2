"""Schedules: loop transformations that an author applies step by step, each refused where it would change results."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.schedules.cache_write import CacheWrite
    from tirlite.schedules.compute_at import ComputeAt
    from tirlite.schedules.distribute import Distribute
    from tirlite.schedules.dots import Dots
    from tirlite.schedules.expand import Expand
    from tirlite.schedules.fuse import Fuse
    from tirlite.schedules.handle import LoopHandle
    from tirlite.schedules.inline_lets import InlineLets
    from tirlite.schedules.pack import Pack
    from tirlite.schedules.pack_padded import PackPadded
    from tirlite.schedules.parallel import Parallel
    from tirlite.schedules.precompute import Precompute
    from tirlite.schedules.reorder import Reorder
    from tirlite.schedules.schedule import Schedule, schedule
    from tirlite.schedules.specialize import Specialize
    from tirlite.schedules.split import Split
    from tirlite.schedules.unroll_jam import UnrollJam
    from tirlite.schedules.vectorize import Vectorize
else:
    __getattr__ = late_names(
        __name__,
        {
            "cache_write": "CacheWrite",
            "compute_at": "ComputeAt",
            "distribute": "Distribute",
            "dots": "Dots",
            "expand": "Expand",
            "fuse": "Fuse",
            "handle": "LoopHandle",
            "inline_lets": "InlineLets",
            "pack": "Pack",
            "pack_padded": "PackPadded",
            "parallel": "Parallel",
            "precompute": "Precompute",
            "reorder": "Reorder",
            "schedule": "Schedule schedule",
            "specialize": "Specialize",
            "split": "Split",
            "unroll_jam": "UnrollJam",
            "vectorize": "Vectorize",
        },
    )

__all__ = [
    "CacheWrite",
    "ComputeAt",
    "Distribute",
    "Dots",
    "Expand",
    "Fuse",
    "InlineLets",
    "LoopHandle",
    "Pack",
    "PackPadded",
    "Parallel",
    "Precompute",
    "Reorder",
    "Schedule",
    "Specialize",
    "Split",
    "UnrollJam",
    "Vectorize",
    "schedule",
]
