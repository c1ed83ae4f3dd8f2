"""Rewrites `break`, `continue` and early `return` in a syntax tree as branches, with flags where needed.

    for i in range(n):                       going = True
        if x[i] < 0:                         for i in range(n):  # as long as `going`
            continue                             if not x[i] < 0:
        if x[i] == key:            becomes           if x[i] == key:
            break                                        going = False
        y[i] = 1                                     else:
                                                         y[i] = 1

If one branch of an `if` always jumps, the statements after the `if` move into the other branch. The statements after a
nested jump are guarded by a flag of the block that it leaves. Values of `return` become one expression if all of them
are plain.
"""

from __future__ import annotations

import ast
from ast import copy_location
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import field
from enum import Enum
from typing import TypeAlias, TypeVar

from tirlite.diag import Message
from tirlite.dsl.expression import Expressions
from tirlite.dsl.local_names import names_of
from tirlite.dsl.loops import LeftLoop
from tirlite.dsl.statement import tail_returns
from tirlite.dsl.syntax import SourceMap
from tirlite.ir.trampoline import Steps, run
from tirlite.names import UniqueNames
from tirlite.record import record

Loop: TypeAlias = ast.For | ast.While
Jump: TypeAlias = ast.Break | ast.Continue | ast.Return
Node = TypeVar("Node", bound=ast.AST)


class UnevenReturns(Message):
    """A function gives back a value on some paths through it, and nothing, or another number of values, on others.

    Example: `if v < 0: return 0`, and no `return` at the end.
    Fix: End each path with a `return` of as many values, also after a loop that always returns.
    """

    title = "`{name}` gives back {one} here, and {other} {place}"
    help = "return the same number of values on every path through the function"


@record
class Rewritten:
    """A function without jumps, except for `return`s at its end.

    `left`: the `for` loops that jumps leave. `sure`: names that have a value wherever they are read.
    """

    tree: ast.FunctionDef
    left: Mapping[ast.For, LeftLoop] = field(default_factory=dict)
    sure: Sequence[str] = ()


def without_jumps(
    tree: ast.FunctionDef, origin: SourceMap, expressions: Expressions, *, gives_value: bool
) -> Rewritten:
    """Rewrites the function `tree`. Raises KernelError for returns with different numbers of values."""
    exits = _Exits(gives_value)
    end = run(exits.of_all(tree.body))
    jumps = _Jumps(tree, exits, expressions)
    body = jumps.body()
    ends = tail_returns(body, expressions.is_static)
    if gives_value and not all(each in ends for each in _returns(body)):
        returns = _returns(tree.body)
        _check_even(tree.name, returns, origin, always=end is _Exit.LEAVES)
        jumps.result = [jumps.names.unique("result") for _ in range(_count(returns[0]))]
        body = jumps.body()
        if jumps.result:
            value = _several([_read(name, returns[-1]) for name in jumps.result], ast.Load())
            body.append(copy_location(ast.Return(value), returns[-1]))
    made = copy(tree)
    made.body = body
    return Rewritten(made, jumps.left, jumps.result)


def _returns(body: Sequence[ast.stmt]) -> list[ast.Return]:
    found, work = [], list(reversed(body))
    while work:
        stmt = work.pop()
        if isinstance(stmt, ast.Return):
            found.append(stmt)
        elif isinstance(stmt, ast.If | ast.For | ast.While | ast.With):
            work += reversed([*stmt.body, *getattr(stmt, "orelse", ())])
    return found


def _count(stmt: ast.Return) -> int:
    """The number of values of a `return`."""
    return len(stmt.value.elts) if isinstance(stmt.value, ast.Tuple) else int(stmt.value is not None)


def _check_even(name: str, returns: Sequence[ast.Return], origin: SourceMap, *, always: bool) -> None:
    """Raises KernelError unless all paths return equally many values; `always` means that all paths end in a return."""
    first, count = returns[0], _count(returns[0])
    odd = next((each for each in returns if _count(each) != count), None)
    if odd is None and (not count or always):
        return
    other = 0 if odd is None else _count(odd)
    place = "at its end" if odd is None else f"in line {origin.span(odd).line}"
    raise UnevenReturns(name, _values(count), _values(other), place, span=origin.span(first)).error()


def _values(number: int) -> str:
    return ("nothing", "a value")[number] if number < 2 else f"{number} values"


class _Exit(Enum):
    """Where control goes after a statement or block with jumps in it."""

    FALLS = "behind it"
    MAY_LEAVE = "behind it, or elsewhere"
    LEAVES = "elsewhere"


class _Exits:
    """Analyses the jumps of a function; `known` has the statements that contain any."""

    def __init__(self, gives_value: bool) -> None:
        self._gives_value = gives_value
        self._loops: list[Loop] = []  # the open loops
        self.known: dict[ast.stmt, _Exit] = {}
        self.leaving: dict[Loop, ast.Break | ast.Return] = {}  # for each loop that jumps leave, the first of these
        self._returning: set[Loop] = set()

    def of_all(self, stmts: Sequence[ast.stmt]) -> Steps[_Exit | None]:
        """The exit of a block; None if it contains no jump."""
        found: _Exit | None = None
        for stmt in stmts:
            end = yield self._of(stmt)
            if end is not None:
                self.known[stmt] = end
                found = end if found is not _Exit.MAY_LEAVE or end is _Exit.LEAVES else found
        return _Exit.LEAVES if any(self.known.get(stmt) is _Exit.LEAVES for stmt in stmts) else found

    def _of(self, stmt: ast.stmt) -> Steps[_Exit | None]:
        if isinstance(stmt, Jump):
            return self._of_jump(stmt)
        if isinstance(stmt, ast.If):
            one, other = (yield self.of_all(stmt.body)), (yield self.of_all(stmt.orelse))
            if one is None and other is None:
                return None
            one, other = one or _Exit.FALLS, other or _Exit.FALLS
            return one if one is other else _Exit.MAY_LEAVE
        if isinstance(stmt, ast.With):
            return (yield self.of_all(stmt.body))  # type: ignore[no-any-return]
        if isinstance(stmt, Loop):
            self._loops.append(stmt)
            inside = yield self.of_all(stmt.body)
            self._loops.pop()
            behind = yield self.of_all(stmt.orelse)
            if inside is None and behind is None:
                return None
            return _Exit.MAY_LEAVE if stmt in self._returning or behind not in (None, _Exit.FALLS) else _Exit.FALLS
        return None

    def _of_jump(self, stmt: Jump) -> _Exit | None:
        """The exit of a jump; None if it is refused here, by the translation of statements."""
        if isinstance(stmt, ast.Return):
            if stmt.value is not None and not self._gives_value:
                return None
            self._returning.update(self._loops)
        elif not self._loops:
            return None
        if not isinstance(stmt, ast.Continue):
            for loop in self._loops if isinstance(stmt, ast.Return) else self._loops[-1:]:
                self.leaving.setdefault(loop, stmt)
        return _Exit.LEAVES


@record(eq=False)
class _JumpTarget:
    """A block that jumps leave: a loop, one iteration of it, or the function. Its flag is true until one does."""

    kind: type[Jump]  # the kind of jump that leaves it and no block around it
    flag: str


_FLAGS: Mapping[type[Jump], str] = {ast.Return: "running", ast.Break: "going", ast.Continue: "in_round"}


class _Jumps:
    """The rewriting of one function."""

    def __init__(self, tree: ast.FunctionDef, exits: _Exits, expressions: Expressions) -> None:
        self.result: list[str] = []  # the variables with the result, if `return`s in the middle must be replaced
        self.left: dict[ast.For, LeftLoop] = {}
        self._tree, self._exits, self._expressions = tree, exits, expressions
        self.names = UniqueNames(names_of(tree))
        self._flags: dict[tuple[ast.AST, type[Jump]], str] = {}
        self._tested: set[str] = set()  # the flags that are read
        self._blocks: list[_JumpTarget] = []  # the open blocks

    def body(self) -> list[ast.stmt]:
        """The body without jumps. It is made twice, as the first pass finds out which flags are read."""
        for _ in range(2):
            self.left.clear()
            self._blocks = [self._block(self._tree, ast.Return)]
            made: list[ast.stmt] = run(self._block_of(self._tree.body))
        return [*self._begun(self._blocks[0], self._tree.body[0]), *made]

    def _block(self, owner: ast.AST, kind: type[Jump]) -> _JumpTarget:
        if (owner, kind) not in self._flags:
            self._flags[owner, kind] = self.names.unique(_FLAGS[kind])
        return _JumpTarget(kind, self._flags[owner, kind])

    def _begun(self, block: _JumpTarget, place: ast.stmt) -> list[ast.stmt]:
        return [_assigned(block.flag, True, place)] if block.flag in self._tested else []

    def _block_of(self, stmts: Sequence[ast.stmt]) -> Steps[list[ast.stmt]]:
        made: list[ast.stmt] = []
        for place, stmt in enumerate(stmts):
            end = self._exits.known.get(stmt)
            if end is None:
                made.append(stmt)
                continue
            rest = stmts[place + 1 :] if end is _Exit.MAY_LEAVE else ()
            if isinstance(stmt, Jump):
                made += self._jump(stmt)
            elif isinstance(stmt, ast.If):
                taken = self._leaving_branch(stmt) if rest else None
                body, orelse = ([*stmt.body, *rest] if taken == 1 else stmt.body), stmt.orelse
                orelse = [*orelse, *rest] if taken == 0 else orelse
                branches = (yield self._block_of(body)), (yield self._block_of(orelse))
                made.append(self._merged(copy_location(ast.If(stmt.test, *branches), stmt)))
                rest = () if taken is not None else rest
                end = _Exit.LEAVES if taken is not None else end
            elif isinstance(stmt, ast.With):
                made.append(copy_location(ast.With(stmt.items, (yield self._block_of(stmt.body))), stmt))
            elif isinstance(stmt, Loop):
                made += yield self._loop(stmt)
            if end is _Exit.LEAVES:
                break
            if rest:
                flag = self._blocks[-1].flag
                self._tested.add(flag)
                made.append(copy_location(ast.If(_read(flag, rest[0]), (yield self._block_of(rest)), []), rest[0]))
                break
        return made

    def _leaving_branch(self, stmt: ast.If) -> int | None:
        """The branch that always jumps, 0 or 1; the other one receives the statements that follow."""
        known = self._exits.known
        for branch, body in enumerate((stmt.body, stmt.orelse)):
            if any(known.get(each) is _Exit.LEAVES for each in body):
                return branch
        return None

    def _jump(self, stmt: Jump) -> list[ast.stmt]:
        """The replacement of a jump: clears the flags of all blocks that it leaves."""
        if isinstance(stmt, ast.Return) and stmt.value is not None and not self.result:
            return [stmt]
        made: list[ast.stmt] = []
        if isinstance(stmt, ast.Return) and stmt.value is not None:
            target = _several([copy_location(ast.Name(name, ast.Store()), stmt) for name in self.result], ast.Store())
            made.append(copy_location(ast.Assign([target], stmt.value), stmt))
        for block in reversed(self._blocks):
            if block.flag in self._tested:
                made.append(_assigned(block.flag, False, stmt))
            if isinstance(stmt, block.kind):
                break
        return made

    def _merged(self, stmt: ast.If) -> ast.stmt:
        """Merges `if c: return a` and `else: return b` into one `return` if both values are plain expressions.

        An empty branch with an `else` is inverted.
        """
        if self._expressions.is_static(stmt.test):
            return stmt
        if not stmt.body and stmt.orelse:
            return copy_location(ast.If(_opposite(stmt.test), stmt.orelse, []), stmt)
        if len(stmt.body) != 1 or len(stmt.orelse) != 1:
            return stmt
        one, other = stmt.body[0], stmt.orelse[0]
        if not isinstance(one, ast.Return) or not isinstance(other, ast.Return) or not one.value or not other.value:
            return stmt
        if not self._expressions.is_plain(one.value) or not self._expressions.is_plain(other.value):
            return stmt
        return copy_location(ast.Return(copy_location(ast.IfExp(stmt.test, one.value, other.value), stmt)), stmt)

    def _loop(self, stmt: Loop) -> Steps[list[ast.stmt]]:
        jump = self._exits.leaving.get(stmt)
        whole, each = self._block(stmt, ast.Break), self._block(stmt, ast.Continue)
        if jump is not None:
            self._tested.add(whole.flag)
        self._blocks += [whole, each]
        body = yield self._block_of(stmt.body)
        del self._blocks[-2:]
        body = [*self._begun(each, stmt.body[0]), *body]
        orelse = [] if jump is not None else stmt.orelse
        made: Loop
        if isinstance(stmt, ast.For):
            made = copy_location(ast.For(stmt.target, stmt.iter, body, orelse), stmt)
            if jump is not None:
                self.left[made] = LeftLoop(whole.flag, jump)
        else:
            test = stmt.test
            if jump is not None:
                test = copy_location(ast.BoolOp(ast.And(), [_read(whole.flag, test), test]), test)
            made = copy_location(ast.While(test, body, orelse), stmt)
        behind: list[ast.stmt] = []
        if jump is not None and stmt.orelse:
            inside = yield self._block_of(stmt.orelse)
            behind.append(copy_location(ast.If(_read(whole.flag, stmt.orelse[0]), inside, []), stmt.orelse[0]))
        return [*self._begun(whole, stmt), made, *behind]


def _opposite(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return copy_location(ast.UnaryOp(ast.Not(), test), test)


def _several(parts: list[ast.Name], use: ast.expr_context) -> ast.expr:
    """One name, or a tuple of names."""
    return parts[0] if len(parts) == 1 else copy_location(ast.Tuple(list(parts), use), parts[0])


def _read(name: str, place: ast.AST) -> ast.Name:
    return copy_location(ast.Name(name, ast.Load()), place)


def _assigned(name: str, value: bool, place: ast.AST) -> ast.Assign:
    target = copy_location(ast.Name(name, ast.Store()), place)
    return copy_location(ast.Assign([target], copy_location(ast.Constant(value), place)), place)
