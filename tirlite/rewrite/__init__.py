"""Passes PrimFunc -> PrimFunc, and the pipelines made of them."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.rewrite.checks import CheckBounds as CheckBounds, CheckRaces as CheckRaces
    from tirlite.rewrite.loops.parallelize_loops import ParallelizeLoops as ParallelizeLoops
    from tirlite.rewrite.loops.partition_loops import PartitionLoops as PartitionLoops
    from tirlite.rewrite.loops.unroll_loops import UnrollLoops as UnrollLoops
    from tirlite.rewrite.normalize import Normalize as Normalize
    from tirlite.rewrite.on_demand import (
        BlockReductions as BlockReductions,
        CheckReductions as CheckReductions,
        ComputeOnce as ComputeOnce,
        DivideLoops as DivideLoops,
        FindReductions as FindReductions,
        InjectVirtualThreads as InjectVirtualThreads,
        NameValues as NameValues,
        NarrowIntegers as NarrowIntegers,
        SplitReductions as SplitReductions,
        SplitThreads as SplitThreads,
        TightenLoops as TightenLoops,
        UnmarkLoops as UnmarkLoops,
        UsePermissions as UsePermissions,
    )
    from tirlite.rewrite.pipeline import (
        DumpFolder as DumpFolder,
        Observer as Observer,
        Pass as Pass,
        PrintAfter as PrintAfter,
        Step as Step,
        run_pipeline as run_pipeline,
        verify_after as verify_after,
    )
    from tirlite.rewrite.pipelines import LowerCallees as LowerCallees, default_pipeline as default_pipeline
    from tirlite.rewrite.remove_no_ops import RemoveNoOps as RemoveNoOps
    from tirlite.rewrite.simplify.simplify import Simplify as Simplify, simplified as simplified
    from tirlite.rewrite.storage import StorageRewrite as StorageRewrite
    from tirlite.rewrite.storage.double_buffer import DoubleBuffer as DoubleBuffer
    from tirlite.rewrite.storage.shape_rewrite import ByShape as ByShape
    from tirlite.rewrite.storage.split_webs import SplitWebs as SplitWebs
    from tirlite.rewrite.storage.storage_problem import (
        StorageProblem as StorageProblem,
        storage_problem as storage_problem,
    )
    from tirlite.rewrite.vectors.vectorize_loops import VectorizeLoops as VectorizeLoops
else:
    __getattr__, __all__ = late_names(__name__)
