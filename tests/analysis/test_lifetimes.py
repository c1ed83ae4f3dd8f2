"""Lifetimes: first touch to last, over the positions of the linear sequence."""

from __future__ import annotations

from textwrap import dedent

import pytest

import tirlite as tl


def live(body: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """The lifetimes in a kernel over x, y and n with this body, by name."""
    text = 'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n]):\n'
    lines = dedent(body).strip().splitlines()
    func = tl.parse(text + "\n".join("    " + line for line in lines))
    return {name: lifetime.live for name, lifetime in tl.analysis.lifetimes(func).items()}


def test_from_first_touch_to_last_and_not_from_the_allocation() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])  # 0
        y[0] = x[0]              # 1
        t[0] = x[1]              # 2
        y[1] = t[0]              # 3
        y[2] = x[2]              # 4
        """
    ) == {"t": ((2, 4),)}


def test_what_is_touched_in_a_loop_lives_as_long_as_the_loop() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])  # 0
        for i in range(n):       # 1
            y[i] = x[i]          # 2
            t[0] = x[i]          # 3
                                 # 4: end
        y[0] = t[0]              # 5
        """
    ) == {"t": ((1, 6),)}


def test_what_is_allocated_in_a_loop_lives_statement_by_statement() -> None:
    assert live(
        """
        for i in range(n):           # 0
            t = tl.alloc(tl.f32[4])  # 1
            u = tl.alloc(tl.f32[4])  # 2
            t[0] = x[i]              # 3
            u[0] = t[0]              # 4
            y[i] = u[0]              # 5
        """
    ) == {"t": ((3, 5),), "u": ((4, 6),)}


def test_born_and_dead_at_one_statement_overlap() -> None:
    times = live(
        """
        t = tl.alloc(tl.f32[4])
        u = tl.alloc(tl.f32[4])
        t[0] = x[0]
        u[0] = t[0]
        y[0] = u[0]
        """
    )
    assert times["t"][-1][1] > times["u"][0][0]


def test_branches_of_one_if_exclude_each_other() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])      # 0
        u = tl.alloc(tl.f32[4])      # 1
        if n > 4:                    # 2
            t[0] = x[0]              # 3
            y[0] = t[0]              # 4
        else:
            u[0] = x[0]              # 5
            y[0] = u[0]              # 6
        """
    ) == {"t": ((3, 5),), "u": ((5, 7),)}


def test_a_buffer_used_in_both_branches_alone_has_a_gap_between_them() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])      # 0
        if n > 4:                    # 1
            t[0] = x[0]              # 2
            y[0] = t[0]              # 3
            y[1] = x[1]              # 4
        else:
            t[1] = x[1]              # 5
            y[0] = t[1]              # 6
        """
    ) == {"t": ((2, 4), (5, 7))}


def test_a_value_carried_past_an_if_lives_through_it() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])      # 0
        if n > 4:                    # 1
            t[0] = x[0]              # 2
                                     # 3: end
        y[0] = t[0]                  # 4
        """
    ) == {"t": ((1, 5),)}


def test_an_if_inside_a_loop_does_not_shorten_what_the_loop_carries() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])      # 0
        for i in range(n):           # 1
            if i > 2:                # 2
                y[i] = t[0]          # 3
            else:
                t[0] = x[i]          # 4
        """
    ) == {"t": ((1, 7),)}


def test_an_address_handed_on_lasts_to_the_end_of_the_block() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])      # 0
        t[0] = x[0]                  # 1
        tl.call_extern("i32", "keep", tl.address_of(t[0]))  # 2
        y[0] = x[0]                  # 3
        """
    ) == {"t": ((1, 4),)}


@pytest.mark.parametrize("mask", ["r", "w", "rw"])
def test_nobody_has_an_address_that_was_not_yet_taken(mask: str) -> None:
    """What the callee may do does not say how long it keeps the address."""
    times = live(
        f"""
        t = tl.alloc(tl.f32[4])      # 0
        u = tl.alloc(tl.f32[4])      # 1
        y[0] = x[0]                  # 2
        for i in range(n):           # 3
            if i > 1:                # 4
                tl.call_extern("i32", "keep", tl.access_ptr(t, 0, 4, "{mask}"))  # 5
                tl.call_extern("i32", "keep", tl.address_of(u[0]))               # 6
        y[0] = x[0]                  # 9
        """
    )
    assert times == {"t": ((3, 10),), "u": ((3, 10),)}


def test_a_volatile_buffer_lives_all_along() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4], volatile=True)  # 0
        y[0] = x[0]                             # 1
        t[0] = x[0]                             # 2
        y[0] = t[0]                             # 3
        y[1] = x[0]                             # 4
        """
    ) == {"t": ((0, 5),)}


def test_views_are_uses_of_their_root() -> None:
    assert live(
        """
        t = tl.alloc(tl.f32[4])      # 0
        v = tl.view(t, tl.f32[2])    # 1
        t[0] = x[0]                  # 2
        y[0] = x[1]                  # 3
        y[1] = v[0]                  # 4
        """
    ) == {"t": ((2, 5),)}


def test_what_threads_may_see_lives_as_long_as_they_do() -> None:
    times = live(
        """
        for b in tl.thread("blockIdx.x", n):
            t = tl.alloc(tl.f32[4], scope="shared")
            u = tl.alloc(tl.f32[4], scope="shared")
            t[0] = x[b]
            y[b] = t[0]
            u[0] = x[b]
            y[b] = u[0]
        """
    )
    assert times["t"] == times["u"]


def test_never_touched_never_lives() -> None:
    assert live("t = tl.alloc(tl.f32[4])") == {"t": ()}


def test_what_an_extent_reads_is_used_where_the_buffer_is_declared() -> None:
    assert live(
        """
        k = tl.alloc(tl.i64[2])     # 0
        k[0] = 3                    # 1
        y[0] = x[0]                 # 2
        t = tl.alloc(tl.f32[k[0]])  # 3
        t[0] = x[0]                 # 4
        """
    ) == {"k": ((1, 4),), "t": ((4, 5),)}
