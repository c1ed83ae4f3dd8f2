"""An ONNX model and inputs in, what onnxruntime needs for them out: milliseconds, and bytes between operators."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.record import record

Array = npt.NDArray[Any]
_WARNINGS_OFF = 3
# What onnxruntime calls the types that a number on the command line may become.
_NUMPY = MappingProxyType({"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32})


@record
class Peer:
    """Milliseconds of a call by the number of threads; the bytes of the planned block, or None if it tells none."""

    milliseconds: Mapping[int, float]
    block: int | None


def onnxruntime_figures(
    path: Path,
    arrays: Sequence[Array],
    constants: Mapping[str, Array],
    threads: Sequence[int],
    timed: Callable[[Callable[[], object]], float],
) -> Peer | None:
    """None where onnxruntime is not installed. `arrays` are the inputs in their order, without those of `constants`."""
    if find_spec("onnxruntime") is None:
        return None
    runtime: Any = import_module("onnxruntime")
    found = {}
    for count in threads:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = count
        options.log_severity_level = _WARNINGS_OFF
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        feeds = feeds_of(session, arrays, constants)

        def call(session: Any = session, feeds: Any = feeds) -> object:
            return session.run(None, feeds)

        found[count] = timed(call)
    return Peer(found, _block(path, list(feeds.values())))


def feeds_of(session: Any, arrays: Sequence[Array], constants: Mapping[str, Array]) -> dict[str, Array]:
    """What a session takes, by name and in the order of its inputs."""
    given = iter(arrays)
    found = {}
    for each in session.get_inputs():
        known = constants.get(each.name)
        found[each.name] = next(given) if known is None else known.astype(_NUMPY.get(each.type, known.dtype))
    return found


def _block(path: Path, arrays: Sequence[Array]) -> int | None:
    """In a process of its own: the log of one that has run before says less."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "inputs.npz"
        np.savez(file, *arrays)
        command = [sys.executable, "-m", "tirlite.cli.probes.onnxruntime_block", str(path), str(file)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    told = ended.stdout.split()
    return int(told[-1]) if told and told[-1].isdecimal() else None
