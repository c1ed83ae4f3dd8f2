"""Random nests of loops give what the interpreter gives, to the last bit of what the passes made of them."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import patch

import numpy as np
import pytest
from effort import effort
from fuzz.guard import guarded
from fuzz.nests import SPARE, Nests
from random_cases import groups

import tirlite as tl
from tirlite.analysis.loops.patterns import has_much_to_do
from tirlite.codegen import Effort
from tirlite.interp import interpret
from tirlite.ir import For, PrimFunc
from tirlite.rewrite import blocks
from tirlite.rewrite.vectors import nests as rewrite_nests, vectorize_loops

PROGRAMS = 60
SIZES = ((37, 5, 3), (6, 70, 4), (5, 4, 20), (1, 2, 90), (20, 8, 2), (7, 131, 1), (9, 17, 2), (0, 3, 20), (17, 0, 2))
MOST_ITERATIONS = 5000
STRATEGIES = ("auto", "none", "share", "pack")
Arrays = dict[str, np.ndarray]


def arguments(nests: Nests, seed: int, sizes: Mapping[str, int]) -> dict[str, object]:
    """Whole numbers from -2 to 2."""
    draw = np.random.default_rng([seed, *sizes.values()])
    found: dict[str, object] = {f"d{name}": np.zeros(size, np.uint8) for name, size in sizes.items()}
    for array in (*nests.inputs, *nests.outputs):
        shape = [sizes[axis] + SPARE * array.padded for axis in array.axes]
        item = getattr(tl, array.dtype).numpy
        found[array.name] = draw.integers(0 if item.kind == "u" else -2, 3, shape).astype(item)
    return {**found, "s": int(draw.integers(5))}


def interpreted(func: PrimFunc, given: Mapping[str, object], sizes: Mapping[str, int]) -> Arrays:
    mine = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in given.items()}
    interpret(func, {**{dim: sizes[dim.name] for dim in func.dims}, **{p: mine[p.name] for p in func.params}})
    return {name: value for name, value in mine.items() if isinstance(value, np.ndarray)}


def called(kernel: tl.Kernel, given: Mapping[str, object]) -> Arrays:
    """What code leaves in arrays with forbidden pages around them."""
    mine = {
        name: guarded(value, at_end=number % 2 == 0) if isinstance(value, np.ndarray) else value
        for number, (name, value) in enumerate(given.items())
    }
    kernel(*(mine[param.name] for param in kernel.ir.params))
    return {name: value for name, value in mine.items() if isinstance(value, np.ndarray)}


def _always(_loop: For) -> bool:
    return True


def trial(seed: int) -> str:
    """The text of a kernel that passes; fails with it."""
    nests = Nests(seed)
    text = nests.text()
    func = tl.parse(text)
    # Blocks of reductions are long: here they are short as well.
    # Loops that LLVM would be left to go by vectors here, too, and all of them where checks don't keep them from it.
    takes_all = seed % 3 > 0
    with (
        effort(Effort.FULL if seed % 8 == 0 else Effort.NONE),
        patch.object(blocks, "_LEAST", (4096, 8)[seed % 2]),
        patch.object(vectorize_loops, "_SIGNS", (vectorize_loops._SIGNS, (_always,))[takes_all]),
        patch.object(rewrite_nests, "has_much_to_do", (has_much_to_do, _always)[takes_all]),
    ):
        strategy, target = STRATEGIES[seed % len(STRATEGIES)], tl.Target.host(workers=2)
        kernel = tl.compile(func, strategy=strategy, target=target, unchecked=takes_all)
        for numbers in SIZES[seed % 3 :: 3]:
            sizes = dict(zip("nmk", numbers, strict=True))
            if nests.iterations(sizes) > MOST_ITERATIONS:
                continue
            given = arguments(nests, seed, sizes)
            told = f"at {sizes}:\n{text}\n{kernel.lowered}"
            code, written = called(kernel, given), interpreted(func, given, sizes)
            if 0 not in numbers:  # the passes were told that the dims are positive
                lowered = interpreted(kernel.lowered, given, sizes)
                for name, array in lowered.items():
                    np.testing.assert_array_equal(code[name], array, told, strict=True)
            for name, array in written.items():
                if nests.has_functions:
                    np.testing.assert_allclose(code[name], array, 1e-3, 1e-3, err_msg=told)
                else:
                    np.testing.assert_array_equal(code[name], array, told, strict=True)
    return text


@pytest.mark.parametrize("first", groups(PROGRAMS, 10))
def test_nests_do_what_is_written(first: int) -> None:
    for seed in range(first, first + 10):
        trial(seed)
