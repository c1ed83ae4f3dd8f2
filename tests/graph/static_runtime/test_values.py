"""Who cares for which value: managed, unmanaged, scalars, borrowed, results; and for how long each is needed."""

from __future__ import annotations

import numpy as np

import tirlite as tl
from tirlite.graph import Builder, Function, RuntimeOptions, StaticRuntime, evaluate


def chain(length: int = 4) -> Function:
    g = Builder("chain")
    y = g.input("x", tl.f32[4])
    for _ in range(length):
        y = g.exp(y)
    return g.function(y)


def test_outputs_of_out_variants_are_managed_and_results_are_not():
    figures = StaticRuntime(chain(4)).figures
    assert (figures.managed, figures.unmanaged, figures.managed_outputs) == (3, 0, 0)


def test_without_out_variants_nothing_is_managed():
    figures = StaticRuntime(chain(4), RuntimeOptions(out_variants=False)).figures
    assert (figures.managed, figures.unmanaged) == (0, 3)


def test_an_operator_without_an_out_variant_has_memory_of_its_own():
    g = Builder("plain")
    x = g.input("x", tl.f32[4])
    f = g.function(g.exp(g.tanh(g.exp(x))))
    figures = StaticRuntime(f, RuntimeOptions(plain=("tanh",))).figures
    # The second exp is a result. tanh may give back what it was given, so the first exp counts as used by the second.
    assert (figures.managed, figures.unmanaged) == (1, 1)
    assert StaticRuntime(f, RuntimeOptions(plain=("tanh",))).planner.ranges.live.popitem()[1] == (0, 3)


def test_tuples_are_unmanaged_and_what_is_taken_out_is_borrowed():
    g = Builder("pair")
    x = g.input("x", tl.f32[4])
    pair = g.tuple(g.exp(x), g.tanh(x))
    f = g.function(g.add(g.item(pair, 0), g.item(pair, 1)))
    figures = StaticRuntime(f).figures
    assert (figures.managed, figures.unmanaged, figures.borrowed, figures.scalars) == (2, 3, 2, 0)


def test_scalars_are_counted_apart():
    g = Builder("scalar")
    x = g.input("x", tl.f32[4])
    total = g.reduce_sum(x)
    f = g.function(g.add(x, g.exp(total)))
    figures = StaticRuntime(f).figures
    assert (figures.managed, figures.unmanaged, figures.scalars) == (0, 2, 2)


def test_a_borrowed_result_becomes_owned():
    g = Builder("owned")
    x = g.input("x", tl.f32[4])
    f = g.function([g.item(g.tuple(g.exp(x), x), 0), g.tanh(x)])
    runtime = StaticRuntime(f)
    figures = runtime.figures
    assert (figures.owned, figures.borrowed) == (1, 0)
    # It is an alias of exp's value, which the caller keeps: nothing is left to manage.
    assert figures.managed == 0
    array = np.ones(4, np.float32)
    kept = [runtime(array)[0] for _ in range(3)]
    assert all(np.array_equal(each, np.exp(array)) for each in kept)


def test_aliases_extend_lifetimes():
    g = Builder("aliases")
    x = g.input("x", tl.f32[4])
    a = g.exp(x)
    seen = g.reshape(a, [2, 2])
    b = g.tanh(x)
    late = g.reshape(g.negative(seen), [4])
    f = g.function(g.add(b, late))
    views = StaticRuntime(f, RuntimeOptions(copy_views=False)).planner.ranges
    # In order: tanh, exp, its view, negative, whose view add reads at last.
    assert {register.name: live for register, live in views.live.items()} == {
        "tanh": (0, 6),
        "exp": (1, 4),
        "negative": (3, 6),
    }
    copies = StaticRuntime(f).planner.ranges
    assert {register.name: live for register, live in copies.live.items()} == {
        "tanh": (0, 6),
        "exp": (1, 3),
        "reshape": (2, 4),
        "negative": (3, 5),
        "reshape_1": (4, 6),
    }


def test_views_copy_so_that_their_results_are_managed():
    g = Builder("views")
    x = g.input("x", tl.f32[4])
    f = g.function(g.tanh(g.reshape(g.exp(x), [2, 2])))
    copying, viewing = StaticRuntime(f), StaticRuntime(f, RuntimeOptions(copy_views=False))
    assert (copying.figures.managed, copying.figures.unmanaged) == (2, 0)
    assert (viewing.figures.managed, viewing.figures.unmanaged) == (1, 1)
    array = np.arange(4, dtype=np.float32)
    for runtime in (copying, viewing):
        assert np.array_equal(runtime(array), evaluate(f, array))


def test_what_a_result_is_a_view_of_is_not_managed():
    g = Builder("escapes")
    x = g.input("x", tl.f32[4])
    f = g.function(g.reshape(g.exp(x), [2, 2]))
    runtime = StaticRuntime(f, RuntimeOptions(copy_views=False))
    assert (runtime.figures.managed, runtime.figures.unmanaged) == (0, 1)
    array = np.zeros(4, np.float32)
    first = runtime(array)
    runtime(array + 1)
    assert first.tolist() == [[1, 1], [1, 1]]


def test_what_branches_use_from_outside_is_an_input_of_the_if():
    g = Builder("inner")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    a, b = g.let("a", g.exp(x)), g.let("b", g.tanh(x))
    f = g.function(g.negative(g.if_(c, g.abs(a), g.abs(b))))
    runtime = StaticRuntime(f)
    assert {register.name: live for register, live in runtime.planner.ranges.live.items()} == {
        "exp": (0, 3),
        "tanh": (1, 3),
    }


def test_a_branch_that_gives_back_a_value_from_outside_keeps_it_alive():
    g = Builder("through")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    a = g.let("a", g.exp(x))
    chosen = g.let("chosen", g.if_(c, a, g.tanh(x)))
    others = g.let("others", g.exp(g.exp(g.negative(x))))
    f = g.function(g.add(chosen, others))
    runtime = StaticRuntime(f)
    live = {register.name: live for register, live in runtime.planner.ranges.live.items()}
    assert live["exp"] == (0, 6)
    array = np.ones(4, np.float32)
    for condition in (True, True, False, False):
        assert np.array_equal(runtime(array, condition), evaluate(f, array, condition))


def test_each_branch_has_a_planner_of_its_own():
    g = Builder("branches")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    f = g.function(g.if_(c, g.exp(g.tanh(g.exp(x))), g.negative(g.abs(x))))
    runtime = StaticRuntime(f)
    assert [planner.managed for planner in runtime.planners] == [0, 2, 1]
    for _ in range(2):
        runtime(np.ones(4, np.float32), True)
    assert [planner.managed_bytes for planner in runtime.planners] == [0, 128, 0]


def test_functions_are_nodes_with_memory_of_their_own():
    inner = Builder("inner")
    p = inner.input("p", tl.f32[4])
    function = inner.function(inner.exp(p))
    g = Builder("outer")
    f = g.function(g.exp(g.invoke(function, g.exp(g.input("x", tl.f32[4])))))
    runtime = StaticRuntime(f)
    assert (runtime.figures.managed, runtime.figures.unmanaged) == (1, 1)
    x = np.ones(4, np.float32)
    assert np.array_equal(runtime(x), evaluate(f, x))
