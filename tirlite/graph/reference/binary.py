"""The meanings of operators that broadcast. Integers wrap; `floor_divide` and `floor_mod` floor, `trunc_*` cut."""

from __future__ import annotations

import numpy as np

from tirlite.graph.reference.meaning import Array, Meaning, plain


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.power(x, y))
    # NumPy refuses negative exponents of integers: 1 and -1 have such powers, all else gives 0.
    positive = np.power(x, np.maximum(y, 0))
    inverse = np.where(x == 1, 1, np.where(x == np.asarray(-1).astype(x.dtype), 1 - 2 * (y & 1), 0))
    return np.where(y >= 0, positive, inverse).astype(x.dtype)


def _trunc_divide(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.trunc(x / y))
    floored = np.floor_divide(x, y)
    return np.asarray(floored + ((floored < 0) & (floored * y != x)).astype(x.dtype))


def _shift(x: Array, y: Array, *, left: bool) -> Array:
    # A shift by the width or more moves every bit out.
    bits = x.dtype.itemsize * 8
    inside = np.clip(y, 0, bits - 1)
    moved = np.left_shift(x, inside) if left else np.right_shift(x, inside)
    out = np.zeros_like(x) if left or x.dtype.kind == "u" else np.where(x < 0, -1, 0)
    return np.where((y >= 0) & (y < bits), moved, out).astype(x.dtype)


_UFUNCS = (
    "add subtract multiply divide maximum minimum floor_divide where less less_equal greater greater_equal"
    " equal not_equal logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor"
)

BINARY: dict[str, Meaning] = {
    **{name: plain(getattr(np, name)) for name in _UFUNCS.split()},
    "floor_mod": plain(np.remainder),
    "power": plain(_power),
    "prelu": plain(lambda x, slope: np.where(x < 0, slope * x, x)),
    "shift_left": plain(lambda x, y: _shift(x, y, left=True)),
    "shift_right": plain(lambda x, y: _shift(x, y, left=False)),
    "trunc_divide": plain(_trunc_divide),
    "trunc_mod": plain(np.fmod),
}
