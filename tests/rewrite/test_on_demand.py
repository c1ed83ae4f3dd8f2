"""Passes that are loaded on demand: where a function has nothing that one needs, it would change nothing."""

from collections.abc import Iterator

from fuzz.generator import generate

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.ir import AttrKey, ForKind, IfThenElse, Let, Load, Store, TypeCode
from tirlite.kernels.gallery import CASES
from tirlite.rewrite import FindReductions, Normalize
from tirlite.rewrite.on_demand import OnDemand

PASSES = [
    FindReductions(integers=True),
    *(each() for each in OnDemand.__subclasses__()),
]


def functions() -> Iterator[tl.PrimFunc]:
    yield from (case.kernel.ir for case in CASES)
    yield from (generate(seed).func for seed in range(100))


def test_a_pass_changes_no_function_without_what_it_needs() -> None:
    passed_over = dict.fromkeys(PASSES, 0)
    for func in map(Normalize(), functions()):
        facts = Facts(func)
        for each in PASSES:
            if each.needs.isdisjoint(facts.signs):
                passed_over[each] += 1
                assert each.needed(Facts(func)).func is func, f"{each} changes {func}"
    assert all(count > 10 for count in passed_over.values()), passed_over


def test_signs_tell_what_loops_are_made_of_and_which_statements_stand_outside() -> None:
    func = tl.parse("""
@tl.kernel
def f(x: tl.f32[8], y: tl.i32[8]):
    with tl.allow("contract"):
        for i in tl.parallel(8):
            y[i] = 1
    if x[0] > x[1]:
        x[0] = x[2] / x[1]
""")
    signs = Facts(func).signs
    assert {AttrKey.ALLOW, ForKind.PARALLEL, IfThenElse, Store, TypeCode.INT} <= signs
    assert signs.isdisjoint({ForKind.SERIAL, TypeCode.FLOAT, Let, Load})
