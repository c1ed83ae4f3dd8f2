"""Runs ONNX models in onnxruntime, and finds the bytes that it plans for tensors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_WARNINGS_OFF = 3
# onnxruntime's names of the types that a number on the command line may become.
_NUMPY = MappingProxyType({"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32})


def is_installed() -> bool:
    return find_spec("onnxruntime") is not None


def session_of(path: Path, threads: int) -> Any:
    """A session that runs the model on this many threads."""
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = _WARNINGS_OFF
    # Stop its threads from spinning after a call, which would slow down the next library.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds_of(session: Any, arrays: Sequence[Array], constants: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs of a session by name, in order; `arrays` are those without `constants`."""
    given = iter(arrays)
    found = {}
    for each in session.get_inputs():
        known = constants.get(each.name)
        found[each.name] = next(given) if known is None else known.astype(_NUMPY.get(each.type, known.dtype))
    return found


def takes(path: Path, arrays: Sequence[Array], constants: Mapping[str, Array]) -> bool:
    """Whether onnxruntime is installed and runs the model on these inputs, which some operators may refuse."""
    if not is_installed():
        return False
    try:
        session = session_of(path, 1)
        session.run(None, feeds_of(session, arrays, constants))
    except Exception:  # any error means that it does not run the model
        return False
    return True


def planned_block(path: Path, feeds: Mapping[str, Array]) -> int | None:
    """The bytes that it plans for tensors, given these inputs; None if unknown.

    Measured in a new process, since the log of a process that has run before says less.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "inputs.npz"
        np.savez(file, *feeds.values())
        command = [sys.executable, "-m", "tirlite.bench.onnxruntime_figures", str(path), str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    output = ended.stdout.split()
    return int(output[-1]) if output and output[-1].isdecimal() else None


_SAME_AS_REQUESTED = 1
_INFO, _ERROR = 0, 3
_GROWTH = re.compile(rb"Extending BFCArena for Cpu\..*\(requested\) num_bytes: (\d+)")


def block(model: str, arrays: list[Any]) -> int:
    """The bytes of the block planned at the shapes of these inputs, or -1 if unknown.
    Only the log tells. The second run of the same shapes allocates the block planned from the first run, and with an
    arena that grows exactly by what is requested, the log shows its size. A process can measure this only once.
    """
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
    # Shrink the arena after the first run; otherwise the block may reuse its memory.
    returning = runtime.RunOptions()
    returning.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session.run(None, feeds, returning)
    with tempfile.TemporaryFile() as log:
        # The log is written to the file descriptor, not through Python.
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
    # Exit at once, as its arenas must not outlive its logger.
    os._exit(0)
