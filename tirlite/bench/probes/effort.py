"""Prints what kernels take from a call to code, by the effort of LLVM, once all that compiles is loaded.

python -m tirlite.bench.probes.effort
"""

from __future__ import annotations

from time import process_time

import tirlite as tl
from tirlite.codegen.llvm import machine
from tirlite.codegen.llvm.machine import Effort
from tirlite.ir import Builder, PrimFunc, Var, f32, i64
from tirlite.kernels.blur import blur_u8
from tirlite.kernels.jacobi import jacobi
from tirlite.kernels.matmul import matmul_tiled
from tirlite.kernels.softmax import softmax
from tirlite.sizes import Dim

_TIMES = 15


def vector_add() -> PrimFunc:
    n = Var("n", i64, Dim("n"))
    b = Builder("add")
    x, y, z = (b.param(name, f32[n]) for name in "xyz")
    with b.for_("i", 0, n) as i:
        b.store(z, i, x[i] + y[i])
    return b.build()


def milliseconds(kernel: tl.Kernel, effort: Effort) -> float:
    """Of the processor, the least of some trials."""
    machine.effort_for = lambda extent: effort
    found = []
    for _ in range(_TIMES):
        made = tl.compile(kernel, cache=None)
        start = process_time()
        made.compile()
        found.append(1e3 * (process_time() - start))
    return min(found)


def main() -> None:
    kernels = [tl.compile(vector_add()), blur_u8, matmul_tiled, softmax, jacobi]
    for each in kernels:
        tl.compile(each).compile()
    for each in kernels:
        told = ", ".join(f"{effort.name.lower()} {milliseconds(each, effort):.1f}" for effort in Effort)
        print(f"{each.name}, ms by effort: {told}")


if __name__ == "__main__":
    main()
