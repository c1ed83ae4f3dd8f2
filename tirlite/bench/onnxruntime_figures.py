"""Tells what onnxruntime runs of an ONNX model and inputs, and the bytes that it plans for tensors."""

from __future__ import annotations

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
# What onnxruntime calls the types that a number on the command line may become.
_NUMPY = MappingProxyType({"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32})


def is_installed() -> bool:
    return find_spec("onnxruntime") is not None


def session_of(path: Path, threads: int) -> Any:
    """What runs the model on so many threads."""
    runtime: Any = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = _WARNINGS_OFF
    # Its threads go on looking for work when a call has ended, at the cost of the next library that is called.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds_of(session: Any, arrays: Sequence[Array], constants: Mapping[str, Array]) -> dict[str, Array]:
    """What a session takes, by name and in the order of its inputs; `arrays` are those without `constants`."""
    given = iter(arrays)
    found = {}
    for each in session.get_inputs():
        known = constants.get(each.name)
        found[each.name] = next(given) if known is None else known.astype(_NUMPY.get(each.type, known.dtype))
    return found


def takes(path: Path, arrays: Sequence[Array], constants: Mapping[str, Array]) -> bool:
    """Whether it is installed and runs the model on these inputs: an operator of its own may refuse random ones."""
    if not is_installed():
        return False
    try:
        session = session_of(path, 1)
        session.run(None, feeds_of(session, arrays, constants))
    except Exception:  # whatever it says to a model or an input that it does not take
        return False
    return True


def planned_block(path: Path, feeds: Mapping[str, Array]) -> int | None:
    """The bytes that it plans for tensors, given these inputs; None if it tells none.

    In a process of its own: the log of one that has run before says less.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "inputs.npz"
        np.savez(file, *feeds.values())
        command = [sys.executable, "-m", "tirlite.bench.probes.onnxruntime_block", str(path), str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    told = ended.stdout.split()
    return int(told[-1]) if told and told[-1].isdecimal() else None
