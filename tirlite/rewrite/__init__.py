"""Passes PrimFunc -> PrimFunc, one a file, and the pipelines made of them."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.rewrite.block_reductions import BlockReductions
    from tirlite.rewrite.check_bounds import CheckBounds
    from tirlite.rewrite.check_races import CheckRaces
    from tirlite.rewrite.check_reductions import CheckReductions
    from tirlite.rewrite.compact_buffers import CompactBuffers
    from tirlite.rewrite.compute_once import ComputeOnce
    from tirlite.rewrite.contract_temporaries import ContractTemporaries
    from tirlite.rewrite.contraction import CONTRACTION
    from tirlite.rewrite.divide_loops import DivideLoops
    from tirlite.rewrite.double_buffer import DoubleBuffer
    from tirlite.rewrite.fold_storage import FoldStorage
    from tirlite.rewrite.fuse_loops import FuseLoops
    from tirlite.rewrite.lower_callees import LowerCallees
    from tirlite.rewrite.normalize import Normalize
    from tirlite.rewrite.observers import DumpFolder, PrintAfter, verify_after
    from tirlite.rewrite.parallelize_loops import ParallelizeLoops
    from tirlite.rewrite.partition_loops import PartitionLoops
    from tirlite.rewrite.pipeline import Observer, Pass, Step, run_pipeline
    from tirlite.rewrite.pipelines import default_pipeline
    from tirlite.rewrite.remove_no_ops import RemoveNoOps
    from tirlite.rewrite.shape_rewrite import ByShape
    from tirlite.rewrite.simplify.simplify import Simplify, simplified
    from tirlite.rewrite.sink_allocations import SinkAllocations
    from tirlite.rewrite.split_reductions import SplitReductions
    from tirlite.rewrite.split_webs import SplitWebs
    from tirlite.rewrite.storage_problem import StorageProblem, storage_problem
    from tirlite.rewrite.storage_rewrite import StorageRewrite
    from tirlite.rewrite.threads.inject_virtual import InjectVirtualThreads
    from tirlite.rewrite.threads.split import SplitThreads
    from tirlite.rewrite.unroll_loops import UnrollLoops
    from tirlite.rewrite.use_permissions import UsePermissions
    from tirlite.rewrite.vectorize_loops import VectorizeLoops
else:
    __getattr__ = late_names(
        __name__,
        {
            "block_reductions": "BlockReductions",
            "check_bounds": "CheckBounds",
            "check_races": "CheckRaces",
            "check_reductions": "CheckReductions",
            "compact_buffers": "CompactBuffers",
            "compute_once": "ComputeOnce",
            "contract_temporaries": "ContractTemporaries",
            "contraction": "CONTRACTION",
            "double_buffer": "DoubleBuffer",
            "fold_storage": "FoldStorage",
            "fuse_loops": "FuseLoops",
            "threads.inject_virtual": "InjectVirtualThreads",
            "divide_loops": "DivideLoops",
            "lower_callees": "LowerCallees",
            "normalize": "Normalize",
            "observers": "DumpFolder PrintAfter verify_after",
            "parallelize_loops": "ParallelizeLoops",
            "partition_loops": "PartitionLoops",
            "pipeline": "Observer Pass Step run_pipeline",
            "pipelines": "default_pipeline",
            "remove_no_ops": "RemoveNoOps",
            "shape_rewrite": "ByShape",
            "simplify.simplify": "Simplify simplified",
            "sink_allocations": "SinkAllocations",
            "split_reductions": "SplitReductions",
            "threads.split": "SplitThreads",
            "split_webs": "SplitWebs",
            "storage_problem": "StorageProblem storage_problem",
            "storage_rewrite": "StorageRewrite",
            "unroll_loops": "UnrollLoops",
            "use_permissions": "UsePermissions",
            "vectorize_loops": "VectorizeLoops",
        },
    )

__all__ = [
    "CONTRACTION",
    "BlockReductions",
    "ByShape",
    "CheckBounds",
    "CheckRaces",
    "CheckReductions",
    "CompactBuffers",
    "ComputeOnce",
    "ContractTemporaries",
    "DoubleBuffer",
    "DivideLoops",
    "DumpFolder",
    "FoldStorage",
    "FuseLoops",
    "InjectVirtualThreads",
    "LowerCallees",
    "Normalize",
    "Observer",
    "ParallelizeLoops",
    "PartitionLoops",
    "Pass",
    "PrintAfter",
    "RemoveNoOps",
    "Simplify",
    "SinkAllocations",
    "SplitReductions",
    "SplitThreads",
    "SplitWebs",
    "Step",
    "StorageProblem",
    "StorageRewrite",
    "UnrollLoops",
    "UsePermissions",
    "VectorizeLoops",
    "default_pipeline",
    "run_pipeline",
    "storage_problem",
    "verify_after",
    "simplified",
]
