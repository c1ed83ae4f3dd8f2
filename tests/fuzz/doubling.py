"""A seed in, a program out whose loops fill buffers that are marked as double; and a pass that marks and doubles more.

Not all of these can be filled ahead: where `DoubleBuffer` says so, a program stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import tirlite as tl
from tirlite.diag import KernelError
from tirlite.ir.expr import Buffer, Load
from tirlite.ir.func import PrimFunc
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, AttrKey, AttrStmt, For, ForKind, SeqStmt, Stmt, Store
from tirlite.ir.walk import statements, walk
from tirlite.rewrite import DoubleBuffer, Normalize

HEADER = """
n = tl.dim("n", min=0)
m = tl.dim("m")

@tl.kernel
def rows(x: tl.f32[n, m], y: tl.f32[n, m]):
"""
# Buffers that are tried in one program.
MOST = 4


@dataclass(frozen=True)
class DoubleSome:
    """Doubles what buffers of a function can be, marked or not; marks that are left go."""

    name: str = "double-some"

    def __call__(self, func: PrimFunc) -> PrimFunc:
        func = _without_marks(func)
        for loop, buffer in list(_candidates(func))[:MOST]:

            def marked(node: For, loop: For = loop, buffer: Buffer = buffer) -> Stmt:
                mark = AttrStmt(AttrKey.DOUBLE_BUFFER, SeqStmt((node,)), buffer)
                return mark if node is loop else node

            done = doubled(Normalize()(rewrite(func, {For: marked})))
            if done is not None:
                return done
        return func


def doubled(func: PrimFunc) -> PrimFunc | None:
    """The function with its marked buffers doubled; None where one of them cannot be filled ahead."""
    try:
        return DoubleBuffer()(func)
    except KernelError as error:
        if "[not-double]" in str(error):
            return None
        raise


def _without_marks(func: PrimFunc) -> PrimFunc:
    def bare(node: AttrStmt) -> Stmt | tuple[Stmt, ...]:
        return node.body.stmts if node.key is AttrKey.DOUBLE_BUFFER else node

    return rewrite(func, {AttrStmt: bare})


def _candidates(func: PrimFunc) -> Iterator[tuple[For, Buffer]]:
    """Serial loops, and buffers that the first statements of their bodies store to."""
    allocated = {stmt.buffer for stmt in statements(func.body) if isinstance(stmt, Allocate)}
    for loop in statements(func.body):
        if isinstance(loop, For) and loop.kind is ForKind.SERIAL and loop.body.stmts:
            inside = {stmt.buffer for stmt in statements(loop) if isinstance(stmt, Allocate)}
            stores = (node.buffer for node in walk(loop.body.stmts[0]) if isinstance(node, Store))
            for buffer in dict.fromkeys(stores):
                is_read = any(isinstance(node, Load) and node.buffer is buffer for node in walk(loop))
                if is_read and buffer in allocated - inside:
                    yield loop, buffer


def generate_doubled(seed: int) -> tl.PrimFunc:
    """The program of a seed: always the same."""
    return tl.parse(HEADER + "\n".join(_Doubled(Random(seed)).lines()))


class _Doubled:
    """Loops over rows: each fills one or two buffers, then works on them."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def lines(self) -> list[str]:
        found: list[str] = []
        for number in range(self.random.randint(1, 2)):
            found += self.loop(f"r{number}")
        return [f"    {line}" for line in found]

    def loop(self, name: str) -> list[str]:
        pick = self.random.choice
        bounds = pick(("n", "1, n", "n - 1", "0, n, 2", "n - 1, -1, -1", "n - 1, 0, -2", "2, n, 3"))
        body, names = [], [name]
        if self.random.random() < 0.3:
            body.append(f"w = tl.f32({pick(('i', 'i * 2 + 1'))})")
        weight = "w" if body else "2"
        body += self.fill(name, weight, "")
        if self.random.random() < 0.3:
            names.append(f"{name}b")
            body += self.fill(names[1], weight, name)
        if self.random.random() < 0.1:
            body.append(f"{name}[0] = x[i, 0]")
        for _ in range(self.random.randint(1, 2)):
            body += self.work(names, weight)
        inside = [f"for i in range({bounds}):", *_indented(body)]
        for each in names:
            inside = [f'with tl.attr({each}, "double_buffer"):', *_indented(inside)]
        outer = pick(("", "", "", "for a in range(2):", f"if n > {pick((1, 3))}:"))
        allocated = [f"{each} = tl.alloc(tl.f32[{pick(('m', 'm', 'm', 'm + 1'))}])" for each in names]
        return [*allocated, outer, *_indented(inside)] if outer else [*allocated, *inside]

    def fill(self, name: str, weight: str, other: str) -> list[str]:
        pick = self.random.choice
        value = pick(
            (
                f"{weight} * x[i, j]",
                "x[n - 1 - i, j]",
                "x[i, m - 1 - j]",
                "x[max(i - 1, 0), j] + x[min(i + 1, n - 1), j]",
            )
        )
        if other and self.random.random() < 0.5:
            value += f" + {other}[j]"
        store = [f"    {name}[j] = {value}"]
        if self.random.random() < 0.2:
            store = ["    if j > 0:", f"        {name}[j] = {value}", "    else:", f"        {name}[j] = 0"]
        return ["for j in range(m):", *store]

    def work(self, names: list[str], weight: str) -> list[str]:
        pick = self.random.choice
        row = pick(names)
        value = pick((f"{row}[m - 1 - j]", f"{row}[j] * {weight}", f"{row}[max(j - 1, 0)] + {names[-1]}[j]"))
        target = pick(("y[i, j] = ", "y[i, j] = y[i, j] + ", "y[0, j] = y[0, j] * 2 + "))
        lines = ["for j in range(m):", f"    {target}{value}"]
        return [f"if i % 2 == {pick((0, 1))}:", *_indented(lines)] if self.random.random() < 0.2 else lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
