"""What a call of a kernel tells of a fault, for tests that compare ways to run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import tirlite as tl


def told_by(run: Callable[..., object], args: Sequence[np.ndarray]) -> str:
    """The text of the error that a call ends in; empty where it ends well."""
    try:
        run(*args)
    except tl.TirliteError as error:
        return str(error)
    return ""
