"""The sizes of a request and of free storage in; whether the one may take the other under a match range out."""

from __future__ import annotations

from tirlite.sizes import Size


def matches(need: Size, storage: Size, match_range: int | None) -> bool:
    """Whether storage has 1 / match_range to match_range times the size needed, the lower end in whole bits.

    None has no limits, and 0 takes nothing. Symbolic sizes match all, as at some values of the dims they do.
    Source: TVM, storage_rewrite.cc, where the range is 16.
    """
    if match_range is None:
        return True
    if match_range == 0:
        return False
    if not isinstance(need, int) or not isinstance(storage, int):
        return True
    return need * 8 // match_range <= storage * 8 <= need * 8 * match_range
