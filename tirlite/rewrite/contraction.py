"""The passes that take storage away before any is planned, in order."""

from __future__ import annotations

from tirlite.rewrite.compact_buffers import CompactBuffers
from tirlite.rewrite.contract_temporaries import ContractTemporaries
from tirlite.rewrite.fold_storage import FoldStorage
from tirlite.rewrite.fuse_loops import FuseLoops
from tirlite.rewrite.pipeline import Pass
from tirlite.rewrite.remove_no_ops import RemoveNoOps
from tirlite.rewrite.sink_allocations import SinkAllocations

# See docs/inspecting.md for when it pays. Allocations sink twice: before, as it shows in loops of their own that each
# iteration fills a temporary anew; after, as fused loops hold all uses of more of them.
CONTRACTION: tuple[Pass, ...] = (
    SinkAllocations(),
    FuseLoops(),
    SinkAllocations(),
    CompactBuffers(),
    FoldStorage(),
    ContractTemporaries(),
    RemoveNoOps(),
)
