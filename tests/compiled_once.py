"""LLVM compiles a text once for all tests of a process: many compile a function that another one has compiled."""

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from unittest.mock import patch

from tirlite.codegen.functions.parts import ModulePart
from tirlite.codegen.llvm import machine, side_by_side
from tirlite.codegen.llvm.machine import Compiled, Effort

_COMPILE, _MACHINE = machine.compiled, machine.new_machine
_KNOWN: dict[bytes, Compiled] = {}


def _named(level: int, name: str) -> Any:
    """A machine that can tell what it compiles for."""
    made = _MACHINE(level, name)
    made.told = f"{level} {name}"
    return made


def _compiled(part: ModulePart, made: Any, effort: Effort, *, locked: bool = True) -> Compiled:
    settings = (made.told, effort, part.joins_scalars, part.is_unit, part.works_over_addresses)
    key = sha256(f"{settings} {part.text}".encode()).digest()
    if key not in _KNOWN:
        _KNOWN[key] = _COMPILE(part, made, effort, locked=locked)
    return _KNOWN[key]


machine.new_machine = side_by_side.new_machine = _named


@contextmanager
def compiled_once() -> Iterator[None]:
    """What was compiled is taken again meanwhile."""
    with patch.object(machine, "compiled", _compiled), patch.object(side_by_side, "compiled", _compiled):
        yield
