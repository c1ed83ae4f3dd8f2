"""The programs on which bugs are tried: small ones that provoke each class of bug, the kernel library, random ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from fuzz.extents import Extent
from fuzz.generator import generate
from fuzz.program import Program, outcomes
from fuzz.setups import target_of
from parsed import parsed

import tirlite as tl
from tirlite.ir import Builder, PrimFunc, SeqStmt, f32
from tirlite.kernels.case import Case
from tirlite.kernels.gallery import CASES
from tirlite.rewrite import InjectVirtualThreads, Normalize

Outcome = dict[str, np.ndarray]
HEADER = (
    'n, m = tl.dims("n m")\nk = tl.dim("k", max=64)\n\n@tl.kernel\ndef f(x: tl.f32[n, m, k], y: tl.f32[n, m, k]):\n'
)
UB = tl.MemoryInfo(unit_bits=8, max_simd_bits=256, max_num_bits=8 * 8192)
TARGET = tl.Target.host().with_memory("local.UB", UB)

# Each is one or two buffers whose storage a planner with a bug of its class takes too early, too late, or too small.
BODIES = {
    "view": """
        a = tl.alloc(tl.f32[8])
        v = tl.view(a, tl.f32[4], byte_offset=16)
        v[0] = x[0, 0, 0]
        b = tl.alloc(tl.f32[8])
        for i in range(8):
            b[i] = x[0, 0, 0] + 1
        y[0, 0, 0] = b[4]
        y[0, 0, 1] = v[0]
        """,
    "index": """
        a = tl.alloc(tl.i64[8])
        a[0] = 1
        y[0, 0, 0] = tl.f32(a[0])
        b = tl.alloc(tl.f32[16])
        b[0] = x[0, 0, 0]
        b[1] = x[0, 0, 1]
        y[0, 0, 1] = x[0, 0, a[0] % k] + b[1]
        """,
    "bound": """
        a = tl.alloc(tl.i64[8])
        a[0] = 2
        b = tl.alloc(tl.i64[8])
        b[0] = 1
        y[0, 0, 0] = tl.f32(b[0])
        for i in range(min(a[0], k)):
            y[0, 0, i] = x[0, 0, i]
        """,
    "condition": """
        a = tl.alloc(tl.i64[8])
        a[0] = 2
        b = tl.alloc(tl.i64[8])
        b[0] = 1
        y[0, 0, 0] = tl.f32(b[0])
        if a[0] > 1:
            y[0, 0, 0] = x[0, 0, 0]
        """,
    "extent": """
        a = tl.alloc(tl.i64[8])
        a[0] = 3
        b = tl.alloc(tl.i64[8])
        b[0] = 100
        y[0, 0, 0] = tl.f32(b[0])
        t = tl.alloc(tl.f32[a[0]])
        t[0] = x[0, 0, 0]
        y[0, 0, 0] = t[0]
        """,
    "loop carried": """
        a = tl.alloc(tl.f32[8])
        a[0] = x[0, 0, 0]
        for i in range(n):
            y[i, 0, 0] = a[0]
            b = tl.alloc(tl.f32[8])
            b[0] = x[i, 0, 0] + 1
            y[i, 0, 0] = y[i, 0, 0] + b[0]
        """,
    "used before and after": """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        a[0] = 0
        for i in range(n):
            b[0] = x[i, 0, 0]
            a[0] = a[0] + b[0]
        y[0, 0, 0] = a[0]
        """,
    "branches": """
        for i in range(n):
            a = tl.alloc(tl.f32[8])
            b = tl.alloc(tl.f32[8])
            a[0] = x[i, 0, 0]
            if i > 1:
                b[0] = x[i, 0, 0] + 1
                y[i, 0, 0] = b[0]
            else:
                b[0] = x[i, 0, 0] + 2
                y[i, 0, 0] = b[0]
            y[i, 0, 0] = y[i, 0, 0] + a[0]
        """,
    "else": """
        a = tl.alloc(tl.f32[8])
        a[0] = x[0, 0, 0]
        b = tl.alloc(tl.f32[8])
        b[0] = x[0, 0, 0] + 1
        y[0, 0, 0] = b[0]
        if n > 100:
            y[0, 0, 0] = 1
        else:
            y[0, 0, 0] = a[0]
        """,
    "branch in a loop": """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        for i in range(n):
            if i % 2 == 0:
                a[0] = x[i, 0, 0]
            else:
                b[0] = x[i, 0, 0]
                y[i, 0, 0] = b[0] + a[0]
        """,
    "volatile": """
        a = tl.alloc(tl.f32[8], volatile=True)
        a[0] = x[0, 0, 0]
        y[0, 0, 0] = a[0]
        b = tl.alloc(tl.f32[8])
        b[0] = x[0, 0, 0]
        y[0, 0, 1] = b[0]
        """,
    "address": """
        a = tl.alloc(tl.f32[8])
        a[0] = x[0, 0, 0]
        y[0, 0, 0] = tl.call_extern("f32", "keep", tl.address_of(a[0]))
        b = tl.alloc(tl.f32[8])
        b[0] = x[0, 0, 0]
        y[0, 0, 1] = b[0]
        y[0, 0, 2] = tl.call_extern("f32", "kept")
        """,
    "growing": """
        a = tl.alloc(tl.f32[8])
        a[0] = x[0, 0, 0]
        y[0, 0, 0] = a[0]
        b = tl.alloc(tl.f32[16])
        b[15] = x[0, 0, 0]
        y[0, 0, 1] = b[15]
        c = tl.alloc(tl.f32[n, m])
        c[n - 1, m - 1] = x[0, 0, 0]
        y[0, 0, 1] = c[n - 1, m - 1]
        d = tl.alloc(tl.f32[m * 2, k])
        d[0, k - 1] = x[0, 0, 0]
        y[0, 0, 1] = d[0, k - 1]
        """,
    "mixed types": """
        a = tl.alloc(tl.u8[9])
        b = tl.alloc(tl.f64[5])
        c = tl.alloc(tl.i16[7], alignment=32)
        a[0] = 1
        b[0] = tl.f64(x[0, 0, 0])
        c[0] = 2
        d = tl.alloc(tl.u8[83])
        d[0] = a[0]
        y[0, 0, 0] = tl.f32(b[0]) + tl.f32(c[0]) + tl.f32(d[0])
        """,
    "alignment asked for": """
        a = tl.alloc(tl.f32[8])
        a[0] = x[0, 0, 0]
        y[0, 0, 0] = a[0]
        b = tl.alloc(tl.f32[8], alignment=128)
        b[0] = x[0, 0, 0]
        y[0, 0, 0] = b[0]
        """,
    "let": """
        h = n * m // 2 + 3
        a = tl.alloc(tl.f32[h])
        a[0] = x[0, 0, 0]
        y[0, 0, 0] = a[0]
        b = tl.alloc(tl.f32[h])
        b[0] = x[0, 0, 0]
        y[0, 0, 0] = b[0]
        """,
    "extent of a loop": """
        for i in range(n):
            a = tl.alloc(tl.f32[i + 2])
            a[i] = x[i, 0, 0]
            y[i, 0, 0] = a[i]
        """,
    "parallel": """
        for i in tl.parallel(n):
            a = tl.alloc(tl.f32[8])
            a[0] = x[i, 0, 0]
            y[i, 0, 0] = a[0]
        for i in tl.parallel(n):
            b = tl.alloc(tl.f32[8])
            b[0] = x[i, 0, 0]
            y[i, 0, 0] = y[i, 0, 0] + b[0]
        """,
    "threads": """
        for i in tl.thread("blockIdx.x", n):
            a = tl.alloc(tl.f32[8], scope="shared")
            b = tl.alloc(tl.f32[8], scope="shared")
            for j in tl.thread("threadIdx.x", min(8, k)):
                a[j] = x[i, 0, j]
                y[i, 0, j] = a[j]
                b[7 - j] = x[i, 0, j]
                y[i, 0, j] = y[i, 0, j] + b[7 - j]
        """,
    "scopes": """
        a = tl.alloc(tl.f32[8])
        a[0] = x[0, 0, 0]
        y[0, 0, 0] = a[0]
        b = tl.alloc(tl.f32[8], scope="shared")
        b[0] = x[0, 0, 0]
        y[0, 0, 0] = b[0]
        """,
    "tagged": """
        a = tl.alloc(tl.f32[300], scope="local.UB")
        b = tl.alloc(tl.u8[5], scope="local.UB")
        c = tl.alloc(tl.f64[k], scope="local.UB")
        a[0] = x[0, 0, 0]
        b[0] = 1
        c[0] = 2
        y[0, 0, 0] = a[0] + tl.f32(b[0]) + tl.f32(c[0])
        """,
    "capacity": """
        a = tl.alloc(tl.f32[1500], scope="local.UB")
        a[0] = x[0, 0, 0]
        y[0, 0, 0] = a[0]
        b = tl.alloc(tl.f32[1500], scope="local.UB")
        b[0] = x[0, 0, 0]
        y[0, 0, 1] = b[0]
        """,
    "carried over the end": """
        a = tl.alloc(tl.f32[8])
        for i in range(n):
            t = tl.alloc(tl.f32[8])
            t[0] = x[i, 0, 0] + 1
            y[i, 0, 0] = t[0]
            if i == 0:
                a[0] = 0
            a[0] = a[0] + x[i, 0, 0]
        y[0, 0, 0] = a[0]
        """,
    "a wide one behind a narrow one": """
        a = tl.alloc(tl.u8[41])
        b = tl.alloc(tl.f64[5])
        a[40] = 1
        b[4] = tl.f64(x[0, 0, 0])
        y[0, 0, 0] = tl.f32(b[4]) + tl.f32(a[40])
        """,
    "large": """
        a = tl.alloc(tl.f32[32768, 32769])
        a[0, 0] = x[0, 0, 0]
        y[0, 0, 0] = a[0, 0]
        b = tl.alloc(tl.f32[100000])
        b[0] = x[0, 0, 0]
        y[0, 0, 0] = b[0]
        """,
    "in place": """
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        for i in range(n):
            a[i] = x[i, 0, 0]
        for i in range(n):
            b[i] = 0
            b[i] = b[i] + a[i] * 2
        for i in range(n):
            y[i, 0, 0] = b[i]
        """,
    "reversed": """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        for i in range(8):
            a[i] = x[0, 0, i % k]
        for i in range(8):
            b[i] = a[7 - i]
        for i in range(min(8, k)):
            y[0, 0, i] = b[i]
        """,
    "two sources": """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        c = tl.alloc(tl.f32[8])
        for i in range(8):
            a[i] = x[0, 0, 0]
            b[i] = x[0, 0, 0] + 1
        for i in range(8):
            c[i] = a[i] + b[i]
        y[0, 0, 0] = c[3]
        """,
    "a larger one in place": """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[16])
        for i in range(8):
            a[i] = x[0, 0, 0]
        for i in range(8):
            b[i] = a[i] + 1
        b[15] = 1
        y[0, 0, 0] = b[3] + b[15]
        """,
    "gap": """
        a = tl.alloc(tl.f32[8])
        b = tl.alloc(tl.f32[8])
        if n > 2:
            a[0] = x[0, 0, 0]
            y[0, 0, 0] = a[0]
        else:
            b[0] = x[0, 0, 0]
            y[0, 0, 0] = b[0]
            a[0] = b[0]
            y[0, 0, 1] = a[0] + b[0]
        """,
}


# What the interpreter cannot run, and the bugs that it is for.
NOT_RUN = {
    "address": frozenset({"an address taken is not a use", "an address is good for one statement"}),
    "large": frozenset({"sizes wrap at 32 bits"}),
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A program, in normal form and as it was made, and what it computes; None where it cannot be run.

    Such a program is for the bugs that `only` names: no other one could be shown to be harmless.
    """

    name: str
    func: PrimFunc
    raw: PrimFunc
    run: Callable[[PrimFunc], Outcome] | None
    target: tl.Target = field(default_factory=tl.Target.host)
    only: frozenset[str] | None = None


def provoking() -> Iterator[Subject]:
    """The small programs."""
    for name, body in BODIES.items():
        func = parsed(HEADER, body)
        n, m, k = (next(dim for dim in func.dims if dim.name == each) for each in "nmk")
        shape = (Extent(n, 1, 0), Extent(m, 1, 0), Extent(k, 1, 0))
        bindings = ({n: 3, m: 2, k: 9}, {n: 1, m: 5, k: 2})
        program = Program(0, func, dict.fromkeys(func.params, shape), bindings, frozenset())
        run = None if name in NOT_RUN else partial(_outcome, program)
        yield Subject(name, Normalize()(func), func, run, TARGET, NOT_RUN.get(name))
    yield _one_statement_twice()


def _one_statement_twice() -> Subject:
    """A loop that stands in the program twice as one object, with a buffer that lives all through in between."""
    b = Builder("twice")
    x, y = b.param("x", f32[8]), b.param("y", f32[8])
    kept = b.alloc("kept", f32[8])
    b.store(kept, 0, x[0])
    with b.for_("i", 0, 8) as i:
        t = b.alloc("t", f32[8])
        b.store(t, i, x[i] + 1.0)
        b.store(y, i, y[i] + t[i])
    b.store(y, 0, y[0] + kept[0])
    func = b.build()
    allocate, write, loop, read = func.body.stmts
    raw = func.replaced(body=SeqStmt((allocate, write, loop, read, loop)))
    program = Program(0, raw, {x: (Extent(None, 0, 8),), y: (Extent(None, 0, 8),)}, ({},), frozenset())
    return Subject("one statement twice", Normalize()(raw), raw, partial(_outcome, program))


def library() -> Iterator[Subject]:
    """The kernels of the library."""
    for case in CASES:
        func = case.kernel.ir
        yield Subject(case.kernel.name, Normalize()(func), func, partial(_case_outcome, case))


def random_programs(first: int, count: int) -> Iterator[Subject]:
    for seed in range(first, first + count):
        program = generate(seed)
        func = InjectVirtualThreads()(Normalize()(program.func))
        yield Subject(f"seed {seed}", func, func, partial(_outcome, program), target_of(2))


def _outcome(program: Program, func: PrimFunc) -> Outcome:
    return outcomes(program, func=func)


def _case_outcome(case: Case, func: PrimFunc) -> Outcome:
    kernel = tl.compile(func, strategy="none")
    size = next(each for each in case.sizes if 0 not in each)  # the passes were told that dims are positive
    return {"y": np.asarray(kernel.interpret(*case.inputs(np.random.default_rng(list(size)), *size)))}
