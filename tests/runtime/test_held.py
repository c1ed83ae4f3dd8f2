"""What the caches hold is tried once for each size, and decides which stores a call uses."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import tirlite as tl
from tirlite.codegen import lower
from tirlite.runtime import held
from tirlite.runtime.held import holds_address
from tirlite.target.convention import HOLDS
from tirlite.target.processor import runs_here

TARGET = tl.Target("x86-64-v3")
ANSWER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
MIB = 1 << 20
n = tl.dim("n")

pytestmark = pytest.mark.skipif(not runs_here(TARGET.name), reason="code for another machine")


@tl.kernel
def grown(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    for i in range(n):
        y[i] = tl.exp(x[i])


def test_an_answer_stands_and_more_than_96_mib_are_never_held() -> None:
    holds = ANSWER(holds_address())
    for size in (1, 24 * MIB, 25 * MIB, 48 * MIB):
        first = holds(size)
        assert first in (0, 1)
        assert holds(size) == first
    assert holds(24 * MIB) == holds(1)
    assert holds(96 * MIB + 1) == holds(1 << 60) == 0


@pytest.mark.parametrize("answer", [0, 1])
def test_calls_ask_where_all_their_arrays_are_large(monkeypatch: pytest.MonkeyPatch, answer: int) -> None:
    asked: list[int] = []

    @ANSWER
    def told(size: int) -> int:
        asked.append(size)
        return answer

    monkeypatch.setattr(held, "holds_address", lambda: ctypes.cast(told, ctypes.c_void_p).value)
    kernel = tl.compile(grown, target=TARGET)
    x = np.random.default_rng(0).normal(size=2 * MIB).astype(np.float32)
    few, all_of_them = kernel(x[:1000]), kernel(x)
    assert asked == [2 * x.nbytes]
    np.testing.assert_array_equal(few, all_of_them[:1000])
    np.testing.assert_array_equal(all_of_them, tl.compile(grown, schedule=None)(x))


def test_exported_code_goes_by_what_its_target_has() -> None:
    func = tl.compile(grown, target=TARGET).lowered
    assert HOLDS in lower(func, target=TARGET.name).text
    text = lower(func, exported=True, target=TARGET.name).text
    assert "!nontemporal" in text
    assert HOLDS not in text
