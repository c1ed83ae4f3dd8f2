"""Bodies in which a buffer `b` is born where a buffer `a` dies: safe in place, and not."""

from __future__ import annotations

from textwrap import dedent

from parsed import parsed

from tirlite.ir import PrimFunc
from tirlite.rewrite import Normalize

_HEADER = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.i32[n, m], index: tl.i64[n], y: tl.i32[n, m], z: tl.i32[n, m]):
"""


def kernel(body: str, header: str = _HEADER) -> PrimFunc:
    """The kernel with this body, in normal form. `index` holds numbers below n, and y and z are written."""
    return Normalize()(parsed(header, body))


def over_matrix(middle: str, condition: str = "i >= 0") -> str:
    """`a` is filled from x, `middle` makes `b` from it where `condition` holds, and y is a copy of `b` there."""
    nest = "for i in range(n):\n    for j in range(m):\n"
    before = f"a = tl.alloc(tl.i32[n, m])\nb = tl.alloc(tl.i32[n, m])\n{nest}        a[i, j] = x[i, j]\n"
    return before + dedent(middle).strip("\n") + f"\n{nest}        if {condition}:\n            y[i, j] = b[i, j]\n"


def over_vector(middle: str, condition: str = "i >= 0") -> str:
    """The same with the first columns of x and y."""
    before = "a = tl.alloc(tl.i32[n])\nb = tl.alloc(tl.i32[n])\nfor i in range(n):\n    a[i] = x[i, 0]\n"
    after = f"\nfor i in range(n):\n    if {condition}:\n        y[i, 0] = b[i]\n"
    return before + dedent(middle).strip("\n") + after


RIGHT: dict[str, str] = {
    "one loop": over_vector("""
        for i in range(n):
            b[i] = a[i] * 2
        """),
    "two loops": over_matrix("""
        for i in range(n):
            for j in range(m):
                b[i, j] = a[i, j] + 1
        """),
    "the loops the other way round": over_matrix("""
        for j in range(m):
            for i in range(n):
                b[i, j] = a[i, j] + 1
        """),
    "a parallel loop": over_matrix("""
        for i in tl.parallel(n):
            for j in tl.vectorized(m):
                b[i, j] = a[i, j] + 1
        """),
    "a let between read and write": over_vector("""
        for i in range(n):
            t = a[i] + x[i, 0]
            b[i] = t * t
        """),
    "an index in a let": over_vector("""
        for i in range(n):
            k = n - 1 - i
            b[k] = a[k] - 1
        """),
    "a guarded store": over_vector("""
        for i in range(n):
            b[i] = a[i]
            if x[i, 0] > 0:
                b[i] = b[i] * 3
        """),
    "a branch for each sign": over_vector("""
        for i in range(n):
            if a[i] > 0:
                b[i] = a[i] * 2
            else:
                b[i] = -a[i]
        """),
    "both sides of a select": over_vector("""
        for i in range(n):
            b[i] = tl.select(a[i] > 0, a[i], -a[i])
        """),
    "tiles cut off by a guard": over_matrix("""
        for i in range(n):
            for jo in range((m + 3) // 4):
                for ji in range(4):
                    if jo * 4 + ji < m:
                        b[i, jo * 4 + ji] = a[i, jo * 4 + ji] + 5
        """),
    "tiles cut off by a minimum": over_matrix("""
        for jo in range(0, m, 4):
            for i in range(n):
                for j in range(jo, min(jo + 4, m)):
                    b[i, j] = a[i, j] + 5
        """),
    "rows side by side in flat views": over_matrix("""
        flat_a = tl.view(a, tl.i32[n * m])
        flat_b = tl.view(b, tl.i32[n * m])
        for i in range(n):
            for j in range(m):
                flat_b[i * m + j] = flat_a[i * m + j] + 7
        """),
    "one flat, one in rows": over_matrix("""
        flat = tl.view(a, tl.i32[n * m])
        for j in range(m):
            for i in range(n):
                b[i, j] = flat[i * m + j] + 7
        """),
    "a fused loop, taken apart": over_matrix("""
        for k in range(n * m):
            b[k // m, k % m] = a[k // m, k % m] * 2
        """),
    "a fused loop on the one side": over_matrix("""
        flat = tl.view(a, tl.i32[n * m])
        for k in tl.parallel(n * m):
            b[k // m, k % m] = flat[k] * 2
        """),
    "the sum of each two by two elements": """
        a = tl.alloc(tl.i32[n * 2, m * 2])
        b = tl.alloc(tl.i32[n, m])
        for i in range(n * 2):
            for j in range(m * 2):
                a[i, j] = x[i // 2, j // 2] + tl.i32(i)
        for i in range(n):
            for j in range(m):
                b[i, j] = a[i * 2, j * 2] + a[i * 2, j * 2 + 1] + a[i * 2 + 1, j * 2] + a[i * 2 + 1, j * 2 + 1]
        for i in range(n):
            for j in range(m):
                y[i, j] = b[i, j]
        """,
    "rows divided by their sums": over_matrix("""
        for i in tl.parallel(n):
            s = 0
            for j in range(m):
                s += a[i, j]
            for j in range(m):
                b[i, j] = a[i, j] * s
        """),
    "a triangle": over_matrix(
        """
        for i in range(n):
            for j in range(i, m):
                b[i, j] = -a[i, j]
        """,
        "i <= j",
    ),
    "two elements an iteration": over_vector("""
        for i in range(0, n, 2):
            b[i] = a[i] * 2
            if i + 1 < n:
                b[i + 1] = a[i + 1] * 3
        """),
    "from the last to the first": over_vector("""
        for i in range(n - 1, -1, -1):
            b[i] = a[i] * 2
        """),
    "reads that run ahead": over_vector("""
        for i in range(n):
            if i + 1 < n:
                b[i] = a[i + 1] - a[i]
            else:
                b[i] = a[i]
        """),
    "changed again once written": over_vector("""
        for i in range(n):
            b[i] = a[i]
            for k in range(m):
                b[i] = b[i] * 2 + x[i, k]
        """),
    "read by a second statement before": over_vector("""
        for i in range(n):
            z[i, 0] = a[i]
            b[i] = a[i] + 1
        """),
    "read by a bound before": over_vector("""
        for i in range(n):
            s = 0
            for k in range(tl.i64(a[i] % 4)):
                s += 1
            b[i] = s
        """),
    "at a place that is looked up, in a row of its own": """
        a = tl.alloc(tl.i32[n, m])
        b = tl.alloc(tl.i32[n, m])
        for i in range(n):
            for j in range(m):
                a[i, j] = x[i, j]
        for i in range(n):
            k = index[i] % m
            b[i, k] = a[i, k] + 1
        for i in range(n):
            y[i, 0] = b[i, index[i] % m]
        """,
    "four lanes at once": over_vector(
        """
        for i in range(n // 4):
            b[tl.ramp(i * 4, 1, 4)] = a[tl.ramp(i * 4, 1, 4)] * 2
        """,
        "i < n // 4 * 4",
    ),
    "row sums at the front of the matrix": """
        a = tl.alloc(tl.i32[n, m])
        b = tl.alloc(tl.i32[n])
        for i in range(n):
            for j in range(m):
                a[i, j] = x[i, j]
        for i in range(n):
            s = 0
            for j in range(m):
                s += a[i, j]
            b[i] = s
        for i in range(n):
            y[i, 0] = b[i]
        """,
    "to a narrower type, from the front": """
        a = tl.alloc(tl.i32[n])
        b = tl.alloc(tl.i16[n])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n):
            b[i] = tl.i16(a[i])
        for i in range(n):
            y[i, 0] = tl.i32(b[i])
        """,
    "to a wider type, from the back": """
        a = tl.alloc(tl.i32[n])
        b = tl.alloc(tl.i64[n])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n - 1, -1, -1):
            b[i] = tl.i64(a[i])
        for i in range(n):
            y[i, 0] = tl.i32(b[i])
        """,
    "a longer destination": """
        a = tl.alloc(tl.i32[n])
        b = tl.alloc(tl.i32[n + 3])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n):
            b[i] = a[i] + 1
        for i in range(n):
            y[i, 0] = b[i]
        """,
    "one element": """
        a = tl.alloc(tl.i32[2])
        b = tl.alloc(tl.i32[2])
        a[0] = x[0, 0]
        b[1] = a[0] + 1
        y[0, 0] = b[1]
        """,
    "inside a loop, anew in each iteration": """
        for i in range(n):
            a = tl.alloc(tl.i32[m])
            b = tl.alloc(tl.i32[m])
            for j in range(m):
                a[j] = x[i, j]
            for j in range(m):
                b[j] = a[j] * 3
            for j in range(m):
                y[i, j] = b[j]
        """,
    "inside one branch": """
        a = tl.alloc(tl.i32[m])
        b = tl.alloc(tl.i32[m])
        if x[0, 0] > 0:
            for j in range(m):
                a[j] = x[0, j]
            for j in range(m):
                b[j] = a[j] * 3
            for j in range(m):
                y[0, j] = b[j]
        """,
}

WRONG: dict[str, str] = {
    "a view of a view, both of which wrap around": """
        a = tl.alloc(tl.i32[32])
        b = tl.alloc(tl.i32[32])
        wide = tl.view(a, tl.i32[n * 4611686018427387904 * 4 + 16])
        four = tl.view(wide, tl.i32[4], byte_offset=n * 4611686018427387904 * 4 + 16)
        for i in range(32):
            a[i] = x[0, 0] + tl.i32(i)
        for i in range(4):
            b[i + 5] = four[i] * 3
        for i in range(4):
            y[0, 0] = y[0, 0] * 2 + b[i + 5]
        """,
    "rows of a view whose extent wraps around": """
        a = tl.alloc(tl.i32[32])
        b = tl.alloc(tl.i32[32])
        rows = tl.view(a, tl.i32[3, n * 4611686018427387904 * 4 + 4])
        for i in range(32):
            a[i] = x[0, 0] + tl.i32(i)
        for i in range(2):
            for j in range(4):
                b[i * 4 + j + 4] = rows[i, j] + 1
        for i in range(4, 12):
            y[0, 0] = y[0, 0] * 2 + b[i]
        """,
    "set to zero first": over_vector("""
        for i in range(n):
            b[i] = 0
            b[i] = a[i] * 2
        """),
    "an outer loop comes back": over_vector("""
        for t in range(2):
            for i in range(n):
                b[i] = a[i] * 2
        """),
    "an inner loop comes back": over_vector("""
        for i in range(n):
            for t in range(3):
                b[i] = a[i] * 2
        """),
    "a while loop comes back": over_vector("""
        t = 0
        while t < 2:
            for i in range(n):
                b[i] = a[i] * 2
            t += 1
        """),
    "reversed": over_vector("""
        for i in range(n):
            b[i] = a[n - 1 - i]
        """),
    "transposed": """
        a = tl.alloc(tl.i32[n, n])
        b = tl.alloc(tl.i32[n, n])
        for i in range(n):
            for j in range(n):
                a[i, j] = x[i, 0] * 10 + x[j, 0]
        for i in range(n):
            for j in range(n):
                b[i, j] = a[j, i]
        for i in range(n):
            y[i, 0] = b[i, 0] + 100 * b[n - 1, i]
        """,
    "reads behind": over_vector("""
        for i in range(n):
            b[i] = a[max(i - 1, 0)]
        """),
    "three points": over_vector("""
        for i in range(n):
            b[i] = a[max(i - 1, 0)] + a[i] + a[min(i + 1, n - 1)]
        """),
    "reads that run ahead of an unordered loop": over_vector("""
        for i in tl.parallel(n):
            b[i] = a[min(i + 1, n - 1)]
        """),
    "read again after the write": over_vector("""
        for i in range(n):
            b[i] = a[i] * 2
            z[i, 0] = a[i]
        """),
    "read by a condition after the write": over_vector("""
        for i in range(n):
            b[i] = 5
            if a[i] > 20:
                b[i] = 6
        """),
    "read by an index after the write": over_vector("""
        for i in range(n):
            b[i] = 5
            z[tl.i64(a[i]) % n, 0] = 1
        """),
    "read by a bound after the write": over_vector("""
        for i in range(n):
            b[i] = 5
            for k in range(tl.i64(a[i] % 4)):
                z[i, 0] = z[i, 0] + 1
        """),
    "read by the other statement's loop": over_vector("""
        for t in range(2):
            for i in range(n):
                z[i, 0] = a[i]
            for i in range(n):
                b[i] = t
        """),
    "tiles that overlap": over_vector("""
        for io in range((n + 3) // 4):
            for ii in range(6):
                if io * 4 + ii < n:
                    b[io * 4 + ii] = a[io * 4 + ii] + 1
        """),
    "each element twice": over_vector("""
        for i in range(n * 2):
            b[i // 2] = a[i // 2] + 1
        """),
    "around and around": over_vector("""
        for i in range(n + n):
            b[i % n] = a[i % n] + 1
        """),
    "one element for all": over_vector("""
        for i in range(n):
            b[i] = a[0] + a[i]
        """),
    "the first of each row": over_matrix("""
        for i in range(n):
            for j in range(m):
                b[i, j] = a[i, j] + a[i, 0]
        """),
    "prefix sums": over_vector("""
        for i in range(n):
            s = 0
            for k in range(i + 1):
                s += a[k]
            b[i] = s
        """),
    "a row by a matrix": over_matrix("""
        for i in range(n):
            for j in range(m):
                s = 0
                for k in range(m):
                    s += a[i, k] * x[0, j]
                b[i, j] = s
        """),
    "neighbours swapped": over_vector(
        """
        for i in range(n // 2):
            b[2 * i] = a[2 * i + 1]
            b[2 * i + 1] = a[2 * i]
        """,
        "i < n // 2 * 2",
    ),
    "written one further, by a view": over_vector(
        """
        late = tl.view(b, tl.i32[n - 1], byte_offset=4)
        for i in range(n - 1):
            late[i] = a[i]
        """,
        "i > 0",
    ),
    "read one behind, by views": over_vector(
        """
        late = tl.view(b, tl.i32[n - 1], byte_offset=4)
        early = tl.view(a, tl.i32[n - 1])
        for i in range(n - 1):
            late[i] = early[i]
        """,
        "i > 0",
    ),
    "rows of the wrong length": over_matrix("""
        flat = tl.view(a, tl.i32[n * m])
        for i in range(n):
            for j in range(m):
                b[i, j] = flat[j * n + i]
        """),
    "looked up": over_vector("""
        for i in range(n):
            b[i] = a[index[i]]
        """),
    "looked up, maybe twice": """
        a = tl.alloc(tl.i32[n])
        b = tl.alloc(tl.i32[n])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n):
            k = index[i]
            b[k] = a[k] + 1
        for i in range(n):
            y[i, 0] = b[index[i]]
        """,
    "lanes that overlap": over_vector(
        """
        for i in range(n - 3):
            b[tl.ramp(i, 1, 4)] = a[tl.ramp(i, 1, 4)] * 2
        """,
        "n > 3",
    ),
    "to a wider type, from the front": """
        a = tl.alloc(tl.i32[n])
        b = tl.alloc(tl.i64[n])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n):
            b[i] = tl.i64(a[i])
        for i in range(n):
            y[i, 0] = tl.i32(b[i])
        """,
    "to a narrower type, from the back": """
        a = tl.alloc(tl.i32[n])
        b = tl.alloc(tl.i16[n])
        for i in range(n):
            a[i] = x[i, 0]
        for i in range(n - 1, -1, -1):
            b[i] = tl.i16(a[i])
        for i in range(n):
            y[i, 0] = tl.i32(b[i])
        """,
    "row sums at the end of the matrix": """
        a = tl.alloc(tl.i32[n, m])
        b = tl.alloc(tl.i32[n, m])
        for i in range(n):
            for j in range(m):
                a[i, j] = x[i, j]
        for i in range(n):
            s = 0
            for j in range(m):
                s += a[i, j]
            b[n - 1 - i, m - 1] = s
        for i in range(n):
            y[i, 0] = b[i, m - 1]
        """,
    "the source written after the destination": over_vector("""
        for i in range(n):
            b[i] = x[i, 0]
            a[i] = x[i, 0] + 1
        """),
}
