"""Parses a Python function or text to a syntax tree, with the source span of each node.

Also has the advice for constructs of Python that kernels lack.
"""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from types import CodeType, FunctionType
from typing import cast

from tirlite.diag import Message, Source, Span, TirliteError
from tirlite.record import record


class NoSource(Message):
    """The source of a function cannot be read.

    Example: A kernel that is defined by `exec`, or in a file that has changed since.
    Fix: Define it in a file, or give its text to `tl.parse`.
    """

    title = "the source of `{name}` cannot be read"
    help = "{advice}"

    advice: str = "define it in a file, or give its text to tl.parse"


class NotAFunction(Message):
    """Something other than a plain function is to be a kernel.

    Example: `@tl.kernel` above an `async def`, or `tl.kernel(lambda x: x)`.
    Fix: Write a plain `def`.
    """

    title = "{given} cannot be {role}"
    help = "write @tl.{decorator} above a `def`"

    role: str = "a kernel"
    decorator: str = "kernel"


class BadSyntax(Message):
    """Text is not Python.

    Example: `tl.parse("def f(:")`.
    Fix: Mend the text where the caret stands: it has to be Python.
    """

    title = "this is not Python: {reason}"


class TooDeep(Message):
    """Text is nested more deeply than Python's own parser can read.

    Example: A sum of thousands of terms, each in parentheses of its own.
    """

    code = "too-deep-to-parse"
    title = "the text is nested too deeply for Python's parser"
    help = "split long expressions over several assignments, or build the function with `tl.ir.Builder`"


class NotInKernels(Message):
    """A construct of Python that the kernel language does not take.

    Example: `squares = [i * i for i in range(n)]`.
    Fix: Write what the help line says in its place; here a loop that stores into a buffer.
    """

    title = "{what} is not allowed in a kernel"
    help = "{instead}"


def function_syntax(function: FunctionType) -> tuple[ast.FunctionDef, SourceMap]:
    """The syntax tree of a function, its body trimmed, and where it stands in its source file.

    Functions with one code object, as a factory defines them at each call, share one tree, which is never changed.
    """
    if not issubclass(type(function), FunctionType):
        raise NotAFunction(f"a value of type {type(function).__name__}").error()
    if function.__name__ == "<lambda>":
        raise NotAFunction("a lambda").error()
    if hasattr(function, "__wrapped__"):
        advice = "another decorator has put a function around it: write @tl.kernel next to the `def`"
        raise NoSource(function.__name__, advice).error()
    found, origin = _definition(_Code(function.__code__, function.__globals__))
    if isinstance(found, ast.AsyncFunctionDef):
        raise NotAFunction("an async function", span=origin.span(found)).error()
    if not isinstance(found, ast.FunctionDef) or found.name != function.__name__:
        # The file has changed since the function was loaded.
        raise NoSource(function.__name__).error()
    return found, origin


class _Code:
    """A code object compared by identity, as equal ones may occur in several files, with what its module says of its
    source: not with all that the module defines, which would live as long as this."""

    def __init__(self, code: CodeType, names: dict[str, object]) -> None:
        self.code = code
        asked = "__name__", "__loader__", "__spec__"
        self.names: dict[str, object] = {name: names[name] for name in asked if name in names}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Code) and other.code is self.code

    def __hash__(self) -> int:
        return id(self.code)


_KEPT = 1 << 10


@lru_cache(_KEPT)
def _definition(of: _Code) -> tuple[ast.stmt | None, SourceMap]:
    """The statement that defines a function."""
    lines, first_line, body = _own_lines(of)
    text = "".join(lines)
    source = Source.of(of.code.co_filename, text, first_line)
    origin = SourceMap(source, first_line - (2 if _is_indented(text) else 1))
    if body is None:
        body = _body(text, lambda whole: parsed(whole, origin))
    found = body[0] if body else None
    if isinstance(found, ast.FunctionDef):
        found.body = trimmed(found.body)
    return found, origin


def _own_lines(of: _Code) -> tuple[list[str], int, list[ast.stmt] | None]:
    """The lines of a function in its file with decorators, the number of the first, and the parsed body, if parsed."""
    code = of.code
    first = code.co_firstlineno
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, of.names)
    last = max((end for _, end, _, _ in code.co_positions() if end is not None), default=first)
    own = lines[first - 1 : last]
    # Add lines without byte code: a `pass`, a comment, a branch that is never taken.
    indent = next((_indent(line) for line in own if line.lstrip().startswith("def ")), 0)
    for line in lines[last:]:
        if line.strip() and _indent(line) <= indent:
            break
        own.append(line)
    if body := _function(own):
        return own, first, body
    # Slower, as it tokenizes, but reliable: brackets and strings may contain lines of any indentation.
    import inspect

    try:
        return *inspect.getsourcelines(code), None
    except (OSError, TypeError, IndexError, SyntaxError):
        raise NoSource(code.co_name).error() from None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _function(lines: list[str]) -> list[ast.stmt] | None:
    """The lines parsed, if they are exactly one function."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = _body("".join(lines), ast.parse)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return body if len(body) == 1 and isinstance(body[0], ast.FunctionDef) else None


def _body(text: str, parse: Callable[[str], ast.Module]) -> list[ast.stmt]:
    """The statements of a text. An indented one is parsed under an added `if`, one line above it."""
    if not _is_indented(text):
        return parse(text).body
    branch = parse(f"if 1:\n{text}").body[0]
    return branch.body if isinstance(branch, ast.If) else []


def _is_indented(text: str) -> bool:
    return text[:1].isspace()


def trimmed(body: list[ast.stmt]) -> list[ast.stmt]:
    """A function's statements without its docstring, and without a bare `return` at the end."""
    first, last = body[0], body[-1]
    if isinstance(last, ast.Return) and last.value is None:
        body = body[:-1]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        body = body[1:]
    return body


def text_syntax(text: str, name: str) -> tuple[ast.Module, SourceMap]:
    """The syntax tree of a text; messages call it `name`."""
    origin = SourceMap(Source.of(name, text))
    # Parse an indented text under an added `if`, like an indented function.
    first = next((line for line in origin.source.lines if line.strip() and not line.lstrip().startswith("#")), "")
    if not first[:1].isspace():
        return parsed(text, origin), origin
    origin = SourceMap(origin.source, -1)
    module = parsed(f"if 1:\n{text}", origin)
    branch = module.body[0]
    return (ast.Module(branch.body, []) if isinstance(branch, ast.If) and len(module.body) == 1 else module), origin


def parsed(text: str, origin: SourceMap) -> ast.Module:
    """The syntax tree of `text`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line, column = (error.lineno or 1) + origin.shift, max((error.offset or 1) - 1, 0)
        end = max((error.end_offset or 0) - 1, column + 1) if error.end_lineno == error.lineno else column + 1
        span = Span(origin.source, line, column, line, end)
        raise BadSyntax(error.msg, span=span).error() from None
    except ValueError as error:  # zero bytes, lone surrogates
        raise BadSyntax(str(error)).error() from None
    except (RecursionError, MemoryError):
        raise TooDeep().error() from None


@record
class SourceMap:
    """The source locations of a tree's nodes: line 1 of the tree is line `1 + shift` of the source."""

    source: Source
    shift: int = 0
    _is_ascii: bool = field(init=False)
    _spans: dict[ast.AST, Span] = field(init=False, default_factory=dict)  # a cache, for repeated translation

    def __post_init__(self) -> None:
        object.__setattr__(self, "_is_ascii", all(line.isascii() for line in self.source.lines))

    def span(self, node: ast.AST) -> Span:
        """The span of a statement, expression, argument or keyword."""
        span = self._spans.get(node)
        if span is None:
            span = self._spans[node] = self._span(node)
        return span

    def _span(self, node: ast.AST) -> Span:
        placed = cast(ast.expr, node)
        line, end_line = placed.lineno + self.shift, (placed.end_lineno or placed.lineno) + self.shift
        start, end = placed.col_offset, placed.end_col_offset
        end = start + 1 if end is None else end
        if not self._is_ascii:
            start, end = self._column(line, start), self._column(end_line, end)
        return Span(self.source, line, start, end_line, end)

    def text(self, node: ast.AST) -> str:
        """The source of a node, on one line."""
        span = self.span(node)
        lines = [self.source.line(number) or "" for number in range(span.line, span.end_line + 1)]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return " ".join(line.strip() for line in lines)

    def _column(self, line: int, offset: int) -> int:
        """Converts a byte offset to a character offset."""
        text = self.source.line(line) or ""
        return len(text.encode()[:offset].decode(errors="replace"))


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
# Nodes of later Python versions, by name.
_LATER = {
    "TypeAlias": ("a type alias", "write it before the kernel"),
    "TemplateStr": ("a t-string", "only print and the message of an assert tell values"),
}


def refusal(node: ast.AST, span: Span) -> TirliteError:
    """The error for a construct that kernels do not have."""
    known = _REFUSED.get(type(node)) or _LATER.get(type(node).__name__)
    what, instead = known or (f"this ({type(node).__name__})", "write it with loops and arithmetic")
    return NotInKernels(what, instead, span=span).error()
