"""Tells what to write instead of a construct of Python that kernels do not have."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tirlite.diag import Message, Span, TirliteError


class NotInKernels(Message):
    """A construct of Python that the kernel language does not take.

    Example: `squares = [i * i for i in range(n)]`.
    Fix: Write what the help line says in its place; here a loop that stores into a buffer.
    """

    title = "{what} is not allowed in a kernel"
    help = "{instead}"


_ELEMENTS = "write a loop over the elements"
_REFUSED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.FunctionDef: ("a nested function", "write it before the kernel, with @tl.inline above its `def`"),
    ast.AsyncFunctionDef: ("an async function", "kernels are plain functions; loops run in parallel with tl.parallel"),
    ast.ClassDef: ("a class", "a kernel has scalars and buffers only"),
    ast.Return: ("`return` with a value", "store results into parameters; mark those with tl.out"),
    ast.Delete: ("`del`", "leave it out: storage ends by itself, and the planner reuses it"),
    ast.AsyncFor: ("`async for`", "write `for i in tl.parallel(n):`"),
    ast.With: ("this `with`", "a kernel has `with tl.attr(...)`, `with tl.allow(...)` and `with tl.unchecked()`"),
    ast.AsyncWith: ("`async with`", 'write `with tl.attr(buffer, "double_buffer"):`'),
    ast.Match: ("`match`", "write if, elif and else"),
    ast.Raise: ("`raise`", 'write `assert condition, "message"`'),
    ast.Try: ("`try`", "check beforehand, with if or assert: a kernel raises nothing that could be caught in it"),
    ast.TryStar: ("`try`", "check beforehand, with if or assert: a kernel raises nothing that could be caught in it"),
    ast.Import: ("`import`", "import before the kernel"),
    ast.ImportFrom: ("`import`", "import before the kernel"),
    ast.Global: ("`global`", "pass what changes as a parameter"),
    ast.Nonlocal: ("`nonlocal`", "pass what changes as a parameter"),
    ast.Break: ("`break` outside of a loop", "leave it out, or put it into the loop that it ends"),
    ast.Continue: ("`continue` outside of a loop", "leave it out, or put it into the loop"),
    ast.NamedExpr: ("`:=`", "assign on a line of its own, before"),
    ast.Lambda: ("a lambda", "write the expression where it is used"),
    ast.Dict: ("a dict", "a kernel has scalars and buffers only"),
    ast.Set: ("a set", "a kernel has scalars and buffers only"),
    ast.List: ("a list", "allocate a buffer: tl.alloc(tl.f32[n])"),
    ast.Tuple: ("a tuple", "write one value at a time"),
    ast.ListComp: ("a comprehension", _ELEMENTS),
    ast.SetComp: ("a comprehension", _ELEMENTS),
    ast.DictComp: ("a comprehension", _ELEMENTS),
    ast.GeneratorExp: ("a generator expression", _ELEMENTS),
    ast.Await: ("`await`", "leave it out"),
    ast.Yield: ("`yield`", "store results into parameters"),
    ast.YieldFrom: ("`yield from`", "store results into parameters"),
    ast.JoinedStr: ("an f-string", "only print and the message of an assert tell values"),
    ast.Starred: ("`*`", "write out the arguments"),
    ast.Slice: ("a slice", "write a loop over the elements: `for j in range(m): y[i, j] = ...`"),
    ast.MatMult: ("`@`", "write the three loops"),
    ast.Is: ("`is`", "compare with =="),
    ast.IsNot: ("`is not`", "compare with !="),
    ast.In: ("`in` in a chain of comparisons", "join the comparisons by `and`"),
    ast.NotIn: ("`not in` in a chain of comparisons", "join the comparisons by `and`"),
}
# Of later versions of Python: they are looked for by name.
_LATER = {
    "TypeAlias": ("a type alias", "write it before the kernel"),
    "TemplateStr": ("a t-string", "only print and the message of an assert tell values"),
}


def refusal(node: ast.AST, span: Span) -> TirliteError:
    """The error that `node` cannot stand in a kernel."""
    known = _REFUSED.get(type(node)) or _LATER.get(type(node).__name__)
    what, instead = known or (f"this ({type(node).__name__})", "write it with loops and arithmetic")
    return NotInKernels(what, instead, span=span).error()
