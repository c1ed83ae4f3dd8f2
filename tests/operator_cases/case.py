"""An operator's function at some types, what it shall give, and on which arguments: what the tests go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tirlite.ir import PrimFunc

Maker = Callable[[np.random.Generator], tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    """A function of the library beside its reference in NumPy.

    `make()` gives the function, `inputs(rng)` its arguments without its outputs, and `reference(*inputs)` its output,
    or a tuple of them. `tolerance` is relative to the largest output; at 0 the two agree bit for bit.
    """

    name: str
    make: Callable[[], PrimFunc]
    inputs: Maker
    reference: Callable[..., object]
    tolerance: float = 0.0


def normal(*shapes: tuple[int, ...], dtype: type = np.float32, scale: float = 1.0) -> Maker:
    """Arrays of normally distributed numbers, one for each shape."""
    return lambda rng: tuple(np.asarray(scale * rng.standard_normal(shape), dtype) for shape in shapes)


def integers(low: int, high: int, *shapes: tuple[int, ...], dtype: type = np.int64) -> Maker:
    """Arrays of integers from `low` to below `high`, one for each shape."""
    return lambda rng: tuple(np.asarray(rng.integers(low, high, shape), dtype) for shape in shapes)


def joined(*makers: Maker) -> Maker:
    """The arrays of several makers, one after the other."""
    return lambda rng: tuple(each for maker in makers for each in maker(rng))
