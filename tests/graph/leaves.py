"""The arrays of a result that may be a tuple of tuples."""

from __future__ import annotations

import numpy as np


def leaves(value: object) -> list[np.ndarray]:
    """From left to right."""
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, tuple) else [value]
