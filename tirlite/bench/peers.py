"""What peers call for the workloads of `bench kernels`, by peer and workload: NumPy always, others where installed."""

from __future__ import annotations

import ctypes
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

from tirlite.bench.scheduled_peers import HALIDE, TVM, filled_once
from tirlite.bench.workloads import Array, Workload, sums_of_nine

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
# The sizes that each function takes behind its arrays.
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
    """What calls a function of the source above with arrays."""
    given = [ctypes.c_void_p(each.ctypes.data) for each in arrays]
    return partial(getattr(_library(compiler), name), *given, *map(ctypes.c_int64, _SIZES[name](*arrays)))


@cache
def _library(compiler: str) -> ctypes.CDLL:
    with TemporaryDirectory() as folder:
        source, compiled, library = (str(Path(folder, name)) for name in ("peers.c", "peers.o", "peers.so"))
        Path(source).write_text(_SOURCE)
        # Linked without -Ofast, by which the library would have the whole process flush small numbers to 0.
        fast = ("-Ofast", "-march=native", "-fopenmp", "-fPIC", "-c", source, "-o", compiled)
        for flags in (fast, ("-shared", "-fopenmp", compiled, "-o", library, "-lm")):
            subprocess.run((compiler, *flags), check=True, capture_output=True)
        return ctypes.CDLL(library)


# Receives inputs and the output, and gives what is called: that fills the output. None where the peer does not take it.
Maker = Callable[..., Callable[[], object] | None]


def peers_for(key: str, workload: Workload, chosen: tuple[str, ...]) -> dict[str, tuple[Callable[[], object], Array]]:
    """What is called for a workload, with the array that it fills, by peer."""
    found = {}
    for name, (_, makers) in PEERS.items():
        maker = makers.get(key.partition(" ")[0])
        if maker is not None and (not chosen or name in chosen) and is_installed(name):
            output = np.zeros_like(workload.output)
            if (call := maker(*workload.inputs, output)) is not None:
                found[name] = call, output
    return found


def is_installed(name: str) -> bool:
    """Whether there is the module of a peer, or the compiler."""
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
    """For what fills its last argument."""
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
    """In the frame too, which is not part of what is compared."""
    cv2: Any = import_module("cv2")
    whole = np.empty_like(image)

    def blur() -> None:
        cv2.blur(image, (3, 3), dst=whole)
        y[...] = whole[1:-1, 1:-1]

    return blur


def _numba(name: str) -> Maker:
    """A function of `numba_kernels`, compiled, with its outermost loop in parallel."""

    def make(*arguments: object) -> Callable[[], object]:
        from tirlite.bench import numba_kernels

        numba: Any = import_module("numba")
        # Jacobi's values are asked for to the last bit.
        compiled = numba.njit(parallel=True, fastmath=name != "jacobi")(getattr(numba_kernels, name))
        return lambda: compiled(*arguments)

    return make


def _torch(work: Callable[..., object]) -> Maker:
    """For what receives torch, its functions on tensors and the inputs."""

    def make(*arguments: Array) -> Callable[[], object]:
        torch: Any = import_module("torch")
        *inputs, y = arguments
        tensors = [torch.from_numpy(each) for each in inputs]
        return filled_once(lambda: work(torch, torch.nn.functional, *tensors), y)

    return make


def _jax(work: Callable[..., object]) -> Maker:
    """For what receives JAX and the inputs, compiled for their shapes."""

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
