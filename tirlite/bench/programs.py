"""Makes programs of a given size, to measure the speed of the compiler.

`python -m tirlite.bench.programs NAME SIZE` prints the time of one from IR to result, or why it was refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from time import perf_counter
from types import MappingProxyType

import numpy as np

from tirlite import driver
from tirlite.diag import TirliteError
from tirlite.ir import Buffer, Builder, Expr, PrimFunc, TensorType, Var, f32, i64
from tirlite.sizes import Dim

Maker = Callable[[int], PrimFunc]


def chain(count: int) -> PrimFunc:
    """`count` temporaries of constant sizes, each computed from the previous one."""
    return _chained(count, lambda i: f32[16 + 37 * i % 101])


def symbolic_chain(count: int) -> PrimFunc:
    """`count` temporaries of sizes in n, each computed from the previous one."""
    n = Var("n", i64, Dim("n"))
    return _chained(count, lambda i: f32[n * (1 + i % 7) + i % 5], n)


def all_live(count: int) -> PrimFunc:
    """`count` temporaries, all written before the first is read."""
    b, x, y = _begin("all_live")
    made = []
    for i in range(count):
        made.append(b.alloc(f"t{i}", f32[16 + 37 * i % 101]))
        b.store(made[-1], 0, x[0] + i)
    for buffer in made:
        b.store(y, 0, y[0] + buffer[0])
    return b.build()


def long_sum(terms: int) -> PrimFunc:
    """One sum of `terms` terms in one expression."""
    b, x, y = _begin("long_sum")
    total: Expr = x[0]
    for _ in range(terms - 1):
        total = total + x[0]
    b.store(y, 0, total)
    return b.build()


def straight_line(count: int) -> PrimFunc:
    """`count` statements in a row."""
    b, x, y = _begin("straight_line")
    b.store(y, 0, x[0])
    for _ in range(count - 1):
        b.store(y, 0, y[0] + x[0])
    return b.build()


def deep_nest(depth: int) -> PrimFunc:
    """`depth` nested loops of one iteration each."""
    b, x, y = _begin("deep_nest")
    with ExitStack() as loops:
        for level in range(depth):
            loops.enter_context(b.for_(f"i{level}", 0, 1))
        b.store(y, 0, y[0] + x[0])
    return b.build()


SHAPES: Mapping[str, Maker] = MappingProxyType({"chain": chain, "all live": all_live, "symbolic": symbolic_chain})
EXTREMES: Mapping[str, Maker] = MappingProxyType(
    {"sum": long_sum, "row": straight_line, "nest": deep_nest, "temporaries": chain}
)


def _begin(name: str, n: Var | int = 1) -> tuple[Builder, Buffer, Buffer]:
    b = Builder(name)
    return b, b.param("x", f32[n]), b.param("y", f32[n])


def _chained(count: int, tensor: Callable[[int], TensorType], n: Var | int = 1) -> PrimFunc:
    b, x, y = _begin("chain", n)
    before = x
    for i in range(count):
        made = b.alloc(f"t{i}", tensor(i))
        b.store(made, 0, before[0] + 1)
        before = made
    b.store(y, 0, before[0])
    return b.build()


def measure(program: str, size: int) -> dict[str, float | str]:
    """`seconds`; if refused, `refused` with the first line of the message; if LLVM's effort was limited, a `note`."""
    func = EXTREMES[program](size)
    x = np.ones(1, np.float32)
    y = np.zeros(1, np.float32)
    start = perf_counter()
    try:
        kernel = driver.compile(func)
        kernel(x, y)
    except TirliteError as error:
        return {"seconds": perf_counter() - start, "refused": str(error).partition("\n")[0]}
    return {"seconds": perf_counter() - start, "note": kernel.timing.note}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
