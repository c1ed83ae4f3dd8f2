"""NarrowIntegers: small integers are computed in 16 bits where no value needs more, and else left as they are."""

from __future__ import annotations

from random import Random

import numpy as np
from effort import effort
from every import every

import tirlite as tl
from tirlite.codegen import Effort

n, m = tl.dims("n m")


def narrowed(kernel: tl.Kernel) -> str:
    func = tl.passes.Normalize()(kernel.ir)
    made = tl.passes.NarrowIntegers()(func)
    return "" if made is func else str(made).split("]):\n")[1]


def test_differences_of_bytes_and_their_sums_take_16_bits() -> None:
    @tl.kernel
    def apart(x: tl.u8[n, 64], t: tl.u8[8, 8], y: tl.i32[n]):
        for i in range(n):
            total = tl.i32(0)
            for p in range(8):
                for q in range(8):
                    total += abs(tl.i32(x[i, p * 8 + q]) - tl.i32(t[p, q]))
            y[i] = total

    assert narrowed(apart) == (
        "    for i in range(n):\n"
        '        total = tl.alloc(tl.i16[()], scope="local")\n'
        "        total[()] = tl.i16(0)\n"
        "        for p in range(8):\n"
        "            for q in range(8):\n"
        "                total[()] = total[()] + tl.abs(tl.i16(x[i, p * 8 + q]) - tl.i16(t[p, q]))\n"
        "        y[i] = tl.i32(total[()])"
    )


def test_a_sum_in_an_array_takes_16_bits_in_a_scalar_and_as_many_lanes_as_these_fill() -> None:
    @tl.kernel(target=tl.Target("x86-64-v4", workers=1))
    def apart(x: tl.u8[n + 7, m + 7], t: tl.u8[8, 8], y: tl.i32[n, m]):
        for i in range(n):
            for j in range(m):
                y[i, j] = 0
                for p in tl.reduce(8):
                    for q in tl.reduce(8):
                        y[i, j] += abs(tl.i32(x[i + p, j + q]) - tl.i32(t[p, q]))

    assert "y_1[()] = y_1[()] + tl.abs(tl.i16(x[i + p, j + q]) - tl.i16(t[p, q]))" in narrowed(apart)
    assert "y[i, tl.ramp(first, 1, 32)] = tl.i32x32(y_1[tl.ramp(0, 1, 32)])" in str(apart.lowered)
    here = tl.compile(apart.ir, target=tl.Target.host(workers=1))
    draw = np.random.default_rng(0)
    for rows, columns in ((1, 1), (5, 31), (4, 33), (9, 70)):
        x, t = (draw.integers(0, 256, shape, dtype=np.uint8) for shape in ((rows + 7, columns + 7), (8, 8)))
        y, wanted = np.zeros((2, rows, columns), np.int32)
        here(x, t, y)
        here.interpret(x, t, wanted)
        np.testing.assert_array_equal(y, wanted)


def test_a_value_that_needs_17_bits_leaves_the_loop_as_it_is() -> None:
    @tl.kernel
    def squares(x: tl.i16[n], y: tl.u8[n]):
        for i in range(n):
            y[i] = tl.u8((tl.i32(x[i]) * tl.i32(x[i])) >> 16)

    assert narrowed(squares) == ""


def test_what_decides_an_extent_stays_as_wide_as_it_is() -> None:
    @tl.kernel(target=tl.Target.host(workers=1))
    def clamped(x: tl.u8[n], y: tl.out[tl.u8[n]]):
        for i in range(n):
            k = tl.i64(min(x[i], tl.u8(4)))
            t = tl.alloc(tl.u8[k + 1])
            for j in range(k + 1):
                t[j] = tl.u8((tl.i32(x[i]) + 3) >> 1)
            y[i] = t[k]

    assert "k = tl.i64(min(x[i], tl.u8(4)))" in narrowed(clamped)
    x = np.arange(100, dtype=np.uint8)
    np.testing.assert_array_equal(clamped(x), (x + 3) >> 1)


def test_a_loop_that_also_computes_of_wide_data_is_left_as_it_is() -> None:
    @tl.kernel
    def mixed(x: tl.u8[n], w: tl.i32[n], y: tl.u8[n], z: tl.i32[n]):
        for i in range(n):
            y[i] = tl.u8((tl.i32(x[i]) + 1) >> 1)
            z[i] = w[i] + 1

    assert narrowed(mixed) == ""


def test_what_becomes_a_float_at_once_stays_wide() -> None:
    """A float is made of 32 bits. Of nine elements and one float, 16 bits serve the sum."""

    @tl.kernel
    def weights(x: tl.u8[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = tl.f32(tl.i32(x[i] & 15) - 8)

    @tl.kernel
    def means(x: tl.u8[n + 8], y: tl.f32[n]):
        for i in range(n):
            total = tl.i32(0)
            for q in range(9):
                total += tl.i32(x[i + q]) - tl.i32(x[i])
            y[i] = tl.f32(total) / 9

    assert narrowed(weights) == ""
    assert "total[()] = total[()] + (tl.i16(x[i + q]) - tl.i16(x[i]))" in narrowed(means)


def test_sums_of_unknown_length_stay_wide() -> None:
    @tl.kernel
    def rows(x: tl.u8[n, m], y: tl.i32[n]):
        for i in range(n):
            total = tl.i32(0)
            for j in range(m):
                total += x[i, j]
            y[i] = total

    assert narrowed(rows) == ""


def test_what_is_never_negative_takes_u16_where_i16_is_too_small_and_names_become_narrow() -> None:
    @tl.kernel
    def grey(x: tl.u8[n, 3], y: tl.u8[n]):
        for i in range(n):
            red = tl.i32(x[i, 0])
            y[i] = tl.u8((77 * red + 150 * tl.i32(x[i, 1]) + 29 * tl.i32(x[i, 2]) + 128) >> 8)

    assert narrowed(grey) == (
        "    for i in range(n):\n"
        "        red = x[i, 0]\n"
        "        y[i] = tl.u8(tl.u16(tl.i16(77) * tl.i16(red)) + tl.u16(150) * tl.u16(x[i, 1])"
        " + tl.u16(tl.i16(29) * tl.i16(x[i, 2])) + tl.u16(128) >> tl.u16(8))"
    )


def test_bytes_are_divided_by_bytes_in_16_bits() -> None:
    @tl.kernel
    def straight(x: tl.u8[n], alpha: tl.u8[n], y: tl.u8[n]):
        for i in range(n):
            y[i] = tl.u8(min((tl.i32(x[i]) * 255 + tl.i32(alpha[i]) // 2) // tl.i32(alpha[i]), 255))

    assert "tl.u8(min((tl.u16(x[i]) * tl.u16(255) + " in narrowed(straight)
    x, alpha = (each.ravel().astype(np.uint8) for each in np.meshgrid(np.arange(256), np.arange(256)))
    y = np.empty_like(x)
    straight(x, alpha, y)
    a = alpha.astype(np.int32)
    wanted = np.where(a == 0, 0, np.minimum((x.astype(np.int32) * 255 + a // 2) // np.maximum(a, 1), 255))
    np.testing.assert_array_equal(y, wanted)


def test_the_least_of_i16_has_no_absolute_value_there() -> None:
    @tl.kernel
    def size(x: tl.i16[n], y: tl.i32[n]):
        for i in range(n):
            y[i] = abs(tl.i32(x[i]))

    assert narrowed(size) == ""
    y = np.empty(70, np.int32)
    size(np.full(70, -(1 << 15), np.int16), y)
    assert (y == 1 << 15).all()


ARRAYS = {"a": "u8", "b": "i8", "c": "u16", "d": "i16", "e": "bool_"}


def expression(draw: Random, depth: int, names: tuple[str, ...]) -> str:
    """One over elements of `ARRAYS` and names, as an i32 or i64."""
    if depth == 0 or draw.random() < 0.15:
        return draw.choice(
            [*(f"{{t}}({each}[i])" for each in ARRAYS), "{t}(a[i])", *names, f"{{t}}({draw.randint(-300, 300)})"]
        )
    one, other = (expression(draw, depth - 1, names) for _ in range(2))
    number = f"{{t}}({draw.choice((1, 2, 3, 7, 8, 100, 255))})"
    kinds = (
        *(f"({one} {sign} {other})" for sign in "+-*+-"),
        f"min({one}, {other})",
        f"max({one}, {other})",
        f"abs({one})",
        f"(-{one})",
        f"({one} // {number})",
        f"({one} % {number})",
        f"({one} // max({other} & {number}, {{t}}(1)))",
        f"({one} % max({other}, {{t}}({draw.randint(1, 3)})))",
        f"({one} >> {{t}}({draw.randint(0, 9)}))",
        f"({one} & {number})",
        f"({one} if {one} < {other} else {number})",
        f"tl.select({one} >= {other}, {one}, {other})",
    )
    return draw.choice(kinds)


@every("seed", range(24))
def test_random_expressions_keep_their_values(seed: int) -> None:
    draw = Random(seed)
    wide = draw.choice(("tl.i32", "tl.i64", "tl.i32"))
    turns = draw.choice((1, 3, 16))
    value, term, last = (
        expression(draw, draw.randint(1, 4), names).replace("{t}", wide) for names in ((), ("v",), ("v", "s"))
    )
    given = ", ".join(f"{name}: tl.{kind}[n]" for name, kind in ARRAYS.items())
    kind = draw.choice(("u8", "i16", "i32", "f32"))
    text = f"""
n = tl.dim("n")
@tl.kernel
def f({given}, y: tl.{kind}[n]):
    for i in range(n):
        v = {value}
        s = {wide}(0)
        for q in range({turns}):
            s {draw.choice("+-")}= {term}
        y[i] = tl.{kind}({last})
"""
    with effort(Effort.NONE):
        kernel = tl.compile(tl.parse(text))
        for size in (1, 33, 150):
            numbers = np.random.default_rng([seed, size])
            arrays = []
            for dtype in ARRAYS.values():
                item = getattr(tl, dtype).numpy
                ends = (0, 1) if item.kind == "b" else (np.iinfo(item).min, np.iinfo(item).max)
                spread = numbers.integers(ends[0], ends[1] + 1, size)
                arrays.append(np.where(numbers.random(size) < 0.3, numbers.choice(ends, size), spread).astype(item))
            out = np.zeros(size, kernel.ir.params[-1].dtype.numpy)
            wanted = out.copy()
            kernel(*arrays, out)
            kernel.interpret(*arrays, wanted)
            np.testing.assert_array_equal(out, wanted, text + str(kernel.lowered))
