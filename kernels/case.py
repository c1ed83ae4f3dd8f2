"""A kernel of the library with its reference and its arguments, as tests and gallery use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import tirlite as tl

Maker = Callable[..., tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel beside its reference in NumPy.

    `inputs(rng, *size)` makes the kernel's arguments without its outputs, for each of `sizes`; `reference(*inputs)` is
    the output that the kernel gives for them. `tolerance` is relative to the largest output; at 0 the two agree bit
    for bit.
    """

    kernel: tl.Kernel
    reference: Callable[..., np.ndarray]
    inputs: Maker
    sizes: tuple[tuple[int, ...], ...]
    tolerance: float = 0.0
