"""Models with symbolic dims from packages on PyPI: one compilation for all sizes, and what onnxruntime computes.

They are looked for below the folder that TIRLITE_MODELS names; the page on graphs says how to fetch them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph.arguments import bind

FOLDER = os.environ.get("TIRLITE_MODELS", "")
pytestmark = pytest.mark.skipif(not FOLDER, reason="TIRLITE_MODELS names no folder with models")

Inputs = dict[str, np.ndarray]
RATE = np.array(16000, np.int64)


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32) / 10


def magika(count: int) -> Inputs:
    return {"bytes": np.random.default_rng(0).integers(0, 256, (count, 2048)).astype(np.int32)}


def pitch(count: int) -> Inputs:
    return {"serving_default_input_2:0": noise(count, 43844, 1)}


def voice(count: int) -> Inputs:
    return {"input": noise(count, 576), "state": noise(2, count, 128)}


def voice_at_rate(count: int) -> Inputs:
    return {**voice(count), "sr": RATE}


def sequence(count: int) -> Inputs:
    return {"input": noise(count, 576), "h": noise(1, 1, 128), "c": noise(1, 1, 128)}


def echo(width: int) -> Callable[[int], Inputs]:
    return lambda count: {"input": noise(1, 3, count, 160), "h0": noise(4, 1, width)}


def spectrum(*shape: int) -> Callable[[int], Inputs]:
    return lambda count: {"input_1": noise(count, *shape)}


def packets(count: int) -> Inputs:
    return {"degraded_audio": noise(1, 1, count, 257), "rater_embed": noise(1, 64)}


# The end of the path, numbers for dims, constants, inputs of a size, sizes.
CASES = [
    ("nmp.onnx", {}, {}, pitch, (1, 4)),
    ("standard_v3_3/model.onnx", {}, {}, magika, (1, 3, 7)),
    ("silero_vad_16k_sequence.onnx", {}, {}, sequence, (1, 2, 5)),
    ("silero_vad_openvino_16k.onnx", {}, {}, voice, (1,)),
    ("silero_vad_16k_op15.onnx", {"sequence": 576}, {}, voice_at_rate, (1, 3, 8)),
    ("silero_vad_half.onnx", {"sequence": 576}, {}, voice, (1, 3, 8)),
    ("silero_vad.onnx", {"input_1": 576}, {"sr": 16000}, voice_at_rate, (1, 3, 8)),
    ("silero_vad_op18_ifless.onnx", {}, {}, voice_at_rate, (1, 3, 8)),
    ("Run_1663829550_Stage_0.onnx", {"batch_size": 1}, {}, echo(64), (20, 37)),
    ("Run_1663915512_Stage_0.onnx", {"batch_size": 1}, {}, echo(64), (20, 37)),
    ("Run_1668423760_Stage_0.onnx", {"batch_size": 1}, {}, echo(96), (20, 37)),
    ("dnsmos_models/bak_ovr.onnx", {}, {}, spectrum(901, 161), (1, 2)),
    ("dnsmos_models/sig.onnx", {}, {}, spectrum(901, 161), (1, 2)),
    ("dnsmos_models/model_v8.onnx", {}, {}, spectrum(900, 120), (1, 2)),
    ("dnsmos_models/sig_bak_ovr.onnx", {}, {}, spectrum(144160), (1, 2)),
    ("plcmos_v2.onnx", {"batch_size": 1}, {}, packets, (30, 64)),
]


@pytest.mark.parametrize(("end", "dims", "constants", "inputs", "sizes"), CASES, ids=[case[0] for case in CASES])
def test_one_compilation_computes_what_onnxruntime_does(
    end: str, dims: dict[str, int], constants: dict[str, int], inputs: Callable[[int], Inputs], sizes: tuple[int, ...]
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = next((each for each in sorted(Path(FOLDER).rglob(Path(end).name)) if each.as_posix().endswith(end)), None)
    if path is None:
        pytest.skip(f"no {end}")
    function = tl.from_onnx(path, dims=dims, constants=constants)
    one, each = tl.graph.compile(function), tl.graph.compile(function, strategy="per_shape")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    ratios = []
    for size in sizes:
        given = inputs(size)
        arrays = [given[param.name] for param in function.params]
        wanted = session.run(None, given)
        for graph in (one, each):
            found = graph(*arrays)
            for mine, theirs in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
                assert isinstance(mine, np.ndarray)
                assert mine.shape == theirs.shape
                assert np.abs(mine - theirs).max() <= 1e-4 * np.abs(theirs).max()
        at = {dim.name: value for dim, value in bind(function, arrays)[1].items()}
        plan = each.plan_at(**at)
        assert plan.total == plan.lower_bound
        ratios.append(one.plan_at(**at).total / plan.lower_bound)
    assert np.mean(ratios) <= 1.2
