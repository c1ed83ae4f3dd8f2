"""Makes a `__getattr__` for a package, which loads what the type checker sees imported when it is first used.

Most programs need few of the names that a package shows, and Python pays for each module that it loads. In the
package's `__init__.py`:

    if TYPE_CHECKING:
        from tirlite.plan.tables.csv import read_csv as read_csv
    else:
        __getattr__, __all__ = late_names(__name__)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType


class LateModule:
    """A module that is loaded when something in it is first used, as in messages that few programs need.

    The type checker is shown the import: `else: explain = LateModule("tirlite.runtime.explain")`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, name: str) -> object:
        if self._module is None:
            self._module = import_module(self._name)
        return getattr(self._module, name)


class _Package(ModuleType):
    """A package in which no module takes the place of a late name: Python would put `plan.check` there as `check`."""

    __late__: Mapping[str, str]

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in self.__late__):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__late__})

    def __reduce__(self) -> tuple[Callable[[str], ModuleType], tuple[str]]:
        # What sends functions to other processes, as dask does, sends the packages that they name.
        return import_module, (self.__name__,)


def late_names(package: str, **more: Iterable[str]) -> tuple[Callable[[str], object], list[str]]:
    """What finds a name of `package`, which calls this, and all of its names, with `more` by modules of it."""
    places = {name: f"{package}.{module}" for module, names in more.items() for name in names}
    shown, module = sys.modules[package], ""
    # Code lists what it names in order: a module, and then what it would import from there. Other names are bound now.
    for name in sys._getframe(1).f_code.co_names:
        if "." in name:
            module = name if name.startswith(f"{package}.") else ""
        elif module and not name.startswith("_") and isinstance(vars(shown).get(name, shown), ModuleType):
            places[name] = module
    for name in places.keys() & vars(shown).keys():
        delattr(shown, name)
    vars(shown)["__late__"] = places
    shown.__class__ = _Package

    def __getattr__(name: str) -> object:  # noqa: N807
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(places[name]), name)
        setattr(shown, name, value)
        return value

    return __getattr__, sorted(places)
