"""Makes dims from names and facts: the symbols in the shapes of a kernel's parameters."""

from __future__ import annotations

from tirlite.diag import Message, hint, public
from tirlite.ir.dtype import i64
from tirlite.ir.expr import Var
from tirlite.ir.printer_names import as_python_reads, is_name
from tirlite.sizes import Dim


class BadDimName(Message):
    """A dim needs a name that can stand in a kernel.

    Example: `tl.dims("n, 2m")`.
    """

    title = "{given} is not a name of a dim"
    help = 'write names as those of variables: `n, m = tl.dims("n m")`'


class BadDimFact(Message):
    """A fact about a dim is not an integer.

    Example: `tl.dim("n", max="4096")`.
    Fix: Give integers: `tl.dim("n", max=4096)`.
    """

    title = "dim `{name}` is declared with {fact}={given}"
    help = "min, max and multiple_of are integers{hint}"

    hint: str = ""


_FACTS = ("min", "max", "multiple_of")


@public
def dim(name: str, **facts: int | None) -> Var:
    """A symbolic extent called `name`: an i64 that is known when the kernel is called.

    Facts that hold at every call help the planner: `min` (inclusive, 1 if not given), `max` (inclusive), `multiple_of`.
    Raises KernelError for facts that no integer satisfies.
    """
    called = as_python_reads(name) if isinstance(name, str) else ""
    if not is_name(called):
        raise BadDimName(repr(name)).error()
    for fact, value in facts.items():
        if fact not in _FACTS:
            raise BadDimFact(name, fact, repr(value), hint(fact, _FACTS)).error()
        if (type(value) is bool or not issubclass(type(value), int)) and not (fact == "max" and value is None):
            raise BadDimFact(name, fact, repr(value)).error()
    given = {fact: value for fact, value in facts.items() if value is not None}
    return Var(called, i64, Dim(called, **given))


@public
def dims(names: str) -> tuple[Var, ...]:
    """A dim for each of the names, which are separated by blanks or commas: `n, m = tl.dims("n m")`."""
    if not isinstance(names, str) or not names.replace(",", " ").split():
        raise BadDimName(repr(names)).error()
    return tuple(dim(name) for name in names.replace(",", " ").split())
