"""Prints the bytes of the block that onnxruntime plans for the tensors between operators, or -1 where it tells none.

Only its log says so. The second run of the same shapes allocates that block, after the first one has recorded what is
alive when; an arena that grows by exactly what is asked for shows it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_SAME_AS_REQUESTED = 1
_INFO, _ERROR = 0, 3
_GROWTH = re.compile(rb"Extending BFCArena for Cpu\..*\(requested\) num_bytes: (\d+)")


def block(model: str, arrays: list[Any]) -> int:
    """The bytes at the shapes of these inputs. This process is of no use for a second measurement."""
    runtime: Any = import_module("onnxruntime")
    runtime.set_default_logger_severity(_INFO)
    growth = {"arena_extend_strategy": _SAME_AS_REQUESTED, "initial_chunk_size_bytes": 256}
    limits = {"max_mem": 0, "max_dead_bytes_per_chunk": -1}
    kinds = runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, runtime.OrtMemType.DEFAULT
    runtime.create_and_register_allocator(runtime.OrtMemoryInfo("Cpu", *kinds), runtime.OrtArenaCfg(growth | limits))
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = _ERROR
    options.add_session_config_entry("session.use_env_allocators", "1")
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {each.name: array for each, array in zip(session.get_inputs(), arrays, strict=True)}
    # Otherwise the block may go where a tensor of the first run was.
    returning = runtime.RunOptions()
    returning.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session.run(None, feeds, returning)
    with tempfile.TemporaryFile() as log:
        # The log goes to the descriptor, not through Python.
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            session.run(None, feeds)
        finally:
            os.dup2(kept, 2)
        log.seek(0)
        return max(map(int, _GROWTH.findall(log.read())), default=-1)


if __name__ == "__main__":
    with np.load(Path(sys.argv[2]), allow_pickle=False) as given:
        found = block(sys.argv[1], [given[name] for name in given.files])
    print(found, flush=True)
    # Its arenas may not outlive its log.
    os._exit(0)
