"""How often LLVM's passes run: each run leaves memory behind in the process, see docs/processes.md."""

from __future__ import annotations

import numpy as np
import pytest

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = 2 * x[i]


@tl.kernel
def fourfold(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    once = tl.alloc(tl.f32[n])
    tl.call(doubled, x, once)
    tl.call(doubled, once, y)


def test_passes_run_once_for_a_kernel_and_all_that_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    from tirlite.codegen.llvm import machine

    runs: list[object] = []
    optimise = machine._optimise

    def counted(module: object, *args: object, **named: object) -> None:
        runs.append(module)
        optimise(module, *args, **named)

    monkeypatch.setattr(machine, "_optimise", counted)
    kernel = tl.compile(fourfold)
    for _ in range(2):
        assert kernel(np.ones(3, np.float32)).tolist() == [4, 4, 4]
    assert len(runs) == 1
    for _ in range(2):
        assert "tirlite_fourfold" in kernel.optimised_llvm
        assert "tirlite_fourfold" in kernel.asm
    assert len(runs) == 2
    assert kernel(np.ones(0, np.float32)).tolist() == []
    assert len(runs) == 3
