"""Random models of one node compute what onnxruntime, or the standard's reference, computes."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from graph.onnx.nodes.trial import FAILED, MAKERS, WRONG, sample_of, trial  # noqa: E402

COMPILED = ("Conv", "ConvTranspose", "GatherND", "MatMul", "Pad", "Resize", "Slice", "TopK")


def told(seed: int, op: str, *, compiled: bool = False) -> list[str]:
    sample = sample_of(seed, op)
    verdict = trial(sample, compiled=compiled)
    return [f"{sample}: {verdict.why}"] if verdict.state in (WRONG, FAILED) else []


@pytest.mark.parametrize("op", sorted(MAKERS))
def test_random_nodes_mean_what_the_standard_says(op: str) -> None:
    assert [each for seed in range(3) for each in told(seed, op)] == []


@pytest.mark.parametrize("op", COMPILED)
def test_random_nodes_compile_to_the_same(op: str) -> None:
    assert told(100, op, compiled=True) == []
