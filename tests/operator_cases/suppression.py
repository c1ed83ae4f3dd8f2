"""Cases of the kernels of `tirlite.kernels.operators.suppression`."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.kernels.operators.case import Case
from tirlite.kernels.operators.suppression import non_max_suppression

n = tl.dim("n")


def three_boxes(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The second one overlaps the first, the third one has no good score; all are kept at most once."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [5, 5, 5, 5]]], np.float32)
    scores = np.array([[[0.9, 0.75, 0.1, 0.8]]], np.float32)
    return boxes, scores, np.array(2), np.array(0.5, np.float32), np.array(0.2, np.float32)


def kept(*given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[0, 0, 0], [0, 0, 3]]), np.array(2)


TYPES = (tl.f32[1, n, 4], tl.f32[1, 1, n], tl.i64[()], tl.f32[()], tl.f32[()], tl.i64[2, 3], tl.i64[()])


CASES = (Case("non_max_suppression", lambda: non_max_suppression(*TYPES), three_boxes, kept),)
