"""Compares trees up to renaming, names the first difference, and hashes trees.

A tree is read as a stream of tokens in program order, in which a variable or a buffer is the number of its definition.
Trees that are equal up to renaming give equal streams, so no other code has to handle names. A called function is one
token, a digest of its own stream.
"""

from __future__ import annotations

from _blake2 import blake2b  # the module hashlib loads a library
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from math import isnan
from typing import Any, NamedTuple, TypeAlias

from tirlite.diag import CallTypeError, Message, public
from tirlite.diag.error import an
from tirlite.ir.dtype import DType
from tirlite.ir.expr import Buffer, Expr, FloatImm, IntImm, StringImm, Var
from tirlite.ir.kernel_call import Function, closure_of
from tirlite.ir.node import Node
from tirlite.ir.stmt import SeqStmt
from tirlite.ir.walk import ALWAYS_FINE
from tirlite.record import record


class NotComparable(Message):
    """What is to be compared is not a tree of the IR.

    Example: `tl.structural_equal(smooth, smooth.lowered)`, where `smooth` is a kernel.
    Fix: Compare functions of the IR: `tl.structural_equal(smooth.ir, smooth.lowered)`.
    """

    raises = CallTypeError
    title = "structural_equal() takes trees of the IR, and is given {given}"
    help = "give PrimFuncs, as in `kernel.ir`, statements or expressions"


@record
class Equality:
    """Whether two trees are equal, usable as a condition; if not, the path to the first difference."""

    equal: bool
    difference: str = ""

    def __bool__(self) -> bool:
        return self.equal


@public
def structural_equal(a: Node, b: Node) -> Equality:
    """Whether `a` and `b` have the same structure and so the same meaning, up to the names of what they define.

    Definitions are compared with their types, shapes, strides, scopes, alignments and facts. A variable or a buffer
    that is not defined inside equals only itself; the dims of two functions are paired where they are first met in the
    shapes of the parameters. Constants are compared bit by bit, except that all nans are equal. Called functions are
    compared by their structure, shared or not. Spans and the names of functions are ignored.

    The difference reads `body[2].value.b: IntImm 3 against IntImm 4`.
    """
    for each in (a, b):
        if not isinstance(each, (Node, Buffer)):
            raise NotComparable(an(type(each).__name__)).error()
    around: _Path = None
    found = _first_difference(a, b)
    while found is not None and isinstance(found[0].shown, Function) and isinstance(found[1].shown, Function):
        inside = _first_difference(found[0].shown, found[1].shown)
        if inside is None or inside[0].shown is found[0].shown:  # the function's own fields differ
            break
        around, found = _joined(around, found[0].path), inside
    return Equality(True) if found is None else Equality(False, _difference(*found, around))


def are_equal(ones: Sequence[Expr], others: Sequence[Expr]) -> bool:
    """Whether there are equally many expressions, pairwise of the same structure."""
    return len(ones) == len(others) and all(
        a is b or _first_difference(a, b) is None for a, b in zip(ones, others, strict=True)
    )


def structural_key(parts: Sequence[Expr]) -> tuple[tuple[object, ...], ...]:
    """What is the same for several expressions and others if they `are_equal`, and for no others."""
    return tuple(token.key for each in parts for token in _Stream(each))


def _first_difference(a: Node, b: Node) -> tuple[_Token, _Token] | None:
    pairs = zip(_Stream(a), _Stream(b), strict=False)
    return next(((left, right) for left, right in pairs if left.key != right.key), None)


def structural_hash(a: Node) -> int:
    """64 bits that are the same for structurally equal trees, in every process."""
    return int.from_bytes(_digest(_Stream(a), 8), "little")


def content_digest(func: Function) -> bytes:
    """20 bytes that are the same for structurally equal functions with the same names, in every process."""
    digest = blake2b(digest_size=20)
    digests: dict[Function, bytes] = {}
    for each in closure_of(func):
        stream = _Stream(each, digests)
        digests[each] = _digest(stream, 32)
        digest.update(digests[each])
        digest.update("\0".join([each.name, *(name.name for name in stream.numbers)]).encode())
    return digest.digest()


def called_digests(func: Function) -> dict[Function, bytes]:
    """32 bytes for `func` and each function that it calls, the same for structurally equal ones."""
    digests: dict[Function, bytes] = {}
    _enter_digests(func, digests)
    return digests


def _enter_digests(func: Function, digests: dict[Function, bytes]) -> None:
    for each in closure_of(func):
        if each not in digests:
            digests[each] = _digest(_Stream(each, digests), 32)


def _digest(stream: Iterable[_Token], size: int) -> bytes:
    digest = blake2b(digest_size=size)
    texts: dict[tuple[object, ...], bytes] = {}
    for token in stream:
        text = texts.get(token.key)
        if text is None:
            text = texts[token.key] = "\0".join(map(_stable, token.key)).encode() + b"\n"
        digest.update(text)
    return digest.digest()


# The path from the root to a part, last step first: names of fields, and positions in them.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


class _End:
    """The end of a tuple."""

    def __repr__(self) -> str:
        return "the end"


_END = _End()


class _Token(NamedTuple):
    """`key` is compared: a kind, and the values of `fields`. The rest is for the message."""

    key: tuple[object, ...]
    path: _Path
    shown: object
    fields: tuple[str, ...] = ()


class _Enter(NamedTuple):
    """Read a node. In the shape of a parameter, new variables are dims."""

    node: Node
    path: _Path
    in_param: bool


class _Define(NamedTuple):
    """A variable or a buffer is defined."""

    name: Var | Buffer
    path: _Path
    in_param: bool


class _Mention(NamedTuple):
    """A variable or a buffer is used."""

    name: Var | Buffer
    path: _Path


_Task: TypeAlias = _Token | _Enter | _Define | _Mention
_BUFFER_FIELDS = ("dtype", "scope", "alignment", "volatile")


class _Stream:
    """The tokens of one tree."""

    def __init__(self, root: Node, digests: dict[Function, bytes] | None = None) -> None:
        """`digests`: those of functions that are known already; new ones are added."""
        self._digests = {} if digests is None else digests
        self.numbers: dict[Var | Buffer, int] = {}
        self._count = 0
        self._root = root
        self._tasks: list[_Task] = [_Enter(root, None, False)]

    def __iter__(self) -> Iterator[_Token]:
        tasks = self._tasks
        steps = 0
        while tasks:
            task = tasks.pop()
            steps += 1
            if steps == ALWAYS_FINE:
                from tirlite.ir.repeats import demand_few_repeats

                demand_few_repeats(self._root)
            if isinstance(task, _Enter):
                yield from self._enter(task)
            elif isinstance(task, _Token):
                yield task
            elif isinstance(task, _Define):
                yield self._define(task)
            else:
                yield self._mention(task.name, task.path)

    def _enter(self, task: _Enter) -> Iterator[_Token]:
        node, path, in_param = task
        if isinstance(node, Var):
            if in_param and node not in self.numbers:
                self._number(node)
                yield self._variable(node, path)
            yield self._mention(node, path)
            return
        # The name of a function is not part of its meaning.
        fields = tuple(name for name in node.DATA if name != "name") if isinstance(node, Function) else node.DATA
        yield _Token((type(node), *[_comparable(getattr(node, name)) for name in fields]), path, node, fields)
        if node.CHILDREN or node.DEFINES or node.USES or node.CALLS:
            self._tasks.extend(reversed(self._parts(task)))

    def _parts(self, task: _Enter) -> list[_Task]:
        """The tasks for the parts of a node; each definition comes after what cannot see it and before what can."""
        node, path, in_param = task
        is_func = isinstance(node, Function)
        parts: list[_Task] = [self._called(getattr(node, name), (path, name)) for name in node.CALLS]
        body: list[_Task] = []
        for name in node.CHILDREN:
            at = path if isinstance(node, SeqStmt) else (path, name)
            children = _spread(getattr(node, name), at, lambda child, where: _Enter(child, where, in_param))
            (body if name == "body" else parts).extend(children)
        for name in node.DEFINES:
            parts += _spread(getattr(node, name), (path, name), lambda each, where: _Define(each, where, is_func))
        for name in node.USES:
            parts += _spread(getattr(node, name), (path, name), _Mention)
        return parts + body

    def _called(self, func: Function, path: _Path) -> _Token:
        if func not in self._digests:
            _enter_digests(func, self._digests)
        return _Token((Function, self._digests[func]), path, func)

    def _define(self, task: _Define) -> _Token:
        name, path, in_param = task
        # A scalar parameter may have occurred as an extent of an earlier parameter.
        if not (in_param and name in self.numbers):
            self._number(name)
        if isinstance(name, Var):
            return self._variable(name, path)
        extents = [_Enter(extent, ((path, "shape"), axis), in_param) for axis, extent in enumerate(name.shape)]
        extents += [_Enter(stride, ((path, "strides"), axis), in_param) for axis, stride in enumerate(name.strides)]
        self._tasks.extend(reversed(extents))
        values = [getattr(name, field) for field in _BUFFER_FIELDS]
        counts = len(name.shape), len(name.strides)
        return _Token((Buffer, *values, *counts), path, name, (*_BUFFER_FIELDS, "rank", "number of strides"))

    def _variable(self, var: Var, path: _Path) -> _Token:
        facts = None if var.dim is None else (var.dim.min, var.dim.max, var.dim.multiple_of)
        return _Token((Var, var.dtype, facts, self.numbers[var]), path, var, ("dtype", "dim"))

    def _mention(self, name: Var | Buffer, path: _Path) -> _Token:
        return _Token((self.numbers.get(name, name),), path, name)

    def _number(self, name: Var | Buffer) -> None:
        self.numbers[name] = self._count
        self._count += 1


def _spread(value: Any, at: _Path, task: Callable[[Any, _Path], _Task]) -> list[_Task]:
    """The tasks for a field: for each element of a tuple and its end, for one value, or for None."""
    if isinstance(value, tuple):
        return [*(task(each, (at, k)) for k, each in enumerate(value)), _Token((_END,), (at, len(value)), _END)]
    return [_Token((None,), at, None) if value is None else task(value, at)]


def _comparable(value: object) -> object:
    """`value`, or a substitute where Python's == is not identity of values."""
    if isinstance(value, float):
        return "nan" if isnan(value) else value.hex()
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    return int(value) if isinstance(value, bool) else value


def _stable(key: object) -> str:
    """A key as text that is the same in every process."""
    if isinstance(key, (Var, Buffer)):
        return "free"
    return key.__name__ if isinstance(key, type) else repr(key)


def _difference(left: _Token, right: _Token, around: _Path) -> str:
    path, a, b = _joined(around, left.path), _described(left.shown), _described(right.shown)
    if left.key[0] == right.key[0]:
        pairs = zip(left.key[1:], right.key[1:], strict=True)
        at = next(k for k, (ours, theirs) in enumerate(pairs, 1) if ours != theirs)
        field = left.fields[at - 1] if at <= len(left.fields) else ""
        if field and not (field == "value" and isinstance(left.shown, Expr)):
            path, a, b = (path, field), _plain(left.key[at]), _plain(right.key[at])
    if a == b:
        b = "another of that name"
    return f"{_rendered(path)}: {a} against {b}"


def _described(shown: object) -> str:
    """A short description of a node, a variable or a buffer."""
    if isinstance(shown, (Var, Buffer)):
        return f"{type(shown).__name__} {shown.name}"
    if isinstance(shown, (IntImm, FloatImm, StringImm)):
        return f"{type(shown).__name__} {shown.value!r}"
    return type(shown).__name__ if isinstance(shown, Node) else _plain(shown)


def _plain(value: object) -> str:
    if isinstance(value, Enum):
        return value.name
    return str(value) if isinstance(value, (DType, _End)) else repr(value)


def _joined(outer: _Path, inner: _Path) -> _Path:
    """The path `inner` appended to `outer`."""
    steps = []
    while inner is not None:
        inner, step = inner
        steps.append(step)
    for step in reversed(steps):
        outer = (outer, step)
    return outer


def _rendered(path: _Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".") or "root"
