"""Schedules: loop transformations that an author applies step by step, each refused where it would change results."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.schedules.annotate import Annotate as Annotate, Nontemporal as Nontemporal, Parallel as Parallel
    from tirlite.schedules.cache_write import CacheRead as CacheRead, CacheWrite as CacheWrite
    from tirlite.schedules.compute_at import ComputeAt as ComputeAt
    from tirlite.schedules.dots import Dots as Dots
    from tirlite.schedules.expand import Expand as Expand
    from tirlite.schedules.handle import LoopHandle as LoopHandle
    from tirlite.schedules.inline import Inline as Inline, InlineLets as InlineLets
    from tirlite.schedules.join import Join as Join
    from tirlite.schedules.pack import Pack as Pack
    from tirlite.schedules.pack_padded import PackPadded as PackPadded
    from tirlite.schedules.peel import Peel as Peel
    from tirlite.schedules.precompute import Precompute as Precompute
    from tirlite.schedules.reorder import Distribute as Distribute, Reorder as Reorder
    from tirlite.schedules.rescale import Rescale as Rescale
    from tirlite.schedules.rfactor import Rfactor as Rfactor
    from tirlite.schedules.scan import Scan as Scan
    from tirlite.schedules.schedule import Schedule as Schedule, schedule as schedule
    from tirlite.schedules.shrink import Shrink as Shrink
    from tirlite.schedules.specialize import Specialize as Specialize
    from tirlite.schedules.split import Delinearise as Delinearise, Fuse as Fuse, Split as Split
    from tirlite.schedules.store_at import StoreAt as StoreAt
    from tirlite.schedules.tensorize import Tensorize as Tensorize
    from tirlite.schedules.tile import Skew as Skew, Tile as Tile
    from tirlite.schedules.unroll_jam import Unroll as Unroll, UnrollJam as UnrollJam
    from tirlite.schedules.vectorize import Vectorize as Vectorize
else:
    __getattr__, __all__ = late_names(__name__)
