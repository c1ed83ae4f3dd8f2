"""Makes an error that says what a public function takes, if an argument of it is of another kind."""

from __future__ import annotations

from tirlite.diag.error import CallTypeError
from tirlite.diag.message import Message


class WrongArgument(Message):
    """A function is given something of another kind than it takes.

    Example: `tl.graph.memory_order(f)`, where `f` is the function of a graph.
    Fix: Give what the message asks for: here `tl.graph.program(f)`.
    """

    code = "argument-kind"
    raises = CallTypeError
    title = "{function}() takes {wanted}, and is given a {given}"

    function: str
    wanted: str
    given: str


def demand_kind(function: str, given: object, kind: type) -> None:
    """Returns if `given` is of this class; raises CallTypeError, which names it, otherwise."""
    # By its type: a class may say anything of `__class__`.
    if not issubclass(type(given), kind):
        wanted = f"{'an' if kind.__name__[0] in 'aeiouAEIO' else 'a'} {kind.__name__}"
        raise WrongArgument(function, wanted, type(given).__name__).error()
