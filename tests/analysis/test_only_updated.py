"""What is only updated has no value unless it had one before: temporaries are refused, outputs are to be given."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl
from tirlite.analysis.param_uses import only_updated

n = tl.dim("n")
HEADER = "n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.out[tl.f32[n]]):\n"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("for i in range(n):\n        y[i] += x[i]", ["y"]),
        ("for i in range(1, n):\n        y[i] = y[i - 1] + tl.exp(y[i])", ["y"]),
        ("y[0] = 0\n    for i in range(n):\n        y[i] += x[i]", []),
        ("for i in range(n):\n        y[i] = x[i] if i == 0 else y[i - 1]", []),
        ("t = tl.alloc(tl.f32[n])\n    for i in range(n):\n        t[i] = max(t[i], x[i])\n        y[i] = t[i]", ["t"]),
        ("t = tl.view(y, tl.i32[n])\n    t[0] = 1\n    y[0] += 1", []),
        ("tl.call_extern('f32', 'f', tl.address_of(y[0]))\n    y[0] += 1", []),
    ],
)
def test_a_buffer_is_only_updated(body: str, names: list[str]) -> None:
    assert [each.name for each in only_updated(tl.parse(HEADER + "    " + body))] == names


@tl.kernel
def summed(x: tl.f32[n], y: tl.out[tl.f32[1]]):
    for i in range(n):
        y[0] += x[i]


@tl.kernel
def through_a_temporary(x: tl.f32[n], y: tl.f32[n]):
    t = tl.alloc(tl.f32[n])
    for i in range(n):
        t[i] += x[i]
    for i in range(n):
        y[i] = t[i]


def test_an_output_that_is_only_updated_is_to_be_given() -> None:
    x, total = np.ones(3, np.float32), np.ones(1, np.float32)
    summed(x, total)
    assert total == [4]
    for run in (summed, summed.interpret):
        with pytest.raises(tl.CallValueError, match="is not given `y`, which it updates"):
            run(x)


def test_a_temporary_that_is_only_updated_is_refused() -> None:
    with pytest.raises(tl.KernelError, match="`t` is read, and nothing gives it a first value"):
        _ = through_a_temporary.lowered
