"""A dim is its name: within a kernel all dims of one name are one."""

from io import StringIO
from types import ModuleType

import numpy as np
import pytest
import sympy

import tirlite as tl

n, m = tl.dims("n m")


# Another module declares the dims of its own kernels.
shapes = ModuleType("shapes")
shapes.n = tl.dim("n")  # type: ignore[attr-defined]
shapes.at_most_64 = tl.dim("n", max=64)  # type: ignore[attr-defined]


@tl.inline
def last(x):
    return x[shapes.n - 1]


def test_dims_of_one_name_from_two_modules_are_one() -> None:
    theirs = shapes.n

    @tl.kernel
    def ends(x: tl.f32[n], y: tl.out[tl.f32[theirs + 1]]):
        t = tl.alloc(tl.f32[theirs, 2])
        for i in range(theirs):
            t[i, 1] = x[i]
        for i in range(n):
            y[i] = t[i, 1]
        y[n] = last(x)

    assert [dim.name for dim in ends.ir.dims] == ["n"]
    assert ends(np.arange(3, dtype=np.float32)).tolist() == [0, 1, 2, 2]
    assert tl.parse(str(ends.ir)).dims[0].name == "n"
    assert [str(each) for each in tl.allocations(ends.ir)] == ["t: f32[n, 2] in global"]

    @tl.kernel
    def add(x: tl.f32[n], y: tl.f32[theirs], z: tl.out[tl.f32[n]]):
        for i in range(n):
            z[i] = x[i] + y[i]

    with pytest.raises(tl.CallValueError, match="argument-shape.*axis 0 of `y`"):
        add(np.zeros(8, np.float32), np.zeros(3, np.float32))


def test_dims_of_one_name_with_different_facts_are_refused() -> None:
    theirs = shapes.at_most_64

    def kernel(x: tl.f32[n], y: tl.f32[theirs]):
        y[0] = x[0]

    with pytest.raises(tl.KernelError, match="two dims are called `n`: no facts, and max=64") as error:
        tl.kernel(kernel)
    assert error.value.code == "dim-facts-differ"


def test_the_dims_of_a_kernel_that_is_called_stay_its_own() -> None:
    theirs = shapes.at_most_64

    @tl.kernel
    def negate(x: tl.f32[theirs], y: tl.f32[theirs]):
        for i in range(theirs):
            y[i] = -x[i]

    @tl.kernel
    def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        tl.call(negate, x, t)
        negate(t, y)

    x = np.arange(5, dtype=np.float32)
    assert twice(x).tolist() == x.tolist()
    with pytest.raises(tl.TirliteError, match="at most 64|`n` = 65|65"):
        twice(np.zeros(65, np.float32))


def of_no_array(x: tl.f32[n]):
    x[0] = m


def test_a_dim_of_no_array_has_no_value() -> None:
    with pytest.raises(tl.KernelError, match="no argument tells the value of dim `m`"):
        tl.kernel(of_no_array)


def test_dims_that_meet_in_a_graph_have_the_same_facts() -> None:
    g = tl.graph.Builder("g")
    x = g.input("x", tl.f32[shapes.at_most_64, 4])
    with pytest.raises(tl.GraphError, match="two dims are called `n`: max=64, and no facts"):
        g.reshape(x, (n, 4))
    assert str(g.reshape(x, (4, tl.dim("n", max=64))).type) == "f32[4, n]"


def test_the_builder_makes_one_dim_of_all_with_one_name() -> None:
    def built(length: tl.ir.Var) -> tl.PrimFunc:
        b = tl.ir.Builder("copy")
        x, y = b.param("x", tl.f32[n]), b.param("y", tl.f32[length], out=True)
        t = b.alloc("t", tl.f32[tl.dim("n")])
        with b.for_("i", 0, tl.dim("n")) as i:
            b.store(t, i, x[i])
            b.store(y, i, t[i] + length)
        return b.build()

    func = built(tl.dim("n"))
    assert func.dims == (n,)
    assert tl.compile(func)(np.zeros(2, np.float32)).tolist() == [2, 2]
    with pytest.raises(tl.KernelError, match="two dims are called `n`"):
        built(tl.dim("n", max=8))


def hidden(x: tl.f32[m], n: tl.i64, y: tl.out[tl.f32[n]]):
    y[0] = x[0]


def hidden_in_texts(x: "tl.f32[m]", n: "tl.i64", y: "tl.out[tl.f32[n]]"):
    y[0] = x[0]


def hidden_by_an_array(n: tl.f32[n]):
    n[0] = 1


def hidden_by_its_name(x: tl.f32[shapes.n], n: tl.i64):
    x[0] = n


@pytest.mark.parametrize("function", [hidden, hidden_in_texts, hidden_by_an_array, hidden_by_its_name])
def test_a_parameter_does_not_hide_a_dim(function: object) -> None:
    with pytest.raises(tl.KernelError, match="parameter `n` has the name of a dim") as error:
        tl.kernel(function)
    assert error.value.code == "hidden-dim"


def test_a_dim_that_a_kernel_does_not_use_is_a_name_like_any_other() -> None:
    @tl.kernel
    def count(x: tl.f32[m], h: tl.i64, y: tl.out[tl.i64[1]]):
        n = 0
        for _ in range(m):
            n += h
        y[0] = n

    assert count(np.zeros(3, np.float32), 2).tolist() == [6]

    @tl.kernel
    def loop(n: tl.i64, y: tl.i64[m]):
        for i in range(m):
            y[i] = n

    y = np.zeros(3, np.int64)
    loop(7, y)
    assert y.tolist() == [7, 7, 7]


def test_what_is_no_dim_takes_no_name_of_a_dim_further_up_in_the_text() -> None:
    b = tl.ir.Builder("outer")
    k = b.param("n", tl.i64)
    x = b.param("x", tl.f32[k])

    @tl.kernel
    def negate(x: tl.f32[n]):
        for i in range(n):
            x[i] = -x[i]

    b.add(tl.ir.KernelCall(negate.ir, (tl.ir.BufferRef(x),)))
    text = str(b.build())
    assert "def outer(n_1: tl.i64, x: tl.f32[n_1]):" in text
    assert str(tl.parse(text)) == text


größe, 高さ = tl.dims("größe 高さ")


@tl.kernel
def fläche(eingäbe: tl.f32[größe, 高さ], summe: tl.out[tl.f32[größe]]):
    zwischen = tl.alloc(tl.f32[größe, 高さ])
    for ä in range(größe):
        for j in range(高さ):
            zwischen[ä, j] = eingäbe[ä, j] * 2
    for ä in range(größe):
        summe[ä] = 0
        for j in range(高さ):
            summe[ä] = summe[ä] + zwischen[ä, j]


def test_names_of_any_script_stay_as_they_are() -> None:
    for func in (fläche.ir, fläche.lowered):
        assert 'größe, 高さ = tl.dims("größe 高さ")' in str(func)
        assert "def fläche(eingäbe: tl.f32[größe, 高さ], summe: tl.out[tl.f32[größe]]):" in str(func)
        assert tl.structural_equal(tl.parse(str(func)), func)
    assert fläche(eingäbe=np.ones((2, 3), np.float32)).tolist() == [6, 6]
    assert str(fläche.plan.total) == "4*größe*高さ"
    problem = tl.plan.read_csv(StringIO(tl.plan.write_csv(fläche.plan.problem, fläche.plan)))
    assert problem.requests[0].size == fläche.plan.total

    g = tl.graph.Builder("straße")
    x = g.input("eingäbe", tl.f32[größe, 3])
    net = tl.graph.compile(g.function({"ausgäbe": g.relu(x)}))
    assert "def straße(eingäbe: tl.f32[größe, 3], ausgäbe: tl.out[tl.f32[größe, 3]]):" in str(net.kernel.ir)
    assert net(np.full((1, 3), -1, np.float32)).tolist() == [[0, 0, 0]]


def test_a_dim_keeps_its_name_where_the_text_needs_that_for_itself() -> None:
    most, least = tl.dim("max"), tl.dim("min", max=10**5000)
    b = tl.ir.Builder("clear")
    x = b.param("x", tl.f32[most, least])
    b.store(x, (0, 0), 0.0)
    text = str(b.build())
    assert 'max_ = tl.dim("max")' in text
    assert "x: tl.f32[max_, min_]" in text
    assert [var.dim for var in tl.parse(text).dims] == [most.dim, least.dim]


def test_names_are_those_that_python_reads() -> None:
    (ligature,) = tl.dims("ﬁ")
    assert ligature.name == "fi"
    with pytest.raises(tl.KernelError, match="is not a name of a dim"):
        tl.dim("𝐢𝐟")
    b = tl.ir.Builder("f²")
    x, y = b.param("ﬁ", tl.f32[ligature]), b.param("fi", tl.f32[4])
    b.store(x, 0, y[1])
    func = b.build()
    assert "def f2(fi_1: tl.f32[fi], fi_2: tl.f32[4]):" in str(func)
    assert tl.structural_equal(tl.parse(str(func)), func)


N, M = sympy.symbols("n m", integer=True, positive=True)


@tl.kernel(schedule=None)
def halves(x: tl.f32[N, M], y: tl.out[tl.f32[N, sympy.floor(M / 2)]]):
    t = tl.alloc(tl.f32[N, M])
    for i in range(N):
        for j in range(n * 0 + M):
            t[i, j] = x[i, j]
        for j in range(m // 2):
            y[i, j] = t[i, 2 * j]


def test_symbols_of_sympy_are_the_dims_of_their_names() -> None:
    assert "def halves(x: tl.f32[n, m], y: tl.out[tl.f32[n, m // 2]]):" in str(halves.ir)
    assert halves(np.ones((2, 5), np.float32)).tolist() == [[1, 1], [1, 1]]
    (allocation,) = tl.allocations(halves.ir)
    assert allocation.shape == (N, M)
    assert allocation.shape == (n, m)
    assert halves.plan.at({N: 2, M: 3}).total == 24

    g = tl.graph.Builder("g")
    f = g.function(g.reshape(g.input("x", tl.f32[N, 64]), (2 * N, 32)))
    assert str(f.result) == "f32[2*n, 32]"

    b = tl.ir.Builder("b")
    x, t = b.param("x", tl.f32[N]), b.alloc("t", tl.f32[N + 1])
    b.store(x, 0, t[n])
    assert [dim.name for dim in b.build().dims] == ["n"]


def hidden_by_a_symbol(x: tl.f32[N], N: tl.i64):
    x[0] = N


def too_much(x: tl.f32[n]):
    t = tl.alloc(tl.f32[NEGATIVE])
    x[0] = t[0]


NEGATIVE = sympy.Symbol("k", negative=True)


def test_symbols_are_refused_where_dims_are() -> None:
    with pytest.raises(tl.KernelError, match="hidden-dim"):
        tl.kernel(hidden_by_a_symbol)
    with pytest.raises(tl.KernelError, match="(?s)bad-symbol.*test_dims.py"):
        tl.kernel(too_much)
    with pytest.raises(tl.KernelError, match="bad-symbol"):
        tl.f32[NEGATIVE]


def test_the_larger_of_two_dims_is_an_extent_in_quotes() -> None:
    @tl.kernel
    def ones(x: tl.f32[n], z: tl.f32[m], y: "tl.out[tl.f32[max(n, m)]]"):
        for i in range(max(n, m)):
            y[i] = 1

    assert ones(np.zeros(2, np.float32), np.zeros(5, np.float32)).tolist() == [1] * 5
    with pytest.raises(TypeError, match=r"the value of `m > n` is known only .* put in quotes"):
        tl.f32[max(n, m)]
