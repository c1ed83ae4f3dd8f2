"""Records what a translation looked up around a kernel, so that a later process can check that nothing has changed."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType
from typing import Final


class _Absent:
    """The value of a name that does not exist."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = _Absent()


class Asked:
    """The most that was asked about a name, as a number that is stored in the cache."""

    PRESENCE = 0  # whether there is one
    DIM = 1  # whether it is a dim
    VALUE = 2


class Lookups:
    """The names that functions looked up, with their values, and the attributes of modules.

    `is_open`: the translation executed Python code, which may have looked up anything.
    """

    def __init__(self) -> None:
        self.names: dict[Callable[..., object], dict[str, tuple[int, object]]] = {}
        self.members: dict[tuple[str, str], object] = {}
        self.is_open = False

    def note(self, function: Callable[..., object], name: str, asked: int, value: object) -> None:
        own = self.names.setdefault(function, {})
        if name not in own or own[name][0] < asked:
            own[name] = asked, value


def names_around(function: Callable[..., object], frame: FrameType) -> Mapping[str, object]:
    """The local names of the frame if the function was defined in it; none if the frame only decorates it.

    In the latter case its names have nothing to do with the function's.
    """
    code = getattr(function, "__code__", None)
    return frame.f_locals if any(each is code for each in frame.f_code.co_consts) else {}


def layers_of(function: FunctionType, frame_locals: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
    """The names around a Python function: its closure, the frame that defines it, its globals, the builtins."""
    code, cells = function.__code__, function.__closure__ or ()
    closure = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=True) if _is_full(cell)}
    return closure, frame_locals, function.__globals__, vars(builtins)


def looked_up(name: str, layers: tuple[Mapping[str, object], ...]) -> object:
    """The value of a name in the innermost layer that has it, or ABSENT."""
    for layer in layers:
        if name in layer:
            return layer[name]
    return ABSENT


def _is_full(cell: object) -> bool:
    try:
        return hasattr(cell, "cell_contents")
    except ValueError:
        return False
