"""Rescale: sums of exp(x - maximum) in the loop that looks for the maximum."""

from __future__ import annotations

from math import inf, nan
from random import Random

import numpy as np
import pytest
from every import every
from schedules.test_steps import body_of

import tirlite as tl

h, n, d = tl.dims("h n d")


@tl.kernel(allow="rescale")
def softmax(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    top = tl.f32(-inf)
    for i in tl.reduce(n):
        top = max(top, x[i])
    total = tl.f32(0)
    for j in tl.reduce(n):
        total += tl.exp(x[j] - top)
    for k in range(n):
        y[k] = tl.exp(x[k] - top) / total


def test_sums_are_scaled_where_the_maximum_grows() -> None:
    s = tl.schedule(softmax)
    s.rescale("i", "j")
    assert str(s).endswith("s.rescale('i', 'j')")
    assert body_of(s) == (
        'with tl.allow("rescale"):\n'
        '    top = tl.alloc(tl.f32[()], scope="local")\n'
        '    top[()] = tl.f32("-inf")\n'
        '    total_scaled = tl.alloc(tl.f32[()], scope="local")\n'
        "    total_scaled[()] = tl.f32(-0.0)\n"
        "    for i in range(n):\n"
        "        before = top[()]\n"
        "        top[()] = max(top[()], x[i])\n"
        "        now = top[()]\n"
        "        if now != before:\n"
        "            factor = tl.exp(before - now)\n"
        "            total_scaled[()] = total_scaled[()] * factor\n"
        '        shift = tl.select(now == tl.f32("-inf"), tl.f32(0.0), now)\n'
        "        total_scaled[()] = total_scaled[()] + tl.exp(x[i] - shift)\n"
        '    total = tl.alloc(tl.f32[()], scope="local")\n'
        "    total[()] = tl.f32(0.0)\n"
        '    shift_1 = tl.select(top[()] == tl.f32("-inf"), tl.f32(0.0), top[()])\n'
        "    last = tl.select(shift_1 == top[()], tl.f32(1.0), tl.exp(shift_1 - top[()]))\n"
        "    total[()] = total[()] + total_scaled[()] * last\n"
        "    for k in range(n):\n"
        "        y[k] = tl.exp(x[k] - top[()]) / total[()]"
    )


def by_blocks(s: tl.Schedule) -> None:
    s.split("i", 2)
    s.split("j", 2)
    s.rescale("i.outer", "j.outer")


PLAIN = tl.compile(softmax, schedule=None)
RESCALED = [tl.compile(softmax, schedule=steps) for steps in (lambda s: s.rescale("i", "j"), by_blocks)]


@pytest.mark.parametrize(
    "values",
    [[], [2], [-inf], [-inf, -inf], [-inf, 3, -inf, 4], [3, inf, 2], [1, nan, 2], [-200, 0, 200, 88], [5] * 70],
)
def test_a_maximum_of_nothing_infinities_and_nan(values: list[float]) -> None:
    x = np.array(values, np.float32)
    wanted = PLAIN(x)
    for kernel in RESCALED:
        found = kernel(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        if len(x):
            assert tl.compile(kernel.lowered, schedule=None).interpret(x).tobytes() == found.tobytes()  # type: ignore[union-attr]


@tl.kernel(allow=("contract", "rescale"))
def attention(q: tl.f32[h, n, d], k: tl.f32[h, n, d], v: tl.f32[h, n, d], y: tl.out[tl.f32[h, n, d]]):
    for a in tl.parallel(h):
        for i in range(n):
            score = tl.alloc(tl.f32[n])
            for j in range(n):
                score[j] = 0
                for p in tl.reduce(d):
                    score[j] += q[a, i, p] * k[a, j, p]
            top = tl.f32(-inf)
            for j in tl.reduce(n):
                top = max(top, score[j])
            total = tl.f32(0)
            for j in tl.reduce(n):
                total += tl.exp(score[j] - top)
            for p in range(d):
                y[a, i, p] = 0
            for j in tl.reduce(n):
                weight = tl.exp(score[j] - top)
                for p in range(d):
                    y[a, i, p] += weight * v[a, j, p]
            for p in range(d):
                y[a, i, p] = y[a, i, p] / total


def test_attention_keeps_scores_of_a_block() -> None:
    def in_one_sweep(s: tl.Schedule) -> None:
        for _ in range(3):
            s.split(s.loop("j", 1), 16)
        s.rescale(*(s.loop("j.outer", place) for place in range(3)))
        s.compute_at("j", at="j.outer")

    kernel = tl.compile(attention, schedule=in_one_sweep, target=tl.Target.host(workers=1))
    assert str(kernel.plan.total) == "4*d + 64"
    plain = tl.compile(attention, schedule=None)
    numbers = np.random.default_rng(0)
    for shape in ((1, 1, 1), (2, 16, 3), (2, 50, 8)):
        q, k, v = (3 * numbers.normal(size=shape).astype("f") for _ in range(3))
        np.testing.assert_allclose(kernel(q, k, v), plain(q, k, v), rtol=1e-5, atol=1e-6)


def random_sums(draw: Random) -> tuple[str, int]:
    """A kernel that sums up random multiples of exp(x - top), and how many loops do so."""
    exp, x = draw.choice(("exp", "exp2")), draw.choice(("x[j]", "x[j] * z[j]", "x[j] - z[j]"))
    begin = draw.choice(("tl.f32('-inf')", "tl.f32(0.5)", "tl.f32(-1e30)"))
    lines = [f"top = {begin}", "for j in tl.reduce(n):"]
    lines += draw.choice(([f"    top = max(top, {x})"], [f"    of = {x}", "    top = max(of, top)"]))
    sums = draw.randint(1, 3)
    for number in range(sums):
        term = draw.choice(("{}", "{} * z[j]", "-{}", "z[j] * {} / tl.f32(3)")).format(f"tl.{exp}({x} - top)")
        lines += draw.choice(([], ["y[2, 2] = s"])) + ["for j in tl.reduce(n):"]
        if draw.random() < 0.5:
            lines += [f"    e = {term}", "    for p in range(3):", f"        y[{number}, p] += e * w[j, p]"]
        else:
            lines.append(f"    y[{number}, 0] += {term}")
    head = "n = tl.dim('n')\n@tl.kernel(allow='rescale')\n"
    head += "def f(x: tl.f32[n], z: tl.f32[n], w: tl.f32[n, 3], s: tl.f32, y: tl.f32[3, 3]):\n"
    return head + "".join(f"    {line}\n" for line in lines), sums


@pytest.mark.parametrize("seed", range(8))
def test_random_sums(seed: int) -> None:
    draw = Random(seed)
    text, sums = random_sums(draw)
    func, block = tl.parse(text), draw.choice((0, 1, 4, 16))
    s = tl.schedule(func)
    for _ in range(sums + 1) if block else ():
        s.split(s.loop("j", 0), block)
    s.rescale(*(s.loop("j.outer" if block else "j", place) for place in range(sums + 1)))
    kernel, plain = tl.compile(func, schedule=s), tl.compile(func, schedule=None)
    lowered = tl.compile(kernel.lowered, schedule=None)
    numbers = np.random.default_rng(seed)
    for size in (0, 1, 5, 40):
        given = [numbers.normal(size=shape).astype("f") for shape in (size, size, (size, 3))]
        found, again, wanted = (np.ones((3, 3), "f") for _ in range(3))
        kernel(*given, 0.25, found)
        plain(*given, 0.25, wanted)
        # As large as all terms together.
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
        if size:
            lowered.interpret(*given, 0.25, again)
            assert found.tobytes() == again.tobytes()


def refused_sums(*lines: str, granted: str = "rescale") -> tl.PrimFunc:
    top = ["top = tl.f32(0)", "for i in tl.reduce(n):", "    top = max(top, x[i])"]
    head = f"n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n], y: tl.f32[n]):\n    with tl.allow('{granted}'):\n"
    return tl.parse(head + "".join(f"        {line}\n" for line in (*top, *lines)))


LOOP, TERM = "for j in tl.reduce(n):", "    y[0] += tl.exp(x[j] - top)"


@every(
    "lines, reason",
    [
        ((LOOP, TERM + " + 1"), "is no multiple of one"),
        ((LOOP, "    y[0] += tl.exp(x[j]) * top"), "is no multiple of one"),
        ((LOOP, "    y[0] += tl.exp(top - x[j])"), "is no multiple of one"),
        ((LOOP, "    y[0] += tl.exp(2 * x[j] - top)"), "of what that is the maximum of"),
        (("for j in range(n):", TERM), "is no `tl.reduce` of the range"),
        (("for j in tl.reduce(1, n):", TERM), "is no `tl.reduce` of the range"),
        ((LOOP, "    y[0] += x[j]"), "combines no one maximum that the others read"),
        (("x[0] = 1", LOOP, TERM), "is written between the loops"),
        (("top = 1", LOOP, TERM), "load and store other elements"),
        ((LOOP, "    if x[j] > 0:", "    " + TERM), "is decided by a branch"),
        ((LOOP, "    y[j] = top", TERM), "and not combined|read by its iterations"),
    ],
)
def test_what_may_not_go_together_is_refused(lines: tuple[str, ...], reason: str) -> None:
    with pytest.raises(tl.KernelError, match=reason):
        tl.schedule(refused_sums(*lines)).rescale("i", "j")


def test_it_is_to_be_granted() -> None:
    with pytest.raises(tl.KernelError, match=r'grant tl.allow\("rescale"\)'):
        tl.schedule(refused_sums(LOOP, TERM, granted="contract")).rescale("i", "j")


def test_what_is_read_further_on_than_it_is_written_is_not_there_yet() -> None:
    @tl.kernel(allow="rescale")
    def ahead(x: tl.f32[n], t: tl.f32[n], y: tl.f32[1]):
        top = tl.f32(0)
        for i in tl.reduce(n):
            t[i] = 2 * x[i]
            top = max(top, x[i])
        for j in tl.reduce(n):
            y[0] += tl.exp(x[j] - top) * t[n - 1 - j]

    with pytest.raises(tl.KernelError, match="must come after"):
        tl.schedule(ahead).rescale("i", "j")


def test_sums_of_sums_are_not_there_yet() -> None:
    @tl.kernel(allow="rescale")
    def twice(x: tl.f32[n], y: tl.f32[2]):
        top = tl.f32(0)
        for i in tl.reduce(n):
            top = max(top, x[i])
        for j in tl.reduce(n):
            y[0] += tl.exp(x[j] - top)
        for k in tl.reduce(n):
            y[1] += tl.exp(x[k] - top) * y[0]

    with pytest.raises(tl.KernelError):
        tl.schedule(twice).rescale("i", "j", "k")
