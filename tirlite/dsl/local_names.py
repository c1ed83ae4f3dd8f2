"""Decides how each name that a function assigns is represented.

Python has one scope per function; the IR has blocks. A scalar that is assigned once, in the block that contains all its
uses, becomes a Let there. Any other scalar becomes a buffer without axes, declared in the innermost block that contains
all its assignments and uses. Independent ranges of a name (the `t` of one loop and of the next) are separated first.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field
from enum import Enum
from functools import lru_cache

from tirlite.record import record

# The sizes of caches, of functions and of statements, since inline functions are analysed again at each call.
# Each entry keeps a syntax tree.
KEPT, _KEPT_STATEMENTS = 1 << 8, 1 << 10


class Use(Enum):
    """How a name is used; the value describes the name in messages."""

    SCALAR = "a local scalar"
    BUFFER = "a buffer"
    LOOP = "a loop variable"
    READ = ""
    UPDATE = "an updated scalar"


@record(eq=False)
class Suite:
    """A body of statements. The function's has no parent.

    `passes`: it runs whenever the statement around it runs. `other`: for the second body of an `if`, the first one.
    """

    parent: Suite | None = None
    depth: int = 0
    passes: bool = False
    other: Suite | None = None

    def lines_up(self) -> Sequence[Suite]:
        """This block and all around it, innermost first."""
        chain, block = [], self
        while True:
            chain.append(block)
            if block.parent is None:
                return chain
            block = block.parent


@record
class Mention:
    """A use of a name in a block: `node` is the assignment, or None for a read."""

    block: Suite
    use: Use
    node: ast.stmt | None = None


@record
class Home:
    """The representation of a scalar: a Let, or a buffer declared in `block`."""

    block: Suite
    is_let: bool


@record(frozen=False)
class LocalNames:
    """The names that a function assigns with their kinds, the homes of its scalars, and the blocks of statements."""

    kinds: dict[str, Use] = field(default_factory=dict)
    homes: dict[tuple[str, ast.stmt], Home] = field(default_factory=dict)
    blocks: dict[tuple[ast.AST, str], Suite] = field(default_factory=dict)


@lru_cache(KEPT)
def local_names(function: ast.FunctionDef, declarations: frozenset[ast.expr]) -> LocalNames:
    """The local names of `function`; `declarations` are its calls of tl.alloc and tl.view."""
    found = LocalNames()
    mentions: dict[str, list[Mention]] = {}
    root = Suite()
    found.blocks[function, "body"] = root
    work: list[tuple[ast.stmt, Suite]] = [(stmt, root) for stmt in reversed(function.body)]
    while work:
        stmt, block = work.pop()
        for name, mention in _mentions(stmt, block, declarations):
            mentions.setdefault(name, []).append(mention)
        found.blocks.update(_blocks_of(stmt, block))
        for body in reversed(BODIES):
            inner = getattr(stmt, body, None)
            if isinstance(inner, list):
                below = found.blocks[stmt, body]
                work.extend((each, below) for each in reversed(inner))
    for name, uses in mentions.items():
        kind = next((mention.use for mention in uses if mention.use not in (Use.READ, Use.UPDATE)), None)
        if kind is not None:
            found.kinds[name] = kind
        if kind is Use.SCALAR:
            _settle(name, uses, found)
    return found


def _blocks_of(stmt: ast.stmt, around: Suite) -> dict[tuple[ast.AST, str], Suite]:
    """The blocks of a statement's bodies."""
    if not isinstance(getattr(stmt, "body", None), list):
        return {}
    first = Suite(around, around.depth + 1, passes=isinstance(stmt, ast.With))
    second = Suite(around, around.depth + 1, other=first if isinstance(stmt, ast.If) else None)
    return {(stmt, "body"): first, (stmt, "orelse"): second}


def _mentions(stmt: ast.stmt, block: Suite, declarations: frozenset[ast.expr]) -> list[tuple[str, Mention]]:
    """The names used in a statement itself, without its bodies."""
    if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    found = [(name, Mention(block, Use.READ)) for name in read_by(stmt)]
    if isinstance(stmt, (ast.Assign, ast.AnnAssign)):
        use = Use.BUFFER if stmt.value in declarations else Use.SCALAR
        found += [(name, Mention(block, use, stmt)) for name in assigned_by(stmt)]
    elif isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name):
        found.append((stmt.target.id, Mention(block, Use.UPDATE, stmt)))
    elif isinstance(stmt, ast.For):
        found += [(name.id, Mention(block, Use.LOOP, stmt)) for name in names_in(stmt.target)]
    return found


def _settle(name: str, mentions: Sequence[Mention], found: LocalNames) -> None:
    """Assigns homes to the assignments of a scalar."""
    touched = {mention.block for mention in mentions}
    groups: dict[Suite, list[Mention]] = {}
    for mention in mentions:
        # The outermost enclosing block that itself mentions the name, which bounds the range of the name.
        top = next(block for block in reversed(mention.block.lines_up()) if block in touched)
        groups.setdefault(top, []).append(mention)
    if not all(_stands_alone(group, top) for top, group in groups.items()):
        groups = {_common(list(groups)): list(mentions)}
    for top, group in groups.items():
        changes = [mention for mention in group if mention.use is not Use.READ]
        home = Home(top, is_let=len(changes) == 1 and changes[0].use is Use.SCALAR and changes[0].block is top)
        for mention in changes:
            if mention.node is not None:
                found.homes[name, mention.node] = home


def _stands_alone(mentions: Sequence[Mention], top: Suite) -> bool:
    """Whether each use in this range surely follows an assignment in it, so that no earlier value can be read."""
    sure: set[Suite] = set()
    for mention in mentions:
        if mention.use is not Use.SCALAR:
            if not any(block in sure for block in mention.block.lines_up()):
                return False
            continue
        block: Suite | None = mention.block
        while block is not None:
            sure.add(block)
            goes_on = block is not top and (block.passes or block.other in sure)
            block = block.parent if goes_on else None
    return True


def _common(blocks: Sequence[Suite]) -> Suite:
    """The innermost block that contains all of these."""
    common = blocks[0]
    for other in blocks[1:]:
        while common is not other:
            if common.depth >= other.depth and common.parent is not None:
                common = common.parent
            elif other.parent is not None:
                other = other.parent
    return common


BODIES = ("body", "orelse")
"""The fields of a statement that hold statements of kernels."""


def names_in(target: ast.expr) -> list[ast.Name]:
    """The names that a target binds: itself, or those in a tuple."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return [part for part in parts if isinstance(part, ast.Name)]


def assigned_by(node: ast.AST) -> list[str]:
    """The names that an assignment of any kind assigns; none for other nodes, including loops."""
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
        targets = (node.target,)
    return [name.id for target in targets for name in names_in(target)]


def names_of(function: ast.FunctionDef) -> set[str]:
    """All names in a function, including its parameters."""
    return {*_names_in(function), *(arg.arg for arg in function.args.args)}


@lru_cache(KEPT)
def _names_in(function: ast.FunctionDef) -> tuple[str, ...]:
    return tuple({each.id: None for each in ast.walk(function) if isinstance(each, ast.Name)})


@lru_cache(KEPT)
def binders(function: ast.FunctionDef) -> tuple[ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For, ...]:
    """The assignments and loops in a function."""
    kinds = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For)
    return tuple(node for node in ast.walk(function) if isinstance(node, kinds))


@lru_cache(_KEPT_STATEMENTS)
def read_by(stmt: ast.stmt) -> tuple[str, ...]:
    """The names that a statement itself reads, without its bodies, with repetitions."""
    parts = [value for name, value in ast.iter_fields(stmt) if name not in BODIES]
    nodes = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    names = [each for node in nodes if isinstance(node, ast.AST) for each in ast.walk(node)]
    return tuple(name.id for name in names if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load))


def bound_by(node: ast.AST) -> str:
    """The name that a node of any kind binds, even of constructs that kernels lack; empty if none."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.alias):
        return node.asname or node.name.partition(".")[0]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        return node.name or ""
    return ""
