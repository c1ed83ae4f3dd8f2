"""Turns names of a graph into unique identifiers for parameters."""

from __future__ import annotations

import keyword

from tirlite.diag import GraphMessage, Span
from tirlite.ir.printer_names import identifier
from tirlite.names import UniqueNames


class NameClash(GraphMessage):
    """Two inputs or outputs of a graph would have one name in the compiled function.

    Example: Inputs called `a.b` and `a_b`.
    """

    code = "graph-name-clash"
    title = "`{first}` and `{second}` of `{function}` both become parameter `{name}`"
    help = "rename one of them: what cannot stand in a name becomes `_`"


class ParameterNames:
    """The parameter names of one function."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._names = UniqueNames()
        self._given: dict[str, str] = {}

    def exact(self, given: str, span: Span | None = None) -> str:
        """The identifier for a name that callers use. Raises GraphError if it is taken."""
        name = name_of(given)
        if name in self._given:
            raise NameClash(self._given[name], given, self._function, name, span=span).error()
        return self.fresh(given)

    def fresh(self, given: str) -> str:
        """The identifier for a name, with a number appended if it is taken."""
        name = self._names.unique(name_of(given))
        self._given[name] = given
        return name


def name_of(given: str) -> str:
    """The name as an identifier: `_` replaces invalid characters and precedes a keyword."""
    made = identifier(given)
    return f"_{made}" if keyword.iskeyword(made) else made
