"""Where a size is 0 by the remainders of its dim: told as Python writes it, and true for exactly these values."""

from __future__ import annotations

from every import every

from tirlite.sizes import Dim, Size, evaluate
from tirlite.sizes.residues import residues_where_0

h = Dim("h")
even = Dim("h", multiple_of=8)


@every(
    "size, said",
    [
        (h - 2 * (h // 2), "h % 2 == 0"),
        (6 * (h // 4) - 3 * (h // 2), "h % 4 <= 1"),
        (2 * ((h + 31) // 32) - (h + 15) // 16, "h % 32 == 0 or 17 <= h % 32"),
        (16 * ((h + 31) // 32) - (h + 1) // 2, "h % 32 == 0 or h % 32 == 31"),
        (4 * ((h // 2 + 1) // 4) - h // 2, "h % 8 <= 1"),
        (h % 6 - 2 - h % 2, "2 <= h % 6 <= 3"),
        (4 * ((even + 24) // 32) - even // 8, "h % 32 == 0"),
        (2 * (h // 3) - (2 * h) // 3, "h % 3 <= 1"),
        (h % 2 + h % 3 + h % 5 + h % 7 - 6, ""),
    ],
)
def test_windows_on_windows_ask_for_remainders(size: Size, said: str) -> None:
    found = residues_where_0(size)
    assert found is not None
    assert str(found) == said
    for value in range(0, 500, found.dim.multiple_of):
        assert (evaluate(size, {found.dim: value}) == 0) == (value % found.modulus in found.holds)


def test_what_other_values_than_remainders_decide_is_none() -> None:
    n = Dim("n")
    for size in (h - 4, h * h - h, h - n, (h // 2) * n - h, h // n - 1, h // 2000 - (h + 1) // 2000, h // 2 - h // 3):
        assert residues_where_0(size) is None


def test_one_may_imply_another() -> None:
    low, high = residues_where_0(2 * (h // 32) - h // 16), residues_where_0(h - 32 * (h // 32))
    assert low is not None
    assert high is not None
    assert high.implies(low)
    assert not low.implies(high)
    assert (high.step, low.step) == (32, None)
