"""The compiled way into a kernel: it runs what fits, and leaves all else to `Binder`, untouched."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.driver.kernel import _OFTEN
from tirlite.ir.builder import Builder
from tirlite.runtime import quick
from tirlite.runtime.workspace import QUICK_BYTES, quick_block

n, m = tl.dims("n m")
rows = tl.dim("rows", min=2, max=8, multiple_of=2)


@tl.kernel
def double(x: tl.f32[n, m], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            y[i, j] = 2 * x[i, j]


@tl.kernel
def pairs(x: tl.i32[rows, 3], y: tl.i32[rows]):
    for i in range(rows):
        y[i] = x[i, 0] + x[i, 2]


@tl.kernel
def checked(x: tl.i64[n], y: tl.i64[n]):
    for i in range(n):
        y[i] = x[i]
        assert x[i] < 5, f"{x[i]} is too large"
        assert x[i] >= 0, "too small"


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def quick_of(kernel: tl.Kernel, *args: object) -> Callable[..., object]:
    kernel(*args)
    found = kernel._version.executable.quick()
    assert found is not None
    return found


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def test_what_fits_is_run() -> None:
    y = np.zeros_like(X)
    call = quick_of(double, X, y.copy())
    assert call(X, y) is None
    np.testing.assert_array_equal(y, 2 * X)
    assert call(read_only(X), y[:]) is None


@every(
    "arrays",
    [
        (X,),
        (X, X.copy(), X.copy()),
        (X, X),
        (X.ravel()[:4].reshape(2, 2), X.ravel()[2:].reshape(2, 2)),
        (X, read_only(X)),
        (X, X[:1].copy()),
        (X, X.ravel().copy()),
        (X.T, X.T.copy()),
        (X, X.astype(np.float64)),
        (X, X.astype(">f4")),
        (X, X.tolist()),
        (np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)),
        (X, X.copy().view(np.ma.MaskedArray)),
        (np.frombuffer(b"x" * 25, np.float32, 6, 1).reshape(2, 3), X.copy()),
        (None, None),
    ],
)
def test_what_does_not_fit_is_left_alone(arrays: tuple[object, ...]) -> None:
    before = [np.array(each, copy=True) for each in arrays]
    assert quick_of(double, X, X.copy())(*arrays) is NotImplemented
    for one, other in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("count", "fits"), [(2, True), (3, False), (8, True), (10, False), (0, False)])
def test_facts_of_dims_and_fixed_extents_are_checked(count: int, fits: bool) -> None:
    call = quick_of(pairs, np.ones((2, 3), np.int32), np.zeros(2, np.int32))
    x, y = np.ones((count, 3), np.int32), np.zeros(count, np.int32)
    assert call(x, y) is (None if fits else NotImplemented)
    assert y.tolist() == [2 if fits else 0] * count
    assert call(np.ones((2, 4), np.int32), y[:2]) is NotImplemented


def test_a_kernel_that_is_called_often_says_and_does_the_same() -> None:
    kernel = tl.compile(double)
    y = np.zeros_like(X)
    for _ in range(_OFTEN):
        assert kernel(X, y) is None
    assert kernel._quick is not None
    y[:] = 0
    assert kernel(X, y) is None
    np.testing.assert_array_equal(y, 2 * X)
    kernel(x=X, y=y)
    kernel(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
    for wrong in [(X,), (X, X), (X, X.T), (X, X.astype(int)), (X, read_only(X))]:
        with pytest.raises(tl.CallError) as often:
            kernel(*wrong)
        with pytest.raises(tl.CallError) as first:
            tl.compile(double)(*wrong)
        assert str(often.value) == str(first.value)


@tl.kernel
def shifted(x: tl.f32[n, m], by: tl.f32[m], y: tl.out[tl.f32[m, n]], most: tl.out[tl.f32[3]]):
    for i in range(n):
        for j in range(m):
            y[j, i] = x[i, j] + by[j]
    for k in range(3):
        most[k] = x[0, 0]


def test_outputs_that_are_left_out_are_made_for_quick_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, by = tl.compile(shifted), np.ones(3, np.float32)
    for _ in range(_OFTEN):
        kernel(X, by)
    with monkeypatch.context() as patched:
        patched.setattr(type(kernel._binder), "bind", None)
        y, most = kernel(X, by)
        wide, _ = kernel(X[:1], by)
        with pytest.raises(TypeError):
            kernel(X, by.astype(int))
    np.testing.assert_array_equal(y, X.T + 1)
    np.testing.assert_array_equal(wide, X[:1].T + 1)
    assert most.tolist() == [0, 0, 0]
    for wrong in [(X,), (X, by[:2]), (X, by.astype(int)), (X.T, by), (3, by)]:
        with pytest.raises(tl.CallError) as often:
            kernel(*wrong)
        with pytest.raises(tl.CallError) as first:
            tl.compile(shifted)(*wrong)
        assert str(often.value) == str(first.value)


def test_networks_are_called_quickly_with_their_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    g = tl.graph.Builder("layer")
    # A type of an object of its own, as arrays of files have it.
    weights = np.frombuffer(X.tobytes(), np.dtype("<f4").newbyteorder("=")).reshape(2, 3)
    net = tl.graph.compile(g.function({"y": g.relu(g.matmul(g.input("x", tl.f32[n, 2]), g.constant(weights)))}))
    x = np.array([[1, -1], [2, 3]], np.float32)
    wanted = np.maximum(x @ weights, 0)
    for _ in range(_OFTEN):
        net(x)
    monkeypatch.setattr(type(net.kernel._binder), "bind", None)
    np.testing.assert_array_equal(net(x), wanted)
    np.testing.assert_array_equal(net(x[:1]), wanted[:1])


def test_networks_of_many_constants_are_called_quickly_and_find_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    g = tl.graph.Builder("layers")
    x = first = g.input("x", tl.f32[n, 2])
    for k in range(40):
        x = g.add(x, g.constant(np.array([k, k % 3], np.float32)))
    y, z = g.concat([x, first, g.relu(first)], 0), g.exp(g.input("z", tl.f32[m]))
    net = tl.graph.compile(g.function({"y": y, "z_out": z, "x_out": x}))
    x, z = np.array([[1, -1], [2, 3]], np.float32), np.zeros(3, np.float32)
    for _ in range(_OFTEN):
        net(x, z)
    wanted = net(x, z)
    assert wanted[0].tolist() == (x + [780, 39]).tolist() + x.tolist() + np.maximum(x, 0).tolist()
    with monkeypatch.context() as patched:
        patched.setattr(type(net.kernel._binder), "bind", None)
        for given in (net(x, z), net(z=z, x=x)):
            for array, right in zip(given, wanted, strict=True):
                np.testing.assert_array_equal(array, right)
        assert [each.shape for each in net(x[:1], z[:2])] == [(3, 2), (2,), (1, 2)]
    assert [each.shape for each in net(x[:0], z[:2])] == [(0, 2), (2,), (0, 2)]
    with pytest.raises(tl.CallTypeError, match="`z`"):
        net(x, z.astype(int))
    out = np.zeros_like(wanted[0]), np.zeros(3, np.float32), np.zeros_like(x)
    net(x, z, out=out)
    np.testing.assert_array_equal(out[2], wanted[2])


def test_kernels_of_many_arrays_are_called_quickly() -> None:
    b = Builder("many")
    rows = [b.param(f"x{k}", tl.f32[n]) for k in range(20)]
    y = b.param("y", tl.f32[n])
    scratch = b.alloc("scratch", tl.f32[n])
    with b.for_("i", 0, n) as i:
        b.store(scratch, i, sum((row[i] for row in rows[1:]), rows[0][i]))
    with b.for_("i", 0, n) as i:
        b.store(y, i, scratch[n - 1 - i])
    kernel = tl.compile(b.build())
    arrays = [np.full(5, k, np.float32) + np.arange(5, dtype=np.float32) for k in range(20)]
    y = np.zeros(5, np.float32)
    call = quick_of(kernel, *arrays, y.copy())
    assert call(*arrays, y) is None
    np.testing.assert_array_equal(y, 190 + 20 * np.arange(5)[::-1])
    assert call(*arrays, arrays[7]) is NotImplemented
    assert call(*arrays[:-1], arrays[0][:4], y) is NotImplemented


def test_outputs_that_are_not_stored_whole_begin_as_zeros_in_quick_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    @tl.kernel
    def some(x: tl.f32[n], y: "tl.out[tl.f32[min(10, n) + n % 3, 2]]"):
        for i in range(n):
            if x[i] > 0:
                y[0, 1] = x[i]

    for _ in range(_OFTEN):
        some(X[0])
    monkeypatch.setattr(type(some._binder), "bind", None)
    for count in (1, 2, 3, 8, 20):
        y = some(np.arange(count, dtype=np.float32))
        assert y.shape == (min(10, count) + count % 3, 2)
        assert y[0].tolist() == [0, count - 1]
        assert not y[1:].any()


def test_arrays_without_elements_are_called_quickly_where_no_dim_must_be_more() -> None:
    k = tl.dim("k", min=0)

    @tl.kernel
    def shortened(x: tl.f32[n], told: tl.f32[k, 0], y: tl.f32[n - 1], z: tl.f32[k]):
        for i in range(n - 1):
            y[i] = x[i + 1]
        for i in range(k):
            z[i] = x[0]

    def given(*sizes: int) -> list[np.ndarray]:
        x, told, y, z = sizes
        return [np.arange(1, x + 1, dtype=np.float32), *(np.zeros(e, np.float32) for e in ((told, 0), y, z))]

    call = quick_of(shortened, *given(3, 2, 2, 2))
    for rows, count in ((3, 2), (1, 2), (2, 0), (1, 0)):
        arrays = given(rows, count, rows - 1, count)
        assert call(*arrays) is None
        assert arrays[2].tolist() == [*range(2, rows + 1)]
        assert arrays[3].tolist() == [1] * count
    for wrong in ((0, 2, 0, 2), (0, 2, -1 % 4, 2), (3, 1, 2, 2), (3, 2, 0, 2), (1, 2, 1, 2), (3, 0, 2, 1)):
        assert call(*given(*wrong)) is NotImplemented


def test_faults_are_told_as_ever() -> None:
    kernel = tl.compile(checked)
    x = np.zeros(3, np.int64)
    for _ in range(_OFTEN):
        kernel(x, np.zeros(3, np.int64))
    for value, text in ((9, "9 is too large"), (-1, "too small")):
        y = np.full(3, 7)
        with pytest.raises(tl.KernelAssertionError, match=text):
            kernel(np.array([0, value, 1]), y)
        assert y.tolist() == [0, value, 7]


def test_threads_may_call_it_at_once() -> None:
    call = quick_of(double, X, X.copy())
    x = np.ones((64, 64), np.float32)
    results = [np.zeros_like(x) for _ in range(4)]
    threads = [Thread(target=lambda y=y: [call(x, y) for _ in range(200)]) for y in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((y == 2).all() for y in results)


@tl.kernel
def through(x: tl.f64[n], y: tl.f64[n]):
    t = tl.alloc(tl.f64[n])
    for i in range(n):
        t[i] = x[i]
    for i in range(n):
        y[i] = t[i] + t[n - 1 - i]
    assert y[0] < 1000, f"{y[0]} is large"


@tl.kernel
def through_known(x: tl.f64[n], y: tl.f64[n]):
    t = tl.alloc(tl.f64[20000])
    for i in range(20000):
        t[i] = x[i % n]
    for i in range(n):
        y[i] = t[19999 - i]


def test_temporaries_lie_in_one_block_that_one_call_uses_at_a_time() -> None:
    y, record = np.zeros(100), ctypes.cast(quick_block().address, ctypes.POINTER(ctypes.c_int64))
    call, known = quick_of(through, y.copy(), y.copy()), quick_of(through_known, y.copy(), y.copy())
    x = np.arange(100.0)
    assert call(x, y) is None
    assert y.tolist() == [99.0] * 100
    assert known(x, y) is None
    assert y.tolist() == [float((19999 - i) % 100) for i in range(100)]
    assert type(call(x + 1000, y)) is int
    assert record[0] == 0  # given back, though the kernel stopped
    record[0] = 1
    assert call(x, y) is NotImplemented
    record[0] = 0
    large = np.zeros(QUICK_BYTES // 8 + 1)
    assert call(large, large.copy()) is NotImplemented
    assert call(large[:-32], large[:-32].copy()) is None


def test_threads_that_meet_in_the_block_have_temporaries_of_their_own() -> None:
    def work(number: int) -> bool:
        x = np.full(20000, float(number))
        results = [np.zeros_like(x) for _ in range(40)]
        for y in results:
            through(x, y)
        return all(bool((y == 2 * number).all()) for y in results)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(16)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_in_the_midst_of_a_quick_call_leaves_the_block_free() -> None:
    call = quick_of(through, np.zeros(4), np.zeros(4))
    record = ctypes.cast(quick_block().address, ctypes.POINTER(ctypes.c_int64))
    record[0] = 1
    child = os.fork()
    if child == 0:
        os._exit(0 if call(np.zeros(4), np.zeros(4)) is None else 1)
    record[0] = 0
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


NUMBERS = ("bool_", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64")
GIVEN = [value for size in (0, 1, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 70, 200) for value in (2**size, -(2**size))]
GIVEN += [value + more for value in GIVEN for more in (-1, 1)] + [True, False, 0.0, -0.0, 0.1, 1e300, -np.inf, np.nan]
GIVEN += [
    3.4028235e38,
    3.40282356e38,
    np.float32(0.1),
    np.float64(0.1),
    np.float64(1e39),
    np.int8(-3),
    np.uint64(2**63),
]
GIVEN += [np.True_, np.int64(-5), np.float16(0.1), np.longlong(7), np.array(3), None, "1", 1j, X]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_what_the_binder_makes_of_them(name: str) -> None:
    dtype = getattr(tl, name)

    @tl.kernel
    def keep(given: dtype, y: dtype[1]):
        y[0] = given

    call, types = quick_of(keep, True, np.ones(1, dtype.numpy)), set()
    for given in GIVEN:
        quickly, slowly = np.zeros(1, dtype.numpy), np.zeros(1, dtype.numpy)
        if call(given, quickly) is None:
            keep.interpret(given, slowly)
            assert quickly.tobytes() == slowly.tobytes(), given
            types.add(type(given))
        elif name == "i64" and type(given) is int:
            assert not -(2**63) <= given < 2**63
    assert types >= ({bool} if dtype.is_bool else {int, float, np.float64} if dtype.is_float else {int})


def test_numbers_of_all_kinds_go_with_arrays_strides_and_temporaries() -> None:
    @tl.kernel
    def many(
        a: tl.f64, b: tl.i8, x: tl.f32[n, m], c: tl.f32, d: tl.u16, y: tl.f32[n, m], e: tl.f32, on: tl.bool_, f: tl.i64
    ):
        row = tl.alloc(tl.f32[m])
        for i in range(n):
            for j in range(m):
                row[j] = x[i, j] + tl.f32(b) * (c if on else e)
            for j in range(m):
                y[i, j] = row[m - 1 - j] + tl.f32(a) * tl.f32(d) - tl.f32(f)

    y, call = np.zeros_like(X), quick_of(many, 0.5, -3, X, 0.25, 60000, X.copy(), 2.0, True, -9)
    for on in (True, False):
        assert call(0.5, -3, X, 0.25, 60000, y, 2, on, -9) is None
        np.testing.assert_array_equal(y, X[:, ::-1] - 3 * (0.25 if on else 2) + 30009)
    assert call(0.5, -129, X, 0.25, 60000, y, 2, True, -9) is NotImplemented
    assert call(0.5, -3, X, 0.25, 60000, X, 2, True, -9) is NotImplemented

    @tl.kernel
    def scaled(k: tl.f32, x: tl.f32[n, m], y: tl.f32[n, m]):
        for i in range(n):
            for j in range(m):
                y[i, j] = k * x[i, j]

    for given in (X, np.asfortranarray(X)):
        for _ in range(_OFTEN + 1):
            scaled(0.5, given, y)
            np.testing.assert_array_equal(y, X / 2)
    assert len(scaled._quick_versions) == 2


def test_there_is_none_for_what_needs_more_than_looks_at_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    @tl.kernel
    def scaled(x: tl.f32[n], k: tl.f16, y: tl.f32[n]):
        for i in range(n):
            y[i] = k * x[i]

    line = np.ones(4, np.float32)
    scaled(line, 2.0, line.copy())
    assert scaled._version.executable.quick() is None
    monkeypatch.setattr(quick, "_method", lambda: None)
    assert double._version.executable.quick() is None


def test_extents_of_a_dim_times_a_number_plus_another_are_called_quickly() -> None:
    @tl.kernel
    def halved(x: tl.f32[3 * n + 2, m - 1], y: tl.f32[n], z: tl.f32[m]):
        for i in range(n):
            y[i] = x[3 * i + 2, m - 2]
        z[m - 1] = x[0, 0]

    def given(rows: int, columns: int, dim: int, other: int) -> tuple[np.ndarray, ...]:
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        return x, np.zeros(dim, np.float32), np.zeros(other, np.float32)

    arrays = given(14, 5, 4, 6)
    halved(*arrays)
    call = halved._version.executable.quick()
    assert call is not None
    assert call(*arrays) is None
    np.testing.assert_array_equal(arrays[1], arrays[0][2:14:3, 4])
    # Rows without a whole dim, or below none; a dim of 0, which is for another version; dims that others do not have.
    for sizes in (
        (13, 5, 4, 6),
        (15, 5, 4, 6),
        (1, 5, 4, 6),
        (2, 5, 0, 6),
        (14, 5, 5, 6),
        (14, 5, 4, 5),
        (14, 6, 4, 6),
    ):
        assert call(*given(*sizes)) is NotImplemented
    with pytest.raises(tl.CallValueError, match="3 \\* n \\+ 2"):
        halved(*given(13, 5, 4, 6))


def test_extents_computed_from_dims_are_compared() -> None:
    @tl.kernel
    def pooled(x: tl.f32[n, m], y: tl.f32[(n - 5) // 3 + 2, 2 * (m // 2), n * m - 7 + n], z: tl.f32[m, n + m]):
        for i in range(m // 2):
            y[0, 2 * i + 1, 0] = x[0, i]
        z[0, 0] = 1

    def given(rows: int, columns: int, *more: int) -> tuple[np.ndarray, ...]:
        right = ((rows - 5) // 3 + 2, columns // 2 * 2, rows * columns - 7 + rows, columns, rows + columns)
        a, b, c, d, e = (max(each + extra, 0) for each, extra in zip(right, more or (0,) * 5, strict=True))
        return np.ones((rows, columns), np.float32), np.zeros((a, b, c), np.float32), np.zeros((d, e), np.float32)

    call = quick_of(pooled, *given(5, 4))
    for rows, columns in ((5, 4), (2, 7), (3, 9), (10, 3), (11, 2)):
        arrays = given(rows, columns)
        assert call(*arrays) is None
        assert arrays[1][0, 1, 0] == 1
        for axis in range(5):
            for more in (-1, 1):
                wrong = given(rows, columns, *(more if each == axis else 0 for each in range(5)))
                assert call(*wrong) is NotImplemented


def test_extents_of_random_arithmetic_are_computed_as_python_does() -> None:
    rng = np.random.default_rng(5)

    def text(depth: int) -> str:
        if depth == 0:
            return str(rng.choice(["n", "m", "n", "m", "3", "5", "7"]))
        a, b = text(depth - 1), text(depth - 1 - int(rng.integers(depth)))
        forms = (f"({a} + {b})", f"({a} - {b})", f"{a} * {b}", f"min({a}, {b})", f"max({a}, {b})")
        return str(rng.choice([*forms, f"({a}) // {rng.integers(1, 6)}", f"({a}) % {rng.integers(1, 6)}"]))

    extents = [f"max(1, {text(int(rng.integers(1, 4)))})" for _ in range(40)]
    heads = ", ".join(f"y{k}: tl.f32[{each}]" for k, each in enumerate(extents))
    dims = "n = tl.dim('n')\nm = tl.dim('m')\n"
    kernel = tl.compile(tl.parse(f"{dims}@tl.kernel\ndef many(x: tl.f32[n, m], {heads}):\n    y0[0] = x[0, 0]\n"))

    def given(rows: int, columns: int) -> list[np.ndarray]:
        sizes = [eval(each, {"n": rows, "m": columns}) for each in extents]
        return [np.ones((rows, columns), np.float32), *(np.zeros(size, np.float32) for size in sizes)]

    call = quick_of(kernel, *given(3, 4))
    for rows, columns in ((1, 1), (2, 5), (7, 3), (10, 12)):
        arrays = given(rows, columns)
        assert call(*arrays) is None
        for k in range(1, 41):
            assert call(*arrays[:k], np.zeros(len(arrays[k]) + 1, np.float32), *arrays[k + 1 :]) is NotImplemented


def test_extents_of_dims_that_later_arrays_tell_are_compared_too() -> None:
    @tl.kernel
    def before(y: tl.f32[n // 2, n + m], x: tl.f32[n, m]):
        for i in range(n // 2):
            y[i, 0] = x[2 * i, 0]

    def given(half: int, both: int, rows: int, columns: int) -> tuple[np.ndarray, ...]:
        return np.zeros((half, both), np.float32), np.ones((rows, columns), np.float32)

    call = quick_of(before, *given(2, 8, 5, 3))
    assert call(*given(3, 8, 6, 2)) is None
    for wrong in ((3, 8, 5, 3), (1, 8, 5, 3), (2, 7, 5, 3), (2, 8, 5, 4), (2, 8, 6, 3)):
        assert call(*given(*wrong)) is NotImplemented


@tl.kernel
def mixed(x: tl.f32[n, m], line: tl.f32[m], cell: tl.f64[()], y: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i, j] * 2 + line[m - 1 - j] + tl.f32(cell[()])


def test_arrays_with_strides_are_called_quickly_too() -> None:
    rng = np.random.default_rng(0)
    x, line, cell = rng.normal(size=(24, 40)).astype(np.float32), np.ones(40, np.float32), np.array(1.0)
    kernel = tl.compile(mixed)
    for _ in range(_OFTEN):
        kernel(x[::2, ::2], line[::2], cell, np.zeros((12, 40), np.float32)[:, ::2])
    call = kernel._quick
    assert call is not None
    room = np.zeros((48, 40), np.float32)
    for source in (x[::2, ::2], x[::-2, :20], x[:20, 3:15].T, np.broadcast_to(x[0, :20], (12, 20)), x[:1, ::2]):
        for at in np.s_[::4, ::2], np.s_[47::-4, 5:25], np.s_[:12, :20]:
            room[:] = 0
            result = room[at][: len(source)]
            assert call(source, line[::-2], cell, result) is None
            wanted = np.zeros(source.shape, np.float32)
            mixed(np.array(source), np.array(line[::-2]), cell, wanted)
            assert result.tobytes() == wanted.tobytes()
            result[:] = 0
            assert not room.any()


def test_what_strides_do_not_allow_is_left_to_python() -> None:
    kernel = tl.compile(mixed)
    x, cell, room = np.ones((8, 12), np.float32), np.array(1.0), np.zeros((16, 24), np.float32)
    for _ in range(_OFTEN):
        kernel(x[::2, ::2], x[0, ::2], cell, room[:4, :12:2])
    call = kernel._quick
    assert call is not None
    fields = np.zeros(24, [("a", "f4"), ("b", "u1")])
    wrong = [
        (x[:4, :6].copy(), x[0, :6].copy(), cell, room[:4, :6].copy()),  # for the version of dense arrays
        (x[::2, ::2], x[0, ::2], cell, room[:4, :12:2].T.copy().T),  # columns outside of rows
        (x[::2, ::2], x[0, ::2], cell, np.lib.stride_tricks.as_strided(room, (4, 6), (0, 8))),
        (x[::2, ::2], x[0, ::2], cell, np.lib.stride_tricks.as_strided(room, (4, 6), (16, 8))),
        (room[::4, ::4], room[0, ::4], cell, room[1::4, ::4]),  # between one another
        (x[::2, ::2], x[0, ::2], cell, x[1::2, ::2]),
        (x[::2, ::2], fields["a"][:18:3], cell, room[:4, :6]),  # 15 bytes apart
        (x[::2, ::2], x[0, ::2], cell, np.broadcast_to(room[0, 0], (4, 6))),
        (x[:0, ::2], x[0, ::2], cell, room[:0, :6]),
        (x[::2, ::2], x[0, ::3], cell, room[:4, :6]),
        (x[::2, ::2].astype(np.float64), x[0, ::2], cell, room[:4, :6]),
    ]
    for number, given in enumerate(wrong):
        assert call(*given) is NotImplemented, number
    assert not room[4:].any()
    assert (x == 1).all()


def test_dense_arrays_and_others_are_called_quickly_side_by_side() -> None:
    kernel = tl.compile(checked)
    x, room = np.zeros(8, np.int64), np.zeros(8, np.int64)
    for _ in range(_OFTEN):
        kernel(x[::2], room[::2])
        kernel(x[:4], room[:4])
    assert len(kernel._quick_versions) == 2
    for at in np.s_[::2], np.s_[:4]:
        x[at] = 3
        kernel(x[at], room[at])
        assert room[at].tolist() == [3] * 4
        x[at] = 9
        with pytest.raises(tl.KernelAssertionError, match="9 is too large"):
            kernel(x[at], room[at])
        with pytest.raises(tl.CallValueError, match="overlaps"):
            kernel(x[at], x[at])
