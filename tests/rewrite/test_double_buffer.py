"""DoubleBuffer, before and after: the next iteration's data is loaded before this one's work."""

import pytest
from rewrite.before_after import BeforeAfter, kernel

import tirlite as tl
from tirlite.rewrite import DoubleBuffer

PASS = BeforeAfter((DoubleBuffer(),))


def test_two_copies_in_turn_and_the_first_load_before_the_loop() -> None:
    PASS.expect(
        """
        row = tl.alloc(tl.f32[m])
        with tl.attr(row, "double_buffer"):
            for i in range(n):
                for j in range(m):
                    row[j] = x[i, j]
                for j in range(m):
                    y[i, j] = row[m - 1 - j]
        """,
        """
        row = tl.alloc(tl.f32[2, m])
        if 0 < n:
            for j in range(m):
                row[0, j] = x[0, j]
        for i in range(n):
            if i + 1 < n:
                for j in range(m):
                    row[(i + 1) % 2, j] = x[i + 1, j]
            for j in range(m):
                y[i, j] = row[i % 2, m - 1 - j]
        """,
    )


def test_steps_and_values_of_the_fill_that_the_work_needs() -> None:
    PASS.expect(
        """
        row = tl.alloc(tl.f32[m])
        with tl.attr(row, "double_buffer"):
            for i in range(1, n, 2):
                scale = tl.f32(i)
                for j in range(m):
                    row[j] = scale * x[i, j]
                y[i, 0] = row[0] / scale
        """,
        """
        row = tl.alloc(tl.f32[2, m])
        if 1 < n:
            first = tl.f32(tl.i64(1))
            for j in range(m):
                row[0, j] = first * x[1, j]
        for i in range(1, n, 2):
            scale = tl.f32(i)
            if i + 2 < n:
                ahead = tl.f32(i + 2)
                for j in range(m):
                    row[((i - 1) // 2 + 1) % 2, j] = ahead * x[i + 2, j]
            y[i, 0] = row[(i - 1) // 2 % 2, 0] / scale
        """,
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for i in range(n):\n    y[i, 0] = row[0]", "nothing in the loop fills it"),
        ("for i in tl.parallel(n):\n    row[i] = x[i, 0]\n    y[i, 0] = row[i]", "not in one serial loop"),
        ("row[0] = 1\nfor i in range(n):\n    row[0] = x[i, 0]\n    y[i, 0] = row[0]", "not in one serial loop"),
        ("for i in range(n):\n    row[0] = y[i, 0]\n    y[i, 0] = row[0]", "`y` is touched by the fill"),
        ("for i in range(n):\n    row[i] = x[i, 0]\n    y[i, 0] = row[0]", "in a later iteration"),
        ("for i in range(n):\n    row[0] = x[i, 0]\n    assert row[0] < 1\n    y[i, 0] = row[0]", "cannot be moved"),
    ],
)
def test_what_cannot_be_filled_ahead_is_an_error(body: str, reason: str) -> None:
    text = 'row = tl.alloc(tl.f32[n])\nwith tl.attr(row, "double_buffer"):\n' + "\n".join(
        f"    {line}" for line in body.splitlines()
    )
    with pytest.raises(tl.KernelError, match="cannot be filled one iteration ahead") as caught:
        DoubleBuffer()(kernel(text))
    assert reason in str(caught.value)
