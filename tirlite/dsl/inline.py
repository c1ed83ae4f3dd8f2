"""Inline functions: Python functions whose body is translated at each call from a kernel."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from copy import copy
from types import FunctionType
from typing import TYPE_CHECKING

from tirlite.diag import Message, boundary
from tirlite.dsl.lookups import names_around
from tirlite.late import LateModule
from tirlite.record import cached_property

if TYPE_CHECKING:
    import ast

    from tirlite.dsl import syntax
    from tirlite.dsl.syntax import SourceMap
else:
    syntax = LateModule("tirlite.dsl.syntax")  # not needed for cached kernels


class BadInlineParameter(Message):
    """A parameter of an inline function is of a kind, or has a type, that it cannot have.

    Example: `def area(x: tl.f32[n]):` under @tl.inline.
    Fix: Leave the annotation out: the parameter is what the caller gives. A scalar type casts what is given.
    """

    title = "{what} is not allowed in the signature of an inline function"
    help = "parameters are plain, optionally with a default, and have a scalar type or none"


class Inline:
    """A function that becomes part of each kernel that calls it. Called from Python, it runs as Python."""

    def __init__(self, function: FunctionType, frame_locals: Mapping[str, object]) -> None:
        self.function = function
        self.frame_locals = frame_locals

    @property
    def name(self) -> str:
        return self.function.__name__

    @cached_property
    def syntax(self) -> tuple[ast.FunctionDef, SourceMap]:
        """The syntax tree without its docstring, parsed at the first call."""
        tree, origin = syntax.function_syntax(self.function)
        _refuse_odd_parameters(tree.args, origin)
        if tree.args.posonlyargs:
            tree, args = copy(tree), copy(tree.args)
            tree.args, args.args, args.posonlyargs = args, [*args.posonlyargs, *args.args], []
        return tree, origin

    def __call__(self, *args: object, **keywords: object) -> object:
        return self.function(*args, **keywords)

    def __repr__(self) -> str:
        return f"<inline {self.name}>"


def _refuse_odd_parameters(args: ast.arguments, origin: SourceMap) -> None:
    for odd in (args.vararg, args.kwarg, *args.kwonlyargs[:1]):
        if odd is not None:
            raise BadInlineParameter(f"`{odd.arg}`", span=origin.span(odd)).error()


def inline(function: object) -> Inline:
    """The decorator that lets kernels call a Python function: `@tl.inline`.

    The body is translated where a kernel calls it. Arguments may be numbers, buffers, types and functions; the result
    is that of one `return` at the end: a number, a tuple of numbers, or nothing. Raises KernelError.
    """
    with boundary:
        kind = type(function)
        if not issubclass(kind, FunctionType) or not isinstance(function, FunctionType):
            raise syntax.NotAFunction(f"a value of type {kind.__name__}", "an inline function", "inline").error()
        if function.__name__ == "<lambda>":
            raise syntax.NotAFunction("a lambda", "an inline function", "inline").error()
        return Inline(function, names_around(function, sys._getframe(1)))
