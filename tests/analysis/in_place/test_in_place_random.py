"""What is allowed gives the same answer with both buffers at one address: random nests, random affine indices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fuzz.outline import outlined
from in_place.affine import affine_program
from in_place.merge import backwards, forwards, merged
from random_cases import groups

from tirlite.analysis import check_storage
from tirlite.analysis.in_place.candidates import in_place_candidates
from tirlite.interp import interpret
from tirlite.ir import Buffer, PrimFunc, Var
from tirlite.rewrite import Normalize

PROGRAMS = 600
GROUP = 60


def run(func: PrimFunc) -> list[np.ndarray]:
    arrays: dict[Var | Buffer, object] = {}
    for param in func.params:
        values = np.arange(1, 25) * 7 % 31 if param.name == "x" else np.zeros(24)
        arrays[param] = values.astype(param.dtype.numpy)
    interpret(func, arrays)
    return [array for array in arrays.values() if isinstance(array, np.ndarray)]


def agree(func: PrimFunc, other: PrimFunc) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(run(func), run(other), strict=True))


@pytest.mark.parametrize("first", groups(PROGRAMS, GROUP))
def test_allowed_pairs_keep_their_meaning(first: int) -> None:
    allowed, refused, harmless = 0, 0, 0
    for seed in range(first, first + GROUP):
        func = Normalize()(affine_program(seed))
        for proof in in_place_candidates(func):
            assert (proof.destination.name, proof.source.name) == ("b", "a")
            orders = (forwards(func), backwards(func))
            kept = all(agree(each, merged(each, proof.destination, proof.source)) for each in orders)
            assert kept or not proof.allowed, f"seed {seed}: {proof}\n{func}"
            allowed += proof.allowed
            refused += not proof.allowed
            harmless += kept and not proof.allowed
    print(f"{allowed} allowed, {refused} refused, {harmless} of these without need")
    assert allowed > 3
    assert refused > 3


@pytest.mark.parametrize("first", groups(PROGRAMS, 2 * GROUP))
def test_allowed_pairs_keep_their_meaning_over_several_nests(first: int) -> None:
    allowed, refused = 0, 0
    for seed in range(first, first + GROUP):
        func = Normalize()(affine_program(seed, nests=2 + seed % 2))
        for proof in in_place_candidates(func):
            if proof.at is proof.until:
                continue
            together = merged(func, proof.destination, proof.source)
            orders = (forwards(func), backwards(func))
            kept = all(agree(each, merged(each, proof.destination, proof.source)) for each in orders)
            assert kept or not proof.allowed, f"seed {seed}: {proof}\n{func}"
            counts = bool(check_storage(func, together, [replace(proof, obstacle=None)]))
            assert counts == kept or not proof.allowed, f"seed {seed}: {proof}\n{func}"
            allowed += proof.allowed
            refused += not proof.allowed
    print(f"{allowed} allowed, {refused} refused")
    assert allowed > 0
    assert refused > 3


@pytest.mark.parametrize("first", groups(PROGRAMS, GROUP))
def test_proofs_of_what_does_harm_are_refuted(first: int) -> None:
    """The check of a rewrite is handed proofs that say yes to everything, and finds those that must not."""
    refuted = 0
    for seed in range(first, first + GROUP):
        func = Normalize()(affine_program(seed))
        for proof in in_place_candidates(func):
            together = merged(func, proof.destination, proof.source)
            counts = bool(check_storage(func, together, [replace(proof, obstacle=None)]))
            assert counts or not proof.allowed, f"seed {seed}: {proof}\n{func}"
            if counts and not proof.allowed:
                orders = (forwards(func), backwards(func))
                assert all(agree(each, merged(each, proof.destination, proof.source)) for each in orders), seed
            refuted += not counts
    assert refuted > 3


@pytest.mark.parametrize("first", groups(PROGRAMS, GROUP))
def test_allowed_pairs_keep_their_meaning_across_calls(first: int) -> None:
    """The same programs, each loop in a function of its own."""
    allowed, refused = 0, 0
    for seed in range(first, first + GROUP):
        plain = Normalize()(affine_program(seed))
        for proof in in_place_candidates(outlined(plain)):
            orders = (outlined(forwards(plain)), outlined(backwards(plain)))
            kept = all(agree(each, merged(each, proof.destination, proof.source)) for each in orders)
            assert kept or not proof.allowed, f"seed {seed}: {proof}\n{plain}"
            allowed += proof.allowed
            refused += not proof.allowed
    assert allowed > 3
    assert refused > 3
