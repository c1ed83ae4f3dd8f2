"""TightenLoops: a loop runs over those iterations alone in which its body does something."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from parsed import parsed
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.interp import interpret
from tirlite.ir import validate
from tirlite.rewrite import Normalize, TightenLoops

HEADER = """
n = tl.dim("n", min=0)
m = tl.dim("m")

@tl.kernel
def f(w: tl.i32[n], k: tl.i64[n], u: tl.u32[n], p: tl.i64, x: tl.f32[n, m], y: tl.f32[n, m]):
"""
n, m = tl.dims("n m")
SEED = 100
SHAPES = ((0, 3), (1, 1), (5, 4), (9, 7))
LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def kernel(body: str) -> tl.PrimFunc:
    return Normalize()(parsed(HEADER, body))


def values(n: int, m: int, seed: int) -> list[object]:
    """Arguments with numbers near the extents, and at the ends of their types."""
    random = np.random.default_rng(seed)
    near = random.integers(-2, m + 3, (3, n))
    wild = random.random((3, n)) < 0.4
    w = np.where(wild[0], random.choice([-(2**31), 2**31 - 1], n), near[0]).astype(np.int32)
    k = np.where(wild[1], random.choice([LEAST, LEAST + 1, GREATEST - 1, GREATEST], n), near[1])
    u = np.where(wild[2], 2**32 - 1, abs(near[2])).astype(np.uint32)
    x, y = random.standard_normal((2, n, m)).astype(np.float32)
    return [w, k, u, int(random.choice([-1, 1, 2, m])), x, y]


def interpreted(func: tl.PrimFunc, given: list[object]) -> np.ndarray:
    y = np.copy(given[-1])
    n, m = y.shape
    interpret(
        func, {**dict(zip(func.params, [*given[:-1], y], strict=True)), **dict(zip(func.dims, (n, m), strict=True))}
    )
    return y


def expect(before: str, after: str) -> None:
    """That `before` becomes `after`, up to names, and does the same."""
    func, wanted = kernel(before), kernel(after)
    found = TightenLoops()(func)
    assert tl.structural_equal(found, wanted), f"{found}\nis not\n{wanted}"
    validate(found)
    for given in (values(n, m, seed) for seed, (n, m) in enumerate(SHAPES)):
        np.testing.assert_array_equal(interpreted(found, given), interpreted(func, given))


def under(loop: str, condition: str, around: str = "for i in range(n):") -> str:
    return f"{around}\n    {loop}\n        if {condition}:\n            y[i, j] = x[i, j]"


def over(loop: str, around: str = "for i in range(n):", name: str = "") -> str:
    before = f"    {name}\n" if name else ""
    return f"{around}\n{before}    {loop}\n        y[i, j] = x[i, j]"


FORWARD, BACKWARD = "for j in range(m):", "for j in range(m - 1, -1, -1):"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(under(FORWARD, "j > i"), over("for j in range(i + 1, m):"), id="above a diagonal"),
        pytest.param(
            under(FORWARD, "i >= j"), over("for j in range(min(m, i + 1)):"), id="with the counter on the right"
        ),
        pytest.param(under(FORWARD, "j < m - i"), over("for j in range(m - i):"), id="up to what is known to be less"),
        pytest.param(under(FORWARD, "j + i < m"), over("for j in range(m - i):"), id="a sum"),
        pytest.param(under(FORWARD, "m - j > i"), over("for j in range(m - i):"), id="the counter subtracted"),
        pytest.param(
            under(FORWARD, "i <= j and j < i + 3"), over("for j in range(i, min(m, i + 3)):"), id="a band of a matrix"
        ),
        pytest.param(under(FORWARD, "not j < i"), over("for j in range(i, m):"), id="the opposite"),
        pytest.param(
            under("for j in tl.parallel(m):", "j > i"), over("for j in tl.parallel(i + 1, m):"), id="a parallel loop"
        ),
        pytest.param(
            under(BACKWARD, "j >= w[i]"),
            over("for j in range(m - 1, max(-1, a - 1), -1):", name="a = tl.i64(w[i])"),
            id="an element, backwards",
        ),
        pytest.param(
            under(BACKWARD, "j <= i"), over("for j in range(min(m - 1, i), -1, -1):"), id="the start of one backwards"
        ),
        pytest.param(
            under(FORWARD, "j > k[i]"),
            over("for j in range(max(0, min(a, m - 1) + 1), m):", name="a = k[i]"),
            id="behind any integer, to which nothing can be added",
        ),
        pytest.param(
            under(FORWARD, "j < u[i]"),
            over("for j in range(min(m, a)):", name="a = tl.i64(u[i])"),
            id="an unsigned number",
        ),
        pytest.param(under("for j in range(0, m, 2):", "j < i"), over("for j in range(0, min(m, i), 2):"), id="steps"),
        pytest.param(under(FORWARD, "j < m and j >= 0"), over("for j in range(m):"), id="always"),
        pytest.param(
            "for j in range(n):\n    y[j, 0] = 1\n" + under(FORWARD, "j >= m"),
            "for j in range(n):\n    y[j, 0] = 1",
            id="never",
        ),
        pytest.param(
            under(FORWARD, "j >= i and x[i, j] > 0"),
            "for i in range(n):\n    for j in range(i, m):\n        if x[i, j] > 0:\n            y[i, j] = x[i, j]",
            id="with another condition",
        ),
        pytest.param(
            "for i in range(n):\n    for j in range(m):\n        d = j - i\n        if d >= 0:\n"
            "            y[i, j] = x[i, d]",
            "for i in range(n):\n    for j in range(i, m):\n        d = j - i\n        y[i, j] = x[i, d]",
            id="under a name",
        ),
        pytest.param(
            "for i in range(n):\n    for j in range(m):\n        for e in range(3):\n            if j >= i:\n"
            "                y[i, j] += x[i, j]",
            "for i in range(n):\n    for j in range(i, m):\n        for e in range(3):\n            y[i, j] += x[i, j]",
            id="a condition on the counter of the loop around",
        ),
        pytest.param(
            under(FORWARD, "j < i") + "\n        else:\n            y[i, j] = 0",
            over("for j in range(min(m, i)):") + "\n    for e in range(i, m):\n        y[i, e] = 0",
            id="something else from there on",
        ),
        pytest.param(
            under(BACKWARD, "j < i") + "\n        else:\n            y[i, j] = 0",
            "for i in range(n):\n    for e in range(m - 1, i - 1, -1):\n        y[i, e] = 0\n"
            "    for j in range(min(m, i) - 1, -1, -1):\n        y[i, j] = x[i, j]",
            id="something else before",
        ),
        pytest.param(
            "for i in range(n):\n    for j in range(m):\n        if j < i:\n            y[i, j] = 0\n        else:\n"
            "            if j > w[i]:\n                y[i, j] = x[i, j]",
            "for i in range(n):\n    for j in range(min(m, i)):\n        y[i, j] = 0\n    a = tl.i64(w[i])\n"
            "    for e in range(max(i, a + 1), m):\n        y[i, e] = x[i, e]",
            id="one condition in the other",
        ),
        pytest.param(under(FORWARD, "i == 2"), over(FORWARD, "for i in range(2, min(n, 3)):"), id="one row"),
    ],
)
def test_a_loop_is_narrowed_to_its_condition(before: str, after: str) -> None:
    expect(before, after)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(under(FORWARD, "j + p > i"), id="a number that may make the sum wrap around"),
        pytest.param(under(FORWARD, "j + k[i] > 0"), id="an element that may"),
        pytest.param(under("for j in range(0, m, 2):", "j >= i"), id="steps that would begin elsewhere"),
        pytest.param(under(FORWARD, "2 * j > i"), id="twice the counter"),
        pytest.param(under(FORWARD, "x[i, m - 1] > 0"), id="no counter"),
        pytest.param(under(FORWARD, "j >= i or x[i, j] > 0"), id="one of two conditions"),
        pytest.param(
            under(FORWARD, "x[i, j + i - i] > 0 and w[j % m] > 0 and j > i"), id="behind a load out of bounds"
        ),
        pytest.param(under(FORWARD, "j == i") + "\n        else:\n            y[i, j] = 0", id="all but one"),
        pytest.param(
            under("for j in tl.parallel(m):", "j < i") + "\n        else:\n            y[i, j] = y[i, 0]",
            id="iterations without an order, which may conflict",
        ),
        pytest.param(
            under(FORWARD, "j >= w[i] and j > i") + "\n        else:\n            y[i, j] = 0",
            id="one of two",
        ),
        pytest.param(
            under("for q in range(3):", "1 <= j + q <= m", "for j in range(m):").replace("i, j", "0, j"),
            id="few iterations, of which the loop around takes the ends apart",
        ),
        pytest.param(
            "for i in range(n):\n    for j in range(m):\n        if j > y[i, 0]:\n            y[i, j] = 0", id="a float"
        ),
    ],
)
def test_other_loops_stay(body: str) -> None:
    func = kernel(body)
    assert TightenLoops()(func) is func


def test_what_the_function_writes_is_not_loaded_early() -> None:
    func = Normalize()(
        tl.parse("""
n = tl.dim("n")

@tl.kernel
def f(w: tl.i32[n], y: tl.i32[n]):
    for i in range(n):
        for j in range(n):
            if j >= w[i]:
                w[n - 1 - i] = y[j]
""")
    )
    assert TightenLoops()(func) is func


def test_one_array_may_be_two_parameters_of_a_function_that_is_called() -> None:
    func = kernel(under(FORWARD, "j >= w[i] and j > i"))
    assert "range(i + 1, m)" in str(TightenLoops(called=True)(func))


def test_a_start_that_an_element_tells_is_in_bounds_and_has_workers() -> None:
    func = tl.parse("""
n = tl.dim("n")

@tl.kernel
def f(first: tl.i64[1], x: tl.f32[n], y: tl.f32[n]):
    for j in range(n):
        if j >= first[0]:
            y[j] = tl.exp(x[j])
""")
    kernel = tl.compile(func, target=tl.Target.host(workers=2))
    assert "assert" not in str(kernel.lowered)
    assert str(kernel.lowered).count("tl.parallel") == 1
    x = np.arange(7, dtype=np.float32)
    for first in (LEAST, -3, 0, 2, 6, 7, GREATEST):
        given = np.array([first]), x
        kernel(*given, found := np.zeros(7, np.float32))
        kernel.interpret(*given, meant := np.zeros(7, np.float32))
        np.testing.assert_array_equal(found, meant)


def test_no_element_is_loaded_that_the_program_does_not_load() -> None:
    """The row of weights is shorter than the loop around, which goes over nothing from there on."""
    source = """
n, m = tl.dims("n m")

@tl.kernel
def f(w: tl.i32[n], y: tl.i32[m]):
    for i in range(m):
        for j in range(n - i):
            if j >= w[i]:
                y[j] += 1
"""
    func = tl.parse(source)
    y = np.zeros(9, np.int32)
    tl.compile(func)(np.zeros(4, np.int32), y)
    np.testing.assert_array_equal(y, [4, 3, 2, 1, 0, 0, 0, 0, 0])


def random_nest(random: Random) -> str:
    """A nest with conditions on its counters, ends of arrays and numbers."""
    ends = [
        "i",
        "m - i",
        "i + 2",
        "w[i]",
        "k[i]",
        "u[i]",
        "p",
        "3",
        "min(i, 2)",
        "m // 2 - w[i]",
        "w[i] - i",
        "i - u[i]",
    ]
    start, stop = random.choice(["0", "1", "i", "w[i] % 3"]), random.choice(["m", "m - 1", "min(m, i + 3)"])
    loop = f"{start}, {stop}"
    if random.random() < 0.4:
        loop = f"{stop} - 1, {start} - 1, -1"
    elif random.random() < 0.2:
        loop += ", 2"
    conditions: list[str] = []
    for _ in range(random.choice([1, 1, 2, 3])):
        left, right = random.choice(["j", "j", "j + i", "i - j", "j - 2", "m - j"]), random.choice(ends)
        sides = [left, right] if random.random() < 0.7 else [right, left]
        compared = random.choice(["<", "<=", ">", ">=", "=="]).join(f" {side} " for side in sides).strip()
        conditions.append(f"not {compared}" if random.random() < 0.2 else compared)
    kind = random.choice(["range", "range", "range", "tl.parallel"])
    update = random.choice(["y[i, j] = x[i, j]", "y[i, j] += x[i, j]"] + ["y[i, 0] += x[i, j]"] * (kind == "range"))
    condition = " and ".join(conditions)
    text = f"for i in range(n):\n    for j in {kind}({loop}):\n        if {condition}:\n            {update}"
    return text if random.random() < 0.5 else f"{text}\n        else:\n            y[i, j] = x[i, j] - 1"


def test_random_conditions_keep_what_a_function_does() -> None:
    """Interpreted and compiled, and compiled once more by the schedule that was chosen."""
    random = Random(SEED)
    func = kernel("\n".join(random_nest(random) for _ in range(100 if IS_THOROUGH else 12)))
    compiled = tl.compile(func)
    names: dict[str, object] = {"tl": tl}
    exec("def schedule(s):\n" + "".join(f"    {line}\n" for line in str(compiled.schedule).splitlines()[1:]), names)
    assert str(tl.compile(func, schedule=names["schedule"]).lowered) == str(compiled.lowered)
    after = TightenLoops()(func)
    validate(after)
    for given in (values(n, m, seed) for seed in range(3) for n, m in SHAPES):
        wanted = interpreted(func, given)
        np.testing.assert_array_equal(interpreted(after, given), wanted)
        y = np.copy(given[-1])
        compiled(*given[:-1], y)
        np.testing.assert_array_equal(y, wanted)


def test_a_loop_up_to_what_an_element_leaves_is_decided_by_the_sign_of_elements_alone() -> None:
    def knapsack(w: tl.i32[n], y: tl.i32[m + 1]):
        for i in range(n):
            for j in range(m + 1):
                if m - j >= w[i]:
                    y[m - j] = max(y[m - j], y[m - j - w[i]] + 1)

    compiled = tl.compile(knapsack)
    (asked,) = [line.strip() for line in str(compiled.lowered).splitlines() if "assert" in line]
    assert asked.startswith("assert 0 <= least_w")
    for least in 1, -2:
        w = np.random.default_rng(0).integers(least, 5, 12).astype(np.int32)
        y, wanted = np.zeros(10, np.int32), np.zeros(10, np.int32)
        if least < 0:
            with pytest.raises(IndexError):
                compiled(w, y)
            continue
        compiled(w, y)
        for each in w:
            for j in range(9, each - 1, -1):
                wanted[j] = max(wanted[j], wanted[j - each] + 1)
        np.testing.assert_array_equal(y, wanted)
