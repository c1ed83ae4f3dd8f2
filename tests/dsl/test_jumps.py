"""`break`, `continue` and early `return` mean what they mean in Python, in loops and branches of any nesting."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import numpy as np
from every import every

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def first_of(x: tl.i64[n], key: tl.i64, at: tl.out[tl.i64[1]]):
    at[0] = -1
    for i in range(n):
        if x[i] == key:
            at[0] = i
            break


@tl.kernel
def primes(p: tl.out[tl.bool_[n]]):
    for i in range(n):
        p[i] = i >= 2
    for i in range(2, n):
        if not p[i]:
            continue
        if i * i >= n:
            break
        for j in range(i * i, n, i):
            p[j] = False


@tl.inline
def clamped(v, low, high):
    if v < low:
        return low
    if v > high:
        return high
    return v


@tl.inline
def position(x, key):
    for i in range(x.shape[0]):
        if x[i] == key:
            return i, True
    return -1, False


@tl.kernel
def positions(x: tl.i64[n], keys: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in tl.parallel(n):
        if keys[i] < 0:
            y[i] = -2
            continue
        at, found = position(x, keys[i])
        y[i] = clamped(at, 0, 2) if found else -1


def test_a_loop_that_breaks_is_a_while_with_a_flag() -> None:
    assert "while going[()] and i[()] < n:" in str(first_of.ir)
    assert first_of(np.array([5, 7, 7, 9]), 7) == [1]
    assert tl.structural_equal(tl.parse(str(first_of.ir)), first_of.ir)


def test_what_follows_a_continue_is_the_other_branch() -> None:
    text = str(primes.ir)
    assert (
        "        if p[i_2]:\n            if i_2 * i_2 >= n:\n                going[()] = False\n            else:"
        in text
    )
    assert text.count("going") == 4
    found = np.empty(50, bool)
    primes(found)
    assert [int(each) for each in np.flatnonzero(found)] == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]


def test_plain_values_of_early_returns_are_one_expression() -> None:
    @tl.kernel
    def clamp_all(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = clamped(x[i], 0, 1)

    assert "while" not in str(clamp_all.ir)
    assert "alloc" not in str(clamp_all.ir)
    np.testing.assert_array_equal(clamp_all(np.float32([-1, 0.5, 3])), np.float32([0, 0.5, 1]))


def test_a_return_out_of_a_loop_gives_several_values() -> None:
    x, keys = np.array([4, 5, 6, 7]), np.array([7, 4, 9, -1])
    np.testing.assert_array_equal(positions(x, keys), [2, 0, -1, -2])
    np.testing.assert_array_equal(positions.interpret(x, keys), [2, 0, -1, -2])


def test_else_of_a_loop_runs_unless_it_was_left() -> None:
    @tl.kernel
    def has(x: tl.i64[n], key: tl.i64, y: tl.out[tl.i64[1]]):
        for i in range(n):
            if x[i] == key:
                y[0] = 1
                break
        else:
            y[0] = 0

    assert has(np.array([1, 2]), 2) == [1]
    assert has(np.array([1, 2]), 3) == [0]


class Program:
    """A function of random jumps, which writes down in `y` the way that it takes."""

    def __init__(self, seed: int, *, gives_value: bool) -> None:
        self.random = random.Random(seed)
        self.gives_value = gives_value
        self.lines: list[str] = []
        self.loops = 0
        self.block(1, 0, 4)
        if gives_value:
            self.lines.append("    return 99.0")

    def test(self) -> str:
        names = ["k", *(f"i{each}" for each in range(self.loops))]
        return f"({self.random.choice(names)} + {self.random.randrange(5)}) % {self.random.randrange(2, 5)} == 0"

    def block(self, depth: int, loop_depth: int, most: int) -> None:
        indent = "    " * depth
        for _ in range(self.random.randrange(1, most + 1)):
            kind = self.random.choice(["note", "note", "if", "if", "for", "while", "jump"])
            if kind == "note" or depth > 4:
                self.lines.append(f"{indent}y[0] = y[0] * 0.75 + {self.random.randrange(9)}")
            elif kind == "if":
                self.lines.append(f"{indent}if {self.test()}:")
                self.block(depth + 1, loop_depth, 2)
                if self.random.random() < 0.5:
                    self.lines.append(f"{indent}else:")
                    self.block(depth + 1, loop_depth, 2)
            elif kind == "jump" and (loop_depth or self.random.random() < 0.3):
                jump = self.random.choice(["break", "continue", "return"]) if loop_depth else "return"
                value = f" y[0] + {self.random.randrange(9)}" if jump == "return" and self.gives_value else ""
                self.lines.append(f"{indent}{jump}{value}")
                return
            elif kind in ("for", "while") and loop_depth < 3:
                self.loop(kind, indent, depth, loop_depth)
            else:
                self.lines.append(f"{indent}y[1] += 1")

    def loop(self, kind: str, indent: str, depth: int, loop_depth: int) -> None:
        name, step = f"i{self.loops}", self.random.choice(["1", "2", "-1", "k + 1"])
        if kind == "for":
            bounds = f"3, -1, {step}" if step == "-1" else f"0, 4, {step}"
            self.lines.append(f"{indent}for {name} in range({bounds}):")
        else:
            name = f"w{self.loops}"
            self.lines += [f"{indent}{name} = 0", f"{indent}while {name} < 3:", f"{indent}    {name} += 1"]
        known = self.loops
        if kind == "for":
            self.loops += 1
        self.block(depth + 1, loop_depth + 1, 3)
        if self.random.random() < 0.3 and any(line.strip() == "break" for line in self.lines[-3:]):
            self.lines += [f"{indent}else:", f"{indent}    y[1] += 2"]
        self.loops = known


@every("seed", range(40))
def test_random_jumps_mean_what_python_means(seed: int, tmp_path: Path) -> None:
    gives_value = seed % 2 == 1
    lines = Program(seed, gives_value=gives_value).lines
    own = ["import tirlite as tl", "def plain(y, k):", *lines, "@tl.inline", "def f(y, k):", *lines]
    call = "y[2] = f(y, k)" if gives_value else "f(y, k)"
    own += ["@tl.kernel", "def kernel(y: tl.f64[3], k: tl.i64):", f"    {call}"]
    file = tmp_path / f"program{seed}.py"
    file.write_text("\n".join(own) + "\n", "utf-8")
    try:
        made = runpy.run_path(str(file))
    except tl.KernelError as error:
        assert "`else` of a loop" in str(error)  # noqa: PT017  # a loop that nothing breaks
        return
    kernel = made["kernel"]
    assert tl.structural_equal(tl.parse(str(kernel.ir)), kernel.ir)
    for k in (0, 1, 2, 3):
        expected, found, native = np.ones(3), np.ones(3), np.ones(3)
        value = made["plain"](expected, k)
        expected[2] = 1 if value is None else value
        kernel.interpret(found, k)
        np.testing.assert_array_equal(found, expected)
        if seed < 12:
            kernel(native, k)
            np.testing.assert_array_equal(native, expected)
