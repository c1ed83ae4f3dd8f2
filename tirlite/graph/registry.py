"""Finds all operators: those that the modules of `tirlite.graph.operators` declare, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from tirlite.graph.op import Op

_PACKAGE = "tirlite.graph.operators"


class _Operators(Mapping[str, Op]):
    """The operators by name. Their modules, which use the builder, are loaded when the first one is asked for."""

    def __getitem__(self, name: str) -> Op:
        return _found()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_found())

    def __len__(self) -> int:
        return len(_found())


OPS: Mapping[str, Op] = _Operators()


@cache
def _found() -> dict[str, Op]:
    modules = [import_module(f"{_PACKAGE}.{each.name}") for each in iter_modules(import_module(_PACKAGE).__path__)]
    ops = [op for module in modules for op in _declared(module)]
    found = {op.name: op for op in ops}
    assert len(found) == len(ops), "an operator stands twice"
    return found


@cache
def ops_from_elsewhere() -> frozenset[Op]:
    """The operators whose files are not tirlite's own: what depends on these is not kept for later processes."""
    package = import_module(_PACKAGE)
    home = Path(package.__file__ or "").parent
    modules = [import_module(f"{_PACKAGE}.{each.name}") for each in iter_modules(package.__path__)]
    return frozenset(op for each in modules if Path(each.__file__ or "").parent != home for op in _declared(each))


def _declared(module: ModuleType) -> Iterator[Op]:
    """The operators that are members of the classes in a module."""
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == module.__name__:
            for member in vars(kind).values():
                op = getattr(member, "operator", None)
                if isinstance(op, Op):
                    yield op
