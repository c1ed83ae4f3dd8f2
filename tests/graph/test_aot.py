"""Graphs as one function of the IR: what is allocated, called and returned, and that it computes the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from graph.leaves import leaves
from graph.random_graphs import random_graph

import tirlite as tl
from tirlite.driver.build import Version
from tirlite.graph import Builder, Function, compile, evaluate, lower  # noqa: A004
from tirlite.runtime.workspace import process_workspaces


def test_a_network_has_as_many_threads_as_it_is_told() -> None:
    g = Builder("wide")
    x = g.input("x", tl.f32[1 << 20])
    net = g.function(g.exp(x))
    values = np.linspace(-1, 1, 1 << 20, dtype=np.float32)
    one, two = (compile(net, threads=threads) for threads in (1, 2))
    assert "tirlite.fork_join" not in one.kernel.llvm
    assert "tirlite.fork_join" in two.kernel.llvm
    np.testing.assert_array_equal(one(values), two(values))
    with pytest.raises(tl.PlanError, match="0 workers"):
        compile(net, threads=0)


def test_networks_of_all_sizes_are_called_in_turns_and_by_several_threads() -> None:
    g = Builder("narrow")
    x = g.input("x", tl.f32[64, 64])
    narrow = g.function(g.matmul(g.tanh(g.matmul(x, x)), x))
    g = Builder("wide")
    x = g.input("x", tl.f32[512, 512])
    wide = g.function(g.softmax(g.matmul(g.relu(g.matmul(x, x)), x)))
    cases = []
    for function, extent in ((narrow, 64), (wide, 512)):
        values = np.random.default_rng(extent).standard_normal((extent, extent)).astype(np.float32)
        wanted = compile(function, threads=1)(values)
        cases += [(compile(function, threads=threads), values, wanted) for threads in (1, 2, None)]

    def calls(_: int) -> bool:
        return all(np.array_equal(net(values), wanted) for net, values, wanted in cases * 3)

    before = process_workspaces().idle_bytes
    assert calls(0)
    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(calls, range(8)))
    # What networks need for a call they share: one block for each of the calls that ran at one time.
    assert process_workspaces().idle_bytes < before + 6 * sum(int(net.plan.total) for net, _, _ in cases[::3])


def test_calls_take_names_and_arrays_for_results() -> None:
    g = tl.graph.Builder("named")
    n = tl.dim("n")
    x, y = g.input("x:0", tl.f32[n]), g.input("y", tl.f32[n])
    net = tl.graph.compile(g.function({"sum:0": g.add(x, y), "less": g.subtract(x, y)}))
    a, b = np.array([1, 2, 3], np.float32), np.array([1, 1, 1], np.float32)
    for call in (lambda: net(a, b), lambda: net(a, y=b), lambda: net(**{"x:0": a}, y=b), lambda: net(y=b, x_0=a)):
        np.testing.assert_array_equal(call(), [a + b, a - b])
    total, less = np.zeros((2, 3), np.float32)
    made = net(a, b, out=(total, less))
    assert made[0] is total
    np.testing.assert_array_equal([total, less], [a + b, a - b])
    total[:] = 0
    made = net(a, b, out={"sum:0": total})
    assert made[0] is total
    np.testing.assert_array_equal(made, [a + b, a - b])
    empty = np.zeros(0, np.float32)
    assert net(empty, empty, out=(empty.copy(), None))[1].shape == (0,)
    for wrong in (
        lambda: net(a, x_0=a),
        lambda: net(a, z=b),
        lambda: net(a, b, out=total),
        lambda: net(a, b, out={"z": a}),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError, match="sum_0"):
        net(a, b, out=(np.zeros(4, np.float32), less))


def chain() -> Function:
    n = tl.dim("n")
    g = Builder("net")
    x = g.input("x", tl.f32[n, 6])
    return g.function(g.reshape(g.tanh(g.relu(x)), (n, 2, 3)))


def test_each_tensor_is_an_allocation_and_each_operator_a_call():
    text = str(lower(chain()).func)
    assert text[text.index("def net") :] == (
        "def net(x: tl.f32[n, 6], output: tl.out[tl.f32[n, 2, 3]]):\n"
        "    sid_0 = tl.alloc(tl.f32[n, 6])\n"
        "    tl.call(relu, x, sid_0)\n"
        "    output_as = tl.view(output, tl.f32[n, 6])\n"
        "    tl.call(tanh, sid_0, output_as)"
    )


def test_one_code_serves_all_sizes():
    net = compile(chain())
    for n in (1, 4, 0):
        x = np.linspace(-1, 2, n * 6, dtype=np.float32).reshape(n, 6)
        np.testing.assert_allclose(net(x), evaluate(chain(), x), rtol=1e-6)


def test_operators_are_timed_by_call_and_by_kind():
    n = tl.dim("n")
    g = Builder("net")
    x = g.input("x", tl.f32[n, 8])
    once = g.matmul(x, np.ones((8, 5), np.float32))
    net = compile(g.function(g.matmul(once, np.ones((5, 5), np.float32))))
    profile = net.profile(np.ones((3, 8), np.float32))
    assert {kind: len(rows) for kind, rows in profile.kinds.items()} == {"matmul": 2}
    first, second = profile
    assert (first.bytes, second.bytes) == (4 * (3 * 8 + 8 * 5 + 3 * 5), 4 * (3 * 5 + 5 * 5 + 3 * 5))
    assert {each.limited_by for each in profile} <= {"bytes", "multiply-adds"}
    assert "calls of" in str(profile)


def test_equal_operators_share_a_function():
    g = Builder("net")
    x = g.input("x", tl.f32[4])
    func = lower(g.function(g.exp(g.relu(g.exp(x))))).func
    callees = [stmt.callee for stmt in func.body.stmts if isinstance(stmt, tl.ir.KernelCall)]
    assert [each.name for each in callees] == ["exp", "relu", "exp"]
    assert callees[0] is callees[2]


def test_what_is_returned_as_it_came_is_copied():
    g = Builder("net")
    x, y = g.input("x", tl.f32[2]), g.relu(g.input("y", tl.f32[2]))
    net = compile(g.function([x, y, y, g.constant(np.ones(3, np.float32))]))
    a, b = np.array([1, 2], np.float32), np.array([-1, 3], np.float32)
    one, two, three, four = net(a, b)
    assert one.tolist() == [1, 2]
    assert two.tolist() == three.tolist() == [0, 3]
    assert four.tolist() == [1, 1, 1]
    assert one is not a


def test_a_branch_computes_right_into_the_result():
    g = Builder("net")
    c, x = g.input("c", tl.bool_), g.input("x", tl.f32[3])
    f = g.function(g.if_(c, g.exp(x), g.relu(g.negative(x))))
    net = compile(f)
    assert "tl.call(exp, x, output)" in str(net.ir)
    x_value = np.array([-1, 0, 2], np.float32)
    for condition in (True, False):
        np.testing.assert_allclose(net(condition, x_value), evaluate(f, condition, x_value), rtol=1e-6)


def test_callers_give_no_constants():
    g = Builder("net")
    net = compile(g.function(g.add(g.input("x", tl.f32[2]), np.array([1, 2], np.float32))))
    x = np.ones(2, np.float32)
    assert net(x).tolist() == net.interpret(x).tolist() == [2, 3]
    with pytest.raises(tl.CallTypeError):
        net(x, x, x)
    with pytest.raises(tl.CallTypeError):
        net()


def test_inputs_may_have_gaps_and_any_order_of_axes():
    g = Builder("net")
    x, y = g.input("x", tl.f32[3, 4]), g.input("y", tl.f32[3, 4])
    f = g.function(g.subtract(x, y))
    gaps = np.arange(24, dtype=np.float32).reshape(4, 6)[:3, 1:5]
    turned = np.arange(12, dtype=np.float32).reshape(4, 3).T
    net = compile(f)
    for arguments in ((gaps, turned), (gaps, gaps), (turned[::-1], gaps)):
        np.testing.assert_array_equal(net(*arguments), evaluate(f, *arguments))


def test_devices_are_seen_through():
    g = Builder("net")
    with g.on(1):
        a = g.exp(g.input("x", tl.f32[4]))
    with g.on(2):
        f = g.function(g.negative(a))
    x = np.zeros(4, np.float32)
    assert compile(f)(x).tolist() == evaluate(f, x).tolist() == [-1] * 4


def test_what_constants_alone_make_is_known_before():
    g = Builder("net")
    x, ones = g.input("x", tl.f32[2, 3]), g.constant(np.ones((3, 2), np.float32))
    f = g.function([g.add(x, g.transpose(ones)), g.exp(ones)])
    net = compile(f)
    assert "transpose" not in str(net.ir)
    for got, wanted in zip(net(np.ones((2, 3), np.float32)), evaluate(f, np.ones((2, 3), np.float32)), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_kept_tensors_are_what_they_were_when_they_were_computed():
    g = Builder("net")
    a = g.exp(g.input("x", tl.f32[2]))
    b = g.negative(a)
    net = compile(g.function(g.relu(b)), keep=[a, b])
    traced = net.trace(np.zeros(2, np.float32))
    assert traced[a].tolist() == [1, 1]
    assert traced[b].tolist() == [-1, -1]
    assert net(np.zeros(2, np.float32)).tolist() == [0, 0]


@pytest.mark.parametrize("keep", ["some", [3], 7])
def test_what_is_no_expression_cannot_be_kept(keep: object) -> None:
    g = Builder("net")
    f = g.function(g.exp(g.input("x", tl.f32[2])))
    with pytest.raises(tl.CallTypeError, match="option `keep` takes several expressions, or 'all', and is given"):
        compile(f, keep=keep)


def test_a_function_that_is_called_brings_its_constants_and_its_dims():
    n, m = tl.dims("n m")
    inner = Builder("inner")
    scaled = inner.function(inner.multiply(inner.input("v", tl.f32[m]), inner.constant(np.full(1, 3, np.float32))))
    g = Builder("net")
    x = g.input("x", tl.f32[n])
    once = g.invoke(scaled, x)
    f = g.function(g.invoke(scaled, g.concat([once, x])))
    net = compile(f)
    value = np.arange(4, dtype=np.float32)
    assert net(value).tolist() == evaluate(f, value).tolist() == [0, 9, 18, 27, 0, 3, 6, 9]


def test_functions_that_are_called_share_the_kernels_of_equal_operators():
    def inner(name: str) -> Function:
        g = Builder(name)
        return g.function(g.exp(g.input("v", tl.f32[4])))

    g = Builder("net")
    first, second = inner("first"), inner("second")
    func = lower(g.function(g.invoke(first, g.invoke(second, g.input("x", tl.f32[4]))))).func
    one, other = (stmt.callee for stmt in func.body.stmts if isinstance(stmt, tl.ir.KernelCall))
    assert one.body.stmts[0].callee is other.body.stmts[0].callee


def test_outputs_are_called_as_they_are_given_or_numbered():
    def names(outputs: object) -> list[str]:
        return [buffer.name for buffer in lower(g.function(outputs)).func.outputs]

    g = Builder("net")
    x = g.input("x", tl.f32[4])
    assert names(g.exp(x)) == ["output"]
    assert names([g.exp(x), g.abs(x)]) == ["output0", "output1"]
    assert names({"a.b": g.exp(x), "c": x}) == ["a_b", "c"]


def test_planners_of_users_plan_main():
    seen = []

    def planner(problem: tl.plan.Problem) -> tl.plan.Plan:
        seen.append(sorted(request.id for request in problem.requests))
        return tl.plan.solve(problem, "none")

    g = Builder("net")
    f = g.function(g.relu(g.matmul(g.exp(g.input("x", tl.f32[2, 2])), np.eye(2, dtype=np.float32))))
    net = compile(f, strategy=planner, fuse=False)
    x = np.zeros((2, 2), np.float32)
    np.testing.assert_allclose(net(x), evaluate(f, x), rtol=1e-6)
    assert any({"sid_0", "sid_1"} <= set(each) for each in seen)


def test_names_that_clash_are_refused():
    g = Builder("net")
    x = g.add(g.input("a.b", tl.f32[3]), g.input("a_b", tl.f32[3]))
    with pytest.raises(tl.TirliteError, match=r"`a.b` and `a_b` of `net` both become parameter `a_b`"):
        compile(g.function(x))


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_compute_what_they_mean(seed: int):
    sample = random_graph(seed, symbolic=seed % 2 == 1, most=12)
    net = compile(sample.function, strategy=("none", "share", "auto")[seed % 3])
    for arguments in sample.arguments:
        got, wanted = net(*arguments), evaluate(sample.function, *arguments)
        for a, b in zip(leaves(got), leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_the_page_of_a_network_has_its_tensors_as_text():
    g = Builder("net")
    x = g.input("x", tl.f32[64])
    net = g.function(g.tanh(g.let("</script><img src=x onerror=alert(1)>", g.exp(x))))
    for strategy in ("auto", "per_shape"):
        page = compile(net, strategy=strategy).plan_page()
        assert page.startswith("<!DOCTYPE html>")
        assert "Storage plan of net" in page
        assert "<img" not in page


def test_a_capacity_of_main_s_memory_names_the_tensors_at_the_peak():
    g = Builder("net")
    x = g.input("x", tl.f32[64, 64])
    a = g.relu(x)
    made = g.function(g.matmul(g.matmul(a, a), a))
    need = compile(made).plan.total
    assert compile(made, capacity=need).plan.total == need
    with pytest.raises(tl.CapacityError, match=r"over-capacity(.|\n)*live: `sid_0`, `sid_1`"):
        _ = compile(made, capacity=need - 1).plan


def test_functions_are_written_while_others_are_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bool] = []
    rewritten = Version._rewrite

    def watched(version: Version, ahead: object = None) -> object:
        written.append(ahead is not None)
        return rewritten(version, ahead)  # type: ignore[arg-type]

    monkeypatch.setattr(Version, "_rewrite", watched)
    g = tl.graph.Builder("layers")
    x = g.input("x", tl.f32[3, 50])
    for columns in (40, 30, 20, 10):
        x = g.relu(g.dense(x, np.ones((columns, x.tensor.shape[1]), np.float32)))
    tl.graph.compile(g.function(x))(np.ones((3, 50), np.float32))
    assert written == [True]


def test_a_misspelt_strategy_is_answered_with_those_of_graphs_too() -> None:
    g = Builder("f")
    f = g.function(g.relu(g.input("x", tl.f32[4])))
    with pytest.raises(tl.PlanError, match=r"`exact`, `graph`, `group`(.|\n)*did you mean `graph`"):
        compile(f, strategy="grahp")
    with pytest.raises(tl.PlanError) as caught:
        tl.compile(tl.parse("@tl.kernel\ndef f(x: tl.f32[4]):\n    x[0] = 1"), strategy="grahp")
    assert "graph" not in str(caught.value)
