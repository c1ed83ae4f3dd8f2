"""Random programs are well-formed, have a meaning, keep it through the passes, and cover what matters.

`python -m pytest tests/fuzz --programs 20000` runs more of them; `-s -k cover` prints what they cover.
"""

import pytest
from fuzz.generator import generate
from fuzz.outline import outlined
from fuzz.program import Arguments, Run, assert_same, coverage, outcomes

import tirlite as tl
from tirlite.diag import KernelRunError
from tirlite.ir import Allocate, Buffer, PrimFunc, Stmt, View, const, i64, rewrite, seq, u8, validate
from tirlite.rewrite import Normalize, StorageRewrite

PROGRAMS = 300
GROUP = 10
STRATEGIES = ("none", "tvm", "share", "per_shape")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "first" in metafunc.fixturenames:
        metafunc.parametrize("first", range(0, metafunc.config.getoption("--programs", PROGRAMS), GROUP))


def test_storage_rewrite_keeps_the_meaning(first: int) -> None:
    for seed in range(first, first + GROUP):
        program = generate(seed)
        validate(program.func)
        rewritten = StorageRewrite(strategy=("tvm", "share")[seed % 2])(Normalize()(program.func))
        validate(rewritten)
        assert_same(outcomes(program), outcomes(program, func=rewritten))


def compiled(strategy: str, *, debug: bool = False) -> Run:
    """What compiles a function and calls it."""
    kernels: dict[PrimFunc, tl.Kernel] = {}

    def run(func: PrimFunc, arguments: Arguments) -> None:
        if func not in kernels:
            kernels[func] = tl.compile(func, strategy=strategy, debug=debug)
        kernels[func](*(arguments[param] for param in func.params))

    return run


def test_compiled_code_does_what_the_interpreter_does(first: int) -> None:
    for seed in range(first, first + GROUP):
        program, run = generate(seed), compiled(STRATEGIES[seed % len(STRATEGIES)])
        assert_same(outcomes(program), outcomes(program, run))


def test_checked_code_does_the_same_and_gives_no_false_alarm(first: int) -> None:
    for seed in range(first, first + GROUP, 5):
        program, run = generate(seed), compiled((*STRATEGIES, "pack")[seed // 5 % 4], debug=True)
        assert_same(outcomes(program), outcomes(program, run))


def test_loops_that_become_functions_do_the_same(first: int) -> None:
    for seed in range(first, first + GROUP):
        program = generate(seed)
        func = outlined(program.func)
        validate(func)
        assert_same(outcomes(program), outcomes(program, func=func))
        if seed % 10 == 0:
            run = compiled((*STRATEGIES, "pack")[seed // 10 % 5], debug=seed % 60 == 0)
            assert_same(outcomes(program), outcomes(program, run, func=func))


def test_a_seed_gives_one_program() -> None:
    assert_same(outcomes(generate(3)), outcomes(generate(3)))


def all_in_one_place(func: PrimFunc) -> PrimFunc:
    """The function with its allocations, but those of loop counters, all in one place: what a planner must not do."""
    arena = Buffer("arena", u8, (const(1 << 20, i64),))

    def allocate(node: Allocate) -> Stmt:
        return node if node.buffer.scope == "local" else View(node.buffer, arena, const(0, i64))

    return func.replaced(body=seq(Allocate(arena), rewrite(func.body, {Allocate: allocate})))


def notices(seed: int) -> bool:
    program = generate(seed)
    try:
        assert_same(outcomes(program), outcomes(program, func=all_in_one_place(program.func)))
    except (AssertionError, KernelRunError):  # a wrong value, or what the interpreter sees of iterations
        return True
    return False


def test_they_notice_a_wrong_plan() -> None:
    assert sum(notices(seed) for seed in range(100)) > 30


def test_they_cover_what_matters() -> None:
    shares = coverage([generate(seed) for seed in range(PROGRAMS)])
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
        "barrier in a loop": 0.1,
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
    }
    assert {feature: share for feature, share in wanted.items() if shares.get(feature, 0) < share} == {}
