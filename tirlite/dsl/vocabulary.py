"""Defines the words of the kernel language: what each name stands for. A closed set."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import NoReturn

from tirlite.diag import CallTypeError, Message, boundary
from tirlite.ir.dtype import SCALARS, OutsideKernel, bool_, dtype_of, f64, i64
from tirlite.ir.op import Op
from tirlite.ir.stmt import ForKind
from tirlite.record import record


@record
class Word:
    """A name that means something inside kernels alone. Those of math have an `op`."""

    name: str
    op: Op | None = None

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """How it is written and what it means, as editors show it."""
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

    code = "misplaced-grant"
    raises = CallTypeError
    title = "tl.allow decorates the function of a kernel, and is given a {kind}"
    help = "write it under @tl.kernel, next to the `def`"

    kind: str


@record
class Grant(Word):
    """The word `allow`, which is a decorator of kernels as well: `@tl.allow("contract")` under `@tl.kernel`."""

    def __call__(self, *args: object, **keywords: object) -> Callable[[FunctionType], FunctionType]:  # type: ignore[override]
        """What leaves a function as it is: what is granted is read from the source of the kernel."""
        return self._decorated

    def _decorated(self, function: FunctionType) -> FunctionType:
        with boundary:
            if not isinstance(function, FunctionType):
                raise MisplacedGrant(type(function).__name__).error()
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
    """The words by name, for those who look into the module."""
    if name in WORDS:
        return WORDS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# What the builtins of Python mean in a kernel.
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

# Every name behind `tl.`; vector types (`f32x4`) come on top.
NAMES: tuple[str, ...] = (*WORDS, *TYPES, *_HEADER)


def named(name: str) -> object | None:
    """What `tl.NAME` stands for inside a kernel, or None."""
    known = WORDS.get(name) or TYPES.get(name)
    return known or (Word(name) if name in _HEADER else dtype_of(name))


def help_on(word: str) -> str:
    """How `tl.WORD` is called, and below it what it means; empty where the stub does not define it."""
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
