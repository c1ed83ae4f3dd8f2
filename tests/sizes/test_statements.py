"""What a user expects to be proved under the facts of the dims, and what nobody may prove, against brute force."""

from __future__ import annotations

import re
from itertools import product

from every import every

from tirlite.sizes import Dim, Proof, ceildiv, maximum, minimum, prove_le, round_up

# Each dim with values that try its facts.
DIMS = {
    "n": (Dim("n"), (1, 2, 3, 4, 5, 7, 8, 9, 16, 17)),
    "m": (Dim("m"), (1, 2, 3, 4, 7, 8, 9, 16)),
    "p": (Dim("p"), (1, 2, 3, 5, 8)),
    "z": (Dim("z", min=0), (0, 1, 2, 3, 7, 8, 9)),
    "b": (Dim("b", max=1024), (1, 2, 5, 63, 64, 65, 1000, 1024)),
    "k": (Dim("k", multiple_of=8), (8, 16, 24, 40)),
    "q": (Dim("q", min=2), (2, 3, 4, 7, 8, 9)),
    "w": (Dim("w", min=4, max=64, multiple_of=4), (4, 8, 12, 32, 60, 64)),
}
OVER_SIZES = {"max": maximum, "min": minimum, "ceildiv": ceildiv, "round_up": round_up}
OVER_NUMBERS = {"ceildiv": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b}

TRUE = """
n <= ceildiv(n, 8) * 8
ceildiv(n, 8) * 8 <= n + 7
n // 8 * 8 <= n
n - 7 <= n // 8 * 8
n % 4 <= 3
n % 4 <= n
n // 2 + (n + 1) // 2 <= n
n <= n // 2 + (n + 1) // 2
max(n, m) <= n + m - 1
2 * min(n, m) <= n + m
n + m <= 2 * max(n, m)
n <= n * m
n + m <= n * m + 1
n * m <= max(n, m) * max(n, m)
min(n, m) * min(n, m) <= n * m
min(n, m) + max(n, m) <= n + m
n + m <= min(n, m) + max(n, m)
min(n, m) * max(n, m) <= n * m
n * m <= min(n, m) * max(n, m)
ceildiv(n, 8) <= n
ceildiv(n, 8) <= n // 8 + 1
n // 8 <= n // 4
ceildiv(n, 8) <= ceildiv(n, 4)
n // 3 <= n // 2
n // 8 <= (n + m) // 8
n // 8 <= (n + 1) // 8
n // 8 + m // 8 <= (n + m) // 8
(n + m) // 8 <= n // 8 + m // 8 + 1
ceildiv(n + m, 8) <= ceildiv(n, 8) + ceildiv(m, 8)
round_up(n, 8) <= round_up(n + 1, 8)
round_up(n, 8) <= round_up(n + m, 8)
round_up(n, 8) <= round_up(n, 16)
round_up(n, 4) <= round_up(n, 8)
round_up(n + m, 8) <= round_up(n, 8) + round_up(m, 8)
n * m <= round_up(n, 8) * round_up(m, 8)
n * m <= round_up(n, 8) * m
n * m <= round_up(n * m, 64)
ceildiv(n, 8) * ceildiv(m, 8) * 64 <= (n + 7) * (m + 7)
n * m <= ceildiv(n, 8) * ceildiv(m, 8) * 64
4 * n <= round_up(4 * n, 64)
round_up(n, 8) - n <= 7
n // m * m <= n
n // m <= n
n % m <= m - 1
n % m + n // m * m <= n
n <= n // m * m + m - 1
n <= ceildiv(n, m) * m
ceildiv(n, m) * m <= n + m - 1
ceildiv(n, m) <= n
b <= 1024
b * m <= 1024 * m
b // 8 <= 128
ceildiv(b, 8) <= 128
round_up(b, 64) <= 1024
b * b <= 1024 * b
min(n, 1024) <= 1024
min(n, m, 7) <= 7
min(n - 8 * (n // 8), 8) <= 7
8 * (n // 8) + min(8, n - 8 * (n // 8)) <= n
k // 8 * 8 <= k
k <= k // 8 * 8
round_up(k, 8) <= k
k % 8 <= 0
8 <= k
k // 16 * 16 <= k
n <= n * n
n * m * p <= n * m * p * p
n * m + n * p <= n * m * p + n
2 * n <= n * q
n + q <= n * q + 1
n + 1 <= n * q
q <= q * q - 2
z <= z * z
z * n <= z * n * m
z // 2 <= z
max(z, 1) <= z + 1
max(n, m) * p <= max(n * p, m * p)
max(n * p, m * p) <= max(n, m) * p
max(n - m, 0) <= n
max(n - 5, 0) <= n
max(n - 5, 0) + 5 <= n + 4
max(n, 8) <= n + 7
n <= max(n, 8) * m
max(n, m, p) <= n + m + p - 2
max(n + m, p) <= max(n, p) + m
max(n, m) + p <= max(n + p, m + p)
max(n // 2, m // 2) <= max(n, m) // 2
max(n, m) // 2 <= max(n // 2, m // 2)
max(n, m) // 2 <= n // 2 + m // 2 + 1
min(n // 2, m) <= n // 2
(n - 1) // 8 + 1 <= ceildiv(n, 8)
ceildiv(n, 8) <= (n - 1) // 8 + 1
(n + 1) // 2 <= n
(n - 1) // 2 <= n - 1
n - n // 2 <= (n + 1) // 2
(n - 2) // 2 + 1 <= n // 2
(n // 4) // 2 <= n // 8
n // 8 <= (n // 4) // 2
n // 4 * 4 + n % 4 <= n
n <= n // 4 * 4 + n % 4
(n % 8) % 4 <= 3
(n * m) // m <= n
n <= (n * m) // m
(n * m) % m <= 0
(n * m + p) // m <= n + p // m
w * n <= 64 * n
w // 4 <= 16
4 * n <= w * n
round_up(w, 64) <= 64
(w - 3) * n <= w * n
n * (m - 1) + m <= n * m + m
(n - 1) * (m - 1) <= n * m - 1
(n - 1) * m + m <= n * m
(n - 1) * m + (m - 1) <= n * m - 1
((n - 1) * m + (m - 1)) * p + (p - 1) <= n * m * p - 1
2 * n * m <= n * n + m * m
(n - m) * (n - m) * (0 - 1) <= 0
n * (n + 1) // 2 <= n * n
n * (n - 1) // 2 <= n * n
n // 8 * m <= n * m // 8
n // 4 + n // 4 <= n // 2
n // 2 // 2 * 4 <= n
ceildiv(n, 4) * 4 <= ceildiv(n, 8) * 8
ceildiv(ceildiv(n, 4), 2) <= ceildiv(n, 8)
ceildiv(n, 8) <= ceildiv(ceildiv(n, 4), 2)
max(n, m) * max(n, m) <= n * n + m * m
ceildiv(n, q) <= n
ceildiv(n, q) <= ceildiv(n, 2)
n // q <= n // 2
n // q <= n - 1
n // (m * p) <= n // m
n // (m + 1) <= n // m
round_up(n, 8) * m <= round_up(n, 8) * m * p
max(n, m) <= max(n + 1, m + 1)
min(n, m) <= min(n + 1, m)
max(4 * n, 64) <= 4 * n + 60
max(min(n, 8), min(m, 8)) <= 8
min(max(n, m), p) <= p
max(n, m) - min(n, m) <= n + m - 2
"""
STATEMENTS = TRUE.strip().splitlines()


def proved(small: str, large: str) -> Proof:
    names = {**OVER_SIZES, **{name: dim for name, (dim, _) in DIMS.items()}}
    return prove_le(eval(small, names), eval(large, names))


def holds(small: str, large: str) -> bool:
    """Whether `small <= large` at all the values of the dims in it."""
    names = [name for name in DIMS if re.search(rf"\b{name}\b", f"{small} {large}")]
    code = compile(f"({small}) <= ({large})", "<statement>", "eval")
    return all(
        eval(code, {**OVER_NUMBERS, **dict(zip(names, values, strict=True))})
        for values in product(*(DIMS[name][1] for name in names))
    )


@every("statement", STATEMENTS)
def test_what_is_true_is_proved(statement: str) -> None:
    small, large = statement.split(" <= ")
    assert holds(small, large)
    assert proved(small, large) is Proof.YES


@every("statement", STATEMENTS)
def test_what_is_false_is_never_proved(statement: str) -> None:
    """Each statement with less room, and the other way around: often false, and then not to be proved."""
    small, large = statement.split(" <= ")
    for less, more in ((small, f"{large} - 1"), (large, f"{small} - 1"), (large, small), (small, f"({large}) // 2")):
        if not holds(less, more):
            assert proved(less, more) is not Proof.YES


def test_the_table_tries_both() -> None:
    pairs = [statement.split(" <= ") for statement in STATEMENTS]
    assert len(pairs) > 130
    assert sum(not holds(small, f"{large} - 1") for small, large in pairs) > 100
