"""The directive `reference`: what the public names of a module are, by their docstrings, which are Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Reference(SphinxDirective):
    """`{reference} tirlite.plan`: a heading and a text for each name that the module shows."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = import_module(self.arguments[0])
        prefix = self.arguments[0].replace("tirlite", "tl", 1)
        lines = [line for name in shown(module) for line in entry(f"{prefix}.{name}", getattr(module, name))]
        box = nodes.container()
        self.state.nested_parse(StringList(lines, self.arguments[0]), self.content_offset, box)
        return box.children


def shown(module: ModuleType) -> list[str]:
    return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]


def entry(name: str, what: object, fence: str = "::::::") -> Iterator[str]:
    """The Markdown for one name: its signature, its text, and the same for the methods of a class."""
    is_class = inspect.isclass(what)
    kind = "py:class" if is_class else "py:function" if callable(what) else "py:data"
    yield f"{fence}{{{kind}}} {name}{signature(what)}"
    yield from (inspect.getdoc(what) or "").splitlines()
    if is_class:
        for member in members(what):
            yield ""
            yield from method(member, inspect.getattr_static(what, member), fence[:-1])
    yield fence
    yield ""


def members(what: type) -> list[str]:
    """The public names that the class itself defines, with a text."""
    own = [name for name, value in vars(what).items() if not name.startswith("_") and value.__doc__]
    kinds = (property, classmethod, staticmethod)
    return [name for name in own if inspect.isroutine(vars(what)[name]) or isinstance(vars(what)[name], kinds)]


def method(name: str, what: object, fence: str) -> Iterator[str]:
    is_property = isinstance(what, property) or not inspect.isroutine(what)
    function = getattr(what, "__func__", what)
    kind = "py:property" if is_property else "py:method"
    told = "" if is_property else signature(function, skip_first=not isinstance(what, staticmethod))
    yield f"{fence}{{{kind}}} {name}{told}"
    yield from (inspect.getdoc(what) or "").splitlines()
    yield fence


def signature(what: object, *, skip_first: bool = False) -> str:
    """As it stands in source, without annotations, which say more than a reader can take in at once."""
    if not callable(what):
        return ""
    try:
        found = inspect.signature(what)
    except (TypeError, ValueError):
        return "()"
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values()][skip_first:]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty)).replace("\n", " ")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("reference", Reference)
    return {"parallel_read_safe": True}
