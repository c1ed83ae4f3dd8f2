"""Random programs with a mistake: checked code stops where the interpreter stops, with the same words and effects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import numpy as np
import pytest
from effort import at_effort
from fuzz.generator import generate
from fuzz.program import Arguments, Program
from fuzz.setups import target_of
from random_cases import groups

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.diag import TirliteError
from tirlite.interp import interpreter
from tirlite.ir import Allocate, Buffer, For, ForKind, IntImm, Load, PrimFunc, Store, rewrite, walk

STRATEGIES = ("none", "tvm", "share", "pack")
PROGRAMS = 160
GROUP = 20


def with_a_mistake(program: Program, random: Random) -> PrimFunc:
    """The function without one of its stores, or with one of its accesses moved by an element."""
    func = program.func
    # The counters of loops stay as they are, so that the loops end.
    counters = {s.buffer for s in walk(func) if isinstance(s, Allocate) and s.buffer.scope == "local"}
    accesses = [each for each in walk(func) if isinstance(each, Store | Load) and each.buffer not in counters]
    chosen = random.choice(
        [each for each in accesses if isinstance(each, Store)] if random.random() < 0.6 else accesses
    )
    drop, step = random.random() < 0.7, random.choice((-1, 1))

    def change(node: Store | Load) -> Store | Load | tuple[()]:
        if node is not chosen:
            return node
        if isinstance(node, Store) and drop:
            return ()
        index = node.indices[-1] if node.indices else None
        if index is None or index.dtype.lanes > 1 or isinstance(index, IntImm):
            return node
        return node.replaced(indices=(*node.indices[:-1], index + step))

    def in_order(loop: For) -> For:
        # Checked code runs parallel loops in order, and does not see their conflicts.
        return loop.replaced(kind=ForKind.SERIAL) if loop.kind is ForKind.PARALLEL else loop

    result = rewrite(func, {Store: change, Load: change, For: in_order})
    assert isinstance(result, PrimFunc)
    return result


def outcome(func: PrimFunc, arguments: Arguments, run: Callable[[Arguments], object]) -> tuple[str, list[object]]:
    """What a run says, if anything, and what the arguments are afterwards."""
    said = ""
    try:
        run(arguments)
    except TirliteError as error:
        said = str(error)
    return said, [arguments[param] for param in func.params if isinstance(param, Buffer)]


def call(kernel: Callable[..., object], func: PrimFunc, arguments: Arguments) -> None:
    kernel(*(arguments[param] for param in func.params))


@pytest.mark.parametrize("first", groups(PROGRAMS, GROUP))
def test_mistakes_are_told_alike(first: int) -> None:
    told = 0
    for seed in range(first, first + GROUP):
        program = generate(seed)
        func = with_a_mistake(program, Random(seed))
        kernel = tl.compile(func, strategy=STRATEGIES[seed % 4], debug=True, target=target_of(2))
        native = partial(call, at_effort(Effort.FULL if seed % 9 == 0 else Effort.NONE, kernel), func)
        interpret = interpreter(func)
        for number in range(len(program.bindings)):
            wanted, left = outcome(func, program.arguments(number), interpret)
            given, arrays = outcome(func, program.arguments(number), native)
            told += bool(wanted)
            # A race that is proved is told before a program runs, which may make another mistake before that.
            if wanted and given != wanted and given.startswith("error[parallel-race]"):
                continue
            assert given == wanted, seed
            for array, expected in zip(arrays, left, strict=True):
                np.testing.assert_array_equal(array, expected)
    assert told
