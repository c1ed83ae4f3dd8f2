"""Draws a picture with the corners marked, from how much of a corner each pixel is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Response = npt.NDArray[np.float32]
Gray = npt.NDArray[np.uint8]
Points = npt.NDArray[np.intp]

# A corner is at least this part of the strongest one, and the strongest within this many pixels to each side.
_PART = 0.02
_REACH = 4


def find_corners(response: Response) -> Points:
    """The corners, as rows of (row, column), in the order of the rows of the picture."""
    strongest = response
    for axis in (0, 1):
        padding = [(_REACH, _REACH) if each == axis else (0, 0) for each in (0, 1)]
        padded = np.pad(strongest, padding, constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _REACH + 1, axis)
        strongest = windows.max(axis=-1)
    threshold = max(_PART * response.max(initial=0), np.finfo(np.float32).tiny)
    return np.argwhere((response == strongest) & (response >= threshold))


def mark_corners(image: Gray, corners: Points) -> Gray:
    """`image`, darkened, with a square around each corner."""
    marked = image // 2
    for size, value in ((3, 255), (2, 0)):
        for row, column in corners:
            _frame(marked, row - size, column - size, 2 * size, value)
    return marked


def _frame(image: Gray, top: int, left: int, size: int, value: int) -> None:
    """Draws a square of `size` + 1 pixels a side, as far as it lies in the picture."""
    bottom, right = top + size, left + size
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    for row in (top, bottom):
        if 0 <= row < image.shape[0]:
            image[row, columns] = value
    for column in (left, right):
        if 0 <= column < image.shape[1]:
            image[rows, column] = value
