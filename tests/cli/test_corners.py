"""Corners are strong responses that are the strongest around."""

from __future__ import annotations

import numpy as np

from tirlite.cli.tour import find_corners, mark_corners


def response_with(*peaks: tuple[int, int, float]) -> np.ndarray:
    response = np.zeros((20, 30), np.float32)
    for row, column, value in peaks:
        response[row, column] = value
    return response


def test_the_strongest_of_neighbours_wins() -> None:
    response = response_with((5, 5, 1.0), (5, 7, 0.9), (12, 20, 0.5))
    assert find_corners(response).tolist() == [[5, 5], [12, 20]]


def test_weak_and_negative_responses_are_no_corners() -> None:
    assert find_corners(response_with((5, 5, 1.0), (12, 20, 0.001), (2, 25, -3.0))).tolist() == [[5, 5]]
    assert find_corners(response_with()).tolist() == []
    assert find_corners(response_with((4, 4, -1.0))).tolist() == []


def test_corners_at_the_frame_are_marked_as_far_as_there_is_room() -> None:
    image = np.full((6, 8), 100, np.uint8)
    marked = mark_corners(image, np.array([[0, 0], [5, 7]]))
    assert marked[0].tolist() == [50, 50, 0, 255, 50, 50, 50, 50]
    assert marked[3].tolist() == [255, 255, 255, 255, 255, 0, 0, 0]
    assert (image == 100).all()
