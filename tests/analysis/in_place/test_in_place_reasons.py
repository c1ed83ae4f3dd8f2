"""What the proofs say, and what is refused before any index is looked at."""

from __future__ import annotations

import pytest
from in_place.programs import RIGHT, WRONG, kernel, over_vector

from tirlite.analysis.in_place.candidates import in_place_candidates
from tirlite.ir import AttrKey, AttrStmt, Builder, For, PrimFunc, SeqStmt, f32, rewrite


def texts(func: PrimFunc) -> list[str]:
    return [str(proof) for proof in in_place_candidates(func)]


def reason(middle: str) -> str:
    (proof,) = in_place_candidates(kernel(over_vector(middle)))
    assert not proof.allowed
    return proof.reason


def test_a_proof_names_the_buffers_and_the_line() -> None:
    assert texts(kernel(RIGHT["one loop"])) == [
        "`b` may overwrite `a` in place at <text>:10:5: "
        "each element of `b` is written after the last use of the element of `a` at the same place"
    ]


def test_a_refusal_names_the_accesses_and_the_loop() -> None:
    assert texts(kernel(WRONG["an outer loop comes back"])) == [
        "`b` may not overwrite `a` in place at <text>:10:5: "
        "`b[i]` may be written before `a[i]` is read at the same place, in an earlier iteration of `t`"
    ]


def test_a_refusal_in_one_iteration() -> None:
    assert reason("for i in range(n):\n    b[i] = 0\n    b[i] = a[i]") == (
        "`b[i]` may be written before `a[i]` is read at the same place, in one run of the same statements"
    )


def test_a_refusal_in_a_parallel_loop() -> None:
    assert reason("for i in tl.parallel(n):\n    b[i] = a[n - 1 - i]") == (
        "`b[i]` may be written before `a[n - 1 - i]` is read at the same place, "
        "in another iteration of `i`, and these have no order"
    )


def test_a_refusal_in_a_while_loop() -> None:
    assert reason("k = 0\nwhile k < n:\n    b[k] = a[k]\n    k += 1").endswith("in an earlier run of the while loop")


def test_an_address_that_is_handed_on() -> None:
    middle = 'for i in range(n):\n    b[i] = a[i] + tl.call_extern("i32", "peek", tl.address_of(a[0]))'
    func = kernel(
        over_vector(middle).replace("for i in range(n):\n    if i >= 0:", "for i in range(n):\n    if i > 0:")
    )
    assert not any(proof.allowed for proof in in_place_candidates(func))


def test_an_address_that_was_handed_on_before() -> None:
    # A pointer may be kept, so that `a` lives as long as its body, whose last statement makes `b`.
    body = """
    a = tl.alloc(tl.i32[n])
    b = tl.alloc(tl.i32[n])
    tl.call_extern("i32", "keep", tl.address_of(a[0]))
    for i in range(n):
        b[i] = a[i]
        y[i, 0] = b[i]
    """
    (proof,) = in_place_candidates(kernel(body))
    assert proof.reason == "the address of `a` is handed on, so not all of its uses are known"


def test_a_volatile_buffer() -> None:
    b = Builder("f")
    x, y = b.param("x", f32[8]), b.param("y", f32[8])
    first = b.alloc("a", f32[8], volatile=True)
    second = b.alloc("b", f32[8])
    b.store(first, 0, x[0])
    with b.for_("i", 0, 8) as i:
        b.store(second, i, first[i])
        b.store(y, i, second[i])
    (proof,) = in_place_candidates(b.build())
    assert proof.reason == "`a` is volatile"


def inside(func: PrimFunc, key: AttrKey, *, about: str | None = None) -> PrimFunc:
    """`func` with its second loop inside an attribute."""
    (at,) = (proof.at for proof in in_place_candidates(func))
    (buffer,) = (p.destination for p in in_place_candidates(func)) if about else (None,)

    def wrap(loop: For) -> AttrStmt | For:
        return AttrStmt(key, SeqStmt((loop,)), buffer) if loop is at else loop

    result = rewrite(func, {For: wrap})
    assert isinstance(result, PrimFunc)
    return result


def test_an_extern_scope() -> None:
    func = inside(kernel(RIGHT["one loop"]), AttrKey.EXTERN_SCOPE)
    (proof,) = in_place_candidates(func)
    assert proof.reason == "`b` is touched inside an extern scope"


def test_a_double_buffer() -> None:
    func = inside(kernel(RIGHT["one loop"]), AttrKey.DOUBLE_BUFFER, about="b")
    (proof,) = in_place_candidates(func)
    assert proof.reason == "an attribute says something about `b`, which may be double-buffered"


def test_threads_of_two_axes() -> None:
    middle = """
for i in tl.thread("blockIdx.x", n):
    for k in tl.thread("threadIdx.x", 4):
        b[i] = a[i]
"""
    assert reason(middle) == "threads, which run at no fixed pace, share both"


def test_one_axis_of_threads_is_a_parallel_loop() -> None:
    body = over_vector('for i in tl.thread("threadIdx.x", n):\n    b[i] = a[i] + 1')
    (proof,) = in_place_candidates(kernel(body))
    assert proof.allowed


def test_each_of_two_sources_is_proposed() -> None:
    body = """
    a = tl.alloc(tl.i32[n])
    c = tl.alloc(tl.i32[n])
    b = tl.alloc(tl.i32[n])
    for i in range(n):
        a[i] = x[i, 0]
        c[i] = x[i, 0] + 1
    for i in range(n):
        b[i] = a[i] + c[i]
    for i in range(n):
        y[i, 0] = b[i]
    """
    found = [(p.destination.name, p.source.name, p.allowed) for p in in_place_candidates(kernel(body))]
    assert found == [("b", "a", True), ("b", "c", True)]


def test_a_source_that_is_read_later_is_no_candidate() -> None:
    assert in_place_candidates(kernel(RIGHT["one loop"].replace("y[i, 0] = b[i]", "y[i, 0] = b[i] + a[i]"))) == ()


def test_other_scopes_and_other_bodies_are_no_candidates() -> None:
    one = RIGHT["one loop"]
    assert (
        in_place_candidates(kernel(one.replace("b = tl.alloc(tl.i32[n])", 'b = tl.alloc(tl.i32[n], scope="shared")')))
        == ()
    )
    moved = """
    a = tl.alloc(tl.i32[n])
    for i in range(n):
        a[i] = x[i, 0]
    for i in range(n):
        b = tl.alloc(tl.i32[1])
        b[0] = a[i]
        y[i, 0] = b[0]
    """
    assert in_place_candidates(kernel(moved)) == ()


def test_empty_extents_do_not_stand_in_the_way() -> None:
    # Where m is 0 nothing is accessed, so that m is positive wherever it matters.
    dims = 'n = tl.dim("n", min=0)\nm = tl.dim("m", min=0)\n'
    weak = f"{dims}\n@tl.kernel\ndef f(x: tl.i32[n, m], y: tl.i32[n, m]):\n"
    (proof,) = in_place_candidates(kernel(RIGHT["one flat, one in rows"], weak))
    assert proof.allowed


def test_an_index_that_may_wrap_around_proves_nothing() -> None:
    # 2**62 * i is 0 again where i is 4.
    middle = (
        "for i in range(n):\n    if i % 4 == 0:\n        b[i * 4611686018427387904] = a[i * 4611686018427387904] + 1"
    )
    assert reason(middle).endswith("in an earlier iteration of `i`")


def test_one_statement_object_that_stands_twice() -> None:
    def twice(loop: For) -> For:
        return loop.replaced(body=SeqStmt((*loop.body.stmts, *loop.body.stmts)))

    func = kernel(RIGHT["one loop"])
    (at,) = (proof.at for proof in in_place_candidates(func))
    result = rewrite(func, {For: lambda loop: twice(loop) if loop is at else loop})
    assert isinstance(result, PrimFunc)
    (proof,) = in_place_candidates(result)
    assert proof.reason.endswith("in one run of the same statements")


def test_more_accesses_than_are_compared() -> None:
    b = Builder("unrolled")
    x, y = b.param("x", f32[6400]), b.param("y", f32[6400])
    first, second = b.alloc("a", f32[6400]), b.alloc("b", f32[6400])
    b.store(first, 0, x[0])
    with b.for_("i", 0, 100) as i:
        for k in range(64):
            b.store(second, i * 64 + k, first[i * 64 + k])
    b.store(y, 0, second[0])
    (proof,) = in_place_candidates(b.build())
    assert proof.reason == "there are 4096 pairs of accesses to compare, and that is too many"


def test_a_body_with_very_many_births_and_deaths_offers_a_few_pairs_each() -> None:
    b = Builder("wide")
    x, y = b.param("x", f32[8]), b.param("y", f32[8])
    buffers = [b.alloc(f"t{k}", f32[8]) for k in range(200)]
    with b.for_("i", 0, 8) as i:
        b.store(buffers[0], i, x[i])
        for before, after in zip(buffers, buffers[1:], strict=False):
            b.store(after, i, before[i] + 1)
        b.store(y, i, buffers[-1][i])
    pairs = {(p.destination.name, p.source.name): p.allowed for p in in_place_candidates(b.build())}
    assert len(pairs) < 200 * 13
    assert all(pairs[f"t{k + 1}", f"t{k}"] for k in range(199))


@pytest.mark.parametrize(
    ("one", "other", "is_asked"),
    [
        ("for i in range(n):\n    b[n - 1 - i] = 1", "for k in range(n):\n    z[k, 0] = a[n - 1 - k]", False),
        ("for i in range(n):\n    b[i // 2] = 1", "for k in range(n):\n    z[k, 0] = a[k // 2]", False),
        ("for i in range(1, n):\n    b[i] = 1", "for k in range(1, n):\n    z[k, 0] = a[k]", False),
        ("b[n - 1] = 1", "z[0, 0] = a[n - 1]", False),
        ("for i in range(n):\n    b[n - 1 - i] = 1", "for k in range(n):\n    z[k, 0] = a[n - k // 2 - 1]", True),
        ("for i in range(n):\n    b[i // 2] = 1", "for k in range(n, n * 2):\n    z[k - n, 0] = a[k // 2]", True),
        ("for i in range(0, n, 2):\n    b[i] = 1", "for k in range(1, n, 2):\n    z[k, 0] = a[k]", True),
    ],
)
def test_what_plainly_meets_is_not_asked_for(one: str, other: str, is_asked: bool) -> None:
    """Of pairs that live together for several statements: whole buffers one after the other are the usual case."""
    assert bool(in_place_candidates(kernel(over_vector(f"{one}\n{other}\n")))) == is_asked


def test_of_pairs_over_several_statements_a_number_is_looked_at() -> None:
    b = Builder("borders")
    x, y = b.param("x", f32[8]), b.param("y", f32[8])
    before = x
    for k in range(600):
        after = b.alloc(f"t{k}", f32[8])
        b.store(after, 0, before[0])
        with b.for_("i", 1, 8) as i:
            b.store(after, i, before[i] + 1)
        before = after
    with b.for_("i", 0, 8) as i:
        b.store(y, i, before[i])
    pairs = [(p.destination.name, p.source.name) for p in in_place_candidates(b.build()) if p.allowed]
    assert pairs == [(f"t{k + 1}", f"t{k}") for k in range(256 + 600 // 2)]
