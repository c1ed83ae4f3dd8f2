"""Finds the value of each parameter of what is called, from the arguments of the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tirlite.diag import Message, Span, hint
from tirlite.dsl.vocabulary import CallSite


class CallArguments(Message):
    """A kernel or an inline function is called with arguments that are not those of its parameters.

    Example: `smooth(x)`, where `smooth` takes `x` and `y`.
    Fix: Give each parameter one argument, outputs among them: a call inside a kernel allocates nothing.
    """

    title = "{problem}"
    help = "its parameters are {signature}"


def bound(
    name: str, parameters: Sequence[str], defaults: Mapping[str, object], site: CallSite
) -> dict[str, tuple[object, Span]]:
    """Parameter -> its value and where that stands, in the order of the parameters."""
    signature = f"{name}({', '.join(parameters)})"
    if len(site.args) > len(parameters):
        problem = f"{name} takes {len(parameters)} arguments, not {len(site.args)}"
        raise CallArguments(problem, signature, span=site.span).error()
    given = dict(zip(parameters, zip(site.args, site.spans, strict=True), strict=False))
    for keyword, (value, span) in site.keywords.items():
        if keyword in given:
            raise CallArguments(f"{name} is given `{keyword}` twice", signature, span=span).error()
        if keyword not in parameters:
            problem = f"{name} has no parameter `{keyword}`{hint(keyword, parameters)}"
            raise CallArguments(problem, signature, span=span).error()
        given[keyword] = (value, span)
    for parameter in parameters:
        if parameter not in given and parameter not in defaults:
            raise CallArguments(f"{name} is not given `{parameter}`", signature, span=site.span).error()
    return {each: given.get(each, (defaults.get(each), site.span)) for each in parameters}
