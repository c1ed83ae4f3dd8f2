"""What operators ask of extents, and is not proved, becomes a check at each call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph.builder.builder import Builder
from tirlite.graph.demands import Demands
from tirlite.graph.expr import Expr
from tirlite.sizes import maximum, minimum

n, m, k = tl.dims("n m k")


def made(build: Callable[[Builder, Expr, Expr], Expr], x: object, y: object) -> tl.graph.Function:
    g = Builder("asked", demands=Demands())
    return g.function(build(g, g.input("x", x), g.input("y", y)))  # type: ignore[arg-type]


def head(g: Builder, x: Expr, most: Expr) -> Expr:
    """As many rows of a table as x has, at most all."""
    return g.slice(most, [0, 0], [x.shape[0], most.shape[1]])


def halves_doubled(g: Builder, x: Expr, _: Expr) -> Expr:
    """x and its even rows, each twice."""
    even = g.slice(x, [0, 0], [x.shape[0], x.shape[1]], steps=[2, 1])
    return g.add(x, g.reshape(g.concat([even, even], 1), [2 * even.shape[0], x.shape[1]]))


def test_of_two_dims_the_later_gives_way() -> None:
    f = made(lambda g, x, y: g.add(x, y), tl.f32[n, 4], tl.f32[m, k])
    assert [str(param.type) for param in f.params] == ["f32[n, 4]", "f32[n, 4]"]
    assert [(str(each), each.is_told) for each in f.demands] == [("n == m", True), ("4 == k", True)]


def test_what_are_parts_of_a_sum_tell_the_sum() -> None:
    """As a mask over past and new positions does: there is no difference of extents, which might be below zero."""
    g = Builder("cached", demands=Demands())
    new, mask, past = g.input("new", tl.f32[n]), g.input("mask", tl.f32[m]), g.input("past", tl.f32[k])
    new = g.add(new, g.slice(mask, [minimum(m, k)], [m]))
    f = g.function(g.add(g.concat([past, new], 0), mask))
    assert [str(param.type) for param in f.params] == ["f32[n]", "f32[k + n]", "f32[k]"]
    assert all(each.is_told for each in f.demands)
    net = tl.graph.compile(f)
    for count in (0, 3):
        cached, whole = np.ones(count, np.float32), np.arange(count + 2, dtype=np.float32)
        assert np.array_equal(net(whole[count:], whole, cached), whole * (1 + 2 * (whole >= count)) + (whole < count))
    with pytest.raises(tl.KernelAssertionError, match="k = 3, m = 4"):
        net(np.ones(2, np.float32), np.ones(4, np.float32), np.ones(3, np.float32))


def test_facts_of_both_are_kept() -> None:
    f = made(lambda g, x, y: g.add(x, y), tl.f32[tl.dim("n", max=9)], tl.f32[tl.dim("m", multiple_of=4)])
    assert str(f).startswith("# n: max=9, multiple_of=4\n")
    g = Builder("limits", demands=Demands())
    big = tl.dim("m", min=8)
    x, y = g.input("x", tl.f32[n, 2]), g.input("y", tl.f32[big])
    f = g.function(g.add(g.reshape(x, [2 * n]), y))
    assert [(str(each), each.is_told) for each in f.demands] == [("2*n == m", True), ("8 <= 2*n", False)]
    assert tl.graph.evaluate(f, np.ones((4, 2), np.float32), np.ones(8, np.float32)).shape == (8,)  # type: ignore[union-attr]
    with pytest.raises(tl.KernelAssertionError, match="8 <= 2"):
        tl.graph.evaluate(f, np.ones((3, 2), np.float32), np.ones(6, np.float32))


def test_what_is_one_fact_of_a_dim_becomes_it() -> None:
    f = made(lambda g, x, y: g.add(x, head(g, x, y)), tl.f32[n, 4], tl.f32[16, 4])
    assert str(f).startswith("# n: max=16\n")
    f = made(halves_doubled, tl.f32[n, 4], tl.f32[1])
    assert str(f).startswith("# n: multiple_of=2\n")


def test_what_is_asked_of_one_dim_is_a_fact_of_it() -> None:
    """So what stands behind it is told by it: here that there is nothing to cut off, and that -30 is no extent."""

    def build(g: Builder, x: Expr, y: Expr) -> Expr:
        made = g.conv(x, y)
        return g.add(made, g.slice(x, [0, 0, 0], [1, 1, maximum(x.shape[2] - 29, 0)]))

    f = made(build, tl.f32[1, 1, n], tl.f32[1, 1, 30])
    assert str(f).startswith("# n: min=30\n")
    assert [(str(each), each.is_told) for each in f.demands] == [("30 <= n", True)]
    window, short = np.ones((1, 1, 30), np.float32), np.ones((1, 1, 7), np.float32)
    net = tl.graph.compile(f)
    for call in (net, net.interpret, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        assert call(np.ones((1, 1, 31), np.float32), window).shape == (1, 1, 2)
        with pytest.raises(tl.KernelAssertionError, match=r"conv.*demands that 30 <= n \(30 and 7\)"):
            call(short, window)
    limited = made(build, tl.f32[1, 1, tl.dim("n", max=64, multiple_of=4)], tl.f32[1, 1, 30])
    assert str(limited).startswith("# n: min=30, max=64, multiple_of=4\n")


def test_what_windows_on_windows_ask_is_said_by_remainders() -> None:
    """Of three halvings, each doubled again, the last one asks for the most: the others say no more."""

    def build(g: Builder, x: Expr, _: Expr) -> Expr:
        skipped = []
        for _ in range(3):
            x = g.max_pool(x, 3, stride=2, pad=1)
            skipped.append(x)
        for other in skipped[1::-1]:
            x = g.add(g.resize(x, (1, 1, 2 * x.shape[2]), mode="nearest"), other)
        return x

    f = made(build, tl.f32[1, 1, n], tl.f32[1])
    assert [str(each) for each in f.demands] == ["1 <= n", "n % 8 == 0 or n % 8 == 7"]
    assert [str(f.demands[1].left), str(f.demands[1].right)] == ["4*((n + 7)//8)", "(n + 1)//2"]
    net, one = tl.graph.compile(f), np.zeros(1, np.float32)
    assert [net(np.ones((1, 1, k), np.float32), one).shape[2] for k in (7, 8, 15)] == [4, 4, 8]  # type: ignore[union-attr]
    for call in (net, net.interpret, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        with pytest.raises(tl.KernelAssertionError, match=r"add.*demands that n % 8 == 0 or n % 8 == 7 \(n = 9\)"):
            call(np.ones((1, 1, 9), np.float32), one)


def test_the_narrowest_of_several_limits_is_left() -> None:
    g = Builder("limits", demands=Demands())
    x = g.input("x", tl.f32[n])
    for least in (3, 30, 7):
        g.demands.assume(least, n + 0, f"at least {least}", None, is_most=True)
    for most in (180, 100, 140):
        g.demands.assume(2 * n, most, f"at most {most}", None, is_most=True)
    f = g.function(g.exp(x))
    assert [each.message for each in f.demands] == [
        "`at least 30` demands that 30 <= n",
        "`at most 100` demands that n <= 50",
    ]


def test_what_both_sides_have_for_a_factor_is_not_said() -> None:
    f = made(lambda g, x, y: g.add(g.reshape(x, [16 * n, -1]), y), tl.f32[n, k, 16], tl.f32[m])
    assert [str(each) for each in f.demands] == ["k == m"]
    f = made(lambda g, x, _: g.exp(g.reshape(x, [4, n, -1])), tl.f32[n, m, k], tl.f32[1])
    assert [str(each) for each in f.demands] == ["k*m == 4*((k*m)//4)"]


def test_a_call_that_divides_by_nothing_names_the_operator() -> None:
    f = made(lambda g, x, y: g.exp(g.reshape(x, [n // m, -1])), tl.f32[n, 4], tl.f32[m])
    with pytest.raises(tl.KernelAssertionError, match=r"reshape.*demands .*\(n = 1, m = 2\)"):
        tl.graph.compile(f)(np.ones((1, 4), np.float32), np.ones(2, np.float32))


def test_what_is_left_for_an_extent_is_told_by_what_both_shapes_do_not_have() -> None:
    """Heads of a row: -1 is a fourth of it, and not a quotient of products."""
    f = made(lambda g, x, y: g.add(g.reshape(x, [n, m, 4, -1]), y), tl.f32[n, m, k], tl.f32[n, m, 4, tl.dim("d")])
    assert [str(param.type) for param in f.params] == ["f32[n, m, k]", "f32[n, m, 4, k//4]"]
    assert [(str(each), each.is_told) for each in f.demands] == [("k % 4 == 0", True), ("k//4 == d", True)]


def test_a_call_against_joined_extents_names_the_operator() -> None:
    f = made(lambda g, x, y: g.exp(g.add(x, y)), tl.f32[n, 4], tl.f32[m, k])
    net, x = tl.graph.compile(f), np.ones((3, 4), np.float32)
    for call in (net, net.interpret, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        with pytest.raises(tl.KernelAssertionError, match=r"add.*demands that n == m \(3 and 2\)"):
            call(x, np.ones((2, 4), np.float32))
        with pytest.raises(tl.KernelAssertionError, match=r"add.*demands that 4 == k \(4 and 5\)"):
            call(x, np.ones((3, 5), np.float32))


def test_a_function_of_dims_is_checked_when_it_runs() -> None:
    f = made(lambda g, x, y: g.add(g.exp(x), g.relu(head(g, x, y))), tl.f32[n, 4], tl.f32[m, 4])
    assert [str(each) for each in f.demands] == ["n == min(m, n)"]
    assert "# demands n == min(m, n)" in str(f)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((3, 4), np.float32), rng.standard_normal((5, 4), np.float32)
    net = tl.graph.compile(f)
    np.testing.assert_allclose(net(x, y), np.exp(x) + np.maximum(y[:3], 0), rtol=1e-6)
    np.testing.assert_array_equal(net(x, y), net.interpret(x, y))
    for call in (net, net.interpret, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        with pytest.raises(tl.KernelAssertionError, match=r"demands that n == min\(m, n\) \(5 and 3, where m = 3\)"):
            call(y, x)


def test_the_first_elements_are_as_many_as_there_are() -> None:
    """Of an axis of 1 the first 5 were its element 5 times, with indices up to 4."""
    f = made(lambda g, x, _: g.topk(x, 5)[1], tl.f32[n], tl.f32[1])
    assert [str(each) for each in f.demands] == ["5 <= n"]
    plain = tl.graph.Builder("plain")  # without demands the operator itself is to tell
    alone = plain.function(plain.topk(plain.input("x", tl.f32[n]), 5)[1])
    one = np.ones(1, np.float32)
    for function, given, told in ((f, (one, one), "demands that 5 <= n"), (alone, (one,), "5 elements are asked for")):
        net = tl.graph.compile(function)
        for call in (net, net.interpret, lambda *arrays, of=function: tl.graph.evaluate(of, *arrays)):
            with pytest.raises(tl.KernelRunError, match=told):
                call(*given)


@pytest.mark.parametrize(
    ("build", "demanded", "least"),
    [
        (lambda g, x, _: g.argmax(x, 2), "1 <= n", 1),
        (lambda g, x, _: g.topk(x, 1)[0], "1 <= n", 1),
        (lambda g, x, _: g.pad(x, [0, 0, 2], [0, 0, 1], mode="edge"), "1 <= n", 1),
        (lambda g, x, _: g.resize(x, (1, 1, 4), mode="linear"), "1 <= n", 1),
        (lambda g, x, y: g.conv(x, y), "3 <= n", 3),
        (lambda g, x, y: g.relu(g.conv(g.pad(x, [0, 0, 1], [0, 0, 0]), y, stride=2)), "2 <= n", 2),
        (lambda g, x, _: g.max_pool(x, 4, stride=4, ceil_mode=True), "1 <= n", 1),
        (lambda g, x, _: g.average_pool(g.max_pool(x, 2, stride=2), 3), "6 <= n", 6),
        (lambda g, x, y: g.conv_transpose(x, y, pad=2), "2 <= n", 2),
    ],
)
def test_what_needs_elements_refuses_a_call_with_too_few(build, demanded: str, least: int) -> None:
    """It names the operator, also where a result would have an extent below zero, or dims are taken for at least 1."""
    f = made(build, tl.f32[1, 1, n], tl.f32[1, 1, 3])
    assert [str(each) for each in f.demands] == [demanded]
    net, window = tl.graph.compile(f), np.ones((1, 1, 3), np.float32)
    for call in (net, lambda *arrays: tl.graph.evaluate(f, *arrays)):
        assert np.isfinite(call(np.ones((1, 1, least), np.float32), window)).all()
        for few in {0, least - 1}:
            with pytest.raises(tl.KernelAssertionError, match=f"demands that {demanded}"):
                call(np.ones((1, 1, few), np.float32), window)


@pytest.mark.parametrize("extent", [n, 0])
def test_the_greatest_of_none_is_below_all(extent: object) -> None:
    """As ONNX has it since version 18 of its operators."""
    for dtype, below in ((tl.f32, -np.inf), (tl.i8, -128), (tl.u8, 0)):
        g = Builder("greatest")
        f = g.function(g.reduce_max(g.input("x", dtype[extent, 2]), [0]))  # type: ignore[index]
        none = np.zeros((0, 2), dtype.numpy)
        for call in (tl.graph.compile(f), lambda x, of=f: tl.graph.evaluate(of, x)):
            assert call(none).tolist() == [below, below]


def test_a_divisor_of_a_product_is_checked_when_it_runs() -> None:
    f = made(lambda g, x, _: g.transpose(g.reshape(x, [-1, 12])), tl.f32[n, m], tl.f32[1])
    net, one = tl.graph.compile(f), np.zeros(1, np.float32)
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(net(x, one), x.reshape(-1, 12).T)
    with pytest.raises(tl.KernelAssertionError, match=r"m \* n == 12|m\*n == 12"):
        net(np.zeros((4, 4), np.float32), one)


def test_factors_of_both_do_not_matter() -> None:
    f = made(lambda g, x, _: g.reshape(x, [n, 4 * k]), tl.f32[n, m, 4], tl.f32[k])
    assert [str(param.type) for param in f.params] == ["f32[n, m, 4]", "f32[m]"]


def test_a_shape_that_was_assumed_stays_when_dims_are_joined_later() -> None:
    def build(g: Builder, x: Expr, y: Expr) -> Expr:
        return g.add(g.transpose(g.reshape(x, [2, -1, 12]), [1, 0, 2]), y)

    f = made(build, tl.f32[n, m], tl.f32[k, 2, 12])
    net = tl.graph.compile(f)
    x, y = np.arange(72, dtype=np.float32).reshape(8, 9), np.ones((3, 2, 12), np.float32)
    np.testing.assert_array_equal(net(x, y), x.reshape(2, 3, 12).transpose(1, 0, 2) + 1)
    np.testing.assert_array_equal(tl.graph.evaluate(f, x, y), net(x, y))


def test_what_can_never_hold_is_refused() -> None:
    with pytest.raises(tl.GraphError, match="graph-shape-mismatch"):
        made(lambda g, x, y: g.matmul(g.add(x, y), y), tl.f32[n, 4], tl.f32[m, 5])
    with pytest.raises(tl.GraphError, match="graph-shape"):
        made(lambda g, x, y: g.add(x, y), tl.f32[tl.dim("n", max=3)], tl.f32[tl.dim("m", min=4)])


def test_a_part_of_what_stands_for_something_else_does_so_too() -> None:
    """A feature pyramid asks that `(n + 3)//4` is `8 * ((n + 31)//32)`: an eighth of it is known from then on."""
    n, demands = tl.dim("n"), Demands()
    demands.know(n)
    assert demands.ask(8 * ((n + 31) // 32), (n + 3) // 4, "concat", None)
    assert demands.now((n + 3) // 16) == 2 * ((n + 31) // 32)
    assert demands.now(5 * ((n + 3) // 32)) == 5 * ((n + 31) // 32)


def test_products_that_no_dim_tells_are_compared_at_the_call() -> None:
    """As the flow between two images does, whose extents an exporter named apart."""
    g = Builder("flow", demands=Demands())
    a, b = g.input("a", tl.f32[tl.dim("p"), 2, n, m]), g.input("b", tl.f32[k, tl.dim("q")])
    b = g.reshape(b, [-1, 1])
    f = g.function(g.matmul(g.matmul(g.reshape(a, [tl.dim("p"), 2, -1]), b), np.ones((1, 3), np.float32)))
    assert [(str(each), each.is_told) for each in f.demands] == [("m*n == k*q", False)]
    net = tl.graph.compile(f)
    assert np.array_equal(net(np.ones((1, 2, 2, 6), np.float32), np.ones((4, 3), np.float32)), np.full((1, 2, 3), 12))
    with pytest.raises(tl.KernelAssertionError, match=r"demands that m\*n == k\*q"):
        net(np.ones((1, 2, 2, 6), np.float32), np.ones((4, 4), np.float32))
