"""Bits that are turned over in an entry: a sample of what `python -m flips` tries."""

from __future__ import annotations

import random

import pytest
from flips import artifact_in, entry, flipped, little_memory

from tirlite.runtime.artifact.artifact import Artifact


@pytest.fixture(scope="module")
def kept() -> tuple[bytes, bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIRLITE_CACHE", "0")  # restored afterwards
        return entry()


def test_any_flip_is_a_miss(kept: tuple[bytes, bytes]) -> None:
    key, content = kept
    assert artifact_in(key, content) is not None
    rng = random.Random(0)
    found = [artifact_in(key, flipped(content, rng, mended=False)) for _ in range(500)]
    assert found == [None] * 500


def test_with_its_checksum_made_right_an_entry_is_an_artifact_or_a_miss(kept: tuple[bytes, bytes]) -> None:
    key, content = kept
    rng = random.Random(0)
    with little_memory():
        found = [artifact_in(key, flipped(content, rng, mended=True)) for _ in range(500)]
    assert {type(each) for each in found} == {Artifact, type(None)}
