"""More bodies as in `programs`: several elements, lanes or bytes at once, and views that move with a loop."""

from __future__ import annotations

from in_place.programs import over_matrix, over_vector


def over_square(middle: str) -> str:
    """`a` and `b` have n rows of n, `a` is filled by numbers of its own, and y is the first columns of `b`."""
    nest = "for i in range(n):\n    for j in range(n):\n"
    before = f"a = tl.alloc(tl.i32[n, n])\nb = tl.alloc(tl.i32[n, n])\n{nest}        a[i, j] = tl.i32(7 * i + j)\n"
    return before + middle + "for i in range(n):\n    for j in range(m):\n        y[i, j] = b[i, j % n]\n"


def over_lanes(middle: str) -> str:
    """`a` and `b` have n times eight elements, and y is what stands first in each eight of `b`."""
    before = "a = tl.alloc(tl.i32[8 * n])\nb = tl.alloc(tl.i32[8 * n])\nfor i in range(8 * n):\n    a[i] = tl.i32(i)\n"
    return f"{before}for i in range(n):\n{middle}for i in range(n):\n    y[i, 0] = b[8 * i] + 100 * b[8 * i + 4]\n"


_ROWS = """
for i in range(n):
    source = tl.view(a, tl.i32[m], byte_offset={row} * m * 4)
    destination = tl.view(b, tl.i32[m], byte_offset=i * m * 4)
    for j in range(m):
        destination[j] = source[j] * 2
"""
_BYTES = """
bytes_a = tl.view(a, tl.u8[4 * n])
bytes_b = tl.view(b, tl.u8[4 * n])
for i in range(n):
    for k in range(4):
        bytes_b[4 * i + k] = bytes_a[4 * i + {byte}]
"""
_MIRRORED = """
for i in range({rows}):
    for j in range(i + 1):
        b[i, j] = a[i, j] + 1
    for j in range(i + 1, n):
        b[i, j] = a[j, i]
"""

MORE_RIGHT: dict[str, str] = {
    "neighbours swapped by way of lets": over_vector(
        """
        for i in range(n // 2):
            even = a[2 * i]
            odd = a[2 * i + 1]
            b[2 * i] = odd
            b[2 * i + 1] = even
        """,
        "i < n // 2 * 2",
    ),
    "sums and differences": over_lanes("""
    for k in range(4):
        u = a[8 * i + k]
        v = a[8 * i + k + 4]
        b[8 * i + k] = u + v
        b[8 * i + k + 4] = u - v
"""),
    "the last of the lanes in all": over_lanes("""
    for k in range(2):
        four = tl.ramp(8 * i + 4 * k, 1, 4)
        b[four] = a[four] + tl.broadcast(a[8 * i + 4 * k + 3], 4)
"""),
    "lanes the other way round": over_lanes("""
    b[tl.ramp(8 * i, 1, 8)] = a[tl.ramp(8 * i + 7, -1, 8)]
"""),
    "bytes": over_vector(_BYTES.format(byte="k")),
    "rows by views": over_matrix(_ROWS.format(row="i")),
    "rows by way of a row": over_matrix("""
        for i in range(n):
            row = tl.alloc(tl.i32[m])
            for j in range(m):
                row[j] = a[i, j]
            for j in range(m):
                b[i, j] = row[m - 1 - j]
        """),
    "mirrored from what is still to come": over_square(_MIRRORED.format(rows="n")),
}

MORE_WRONG: dict[str, str] = {
    "the first of the next lanes": over_lanes("""
    for k in range(2):
        four = tl.ramp(8 * i + 4 * k, 1, 4)
        b[four] = a[four] + tl.broadcast(a[max(8 * i + 4 * k - 1, 0)], 4)
"""),
    "halves swapped by two stores": over_lanes("""
    b[tl.ramp(8 * i, 1, 4)] = a[tl.ramp(8 * i + 4, 1, 4)]
    b[tl.ramp(8 * i + 4, 1, 4)] = a[tl.ramp(8 * i, 1, 4)]
"""),
    "bytes the other way round": over_vector(_BYTES.format(byte="3 - k")),
    "rows by views, the last first": over_matrix(_ROWS.format(row="(n - 1 - i)")),
    "mirrored from what has gone": over_square(_MIRRORED.format(rows="n - 1, -1, -1")),
}
