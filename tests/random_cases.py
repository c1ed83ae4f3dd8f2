"""How many of their cases tests try: a share in each run, and all of them with `TIRLITE_TESTS=thorough`."""

import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")
IS_THOROUGH = os.environ.get("TIRLITE_TESTS") == "thorough"
_SHARE = 12


def groups(count: int, size: int = 1) -> range:
    """The first case of each group of so many, of a share of `count` cases."""
    return range(0, count if IS_THOROUGH else -(-count // _SHARE), size)


def some(cases: Sequence[Case]) -> Sequence[Case]:
    """Every twelfth of these cases, from the first on."""
    return cases[:: 1 if IS_THOROUGH else _SHARE]
