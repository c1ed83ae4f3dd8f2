"""The peers' functions for the workloads of `bench kernels`: NumPy always, others if installed.

Halide and TVM have schedules by hand: register tiles, panels, strips. Both compile for the sizes of a workload.
Workloads that have no sensible short schedule in them are left out.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from llvmlite import binding

from tirlite.bench.workloads import Array, Workload, sums_of_nine

# The bytes of a vector, and the rows of a register tile, which is two vectors wide.
_VECTOR, _ROWS = 64, 8
# The tiles, or rows of an image, per task.
_TILES, _STRIP = 8, 32
Compute = Callable[[], Any]


def filled_once(compute: Compute, y: Array) -> Callable[[], object]:
    """A call of `compute`; only the first result, which is checked, is copied to `y`."""
    looked_at = False

    def call() -> None:
        nonlocal looked_at
        result = compute()
        if not looked_at:
            y[...], looked_at = np.asarray(result).reshape(y.shape), True

    return call


def scheduled(build: Callable[..., Compute | None]) -> Callable[..., Callable[[], object] | None]:
    """Adapts a builder from inputs and output to a maker of calls; None if the builder declines."""

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
    # Pad the result to whole tiles, so that the schedule needs no tails.
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


# Without the chain of exp and tanh, whose errors exceed the bound.
HALIDE = {"matmul": scheduled(_halide_matmul), "blur": scheduled(_halide_blur), "blur_u8": scheduled(_halide_blur)}
TVM = {"matmul": scheduled(_tvm_matmul)}


_SOURCE = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>

void sum(const float *x, float *y, int64_t n) {
  float s = 0;
#pragma omp parallel for simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++) s += x[i];
  y[0] = s;
}

void softmax(const float *x, float *y, int64_t m, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; i++) {
    const float *in = x + i * n;
    float *out = y + i * n, most = in[0], s = 0;
    for (int64_t j = 0; j < n; j++) most = in[j] > most ? in[j] : most;
    for (int64_t j = 0; j < n; j++) s += out[j] = expf(in[j] - most);
    for (int64_t j = 0; j < n; j++) out[j] /= s;
  }
}

void blur(const float *x, float *y, int64_t n, int64_t m, int64_t rows, int64_t columns) {
#pragma omp parallel for
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      float s = 0;
      for (int p = 0; p < 3; p++)
        for (int q = 0; q < 3; q++) s += x[(i + p) * m + j + q];
      y[i * columns + j] = s / 9;
    }
}

void blur_u8(const uint8_t *x, uint8_t *y, int64_t n, int64_t m, int64_t rows, int64_t columns) {
#pragma omp parallel for
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      uint16_t s = 0;
      for (int p = 0; p < 3; p++)
        for (int q = 0; q < 3; q++) s += x[(i + p) * m + j + q];
      y[i * columns + j] = s / 9;
    }
}

void histogram(const uint8_t *x, int64_t *y, int64_t n) {
  memset(y, 0, 256 * sizeof *y);
#pragma omp parallel for reduction(+ : y[:256])
  for (int64_t i = 0; i < n; i++) y[x[i]]++;
}

void spmv(const float *values, const int *columns, const int *starts, const float *x, float *y, int64_t rows) {
#pragma omp parallel for
  for (int64_t i = 0; i < rows; i++) {
    float s = 0;
    for (int k = starts[i]; k < starts[i + 1]; k++) s += values[k] * x[columns[k]];
    y[i] = s;
  }
}
"""
# The size arguments of each C function, after its arrays.
_SIZES: dict[str, Callable[..., tuple[int, ...]]] = {
    "sum": lambda x, _: x.shape,
    "softmax": lambda x, _: x.shape,
    "blur": lambda x, y: (*x.shape, *y.shape),
    "blur_u8": lambda x, y: (*x.shape, *y.shape),
    "histogram": lambda x, _: x.shape,
    "spmv": lambda *arrays: arrays[-1].shape,
}
WRITTEN_IN_C = (*_SIZES,)


def compiled_c(compiler: str, name: str, *arrays: np.ndarray[Any, Any]) -> Callable[[], object]:
    """A call of a C function of the source above with these arrays."""
    given = [ctypes.c_void_p(each.ctypes.data) for each in arrays]
    return partial(getattr(_library(compiler), name), *given, *map(ctypes.c_int64, _SIZES[name](*arrays)))


@cache
def _library(compiler: str) -> ctypes.CDLL:
    with TemporaryDirectory() as folder:
        source, compiled, library = (str(Path(folder, name)) for name in ("peers.c", "peers.o", "peers.so"))
        Path(source).write_text(_SOURCE)
        # Link without -Ofast, which would set flush-to-zero for the whole process.
        fast = ("-Ofast", "-march=native", "-fopenmp", "-fPIC", "-c", source, "-o", compiled)
        for flags in (fast, ("-shared", "-fopenmp", compiled, "-o", library, "-lm")):
            subprocess.run((compiler, *flags), check=True, capture_output=True)
        return ctypes.CDLL(library)


# Makes, from inputs and output, a call that fills the output; None if the peer does not support them.
Maker = Callable[..., Callable[[], object] | None]


def peers_for(key: str, workload: Workload, chosen: tuple[str, ...]) -> dict[str, tuple[Callable[[], object], Array]]:
    """By peer, the call for a workload, and the array that it fills."""
    found = {}
    for name, (_, makers) in PEERS.items():
        maker = makers.get(key.partition(" ")[0])
        if maker is not None and (not chosen or name in chosen) and is_installed(name):
            output = np.zeros_like(workload.output)
            if (call := maker(*workload.inputs, output)) is not None:
                found[name] = call, output
    return found


def is_installed(name: str) -> bool:
    """Whether the peer's module or compiler is installed."""
    found = PEERS[name][0]
    return find_spec(found) is not None or which(found) is not None


def _chain(a: Array, b: Array, c: Array, y: Array) -> None:
    np.multiply(a, b, out=y)
    np.add(y, c, out=y)
    np.exp(y, out=y)
    np.multiply(y, np.tanh(a), out=y)


def _softmax(x: Array, y: Array) -> None:
    np.subtract(x, x.max(1, keepdims=True), out=y)
    np.exp(y, out=y)
    np.divide(y, y.sum(1, keepdims=True), out=y)


def _layer_norm(x: Array, gain: Array, shift: Array, y: Array) -> None:
    np.subtract(x, x.mean(1, keepdims=True), out=y)
    np.multiply(y, 1 / np.sqrt(np.einsum("ij,ij->i", y, y) / x.shape[1] + np.float32(1e-5))[:, None], out=y)
    np.multiply(y, gain, out=y)
    np.add(y, shift, out=y)


def _convolution(x: Array, weights: Array, y: Array) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2)).transpose(0, 3, 4, 1, 2)
    np.matmul(weights.reshape(len(y), -1), windows.reshape(-1, y[0].size), out=y.reshape(len(y), -1))


def _depthwise(x: Array, weights: Array, y: Array) -> None:
    height, width = y.shape[1:]
    y[...] = 0
    for p in range(3):
        for q in range(3):
            y += weights[:, p, q, None, None] * x[:, p : p + height, q : q + width]


def _jacobi(start: Array, steps: int, y: Array) -> None:
    y[...] = start
    for _ in range(steps):
        y[1:-1, 1:-1] = 0.25 * (y[1:-1, :-2] + y[1:-1, 2:] + y[:-2, 1:-1] + y[2:, 1:-1])


def _attention(q: Array, keys: Array, v: Array, y: Array) -> None:
    scores = q @ keys.transpose(0, 2, 1) / np.sqrt(np.float32(q.shape[2]))
    scores -= scores.max(2, keepdims=True)
    np.exp(scores, out=scores)
    np.matmul(scores, v, out=y)
    y /= scores.sum(2, keepdims=True)


def _histogram(x: Array, y: Array) -> None:
    y[...] = np.bincount(x, minlength=256)


def _matmul(a: Array, b: Array, y: Array) -> None:
    np.matmul(a, b, out=y, dtype=y.dtype)


def _called(work: Callable[..., object]) -> Maker:
    """A maker for a function that fills its last argument."""
    return lambda *arguments: lambda: work(*arguments)


_NUMPY: dict[str, Maker] = {
    "matmul": _called(_matmul),
    "chain": _called(_chain),
    "softmax": _called(_softmax),
    "layer_norm": _called(_layer_norm),
    "convolution": _called(_convolution),
    "depthwise": _called(_depthwise),
    "blur": _called(lambda image, y: np.multiply(sums_of_nine(image), np.float32(1 / 9), out=y)),
    "blur_u8": _called(lambda image, y: np.copyto(y, sums_of_nine(image.astype(np.uint16)) // 9, casting="unsafe")),
    "jacobi": _called(_jacobi),
    "attention": _called(_attention),
    "sum": _called(lambda x, y: np.sum(x, keepdims=True, out=y)),
    "argmax": _called(lambda x, y: np.argmax(x, keepdims=True, out=y)),
    "histogram": _called(_histogram),
}


def _scipy_spmv(values: Array, columns: Array, starts: Array, x: Array, y: Array) -> Callable[[], object]:
    sparse: Any = import_module("scipy.sparse")
    matrix = sparse.csr_matrix((values, columns, starts), (len(y), len(x)))
    return lambda: np.copyto(y, matrix @ x)


def _opencv_blur(image: Array, y: Array) -> Callable[[], object]:
    """Blurs the border too, which is not compared."""
    cv2: Any = import_module("cv2")
    whole = np.empty_like(image)

    def blur() -> None:
        cv2.blur(image, (3, 3), dst=whole)
        y[...] = whole[1:-1, 1:-1]

    return blur


def _numba(name: str) -> Maker:
    """A maker for a function of `numba_kernels`, compiled with its outermost loop parallel."""

    def make(*arguments: object) -> Callable[[], object]:
        from tirlite.bench import numba_kernels

        numba: Any = import_module("numba")
        # Jacobi's values are compared bit for bit.
        compiled = numba.njit(parallel=True, fastmath=name != "jacobi")(getattr(numba_kernels, name))
        return lambda: compiled(*arguments)

    return make


def _torch(work: Callable[..., object]) -> Maker:
    """A maker for a function of torch, torch.nn.functional and the input tensors."""

    def make(*arguments: Array) -> Callable[[], object]:
        torch: Any = import_module("torch")
        *inputs, y = arguments
        tensors = [torch.from_numpy(each) for each in inputs]
        return filled_once(lambda: work(torch, torch.nn.functional, *tensors), y)

    return make


def _jax(work: Callable[..., object]) -> Maker:
    """A maker for a function of JAX and the inputs, compiled for their shapes."""

    def make(*arguments: Array) -> Callable[[], object]:
        jax: Any = import_module("jax")
        jax.config.update("jax_enable_x64", True)
        *inputs, y = arguments
        compiled = jax.jit(lambda *given: work(jax, *given))
        given = [jax.device_put(each) for each in inputs]
        return filled_once(lambda: compiled(*given).block_until_ready(), y)

    return make


_TORCH: dict[str, Maker] = {
    "matmul": _torch(lambda t, _, a, b: t._int_mm(a, b) if a.dtype == t.int8 else a @ b),
    "chain": _torch(lambda t, _, a, b, c: t.exp(a * b + c) * t.tanh(a)),
    "softmax": _torch(lambda t, _, x: t.softmax(x, 1)),
    "layer_norm": _torch(lambda _, f, x, gain, shift: f.layer_norm(x, x.shape[1:], gain, shift, 1e-5)),
    "convolution": _torch(lambda _, f, x, weights: f.conv2d(x[None], weights)),
    "depthwise": _torch(lambda _, f, x, weights: f.conv2d(x[None], weights[:, None], groups=len(x))),
    "blur": _torch(lambda _, f, image: f.avg_pool2d(image[None], 3, 1)),
    "attention": _torch(lambda _, f, q, keys, v: f.scaled_dot_product_attention(q[None], keys[None], v[None])),
    "sum": _torch(lambda t, _, x: t.sum(x)),
    "argmax": _torch(lambda t, _, x: t.argmax(x)),
    "histogram": _torch(lambda t, _, x: t.bincount(x, minlength=256)),
}
_JAX: dict[str, Maker] = {
    "matmul": _jax(lambda j, a, b: j.numpy.matmul(a, b, preferred_element_type="int32" if a.dtype == "int8" else None)),
    "chain": _jax(lambda j, a, b, c: j.numpy.exp(a * b + c) * j.numpy.tanh(a)),
    "softmax": _jax(lambda j, x: j.nn.softmax(x, 1)),
    "layer_norm": _jax(lambda j, x, gain, shift: j.nn.standardize(x, 1, epsilon=1e-5) * gain + shift),
    "blur": _jax(lambda _, image: sums_of_nine(image) / 9),
    "blur_u8": _jax(lambda _, image: (sums_of_nine(image.astype("uint16")) // 9).astype("uint8")),
    "attention": _jax(lambda j, q, k, v: j.nn.softmax(q @ k.transpose(0, 2, 1) / q.shape[2] ** 0.5, 2) @ v),
    "sum": _jax(lambda j, x: j.numpy.sum(x)),
    "argmax": _jax(lambda j, x: j.numpy.argmax(x)),
}
_BY_NUMBA = ("matmul", "chain", "softmax", "layer_norm", "depthwise", "blur", "jacobi", "spmv")
PEERS: Mapping[str, tuple[str, Mapping[str, Maker]]] = {
    "numpy": ("numpy", _NUMPY),
    "numba": ("numba", {**{name: _numba(name) for name in _BY_NUMBA}, "sum": _numba("sum_all")}),
    "scipy": ("scipy", {"spmv": _scipy_spmv}),
    "opencv": ("cv2", {"blur": _opencv_blur}),
    "torch": ("torch", _TORCH),
    "jax": ("jax", _JAX),
    "halide": ("halide", HALIDE),
    "tvm": ("tvm", TVM),
    **{each: (each, {name: partial(compiled_c, each, name) for name in WRITTEN_IN_C}) for each in ("gcc", "clang")},
}
