"""Tiles so small that arrays of some dozens of elements have several: products are scheduled as large ones are."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from tirlite.schedules.auto.tiling import Tiling

SMALL = Tiling(
    rows=2,
    row_bytes=16,
    vector_bytes=8,
    least_rows=2,
    least_bytes=32,
    least_strided=16,
    strided_rows=2,
    least_products=0,
)


@contextmanager
def small_tiles() -> Iterator[None]:
    """Whatever is scheduled meanwhile has them."""
    with patch.object(Tiling, "of", lambda processor: SMALL):
        yield
