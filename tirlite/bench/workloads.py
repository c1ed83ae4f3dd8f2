"""The workloads of `bench kernels`: inputs, exact results in f64, and the tolerance of each element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite import driver
from tirlite.bench import definitions
from tirlite.record import record

Array = npt.NDArray[Any]
_EPS = 2.0**-23
_random = np.random.default_rng


@record(eq=False)
class Workload:
    """A `kernel` and its `inputs`; each element of the result may differ from `exact` by `bound`, 0 for integers.
    `multiply_adds` of type `dtype` ("" if they are not the limit), and how often each of `functions` of f32 is
    computed; `exp!` is the fast form of `exp`.
    """

    name: str
    kernel: driver.Kernel
    inputs: tuple[Any, ...]
    output: Array
    exact: Array
    bound: Array | float
    multiply_adds: int = 0
    dtype: str = "f32"
    functions: Mapping[str, int] = field(default_factory=dict)

    @property
    def bytes_read(self) -> int:
        return sum(each.nbytes for each in self.inputs if isinstance(each, np.ndarray))


def _floats(*shape: int) -> Array:
    return _random(len(shape)).standard_normal(shape, np.float32)


def _product(name: str, kernel: driver.Kernel, factors: tuple[Array, Array], dtype: str) -> Workload:
    (a, b), (n, k), m = factors, factors[0].shape, factors[1].shape[1]
    wide, eps = (a.astype(float), b.astype(float)), {"f32": _EPS, "f64": 2.0**-52}.get(dtype, 0.0)
    exact = wide[0] @ wide[1]
    output = np.zeros((n, m), np.int32 if dtype == "" else a.dtype)
    return Workload(name, kernel, (a, b), output, exact, k * eps * (abs(wide[0]) @ abs(wide[1])), n * m * k, dtype)


def _matmul(n: int, m: int, k: int) -> Callable[[], Workload]:
    name = f"matmul {n}" if n == m == k else f"matmul {n}x{m}x{k}"
    return lambda: _product(name, definitions.matmul_f32, (_floats(n, k), _floats(k, m)), "f32")


def _matmul_f64(n: int) -> Workload:
    a, b = _floats(2, n, n).astype(float)
    return _product(f"matmul {n} f64", definitions.matmul_f64, (a, b), "f64")


def _matmul_i8(n: int) -> Workload:
    a, b = _random(0).integers(-128, 128, (2, n, n)).astype(np.int8)
    return _product(f"matmul {n} i8", definitions.matmul_i8, (a, b), "")


def _chain(n: int) -> Workload:
    a, b, c = _floats(3, n) / 2
    wide = a.astype(float), b.astype(float), c.astype(float)
    exact = np.exp(wide[0] * wide[1] + wide[2]) * np.tanh(wide[0])
    bound = _EPS * (16 + abs(wide[0] * wide[1]) + abs(wide[2])) * abs(exact)
    functions = {"exp!": n, "tanh!": n}
    return Workload("exp, tanh", definitions.chain, (a, b, c), np.zeros_like(a), exact, bound, functions=functions)


def _softmax(n: int, m: int) -> Workload:
    x = _floats(n, m)
    shifted = x.astype(float) - x.max(1, keepdims=True)
    exact = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    bound, functions = _EPS * (m - shifted) * exact, {"exp!": n * m}
    return Workload("softmax", definitions.softmax, (x,), np.zeros_like(x), exact, bound, functions=functions)


def _layer_norm(n: int, m: int) -> Workload:
    x, gain, shift = _floats(n, m), _floats(m), _floats(m)
    wide = x.astype(float)
    mean, scale = wide.mean(1, keepdims=True), 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    exact = (wide - mean) * scale * gain + shift
    bound = m * _EPS * ((abs(wide) + abs(mean)) * scale * abs(gain) + abs(shift))
    return Workload("layer norm", definitions.layer_norm, (x, gain, shift), np.zeros_like(x), exact, bound)


def _windows(x: Array) -> Array:
    windows: Array = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(-2, -1))
    return windows


def _convolution(channels: int, filters: int, size: int) -> Workload:
    x, weights = _floats(channels, size + 2, size + 2), _floats(filters, channels, 3, 3)
    wide = _windows(x.astype(float))
    exact = np.einsum("cijpq,fcpq->fij", wide, weights, optimize=True)
    bound = 9 * channels * _EPS * np.einsum("cijpq,fcpq->fij", abs(wide), abs(weights), optimize=True)
    output = np.zeros(exact.shape, np.float32)
    return Workload("conv 3x3", definitions.convolution, (x, weights), output, exact, bound, exact.size * 9 * channels)


def _depthwise(channels: int, size: int) -> Workload:
    x, weights = _floats(channels, size + 2, size + 2), _floats(channels, 3, 3)
    wide = _windows(x.astype(float))
    exact = np.einsum("cijpq,cpq->cij", wide, weights)
    bound = 9 * _EPS * np.einsum("cijpq,cpq->cij", abs(wide), abs(weights))
    output = np.zeros(exact.shape, np.float32)
    return Workload("depthwise 3x3", definitions.depthwise, (x, weights), output, exact, bound, exact.size * 9)


def sums_of_nine(x: Array) -> Array:
    """The sum of the 3 x 3 elements around each inner element."""
    rows = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    sums: Array = rows[:-2] + rows[1:-1] + rows[2:]
    return sums


def _blur(n: int) -> Workload:
    image = _floats(n + 2, n + 2)
    wide = image.astype(float)
    bound = 10 * _EPS * sums_of_nine(abs(wide)) / 9
    return Workload("blur", definitions.blur, (image,), np.zeros((n, n), np.float32), sums_of_nine(wide) / 9, bound)


def _blur_u8(n: int) -> Workload:
    image = _random(0).integers(0, 256, (n + 2, n + 2), np.uint8)
    exact = sums_of_nine(image.astype(np.uint16)) // 9
    return Workload("blur u8", definitions.blur_u8, (image,), np.zeros((n, n), np.uint8), exact, 0)


def _jacobi(n: int, steps: int) -> Workload:
    start = _floats(n, n).astype(float)
    exact = start.copy()
    for _ in range(steps):
        exact[1:-1, 1:-1] = 0.25 * (exact[1:-1, :-2] + exact[1:-1, 2:] + exact[:-2, 1:-1] + exact[2:, 1:-1])
    return Workload("Jacobi", definitions.jacobi, (start, steps), np.zeros_like(start), exact, 0)


def _attention(heads: int, n: int, d: int) -> Workload:
    q, keys, v = (_floats(heads, n, d) for _ in range(3))
    scores = np.einsum("hid,hjd->hij", q.astype(float), keys) / np.sqrt(d)
    size = np.einsum("hid,hjd->hij", abs(q.astype(float)), abs(keys)).max() / np.sqrt(d)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    weights /= weights.sum(2, keepdims=True)
    bound = _EPS * (2 * n + 4 * d * size) * (weights @ abs(v))
    given, output, pairs = (q, keys, v), np.zeros_like(q), heads * n * n
    return Workload(
        *("attention", definitions.attention, given, output, weights @ v, bound),
        multiply_adds=2 * pairs * d,
        functions={"exp!": pairs},
    )


def _total(n: int) -> Workload:
    x = _floats(n)
    wide = x.astype(float)
    bound = n * _EPS * abs(wide).sum(keepdims=True)
    return Workload("sum", definitions.total, (x,), np.zeros(1, np.float32), wide.sum(keepdims=True), bound)


def _argmax(n: int) -> Workload:
    x = _floats(n)
    return Workload("argmax", definitions.argmax, (x,), np.zeros(1, np.int64), np.array([x.argmax()]), 0)


def _histogram(n: int) -> Workload:
    x = _random(0).integers(0, 256, n, np.uint8)
    exact = np.bincount(x, minlength=256)
    return Workload("histogram", definitions.histogram, (x,), np.zeros(256, np.int64), exact, 0)


def _harris(n: int) -> Workload:
    image = _floats(n + 4, n + 4)
    xx, xy, yy = _gradients(image.astype(float), np.subtract)
    exact = xx * yy - xy * xy - 0.04 * (xx + yy) ** 2
    # The same with absolute values, so that nothing cancels: gradients of eight terms, sums of nine products.
    xx, xy, yy = _gradients(abs(image.astype(float)), np.add)
    bound = 64 * _EPS * (xx * yy + xy * xy + 0.04 * (xx + yy) ** 2)
    return Workload("Harris", definitions.harris, (image,), np.zeros((n, n), np.float32), exact, bound)


def _gradients(image: Array, minus: Callable[[Array, Array], Array]) -> tuple[Array, Array, Array]:
    """Sums of products of the gradients along both axes."""
    columns = image[:-2] + 2 * image[1:-1] + image[2:]
    rows = image[:, :-2] + 2 * image[:, 1:-1] + image[:, 2:]
    dx, dy = minus(columns[:, 2:], columns[:, :-2]), minus(rows[2:], rows[:-2])
    return sums_of_nine(dx * dx), sums_of_nine(dx * dy), sums_of_nine(dy * dy)


def _spmv(n: int, nonzeros: int) -> Workload:
    draw = _random(0)
    starts = np.concatenate([[0], np.sort(draw.integers(0, nonzeros, n - 1)), [nonzeros]]).astype(np.int32)
    values, columns, x = _floats(nonzeros), draw.integers(0, n, nonzeros).astype(np.int32), _floats(n)
    terms = values.astype(float) * x[columns]
    ends = [np.concatenate([[0.0], np.cumsum(each)]) for each in (terms, abs(terms))]
    exact, sizes = (each[starts[1:]] - each[starts[:-1]] for each in ends)
    bound = _EPS * (np.diff(starts) * sizes + 1)
    return Workload(
        "SpMV", definitions.spmv, (values, columns, starts, x), np.zeros(n, np.float32), exact, bound, nonzeros
    )


def workloads(*, quick: bool) -> dict[str, Callable[[], Workload]]:
    """A maker of each workload, by name; `quick` makes small ones."""
    full = not quick
    return {
        **{f"matmul {n}": _matmul(n, n, n) for n in ((512, 1024, 2048) if full else (40,))},
        "matmul odd": _matmul(1000, 777, 513) if full else _matmul(10, 33, 7),
        "matmul f64": lambda: _matmul_f64(1024 if full else 40),
        "matmul i8": lambda: _matmul_i8(1024 if full else 40),
        "chain": lambda: _chain(1 << 24 if full else 1000),
        "softmax": lambda: _softmax(*(4096, 4096) if full else (5, 70)),
        "layer_norm": lambda: _layer_norm(*(4096, 1024) if full else (5, 70)),
        "convolution": lambda: _convolution(*(64, 64, 56) if full else (2, 3, 20)),
        "depthwise": lambda: _depthwise(*(128, 56) if full else (3, 20)),
        "blur": lambda: _blur(4096 if full else 40),
        "blur_u8": lambda: _blur_u8(4096 if full else 40),
        "jacobi": lambda: _jacobi(*(2048, 100) if full else (20, 4)),
        "attention": lambda: _attention(*(8, 1024, 64) if full else (2, 20, 8)),
        "sum": lambda: _total(1 << 24 if full else 1000),
        "argmax": lambda: _argmax(1 << 24 if full else 1000),
        "histogram": lambda: _histogram(1 << 24 if full else 1000),
        "harris": lambda: _harris(2048 if full else 30),
        "spmv": lambda: _spmv(*(100_000, 1_000_000) if full else (20, 100)),
    }
