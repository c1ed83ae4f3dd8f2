"""What a target says of a machine."""

import os

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


@pytest.mark.parametrize("workers", [0, -1, 1.5, 100_000])
def test_impossible_numbers_of_workers_are_refused(workers: int) -> None:
    with pytest.raises(tl.PlanError, match="cannot have"):
        tl.Target.host(workers=workers)
