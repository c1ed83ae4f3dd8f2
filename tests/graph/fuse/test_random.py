"""Random graphs, fused and not: the same bits, and no byte more."""

from __future__ import annotations

import pytest
from effort import effort
from graph.leaves import leaves
from graph.random_graphs import random_graph
from graph.test_random_compiled import together
from random_cases import groups

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.graph import compile  # noqa: A004
from tirlite.sizes import Proof, prove_le


@pytest.mark.parametrize("first", groups(160, 20))
def test_twenty_graphs_give_the_same_bits(first: int) -> None:
    seeds = range(first, first + 20)
    dims = tl.dim("n"), tl.dim("m", min=2)
    samples = [random_graph(seed, symbolic=first % 40 == 20, most=12, prefix=f"g{seed}_", dims=dims) for seed in seeds]
    whole = together(samples)
    with effort(Effort.NONE):
        fused, plain = compile(whole), compile(whole, fuse=False)
        assert len(fused.groups.groups) >= 5
        for choice in range(3):
            given = [array for sample in samples for array in sample.arguments[choice]]
            for a, b in zip(leaves(fused(*given)), leaves(plain(*given)), strict=True):
                assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("block", range(2))
def test_they_take_no_more_bytes(block: int) -> None:
    for seed in range(12 * block, 12 * block + 12):
        function = random_graph(seed, most=12).function
        fused, plain = compile(function).plan, compile(function, fuse=False).plan
        assert fused.total == fused.open_bound, f"seed {seed}"
        assert prove_le(fused.total, plain.total) is Proof.YES, f"seed {seed}"
