"""Kernels in other processes: pickled by name or as text, with options, constants and content."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import sys
from operator import methodcaller

import numpy as np
import pytest

import tirlite as tl
from tirlite.bench.networks import mlp
from tirlite.graph.builder.builder import Builder
from tirlite.graph.expr import operands_first

n = tl.dim("n")
SCALE = 3


@tl.kernel
def scaled(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    """Three times x."""
    for i in range(n):
        y[i] = SCALE * x[i]


def test_a_kernel_of_a_module_is_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[scaled.__module__])
    assert pickle.loads(pickle.dumps(scaled)) is scaled


def test_where_the_name_means_another_kernel_the_text_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pickle.dumps(scaled)
    monkeypatch.setattr(sys.modules[scaled.__module__], "scaled", tl.compile(scaled, debug=True))
    other = pickle.loads(data)
    assert other is not scaled
    assert not other.options.debug
    assert other(np.arange(3)).tolist() == [0, 3, 6]
    assert other.__doc__ == "Three times x."
    assert other.captures == {"SCALE": 3}


def test_a_kernel_without_a_name_travels_as_text() -> None:
    target = tl.Target.host(workers=3).with_memory("local.UB", tl.MemoryInfo(8, 256, 1 << 20))
    made = tl.compile(scaled, strategy="share", target=target, passes=[tl.passes.RemoveNoOps()])
    other = pickle.loads(pickle.dumps(made))
    assert tl.structural_equal(other.ir, made.ir)
    assert (other.options.strategy, other.options.target.memories) == ("share", target.memories)
    assert other(np.arange(3)).tolist() == [0, 3, 6]


def test_the_constants_of_a_network_travel_with_its_kernel() -> None:
    net = tl.graph.compile(mlp().function)
    x = np.ones((2, 64), np.float32)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(net.kernel))(x), net(x))
    other = pickle.loads(pickle.dumps(net))
    np.testing.assert_array_equal(other(x), net(x))
    assert str(other.function) == str(net.function)


def test_a_network_is_compiled_before_its_first_call_and_known_by_its_content() -> None:
    first, second = (tl.graph.compile(mlp().function) for _ in range(2))
    assert first.compile() is first
    assert second.compile(background=True).result() is second
    assert all("link" in each.timing for each in (first, second))
    assert first.__dask_tokenize__() == second.__dask_tokenize__()
    assert first.__dask_tokenize__() != tl.graph.compile(mlp().function, debug=True).__dask_tokenize__()
    assert copy.copy(first) is copy.deepcopy(first) is first


def test_a_deep_network_travels_without_a_deep_stack() -> None:
    g = Builder("deep")
    y = g.input("x", tl.f32[4])
    for _ in range(3000):
        y = g.relu(y)
    function = pickle.loads(pickle.dumps(g.function({"y": y})))
    assert len(operands_first(function.body)) == 3001
    assert function.body.op.name == "relu"


def test_the_token_of_a_kernel_is_its_content() -> None:
    token = scaled.__dask_tokenize__()
    assert tl.compile(scaled).__dask_tokenize__() == token
    assert pickle.loads(pickle.dumps(tl.compile(scaled))).__dask_tokenize__() == token
    assert tl.compile(scaled, debug=True).__dask_tokenize__() != token


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_kernels_go_to_processes_of_each_kind(method: str) -> None:
    with multiprocessing.get_context(method).Pool(1) as pool:
        # By name it would take this file to be importable there.
        (result,) = pool.map(methodcaller("__call__", np.arange(3)), [tl.compile(scaled)])
    assert result.tolist() == [0, 3, 6]
