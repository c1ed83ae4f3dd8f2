"""Indices that are remainders of the largest and the least number, where LLVM aborted the process."""

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def of_the_largest(x: tl.u8[n], w: tl.u8[n], y: tl.u8[n]):
    y[0] = x[9223372036854775807 % (n + 1)] + w[7 % n]
    y[1] = x[3 % (n + 1)] + w[9223372036854775807 % n]
    y[2] = x[9223372036854775807 % (n + 1)] + w[5 % n]
    y[3] = x[1 % (n + 1)] + w[9223372036854775807 % n]


@tl.kernel
def of_the_least(x: tl.u8[n], w: tl.u8[n], y: tl.u8[n]):
    y[0] = x[(-9223372036854775807 - 1) % (n + 1)] + w[7 % n]
    y[1] = x[3 % (n + 1)] + w[(-9223372036854775807 - 1) % n]


@pytest.mark.parametrize("kernel", [of_the_largest, of_the_least], ids=["largest", "least"])
@pytest.mark.parametrize("debug", [False, True], ids=["plain", "checked"])
def test_remainders_of_the_ends_of_integers_are_indices(kernel: tl.Kernel, debug: bool) -> None:
    x = np.arange(8, dtype=np.uint8)
    y, wanted = np.zeros_like(x), np.zeros_like(x)
    tl.compile(kernel, debug=debug)(x, x.copy(), y)
    kernel.interpret(x, x.copy(), wanted)
    np.testing.assert_array_equal(y, wanted)
    assert y[0] > 7
