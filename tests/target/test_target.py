"""What a target says of a machine."""

import os
from functools import partial

import pytest

import tirlite as tl


def test_the_host_has_a_worker_for_each_processor_that_the_process_may_use() -> None:
    if hasattr(os, "sched_getaffinity"):
        assert tl.Target.host().workers == len(os.sched_getaffinity(0))
    assert tl.Target.host(workers=3).workers == 3


def test_memory_is_added_without_changing_the_workers() -> None:
    target = tl.Target.host(workers=3).with_memory("local.UB", tl.MemoryInfo(8, 256, 1 << 20))
    assert target.workers == 3
    assert list(target.memories) == ["local.UB"]


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, 100_000])
def test_impossible_numbers_of_workers_are_refused(workers: int) -> None:
    for target in (tl.Target.host, partial(tl.Target, "x86-64-v3")):
        with pytest.raises(tl.PlanError, match="cannot have"):
            target(workers=workers)


def test_a_memory_may_begin_at_a_multiple_of_its_alignment_alone() -> None:
    info = tl.MemoryInfo(8, 256, 1 << 20, head_address=0x1020)
    assert tl.Target.host().with_memory("local.UB", info).memories["local.UB"].head_address == 0x1020
    for head in (0x1010, -32, "0x1020"):
        with pytest.raises(
            tl.PlanError, match=r"cannot have head_address = .*(?s:.*)a multiple of its alignment, here 32"
        ):
            tl.Target.host().with_memory("local.UB", tl.MemoryInfo(8, 256, 1 << 20, head))


@pytest.mark.parametrize("info", [(8.0, 256, 64), (8, "256", 64), (8, 256, 0), (8, 256, 6.4)], ids=str)
def test_numbers_that_no_memory_has_are_refused(info: tuple[int, int, int]) -> None:
    with pytest.raises(tl.PlanError, match="bad-memory"):
        tl.Target.host().with_memory("local.UB", tl.MemoryInfo(*info))
    with pytest.raises(tl.PlanError, match="bad-memory"):
        tl.Target("x86-64-v3", {"local.UB": tl.MemoryInfo(*info)})


@pytest.mark.parametrize(
    ("scope", "hint"),
    [
        ("local.UV", "did you mean `local.UB`"),
        ("shared.UB", "did you mean `local.UB`?"),
        ("global.weights", "it describes `local.L0A`, `local.UB`"),
    ],
)
def test_an_unknown_memory_is_answered_with_those_that_there_are(scope: str, hint: str) -> None:
    info = tl.MemoryInfo(8, 256, 1 << 20)
    target = tl.Target.host().with_memory("local.UB", info).with_memory("local.L0A", info)
    with pytest.raises(tl.PlanError) as caught:
        target.memory("a", scope)
    assert hint in str(caught.value)
