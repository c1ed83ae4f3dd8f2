"""The closed set of words of the kernel language, and how each is called."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import NoReturn

from tirlite.diag import CallTypeError, Message, Span, boundary, did_you_mean, hint
from tirlite.diag.error import an
from tirlite.ir.dtype import SCALARS, OutsideKernel, bool_, dtype_of, f64, i64
from tirlite.ir.op import Op
from tirlite.ir.stmt import ForKind
from tirlite.record import record


@record
class Word:
    """A name with a meaning inside kernels only. Math functions have an `op`."""

    name: str
    op: Op | None = None

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The signature and meaning of the word, for editors."""
        return help_on(self.name)

    def __call__(self, *args: object, **keywords: object) -> NoReturn:
        raise OutsideKernel(self.name).error()

    def __repr__(self) -> str:
        return f"tl.{self.name}"


class MisplacedGrant(Message):
    """`@tl.allow(...)` stands above another decorator, where it changes nothing.

    Example: `@tl.allow("contract")` above `@tl.kernel`.
    Fix: Write it under `@tl.kernel`, next to the `def`; in a function under `@tl.inline`, use `with tl.allow(...):`.
    """

    raises = CallTypeError
    title = "tl.allow decorates the function of a kernel, and is given {kind}"
    help = "write it under @tl.kernel, next to the `def`"


@record
class Grant(Word):
    """The word `allow`, which is a decorator of kernels as well: `@tl.allow("contract")` under `@tl.kernel`."""

    def __call__(self, *args: object, **keywords: object) -> Callable[[FunctionType], FunctionType]:  # type: ignore[override]
        """A decorator that returns the function unchanged: permissions are read from the kernel's source."""
        return self._decorated

    def _decorated(self, function: FunctionType) -> FunctionType:
        with boundary:
            if not isinstance(function, FunctionType):
                raise MisplacedGrant(an(type(function).__name__)).error()
        return function


LOOPS: Mapping[str, ForKind] = {kind.value.removeprefix("tl."): kind for kind in ForKind}
DECLARATIONS = ("alloc", "view")
_FORMS = (
    "attr",
    "allow",
    "unchecked",
    "static",
    "let",
    "select",
    "if_then_else",
    "ramp",
    "broadcast",
    "any",
    "dot",
    "interleave_low",
    "interleave_high",
    "truncdiv",
    "truncmod",
)
_PAIRS = ("argmax", "argmin")
_CALLS = ("call", "checked", "masked", "address_of", "access_ptr", "call_extern", "barrier")
_HEADER = ("dim", "dims", "out", "buffer", "kernel", "inline")

MATH: Mapping[str, Word] = {op.label: Word(op.label, op) for op in Op if op.is_math and not op.is_fast}
RANGE, MIN, MAX, LEN, PRINT = (Word(name) for name in ("range", "min", "max", "len", "print"))
WORDS: Mapping[str, Word] = {
    **{name: Word(name) for name in (*LOOPS, *DECLARATIONS, *_FORMS, *_PAIRS, *_CALLS) if name != RANGE.name},
    **MATH,
    "allow": Grant("allow"),
}
TYPES = {dtype.name: dtype for dtype in SCALARS}


def __getattr__(name: str) -> Word:
    """The words by name, as attributes of the module."""
    if name in WORDS:
        return WORDS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# The meaning of Python's builtins in a kernel.
BUILTINS: Mapping[object, object] = {
    builtins.range: RANGE,
    builtins.min: MIN,
    builtins.max: MAX,
    builtins.len: LEN,
    builtins.print: PRINT,
    builtins.abs: MATH["abs"],
    builtins.bool: bool_,
    builtins.int: i64,
    builtins.float: f64,
}


class Namespace:
    """`tl` itself."""


TL = Namespace()

# Every name after `tl.`, without vector types (`f32x4`).
NAMES: tuple[str, ...] = (*WORDS, *TYPES, *_HEADER)


def named(name: str) -> object | None:
    """The meaning of `tl.NAME` inside a kernel, or None."""
    known = WORDS.get(name) or TYPES.get(name)
    return known or (Word(name) if name in _HEADER else dtype_of(name))


def help_on(word: str) -> str:
    """The signature of `tl.WORD` and its docstring in the stub; empty if the stub does not define it."""
    node = _functions().get(word)
    if node is None:
        return ""
    return f"tl.{word}({ast.unparse(_untyped(node.args))})\n\n{ast.get_docstring(node)}"


def _untyped(arguments: ast.arguments) -> ast.arguments:
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg):
            each.annotation = None
    return arguments


@cache
def _functions() -> dict[str, ast.FunctionDef]:
    stub = Path(__file__).resolve().parent.parent / "__init__.pyi"
    body = ast.parse(stub.read_text("utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


class ArgumentCount(Message):
    """A word is called with too many or too few arguments.

    Example: `tl.select(a > b, a)`.
    Fix: Give as many arguments as the message says.
    """

    code = "word-arguments"
    title = "{word} takes {wanted}, not {given}"
    help = "{advice}"

    advice: str = ""


class UnknownKeyword(Message):
    """A word is called with a keyword that it does not know.

    Example: `tl.alloc(tl.f32[n], align=64)`, where the keyword is `alignment`.
    Fix: Correct the keyword, or leave it out.
    """

    title = "{word} has no keyword `{keyword}`"
    help = "{advice}"


class WrongArgument(Message):
    """An argument of a word is not of the kind that belongs there.

    Example: `tl.alloc(n)`, where a type with a shape belongs.
    Fix: Give what the message asks for, as in `tl.alloc(tl.f32[n])`.
    """

    title = "{word} takes {wanted} here, not {given}"


class MisplacedWord(Message):
    """A word stands where it means nothing.

    Example: `t = tl.parallel(n)`: it stands after the `in` of a `for`, and nowhere else.
    Fix: Write it where the help line says.
    """

    title = "{word} means nothing here"
    help = "{advice}"


@record
class CallSite:
    """A call of a word: the values of its arguments and keywords, and their spans."""

    word: Word
    args: tuple[object, ...]
    spans: tuple[Span, ...]
    keywords: Mapping[str, tuple[object, Span]]
    span: Span

    @property
    def name(self) -> str:
        return called(self.word)

    def count(self, least: int, most: int | None, wanted: str, advice: str = "") -> None:
        """Raises KernelError if the number of arguments is wrong."""
        if len(self.args) < least or (most is not None and len(self.args) > most):
            raise ArgumentCount(self.name, wanted, len(self.args), advice, span=self.span).error()

    def only(self, *keywords: str) -> None:
        """Raises KernelError for any other keyword."""
        for keyword, (_, span) in self.keywords.items():
            if keyword not in keywords:
                known = f"it knows {', '.join(f'`{k}`' for k in keywords)}" if keywords else "it takes no keywords"
                advice = did_you_mean(keyword, keywords, known)
                raise UnknownKeyword(self.name, keyword, advice, span=span).error()

    def wrong(self, position: int, wanted: str) -> Exception:
        """The error for a wrong argument."""
        from tirlite.dsl.parameters import described

        return WrongArgument(self.name, wanted, described(self.args[position]), span=self.spans[position]).error()


def called(word: Word) -> str:
    """The spelling of a word."""
    return word.name if word in (MIN, MAX, LEN, RANGE, PRINT) else f"tl.{word.name}"


def misplaced(word: Word, span: Span) -> Exception:
    """The error for a word where it has no meaning."""
    name = called(word)
    if word.name in LOOPS:
        args = '"threadIdx.x", 32' if word.name == "thread" else "n"
        advice = f"write `for i in {name}({args}):`"
    elif word.name in DECLARATIONS:
        advice = f"give it a name, on a line of its own: `a = {name}(...)`"
    elif word == PRINT:
        advice = "it has no value: write it on a line of its own"
    elif word.name in ("argmax", "argmin"):
        advice = f"write `top, at = {name}((top, at), (x[i], i))`"
    elif word.name == "attr":
        advice = 'write `with tl.attr(buffer, "double_buffer"):`'
    elif word.name == "call":
        advice = "write it on a line of its own: `tl.call(kernel, x, y)`; a kernel has no value"
    elif word.name in ("dim", "dims", "kernel"):
        advice = "it stands before the kernel"
    elif word.name in ("out", "buffer"):
        advice = "it stands in the annotation of a parameter"
    else:
        advice = f"call it: {name}(...)"
    return MisplacedWord(name, advice, span=span).error()


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
    """The value and the span for each parameter, in the order of the parameters."""
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
