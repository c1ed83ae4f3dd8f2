"""Wide unsigned integers as floats, in straight lines of code that LLVM joins into vectors."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")


@pytest.mark.parametrize("wide", ["u16", "u32", "u64"])
@pytest.mark.parametrize("real", ["f32", "f64"])
def test_the_sign_that_an_integer_had_is_no_sign(wide: str, real: str) -> None:
    stores = "\n".join(f"        y[4 * i + {k}] = tl.{real}(tl.{wide}(x[4 * i + {3 - k}])) * a" for k in range(4))
    func = tl.parse(
        f'n = tl.dim("n")\n@tl.kernel\ndef f(x: tl.i8[4 * n], z: tl.i8[n], a: tl.{real}, y: tl.{real}[4 * n]):\n'
        f"    for i in range(n):\n{stores}\n"
    )
    x = -np.arange(1, 9, dtype=np.int8)
    y, wanted = np.zeros(8, getattr(tl, real).numpy), np.zeros(8, getattr(tl, real).numpy)
    kernel = tl.compile(func)
    kernel(x, np.zeros(2, np.int8), 2.0, y)
    kernel.interpret(x, np.zeros(2, np.int8), 2.0, wanted)
    np.testing.assert_array_equal(y, wanted)
    assert y.min() > 60000
