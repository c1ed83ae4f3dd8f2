"""The check of a rewrite: what it accepts, and what it says of a program whose storage was spoilt by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from textwrap import dedent

import pytest
from every import every
from parsed import parsed

import tirlite as tl
from tirlite.analysis import StorageFault, check_storage
from tirlite.ir.builder import Builder
from tirlite.ir.dtype import f32, i64
from tirlite.ir.expr import Buffer, Load, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite as rewritten_tree
from tirlite.ir.stmt import Allocate, For, SeqStmt, Stmt, Store, View
from tirlite.ir.walk import statements, walk
from tirlite.plan import Ok
from tirlite.rewrite import Normalize, StorageRewrite

HEADER = 'n, m = tl.dims("n m")\n\n@tl.kernel\ndef f(x: tl.f32[n, m], y: tl.f32[n, m]):\n'


def kernel(body: str) -> PrimFunc:
    """The kernel over x, y, n and m with this body."""
    return Normalize()(parsed(HEADER, body))


def merged(func: PrimFunc, *names: str, size: int = 64, alignment: int = 0, scope: str = "global") -> PrimFunc:
    """`func` with the named allocations on the first bytes of one arena at the top, as only a planner should do it."""
    arena = Buffer("arena", f32, (const(size // 4, i64),), scope, alignment)

    def allocate(node: Allocate) -> Stmt:
        return View(node.buffer, arena, const(0, i64)) if node.buffer.name in names else node

    return func.replaced(body=SeqStmt((Allocate(arena), rewritten_tree(func.body, {Allocate: allocate}))))


def verdict(body: str, *names: str) -> str:
    """What the check says of a kernel with these allocations in one place; empty for Ok."""
    func = kernel(body)
    found = check_storage(func, merged(func, *names))
    return found.text if isinstance(found, StorageFault) else ""


STRAIGHT = """
    a = tl.alloc(tl.f32[8])
    a[0] = x[0, 0]
    y[0, 0] = a[0]
    b = tl.alloc(tl.f32[8])
    b[0] = x[0, 1]
    y[0, 1] = b[0]
"""


def test_one_after_the_other_may_share() -> None:
    assert verdict(STRAIGHT, "a", "b") == ""


def test_a_read_after_the_other_was_written_is_told_with_both_places() -> None:
    func = kernel(
        """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        a[0] = x[0, 0]
        b[0] = x[0, 1]
        y[0, 0] = a[0] + b[0]
        """
    )
    fault = check_storage(func, merged(func, "a", "b"))
    assert isinstance(fault, StorageFault)
    assert fault.text == "`a` is read after `b` was stored over its bytes"
    assert fault.buffers == ("a", "b")
    assert fault.span is not None
    assert fault.related is not None
    assert fault.span.line - fault.related.line == 1


def test_reading_and_writing_in_one_store_reads_first() -> None:
    body = """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        a[3] = x[0, 0]
        b[0] = a[3]
        y[0, 0] = b[0]
    """
    assert verdict(body, "a", "b") == ""


def test_what_was_never_written_may_be_overwritten() -> None:
    body = """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        b[0] = x[0, 0]
        a[0] = b[0]
        y[0, 0] = a[0]
    """
    assert verdict(body, "a", "b") == ""


def test_a_loop_comes_back_to_its_start() -> None:
    body = """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        a[0] = x[0, 0]
        for i in range(n):
            y[i, 0] = a[0]
            b[0] = x[i, 0]
            y[i, 0] = b[0]
    """
    assert verdict(body, "a", "b") == "`a` is read after `b` was stored over its bytes"


def test_what_is_declared_in_a_loop_begins_anew_in_each_iteration() -> None:
    body = """
        for i in range(n):
            a = tl.alloc(tl.f32[8])
            a[0] = x[i, 0]
            y[i, 0] = a[0]
            b = tl.alloc(tl.f32[8])
            b[0] = x[i, 1]
            y[i, 1] = b[0]
    """
    assert verdict(body, "a", "b") == ""


def test_the_condition_of_a_while_is_read_in_each_iteration() -> None:
    body = """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        a[0] = x[0, 0]
        while a[0] < 3:
            b[0] = x[0, 0]
            y[0, 0] = b[0]
    """
    assert verdict(body, "a", "b") == "`a` is read after `b` was stored over its bytes"


BRANCHES = """
    a = tl.alloc(tl.f32[8])
    b = tl.alloc(tl.f32[8])
    if n > m:
        a[0] = x[0, 0]
        y[0, 0] = a[0]
    else:
        b[0] = x[0, 0]
        y[0, 0] = b[0]
"""


def test_branches_exclude_each_other() -> None:
    assert verdict(BRANCHES, "a", "b") == ""


def test_branches_in_a_loop_do_not_exclude_what_stands_outside() -> None:
    lines = dedent(BRANCHES).strip().splitlines()
    body = "\n".join([*lines[:2], "for i in range(n):", *(f"    {line}" for line in lines[2:])])
    assert verdict(body, "a", "b").endswith("was stored over its bytes")


def test_a_store_in_one_branch_clobbers_for_what_follows() -> None:
    body = """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        a[0] = x[0, 0]
        if n > m:
            b[0] = x[0, 0]
            y[0, 1] = b[0]
        y[0, 0] = a[0]
    """
    assert verdict(body, "a", "b") == "`a` is read after `b` was stored over its bytes"


def test_a_view_is_a_use() -> None:
    body = """
        a = tl.alloc(tl.f32[8])
        v = tl.view(a, tl.f32[4], byte_offset=16)
        v[0] = x[0, 0]
        b = tl.alloc(tl.f32[8])
        b[0] = x[0, 0]
        y[0, 1] = b[0]
        y[0, 0] = v[0]
    """
    assert verdict(body, "a", "b") == "`a` is read after `b` was stored over its bytes"


def test_an_extent_is_read_where_the_buffer_is_declared() -> None:
    body = """
        a = tl.alloc(tl.i64[8])
        b = tl.alloc(tl.f32[8])
        a[0] = 3
        b[0] = x[0, 0]
        y[0, 0] = b[0]
        t = tl.alloc(tl.f32[a[0]])
        t[0] = x[0, 0]
        y[0, 0] = t[0]
    """
    assert verdict(body, "a", "b").startswith("`a` is to be aligned to 8 bytes")
    func = kernel(body)
    fault = check_storage(func, merged(func, "a", "b", alignment=8))
    assert str(fault) == "`a` is read after `b` was stored over its bytes"


@pytest.mark.parametrize("use", ["tl.address_of(a[0])", 'tl.access_ptr(a, 0, 8, "r")'])
def test_an_address_that_is_handed_on_is_good_to_the_end_of_the_body(use: str) -> None:
    body = f"""
        a = tl.alloc(tl.f32[8])
        a[0] = x[0, 0]
        y[0, 0] = tl.call_extern("f32", "peek", {use})
        b = tl.alloc(tl.f32[8])
        b[0] = x[0, 0]
        y[0, 1] = b[0]
    """
    assert verdict(body, "a", "b") == "`a` and `b` share bytes, and not all that happens there is known"


EXTERN = """
a = tl.alloc(tl.f32[8])
b = tl.alloc(tl.f32[8])
b[0] = x[0, 0]
y[0, 0] = b[0]
{before}
for i in range(n):
    {inside}
    if i > 2:
        tl.call_extern("i32", "fill", tl.access_ptr(a, 0, 8, "w"))
        y[i, 0] = a[3]
{after}
"""


@pytest.mark.parametrize(
    ("place", "stmt", "is_fine"),
    [
        ("before", "y[0, 1] = b[0]", True),
        ("inside", "y[i, 1] = b[0]", False),
        ("inside", "b[0] = y[i, 0]", False),
        ("after", "b[0] = 2", False),
        ("after", "y[0, 1] = b[0]", False),
        ("before", "a[0] = y[0, 0]", True),
        ("before", "a[0] = y[0, 0]\nb[0] = 1", False),
    ],
)
def test_an_address_is_nowhere_before_the_first_use(place: str, stmt: str, is_fine: bool) -> None:
    stmts = dict.fromkeys(("before", "inside", "after"), "y[0, 2] = x[0, 2]") | {place: stmt}
    assert (verdict(EXTERN.format(**stmts), "a", "b") == "") == is_fine


def test_what_is_declared_in_an_extern_scope_ends_with_it() -> None:
    body = """
        with tl.attr("extern_scope"):
            a = tl.alloc(tl.f32[8], volatile=True)
            a[0] = x[0, 0]
            y[0, 0] = a[0]
        b = tl.alloc(tl.f32[8])
        b[0] = x[0, 0]
        y[0, 1] = b[0]
    """
    assert verdict(body, "a", "b") == ""


IN_ONE_BRANCH = """
b = tl.alloc(tl.f32[8])
if n > m:
    b[0] = x[0, 0]
    if b[0] > 1:
        a = tl.alloc(tl.f32[8], volatile=True)
        a[0] = x[0, 0]
"""


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("else:\n    y[0, 0] = b[0]", ""),
        ("    y[0, 0] = b[0]", "`b` is read after `a` was stored over its bytes"),
        ("        y[0, 0] = b[0]", "`b` and `a` share bytes, and not all that happens there is known"),
    ],
    ids=["in the other branch", "behind", "beside"],
)
def test_what_is_volatile_takes_no_more_than_its_body(then: str, said: str) -> None:
    assert verdict(IN_ONE_BRANCH + then, "a", "b") == said


def test_iterations_of_a_parallel_loop_do_not_share() -> None:
    body = """
        for i in tl.parallel(n):
            a = tl.alloc(tl.f32[8])
            a[0] = x[i, 0]
            y[i, 0] = a[0]
    """
    assert verdict(body, "a").startswith("`a` has storage of its own in each iteration of a parallel loop")


@pytest.mark.parametrize(
    ("size", "alignment", "scope", "said"),
    [
        (28, 0, "global", "takes the bytes [0, 32) of 28"),
        (64, 0, "shared", "is to live in global, not in shared"),
    ],
)
def test_storage_must_be_large_enough_and_in_the_right_memory(size: int, alignment: int, scope: str, said: str) -> None:
    func = kernel(STRAIGHT)
    fault = check_storage(func, merged(func, "a", "b", size=size, alignment=alignment, scope=scope))
    assert str(fault) == f"`a` {said}"


def test_an_offset_must_be_aligned() -> None:
    b = Builder("f")
    y = b.param("y", f32[4])
    t = b.alloc("t", f32[4])
    b.store(t, 0, 1.0)
    b.store(y, 0, t[0])
    func = b.build()
    arena = Buffer("arena", f32, (const(16, i64),))
    moved = SeqStmt((Allocate(arena), View(t, arena, const(2, i64)), *func.body.stmts[1:]))
    assert "`t` is to be aligned to 4 bytes" in str(check_storage(func, func.replaced(body=moved)))


def test_an_extent_is_not_hoisted_above_its_definition() -> None:
    func = kernel(
        """
        for i in range(n):
            t = tl.alloc(tl.f32[i + 1])
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """
    )
    loop = func.body.stmts[0]
    assert isinstance(loop, For)
    hoisted = SeqStmt((loop.body.stmts[0], loop.replaced(body=SeqStmt(loop.body.stmts[1:]))))
    fault = check_storage(func, func.replaced(body=hoisted))
    assert str(fault) == "`t` is declared where `i` has no value yet"


def test_each_statement_must_still_stand() -> None:
    func = kernel(STRAIGHT)
    stmts = func.body.stmts
    assert str(check_storage(func, func.replaced(body=SeqStmt(stmts[:-1])))) == "a statement is lost"
    assert str(check_storage(func, func.replaced(body=SeqStmt((*stmts, stmts[-1]))))) == "a statement is new"
    swapped = SeqStmt((*stmts[:-2], stmts[-1], stmts[-2]))
    assert str(check_storage(func, func.replaced(body=swapped))) == "a statement is not what it was"
    without = SeqStmt(tuple(stmt for stmt in stmts if not isinstance(stmt, Allocate)))
    assert str(check_storage(func, func.replaced(body=without))) == "`a` is used and not declared"


@dataclass
class Proof:
    """A proof that `b` may take the place of `a` in statements, which speaks of what is read and written there."""

    destination: Buffer
    source: Buffer
    at: Stmt
    until: Stmt
    accesses: Sequence[tuple[Buffer, Node, bool]]

    @classmethod
    def of(cls, func: PrimFunc, at: int, until: int | None = None) -> Proof:
        until = at if until is None else until
        source, destination = (s.buffer for s in func.body.stmts if isinstance(s, Allocate))
        roots = {source: source, destination: destination}
        roots |= {s.buffer: roots[s.source] for s in func.body.stmts if isinstance(s, View)}
        accesses = [
            (roots[node.buffer], node, isinstance(node, Store))
            for top in func.body.stmts[at : until + 1]
            for stmt in statements(top)
            if isinstance(stmt, Store)
            for node in (*walk(stmt.value), stmt)
            if isinstance(node, Load | Store) and node.buffer in roots
        ]
        return cls(destination, source, func.body.stmts[at], func.body.stmts[until], accesses)


IN_PLACE = """
    a = tl.alloc(tl.f32[8])
    b = tl.alloc(tl.f32[8])
    for i in range(8):
        a[i] = x[0, i]
    for i in range(8):
        b[i] = a[i] + 1
    y[0, 0] = b[3]
"""


def test_a_proof_stands_in_for_one_statement() -> None:
    func = kernel(IN_PLACE)
    together = merged(func, "a", "b")
    assert not check_storage(func, together)
    assert check_storage(func, together, [Proof.of(func, 3)]) == Ok()
    assert not check_storage(func, together, [Proof.of(func, 2)])


def test_a_proof_ends_with_its_statement() -> None:
    func = kernel(IN_PLACE + "    y[0, 1] = a[3]\n")
    fault = check_storage(func, merged(func, "a", "b"), [Proof.of(func, 3)])
    assert str(fault) == "`a` is read after `b` was stored over its bytes"


HALVES = """
    a = tl.alloc(tl.f32[8])
    b = tl.alloc(tl.f32[8])
    for i in range(8):
        a[i] = x[0, 0]
    for i in range(4):
        b[i] = a[i] + 1
    for i in range(4, 8):
        b[i] = a[i] + 2
    y[0, 0] = b[3]
"""


def test_a_proof_may_be_of_several_statements_in_a_row() -> None:
    func = kernel(HALVES)
    together = merged(func, "a", "b")
    assert check_storage(func, together, [Proof.of(func, 3, 4)]) == Ok()
    assert not check_storage(func, together, [Proof.of(func, 3)])
    proof = Proof.of(func, 3, 4)
    turned = replace(proof, at=proof.until, until=proof.at)
    assert not check_storage(func, together, [turned])
    inside = replace(proof, until=func.body.stmts[4].body.stmts[0])
    assert not check_storage(func, together, [inside])


def test_a_proof_of_several_statements_ends_with_the_last() -> None:
    func = kernel(HALVES + "    y[0, 1] = a[7]\n")
    fault = check_storage(func, merged(func, "a", "b"), [Proof.of(func, 3, 4)])
    assert str(fault) == "`a` is read after `b` was stored over its bytes"


@pytest.mark.parametrize(
    ("stmt", "holds"), [("b[i] = a[i] + a[4]", False), ("b[i] = a[i - 1]", False), ("b[i] = a[max(i, 4)]", True)]
)
def test_what_a_proof_of_several_statements_claims_is_tried(stmt: str, holds: bool) -> None:
    func = kernel(HALVES.replace("b[i] = a[i] + 2", stmt))
    assert bool(check_storage(func, merged(func, "a", "b"), [Proof.of(func, 3, 4)])) == holds


def test_a_proof_that_does_not_speak_of_a_view_does_not_count() -> None:
    func = kernel(
        IN_PLACE.replace("a[i] + 1", "a[i] + v[7 - i]").replace("for", "v = tl.view(a, tl.f32[8])\n    for", 1)
    )
    together = merged(func, "a", "b")
    proof = Proof.of(func, 4)
    without = replace(proof, accesses=[each for each in proof.accesses if each[1].buffer.name != "v"])
    assert str(check_storage(func, together, [without])) == "`a` is read after `b` was stored over its bytes"


@pytest.mark.parametrize(
    "accesses",
    [
        lambda read, write: [write, read],
        lambda read, write: [write],
        lambda read, write: [read],
        lambda read, write: [read, write, read],
        lambda read, write: [(read[0], read[1], True), write],
    ],
    ids=["turned round", "no read", "no write", "read again", "read as written"],
)
def test_a_proof_that_speaks_of_other_accesses_does_not_count(accesses: Callable[..., list[object]]) -> None:
    func = kernel(IN_PLACE)
    proof = Proof.of(func, 3)
    wrong = replace(proof, accesses=accesses(*proof.accesses))
    assert not check_storage(func, merged(func, "a", "b"), [wrong])


@every(
    "stmt, holds",
    [
        ("b[i] = a[i] * a[i]", True),
        ("b[7 - i] = a[7 - i]", True),
        ("b[i // 2] = a[i]", True),
        ("b[i] = a[7 - i]", False),
        ("b[i] = a[i // 2]", False),
        ("b[i] = a[max(i - 1, 0)]", False),
        ("b[i] = a[min(i + 1, 7)]", True),
        ("b[(i + 1) % 8] = a[i]", False),
        ("b[i] = a[max(i - tl.i64(x[0, 0]), 0)]", False),
        ("b[i] = a[min(i + tl.i64(x[0, 0]), 7)]", True),
    ],
)
def test_what_a_proof_claims_is_tried(stmt: str, holds: bool) -> None:
    func = kernel(IN_PLACE.replace("b[i] = a[i] + 1", stmt))
    assert bool(check_storage(func, merged(func, "a", "b"), [Proof.of(func, 3)])) == holds


@pytest.mark.parametrize("loop", ["tl.parallel(8)", "tl.vectorized(8)"])
def test_iterations_without_an_order_are_tried_both_ways(loop: str) -> None:
    body = IN_PLACE.replace("b[i] = a[i] + 1", "b[i] = a[min(i + 1, 7)]")
    func = kernel(body[::-1].replace("range(8)"[::-1], loop[::-1], 1)[::-1])
    assert not check_storage(func, merged(func, "a", "b"), [Proof.of(func, 3)])


def test_all_loops_around_the_store_are_tried() -> None:
    body = IN_PLACE.replace("        b[i] = a[i] + 1", "        for j in range(2):\n            b[i] = a[i] + 1")
    func = kernel(body)
    assert not check_storage(func, merged(func, "a", "b"), [Proof.of(func, 3)])


def test_a_nest_of_two_thousand_loops() -> None:
    b = Builder("deep")
    y = b.param("y", f32[1])
    first, second = b.alloc("a", f32[8]), b.alloc("b", f32[8])
    with ExitStack() as loops:
        for level in range(2_000):
            loops.enter_context(b.for_(f"i{level}", 0, 2))
        b.store(first, 0, 1.0)
        b.store(second, 0, first[0])
        b.store(y, 0, second[0])
    func = b.build()
    assert str(check_storage(func, merged(func, "a", "b"))) == "`a` is read after `b` was stored over its bytes"


@pytest.mark.parametrize("strategy", ["tvm", "share"])
def test_five_thousand_buffers_in_two_slots(strategy: str) -> None:
    b = Builder("chain")
    before = b.param("x", f32[8])
    y = b.param("y", f32[8])
    for number in range(5_000):
        made = b.alloc(f"t{number}", f32[8 + number % 3])
        b.store(made, 0, before[0] + 1.0)
        before = made
    b.store(y, 0, before[0])
    func = b.build()
    assert check_storage(func, StorageRewrite(strategy, check=False)(func)) == Ok()


def test_the_rewrite_is_checked_and_the_check_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    func = kernel(STRAIGHT)
    monkeypatch.setattr(
        "tirlite.rewrite.storage.planned_storage._Merger.rewrite", lambda self: merged(func, "a", size=8)
    )
    with pytest.raises(tl.TirliteError, match="unsafe-rewrite.*takes the bytes"):
        StorageRewrite("share")(func)
    StorageRewrite("share", check=False)(func)


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_order_is_known_of_the_loops_around_a_while(dtype: str) -> None:
    """Each iteration over i writes 4 bytes of `b` and reads of `a` what lies 8 bytes and more further on."""
    func = tl.parse(f"""
m = tl.dim("m")

@tl.kernel
def f(x: tl.{dtype}[m], s: tl.{dtype}, y: tl.f32[4]):
    a = tl.alloc(tl.u64[3])
    b = tl.alloc(tl.f32[3])
    for i in range(3):
        a[i] = tl.u64(x[i])
    for i in range(3):
        b[i] = tl.f32(a[i])
        count = tl.alloc(tl.i32[1], scope="local")
        count[0] = tl.i32(0)
        while count[0] < tl.i32(3):
            count[0] = count[0] + tl.i32(1)
            b[i] = b[i] + (tl.f32(a[i + 1]) if i + 1 < 3 else tl.f32(1.0))
    for i in range(3):
        y[i] = b[i]
""")
    (proof,) = tl.analysis.in_place_candidates(Normalize()(func))
    assert proof.allowed
    assert str(StorageRewrite("share")(func)).count("tl.alloc") == 2
