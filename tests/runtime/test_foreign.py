"""Arrays of other libraries as arguments: seen where they are, and never copied where they are written."""

from __future__ import annotations

import array
import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

import tirlite as tl
from tirlite.runtime.foreign import _Tensor, _Versioned

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = 2 * x[i]


X = np.arange(4, dtype=np.float32)


class Holder:
    """An object of another library that holds an array."""

    def __init__(self, held: np.ndarray) -> None:
        self.held = held


class WithInterface(Holder):
    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.held.__array_interface__


class WithStoredInterface(Holder):
    """As NumPy's own `DummyArray`: each object holds its interface, its class has none."""

    def __init__(self, held: np.ndarray) -> None:
        super().__init__(held)
        self.__array_interface__ = held.__array_interface__


class WithDlpack(Holder):
    def __dlpack__(self, **named: Any) -> object:
        return self.held.__dlpack__(**named)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.held.__dlpack_device__()


class OnAnotherDevice(WithDlpack):
    def __dlpack__(self, **named: Any) -> object:
        raise BufferError("not on this device")


class WithOldDlpack(WithDlpack):
    """As torch has them: the first version of DLPack, and a method that shows the memory."""

    def __dlpack__(self, stream: object = None) -> object:
        return self.held.__dlpack__()

    def __array__(self, dtype: object = None) -> np.ndarray:
        return self.held


class WithMethod(Holder):
    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return self.held


class ThatCopies(Holder):
    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("it takes a copy")
        return self.held.copy()


def mapped(held: np.ndarray) -> memoryview:
    memory = mmap.mmap(-1, held.nbytes)
    memory[:] = held.tobytes()
    return memoryview(memory).cast("f")


KINDS = [
    lambda held: memoryview(held.copy()),
    lambda held: array.array("f", held.tolist()),
    lambda held: (ctypes.c_float * held.size)(*held),
    mapped,
    WithInterface,
    WithStoredInterface,
    WithDlpack,
    WithOldDlpack,
    WithMethod,
]
NAMES = ["memoryview", "array", "ctypes", "mmap", "interface", "stored interface", "dlpack", "old dlpack", "method"]


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_other_arrays_are_read_and_written_where_they_are(kind: Any) -> None:
    assert doubled(kind(X.copy())).tolist() == [0, 2, 4, 6]
    y = kind(np.zeros(4, np.float32))
    assert doubled(X, y) is None
    assert np.asarray(getattr(y, "held", y)).tolist() == [0, 2, 4, 6]


def test_the_shape_and_the_overlap_of_other_arrays_are_checked() -> None:
    with pytest.raises(tl.CallValueError, match="axis 0 of `y` must be `n` = 4, and is 3"):
        doubled(WithDlpack(X), WithDlpack(np.zeros(3, np.float32)))
    with pytest.raises(tl.CallError, match="overlap"):
        doubled(WithDlpack(X), memoryview(X))


def test_what_is_read_only_is_read_and_not_written() -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    assert doubled(WithInterface(frozen)).tolist() == [0, 2, 4, 6]
    assert doubled(memoryview(X).toreadonly()).tolist() == [0, 2, 4, 6]
    with pytest.raises(tl.CallValueError, match="`y` must be writable"):
        doubled(X, memoryview(X).toreadonly())


def test_a_copy_is_read_and_not_written() -> None:
    assert doubled(ThatCopies(X)).tolist() == [0, 2, 4, 6]
    with pytest.raises(tl.CallTypeError, match="`y` must be an array of float32, and is a ThatCopies"):
        doubled(X, ThatCopies(X))


def test_another_device_and_other_elements_are_refused() -> None:
    with pytest.raises(tl.CallTypeError, match="is an OnAnotherDevice"):
        doubled(OnAnotherDevice(X))
    with pytest.raises(tl.CallTypeError, match="is an array of float64"):
        doubled(array.array("d", [1.0]))


class BfloatDlpack:
    """bfloat16 elements as other libraries hand them over: NumPy can neither make nor take them."""

    def __init__(self, bits: np.ndarray, *, version: int = 1, read_only: bool = False) -> None:
        self.bits = bits
        self.shape = (ctypes.c_int64 * bits.ndim)(*bits.shape)
        self.strides = (ctypes.c_int64 * bits.ndim)(*(each // 2 for each in bits.strides))
        tensor = _Tensor(bits.ctypes.data - 2, 1, 0, bits.ndim, 4, 16, 1, self.shape, self.strides, 2)
        self.made = tensor if version == 0 else _Versioned(version, 0, None, None, int(read_only), tensor)
        self.name = b"dltensor" if version == 0 else b"dltensor_versioned"

    def __dlpack__(self, **named: Any) -> object:
        if named and self.name == b"dltensor":
            raise TypeError("one argument too many")
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(("PyCapsule_New", ctypes.pythonapi))(ctypes.addressof(self.made), self.name, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@tl.kernel
def doubled_halves(x: tl.bf16[n, 2], y: tl.out[tl.bf16[n, 2]]):
    for i in range(n):
        for j in range(2):
            y[i, j] = x[i, j] * 2


def test_bfloats_of_other_libraries_are_seen_by_their_bits() -> None:
    bits = np.arange(0x3F80, 0x3F80 + 12, dtype=np.uint16).reshape(2, 6)
    for seen in (bits[:, ::3], bits[:, :2], bits[::-1, :2], bits.T[::3, :], bits[:0, :2]):
        for version in (0, 1):
            wanted = doubled_halves(seen)
            np.testing.assert_array_equal(doubled_halves(BfloatDlpack(seen, version=version)), wanted)
            held = np.zeros((3, 2), np.uint16)[: len(seen)]
            if version:
                doubled_halves(seen, BfloatDlpack(held))
                np.testing.assert_array_equal(held, wanted)
            else:  # the first version does not say that it may be written to
                with pytest.raises(tl.CallError, match="`y` must be writable"):
                    doubled_halves(bits[:, :2], BfloatDlpack(np.zeros((2, 2), np.uint16), version=version))
    with pytest.raises(tl.CallError, match="`y` must be writable"):
        doubled_halves(bits[:, :2], BfloatDlpack(np.zeros((2, 2), np.uint16), read_only=True))
    with pytest.raises(tl.CallTypeError, match="and is a BfloatDlpack"):
        doubled_halves(BfloatDlpack(bits[:, :2], version=2))
    with pytest.raises(tl.CallTypeError, match="float32, and is a BfloatDlpack"):
        doubled(BfloatDlpack(bits[0]))


def test_calls_that_are_quick_for_arrays_are_quick_for_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    @tl.kernel
    def tripled(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = 3 * x[i]

    y = np.zeros(4, np.float32)
    for _ in range(250):
        tripled(WithDlpack(X), WithDlpack(y))
    monkeypatch.setattr(tripled, "_binder", None)
    for x in (X, X + 1):
        tripled(WithDlpack(x), WithDlpack(y))
        np.testing.assert_array_equal(y, 3 * x)
        tripled(x, WithDlpack(y))
        np.testing.assert_array_equal(y, 3 * x)
    monkeypatch.undo()
    frozen = y.copy()
    frozen.flags.writeable = False
    for refused in (
        WithDlpack(frozen),
        WithDlpack(y.astype(float)),
        OnAnotherDevice(y),
        ThatCopies(y),
        WithDlpack(y[:3]),
    ):
        with pytest.raises(tl.CallError):
            tripled(X, refused)


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    x = torch.arange(24.0).reshape(4, 6)
    for seen in (x[0], x[:, 1], x[1, ::2], torch.ones(1).expand(5), x[0].detach(), torch.arange(0.0)):
        wanted = 2 * seen
        y = torch.zeros(2 * len(seen))[::2]
        doubled(seen, y)
        assert torch.equal(y, wanted)
    for refused in (x[0].clone().requires_grad_(), torch.nn.Parameter(x[0])):
        with pytest.raises(tl.CallTypeError, match=r"use tensor.detach\(\)"):
            doubled(refused)
    negated = torch.complex(x[0], x[1]).conj().imag
    assert negated.is_neg()
    with pytest.raises(tl.CallTypeError, match="resolve_neg"):
        doubled(negated)
    with pytest.raises(tl.CallValueError, match="lie apart"):
        doubled(x[0, :3], torch.zeros(1).expand(3))
    with pytest.raises(tl.CallError, match="overlap"):
        doubled(x[0], x[0])
    halves = torch.arange(8, dtype=torch.bfloat16).reshape(2, 4).T
    out = torch.zeros((4, 2), dtype=torch.bfloat16)
    doubled_halves(halves, out)
    assert torch.equal(out, 2 * halves)


def test_arrays_of_jax() -> None:
    jnp = pytest.importorskip("jax.numpy")
    x = jnp.arange(6.0, dtype=jnp.float32)
    np.testing.assert_array_equal(doubled(x), 2 * np.asarray(x))
    with pytest.raises(tl.CallValueError, match="`y` must be writable"):
        doubled(x, x + 1)
    halves = jnp.ones((3, 2), jnp.bfloat16)
    np.testing.assert_array_equal(doubled_halves(halves), np.asarray(2 * halves).view(np.uint16))
    with pytest.raises(tl.CallValueError, match="`y` must be writable"):
        doubled_halves(halves, halves + 1)


def test_columns_of_pandas_and_arrays_of_xarray() -> None:
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    frame = pandas.DataFrame({"a": X, "b": X + 1})
    for seen in (frame["b"], frame.b[::-1], xarray.DataArray(X + 1), xarray.DataArray(X + 1)[::2]):
        np.testing.assert_array_equal(doubled(seen), 2 * np.asarray(seen))
