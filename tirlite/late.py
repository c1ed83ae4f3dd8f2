"""A package and names with their modules in, a `__getattr__` for the package out, which loads names at first use.

Most programs need few of the names that a package shows, and Python pays for each module that it loads. In the
package's `__init__.py`, beside the imports for the type checker:

    if TYPE_CHECKING:
        from tirlite.plan.csv_read import read_csv
    else:
        __getattr__ = late_names(__name__, {"csv_read": "read_csv"})
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def late_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """What finds a name of `package`; `homes` are its names by the module in the package that they are defined in.

    A name must not be that of a module in the package: Python puts the module there when it is loaded.
    """
    places = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> object:  # noqa: N807
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__
