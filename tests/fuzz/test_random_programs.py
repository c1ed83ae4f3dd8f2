"""Random programs keep their meaning when they are printed, rewritten and compiled, and cover what matters.

`python -m pytest tests/fuzz --programs 20000` runs more of them; `--full-cross` each in all setups; `--seed 7` prints
the smallest program that fails as that of seed 7 does; `-s -k cover` prints what they cover.
"""

import pytest
from fuzz.campaign import GROUP, explained, tried
from fuzz.coverage import coverage
from fuzz.generator import generate
from fuzz.program import assert_same, outcomes
from fuzz.setups import full_cross, setup_of
from fuzz.writer import TAGGED

from tirlite.diag import KernelRunError
from tirlite.ir import Allocate, Buffer, PrimFunc, Stmt, View, const, i64, rewrite, seq, u8

SAMPLE = 200


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.getoption
    if "first" in metafunc.fixturenames:
        count = 0 if option("--seed") is not None else option("--programs")
        metafunc.parametrize("first", range(0, count, GROUP))
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", [option("--seed")] if option("--seed") is not None else [])


def test_programs_do_the_same_printed_rewritten_and_compiled(first: int, pytestconfig: pytest.Config) -> None:
    crossed = pytestconfig.getoption("--full-cross")
    failures = list(tried(range(first, first + GROUP), crossed=crossed))
    told = [f"seed {seed}, {setup}: {failure.step}: {failure.told}" for seed, setup, failure in failures]
    assert not told, "\n".join([*told, "shrink with: python -m pytest tests/fuzz --seed SEED"])


def test_one_seed(seed: int, pytestconfig: pytest.Config) -> None:
    crossed = pytestconfig.getoption("--full-cross")
    told = next(filter(None, (explained(seed, setup) for setup in (full_cross() if crossed else [setup_of(seed)]))), "")
    assert not told, told


def test_a_seed_gives_one_program() -> None:
    assert_same(outcomes(generate(3)), outcomes(generate(3)))


def all_in_one_place(func: PrimFunc) -> PrimFunc:
    """The function with its allocations, but those of loop counters, all in one place: what a planner must not do."""
    arena = Buffer("arena", u8, (const(1 << 20, i64),))

    def allocate(node: Allocate) -> Stmt:
        return node if node.buffer.scope in ("local", TAGGED) else View(node.buffer, arena, const(0, i64))

    return func.replaced(body=seq(Allocate(arena), rewrite(func.body, {Allocate: allocate})))


def notices(seed: int) -> bool:
    program = generate(seed)
    try:
        assert_same(outcomes(program), outcomes(program, func=all_in_one_place(program.func)))
    except (AssertionError, KernelRunError):  # a wrong value, or what the interpreter sees of iterations
        return True
    return False


def test_they_notice_a_wrong_plan() -> None:
    assert sum(notices(seed) for seed in range(16)) > 4


def test_they_cover_what_matters() -> None:
    shares = coverage([generate(seed) for seed in range(SAMPLE)])
    print("\n".join(f"{share:4.0%}  {feature}" for feature, share in shares.items()))
    wanted = {
        "reuse possible": 0.3,
        "symbolic sizes": 0.5,
        "symbolic temporaries": 0.3,
        "mixed types": 0.5,
        "extent 0": 0.2,
        "extent 1": 0.3,
        "long loops": 0.2,
        "if": 0.3,
        "while": 0.2,
        "view": 0.3,
        "view of another type": 0.1,
        "loop-carried": 0.3,
        "reduction": 0.3,
        "parallel loop": 0.3,
        "threads": 0.2,
        "barrier in a loop": 0.07,
        "vectorized loop": 0.3,
        "unrolled loop": 0.1,
        "descending loop": 0.3,
        "loop with a step": 0.1,
        "attribute": 0.1,
        "f16 temporaries": 0.1,
        "bf16 temporaries": 0.1,
        "vectors": 0.1,
        "allocation in a block": 0.3,
        "filled by both branches": 0.1,
        "kernel call": 0.3,
        "a kernel called again": 0.05,
        "elementary function": 0.3,
        "extern call possible": 0.1,
        "chain": 0.3,
        "pair in place": 0.3,
        "copy": 0.2,
        "filled in pieces": 0.3,
        "pair in place over several statements": 0.03,
        "sizes of loop variables": 0.1,
        "sizes read from memory": 0.1,
        "shapes read from memory": 0.03,
        "sums that wrap around": 0.15,
        "tagged memory": 0.3,
        "volatile": 0.03,
        "alignment": 0.2,
        "virtual threads": 0.05,
        "assert": 0.1,
        "let": 0.2,
        "let in an expression": 0.1,
        "conditional expression": 0.5,
        "select": 0.5,
    }
    assert {feature: share for feature, share in wanted.items() if shares.get(feature, 0) < share} == {}
