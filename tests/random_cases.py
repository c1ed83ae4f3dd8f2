"""How many random cases tests try: a share in each run, and all of them with `TIRLITE_TESTS=thorough`."""

import os

_IS_THOROUGH = os.environ.get("TIRLITE_TESTS") == "thorough"
_SHARE = 4


def groups(count: int, size: int = 1) -> range:
    """The first case of each group of so many, of a share of `count` cases."""
    return range(0, count if _IS_THOROUGH else -(-count // _SHARE), size)
