"""Parses permissions for passes: `tl.allow(...)` as a block or a decorator, and decorators in text."""

from __future__ import annotations

import ast

from tirlite.dsl.expression import Expressions
from tirlite.dsl.signature import BadText
from tirlite.dsl.vocabulary import WORDS, CallSite
from tirlite.ir.stmt import Permission


def granted(function: ast.FunctionDef, expressions: Expressions) -> tuple[Permission, ...]:
    """The permissions from a kernel's decorators: `@tl.allow("contract")`, in text `@tl.kernel(allow="contract")`."""
    found: list[Permission] = []
    for each in function.decorator_list:
        word = expressions.named_call(("allow", "kernel"), each)
        if word == "allow":
            site = expressions.word_call(each)
            assert site is not None
            found += permissions(site)
        elif word == "kernel" and not expressions.surroundings.executes:
            assert isinstance(each, ast.Call)
            found += permissions(_as_allow(each, expressions))
    return tuple(each for each in Permission if each in found)


def _as_allow(call: ast.Call, expressions: Expressions) -> CallSite:
    """`tl.kernel(allow=("a", "b"))` as `tl.allow("a", "b")`."""
    keyword = call.keywords[0] if len(call.keywords) == 1 and not call.args else None
    if keyword is None or keyword.arg != "allow":
        what = "in text @tl.kernel takes `allow` alone: give other options to tl.compile"
        raise BadText(what, span=expressions.span(call)).error()
    parts = keyword.value.elts if isinstance(keyword.value, (ast.Tuple, ast.List)) else [keyword.value]
    values = tuple(expressions.value(part) for part in parts)
    return CallSite(WORDS["allow"], values, tuple(map(expressions.span, parts)), {}, expressions.span(call))


def permissions(site: CallSite) -> tuple[Permission, ...]:
    """The permissions in `tl.allow("contract", "approximate")`, in their defined order."""
    site.only()
    site.count(1, len(Permission), 'the names of permissions, as in tl.allow("contract")')
    known = {each.value: each for each in Permission}
    for place, given in enumerate(site.args):
        if not isinstance(given, str) or given not in known:
            raise site.wrong(place, "one of " + ", ".join(f'"{name}"' for name in known))
    return tuple(each for name, each in known.items() if name in site.args)
