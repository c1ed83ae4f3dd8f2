"""Programs with explicit allocation: what is allocated, how they read, that they compute the same."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.graph import Builder, Executable, evaluate, explicit_allocation


def test_each_tensor_has_a_storage_and_operators_write_where_they_are_told():
    n = tl.dim("n")
    g = Builder("net")
    x = g.input("x", tl.f32[n, 6])
    y = g.reshape(g.tanh(g.relu(x)), [n, 2, 3])
    assert str(explicit_allocation(g.function(y))) == (
        "def net(x: f32[n, 6]) -> reshape:\n"
        "    storage_0 = alloc_storage(size=24*n, alignment=64, dtype=f32, device=0)\n"
        "    relu = alloc_tensor(storage_0, offset=0, shape=(n, 6), dtype=f32)\n"
        "    invoke relu(x) -> relu\n"
        "    storage_1 = alloc_storage(size=24*n, alignment=64, dtype=f32, device=0)\n"
        "    tanh = alloc_tensor(storage_1, offset=0, shape=(n, 6), dtype=f32)\n"
        "    invoke tanh(relu) -> tanh\n"
        "    reshape = reshape_tensor(tanh, shape=(n, 2, 3))"
    )


def test_branches_write_to_storage_from_before_the_branch():
    g = Builder("net")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    f = g.function(g.if_(c, g.exp(g.tanh(x)), x))
    assert str(explicit_allocation(f)) == (
        "def net(x: f32[4], c: bool_[()]) -> if:\n"
        "    storage_0 = alloc_storage(size=16, alignment=64, dtype=f32, device=0)\n"
        "    if = alloc_tensor(storage_0, offset=0, shape=(4,), dtype=f32)\n"
        "    if c:\n"
        "        storage_1 = alloc_storage(size=16, alignment=64, dtype=f32, device=0)\n"
        "        tanh = alloc_tensor(storage_1, offset=0, shape=(4,), dtype=f32)\n"
        "        invoke tanh(x) -> tanh\n"
        "        invoke exp(tanh) -> if\n"
        "    else:\n"
        "        invoke identity(x) -> if"
    )


def test_a_parameter_that_is_returned_is_copied():
    g = Builder("net")
    x = g.input("x", tl.f32[4])
    net = explicit_allocation(g.function([x, x]))
    array = np.arange(4, dtype=np.float32)
    first, second = net(array)
    first[:] = 0
    assert array.tolist() == second.tolist() == [0, 1, 2, 3]


def test_functions_become_routines_before_those_that_invoke_them():
    n, m = tl.dim("n"), tl.dim("m")
    inner = Builder("inner")
    p = inner.input("p", tl.f32[n, 2])
    callee = inner.function([inner.exp(p), inner.reduce_sum(p, 1)], primitive=True)
    g = Builder("outer")
    x = g.input("x", tl.f32[m])
    f = g.function(g.invoke(callee, g.reshape(g.tanh(g.concat([x, x])), [m, 2])))
    net = explicit_allocation(f)
    assert [routine.name for routine in net.routines] == ["inner", "outer"]
    assert [routine.primitive for routine in net.routines] == [True, False]
    array = np.arange(3, dtype=np.float32)
    for a, b in zip(net(array), evaluate(f, array), strict=True):
        assert np.array_equal(a, b)


def test_tuples_are_parameters_too():
    pair = tl.graph.TupleType((tl.graph.tensor_type(tl.f32[2]), tl.graph.tensor_type(tl.i64[3])))
    x = tl.graph.Var("x", pair)
    f = tl.graph.Function("swap", (x,), tl.graph.Tuple((tl.graph.TupleGetItem(x, 1), x)))
    given = (np.ones(2, np.float32), np.arange(3))
    second, (first, again) = explicit_allocation(f)(given)
    assert second.tolist() == again.tolist() == [0, 1, 2]
    assert first.tolist() == [1, 1]


def test_half_precision_is_rounded_as_it_is_meant():
    g = Builder("half")
    x = g.input("x", tl.bf16[8])
    f = g.function(g.multiply(g.exp(x), x))
    bits = np.arange(0x3F00, 0x3F08).astype(np.uint16)
    assert np.array_equal(explicit_allocation(f)(bits), evaluate(f, bits))


def test_ten_thousand_operators_and_a_thousand_branches_are_no_problem():
    g = Builder("deep")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    y = x
    for _ in range(1000):
        y = g.if_(c, g.add(y, x), g.exp(x))
    for _ in range(5000):
        y = g.negative(y)
    net = explicit_allocation(g.function(y))
    assert str(Executable.from_json(net.to_json())) == str(net)
    assert net(np.ones(4, np.float32), np.bool_(True)).tolist() == [1001] * 4
