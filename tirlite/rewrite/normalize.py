"""Makes the canonical form of a function: each definition a distinct object, buffer attributes as fields.

A statement object may occur twice in a program, but passes with a table by buffer need distinct buffers. The attributes
`storage_scope` and `volatile_scope` become fields of Buffer. A `tl.allow` moves outwards as long as that adds no
operation to its block, so that nests are perfect wherever the author wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tirlite.ir.demand import pass_call
from tirlite.ir.expr import Binary, Buffer, Call, Cast, FloatImm, IntImm, LetExpr, Load, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, AttrKey, AttrStmt, For, Let, Permission, SeqStmt, Stmt, View
from tirlite.ir.walk import statements_of, walk
from tirlite.record import record, replace

_MOVED = (AttrKey.STORAGE_SCOPE, AttrKey.VOLATILE_SCOPE)
_OF_OPERATIONS = {Permission.CONTRACT, Permission.APPROXIMATE}

# Sets for a quick test, since most nodes define nothing.
_OF_BUFFERS: frozenset[type[Node]] = frozenset((Allocate, View))
_OF_VARIABLES: frozenset[type[Node]] = frozenset((Let, LetExpr, For))
_DEFINING = (Allocate, View, Let, For)
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var))


@record
class Normalize:
    """Makes definitions unique, moves storage_scope and volatile_scope into buffers, and drops casts to the same type.

    `x[tl.i64(i)]` with an i64 `i` becomes `x[i]`. A block `with tl.allow("contract"):` around all float operations of a
    loop's body moves around the loop.
    """

    name: str = "normalize"

    @pass_call
    def __call__(self, func: PrimFunc) -> PrimFunc:
        if func.is_normal:
            return func
        result = _grants_outward(_attributes_to_fields(_unique_definitions(func)))
        object.__setattr__(result, "is_normal", True)
        return result


def exchanged(func: PrimFunc, made: Mapping[Any, Sequence[Stmt]]) -> PrimFunc:
    """`func` with some statements replaced by others, in normal form even if these occur several times."""
    from tirlite.ir import rewrite

    own = _with_own_definitions(func, made)

    def replaced(stmt: Stmt) -> Stmt | tuple[Stmt, ...]:
        return tuple((own or made)[stmt]) if stmt in made else stmt

    result = rewrite(func, dict.fromkeys(map(type, made), replaced))
    if own is None:
        return Normalize()(result)
    object.__setattr__(result, "is_normal", True)
    return result


def _with_own_definitions(func: PrimFunc, made: Mapping[Any, Sequence[Stmt]]) -> Mapping[Any, Sequence[Stmt]] | None:
    """`made` with unique definitions; None if that requires visiting all of `func`."""
    if not func.is_normal or not all(type(stmt) is For for stmt in made):
        return None
    block = SeqStmt(tuple(stmt for stmts in made.values() for stmt in stmts))
    parts = [_definitions(stmt) for stmt in block.stmts]
    defined, removed = {each for part in parts for each in part}, {each for loop in made for each in _definitions(loop)}
    if new := defined - removed:
        told = {getattr(each, each.DEFINES[0]) for each in statements_of(block, *_DEFINING)}
        around = {getattr(each, each.DEFINES[0]) for each in statements_of(func.body, *_DEFINING)}
        if not new <= told or new & around:
            return None
    if any(attr.key in _MOVED for attr in statements_of(block, AttrStmt)):
        return None
    if len(defined) == sum(map(len, parts)):
        return made
    # Later statements may use what the block itself declares.
    if len(made) > 1 or any(type(stmt) in _DEFINING and type(stmt) is not For for stmt in block.stmts):
        return None
    from tirlite.ir.rewrite import Renamer

    own: list[Stmt] = []
    before: set[Buffer | Var] = set()
    for stmt, part in zip(block.stmts, parts, strict=True):
        is_new = before.isdisjoint(part) and len(set(part)) == len(part)
        own += (stmt,) if is_new else Renamer(before).rename(SeqStmt((stmt,))).stmts
        before.update(part)
    return dict.fromkeys(made, own)


def _attributes_to_fields(func: PrimFunc) -> PrimFunc:
    """The function with `storage_scope` and `volatile_scope` as fields of their buffers."""
    changed: dict[Buffer, Buffer] = {}
    for node in statements_of(func.body, AttrStmt):
        if node.buffer is not None:
            buffer = changed.get(node.buffer, node.buffer)
            if node.key is AttrKey.STORAGE_SCOPE:
                changed[node.buffer] = replace(buffer, scope=str(node.value))
            elif node.key is AttrKey.VOLATILE_SCOPE:
                changed[node.buffer] = replace(buffer, volatile=True)
    if not changed:
        return func
    from tirlite.ir import rewrite, substitute

    def drop(attr: AttrStmt) -> Stmt:
        return attr.body if attr.key in _MOVED else attr

    def own(buffer: Any) -> Any:
        return changed.get(buffer, buffer)

    renamed = func.replaced(
        params=tuple(map(own, func.params)),
        body=substitute(func.body, {}, changed),
        outputs=tuple(map(own, func.outputs)),
    )
    return rewrite(renamed, {AttrStmt: drop})


def _grants_outward(func: PrimFunc) -> PrimFunc:
    if all(_grant(stmt) is None for stmt in statements_of(func.body, AttrStmt)):
        return func
    from tirlite.ir import rewrite

    return rewrite(func, {SeqStmt: _granted_whole, For: _granted_around})


def _grant(stmt: Stmt) -> AttrStmt | None:
    """`stmt` if it grants permissions for single operations, so that the extent of its block does not matter."""
    if not isinstance(stmt, AttrStmt) or stmt.key is not AttrKey.ALLOW or not isinstance(stmt.value, tuple):
        return None
    return stmt if _OF_OPERATIONS.issuperset(stmt.value) else None


def _granted_whole(block: SeqStmt) -> SeqStmt:
    """A block whose grants are merged into one around it, if its other statements have no float operations."""
    grants = [grant for stmt in block.stmts if (grant := _grant(stmt)) is not None]
    if not grants or len(block.stmts) == 1 or any(grant.value != grants[0].value for grant in grants):
        return block
    others = walk(*(stmt for stmt in block.stmts if stmt not in grants))
    if any(isinstance(node, Binary | Call) and node.dtype.is_float for node in others):
        return block
    within = tuple(each for stmt in block.stmts for each in (stmt.body.stmts if stmt in grants else (stmt,)))
    return SeqStmt((grants[0].replaced(body=SeqStmt(within)),))


def _granted_around(loop: For) -> Stmt:
    """A loop whose whole body is under a grant, with that around the loop."""
    grant = _grant(loop.body.stmts[0]) if len(loop.body.stmts) == 1 else None
    return loop if grant is None else grant.replaced(body=SeqStmt((loop.replaced(body=grant.body),)))


def _definitions(root: Node, idle: list[Cast] | None = None) -> list[Buffer | Var]:
    """All definitions below `root`, with repetitions, unordered; casts that change no type are added to `idle`."""
    found: list[Buffer | Var] = []
    stack = [root]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _ATOMS:
            continue
        if isinstance(node, Binary):
            stack += (node.a, node.b)
            continue
        if kind is Load:
            stack += node.indices  # type: ignore[attr-defined]
            continue
        if kind in _OF_BUFFERS:
            found.append(node.buffer)  # type: ignore[attr-defined]
        elif kind in _OF_VARIABLES:
            found.append(node.var)  # type: ignore[attr-defined]
        elif idle is not None and kind is Cast and node.value.dtype == node.dtype:  # type: ignore[attr-defined]
            idle.append(node)  # type: ignore[arg-type]
        stack += node.children()
    return found


def _unique_definitions(func: PrimFunc) -> PrimFunc:
    idle: list[Cast] = []
    defined = _definitions(func.body, idle)
    if idle:
        from tirlite.ir import rewrite

        func = rewrite(func, {Cast: lambda cast: cast.value if cast.value.dtype == cast.dtype else cast})
    if len(set(defined)) == len(defined):
        return func
    from tirlite.ir.rewrite import Renamer

    return Renamer().rename(func)
