"""The check of a rewrite where declarations were moved, made twice, or put over one another: each must be refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pytest
from parsed import parsed

from tirlite.analysis import StorageFault, check_storage
from tirlite.ir.dtype import i64, u8
from tirlite.ir.expr import Buffer, Load, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, For, SeqStmt, Stmt, Store, View
from tirlite.ir.walk import statements, walk
from tirlite.plan import Ok

HEADER = 'n, m = tl.dims("n m")\n\n@tl.kernel\ndef f(x: tl.f32[n, m], y: tl.f32[n, m]):\n'
ARENA = Buffer("arena", u8, (const(128, i64),), alignment=64)
USED_BEFORE_THE_LOOP = """
    a = tl.alloc(tl.f32[8])
    a[0] = x[0, 0]
    for i in range(n):
        y[i, 0] = a[0]
"""
USED_IN_THE_LOOP = """
    a = tl.alloc(tl.f32[8])
    b = tl.alloc(tl.f32[8])
    for i in range(n):
        if i == 0:
            a[0] = x[0, 0]
        b[0] = x[i, 1]
        y[i, 0] = a[0] + b[0]
"""
SEEN = """
    a = tl.alloc(tl.f32[8])
    v = tl.view(a, tl.f32[4])
    a[0] = x[0, 0]
    y[0, 0] = v[0]
"""
IN_PLACE = """
    a = tl.alloc(tl.f32[8])
    b = tl.alloc(tl.f32[8])
    for i in range(8):
        a[i] = x[0, i]
    for i in range(8):
        b[i] = a[i] + 1
    y[0, 0] = b[3]
"""


kernel = partial(parsed, HEADER)


def declared(func: PrimFunc, top: Sequence[Stmt], in_the_loop: Sequence[Stmt] = ()) -> PrimFunc:
    """`func` with these declarations at its top and in its loop, and none else."""
    rest = [stmt for stmt in func.body.stmts if not isinstance(stmt, Allocate | View)]
    body = [
        stmt.replaced(body=SeqStmt((*in_the_loop, stmt.body))) if isinstance(stmt, For) and in_the_loop else stmt
        for stmt in rest
    ]
    return func.replaced(body=SeqStmt((*top, *body)))


def names(func: PrimFunc) -> dict[str, Allocate | View]:
    return {stmt.buffer.name: stmt for stmt in statements(func.body) if isinstance(stmt, Allocate | View)}


def placed(stmt: Stmt, offset: int, source: Buffer = ARENA) -> View:
    """A view of the arena in the place of a declaration."""
    assert isinstance(stmt, Allocate | View)
    return View(stmt.buffer, source, const(offset, i64), fresh=True)


def said(func: PrimFunc, other: PrimFunc) -> str:
    found = check_storage(func, other)
    return found.text if isinstance(found, StorageFault) else ""


def test_an_allocation_is_not_moved_into_a_loop_that_carries_it() -> None:
    func = kernel(USED_IN_THE_LOOP)
    a, b = names(func).values()
    assert said(func, declared(func, (b,), (a,))) == "`a` is not declared where it was"
    together = declared(func, (Allocate(ARENA),), (placed(a, 0), placed(b, 0)))
    assert said(func, together) == "`a` is not declared where it was"


def test_what_moved_out_is_not_moved_on_by_a_second_declaration() -> None:
    func = kernel(USED_BEFORE_THE_LOOP)
    (a,) = names(func).values()
    top = (Allocate(ARENA), placed(a, 0))
    assert said(func, declared(func, top)) == ""
    assert said(func, declared(func, top, (placed(a, 64),))) == "`a` is declared again where it was not"


def test_a_parameter_is_not_declared_anew() -> None:
    func = kernel(USED_BEFORE_THE_LOOP)
    y = func.params[1]
    assert isinstance(y, Buffer)
    own = View(y, ARENA, const(0, i64))
    assert said(func, declared(func, (Allocate(ARENA), own, *names(func).values()))) == (
        "`y` is declared again where it was not"
    )


def test_a_view_stays_with_its_source() -> None:
    func = kernel(SEEN)
    a, v = names(func).values()
    assert said(func, declared(func, (Allocate(ARENA), placed(a, 0), v))) == ""
    parted = declared(func, (Allocate(ARENA), placed(a, 0), v, placed(a, 64)))
    assert said(func, parted) == "`v` is a view of another `a`"


def test_a_view_of_a_view_may_be_larger_than_that() -> None:
    func = kernel(USED_BEFORE_THE_LOOP)
    (a,) = names(func).values()
    small = Buffer("small", u8, (const(4, i64),))
    inside = declared(func, (Allocate(ARENA), View(small, ARENA, const(0, i64)), placed(a, 0, small)))
    assert said(func, inside) == "`a` is a view of a view, which may be smaller than the storage"


@dataclass
class Proof:
    """A proof that `b` may take over the bytes of `a` in one statement."""

    destination: Buffer
    source: Buffer
    at: Stmt
    until: Stmt
    accesses: Sequence[tuple[Buffer, Node, bool]]


@pytest.mark.parametrize(("offset", "holds"), [(0, True), (4, False), (16, False), (32, True)])
def test_a_proof_in_place_is_one_of_the_same_place(offset: int, holds: bool) -> None:
    func = kernel(IN_PLACE)
    a, b = names(func).values()
    loop = func.body.stmts[3]
    (store,) = (stmt for stmt in statements(loop) if isinstance(stmt, Store))
    (load,) = (node for node in walk(store.value) if isinstance(node, Load))
    proof = Proof(b.buffer, a.buffer, loop, loop, [(a.buffer, load, False), (b.buffer, store, True)])
    other = declared(func, (Allocate(ARENA), placed(a, 0), placed(b, offset)))
    assert (check_storage(func, other, [proof]) == Ok()) == holds
