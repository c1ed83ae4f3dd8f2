"""Splits a long block into parts that become functions of their own.

LLVM's time grows quadratically with the loops and the straight-line code of a function. A block above a certain weight
is therefore split, and its parts are called one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tirlite.codegen.storage import Storage
from tirlite.ir.expr import Buffer, Call, Expr, Load, Var
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.stmt import Allocate, AttrStmt, For, IfThenElse, Let, SeqStmt, Stmt, View, While
from tirlite.ir.walk import statements, walk
from tirlite.record import record

LOOP_WEIGHT = 20  # LLVM's work on a loop, in statements
LARGEST = 1000
SMALLEST = 100  # a lighter part is not worth a call
_AROUND_CALLS = frozenset((KernelCall, Allocate, View, Let, IfThenElse))


@record
class BlockPart:
    """Declarations, which stay in the block, and the statements after them, which become a function if `is_piece`."""

    declarations: tuple[Stmt, ...]
    stmts: tuple[Stmt, ...]
    is_piece: bool = False


class StatementCosts:
    """An estimate of LLVM's cost for each statement: 1 for a leaf, more for a loop. `loops` counts all loops."""

    def __init__(self, body: SeqStmt) -> None:
        self._weights: dict[Stmt, int] = {}
        self.loops = 0
        stack: list[tuple[Stmt, bool]] = [(body, False)]
        while stack:
            stmt, is_done = stack.pop()
            inside = _blocks(stmt)
            if not is_done:
                stack.append((stmt, True))
                stack += [
                    (each, False) for each in inside if isinstance(each, SeqStmt | For | While | IfThenElse | AttrStmt)
                ]
                continue
            own = LOOP_WEIGHT if isinstance(stmt, For | While) else 1
            self.loops += isinstance(stmt, For | While)
            self._weights[stmt] = own + sum(map(self.of, inside))

    def of(self, stmt: Stmt) -> int:
        return self._weights.get(stmt, 1)


def _blocks(stmt: Stmt) -> Sequence[Stmt]:
    if isinstance(stmt, SeqStmt):
        return stmt.stmts
    if isinstance(stmt, IfThenElse):
        return (stmt.then_body, stmt.else_body)
    return (stmt.body,) if isinstance(stmt, For | While | AttrStmt) else ()


def are_only_calls(stmts: Iterable[Stmt]) -> bool:
    """Whether the statements only call functions, as a network's do: LLVM has nothing to optimise there."""
    kinds = {type(each) for stmt in stmts for each in statements(stmt)}
    return KernelCall in kinds and kinds <= _AROUND_CALLS


def cut(body: SeqStmt, weights: StatementCosts, storage: Storage) -> Iterator[BlockPart]:
    """Splits a heavy block, in order.

    A declaration that reads no memory but the call's plan may move up, so each part begins with its declarations. A
    statement that must stay in place is a part by itself, as is one that is too heavy.
    """
    declarations: dict[Var | Buffer, Stmt] = {}
    stmts: list[Stmt] = []
    weight = 0

    def part() -> BlockPart:
        return BlockPart(tuple(declarations.values()), tuple(stmts), weight >= SMALLEST)

    for stmt in body.stmts:
        name = _declared(stmt, storage)
        own = weights.of(stmt)
        stays = name is None and (isinstance(stmt, Allocate | View | Let) or own > LARGEST)
        if stays or name in declarations or weight + own > LARGEST:
            yield part()
            declarations, stmts, weight = {}, [], 0
        if stays:
            yield BlockPart((), (stmt,))
        elif name is not None:
            declarations[name] = stmt
        else:
            stmts.append(stmt)
            weight += own
    yield part()


def _declared(stmt: Stmt, storage: Storage) -> Var | Buffer | None:
    """The name that `stmt` declares, if the declaration may move up."""
    if isinstance(stmt, Allocate):
        return None if storage.homes[stmt.buffer] == "heap" else stmt.buffer
    if isinstance(stmt, View):
        is_entry = storage.plan is not None and storage.plan.entry(stmt.byte_offset) is not None
        exprs = stmt.buffer.shape if is_entry else (stmt.byte_offset, *stmt.buffer.shape)
        return stmt.buffer if all(map(_is_pure, exprs)) else None
    if isinstance(stmt, Let):
        return stmt.var if _is_pure(stmt.value) else None
    return None


def _is_pure(expr: Expr) -> bool:
    return not any(isinstance(node, Load) or (isinstance(node, Call) and not node.op.is_math) for node in walk(expr))
