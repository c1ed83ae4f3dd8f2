"""Arrays of other libraries as arguments: seen where they are, and never copied where they are written."""

from __future__ import annotations

import array
import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

import tirlite as tl

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
    WithDlpack,
    WithOldDlpack,
    WithMethod,
]
NAMES = ["memoryview", "array", "ctypes", "mmap", "interface", "dlpack", "old dlpack", "method"]


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


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    y = torch.zeros(4)
    doubled(torch.arange(4.0), y)
    assert y.tolist() == [0, 2, 4, 6]


def test_jax() -> None:
    jax = pytest.importorskip("jax")
    assert doubled(jax.numpy.arange(4.0)).tolist() == [0, 2, 4, 6]
