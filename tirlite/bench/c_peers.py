"""Workloads of `bench kernels` written in C, compiled by gcc or clang where one is installed."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

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
