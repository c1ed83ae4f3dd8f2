"""Whether iterations may run at once where each writes the rows of a tile: many accesses that differ by numbers."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

from every import every

import tirlite as tl
from tirlite.analysis import Facts
from tirlite.analysis.loops.dependence import Pair
from tirlite.rewrite import Normalize

ROWS = 8
TILES = 60
HEADER = "@tl.kernel\ndef f(x: tl.f32[4096], a: tl.f32[64, 256]):\n"


def rows_of(random: Random) -> tuple[str, bool]:
    """A loop over tiles, and whether two of its iterations meet where one of them writes."""
    count, width = random.choice((1, 3, 6)), random.choice((1, 4))
    apart, step, across = random.choice((1, 4, 7, 8, 9, 32)), random.choice((1, 1, 2, 4)), random.choice((0, 0, 4, 8))
    lines = [f"    for i in range({count}):"]
    touched: list[dict[bool, set[tuple[int, int]]]] = [{True: set(), False: set()} for _ in range(count)]
    for number in range(random.randrange(4, 9)):
        row, column = random.randrange(ROWS), random.randrange(4)
        is_write = number == 0 or random.random() < 0.7
        element = f"a[{apart} * i + {row}, {step} * v + {across} * i + {column}]"
        lines += [f"        for v in range({width}):", f"            {element} = 1" if is_write else ""]
        lines[-1] = lines[-1] or f"            x[4 * {number} + v + 64 * i] = {element}"
        for i, v in product(range(count), range(width)):
            touched[i][is_write].add((apart * i + row, step * v + across * i + column))
    meet = any(
        one[True] & (other[True] | other[False]) or one[False] & other[True] for one, other in combinations(touched, 2)
    )
    return "\n".join(lines), meet


@every("seed", range(TILES))
def test_tiles_that_meet_are_never_said_to_lie_apart(seed: int) -> None:
    random = Random(seed)
    for _ in range(4):
        text, meet = rows_of(random)
        facts = Facts(Normalize()(tl.parse(HEADER + text)))
        is_independent = facts.is_independent(facts.func.body.stmts[0])
        assert not (is_independent and meet), text


def test_rows_of_tiles_take_one_proof(monkeypatch) -> None:
    rows = "\n".join(f"        for v in range(16):\n            a[8 * i + {row}, 16 * j + v] = 1" for row in range(8))
    text = f"{HEADER}    for piece in range(128):\n        i = piece // 16\n        j = piece % 16\n{rows}"
    facts, solve, asked = Facts(Normalize()(tl.parse(text))), Pair.solve, []
    monkeypatch.setattr(Pair, "solve", lambda *args: asked.append(args) or solve(*args))
    assert facts.is_independent(facts.func.body.stmts[0])
    assert len(asked) == 1


@every("last, is_independent", [(8, True), (9, False)])
def test_rows_that_reach_into_the_next_tile_are_found(last: int, is_independent: bool) -> None:
    rows = "\n".join(f"        x[9 * i + {row}] = 1" for row in (*range(8), last))
    facts = Facts(Normalize()(tl.parse(f"{HEADER}    for i in range(64):\n{rows}")))
    assert facts.is_independent(facts.func.body.stmts[0]) is is_independent
