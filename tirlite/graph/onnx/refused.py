"""Operators that no graph here can have, each with the reason: their results have no shape before a run, or no type."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_REASONS = (
    (
        "its results are random",
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    ),
    (
        "there are no sequences of tensors here",
        "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength"
        " SequenceMap SplitToSequence",
    ),
    ("there are no optional values here", "Optional OptionalGetElement OptionalHasElement"),
    ("there are no texts here", "RegexFullMatch StringConcat StringNormalizer StringSplit"),
    ("images in files are not decoded here", "ImageDecoder"),
)
REFUSED: Mapping[tuple[str, str], str] = MappingProxyType(
    {("", op): why for why, ops in _REASONS for op in ops.split()}
)


def why_refused(domain: str, op: str) -> str:
    """Why an operator has no counterpart."""
    return REFUSED.get((domain, op), f"there is no operator {domain or 'ai.onnx'}.{op} here")
