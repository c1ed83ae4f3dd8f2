"""The linear access sequence: which allocations are touched where, one line an entry."""

from __future__ import annotations

from textwrap import dedent

import tirlite as tl
from tirlite.ir import Builder, SeqStmt, Store, f32


def sequence(body: str) -> str:
    """The printed sequence of a kernel over x, y and n with this body."""
    text = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n]):\n'
    lines = dedent(body).strip().splitlines()
    printed = str(tl.analysis.linear_sequence(tl.parse(text + "\n".join("    " + line for line in lines))))
    return dedent(printed)


def expect(text: str) -> str:
    return dedent(text).strip("\n")


def test_a_touch_is_recorded_on_the_loop_beside_the_allocation() -> None:
    assert sequence(
        """
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            t[i] = x[i]
        for i in range(n):
            y[i] = t[i]
        """
    ) == expect(
        """
          0  +0 allocate t: alloc t
          1  +1 for i
          3  -1 end for i: write t
          4  +1 for i
          6  -1 end for i: read t
        """
    )


def test_inside_the_loop_of_its_allocation_a_touch_is_recorded_on_the_statement() -> None:
    assert sequence(
        """
        for i in range(n):
            t = tl.alloc(tl.f32[4])
            t[0] = x[i]
            y[i] = t[0]
        """
    ) == expect(
        """
          0  +4 for i
          1  +0   allocate t: alloc t
          2  +0   store t: write t
          3  +0   store y: read t
          4  -4 end for i
        """
    )


def test_parameters_are_not_tracked_and_a_statement_that_touches_nothing_is_no_entry() -> None:
    assert sequence("y[0] = x[0]") == ""


def test_a_view_stands_for_the_allocation_at_its_root() -> None:
    assert sequence(
        """
        t = tl.alloc(tl.f32[8])
        v = tl.view(t, tl.f32[4], byte_offset=16)
        w = tl.view(v, tl.f32[2], byte_offset=8)
        w[0] = x[0]
        """
    ) == expect(
        """
          0  +0 allocate t: alloc t
          3  +0 store w: write t
        """
    )


def test_bounds_and_conditions_are_recorded_on_the_end_of_their_composite() -> None:
    assert sequence(
        """
        k = tl.alloc(tl.i64[4])
        k[0] = 3
        for i in range(k[0]):
            if k[1] > i:
                y[i] = x[i]
        while k[2] < 5:
            k[2] = k[2] + 1
        """
    ) == expect(
        """
          0  +0 allocate k: alloc k
          1  +0 store k: write k
          2  +3 for i
          3  +1   if
          5  -1   end if
          6  -3 end for i: read k
          7  +1 while
          9  -1 end while: read k, write k
        """
    )


def test_only_the_outermost_thread_bound_loop_is_a_scope() -> None:
    assert sequence(
        """
        for b in tl.thread("blockIdx.x", n):
            t = tl.alloc(tl.f32[4], scope="shared")
            for i in tl.thread("threadIdx.x", 4):
                t[i] = x[b]
        """
    ) == expect(
        """
          0  +3 for b (tl.thread)
          1  +0   allocate t: alloc t
          2  +0   store t: write t
          3  -3 end for b (tl.thread)
        """
    )


def test_an_address_taken_is_an_opaque_use() -> None:
    assert "opaque t" in sequence(
        """
        t = tl.alloc(tl.f32[4])
        t[0] = x[0]
        tl.call_extern("i32", "consume", tl.address_of(t[0]))
        """
    )
    assert "opaque t" in sequence(
        """
        t = tl.alloc(tl.f32[4])
        t[0] = x[0]
        tl.call_extern("i32", "consume", tl.access_ptr(t, 0, 4, "r"))
        """
    )


def test_a_statement_object_that_stands_twice_is_two_entries() -> None:
    b = Builder("twice")
    y = b.param("y", f32[4])
    t = b.alloc("t", f32[4])
    b.store(t, 0, 1.0)
    b.store(y, 0, t[0])
    func = b.build()
    *declared, write, read = func.body.stmts
    assert isinstance(write, Store)
    doubled = func.replaced(body=SeqStmt((*declared, write, read, write, read)))
    entries = list(tl.analysis.linear_sequence(doubled))
    assert [entry.position for entry in entries if entry.stmt is write] == [1, 3]


def test_an_extern_scope_is_a_composite() -> None:
    assert sequence(
        """
        t = tl.alloc(tl.f32[4])
        with tl.attr("extern_scope"):
            t[0] = x[0]
            y[0] = t[0]
        """
    ) == expect(
        """
          0  +0 allocate t: alloc t
          1  +1 attr
          4  -1 end attr: write t, read t
        """
    )


def test_the_condition_of_a_while_is_read_inside_of_it() -> None:
    """It is evaluated before each iteration, so what it reads is live throughout."""
    assert sequence(
        """
        t = tl.alloc(tl.f32[4])
        t[0] = x[0]
        while t[0] < 4.0:
            u = tl.alloc(tl.f32[4])
            u[0] = t[0]
            t[0] = u[0] + 1.0
        """
    ) == expect(
        """
          0  +0 allocate t: alloc t
          1  +0 store t: write t
          2  +4 while
          3  +0   allocate u: alloc u
          4  +0   store u: write u
          5  +0   store t: read u
          6  -4 end while: read t, write t
        """
    )


def test_a_buffer_allocated_two_loops_out_is_touched_there_alone() -> None:
    assert sequence(
        """
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            for j in range(n):
                t[j] = x[i]
            y[i] = t[0]
        """
    ) == expect(
        """
          0  +0 allocate t: alloc t
          1  +3 for i
          2  +1   for j
          4  -1   end for j
          6  -3 end for i: write t, read t
        """
    )


def test_a_touch_inside_a_parallel_loop_has_a_representation() -> None:
    found = tl.analysis.linear_sequence(
        tl.parse(
            "n = tl.dim('n')\n\n@tl.kernel\ndef f(y: tl.f32[n]):\n    for i in tl.parallel(n):\n        y[i] = 1\n"
        )
    )
    (touch,) = found.params[0].touches
    assert touch.region.attach is touch.region
    assert "region=Region([0, 2), depth 1), position=1" in repr(touch)
