"""Pairs that may share their bytes, pairs that may not, and what the reasons say. Each is tried out as well."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from every import every
from in_place.ancestor import ancestor_in_place
from in_place.in_a_row import ROWS_RIGHT, ROWS_WRONG
from in_place.merge import backwards, forwards, merged
from in_place.programs import RIGHT, WRONG, kernel
from in_place.several_at_once import MORE_RIGHT, MORE_WRONG

from tirlite.analysis import check_storage
from tirlite.analysis.in_place.candidates import in_place_candidates
from tirlite.analysis.in_place.prover import InPlaceProof
from tirlite.interp import interpret
from tirlite.ir import Allocate, Buffer, PrimFunc, Var, statements_of

SIZES = ((1, 1), (2, 3), (5, 4), (8, 9))


def run(func: PrimFunc, n: int, m: int) -> list[np.ndarray]:
    """What y and z hold after a run with extents n and m."""
    draw = np.random.default_rng([n, m])
    values: dict[Var | Buffer, object] = {dim: {"n": n, "m": m}[dim.name] for dim in func.dims}
    for param in func.params:
        assert isinstance(param, Buffer)
        if param.name == "index":
            values[param] = draw.integers(0, n, n)
        else:
            shape = (n, m)
            values[param] = (
                draw.integers(1, 50, shape).astype(np.int32) if param.name == "x" else np.zeros(shape, np.int32)
            )
    interpret(func, values)
    return [values[param] for param in func.params if param.name in "yz"]  # type: ignore[misc]


def agree(func: PrimFunc, other: PrimFunc, sizes: tuple[int, int]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(run(func, *sizes), run(other, *sizes), strict=True))


def the_proof(func: PrimFunc, destination: str = "b", source: str = "a") -> InPlaceProof:
    found = [p for p in in_place_candidates(func) if (p.destination.name, p.source.name) == (destination, source)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("name", RIGHT | MORE_RIGHT | ROWS_RIGHT)
def test_what_is_right_is_taken_and_keeps_its_meaning(name: str) -> None:
    func = kernel((RIGHT | MORE_RIGHT | ROWS_RIGHT)[name])
    proof = the_proof(func)
    assert proof.allowed, proof
    assert (proof.at is proof.until) == (name not in ROWS_RIGHT)
    assert check_storage(func, merged(func, proof.destination, proof.source), [proof])
    for sizes in SIZES:
        for order in (func, backwards(func)):
            assert agree(order, merged(order, proof.destination, proof.source), sizes)


@every("name", WRONG | MORE_WRONG)
def test_what_is_wrong_is_refused_and_really_wrong(name: str) -> None:
    func = kernel((WRONG | MORE_WRONG)[name])
    proof = the_proof(func)
    assert not proof.allowed
    variants = [forwards(func), backwards(func)]
    assert not all(agree(v, merged(v, proof.destination, proof.source), sizes) for v in variants for sizes in SIZES)


@pytest.mark.parametrize("name", ROWS_WRONG)
def test_what_a_later_statement_still_needs_is_not_overwritten(name: str) -> None:
    func = kernel(ROWS_WRONG[name])
    destination, source = (
        each.buffer for stem in "ba" for each in statements_of(func.body, Allocate) if each.buffer.name == stem
    )
    proofs = [p for p in in_place_candidates(func) if (p.destination, p.source) == (destination, source)]
    assert not any(proof.allowed for proof in proofs)
    together = merged(func, destination, source)
    assert not all(agree(func, together, sizes) for sizes in SIZES)
    # A proof that says yes to it is refuted.
    assert not check_storage(func, together, [replace(proof, obstacle=None) for proof in proofs])


def test_the_rule_of_the_ancestor_takes_what_it_miscompiles() -> None:
    taken = [name for name, body in WRONG.items() if ancestor_in_place(kernel(body))]
    assert taken == [
        "set to zero first",
        "an outer loop comes back",
        "an inner loop comes back",
        "tiles that overlap",
        "each element twice",
        "around and around",
        "looked up, maybe twice",
        "lanes that overlap",
        "the source written after the destination",
    ]


def test_the_rule_of_the_ancestor_misses_what_is_right() -> None:
    missed = [name for name, body in RIGHT.items() if not ancestor_in_place(kernel(body))]
    assert len(missed) > 10
    assert "a let between read and write" in missed
