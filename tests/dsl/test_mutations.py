"""Whatever the text, tl.parse gives a function or a TirliteError: tried on mutated kernels."""

from __future__ import annotations

import random
import re

import pytest

import tirlite as tl
from tirlite import ir

KERNEL = '''
n, m = tl.dims("n m")
k = tl.dim("k", min=0, max=64, multiple_of=8)

@tl.kernel
def blur(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]], z: tl.i32[k], gain: tl.f32, limit: tl.i64):
    """What it does."""
    rows = tl.alloc(tl.f32[n, m], scope="local.UB", alignment=64)
    words = tl.view(rows, tl.u8[4 * n], byte_offset=8)
    total: tl.f64 = 0
    count = 0
    for i in range(n):
        for j in tl.parallel(1, m - 1):
            t = (x[i, j - 1] + x[i, j] + x[i, j + 1]) / 3
            rows[i, j] = t * gain if 0 <= t < 1 else tl.exp(t) ** 0.5
            total += t
        count += 1
    while count > 0 and not total < 0.5:
        count -= 1
        if count % 2 == 0:
            s = min(rows[0, 0], 1, gain)
        elif words[3] != 7:
            s = abs(rows[0, 1])
        else:
            s = tl.select(count > 3, rows[1, 1], 2)
        y[count, 0] = s
    with tl.attr(rows, "double_buffer"):
        for l in tl.thread("threadIdx.x", 32):
            z[l] = (z[l] << 2 | 3) & ~z[l] // 2
    assert limit > 0, "limit"
    v = tl.let(q, limit * 2, q + q)
    y[tl.i32(v), 0] = tl.f32(v)
    tl.call_extern("f32", "log_it", x, tl.address_of(x[0, 0]), v)
'''

TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
SPICE = [
    *"x y z i j t s n m k total rows tl f32 i64 u8 bool_ alloc view attr let range parallel min abs exp".split(),
    *"[ ] ( ) , : = == += < ** // @ * : ; ... \\ None True 0 -1 1.5 1e400 2**9999 1<<9999 'text' é".split(),
    *"lambda not and if else for in is def return yield await global del with async match case pass break".split(),
    *"x.shape x.shape[0] tl.f32[n] tl.f16 tl.ramp(0,1,4) x[0,0] t[()] 99999999999999999999 while import".split(),
    *"\n\t\x00",
]


def mutated(text: str, rng: random.Random) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice([1, 1, 2, 3, 8])):
        place, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        kind = rng.randrange(5)
        if kind == 0:
            tokens[place] = rng.choice(SPICE)
        elif kind == 1:
            tokens[place] = ""
        elif kind == 2:
            tokens.insert(place, rng.choice(SPICE))
        elif kind == 3:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        else:
            tokens[place] = tokens[other]
    return "".join(tokens)


def mutated_lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    for _ in range(rng.choice([1, 2, 4])):
        place, other = rng.randrange(6, len(lines)), rng.randrange(6, len(lines))
        kind = rng.randrange(4)
        if kind == 0:
            del lines[place]
        elif kind == 1:
            lines[place], lines[other] = lines[other], lines[place]
        elif kind == 2:
            lines.insert(place, lines[other])
        else:
            lines[place] = "    " + lines[place]
    return "\n".join(lines)


def check(text: str) -> bool:
    """Whether `text` is a kernel; it then reads back as printed."""
    try:
        func = tl.parse(text)
    except tl.TirliteError as error:
        return not str(error).startswith("error[")
    assert tl.structural_equal(func, tl.parse(str(func)))
    return True


def test_the_kernel_itself_is_one() -> None:
    assert check(KERNEL)
    assert isinstance(tl.parse(KERNEL), ir.PrimFunc)


@pytest.mark.parametrize("seed", range(10))
def test_mutated_text_is_a_kernel_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    outcomes = [check(rng.choice([mutated, mutated, mutated_lines])(KERNEL, rng)) for _ in range(60)]
    assert not all(outcomes)
