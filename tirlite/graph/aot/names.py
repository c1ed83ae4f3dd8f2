"""Makes names of parameters from the names of a graph: identifiers, each once."""

from __future__ import annotations

import keyword

from tirlite.diag import GraphMessage, Span
from tirlite.ir.printer_names import identifier


class NameClash(GraphMessage):
    """Two inputs or outputs of a graph would have one name in the compiled function.

    Example: Inputs called `a.b` and `a_b`.
    """

    code = "graph-name-clash"
    title = "`{first}` and `{second}` of `{function}` both become parameter `{name}`"
    help = "rename one of them: what cannot stand in a name becomes `_`"


class Names:
    """The names of one function that are taken."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._taken: dict[str, str] = {}

    def exact(self, given: str, span: Span | None = None) -> str:
        """The identifier for a name that callers use. Raises GraphError where another has it already."""
        name = name_of(given)
        if name in self._taken:
            raise NameClash(self._taken[name], given, self._function, name, span=span).error()
        self._taken[name] = given
        return name

    def fresh(self, given: str) -> str:
        """An identifier like a name, with a number behind it where that is taken."""
        base = name = name_of(given)
        count = 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken[name] = given
        return name


def name_of(given: str) -> str:
    """The name with `_` for all that cannot stand in one, and before a keyword."""
    made = identifier(given)
    return f"_{made}" if keyword.iskeyword(made) else made
