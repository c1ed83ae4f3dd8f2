"""Each node of the IR has a rule in codegen."""

from __future__ import annotations

import tirlite.ir
from tirlite.codegen import expressions, statements
from tirlite.ir import Binary, BufferRef, Compare, Expr, FloatImm, IntImm, Node, SeqStmt, Stmt, StringImm, Unary, Var

ABSTRACT = {Expr, Unary, Binary, Compare, Stmt}
LEAVES = {Var, IntImm, FloatImm, BufferRef, StringImm}


def classes(base: type[Node]) -> set[type[Node]]:
    # Names of `tirlite.ir` are loaded as they are asked for.
    every = (getattr(tirlite.ir, name) for name in dir(tirlite.ir))
    found = {each for each in every if isinstance(each, type) and issubclass(each, base)}
    return found - ABSTRACT


def test_each_expression_has_a_rule() -> None:
    assert classes(Expr) - LEAVES == set(expressions.RULES)


def test_each_statement_has_a_rule() -> None:
    assert classes(Stmt) - {SeqStmt} == set(statements.RULES)
