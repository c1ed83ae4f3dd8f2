"""A seed in, a program of stages out, as image pipelines have them: loops that each fill a temporary from earlier ones.

Unlike `generator`, whose loops are seldom about the same things, this makes neighbours that may be fused.
"""

from __future__ import annotations

from random import Random

import tirlite as tl

HEADER = """
n = tl.dim("n", min=0)
m = tl.dim("m", min=0)

@tl.kernel
def stages(x: tl.f32[n, m], y: tl.f32[n, m]):
"""


def generate_stages(seed: int) -> tl.PrimFunc:
    """The program of a seed: always the same."""
    return tl.parse(HEADER + "\n".join(_Stages(Random(seed)).lines()))


class _Stages:
    def __init__(self, random: Random) -> None:
        self.random = random
        # For each temporary how many rows at its begin and its end are not filled.
        self.margins: dict[str, tuple[int, int]] = {}
        self.kind = random.choice(("range", "range", "tl.parallel"))

    def lines(self) -> list[str]:
        found: list[str] = []
        for number in range(self.random.randint(2, 6)):
            name = f"t{number}"
            found.append(f"    {name} = tl.alloc(tl.f32[n + 2, m])")
            found += self.stage(name)
            if self.random.random() < 0.2:
                found += self.stage(self.random.choice(list(self.margins)))
        return found + self.last()

    def stage(self, name: str) -> list[str]:
        """Loops that fill a temporary, or fill it again from itself."""
        low, high = self.random.choice(((0, 0), (0, 0), (0, 0), (1, 1), (0, 1), (2, 0)))
        if self.margins and self.random.random() < 0.6:
            # Rows whose neighbours the stage before has.
            last = list(self.margins.values())[-1]
            low, high = last[0] + self.random.randint(0, 1), last[1] + self.random.randint(0, 2)
        known = self.margins.get(name)
        if known is not None:
            low, high = max(low, known[0]), max(high, known[1])
        rows = f"    for i in {self.kind}({low}, n - {high}):"
        if self.random.random() < 0.1:
            rows = f"    for i in {self.random.choice(('range', 'tl.parallel'))}({low}, n - {high}):"
        elif self.kind == "range" and self.random.random() < 0.1:
            rows = f"    for i in range(n - 1 - {high}, {low} - 1, -1):"
        body = [f"            {name}[i, j] = {self.value(low, high, name)}"]
        if self.random.random() < 0.2:
            body.append(f"            {name}[i, j] = {name}[i, j] * tl.f32({self.random.randint(2, 3)})")
        if known is None:
            self.margins[name] = (low, high)
        return [rows, "        for j in range(m):", *body]

    def last(self) -> list[str]:
        low = max((low for low, _ in self.margins.values()), default=0)
        high = max((high for _, high in self.margins.values()), default=0)
        rows = [f"    for i in {self.kind}({low}, n - {high}):", "        for j in range(m):"]
        return [*rows, f"            y[i, j] = {self.value(low, high, '')}"]

    def value(self, low: int, high: int, target: str) -> str:
        terms = [self.term(low, high, target) for _ in range(self.random.randint(1, 3))]
        return " + ".join(terms)

    def term(self, low: int, high: int, target: str) -> str:
        """What a stage over rows `low` to n - `high` reads: an element of an earlier stage, beside or not."""
        names = [name for name in self.margins if name != target]
        if not names or self.random.random() < 0.2:
            return "x[i, j]"
        name = self.random.choice((names[-1], self.random.choice(names)))
        first, last = self.margins[name]
        offset = self.random.choice((0, 0, 0, 0, -1, 1, -2, 2))
        if low + offset >= first and high - offset >= last:
            row = f"i + {offset}" if offset > 0 else f"i - {-offset}" if offset else "i"
        elif first <= low and last <= high:
            row = f"max(i - {-offset}, {first})" if offset < 0 else f"min(i + {offset}, n - {last + 1})"
        else:
            return "x[i, j]"
        column = self.random.choice(("j", "j", "j", "j", "max(j - 1, 0)", "m - 1 - j"))
        return f"{name}[{row}, {column}]"
