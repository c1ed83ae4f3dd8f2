"""Text of the kernel language in, the same text with a few mistakes out; and what must hold of `tl.parse` on it.

As a command, tries many: `PYTHONPATH=.:tests python tests/fuzz/mutations.py 100000`.
"""

from __future__ import annotations

import argparse
import pickle
import random
import re
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from fuzz.generator import generate
from fuzz.setups import target_of
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.kernels import gallery

SECONDS = 5

WRITTEN = '''
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
    *"\n\t\x00\f\r\u2028\ud800",
]
KINDS = {
    "number": r"\d\w*",
    "keyword": "and|as|assert|def|elif|else|for|if|in|not|or|pass|while|with",
    "name": r"\w+",
    "blank": r"\s+",
    "operator": r"[-+*/%<>&|^=]",
    "mark": ".",
}
PEERS: dict[str, Sequence[str]] = {
    "number": ["0", "1", "2", "7", "64", "255", "4294967296", "9223372036854775807", "1e400", "0.1", "2j"],
    "keyword": ["and", "or", "not", "in", "is", "if", "else", "for", "while", "with", "return", "break"],
    "name": [
        *SPICE[:19],
        "out",
        "view",
        "f32x4",
        "i8",
        "u64",
        "select",
        "broadcast",
        "address_of",
        "call_extern",
        "thread",
    ],
    "blank": [" ", "", "  "],
    "operator": ["+", "-", "*", "/", "//", "%", "**", "<", "==", "!=", ">>", "&", "^", "@", "=", "+="],
    "mark": ["(", ")", "[", "]", ",", ".", ":", '"', "~"],
}


class TooSlow(BaseException):
    """The limit of time has passed."""


def texts() -> list[str]:
    """A kernel as an author writes it; some of the gallery and of random programs, before and after the passes."""
    kernels = list(dict.fromkeys(case.kernel for case in gallery.CASES))[:: 1 if IS_THOROUGH else 3]
    kernels += [tl.compile(generate(seed).func, target=target_of(1)) for seed in range(4)]
    return [WRITTEN, *(str(func) for kernel in kernels for func in (kernel.ir, kernel.lowered))]


def mutated(text: str, rng: random.Random) -> str:
    """`text` with mistakes: in words of one kind, which mostly leave it Python, in any words, or in whole lines."""
    return rng.choice((*[_mutated_kinds] * 4, _mutated_words, _mutated_lines))(text, rng)


def _mutated_kinds(text: str, rng: random.Random) -> str:
    """`text` with names in the places of names, operators in those of operators."""
    tokens = TOKEN.findall(text)
    kinds: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        kinds.setdefault(_kind(token), []).append(place)
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind = rng.choice([kind for kind in ("name", "name", "name", "number", "operator", *KINDS) if kind in kinds])
        place, other = rng.choice(kinds[kind]), rng.choice(kinds[kind])
        tokens[place] = rng.choice([tokens[other], rng.choice(PEERS[kind])])
    return "".join(tokens)


def _kind(token: str) -> str:
    return next(kind for kind, members in KINDS.items() if re.fullmatch(members, token, re.DOTALL))


def _mutated_words(text: str, rng: random.Random) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice([1, 1, 2, 3])):
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


def _mutated_lines(text: str, rng: random.Random) -> str:
    lines = text.splitlines()
    for _ in range(rng.choice([1, 2, 4])):
        place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(4)
        if kind == 0 and len(lines) > 1:
            del lines[place]
        elif kind == 1:
            lines[place], lines[other] = lines[other], lines[place]
        elif kind == 2:
            lines.insert(place, lines[other])
        else:
            lines[place] = "    " + lines[place]
    return "\n".join(lines)


def outcome(text: str) -> str:
    """The code of the error that `tl.parse` answers with, or "" for a kernel, which then reads back as printed.

    An error can be printed and carried to another process, and lists at most twenty mistakes in the order of the text.
    """
    with _limit():
        try:
            func = tl.parse(text)
        except tl.TirliteError as error:
            refused = error
        else:
            assert tl.structural_equal(func, tl.parse(str(func)))
            return ""
    assert str(refused).startswith("error[")
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)
    lines = [message.span.line for message in refused.messages if message.span]
    assert len(refused.messages) <= 20
    assert lines == sorted(lines)
    return refused.code


@contextmanager
def _limit() -> Iterator[None]:
    """Ends what takes too many seconds of processor time; others may be busy on the same machine."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def main(argv: Sequence[str] | None = None) -> int:
    """Tries as many mutations as asked for; prints each failure with its text, and how often each code came."""
    parser = argparse.ArgumentParser(description="tl.parse on mutated text")
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args(argv)
    found = texts()
    codes: Counter[str] = Counter()
    failures = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        rng = random.Random(seed)
        text = mutated(rng.choice(found), rng)
        try:
            codes[outcome(text)] += 1
        except (Exception, TooSlow):
            failures += 1
            print(f"=== seed {seed}\n{text!r}\n{traceback.format_exc()}", flush=True)
    for code, count in codes.most_common():
        print(f"{count:8} {code or 'a kernel'}")
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
