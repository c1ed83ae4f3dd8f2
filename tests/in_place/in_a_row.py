"""Bodies as in `programs` in which `a` dies one or more statements after the one in which `b` is born."""

from __future__ import annotations

from in_place.programs import over_matrix, over_vector


def over_padded(middle: str) -> str:
    """As `over_vector`, with two elements more, so that the first and the last are never the same."""
    return f"""
a = tl.alloc(tl.i32[n + 2])
b = tl.alloc(tl.i32[n + 2])
for i in range(n + 2):
    a[i] = tl.i32(i * i) + 3
{middle}for i in range(n):
    y[i, 0] = b[i] + 100 * b[i + 1] + 10000 * b[i + 2]
"""


_TILES = """
        for i in range(n // 4):
            for k in range(4):
                b[4 * i + k] = a[4 * i + k] * 2
        for i in range({first}, n):
            b[i] = a[i] * 2
"""

ROWS_RIGHT: dict[str, str] = {
    "the first, those between and the last": over_padded("""
b[0] = a[0]
for i in range(1, n + 1):
    b[i] = a[i] + a[i + 1]
b[n + 1] = a[n + 1]
"""),
    "whole tiles and what is left": over_vector(_TILES.format(first="n // 4 * 4")),
    "one store for each element": """
        a = tl.alloc(tl.i32[3])
        b = tl.alloc(tl.i32[3])
        for i in range(3):
            a[i] = tl.i32(i) + x[0, 0]
        b[0] = a[0] + a[2]
        b[1] = a[1] * a[2]
        b[2] = a[2]
        y[0, 0] = b[0] + 10 * b[1] + 100 * b[2]
        """,
    "even and odd": over_padded("""
for i in range(n // 2):
    b[2 * i] = a[2 * i] - a[2 * i + 1]
for i in range(n // 2):
    b[2 * i + 1] = a[2 * i + 1]
for i in range(n // 2 * 2, n + 2):
    b[i] = a[i]
"""),
    "the left column and the others": over_matrix("""
        for i in range(n):
            b[i, 0] = a[i, 0] + 1
        for i in range(n):
            for j in range(1, m):
                b[i, j] = a[i, j] * 2
        """),
    "something else in between": over_padded("""
for i in range(n):
    b[i] = a[i]
z[0, 0] = x[0, 0]
for i in tl.parallel(n, n + 2):
    b[i] = a[i] + 1
"""),
    "read before, in a loop of its own": over_padded("""
b[n + 1] = 7
for i in range(n + 1):
    z[0, 0] = z[0, 0] + a[i]
for i in range(n + 1):
    b[i] = a[i] + z[0, 0]
"""),
    "a longer part first": over_padded("""
for i in range(n):
    b[i + 2] = a[i + 2] + a[1]
b[1] = a[1]
b[0] = a[0]
"""),
    "one statement behind the other in each branch": """
        a = tl.alloc(tl.i32[4])
        b = tl.alloc(tl.i32[4])
        if x[0, 0] > 10:
            for i in range(4):
                a[i] = tl.i32(i) + x[0, 0]
            for i in range(2):
                b[i] = a[i] + a[i + 2]
            for i in range(2, 4):
                b[i] = a[i]
            y[0, 0] = b[0] * b[1] + b[2] * b[3]
        """,
    "in each iteration": """
        for i in range(n):
            a = tl.alloc(tl.i32[m + 1])
            b = tl.alloc(tl.i32[m + 1])
            for j in range(m + 1):
                a[j] = tl.i32(i * j)
            b[0] = a[0] + a[m]
            for j in range(1, m + 1):
                b[j] = a[j] * 3
            for j in range(m):
                y[i, j] = b[j] + b[j + 1]
        """,
    "the wider ones from the back": """
        a = tl.alloc(tl.i32[4])
        b = tl.alloc(tl.i64[4])
        for i in range(4):
            a[i] = x[0, 0] + tl.i32(i)
        b[3] = tl.i64(a[3])
        b[2] = tl.i64(a[2])
        b[1] = tl.i64(a[1])
        b[0] = tl.i64(a[0])
        y[0, 0] = tl.i32(b[0] + 10 * b[1] + 100 * b[2] + 1000 * b[3])
        """,
}

ROWS_WRONG: dict[str, str] = {
    "all of it read once more": over_vector("""
        for i in range(n):
            b[i] = a[i] * 2
        for i in range(n):
            z[i, 0] = a[i]
        """),
    "read once more from the back": over_vector("""
        for i in range(n):
            b[i] = a[i] * 2
        for i in range(n):
            z[i, 0] = a[n - 1 - i]
        """),
    # They are the same element where n is 1.
    "the first, those between and the last": over_vector("""
        b[0] = a[0] * 2
        for i in range(1, n - 1):
            b[i] = a[i] + a[i + 1]
        b[n - 1] = a[n - 1] * 2
        """),
    "what is left begins too early": over_vector(_TILES.format(first="max(n // 4 * 4 - 1, 0)")),
    "the neighbour that has gone": over_padded("""
b[0] = a[0] * 2
for i in range(1, n + 2):
    b[i] = a[i] + a[i - 1]
"""),
    "an odd one needs its even one": over_padded("""
for i in range(n // 2):
    b[2 * i] = a[2 * i] - a[2 * i + 1]
for i in range(n // 2):
    b[2 * i + 1] = a[2 * i + 1] + a[2 * i]
for i in range(n // 2 * 2, n + 2):
    b[i] = a[i]
"""),
    "halves swapped": """
        a = tl.alloc(tl.i32[2 * n])
        b = tl.alloc(tl.i32[2 * n])
        for i in range(2 * n):
            a[i] = tl.i32(i)
        for i in range(n):
            b[i + n] = a[i]
        for i in range(n):
            b[i] = a[i + n]
        for i in range(n):
            y[i, 0] = b[i] + 100 * b[i + n]
        """,
    "a condition of a later statement": over_padded("""
b[0] = 5
if a[0] < 5:
    z[0, 0] = 1
for i in range(1, n + 2):
    b[i] = a[i]
"""),
    "a bound of a later statement": over_padded("""
b[1] = 5
for i in range(tl.i64(a[1] % 4)):
    z[0, 0] = z[0, 0] + 1
for i in range(2, n + 2):
    b[i] = a[i]
b[0] = a[0]
"""),
    "an index of a later statement": over_padded("""
b[0] = 5
y[n - 1, (tl.i64(a[0]) - 3) % m] = 1
for i in range(n + 2):
    b[i] = 7
z[0, 0] = y[n - 1, 0]
"""),
    "rows, then the column": over_matrix("""
        for j in range(m):
            b[0, j] = a[0, j] + 1
        for i in range(n):
            for j in range(m):
                b[i, j] = a[i, j] * 2 + a[i, 0]
        """),
    "the wider ones from the front": """
        a = tl.alloc(tl.i32[4])
        b = tl.alloc(tl.i64[4])
        for i in range(4):
            a[i] = x[0, 0] + tl.i32(i)
        b[0] = tl.i64(a[0])
        b[1] = tl.i64(a[1])
        b[2] = tl.i64(a[2])
        b[3] = tl.i64(a[3])
        y[0, 0] = tl.i32(b[0] + 10 * b[1] + 100 * b[2] + 1000 * b[3])
        """,
    "the source written after the destination": over_padded("""
b[0] = a[0] + 1
a[0] = 9
for i in range(1, n + 2):
    b[i] = a[i]
"""),
    "the loop around comes back": over_padded("""
for t in range(2):
    b[0] = a[0] + 1
    for i in range(1, n + 2):
        b[i] = a[i] + 1
"""),
}
