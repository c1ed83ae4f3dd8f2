"""A kernel and arguments in, what its code and the interpreter both say and leave."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import tirlite as tl


def outcome(run: Callable[..., object], *arguments: object) -> tuple[str, list[object]]:
    """What a run says, and what it leaves in its arguments."""
    own = [np.array(each) if isinstance(each, np.ndarray) else each for each in arguments]
    said = ""
    try:
        run(*own)
    except tl.TirliteError as error:
        said = str(error)
    return said, [each.tolist() if isinstance(each, np.ndarray) else each for each in own]


def said_by_both(kernel: tl.Kernel, *arguments: object) -> str:
    """What the kernel says, as the interpreter does, with the same left in the arguments."""
    told, left = outcome(kernel, *arguments)
    assert (told, left) == outcome(kernel.interpret, *arguments)
    return told
