"""What is known of a function is found once, and handed on by a pipeline for as long as the function stays the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import tirlite as tl
from tirlite.analysis import access
from tirlite.analysis.facts import Facts
from tirlite.kernels.harris import harris
from tirlite.record import record
from tirlite.rewrite import default_pipeline, run_pipeline
from tirlite.rewrite.pipeline import FactsPass
from tirlite.schedules.auto import ScheduleTemporaries

n = tl.dim("n")


@tl.kernel
def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
    t = tl.alloc(tl.f32[n])
    for i in range(n):
        t[i] = 2 * x[i]
    for i in range(n):
        y[i] = t[i]


@record
class Watch(FactsPass):
    """Notes the facts that it is given, and returns the function, or a copy of it."""

    seen: list[Facts]
    copies: bool = False
    name: str = "watch"

    def rewritten(self, facts: Facts) -> tl.PrimFunc:
        self.seen.append(facts)
        return facts.func.replaced(name="copy") if self.copies else facts.func


def test_each_part_is_found_once() -> None:
    facts = Facts(twice.ir)
    for part in ("sequence", "params", "lifetimes", "definitions", "extents", "space", "addresses"):
        assert getattr(facts, part) is getattr(facts, part)
    assert facts.addresses.space is facts.space
    assert facts.space.extents is facts.extents
    assert facts.space.definitions is facts.definitions


def test_parameters_are_walked_with_the_allocations() -> None:
    facts = Facts(twice.ir)
    x, y = (param for param in twice.ir.params if isinstance(param, tl.ir.Buffer))
    assert [each.buffer.name for each in facts.sequence.allocations] == ["t"]
    assert [touch.kind.value for touch in facts.params[x].touches] == ["read"]
    assert [touch.kind.value for touch in facts.params[y].touches] == ["write"]
    assert "x" not in str(facts.sequence)


def test_a_pipeline_hands_facts_on_while_the_function_stays() -> None:
    seen: list[Facts] = []
    run_pipeline(twice.ir, (Watch(seen), Watch(seen, copies=True), tl.passes.CheckRaces(), Watch(seen)))
    first, same, other = seen
    assert same is first
    assert first.func is twice.ir
    assert other.func.name == "copy"


def test_a_function_that_is_called_has_facts_of_its_own_found_once() -> None:
    facts = Facts(twice.ir)
    callee = twice.ir.replaced(name="callee")
    assert facts.of(callee) is facts.of(callee)
    assert facts.of(callee).func is callee
    assert facts.of(twice.ir) is facts


def test_an_analysis_takes_a_function_or_its_facts() -> None:
    assert tl.allocations(Facts(twice.ir)) == tl.allocations(twice.ir)


def test_a_pipeline_walks_each_function_that_it_makes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[tl.PrimFunc] = []
    walk = access._Finder.find

    def counted(finder: access._Finder) -> access.LinearSequence:
        walked.append(finder.func)
        return walk(finder)

    monkeypatch.setattr(access._Finder, "find", counted)
    run_pipeline(harris.ir, default_pipeline(passes=[ScheduleTemporaries()]))
    assert len(set(map(id, walked))) == len(walked) <= 8


def test_touches_of_one_loop_are_those_that_a_walk_over_all_finds() -> None:
    func = tl.compile(harris.ir, schedule=None).lowered
    whole = Facts(func)
    loops = list(tl.ir.statements_of(func.body, tl.ir.For))
    assert len(loops) > 3
    for loop in loops:
        alone = Facts(func).touched_in(loop)
        assert _told(alone) == _told(whole.touches_in.get(loop, {}))


def _told(touched: Mapping[access.Allocation, list[access.Touch]]) -> list[object]:
    return [(each.buffer, [(touch.kind, touch.node) for touch in found]) for each, found in touched.items()]


def test_vectors_of_one_width_at_one_place_have_equal_addresses() -> None:
    @tl.kernel
    def add(x: tl.f32[64], y: tl.f32[64]):
        for i in range(0, 64, 8):
            y[tl.ramp(i, 1, 8)] = y[tl.ramp(i, 1, 8)] + x[tl.ramp(i, 1, 8)]

    facts = Facts(tl.passes.Normalize()(add.ir))
    keys = [facts.addresses.of(touch.node).key for touch in facts.params[add.ir.params[1]].touches]
    assert len(keys) == 2
    assert keys[0] == keys[1]
