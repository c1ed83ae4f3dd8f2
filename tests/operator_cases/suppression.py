"""Cases of the kernels of `tirlite.kernels.operators.suppression`."""

from __future__ import annotations

import numpy as np
from operator_cases.case import Case

import tirlite as tl
from tirlite.kernels.operators.suppression import non_max_suppression

n = tl.dim("n")


def three_boxes(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The second one overlaps the first, the third one has no good score; all are kept at most once."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 10, 1, 11], [5, 5, 5, 5]]], np.float32)
    scores = np.array([[[0.9, 0.75, 0.1, 0.8]]], np.float32)
    return boxes, scores, np.array(2), np.array(0.5, np.float32), np.array(0.2, np.float32)


def kept(*given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.array([[0, 0, 0], [0, 0, 3]]), np.array(2)


def some_boxes(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Many that overlap, many of equal scores."""
    corners = rng.integers(0, 6, (2, 20, 2))
    boxes = np.concatenate([corners, corners + rng.integers(1, 4, (2, 20, 2))], 2).astype(np.float32)
    scores = rng.integers(0, 5, (2, 3, 20)).astype(np.float32)
    return boxes, scores, np.array(4), np.array(0.25, np.float32), np.array(0, np.float32)


def one_by_one(
    boxes: np.ndarray, scores: np.ndarray, most: np.ndarray, overlap: np.ndarray, least: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The best box again and again."""
    found = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept: list[int] = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            if scores[b, c, i] > least and len(kept) < most and all(iou(*boxes[b, [i, j]]) <= overlap for j in kept):
                kept.append(i)
        found += [(b, c, i) for i in kept]
    return np.array(found), np.array(len(found))


def iou(one: np.ndarray, other: np.ndarray) -> float:
    """What two boxes have in common, as a part of what they cover."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    common = sides.prod() if (sides > 0).all() else 0
    return common / ((one[2:] - one[:2]).prod() + (other[2:] - other[:2]).prod() - common)


TYPES = (tl.f32[1, n, 4], tl.f32[1, 1, n], tl.i64[()], tl.f32[()], tl.f32[()], tl.i64[2, 3], tl.i64[()])
MANY = (tl.f32[2, n, 4], tl.f32[2, 3, n], tl.i64[()], tl.f32[()], tl.f32[()], tl.i64[24, 3], tl.i64[()])


CASES = (
    Case("non_max_suppression", lambda: non_max_suppression(*TYPES), three_boxes, kept),
    Case("non_max_suppression-many", lambda: non_max_suppression(*MANY), some_boxes, one_by_one),
)
