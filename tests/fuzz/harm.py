"""Shows that a refused step would have changed results: it is done without its proof, and the outcome compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
from fuzz.nests import Nests
from fuzz.test_random_nests import MOST_ITERATIONS, SIZES, arguments, interpreted

import tirlite as tl
from tirlite.analysis.loops import fusion
from tirlite.analysis.trials.races import find_race
from tirlite.ir import PrimFunc
from tirlite.rewrite.normalize import Normalize
from tirlite.schedules import order, reorder, tile


@contextmanager
def unproved() -> Iterator[None]:
    """Whoever asks which dependences a loop carries is told that there are none."""
    with ExitStack() as stack:
        for module in (order, reorder, tile):
            stack.enter_context(patch.object(module, "carried", lambda _facts, _loop: iter(())))
        stack.enter_context(patch.object(fusion, "against", lambda _facts, *_loops: iter(())))
        yield


def is_harmful(nests: Nests, seed: int, before: PrimFunc, after: PrimFunc) -> bool:
    """Whether a function races, or gives other results than the one that it was made of, at any of some sizes."""
    if find_race(Normalize()(after)) is not None:
        return True
    for numbers in SIZES:
        sizes = dict(zip("nmk", numbers, strict=True))
        if 0 in numbers or nests.iterations(sizes) > MOST_ITERATIONS:
            continue
        given = arguments(nests, seed, sizes)
        meant = interpreted(before, given, sizes)
        try:
            found = interpreted(after, given, sizes)
        except tl.KernelRunError:  # two iterations conflict, or there is nothing where it looks
            return True
        if any(not np.array_equal(found[name], array, equal_nan=True) for name, array in meant.items()):
            return True
    return False
